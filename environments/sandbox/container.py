"""Docker or Podman: the same limits in a container of a given image."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from tracemill.environments.sandbox.execute import execute
from tracemill.environments.sandbox.python_runtime import BARE
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, CompletedCommand, Limits, Mount
from tracemill.records.errors import EnvironmentTaskError

IMAGE = "docker.io/library/python:3.11-slim"
_OPEN_FILES, _USER_PROCESSES = 1024, 4096
"""Below what a process may ask for that is not allowed to raise limits; `--pids-limit` is the real one."""
_KILLED = (137, -9)
_FIND_PYTHON = """
for each in /opt/miniconda3/envs/testbed/bin/python python3 python; do
  "$each" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && command -v "$each" && exit 0
done
exit 1
"""
"""Images of SWE-bench have the Python of their repository in an environment of conda."""


class ContainerSandbox:
    """A sandbox of containers, one for each command, removed afterwards; the image must be there already.

    The image needs Python 3.10 or later and, for an agent's commands, bash.
    """

    def __init__(self, engine: str, image: str = IMAGE, *, repository: str = "") -> None:
        """Find the engine; EnvironmentTaskError if it, its image or the Python in it does not work.

        With `repository`, the image is one of a task: that folder in it is hidden, and what is installed
        beside its Python can be imported.
        """
        self.name, self.image, self._hidden = engine, image, repository
        self._program, python = _working(engine, image)
        self.python = (python, *(BARE[:1] if repository else BARE))

    def hand_over(self, folder: Path) -> None:
        """Make a host folder writable for everybody, since the container has another user."""
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666 | (path.stat().st_mode & 0o111))

    def of_image(self, image: str, repository: str) -> "ContainerSandbox":
        """Return a sandbox of the same engine for a task whose image holds its repository in a folder."""
        return ContainerSandbox(self.name, image, repository=repository)

    def copy_out(self, inside: str, folder: Path) -> Path:
        """Copy a folder of the image to a new one of the host; EnvironmentTaskError if it has none."""
        name = f"tracemill-{uuid.uuid4().hex[:12]}"
        try:
            _ask(self._program, "create", "--pull", "never", "--name", name, self.image, "true")
            copied = _ask(self._program, "cp", f"{name}:{inside}", str(folder), seconds=600)
        finally:
            _ask(self._program, "rm", "--force", "--volumes", name)
        if copied.returncode:
            raise EnvironmentTaskError(
                f"the image {self.image} has no {inside}", "an image with a repository"
            )
        return folder

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
        name = f"tracemill-{uuid.uuid4().hex[:12]}"
        arguments = [self._program, "run", "--name", name, *_options(self.name, mounts, limits, cwd)]
        if self._hidden:
            bare = ",notmpcopyup" if self.name == "podman" else ""
            arguments += ["--tmpfs", f"{self._hidden}:ro,size=4k{bare}"]
        basic = {"HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
        for key, value in {**basic, **(environment or {})}.items():
            arguments += ["--env", f"{key}={value}"]
        writable = [mount.host for mount in mounts if mount.writable]
        with tempfile.TemporaryDirectory(prefix="tracemill-container-") as folder:
            pid_file = Path(folder) / "pid"
            if self.name == "podman":  # to ask it to kill takes a quarter of a second
                arguments += ["--pidfile", str(pid_file)]
            try:
                ended = execute(
                    [*arguments, self.image, *command],
                    limits,
                    stdin=stdin,
                    cwd=Path(folder),
                    environment=os.environ,
                    writable=writable,
                    pid_file=pid_file,
                )
                killed = ended.ending == "exited" and ended.code in _KILLED
                if killed and self._ran_out_of_memory(name, Path(folder)):
                    return replace(ended, ending="memory")
                return ended
            finally:
                _ask(self._program, "rm", "--force", "--volumes", name)

    def _ran_out_of_memory(self, name: str, folder: Path) -> bool:
        """Return whether the engine or the file of Podman's monitor reports an out-of-memory kill."""
        said = _ask(self._program, "inspect", "--format", "{{.State.OOMKilled}}", name)
        return said.stdout.strip() == "true" or (folder / "oom").exists()


def _options(engine: str, mounts: Sequence[Mount], limits: Limits, cwd: str) -> list[str]:
    """Return the options of a container: no network, no rights, limits, a file system that is read-only."""
    memory, disk = f"{limits.memory_mb}m", f"{limits.disk_mb}m"
    found = [
        "--interactive",
        "--stop-timeout",
        "0",
        "--network",
        "none",
        "--pull",
        "never",
        "--hostname",
        "sandbox",
    ]
    found += ["--user", "65534:65534", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    found += ["--read-only", "--pids-limit", str(limits.processes), "--shm-size", disk]
    found += ["--memory", memory, "--memory-swap", memory, "--ulimit", "core=0:0"]
    found += ["--ulimit", f"fsize={limits.file_mb << 20}", "--ulimit", f"nofile={_OPEN_FILES}:{_OPEN_FILES}"]
    found += ["--ulimit", f"cpu={limits.cpu}:{limits.cpu + 2}"]
    found += ["--ulimit", f"nproc={_USER_PROCESSES}:{_USER_PROCESSES}", "--workdir", cwd]
    bare = ""
    if engine == "podman":  # it brings proxies of the host, and fills a tmpfs with what the image has there
        found += ["--http-proxy=false", "--read-only-tmpfs=false"]
        bare = ",notmpcopyup"
    if all(mount.inside != "/tmp" for mount in mounts):
        found += ["--tmpfs", f"/tmp:rw,exec,size={disk},mode=1777{bare}"]
    for mount in mounts:
        found += ["--volume", f"{mount.host}:{mount.inside}{'' if mount.writable else ':ro'}"]
    return found


@cache
def _working(engine: str, image: str) -> tuple[str, str]:
    """Return the path of an engine, and a Python that works in a container of an image."""
    program = shutil.which(engine)
    if program is None:
        raise EnvironmentTaskError(f"{engine} is not installed", "podman, docker or bubblewrap")
    if _ask(program, "info").returncode:
        raise EnvironmentTaskError(f"{engine} does not answer", "a running engine", f"try `{engine} info`")
    if _ask(program, "image", "inspect", image).returncode:
        raise EnvironmentTaskError(
            f"{engine} has no image {image}", "an image that is there", f"`{engine} pull {image}`"
        )
    options = _options(engine, (), DEFAULT_LIMITS, "/tmp")
    tried = _ask(program, "run", "--rm", *options, image, "sh", "-c", _FIND_PYTHON)
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or ["there is none"])[-1]
        raise EnvironmentTaskError(
            f"{engine} cannot run Python 3.10 or later in {image} ({said[:200]})",
            "an engine and an image that do",
        )
    return program, tried.stdout.strip()


def _ask(program: str, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run an engine's command and return the result."""
    return subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
