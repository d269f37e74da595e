"""`tracemill eval-model`: how models rank the pairs that a release holds out."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from held_out_margins import held_out_margins
from training_releases import kept, released, tiny_model

from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.flows.training.model_evaluation import evaluation_table_rows
from tracemill.train.preferences import PreferenceSummary, resample

Call = Callable[..., CompletedProcess[str]]


def test_margins_are_summed_up() -> None:
    assert PreferenceSummary.of([0.5, -0.25, 0.0, 0.75]) == PreferenceSummary(4, 0.5, 0.25)


def test_an_interval_draws_whole_sessions() -> None:
    values = [float(index % 2) for index in range(200)]

    def mean(chosen: Any) -> float:
        return sum(values[index] for index in chosen) / len(chosen)

    lone = resample([str(index) for index in range(200)], mean)
    assert lone is not None
    assert lone == resample([str(index) for index in range(200)], mean)
    # The standard error of a share of a half is .0354 for 200 sessions of a pair, .158 for 10 alike within.
    assert lone[0] == pytest.approx(0.5 - 1.96 * 0.0354, abs=0.015)
    assert lone[1] == pytest.approx(0.5 + 1.96 * 0.0354, abs=0.015)
    values = [float(index < 100) for index in range(200)]
    wide = resample([str(index // 20) for index in range(200)], mean)
    assert wide is not None
    assert wide[0] == pytest.approx(0.2, abs=0.05)
    assert wide[1] == pytest.approx(0.8, abs=0.05)
    assert resample([str(index // 23) for index in range(200)], mean) is None  # nine sessions


def refused(done: CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_bad_input_is_one_line(console: Call, tmp_path: Path) -> None:
    work = tmp_path / "w"
    released(work / "releases")
    model = tmp_path / "model"
    model.mkdir()
    flags = ("--workspace", work, "--release", "views")
    assert "holds no model; expected a folder with config.json or" in refused(
        console("eval-model", model, *flags)
    )
    (model / "config.json").write_text("{}")
    assert "a model is given twice" in refused(console("eval-model", model, model, *flags))
    assert "device" in refused(console("eval-model", model, *flags, "--device", "tpu"))
    said = refused(console("eval-model", model, *flags))
    assert "the release holds out no pair" in said
    assert "raise release.validation or release.test" in said
    assert "holds no release 'other'" in refused(console("eval-model", model, *flags[:3], "other"))


def held_out_release(folder: Path, rows: int) -> Path:
    """Sessions of one pair each; two in three run tests in the place of finishing, by votes every second."""

    def pair(number: int) -> Any:
        source = "teachers" if number % 2 else "hindsight"
        operation = "run_test" if number % 3 else "edit"
        return kept(number, label_source=source, chosen_operation=operation)

    made = write_release(
        ReleaseSpec(name="views", redaction="r1"),
        (pair(number) for number in range(rows + 1)),
        [],
        folder,
        split_of=lambda trace_id: "train" if trace_id == f"openhands-{rows}" else "validation",
    )
    assert isinstance(made, Release)
    return made.path


@pytest.mark.slow  # it needs PyTorch
def test_two_models_are_ranked_on_the_same_pairs(console: Call, tmp_path: Path) -> None:
    release = held_out_release(tmp_path / "w" / "releases", 12)
    first = tiny_model(tmp_path / "first")
    second = other_weights(first, tmp_path / "second")
    done = console("eval-model", first, second, "--workspace", tmp_path / "w", "--release", "views", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["pairs"], found["sessions"], found["left_out"]) == (12, 12, {})
    assert list(found["models"]) == [str(first), str(second)]
    for model in (first, second):
        figures, margins = found["models"][str(model)], held_out_margins(model, release)
        right = [margin > 0 for margin in margins]
        assert figures["rows"] == 12
        assert figures["accuracy"] == sum(right) / 12
        assert figures["margin"] == pytest.approx(sum(margins) / 12, abs=1e-4)
        assert {name: group["rows"] for name, group in figures["by_operation"].items()} == {
            "run_test over finish": 8,
            "edit over finish": 4,
        }
        assert {name: group["rows"] for name, group in figures["by_source"].items()} == {
            "hindsight": 6,
            "teachers": 6,
        }
        low, high = figures["margin_interval"]
        assert low < figures["margin"] < high
    gain = found["models"][str(second)]["gain"]
    accuracies = [found["models"][str(model)]["accuracy"] for model in (first, second)]
    assert gain == pytest.approx(accuracies[1] - accuracies[0])
    rows = evaluation_table_rows(found)
    assert rows[0] == ("held-out pairs", "12, of 12 sessions")
    assert [name for name, _ in rows].count("  edit over finish") == 2
    said = refused(
        console("eval-model", first, "--workspace", tmp_path / "w", "--release", "views", "--max-length", "3")
    )
    assert "none of 12 rows fits max_length = 3; expected more than that: the shortest row has" in said


def other_weights(model: Path, folder: Path) -> Path:
    """The same architecture and tokenizer with weights drawn anew."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    net = AutoModelForCausalLM.from_pretrained(model)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn_like(weight) * 0.2)
    net.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    return folder
