"""`tracemill train`: real trainings of a tiny model on the processor, cut off, taken up, refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model

from records.errors import TrainingError
from train.child import check_places, finished, run_training, unfinished
from train.job import REPORT, Job, TrainingRelease
from train.settings import TrainingSettings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"))
    return TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path, simulated="none"
    )


def job(release: TrainingRelease, model: Path, out: Path, **given: Any) -> Job:
    base = {"max_steps": 2, "batch": 2, "accumulate": 1, "device": "cpu", "gradient_checkpointing": False}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    return Job(release=release, settings=settings, tracemill_version="0")


def losses(report: dict[str, Any]) -> list[float]:
    return [entry["loss"] for entry in report["losses"]]


def nothing_in(folder: Path) -> bool:
    return not any(path.is_file() for path in folder.rglob("*"))


@pytest.mark.slow
def test_a_release_becomes_a_checkpoint_that_loads(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    said: list[dict[str, Any]] = []
    asked = job(release, tiny, tmp_path / "out", learning_rate=1e-2, max_steps=4)
    made = run_training(asked, said.append)
    assert made.created
    assert [entry["step"] for entry in said if "loss" in entry] == [1, 2, 3, 4]
    assert made.path == tmp_path / "out" / "views" / release.version
    assert [path.name for path in made.path.parent.iterdir()] == [release.version]
    report = json.loads((made.path / REPORT).read_text())
    assert report["rows"] == {"train": {"used": 8, "cut": 0, "dropped": {}}}
    assert (report["steps"], report["release"]["digest"]) == (4, release.digest)
    assert losses(report)[0] == pytest.approx(0.6931, abs=1e-3)
    assert losses(report)[-1] < 0.67
    assert {"torch", "trl", "transformers"} < set(report["versions"])
    before = AutoModelForCausalLM.from_pretrained(tiny).state_dict()
    after = AutoModelForCausalLM.from_pretrained(made.path).state_dict()
    assert any(not (before[name] == weights).all() for name, weights in after.items())
    assert AutoTokenizer.from_pretrained(made.path).chat_template
    again = run_training(asked, said.append)
    assert (again.created, again.report) == (False, report)
    with pytest.raises(TrainingError, match="holds something else"):
        finished(job(release, tiny, tmp_path / "out", max_steps=3))


START = """
import sys
from train.child import run_training
from train.job import Job
run_training(Job.model_validate_json(sys.argv[1]), lambda said: print(said, flush=True))
"""


def start(asked: Job) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", START, asked.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def until_saved(asked: Job, step: int) -> None:
    marker = asked.partial / "checkpoints" / f"checkpoint-{step}" / "saved.json"
    deadline = time.monotonic() + 120
    while not marker.exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_training_that_was_cut_off_goes_on_and_ends_as_if_it_had_not_been(
    how: signal.Signals, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    given = {"learning_rate": 1e-3, "max_steps": 60, "save_steps": 2}
    whole = run_training(job(release, tiny, tmp_path / "whole", **given), lambda said: None)
    asked = job(release, tiny, tmp_path / "cut", **given)
    with start(asked) as first:
        until_saved(asked, 4)
        os.kill(first.pid, how)
        first.stdout.read()  # type: ignore[union-attr]
    assert first.returncode != 0
    assert not asked.target.exists()
    assert unfinished(asked)
    (asked.partial / "checkpoints" / "checkpoint-59").mkdir()  # as one that was cut off while it was written
    made = run_training(asked, lambda said: None)
    assert 4 <= made.report["resumed_at_step"] < 59
    assert losses(made.report) == pytest.approx(losses(whole.report), abs=1e-6)
    assert not unfinished(asked)
    assert [path.name for path in made.path.parent.iterdir()] == [release.version]


def broken_tokenizer(tiny: Path, folder: Path) -> Path:
    shutil.copytree(tiny, folder)
    (folder / "chat_template.jinja").unlink()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_length": 12}, "none of 8 rows fits max_length = 12; wanted more than that: the shortest row"),
        ({"device": "cuda"}, "sees no GPU"),
        ({"template": False}, "has no chat template; wanted one that renders messages and tool calls"),
    ],
)
def test_what_torch_alone_can_tell_is_one_line_and_leaves_nothing(
    given: dict[str, Any], said: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    if "template" in given:
        tiny, given = broken_tokenizer(tiny, tmp_path / "model"), {}
    with pytest.raises(TrainingError, match=said) as caught:
        run_training(job(release, tiny, tmp_path / "out", **given), lambda _: None)
    assert "\n" not in str(caught.value)
    assert nothing_in(tmp_path / "out")


def test_a_missing_model_or_template_is_told_without_torch(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="holds no model; wanted a folder with config"):
        check_places(TrainingSettings(model=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TrainingError, match="a Jinja file as training"):
        check_places(TrainingSettings(model=str(tmp_path), chat_template=tmp_path / "none.jinja"))
