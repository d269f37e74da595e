"""Docker or Podman: the same limits in a container of a given image."""

import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracemill.environments.sandbox.execute import execute
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Completed, Limits, Mount
from tracemill.records.errors import EnvironmentTaskError

IMAGE = "docker.io/library/python:3.11-slim"


class ContainerSandbox:
    """A sandbox of containers, one for each command, removed afterwards; the image must be there already."""

    def __init__(self, engine: str, image: str = IMAGE) -> None:
        """Find the engine; EnvironmentTaskError where it is not installed or does not answer."""
        self.name, self.image = engine, image
        program = shutil.which(engine)
        if program is None:
            raise EnvironmentTaskError(f"{engine} is not installed", "podman, docker or bubblewrap")
        self._program = program
        asked = subprocess.run([program, "info"], capture_output=True, timeout=60, check=False)
        if asked.returncode:
            raise EnvironmentTaskError(
                f"{engine} does not answer", "a running engine", f"try `{engine} info`"
            )

    def hand_over(self, folder: Path) -> None:
        """Let everybody write in a folder of the host: the user inside is another one."""
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666 | (path.stat().st_mode & 0o111))

    def run(
        self,
        command: Sequence[str],
        mounts: Sequence[Mount] = (),
        *,
        cwd: str = "/tmp",
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Completed:
        """Run a command to its end; stdout and stderr are one stream."""
        name = f"tracemill-{uuid.uuid4().hex[:12]}"
        size = f"{limits.disk_mb}m"
        arguments = [self._program, "run", "--rm", "--interactive", "--name", name, "--network", "none"]
        arguments += ["--pull", "never", "--user", "65534:65534", "--cap-drop", "ALL", "--read-only"]
        arguments += ["--security-opt", "no-new-privileges", "--pids-limit", str(limits.processes)]
        arguments += ["--memory", f"{limits.memory_mb}m", "--ulimit", f"fsize={limits.file_mb << 20}"]
        arguments += ["--tmpfs", f"/tmp:rw,exec,size={size},mode=1777", "--workdir", cwd]
        for mount in mounts:
            mode = "" if mount.writable else ":ro"
            arguments += ["--volume", f"{mount.host}:{mount.inside}{mode}"]
        for key, value in {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}.items():
            arguments += ["--env", f"{key}={value}"]
        writable = [mount.host for mount in mounts if mount.writable]
        try:
            return execute([*arguments, self.image, *command], limits, stdin=stdin, writable=writable)
        finally:
            remove = [self._program, "rm", "--force", name]
            subprocess.run(remove, capture_output=True, timeout=60, check=False)
