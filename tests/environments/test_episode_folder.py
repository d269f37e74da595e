"""Episodes are written as soon as they are finished, and a run that was stopped goes on with the others."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import orchard
import pytest

from tracemill.environments.episodes import episode_folder
from tracemill.environments.episodes import run_episode as running
from tracemill.environments.episodes.episode_folder import EpisodeFolder, run_key
from tracemill.environments.episodes.run_episode import Episode, Policy, run_episodes, sample_numbers
from tracemill.environments.episodes.workspace import EpisodeJudgement
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Difficulty, Origin, Task
from tracemill.environments.tools.tool_session import HarnessName
from tracemill.environments.verdict.judge import BlankTests, TaskTests, Verdict
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import Message, ToolSpec


def task_named(name: str, digest: str = "d") -> Task:
    """A task that nobody runs."""
    none = Path("nowhere")
    tests, blank = ("t.py::one", "t.py::two"), BlankTests(none, (), {}, ())
    exam = TaskTests(none, none, ("t.py",), tests, (), (), digest, 0.0, blank)
    size = Difficulty("function", 1, 1, 3, 2)
    return Task(none, name, Origin("it"), {"detailed": "Go."}, exam, (), (), ("it.py::one",), size)


def episode_of(
    task: Task,
    number: int = 0,
    said: str = "Done.",
    reward: float = 1.0,
    harness: HarnessName = "claude_code",
) -> Episode:
    found = HackFinding("opens the network", "call 1, Bash", "suspicious")
    judgement = EpisodeJudgement(Verdict(reward, ("t.py::one",), ()), (found,))
    messages = (Message("system", "s"), Message("user", "u"), Message("assistant", said))
    return Episode(task, harness, number, "m", (), messages, judgement, 1, 0.1)


def outcomes(folder: Path) -> list[dict[str, object]]:
    lines = folder.with_name(f"{folder.name}-outcomes.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("harness", ["claude_code", "openhands"])
def test_an_episode_is_finished_where_its_outcome_and_its_session_are_there(
    tmp_path: Path, harness: HarnessName
) -> None:
    task, folder = task_named("one"), EpisodeFolder(tmp_path / "episodes")
    keys = [run_key(task, number, policy="p", turns=50) for number in range(3)]
    planned = dict.fromkeys(keys, task)
    assert folder.finished(planned) == {}
    for number, key in enumerate(keys[:2]):
        folder.add(episode_of(task, number, reward=1 / 3, harness=harness), key)
    found = folder.finished(planned)
    assert [*found] == keys[:2]
    kept = found[keys[1]]
    assert (kept.task, kept.harness, kept.model, kept.reward) == (task, harness, "m", 1 / 3)
    assert (kept.hacked, kept.malformed, kept.path.stem) == (False, 1, kept.session)
    assert len([*folder.path.iterdir()]) == 2
    kept.path.unlink()
    assert [*folder.finished(planned)] == keys[:1]
    folder.add(episode_of(task, 1, "Done at last.", harness=harness), keys[1])
    assert [row["run"] for row in outcomes(folder.path)] == keys[:2]
    assert [row["resolved"] for row in outcomes(folder.path)] == [False, True]


def test_outcomes_hold_what_is_suspicious(tmp_path: Path) -> None:
    EpisodeFolder(tmp_path / "episodes").add(episode_of(task_named("one")))
    [row] = outcomes(tmp_path / "episodes")
    assert (row["reward"], row["hack"]) == (1.0, False)
    assert row["suspicious"] == ["opens the network (call 1, Bash)"]


def test_other_arguments_and_other_tests_are_another_run() -> None:
    one, changed = task_named("one"), task_named("one", "other tests")
    same = run_key(one, 0, policy="p", turns=50)
    assert same == run_key(one, 0, turns=50, policy="p")
    others = [
        run_key(one, 1, policy="p", turns=50),
        run_key(one, 0, policy="q", turns=50),
        run_key(one, 0, policy="p", turns=51),
        run_key(changed, 0, policy="p", turns=50),
    ]
    assert len({same, *others}) == 5


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing stops in the middle of the outcomes, then in the middle of the session."""
    task, folder = task_named("one"), EpisodeFolder(tmp_path / "episodes")
    folder.add(episode_of(task, 0), "a")
    whole, written = episode_folder._write_lines, []

    def stops(path: Path, lines: Sequence[str]) -> None:
        written.append(path)
        if len(written) < stop_at:
            whole(path, lines)
            return
        path.write_text('{"session": "half')
        raise KeyboardInterrupt

    monkeypatch.setattr(episode_folder, "_write_lines", stops)
    for stop_at in (1, 2):
        written.clear()
        with pytest.raises(KeyboardInterrupt):
            folder.add(episode_of(task, 1), "b")
        assert [*folder.finished({"a": task, "b": task})] == ["a"]
        assert len([*folder.path.iterdir()]) == 1
        assert len(outcomes(folder.path)) == stop_at
    monkeypatch.undo()
    folder.add(episode_of(task, 1), "b")
    assert [row["run"] for row in outcomes(folder.path)] == ["a", "b"]


def test_threads_add_to_a_folder_at_once(tmp_path: Path) -> None:
    task, folder = task_named("one"), tmp_path / "episodes"
    threads = [
        threading.Thread(target=lambda n=n: EpisodeFolder(folder).add(episode_of(task, n), f"{n}"))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(EpisodeFolder(folder).finished({f"{n}": task for n in range(12)})) == 12


def test_a_folder_that_cannot_hold_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "episodes").write_text("")
    with pytest.raises(EnvironmentTaskError, match="cannot hold sessions"):
        EpisodeFolder(tmp_path / "episodes")


