"""What a sandbox is: a way to run a command that sees only what is mounted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

SandboxName = Literal["auto", "bubblewrap", "docker", "podman", "unsafe-process"]
Ending = Literal["exited", "timed_out", "memory", "disk", "processes"]


@dataclass(frozen=True)
class Limits:
    """Limits of one command; a command that uses more is killed with everything it started.

    `seconds` are of wall-clock time, `cpu_seconds` of processor time for each process (the same if None): a
    busy machine takes from the first alone.
    """

    seconds: float = 60.0
    cpu_seconds: float | None = None
    memory_mb: int = 1024
    processes: int = 64
    file_mb: int = 64
    disk_mb: int = 512
    output_bytes: int = 1_000_000

    @property
    def cpu(self) -> int:
        """Return the limit of processor time in whole seconds, as the kernel takes it."""
        return int(self.seconds if self.cpu_seconds is None else self.cpu_seconds) + 1


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, at an absolute path inside."""

    host: Path
    inside: str
    writable: bool = False


@dataclass(frozen=True)
class CompletedCommand:
    """A command that ended: its exit code (-signal where it was killed), its output and its seconds."""

    ending: Ending
    code: int
    output: bytes
    seconds: float
    cut: bool = False

    @property
    def text(self) -> str:
        """Return the output as text; bytes that are not UTF-8 are replaced."""
        return self.output.decode("utf-8", "replace")


class Sandbox(Protocol):
    """A place for commands that see only system programs and mounted folders, and have no network.

    A host folder that is mounted writable must be prepared with `hand_over` first. `python` is the command
    of the Python inside, without its installed packages.
    """

    name: str
    python: tuple[str, ...]

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
        ...

    def hand_over(self, folder: Path) -> None:
        """Make a host folder writable for commands of this sandbox."""
        ...
