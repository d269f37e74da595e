"""Episodes side by side, some of which do their worst: the others and the host go on."""

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import orchard
import psutil
import pytest

from tracemill.environments.episodes.policies import oracle
from tracemill.environments.episodes.run_episode import Policy, run_episodes
from tracemill.environments.task import Task
from tracemill.records.message import Message, ToolCall, ToolSpec

WORST = {
    "fork bomb": (":(){ :|:& };:; sleep 30", 4_000),
    "a file of 10 GB": ("dd if=/dev/zero of=large bs=1M count=10240; ls -s large", 40_000),
    "many files of 60 MB": ("for n in $(seq 200); do dd if=/dev/zero of=$n bs=1M count=60; done", 40_000),
    "endless loop": ("while :; do :; done", 4_000),
    "killed sandbox": ("sleep 77", 60_000),
}
HONEST = 3


def worst(task: Task, command: str, timeout: int) -> Policy:
    """A policy that does its worst and then restores the original."""
    restore = oracle(task)

    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        if len(messages) == 2:
            given = json.dumps({"command": command, "timeout": timeout})
            return Message("assistant", "", (ToolCall("call_worst", "Bash", given),))
        return restore([*messages[:2], *messages[4:]], tools)

    return answer


def kill_sandbox() -> None:
    """Kill the sandbox that sleeps, from outside, once it does."""
    for _ in range(600):
        for child in psutil.Process().children(recursive=True):
            try:
                asleep = any(each.cmdline() == ["sleep", "77"] for each in child.children(recursive=True))
                if child.name() == "bwrap" and asleep:
                    child.kill()
                    return
            except psutil.Error:
                continue
        time.sleep(0.1)


@pytest.mark.slow
def test_what_one_episode_does_leaves_the_others_and_the_host_alone(
    orchard_tasks: list[Task], worktree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(worktree))
    task, free = orchard_tasks[0], shutil.disk_usage(worktree).free
    plans = [*WORST.items(), *[("honest", ("echo $((6 * 7)) > /tmp/mine; cat /tmp/mine", 60_000))] * HONEST]
    waiting = iter(plans)
    lock = threading.Lock()

    def make(task: Task) -> Policy:
        with lock:
            _, (command, timeout) = next(waiting)
        return worst(task, command, timeout)

    killer = threading.Thread(target=kill_sandbox, daemon=True)
    killer.start()
    episodes = [*run_episodes([task] * len(plans), make, orchard.sandbox, at_once=8)]
    killer.join(timeout=5)
    assert len(episodes) == 8
    said = {}
    for episode in episodes:
        call = next(call for message in episode.messages for call in message.tool_calls)
        command = (call.parsed() or {})["command"]
        name = next(name for name, (planned, _) in plans if planned == command)
        result = next(message for message in episode.messages if message.role == "tool")
        said.setdefault(name, []).append((result.is_error, result.content, episode.reward))
    assert said["honest"] == [(False, "42", 1.0)] * HONEST
    assert [reward for name in WORST for _, _, reward in said[name]] == [1.0] * len(WORST)
    (killed,) = said["killed sandbox"]
    assert killed[0] is True
    assert killed[1] in ("The call was stopped: exit code -9", "The call was stopped: exit code 137")
    (large,) = said["a file of 10 GB"]
    assert "File size limit exceeded" in large[1]
    (many,) = said["many files of 60 MB"]
    assert many[:2] == (True, "The call was stopped: disk")
    assert said["endless loop"][0][0] is True
    left = [path.name for path in worktree.iterdir() if not path.name.startswith("tracemill-packages-")]
    assert left == []
    assert free - shutil.disk_usage(worktree).free < 200_000_000
    assert [child for child in psutil.Process().children(recursive=True) if child.name() == "bwrap"] == []
