"""The short form of the comparison of arms: every arm is trained, measured and a line of the table."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import orchard
import pytest

from benchmarks.composer.arms import make_labels
from tracemill.train.training_settings import TrainingSettings

ROOT = Path(__file__).resolve().parents[2]


IN_WORLDS = ROOT / "configs" / "train" / "world_arms.toml"


@pytest.mark.parametrize(
    "path", sorted({*(ROOT / "configs" / "train").rglob("*.toml")} - {IN_WORLDS}), ids=lambda path: path.stem
)
def test_every_configuration_of_arms_is_one_of_the_method(path: Path) -> None:
    config = tomllib.loads(path.read_text())
    assert 1 <= config["votes"] <= len(config["teacher_errors"])
    weights = set()
    for arm in config["arms"]:
        weights.add((arm["alpha_sdpo"], arm["beta_replay"]))
        composer = {**config["training"]["composer"], "tasks": "tasks"}
        composer |= {key: arm[key] for key in ("alpha_sdpo", "beta_replay")}
        given = {**config["training"], "model": "m", "method": "composer", "composer": composer}
        settings = TrainingSettings.model_validate(given)
        assert settings.composer is not None
        assert len(settings.composer.channels_off()) == sum(not arm[key] for key in composer if key in arm)
    assert len(weights) == 4
    base = tomllib.loads((ROOT / "configs" / "train" / "arms.toml").read_text())
    assert path.stem == "arms" or config != base


def test_the_arms_in_worlds_are_those_on_tasks() -> None:
    on_tasks, in_worlds = (
        tomllib.loads(path.read_text()) for path in (IN_WORLDS.with_name("arms.toml"), IN_WORLDS)
    )
    assert in_worlds["arms"] == on_tasks["arms"]
    assert in_worlds["seeds"] == on_tasks["seeds"]
    assert in_worlds["measured"] == sorted(in_worlds["measured"])


def test_a_hint_is_of_the_writer_that_a_configuration_names(tmp_path: Path) -> None:
    """The same failed actions and pairs; what the hinted side is told besides is another text."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in ("arms", "ablations/hints_by_template", "ablations/hints_by_teacher"):
        config = tomllib.loads((ROOT / "configs" / "train" / f"{name}.toml").read_text())
        labels = make_labels(tmp_path / Path(name).name, config, seed=0)
        rows[name] = [json.loads(line) for line in labels.hints.read_text().splitlines()]
        assert len(rows[name]) == config["asked"]
    asked = [
        [{key: row[key] for key in ("step_id", "prompt", "completion")} for row in each]
        for each in rows.values()
    ]
    assert asked[0] == asked[1] == asked[2]
    for agreed, template, teacher in zip(*rows.values(), strict=True):
        told = [
            each["hinted_prompt"][-1]["content"].partition("\n\n")[2] for each in (agreed, template, teacher)
        ]
        action = re.fullmatch(
            r"A better next action is:\nBash sed -i 's/.*/return (.*)/' numbers_of.py", told[0]
        )
        assert action is not None
        assert re.match(r"The command you are about to run fails:\nAssertionError: \w+(\(\d+\))? is", told[1])
        assert action[1] not in told[1]
        assert told[2] == f"The result should be {action[1]}."


@pytest.mark.slow
@pytest.mark.long
def test_every_arm_is_a_line_of_the_table(tmp_path: Path) -> None:
    orchard.sandbox()
    command = [sys.executable, "-m", "benchmarks.composer.arms", ROOT / "configs" / "train" / "arms.toml"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*map(str, command), "--short", "--out", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "seed0").glob("*.json")}
    assert sorted(results) == ["all", "grpo", "grpo+hints", "grpo+replay"]
    assert all(0.1 <= result["start"] <= 0.7 for result in results.values())  # there is something to learn
    assert len({result["start"] for result in results.values()}) == 1
    assert all(result["steps"] == 2 for result in results.values())
    off = {
        name: [key for key, loss in each["losses"].items() if loss is None] for name, each in results.items()
    }
    assert off == {
        "grpo": ["sdpo_kl", "trace_replay_dpo"],
        "grpo+hints": ["trace_replay_dpo"],
        "grpo+replay": ["sdpo_kl"],
        "all": [],
    }
    assert {name: each["teacher_usd"] > 0 for name, each in results.items()} == {
        name: name != "grpo" for name in results
    }
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| grpo",
        "| grpo + hints",
        "| grpo + replay",
        "| all",
    ]
