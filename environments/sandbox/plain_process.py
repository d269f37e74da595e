"""A plain process: limits, and no protection at all."""

import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracemill.environments.sandbox.execute import execute
from tracemill.environments.sandbox.python_runtime import BARE, PYTHON
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, CompletedCommand, Limits, Mount

_MB = 1 << 20


class PlainProcess:
    """No sandbox: a command is a child of this process, on the host's files and network.

    Paths of mounts inside are replaced by those of the host in the command, its folder and its environment.
    It is for machines without namespaces, and for code that is trusted.
    """

    name = "unsafe-process"
    python = (PYTHON, *BARE)

    def hand_over(self, folder: Path) -> None:
        """Do nothing: the command is the same user."""

    def run(
        self,
        command: Sequence[str],
        mounts: Sequence[Mount] = (),
        *,
        cwd: str = "/tmp",
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> CompletedCommand:
        """Run a command to its end; stdout and stderr are one stream."""
        ordered = sorted(mounts, key=lambda mount: -len(mount.inside))

        def on_host(text: str) -> str:
            for mount in ordered:
                text = text.replace(mount.inside, str(mount.host))
            return text

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_mb * _MB, limits.file_mb * _MB))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu, limits.cpu + 2))

        basic = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/tmp", "LANG": "C.UTF-8"}
        more = {name: on_host(value) for name, value in (environment or {}).items()}
        return execute(
            [on_host(part) for part in command],
            limits,
            stdin=stdin,
            cwd=Path(on_host(cwd)),
            environment={**basic, "PYTHONDONTWRITEBYTECODE": "1", **more},
            writable=[mount.host for mount in mounts if mount.writable],
            prepare=prepare,
        )
