"""bubblewrap (https://github.com/containers/bubblewrap): namespaces without a daemon and without images."""

import itertools
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracemill.environments.sandbox.execute import execute
from tracemill.environments.sandbox.python_runtime import BARE, PYTHON, hidden_folders, interpreter_mounts
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, CompletedCommand, Limits, Mount
from tracemill.environments.sandbox.syscall_filter import open_filter
from tracemill.records.errors import EnvironmentTaskError

_USERS = itertools.count()
_FIRST_USER, _USER_COUNT = 200_000, 20_000
_MB = 1 << 20
_SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}


class BubblewrapSandbox:
    """A sandbox of Linux namespaces: each command gets its own, with its own user and file system.

    If this process is root, each sandbox uses a distinct user id, since the kernel counts processes by user
    and never those of root.
    """

    name = "bubblewrap"
    python = (PYTHON, *BARE)

    def __init__(self) -> None:
        """Find bubblewrap; EnvironmentTaskError if it is not installed or may not make namespaces."""
        found = shutil.which("bwrap")
        if found is None:
            raise EnvironmentTaskError(
                "bubblewrap is not installed", "the program bwrap", "install it: `apt install bubblewrap`"
            )
        self._program = found
        self._is_root = os.getuid() == 0
        number = (os.getpid() * 31 + next(_USERS)) % _USER_COUNT
        self._user = _FIRST_USER + number if self._is_root else os.getuid()
        tried = self.run(["/bin/true"])
        if tried.code:
            raise EnvironmentTaskError(
                f"bubblewrap cannot make a sandbox here ({tried.text.strip()[:200]})",
                "a machine that lets it make namespaces",
                "use --sandbox podman or docker",
            )

    def hand_over(self, folder: Path) -> None:
        """Make a host folder writable for commands of this sandbox."""
        if not self._is_root:
            return
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self._user, self._user, follow_symlinks=False)

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
        arguments = [self._program, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
        arguments += ["--hostname", "sandbox", "--cap-drop", "ALL"]
        if self._is_root:
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
                arguments += ["--cap-add", capability]
        else:
            arguments += ["--unshare-user"]
        arguments += self._file_system(mounts, limits)
        for name, value in self._environment(environment).items():
            arguments += ["--setenv", name, value]
        arguments += ["--chdir", cwd, "--", *self._limited(limits), *command]
        writable = [mount.host for mount in mounts if mount.writable]
        keep = [] if (filtered := open_filter()) is None else [filtered]
        try:
            return execute(
                [arguments[0], *(part for each in keep for part in ("--seccomp", str(each))), *arguments[1:]],
                limits,
                stdin=stdin,
                environment={"PATH": os.defpath},
                writable=writable,
                keep=keep,
            )
        finally:
            for each in keep:
                os.close(each)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        basic = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}
        return {**basic, "PYTHONDONTWRITEBYTECODE": "1", **(more or {})}

    def _file_system(self, mounts: Sequence[Mount], limits: Limits) -> list[str]:
        arguments: list[str] = []
        inside = [*_SYSTEM, *(mount.inside for mount in (*interpreter_mounts(), *mounts))]
        for folder in sorted({str(each) for path in inside for each in Path(path).parents} - {"/"}):
            arguments += ["--perms", "0755", "--dir", folder]
        for path in _SYSTEM:
            if Path(path).exists():
                arguments += ["--ro-bind", path, path]
        for link, target in _LINKS.items():
            if Path(link).is_symlink() or Path("/", target).is_dir():
                arguments += ["--symlink", target, link]
        for mount in interpreter_mounts():
            arguments += ["--ro-bind", str(mount.host), mount.inside]
        for folder in hidden_folders():
            arguments += ["--tmpfs", folder, "--remount-ro", folder]
        size = str(limits.disk_mb * _MB)
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        for folder in ("/tmp", "/dev/shm"):
            arguments += ["--size", size, "--perms", "1777", "--tmpfs", folder]
        for mount in mounts:
            arguments += ["--bind" if mount.writable else "--ro-bind", str(mount.host), mount.inside]
        return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _limited(self, limits: Limits) -> list[str]:
        """Return the beginning of a command line that sets limits and drops the remaining privileges."""
        found = ["/usr/bin/prlimit", f"--nproc={limits.processes}", f"--fsize={limits.file_mb * _MB}"]
        found += [
            f"--as={2 * limits.memory_mb * _MB}",
            "--core=0",
            f"--cpu={limits.cpu}:{limits.cpu + 2}",
            "--",
        ]
        if self._is_root:
            user = str(self._user)
            found += ["/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
            found += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
        return found
