"""The launcher `modal`: a sandbox of Modal (https://modal.com/docs/guide/sandbox)."""

# pyright: reportMissingImports=false
# (modal is no dependency)

import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from tracemill.records.errors import TrainingError
from tracemill.train.launch.launcher import JobRefused, JobState, JobStatus, LaunchAttempt, LaunchOptions
from tracemill.train.launch.remote_job import (
    REMOTE_COMMAND,
    check_release,
    check_remote,
    named_secrets,
    remote_variables,
)
from tracemill.train.start_child import INSTALL
from tracemill.train.training_settings import TrainingSettings

T = TypeVar("T")


class ModalOptions(LaunchOptions):
    """Options of the launcher `modal`."""

    gpu: str = "A10G"
    """GPU and how many, such as `H100:8`."""
    image: str = "python:3.12"
    """Container image."""
    setup: tuple[str, ...] = (INSTALL,)
    """Shell lines that are built into the image."""
    timeout_s: int = Field(8 * 3600, ge=60)
    """Longest duration in seconds."""
    app: str = "tracemill"
    """App that the sandbox belongs to; it is created if it is missing."""


class ModalLauncher:
    """A launcher of trainings in sandboxes of Modal."""

    options: ClassVar = ModalOptions
    attached: ClassVar = False
    remote: ClassVar = True
    poll_s: ClassVar = 15.0

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError if modal is not installed, and as `check_remote` does."""
        if importlib.util.find_spec("modal") is None:
            raise TrainingError("modal is not installed", "the package modal", "pip install 'modal>=1.6'")
        check_remote(settings)

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the arguments of `Sandbox.create`, with only the names of secrets."""
        check_release(launch)
        options = launch.options(ModalOptions)
        return {
            "command": list(REMOTE_COMMAND),
            "app": options.app,
            "image": options.image,
            "setup": list(options.setup),
            "secrets": sorted(launch.settings.environment),
            **self._arguments(launch),
        }

    def submit(self, launch: LaunchAttempt) -> str:
        """Create the sandbox, named by its key, and return its id."""
        import modal

        options = launch.options(ModalOptions)
        secrets = named_secrets(launch, os.environ)

        def create() -> Any:
            app = modal.App.lookup(options.app, create_if_missing=True)
            try:
                return modal.Sandbox.from_name(options.app, launch.key, include_terminated=True)
            except modal.exception.NotFoundError:
                image = modal.Image.from_registry(options.image).run_commands(*options.setup)
                return modal.Sandbox.create(
                    *REMOTE_COMMAND,
                    app=app,
                    image=image,
                    secrets=[modal.Secret.from_dict(secrets)],
                    **self._arguments(launch),
                )

        return str(_ask(create).object_id)

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the state from the exit code of the sandbox."""
        import modal

        code = _ask(lambda: modal.Sandbox.from_id(job_id).poll())
        if code is None:
            return JobStatus(JobState.RUNNING)
        if code == 0:
            return JobStatus(JobState.SUCCEEDED)
        return JobStatus(JobState.FAILED, f"sandbox {job_id} of Modal ended with code {code}")

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield the output of the sandbox, until it ends."""
        import modal

        for text in _ask(lambda: modal.Sandbox.from_id(job_id).stdout):
            yield from text.splitlines()

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Terminate the sandbox; nothing is saved."""
        import modal

        _ask(lambda: modal.Sandbox.from_id(job_id).terminate())

    def _arguments(self, launch: LaunchAttempt) -> dict[str, Any]:
        options = launch.options(ModalOptions)
        return {
            "name": launch.key,
            "env": remote_variables(launch),
            "gpu": options.gpu,
            "timeout": options.timeout_s,
        }


def _ask(call: Callable[[], T]) -> T:
    """Return the result of a call; a refusal is a TrainingError in one line."""
    import modal

    try:
        return call()
    except modal.exception.AuthError:
        raise JobRefused("Modal refuses the token", "one that it accepts", "modal token new") from None
    except (modal.exception.Error, OSError) as error:
        raise TrainingError(
            f"Modal refuses the job ({type(error).__name__})", do="the same command finds the job again"
        ) from None


MODAL = ModalLauncher()