def test_outcomes_of_the_working_folder_have_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    EpisodeFolder(Path()).add(episode_of(task_named("one")))
    assert (tmp_path / "here-outcomes.jsonl").exists()


def no_sandbox() -> Sandbox:
    """No sandbox, for episodes that are never run."""
    return None  # type: ignore[return-value]


def fake_episodes(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """Let an episode be some turns of its policy, without a sandbox."""

    def run(task: Task, policy: Policy, sandbox: Sandbox, *, number: int, **more: object) -> Episode:
        for _ in range(turns):
            policy([], [])
        return episode_of(task, number)

    monkeypatch.setattr(running, "run_episode", run)


def test_an_episode_is_told_before_those_that_began_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_episodes(monkeypatch, 1)
    tasks, told, second = [task_named("slow"), task_named("fast")], [], threading.Event()

    def make(task: Task) -> Policy:
        def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
            if task.name == "slow":
                assert second.wait(10)
            return Message("assistant", "Done.")

        return answer

    def finished(episode: Episode) -> None:
        told.append(episode.task.name)
        second.set()

    episodes = [*run_episodes(tasks, make, no_sandbox, at_once=2, finished=finished)]
    assert [episode.task.name for episode in episodes] == ["slow", "fast"]
    assert told == ["fast", "slow"]


def test_samples_are_numbered_by_task() -> None:
    one, two = task_named("one"), task_named("two")
    assert sample_numbers([one, one, two, one, two]) == [0, 1, 0, 2, 1]


def test_an_interrupt_ends_episodes_at_their_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_episodes(monkeypatch, 1_000)
    turns = dict[str, int]()

    def make(task: Task) -> Policy:
        def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
            turns[task.name] = turns.get(task.name, 0) + 1
            time.sleep(0 if task.name == "quick" else 0.05)
            return Message("assistant", "Done.")

        return answer

    tasks = [task_named(name) for name in ("quick", "slow", "never")]
    told: list[str] = []
    episodes = run_episodes(
        tasks, make, no_sandbox, finished=lambda each: told.append(each.task.name), at_once=1
    )
    assert next(episodes).task.name == "quick"
    while not turns.get("slow"):
        time.sleep(0.01)
    episodes.close()
    assert (told, "never" in turns) == (["quick"], False)
    assert turns["slow"] < 100


def test_a_policy_that_fails_keeps_what_the_others_did(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_episodes(monkeypatch, 3)
    told: list[str] = []

    def make(task: Task) -> Policy:
        def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
            time.sleep(0.05)
            if task.name == "bad":
                raise EnvironmentTaskError("it fails")
            return Message("assistant", "Done.")

        return answer

    tasks = [task_named("bad"), task_named("good")]
    with pytest.raises(EnvironmentTaskError, match="it fails"):
        [*run_episodes(tasks, make, no_sandbox, finished=lambda each: told.append(each.task.name), at_once=2)]
    assert told == ["good"]


WAITING = """
import json, pathlib, time
from tracemill.records.message import Message, ToolCall

def policy(task):
    def answer(messages, tools):
        if task.name == "orchard-001" or pathlib.Path("go").exists():
            return Message("assistant", "Done.")
        time.sleep(0.1)
        return Message("assistant", "", (ToolCall("call_x", "Bash", json.dumps({"command": "true"})),))
    return answer
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_was_stopped_goes_on_with_what_is_missing(
    orchard_tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    for task in orchard_tasks[:2]:
        orchard.copy_task(task, tmp_path / "tasks")
    (tmp_path / "waiting.py").write_text(WAITING)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    arguments = ["env", "run", "tasks", "--policy", "waiting:policy", "--turns", "9999", "--weigh"]
    arguments += ["--steps", "steps.jsonl"]
    command = [str(Path(sys.executable).with_name("tracemill")), *arguments, "--at-once", "2"]
    started = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
    )
    assert started.stdout is not None
    assert started.stdout.readline().startswith("orchard-001  reward 0.00")
    started.send_signal(sent)
    started.communicate(timeout=60)
    assert started.returncode == (-9 if sent == signal.SIGKILL else 130)
    [before] = outcomes(tmp_path / "episodes")
    assert [each.stem for each in (tmp_path / "episodes").iterdir()] == [before["session"]]
    assert not (tmp_path / "steps.jsonl").exists()
    (tmp_path / "go").touch()
    for _ in range(2):
        ended = orchard.env(*arguments, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        lines = ended.stdout.splitlines()
        assert "episodes 2, solved 0, hacks 0, malformed calls 0" in lines
        assert lines[-2:] == [
            "single steps 2 in steps.jsonl",
            "sample weights for 0 of 2 tasks, 2 runs; 0 tasks solved in some runs only",
        ]
        kept, rows = int(lines[0][0]), outcomes(tmp_path / "episodes")
        assert lines[0] == f"{kept} of 2 episodes are in episodes already; another --out makes new ones"
        assert sum("reward" in line for line in lines) == 2 - kept
        assert (rows[0], len(rows), len([*(tmp_path / "episodes").iterdir()])) == (before, 2, 2)
    assert kept == 2
    for task in orchard_tasks[:2]:
        settings = tomllib.loads((tmp_path / "tasks" / task.name / "task.toml").read_text())
        assert settings["metadata"]["tracemill"]["runs"]["unknown"]["attempts"] == 1
