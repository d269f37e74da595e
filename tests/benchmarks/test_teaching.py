"""The worlds of the teaching benchmark: what is right solves every task, what is wrong does not."""

import inspect
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tracemill as tm
from benchmarks.teaching.formats import actions_of_messages, write_sessions
from benchmarks.teaching.outcome_filter import weigh_solved
from benchmarks.teaching.policies import REGIMES, Session, Turn, replay, weak_session
from benchmarks.teaching.report import difference, read_results, write_report
from benchmarks.teaching.teacher_server import teacher_server
from benchmarks.teaching.worlds.registry import HELD_OUT, WORLDS
from benchmarks.teaching.worlds.world import Action, World, act, tool_names
from tracemill.records.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
TASKS = range(150)
EVERY = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def play(world: World, task: int, flawed: bool) -> float:
    env = world.environment()
    env.reset(task=task)
    for _ in range(world.turns):
        flaw = world.flaw(env) if flawed else None
        act(env, flaw or world.right(env)[0])
        if env.done:
            break
    return env.get_reward()


@EVERY
def test_the_expert_solves_every_task_and_the_flaws_fail_most(world: World) -> None:
    assert [play(world, task, False) for task in TASKS] == [1.0] * len(TASKS)
    assert sum(play(world, task, True) for task in TASKS) < 0.5 * len(TASKS)


@EVERY
def test_what_is_wrong_is_never_right(world: World) -> None:
    seen = Counter[str]()
    for task in TASKS:
        actions: list[Action] = []
        for turn in weak_session(world, task).turns:
            env = replay(world, task, actions)
            right = world.right(env)
            wrong = [*world.slips(env), world.common_error(env)]
            wrong += [flaw] if (flaw := world.flaw(env)) else []
            assert right
            assert not {*right} & {*wrong}, (task, actions)
            seen["flawed" if flaw else "plain"] += 1
            actions.append(turn.action)
    assert min(seen["flawed"], seen["plain"]) > 100


@EVERY
def test_an_environment_has_the_shape_of_trl(world: World) -> None:
    env = world.environment()
    assert isinstance(env.reset(task=7, prompt="a column of the row"), str)
    assert env.get_reward() == 0.0
    names = tool_names(env)
    assert names
    for name in names:
        tool = getattr(env, name)
        hints = inspect.signature(tool)
        assert hints.return_annotation is str
        assert all(each.annotation is str for each in hints.parameters.values())
        assert "Args:" in (tool.__doc__ or "")
        assert all(f"{each}:" in tool.__doc__ for each in hints.parameters)


@EVERY
def test_sessions_come_back_through_our_ingesters(world: World, tmp_path: Path) -> None:
    sessions = [weak_session(world, task) for task in range(20)]
    folder = write_sessions(world, sessions, tmp_path / "sessions")
    ingester: Any = tm.SWEGymIngester() if world.session_format == "swe_gym" else tm.ClaudeCodeIngester()
    traces: list[Trace] = list(ingester.ingest(folder))
    by_text = {trace.contexts[0].messages[0].content: trace for trace in traces}
    assert len(by_text) == len(traces) == 20
    for session in sessions:
        read = by_text[session.text].contexts[0]
        text, actions = actions_of_messages([message.to_wire() for message in read.messages])
        assert (text, actions) == (session.text, [turn.action for turn in session.turns])
        assert [step.index for step in read.steps] == list(range(len(session.turns)))


@EVERY
def test_teachers_answer_what_the_policy_does(world: World) -> None:
    session = weak_session(world, 3)
    messages = [{"role": "user", "content": session.text}]
    with teacher_server(world, "shared_50") as url:
        for teacher in REGIMES["shared_50"]:
            body = json.dumps({"model": teacher.name, "messages": messages}).encode()
            with urllib.request.urlopen(f"{url}/chat/completions", body, timeout=10) as reply:
                said = json.load(reply)
            _, [action] = actions_of_messages([messages[0], said["choices"][0]["message"]])
            assert action == teacher.action(world, replay(world, 3, []), (world.name, 3, 0))
            assert said["usage"]["prompt_tokens"] > 0


def agreed_wrong(world: World, regime: str) -> float:
    """The share of actions that two of three teachers agree on and that are wrong."""
    wrong = agreed = 0
    for task in range(120):
        session: Session = weak_session(world, task)
        actions: list[Action] = []
        for turn in session.turns:
            env, key = replay(world, task, actions), (world.name, task, len(actions))
            given = Counter(teacher.action(world, env, key) for teacher in REGIMES[regime])
            action, votes = given.most_common(1)[0]
            if votes >= 2:
                agreed += 1
                wrong += action not in world.right(env)
            actions.append(turn.action)
    return wrong / agreed


