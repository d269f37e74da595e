"""`tracemill eval-model --world`: the share of a world's tasks that a model solves."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from training_releases import tiny_model

from benchmarks.teaching.worlds.registry import WORLDS
from tracemill.flows.training.model_evaluation import PlaySettings, evaluation_table_rows
from tracemill.records.errors import ConfigError, TrainingError
from tracemill.train.played_worlds import PlayRequest
from tracemill.train.training_settings import TrainingSettings

Call = Callable[..., CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
REPAIR = "benchmarks.teaching.worlds.repair:RepairEnvironment"


def test_a_range_of_tasks_is_read_and_others_are_refused() -> None:
    play = PlaySettings.of("a:B", "5:25", 0.0, 16, 40)
    assert (play.first, play.tasks) == (5, 20)
    for wrong in ("100", "5:5", "9:3", "a:b", "-1:3"):
        with pytest.raises(ConfigError, match="is no range of tasks; expected FIRST:END"):
            PlaySettings.of("a:B", wrong, 0.0, 16, 40)


def test_the_table_says_what_a_model_solves() -> None:
    found = {"tasks": 20, "success_interval": (0.3, 0.7), "cut": 0, "malformed": 0}
    first = {**found, "success": 0.5, "reward": 0.5, "calls": 9}
    second = {**found, "success": 0.25, "reward": 0.4, "calls": 0, "cut": 3, "malformed": 2}
    second |= {"gain": -0.25, "gain_interval": (-0.4, -0.1)}
    played = {
        "world": "a:B",
        "first": 5,
        "tasks": 20,
        "temperature": 0.0,
        "models": {"x": first, "y": second},
    }
    assert evaluation_table_rows({"played": played}) == [
        ("world", "a:B, tasks 5 to 24, greedy"),
        ("x", "solves 50.0% of 20 tasks [30.0%, 70.0%]"),
        ("y", "solves 25.0% of 20 tasks [30.0%, 70.0%]"),
        ("", "mean reward 0.400"),
        ("", "it called no tool"),
        ("", "3 episodes ended at max_length"),
        ("", "2 actions could not be read"),
        ("", "-25.0 points beside the first model [-40.0%, -10.0%]"),
    ]


@pytest.fixture
def path_of_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    places = (str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))


@pytest.mark.slow
@pytest.mark.usefixtures("path_of_worlds")
def test_success_is_the_share_of_tasks_of_reward_1(console: Call, tmp_path: Path) -> None:
    """Two students with weights drawn at random, in a world that is the same to all."""
    from benchmarks.teaching.student import SMALL, make_model, make_tokenizer

    tokenizer = make_tokenizer(WORLDS["repair"])
    models = [tmp_path / name for name in ("one", "two")]
    for seed, model in enumerate(models):
        tokenizer.save_pretrained(model)
        make_model(tokenizer, SMALL, seed).save_pretrained(model)
    flags = ("--workspace", tmp_path / "w", "--world", "third_world:ThirdWorld", "--tasks", "4:24")
    flags = (*flags, "--new-tokens", "5", "--turns", "2", "--temperature", "1", "--device", "cpu", "--json")
    done = console("eval-model", *models, *flags)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert list(found) == ["played"]  # no release was asked for
    first, second = (found["played"]["models"][str(model)] for model in models)
    assert (first["tasks"], first["success"]) == (20, 0.3)  # 6, 9, ... 21
    assert first["reward"] == pytest.approx((6 + 14 * 0.25) / 20)
    low, high = first["success_interval"]
    assert 0.05 <= low < 0.3 < high <= 0.6
    assert (second["gain"], second["gain_interval"]) == (0.0, [0.0, 0.0])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("path_of_worlds")
def test_success_is_what_the_teaching_benchmark_plays(console: Call, tmp_path: Path) -> None:
    """Greedy, as the benchmark's own loop plays the same student, which has practised a little."""
    from benchmarks.teaching.student import SMALL, Student, practise

    student = practise(WORLDS["repair"], tmp_path / "student", SMALL, 0, steps=200)
    tasks = range(5_000_000, 5_000_048)
    played = Student(student).play(WORLDS["repair"], tasks, 0, temperature=0)
    expected = sum(session.reward for session in played) / len(played)
    assert 0 < expected < 1
    flags = ("--workspace", tmp_path / "w", "--world", REPAIR, "--tasks", "5000000:5000048")
    flags = (*flags, "--new-tokens", "40", "--device", "cpu", "--json")
    done = console("eval-model", student, *flags)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["played"]["models"][str(student)]
    assert found["tasks"] == 48
    assert found["success"] == expected
    assert found["reward"] == expected
    assert found["calls"] == sum(bool(turn.action.tool) for each in played for turn in each.turns)
    assert (found["cut"], found["malformed"]) == (0, 0)
    low, high = found["success_interval"]
    assert low < expected < high


@pytest.mark.slow
def test_what_cannot_be_played_is_refused(tmp_path: Path) -> None:
    from tracemill.train.trl.play import play

    model = tiny_model(tmp_path / "tiny")
    for world, said in (
        ("no_such_module:World", "the world no_such_module:World cannot be imported"),
        ("json:JSONDecoder", "'json:JSONDecoder' is no world; expected module:class"),
        (REPAIR, "cannot be read: its chat template is none that TRL knows"),
    ):
        settings = TrainingSettings.model_validate({"model": str(model), "device": "cpu"})
        question = PlayRequest(
            world=world,
            settings=settings,
            models={"it": str(model)},
            first=0,
            tasks=2,
            temperature=0,
            turns=2,
            new_tokens=40,
        )
        with pytest.raises(TrainingError, match=re.escape(said)):
            play(question)
