"""The step scorer: what it learns from pairs, its calibration, its use as a reward, and what is refused."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model, train_here

from tracemill.records.errors import TrainingError
from tracemill.train.prm.calibration import (
    Calibration,
    area_under_curve,
    calibrate_pairs,
    expected_calibration_error,
    fit_calibration,
)
from tracemill.train.promotion import compare_models
from tracemill.train.start_child import check_places, run_training
from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

HELD = (1, 4, 6, 9, 12, 15, 18, 21)


def test_the_area_is_the_share_of_ordered_rows() -> None:
    assert area_under_curve([1, 2, 3, 4], [False, False, True, True]) == 1.0
    assert area_under_curve([4, 3, 2, 1], [False, False, True, True]) == 0.0
    assert area_under_curve([1, 1, 1, 1], [False, True, False, True]) == 0.5
    assert area_under_curve([1, 3, 2, 4], [False, False, True, True]) == 0.75
    assert math.isnan(area_under_curve([1, 2], [True, True]))


def test_calibration_finds_the_slope_that_scores_lack() -> None:
    """Scores are three times the log odds, so their own sigmoid is too sure."""
    drawn = random.Random(0)
    odds = [drawn.gauss(0.5, 1.5) for _ in range(4000)]
    labels = [drawn.random() < 1 / (1 + math.exp(-each)) for each in odds]
    scores = [3 * each for each in odds]
    fitted = fit_calibration(scores, labels)
    assert fitted.slope == pytest.approx(1 / 3, abs=0.03)
    assert fitted.offset == pytest.approx(0, abs=0.1)
    before, after = (
        expected_calibration_error([each.probability(score) for score in scores], labels)
        for each in (Calibration(), fitted)
    )
    assert before > 0.08
    assert after < 0.02


def test_an_error_of_calibration_is_probability_against_share() -> None:
    assert expected_calibration_error([0.05, 0.05, 0.95, 0.95], [False, False, True, True]) == pytest.approx(
        0.05
    )
    assert expected_calibration_error([1.0, 1.0], [True, False]) == pytest.approx(0.5)


def test_what_is_measured_was_not_fitted_on() -> None:
    """The first half of the pairs is right and the second half wrong way round: nothing can be known."""
    chosen, rejected = [1.0, -1.0] * 50, [-1.0, 1.0] * 50
    found = calibrate_pairs(chosen, rejected)
    assert found is not None
    assert found["accuracy"] == 0.5
    assert found["auc"] == 0.5
    assert found["ece_after"] > 0.6  # each half was fitted on the other, which says the opposite
    assert abs(found["slope"]) < 0.1
    assert calibrate_pairs([1.0] * 3, [0.0] * 3) is None


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"), rows=24, validation=HELD)
    digest = made.content_fingerprint
    return TrainingRelease(name="views", version=made.version, digest=digest, path=made.path)


def job(release: TrainingRelease, model: Path, out: Path, **given: Any) -> TrainingJob:
    base = {"method": "prm", "batch": 8, "accumulate": 1, "device": "cpu", "gradient_checkpointing": False}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    return TrainingJob(release=release, settings=settings, tracemill_version="0")


@pytest.fixture(scope="module")
def scorer(release: TrainingRelease, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("prm")
    asked = job(release, tiny_model(folder / "tiny"), folder / "out", max_steps=60, learning_rate=1e-2)
    return train_here(asked)


@pytest.mark.slow
def test_a_scorer_ranks_held_out_pairs_and_is_calibrated_on_them(
    scorer: Any, release: TrainingRelease
) -> None:
    import tracemill as tm

    losses = [entry["loss"] for entry in scorer.report["losses"]]
    assert losses[0] == pytest.approx(3 * math.log(2), abs=0.15)
    assert losses[-1] < 0.5
    calibration = scorer.report["calibration"]
    assert calibration["pairs"] == len(HELD)
    assert calibration["accuracy"] == 1.0
    assert calibration["slope"] > 0
    assert scorer.report["warnings"] == []
    assert "| calibration | pairs 8, " in (scorer.path / "README.md").read_text()
    rows = held_out(release)
    model = tm.StepScorer(scorer.path)
    good = model.score([{**row, "completion": row["chosen"]} for row in rows])
    bad = model.score([{**row, "completion": row["rejected"]} for row in rows])
    assert all(0 < worse < 0.5 < better < 1 for better, worse in zip(good, bad, strict=True))


def held_out(release: TrainingRelease) -> list[dict[str, Any]]:
    from datasets import load_dataset

    data: Any = load_dataset(str(release.path), "dpo", split="validation")
    return list(data)


@pytest.mark.slow
def test_the_folder_is_a_model_of_transformers_and_scores_are_its_logits(
    scorer: Any, release: TrainingRelease
) -> None:
    """Row by row, without padding."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    import tracemill as tm

    tokenizer: Any = AutoTokenizer.from_pretrained(scorer.path)
    model: Any = AutoModelForSequenceClassification.from_pretrained(scorer.path).eval()
    calibration = scorer.report["calibration"]
    rows = [{**row, "completion": row["chosen"]} for row in held_out(release)]
    found = tm.StepScorer(scorer.path, batch=3).score(rows)
    for row, probability in zip(rows, found, strict=True):
        text = tokenizer.apply_chat_template(
            [*row["prompt"], *row["completion"]], tools=row["tools"], tokenize=False
        )
        with torch.no_grad():
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            score = model(input_ids=ids).logits.item()
        odds = calibration["slope"] * score + calibration["offset"]
        assert probability == pytest.approx(1 / (1 + math.exp(-odds)), abs=1e-5)


