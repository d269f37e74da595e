"""Rows that count more or less: the loss of `sft` against TRL's own, and against one worked out by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model, train_here, weigh

from tracemill.train.start_child import run_training
from tracemill.train.training_job import TrainingJob, TrainingRelease, TrainingResult
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import fit_rows

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 12
"""Of two digits from the tenth on, so that completions are not equally long."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def number_of(step_id: str) -> int:
    return int(step_id.partition(":")[0].rpartition("-")[2])


def weighted(folder: Path, weight: Callable[[int], float | None], **given: Any) -> TrainingRelease:
    made = released(folder, rows=ROWS, **given)
    weigh(made.path, lambda step_id: weight(number_of(step_id)))
    return TrainingRelease(name="views", version=made.version, digest="0", path=made.path)


def trained(
    release: TrainingRelease,
    model: Path,
    out: Path,
    run: Callable[[TrainingJob], TrainingResult] = train_here,
    **given: Any,
) -> dict[str, Any]:
    base = {"batch": 3, "accumulate": 4, "device": "cpu", "gradient_checkpointing": False, "eval_steps": 10}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    job = TrainingJob(release=release, settings=settings, tracemill_version="0")
    return run(job).report


def nll(folder: Path, number: int) -> tuple[float, int]:
    """Negative log-likelihood of a row's completion, and its tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    asked = (
        "<tool>Bash</tool><|system|>You are an agent.<|end|><|user|>Fix the bug.<|end|>"
        '<|assistant|>I look.<call>Bash {"cmd": "ls"}</call><|end|><|tool|>main.py<|end|><|assistant|>'
    )
    said = f'I test.<call>Bash {{"cmd": "pytest test_{number}.py", "timeout": {number}}}</call><|end|>'
    begin = tokenizer(asked, return_tensors="pt")["input_ids"].shape[1]
    ids = tokenizer(asked + said, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        every = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
    told = every.gather(1, ids[0, 1:, None])[begin - 1 :, 0]
    return -float(told.sum()), len(told)


def mean_nll(folder: Path, weights: dict[int, float]) -> float:
    """Over the tokens of the rows, each times its row's weight."""
    found = {number: nll(folder, number) for number in weights}
    total = sum(weights[number] * each for number, (each, _) in found.items())
    return total / sum(weights[number] * tokens for number, (_, tokens) in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 4])
def test_where_all_weights_are_1_the_losses_are_those_of_trl(
    accumulate: int, tiny: Path, tmp_path: Path
) -> None:
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from tracemill.train.trl.weighted_sft import WeightedSFTTrainer

    said = ["a", "a longer answer", "no", "an answer of many more words", "done", "pytest test", "x", "y z"]
    rows = [{"prompt": f"<|user|>{word}", "completion": f"{word}<|end|>", "weight": 1.0} for word in said]
    logged = []
    for make in (SFTTrainer, WeightedSFTTrainer):
        trainer = make(
            model=str(tiny),
            args=SFTConfig(
                output_dir=str(tmp_path / make.__name__),
                per_device_train_batch_size=2,
                per_device_eval_batch_size=3,
                gradient_accumulation_steps=accumulate,
                learning_rate=1e-2,
                num_train_epochs=4,
                logging_steps=1,
                eval_strategy="steps",
                eval_steps=2,
                save_strategy="no",
                use_cpu=True,
                bf16=False,
                report_to="none",
            ),
            train_dataset=Dataset.from_list(rows),
            eval_dataset=Dataset.from_list(rows[:5]),
            processing_class=AutoTokenizer.from_pretrained(tiny),
        )
        trainer.train()
        names = ("loss", "eval_loss", "grad_norm", "eval_mean_token_accuracy")
        logged.append([entry[name] for entry in trainer.state.log_history for name in names if name in entry])
    assert len(logged[0]) == 2 * 16 // accumulate + 2 * (8 // accumulate)
    assert logged[1] == pytest.approx(logged[0], abs=1e-6)
    assert logged[0][-4] != logged[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [{"batch": 10, "accumulate": 1}, {"batch": 3, "accumulate": 4}])
