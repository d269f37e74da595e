"""What a command in a sandbox can do, and what it cannot."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orchard
import pytest

from tracemill.environments.sandbox import python_runtime
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.python_runtime import PYTHON
from tracemill.environments.sandbox.sandbox import Limits, Mount
from tracemill.records.errors import EnvironmentTaskError


def test_a_command_sees_what_is_mounted_and_no_more(worktree: Path) -> None:
    (worktree / "seen.txt").write_text("seen")
    sandbox = orchard.sandbox()
    sandbox.hand_over(worktree)
    look = f"cat /work/seen.txt; ls {Path(__file__).parent} ~/.ssh /home /etc/passwd; echo new > /work/new"
    ended = sandbox.run(["bash", "-c", look], [Mount(worktree, "/work", writable=True)])
    assert (ended.ending, ended.code) == ("exited", 0)
    assert ended.text.startswith("seen")
    assert ended.text.count("No such file or directory") == 4
    assert (worktree / "new").read_text() == "new\n"


def test_a_read_only_mount_and_the_system_cannot_be_written(worktree: Path) -> None:
    (worktree / "kept").write_text("kept")
    write = (
        "for each in /work/kept /usr/bin/new /new /etc/new /dev/new; do echo x > $each || echo refused; done"
    )
    ended = orchard.sandbox().run(["bash", "-c", write], [Mount(worktree, "/work")])
    assert ended.text.count("refused") == 5
    assert (worktree / "kept").read_text() == "kept"


def test_packages_that_other_programs_bring_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_runtime, "_SYSTEM_LIBRARIES", (str(tmp_path),))
    bundled = "tool/bundle/lib/python3.12"
    packages = ["python3/dist-packages", "python-wheels", f"{bundled}/site-packages"]
    packages += ["pip/_vendor", f"{bundled}/ensurepip/_bundled", "tool/third_party"]
    for folder in (*packages, f"{bundled}/json", f"{bundled}/site-packages/pip/_vendor"):
        (tmp_path / folder).mkdir(parents=True)
    found = [Path(each) for each in python_runtime.hidden_folders.__wrapped__()]
    below = {each.relative_to(tmp_path).as_posix() for each in found if each.is_relative_to(tmp_path)}
    assert below == {*packages}


def test_there_is_no_network(worktree: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        ended = orchard.sandbox().run([PYTHON, "-c", code])
    assert ended.code == 1
    assert "ConnectionRefusedError" in ended.text


def test_nothing_of_the_environment_and_no_right_comes_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-not-for-anybody")
    ended = orchard.sandbox().run(
        ["bash", "-c", "env; id -u; grep Cap /proc/self/status; mount -t tmpfs x /mnt"]
    )
    assert "sk-or" not in ended.text
    assert "\n0\n" not in ended.text
    assert ended.text.count("0000000000000000") >= 3
    assert ended.code != 0


@pytest.mark.parametrize(
    ("command", "limits", "ending"),
    [
        (["bash", "-c", ":(){ :|:& };:; sleep 60"], Limits(seconds=3, processes=32), "timed_out"),
        (["bash", "-c", "while true; do :; done"], Limits(seconds=1), "timed_out"),
        ([PYTHON, "-c", "x = [bytearray(50 << 20) for _ in range(60)]"], Limits(memory_mb=512), "memory"),
        (
            ["bash", "-c", "while head -c 9000000 /dev/zero > /work/$RANDOM; do :; done"],
            Limits(disk_mb=60),
            "disk",
        ),
    ],
)
def test_a_command_past_its_limits_is_killed(
    worktree: Path, command: list[str], limits: Limits, ending: str
) -> None:
    sandbox = orchard.sandbox()
    sandbox.hand_over(worktree)
    ended = sandbox.run(command, [Mount(worktree, "/work", writable=True)], limits=limits)
    assert ended.ending == ending
    assert ended.seconds < 30


def test_a_file_of_10_gb_is_refused(worktree: Path) -> None:
    sandbox = orchard.sandbox()
    sandbox.hand_over(worktree)
    code = "open('/work/large', 'wb').write(bytes(200 << 20))"
    for command in (["truncate", "-s", "10G", "/work/large"], [PYTHON, "-c", code]):
        ended = sandbox.run(command, [Mount(worktree, "/work", writable=True)])
        assert ended.code != 0
        large = worktree / "large"
        assert not large.exists() or large.stat().st_size <= 64 << 20


def test_output_is_read_to_its_end_and_kept_in_part() -> None:
    ended = orchard.sandbox().run(["bash", "-c", "yes | head -c 5000000"], limits=Limits(output_bytes=1000))
    assert (ended.ending, ended.code, len(ended.output), ended.cut) == ("exited", 0, 1000, True)


def test_what_a_command_leaves_in_the_background_ends_with_it(worktree: Path) -> None:
    sandbox = orchard.sandbox()
    sandbox.hand_over(worktree)
    command = ["bash", "-c", "(sleep 1; echo late > /work/late) & disown; echo started"]
    ended = sandbox.run(command, [Mount(worktree, "/work", writable=True)])
    assert ended.text == "started\n"
    threading.Event().wait(1.5)
    assert not (worktree / "late").exists()


def test_a_fork_bomb_leaves_a_sandbox_beside_it_alone() -> None:
    bomb = threading.Thread(
        target=orchard.sandbox().run,
        args=(["bash", "-c", ":(){ :|:& };:; sleep 60"],),
        kwargs={"limits": Limits(seconds=4, processes=48)},
    )
    bomb.start()
    ended = [orchard.sandbox().run(["bash", "-c", "echo $((6 * 7)); sleep 0.2"]) for _ in range(5)]
    bomb.join()
    assert [each.text for each in ended] == ["42\n"] * 5


def test_an_unknown_sandbox_is_refused_and_a_plain_process_is_never_chosen_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentTaskError, match="there is no sandbox 'chroot'"):
        choose_sandbox("chroot")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        EnvironmentTaskError, match="no sandbox is installed; expected bubblewrap, podman or docker"
    ):
        choose_sandbox()
    assert choose_sandbox("unsafe-process").name == "unsafe-process"


def test_a_machine_that_lets_nobody_make_namespaces_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EnvironmentTaskError, match=r"cannot make a sandbox here .*No permissions to create"):
        choose_sandbox()


def test_keyrings_of_the_kernel_are_closed() -> None:
    code = (
        "import ctypes, platform; call = ctypes.CDLL(None, use_errno=True).syscall\n"
        "first = {'x86_64': 248, 'aarch64': 217}[platform.machine()]\n"
        "calls = range(first, first + 3)\n"
        "print([(call(n, b'user', b'seen', b'x', 1, -3), ctypes.get_errno()) for n in calls])"
    )
    ended = orchard.sandbox().run([PYTHON, "-c", code])
    assert ended.text == "[(-1, 1), (-1, 1), (-1, 1)]\n"


def test_the_cache_of_files_and_locks_are_closed() -> None:
    code = (
        "import os\ntold = []\nfile = os.open('/usr/bin/env', os.O_RDONLY)\n"
        "for ask in (lambda: os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT),\n"
        "            lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED),\n"
        "            lambda: __import__('fcntl').flock(file, 1)):\n"
        "    try:\n        told.append(ask())\n    except PermissionError:\n        told.append('closed')\n"
        "print(told, len(os.pread(file, 9, 0)))"
    )
    assert orchard.sandbox().run([PYTHON, "-c", code]).text == "['closed', 'closed', 'closed'] 9\n"


def test_a_record_lock_is_unknown_to_another_sandbox(worktree: Path) -> None:
    (worktree / "shared").write_text("x" * 9)
    code = (
        "import fcntl, os, sqlite3, struct, sys, time\nfile = os.open('/w/shared', os.O_RDWR)\n"
        "held = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 9, 0)\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "fcntl.fcntl(file, 37, held)\n"  # of the open file
        "open('/w/' + sys.argv[1], 'w').close()\n"
        "while len(os.listdir('/w')) < 3:\n    time.sleep(.01)\n"
        "database = sqlite3.connect('/tmp/it.db')\n"
        "database.execute('create table t (a)')\ndatabase.execute('insert into t values (7)')\n"
        "database.commit()\nprint(database.execute('select a from t').fetchall(), fcntl.fcntl(file, 1))"
    )
    sandbox = orchard.sandbox()
    sandbox.hand_over(worktree)

    def run(name: str) -> str:
        mounts = [Mount(worktree, "/w", writable=True)]
        return sandbox.run([PYTHON, "-c", code, name], mounts, limits=Limits(seconds=20)).text

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(run, "ab")] == ["[(7,)] 1\n"] * 2
