"""Choose a sandbox by name, or the best that is installed."""

import shutil
from typing import get_args

from tracemill.environments.sandbox.bubblewrap import BubblewrapSandbox
from tracemill.environments.sandbox.container import ContainerSandbox
from tracemill.environments.sandbox.plain_process import PlainProcess
from tracemill.environments.sandbox.sandbox import Sandbox, SandboxName
from tracemill.records.errors import EnvironmentTaskError


def choose_sandbox(name: str = "auto") -> Sandbox:
    """Return the sandbox of this name; `auto` takes bubblewrap, then podman, then docker.

    `podman:IMAGE` and `docker:IMAGE` name an image too. A plain process protects nothing and is never
    chosen by itself.
    """
    engine, colon, image = name.partition(":")
    if colon and image and engine in ("docker", "podman"):
        return ContainerSandbox(engine, image)
    if name not in get_args(SandboxName):
        raise EnvironmentTaskError(f"there is no sandbox {name!r}", ", ".join(get_args(SandboxName)))
    if name == "unsafe-process":
        return PlainProcess()
    if name == "bubblewrap" or (name == "auto" and shutil.which("bwrap")):
        return BubblewrapSandbox()
    if name in ("docker", "podman"):
        return ContainerSandbox(name)
    for engine in ("podman", "docker"):
        if shutil.which(engine):
            return ContainerSandbox(engine)
    raise EnvironmentTaskError(
        "no sandbox is installed",
        "bubblewrap, podman or docker",
        "install bubblewrap (`apt install bubblewrap`), or trust all code: --sandbox unsafe-process",
    )