def test_a_step_s_loss_is_the_mean_over_tokens_by_the_weights_of_their_rows(
    batch: dict[str, int], tiny: Path, tmp_path: Path
) -> None:
    weights = {number: [1.0, 0.25, 0.01][number % 3] for number in range(ROWS)}
    release = weighted(tmp_path / "releases", weights.get, validation=(4, 5))
    report = trained(release, tiny, tmp_path / "out", max_steps=12, learning_rate=1e-2, **batch)
    held = {number: weights.pop(number) for number in (4, 5)}
    assert report["losses"][0]["loss"] == pytest.approx(mean_nll(tiny, weights), abs=1e-5)
    assert report["losses"][0]["loss"] != pytest.approx(mean_nll(tiny, dict.fromkeys(weights, 1.0)), abs=1e-5)
    assert report["losses"][-1]["loss"] < report["losses"][0]["loss"] - 0.5
    assert report["rows"]["train"] == {"used": 10, "cut": 0, "dropped": {}, "parted": 0, "weight": 4.78}
    assert report["rows"]["validation"]["weight"] == 0.26
    made = tmp_path / "out" / "views" / release.version
    first, last = report["validation"][0], report["validation"][-1]
    assert [entry["step"] for entry in report["validation"]] == [0, 10, 12]
    assert last["mean_token_accuracy"] > first["mean_token_accuracy"]
    assert first["loss"] == pytest.approx(mean_nll(tiny, held), abs=1e-5)
    assert last["loss"] == pytest.approx(mean_nll(made, held), abs=1e-4)


@pytest.mark.slow
def test_rows_of_weight_0_are_left_out_and_counted(tiny: Path, tmp_path: Path) -> None:
    release = weighted(tmp_path / "releases", {0: 0.0, 1: 0.0, 2: None}.get)
    report = trained(release, tiny, tmp_path / "out", max_steps=1)
    dropped = {"of weight 0": 2}
    assert report["rows"]["train"] == {"used": 10, "cut": 0, "dropped": dropped, "parted": 0, "weight": 10.0}
    weights = dict.fromkeys(range(2, ROWS), 1.0)
    assert report["losses"][0]["loss"] == pytest.approx(mean_nll(tiny, weights), abs=1e-5)
    report = trained(release, tiny, tmp_path / "alike", max_steps=1, use_weights=False)
    assert report["rows"]["train"] == {"used": 12, "cut": 0, "dropped": {}, "parted": 0, "weight": None}


def test_a_row_without_a_weight_counts_as_one() -> None:
    rows = [{"prompt": [], "completion": [], "tools": [], "weight": each} for each in (0.5, None, 0.0, -1.0)]
    fitted = fit_rows(rows, lambda prompt, row: 1, 10, cut=True)
    assert [row["weight"] for row in fitted.rows] == [0.5, 1.0]
    assert (fitted.measured, fitted.dropped) == (2, {"of weight 0": 2})


@pytest.mark.slow
def test_a_release_whose_rows_are_all_of_weight_0_is_refused(tiny: Path, tmp_path: Path) -> None:
    release = weighted(tmp_path / "releases", lambda number: 0.0)
    said = (
        "all 12 rows are of weight 0; expected rows with a weight above 0; set training.use_weights = false"
    )
    with pytest.raises(Exception, match=said):
        trained(release, tiny, tmp_path / "out", lambda job: run_training(job, lambda _: None), max_steps=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_adapters_are_trained_on_weighted_rows(tiny: Path, tmp_path: Path) -> None:
    release = weighted(tmp_path / "releases", lambda number: 1 / (1 + number))
    lora = {"r": 4, "alpha": 8}
    report = trained(release, tiny, tmp_path / "out", max_steps=3, learning_rate=1e-2, lora=lora)
    weights = {number: 1 / (1 + number) for number in range(ROWS)}
    assert report["losses"][0]["loss"] == pytest.approx(mean_nll(tiny, weights), abs=1e-5)
    assert report["losses"][-1]["loss"] < report["losses"][0]["loss"]
    made = tmp_path / "out" / "views" / release.version
    assert json.loads((made / "adapter_config.json").read_text())["r"] == 4