@pytest.mark.slow
def test_a_reward_is_the_mean_over_the_actions_of_an_episode(scorer: Any, release: TrainingRelease) -> None:
    import tracemill as tm
    from tracemill.train.prm.prm_reward import PrmReward

    row = held_out(release)[0]
    reward, model = PrmReward(scorer.path), tm.StepScorer(scorer.path)
    reward.tools = row["tools"]
    result = {"role": "tool", "content": "1 passed"}
    episode = [*row["chosen"], result, *row["rejected"]]
    first, second = (
        model.score([{"prompt": prompt, "completion": said, "tools": row["tools"]}])[0]
        for prompt, said in (
            (row["prompt"], row["chosen"]),
            ([*row["prompt"], *row["chosen"], result], row["rejected"]),
        )
    )
    assert reward([row["prompt"]] * 2, [episode, []]) == pytest.approx([(first + second) / 2, 0.0], abs=1e-6)


@pytest.mark.slow
def test_a_scorer_without_held_out_pairs_says_that_it_is_not_calibrated(tmp_path: Path) -> None:
    import tracemill as tm

    made = released(tmp_path / "releases", rows=8)
    digest = made.content_fingerprint
    release = TrainingRelease(name="views", version=made.version, digest=digest, path=made.path)
    asked = job(release, tiny_model(tmp_path / "tiny"), tmp_path / "out", max_steps=1)
    result = run_training(asked, lambda said: None)
    assert result.report["calibration"] is None
    assert result.report["warnings"][0].startswith("scores are not calibrated: fewer than 4 pairs")
    with pytest.raises(TrainingError, match="is not calibrated"):
        tm.StepScorer(result.path)
    with pytest.raises(TrainingError, match="holds no step scorer"):
        tm.StepScorer(tmp_path)


def test_a_scorer_is_not_compared_and_a_missing_one_is_refused(
    release: TrainingRelease, tmp_path: Path
) -> None:
    decision = compare_models(job(release, tmp_path, tmp_path), tmp_path, None)
    assert not decision.promoted
    assert decision.reason == "not compared: method 'prm' makes a step scorer"
    composer = {"prompts": tmp_path / "p.jsonl", "prm": tmp_path}
    (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": []}))
    (tmp_path / "config.json").write_text("{}")
    settings = TrainingSettings.model_validate(
        {"model": str(tmp_path), "method": "composer", "composer": composer}
    )
    with pytest.raises(TrainingError, match="holds no step scorer"):
        check_places(settings)
