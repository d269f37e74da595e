"""The launcher `local`: a process on this machine, with accelerate where it is to be several."""

import os
from collections.abc import Iterator
from typing import Any, ClassVar

from tracemill.train.child_environment import child_environment
from tracemill.train.launch.detached_process import (
    job_command,
    poll_process,
    process_log,
    start_process,
    stop_process,
    write_launch,
)
from tracemill.train.launch.launcher import JobStatus, Launch, LaunchOptions
from tracemill.train.start_child import check_settings
from tracemill.train.training_settings import TrainingSettings


class LocalLauncher:
    """A launcher of trainings with TRL on this machine."""

    options: ClassVar = LaunchOptions
    attached: ClassVar = True
    remote: ClassVar = False
    poll_s: ClassVar = 0.1

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError for a missing folder or package."""
        check_settings(settings)

    def describe(self, launch: Launch) -> dict[str, Any]:
        """Return command, processes and names of the environment variables."""
        return {
            "command": job_command(launch.folder),
            "processes": launch.settings.processes,
            "environment": sorted(child_environment(os.environ, launch.settings.environment)),
        }

    def submit(self, launch: Launch) -> str:
        """Start the process and return its id."""
        write_launch(launch)
        return start_process(launch, child_environment(os.environ, launch.settings.environment))

    def poll(self, launch: Launch, job_id: str) -> JobStatus:
        """Return what has become of the process."""
        return poll_process(launch)

    def logs(self, launch: Launch, job_id: str) -> Iterator[str]:
        """Yield the log of the training."""
        return process_log(launch)

    def cancel(self, launch: Launch, job_id: str) -> None:
        """Send SIGTERM; the training saves, and ends at once the second time."""
        stop_process(launch)


LOCAL = LocalLauncher()
