"""The sandbox of a container engine, with an image made of programs of this machine."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import container_image
import issue_rows
import orchard
import pytest

from tracemill.environments.episodes.policies import oracle
from tracemill.environments.episodes.run_episode import run_episode
from tracemill.environments.episodes.verify_task import verify_task
from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.feature_deletion.make_issue_tasks import make_issue_tasks
from tracemill.environments.feature_deletion.make_tasks import make_tasks
from tracemill.environments.feature_deletion.read_issue_rows import read_issue_rows
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.container import ContainerSandbox
from tracemill.environments.sandbox.plain_process import PlainProcess
from tracemill.environments.sandbox.sandbox import Limits, Mount
from tracemill.environments.task import Origin
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import ToolCall

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["podman", "docker"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`ENGINE:IMAGE`, with an OCI runtime that starts containers here."""
    if why := container_image.engine_that_works(request.param):
        pytest.skip(f"NOT RUN: {why}")
    scratch = tmp_path_factory.mktemp("image")
    with (
        container_image.image_of_this_machine(request.param, scratch) as image,
        pytest.MonkeyPatch.context() as patch,
    ):
        why = container_image.choose_runtime(request.param, image, scratch, patch)
        if why:
            pytest.skip(f"NOT RUN: {request.param} starts no container here: {why}")
        yield f"{request.param}:{image}"
        assert container_image.state_of(request.param) == []