@EVERY
def test_regimes_share_as_many_errors_as_they_say(world: World) -> None:
    wrong = {regime: agreed_wrong(world, regime) for regime in REGIMES}
    assert wrong["independent"] < 0.04
    assert 0.15 < wrong["common_20"] < 0.27
    assert wrong["independent"] + 0.04 < wrong["shared_25"] < wrong["shared_50"] < wrong["one_good"]


def test_the_last_world_chooses_nothing() -> None:
    assert [*WORLDS] == ["repair", "query", HELD_OUT]


def test_a_missing_package_names_the_extra() -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['run']\n"
    code += "from benchmarks.teaching.run import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "benchmarks.teaching: torch is not installed; expected: the extra `train`; run `make teaching`\n"
    )


def result(arm: str, seed: int, solved: str, **more: Any) -> dict[str, Any]:
    """A stored result of two plays a task."""
    success = sum(map(int, solved)) / (2 * len(solved))
    place = {"world": "repair", "size": "small", "regime": "independent", "arm": arm, "seed": seed}
    figures = {"success": success, "solved": solved, "samples": 2, "margin": 1.0, "rows": 10, "rate": 1e-3}
    costs = {"usd": 1.5, "calls": 3, "seconds": 9.0, "warnings": [], "source": "abc"}
    return {**place, **figures, **costs, **more}


def test_the_report_compares_the_same_tasks_of_the_same_students(tmp_path: Path) -> None:
    every = [
        result("start", 0, "0011"),
        result("start", 1, "0000"),
        result("default", 0, "2211"),
        result("default", 1, "2200", warnings=["they may share its errors"]),
        result("default", 2, "2222"),
        result("truth", 0, "2222"),
        result("truth", 1, "2222", source="def"),
    ]
    for each in every:
        path = tmp_path / "results/repair/small/independent" / each["arm"] / f"seed{each['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each))
    told = write_report(tmp_path)
    found = read_results(tmp_path)["repair", "small", "independent"]
    mean, low, high = difference(found["default"], found["start"]) or (0, 0, 0)
    assert (mean, low < mean < high) == (0.5, True)
    assert difference(found["truth"], found["start"], draws=100)[0] == 0.875  # pyright: ignore
    assert difference({}, found["start"]) is None
    assert "- the default has 57% of the gain of `truth`\n" in told
    assert "- the card warns of shared errors in 1 of 3 releases\n" in told
    assert "| `start`: the student, untrained | 2 | 10 | 0.125 | - | +0.500 [" in told
    assert told.endswith("7 results, by digest of the source that made them: 6 by `abc`, 1 by `def`.\n")
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert sorted(map(json.loads, lines), key=str) == sorted(every, key=str)
    assert (tmp_path / "success.svg").read_text().startswith("<svg")


def test_a_session_that_ends_without_a_word_gives_weights_for_its_other_steps(tmp_path: Path) -> None:
    world = WORLDS["query"]
    sessions = [weak_session(world, task) for task in range(40)]
    silent = [
        replace(each, turns=[*each.turns[:-1], Turn(Action.say(""), "", False)]) for each in sessions[:5]
    ]
    rows = weigh_solved(world, [*silent, *sessions[5:]], tmp_path)
    solved = [each for each in [*silent, *sessions[5:]] if each.reward]
    words = sum(len(each.turns) for each in solved) - sum(each in solved for each in silent)
    assert len(rows) == words > 20
    assert all(row["completion"][0]["content"] or row["completion"][0]["tool_calls"] for row in rows)


@pytest.mark.slow
@pytest.mark.long
def test_a_student_is_taught_by_the_default_release(tmp_path: Path) -> None:
    """One student, few steps: the commands run unchanged, and what a run stored is not done again."""
    code = (
        "from pathlib import Path; import benchmarks.teaching.experiment as e, json\n"
        "e.SESSIONS, e.TEST_TASKS, e.PROBES = 60, 40, 40\n"
        "e.SHARED = {**e.SHARED, 'max_steps': 20}\n"
        f"out, cell = Path({str(tmp_path)!r}), e.Cell('query', 0)\n"
        "found = {arm: e.run_arm(cell, arm, out) for arm in ('start', 'default', 'truth')}\n"
        "assert e.run_arm(cell, 'default', out) == found['default']\n"
        "figures = e.label_figures(e.prepare(cell, out))\n"
        "print(json.dumps({'found': found, 'figures': figures}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    found, figures = told["found"], told["figures"]
    assert figures["right"] > 0.9
    assert figures["right_by_weight"] >= figures["right"] - 0.01
    assert found["default"]["margin"] > found["start"]["margin"] + 1
    assert found["default"]["rows"] == figures["rows"] >= found["truth"]["rows"] > 100
    digits = found["default"]["solved"]
    assert (len(digits), set(digits) <= set("012")) == (40, True)
    assert sum(map(int, digits)) / 80 == found["default"]["success"]
    assert found["default"]["source"] == found["start"]["source"] != ""
    assert found["default"]["usd"] > 0
