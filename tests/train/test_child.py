"""`tracemill train`: real trainings of a tiny model on the processor, cut off, taken up, refused."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model, train_here, weigh

from tracemill.records.errors import TrainingError
from tracemill.train.start_child import (
    check_places,
    finished_training,
    has_unfinished_training,
    run_training,
)
from tracemill.train.training_job import REPORT, TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"))
    weigh(made.path, lambda step_id: 1 / (1 + int(step_id.partition(":")[0].rpartition("-")[2])))
    return TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path, simulated="none"
    )


def job(release: TrainingRelease, model: Path, out: Path, **given: Any) -> TrainingJob:
    base = {"max_steps": 2, "batch": 2, "accumulate": 1, "device": "cpu", "gradient_checkpointing": False}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    return TrainingJob(release=release, settings=settings, tracemill_version="0")


def losses(report: dict[str, Any]) -> list[float]:
    return [entry["loss"] for entry in report["losses"]]


def nothing_in(folder: Path) -> bool:
    return not folder.exists()


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
    rows = {"used": 8, "cut": 0, "dropped": {}, "parted": 0, "weight": 2.717857}
    assert report["rows"] == {"train": rows}
    assert f"| digest | {release.digest} |" in (made.path / "README.md").read_text().splitlines()
    assert report["validation"] == []
    assert (report["steps"], report["release"]["digest"]) == (4, release.digest)
    assert losses(report)[0] == pytest.approx(math.log(353), abs=0.5)  # as good as a guess of the tokenizer's
    assert losses(report)[-1] < losses(report)[0] - 0.3
    assert {"torch", "trl", "transformers"} < set(report["versions"])
    before = AutoModelForCausalLM.from_pretrained(tiny).state_dict()
    after = AutoModelForCausalLM.from_pretrained(made.path).state_dict()
    assert any(not (before[name] == weights).all() for name, weights in after.items())
    assert AutoTokenizer.from_pretrained(made.path).chat_template
    again = run_training(asked, said.append)
    assert (again.created, again.report) == (False, report)
    with pytest.raises(TrainingError, match="holds another training"):
        finished_training(job(release, tiny, tmp_path / "out", max_steps=3))


START = """
import sys
from tracemill.train.start_child import run_training
from tracemill.train.training_job import TrainingJob
run_training(TrainingJob.model_validate_json(sys.argv[1]), lambda said: print(said, flush=True))
"""


def start(asked: TrainingJob) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", START, asked.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def until_saved(asked: TrainingJob, step: int) -> None:
    marker = asked.partial / "checkpoints" / f"checkpoint-{step}" / "saved.json"
    deadline = time.monotonic() + 120
    while not marker.exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "method"),
    [
        pytest.param(signal.SIGKILL, "sft", marks=pytest.mark.long),
        (signal.SIGINT, "dpo"),
        pytest.param(signal.SIGKILL, "simpo", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, "kto", marks=pytest.mark.long),
    ],
)
def test_a_training_that_was_cut_off_goes_on_and_ends_as_if_it_had_not_been(
    how: signal.Signals, method: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    import psutil

    given = {"learning_rate": 1e-3, "max_steps": 30, "method": method}
    whole = run_training(job(release, tiny, tmp_path / "whole", **given), lambda said: None)
    asked = job(release, tiny, tmp_path / "cut", save_steps=2, **given)
    with start(asked) as first:
        until_saved(asked, 4)
        [worker] = psutil.Process(first.pid).children()
        worker.suspend()  # or it may be done before the signal is seen
        os.kill(first.pid, how)
        if how == signal.SIGINT:
            assert any("saving" in line for line in first.stdout)  # type: ignore[union-attr]
        worker.resume()
        first.stdout.read()  # type: ignore[union-attr]
    assert first.returncode != 0
    assert not asked.target.exists()
    assert has_unfinished_training(asked)
    (asked.partial / "checkpoints" / "checkpoint-29").mkdir()  # as one that was cut off while it was written
    made = run_training(job(release, tiny, tmp_path / "cut", **given), lambda said: None)
    assert 4 <= made.report["resumed_at_step"] < 29
    assert losses(made.report) == pytest.approx(losses(whole.report), abs=1e-6)
    assert not has_unfinished_training(asked)
    assert [path.name for path in made.path.parent.iterdir()] == [release.version]


def spoilt(tiny: Path, folder: Path, how: str) -> Path:
    """A copy of the model with something wrong."""
    shutil.copytree(tiny, folder)
    weights = folder / "model.safetensors"
    if how == "no template":
        (folder / "chat_template.jinja").unlink()
    elif how == "no weights":
        weights.unlink()
    elif how == "cut weights":
        weights.write_bytes(weights.read_bytes()[:5_000])
    elif how == "no configuration":
        (folder / "config.json").write_text("{}")
    return folder


DIVERGING = {"learning_rate": 1e30, "max_steps": 4}
UNFIT = "none of 8 rows fits max_length = 12; expected more than that: the shortest row"
DIVERGED = r"training diverged: \w+ is nan at step 2; expected finite numbers; lower training\.le"
UNLOADED = r"model .* cannot be loaded \(.*\); expected an id of the Hub or a folder"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "given", "said"),
    [
        ("", {"device": "cuda"}, "sees no GPU"),
        ("", DIVERGING | {"method": "dpo"}, DIVERGED),
        ("", DIVERGING | {"method": "simpo"}, DIVERGED),
        ("no template", {}, "has no chat template; expected one that renders messages and tool calls"),
        ("no configuration", {}, UNLOADED),
        ("no weights", {}, UNLOADED),
        ("no weights", {"method": "simpo"}, UNLOADED),
        ("cut weights", {}, UNLOADED),
        ("", {"bf16": True}, r"^training\.bf16 = true and the training is on the CPU; expected a GPU"),
    ],
)
def test_what_torch_alone_can_tell_is_one_line(
    how: str, given: dict[str, Any], said: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    model = spoilt(tiny, tmp_path / "model", how)
    with pytest.raises(TrainingError, match=said) as caught:
        train_here(job(release, model, tmp_path / "out", **given))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(("given", "said"), [({"max_length": 12}, UNFIT), (DIVERGING, DIVERGED)])
def test_what_the_process_refuses_is_one_line_and_leaves_nothing(
    given: dict[str, Any], said: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=said) as caught:
        run_training(job(release, tiny, tmp_path / "out", **given), lambda _: None)
    assert "\n" not in str(caught.value)
    assert nothing_in(tmp_path / "out")


@pytest.mark.slow
def test_a_release_whose_rows_are_all_held_out_is_refused(tiny: Path, tmp_path: Path) -> None:
    made = released(tmp_path / "releases", rows=2, validation=(0, 1))
    held = TrainingRelease(name="views", version=made.version, digest="0", path=made.path)
    with pytest.raises(TrainingError, match="has no row to train on; expected some in split `train`"):
        train_here(job(held, tiny, tmp_path / "out"))


@pytest.mark.slow
def test_a_training_process_that_the_system_ends_is_one_line(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    import psutil

    def ending(how: signal.Signals, step: int) -> Callable[[dict[str, Any]], None]:
        def told(said: dict[str, Any]) -> None:
            if said.get("step", -1) == step:
                [worker] = [
                    p for p in psutil.Process().children() if "tracemill.train.trl.worker" in p.cmdline()
                ]
                worker.send_signal(how)

        return told

    asked = job(release, tiny, tmp_path / "out", max_steps=200, save_steps=50)
    with pytest.raises(TrainingError) as caught:
        run_training(asked, ending(signal.SIGKILL, 0))
    assert str(caught.value) == (
        "the training process was ended by SIGKILL, as where memory runs out "
        "(a smaller training.max_length, LoRA or batch = 1 takes less)"
    )
    assert nothing_in(tmp_path / "out")
    with pytest.raises(
        TrainingError, match=r"told to stop \(SIGTERM\) at step \d+; the same command resumes"
    ):
        run_training(asked, ending(signal.SIGTERM, 3))
    assert not asked.target.exists()
    assert has_unfinished_training(asked)


def test_a_missing_model_or_template_is_told_without_torch(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="holds no model; expected a folder with config"):
        check_places(TrainingSettings(model=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TrainingError, match="a Jinja file as training"):
        check_places(TrainingSettings(model=str(tmp_path), chat_template=tmp_path / "none.jinja"))