def test_a_command_sees_what_is_mounted_and_no_more(
    engine: str, worktree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-not-for-anybody")
    monkeypatch.setenv("https_proxy", "http://user:password@proxy.example:3128")
    sandbox, work = choose_sandbox(engine), worktree / "work"
    work.mkdir()
    (work / "seen.txt").write_text("seen")
    sandbox.hand_over(work)
    look = "cat; cat seen.txt; env; id -u; grep Cap /proc/self/status; echo new > /work/new; ls /root/.ssh"
    ended = sandbox.run(
        ["bash", "-c", look], [Mount(work, "/work", writable=True)], cwd="/work", stdin=b"said "
    )
    assert (ended.ending, ended.text.startswith("said seen")) == ("exited", True)
    assert "sk-or" not in ended.text
    assert "proxy" not in ended.text
    assert "\n65534\n" in ended.text
    assert ended.text.count("\t0000000000000000\n") == 5
    assert (work / "new").read_text() == "new\n"
    write = (
        "for each in /work/new /bin/new /new /etc/new /dev/new /run/new; do echo x > $each || echo no; done"
    )
    assert sandbox.run(["bash", "-c", write], [Mount(work, "/work")]).text.count("no\n") == 6
    assert (work / "new").read_text() == "new\n"
    assert sandbox.run(["bash", "-c", "echo kept > /tmp/x"], [Mount(work, "/tmp", writable=True)]).code == 0
    assert (work / "x").read_text() == "kept\n"
    assert sandbox.run(["bash", "-c", "ls /tmp /dev/shm"]).text == "/dev/shm:\n\n/tmp:\n"


def test_there_is_no_network_and_no_keyring(engine: str) -> None:
    code = (
        "import ctypes, platform, socket; call = ctypes.CDLL(None, use_errno=True).syscall\n"
        "first = {'x86_64': 248, 'aarch64': 217}[platform.machine()]\n"
        "print({call(n, b'user', b'seen', b'x', 1, -3) for n in range(first, first + 3)})\n"
        "print(socket.if_nameindex())"
    )
    sandbox = choose_sandbox(engine)
    assert sandbox.run([*sandbox.python, "-c", code]).text == "{-1}\n[(1, 'lo')]\n"


@pytest.mark.parametrize(
    ("command", "limits", "ending"),
    [
        ("bash -c ':(){ :|:& };:; sleep 60'", Limits(seconds=3, processes=32), "timed_out"),
        ("bash -c 'while true; do :; done'", Limits(seconds=2), "timed_out"),
        ("python3 -c 'list(range(10**9))'", Limits(memory_mb=512), "memory"),
        ("while head -c 9000000 /dev/zero > /work/$RANDOM; do sleep .02; done", Limits(disk_mb=60), "disk"),
        ("truncate -s 10G /work/large", Limits(), "exited"),
    ],
)  # fmt: skip
def test_a_command_past_its_limits_is_stopped(
    engine: str, worktree: Path, command: str, limits: Limits, ending: str
) -> None:
    sandbox = choose_sandbox(engine)
    sandbox.hand_over(worktree)
    ended = sandbox.run(["bash", "-c", command], [Mount(worktree, "/work", writable=True)], limits=limits)
    assert ended.ending == ending
    assert ended.code in (-9, 137, 1, 153)
    assert ended.seconds < 30
    # Written at 0.4 GB/s at most: 140 MB in the third of a second that a look and a kill may take.
    assert sum(path.stat().st_size for path in worktree.rglob("*") if path.is_file()) < 200_000_000


@pytest.mark.long
def test_tasks_are_made_solved_and_judged_in_containers(engine: str, worktree: Path) -> None:
    sandbox = choose_sandbox(engine)
    (task,) = make_tasks(orchard.ORCHARD, Origin("orchard"), worktree, sandbox, most=1, restorations=0)
    rewards = verify_task(task, sandbox)
    assert (rewards.deleted, rewards.runs) == (0.0, (1.0,))
    episode = run_episode(task, oracle(task), sandbox)
    assert (episode.reward, episode.hacked) == (1.0, False)
    with TaskWorkspace(task, sandbox) as workspace:
        tools = workspace.tools("claude_code")
        said = [
            tools.call(ToolCall(f"call_{number}", "Bash", json.dumps({"command": command}))).text
            for number, command in enumerate(("cd orchard; echo 1 > /tmp/x", "pwd; cat /tmp/x", "ls /tests"))
        ]
        assert said[1] == "/repository/orchard\n1"
        assert "No such file" in said[2]
        file = workspace.repository / task.deleted[0].partition("::")[0]
        file.write_text(file.read_text() + orchard.PATCHED_REPORT)
        verdict = workspace.verdict()
    assert (verdict.reward, len(verdict.forged) > 10) == (0.0, True)


@pytest.mark.long
def test_a_row_becomes_a_task_of_its_image(engine: str, worktree: Path) -> None:
    name = engine.partition(":")[0]
    checkout = issue_rows.write_checkout(worktree / "checkout")
    with container_image.image_of_this_machine(name, worktree, checkout) as image:
        row = issue_rows.row_of(checkout, image_name=image)
        rows = [*read_issue_rows(issue_rows.written(worktree, row))]
        tasks = worktree / "tasks"
        (task,) = make_issue_tasks(rows, {}, tasks, choose_sandbox(engine), restorations=0)
        assert task.image == image
        assert "tests/test_spans.py::test_hours[0]" in task.exam.fail_to_pass
        assert f"FROM {image}\n" in (task.folder / "environment" / "Dockerfile").read_text()
        rewards = verify_task(task, choose_sandbox(engine))
        assert (rewards.deleted, rewards.runs) == (0.0, (1.0,))
        with TaskWorkspace(task, choose_sandbox(engine)) as workspace:
            call = ToolCall("call_0", "Bash", json.dumps({"command": "ls -A /testbed; ls"}))
            assert workspace.tools("claude_code").call(call).text == "spans.py"
        with pytest.raises(
            EnvironmentTaskError, match=rf"{task.name} runs in the image {image}; .*podman or docker"
        ):
            TaskWorkspace(task, PlainProcess())


def test_what_is_missing_is_said_in_one_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = engine.partition(":")[0]
    with pytest.raises(EnvironmentTaskError, match=rf"{name} has no image localhost/none:1"):
        ContainerSandbox(name, "localhost/none:1")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(EnvironmentTaskError, match=f"{name} is not installed"):
        ContainerSandbox(name, "localhost/none:2")
