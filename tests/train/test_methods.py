"""What DPO, SimPO and LoRA do to a tiny model, against the same figures worked out here from its weights."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model

from tracemill.train.start_child import run_training
from tracemill.train.training_job import REPORT, Job, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

HELD = (3, 7)
TRAINED = tuple(number for number in range(10) if number not in HELD)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"), rows=10, validation=HELD)
    digest = made.content_fingerprint
    return TrainingRelease(name="views", version=made.version, digest=digest, path=made.path)


def trained(release: TrainingRelease, model: Path, out: Path, **given: Any) -> tuple[Path, dict[str, Any]]:
    base = {"batch": 8, "accumulate": 1, "device": "cpu", "gradient_checkpointing": False, "eval_steps": 10}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    made = run_training(Job(release=release, settings=settings, tracemill_version="0"), lambda said: None)
    report = json.loads((made.path / REPORT).read_text())
    return made.path, report


def losses(report: dict[str, Any]) -> list[float]:
    return [entry["loss"] for entry in report["losses"]]


Logps = dict[str, tuple[float, int]]


def logps(folder: Path, number: int) -> Logps:
    """Log probability of each side of a row under the model in `folder`, and the side's tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    asked = (
        "<tool>Bash</tool><|system|>You are an agent.<|end|><|user|>Fix the bug.<|end|>"
        '<|assistant|>I look.<call>Bash {"cmd": "ls"}</call><|end|><|tool|>main.py<|end|><|assistant|>'
    )
    call = f'{{"cmd": "pytest test_{number}.py", "timeout": {number}}}'
    sides = {"chosen": f"I test.<call>Bash {call}</call><|end|>", "rejected": f"Done with {number}.<|end|>"}
    found: Logps = {}
    for name, side in sides.items():
        begin = tokenizer(asked, return_tensors="pt")["input_ids"].shape[1]
        ids = tokenizer(asked + side, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            every = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
        told = every.gather(1, ids[0, 1:, None])[begin - 1 :, 0]
        found[name] = (float(told.sum()), len(told))
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def margin(before: Logps, after: Logps) -> float:
    """Equation 7 of https://arxiv.org/abs/2305.18290, without beta."""
    return sum(sign * (after[side][0] - before[side][0]) for side, sign in (("chosen", 1), ("rejected", -1)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dpo_holds_the_model_against_the_one_it_began_as(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    """A constant in place of the reference's log probabilities would show at the first step: the sides of
    each row are far from equally likely."""
    made, report = trained(release, tiny, tmp_path, max_steps=20, learning_rate=1e-3)
    first, last = report["losses"][0], report["losses"][-1]
    assert (first["loss"], first["rewards/margins"]) == pytest.approx((math.log(2), 0), abs=1e-5)
    sides = logps(tiny, TRAINED[0])
    assert abs(sides["chosen"][0] - sides["rejected"][0]) > 20
    assert last["loss"] < 0.6
    assert last["rewards/margins"] > 0.1
    assert report["rows"]["train"] == {"used": 8, "cut": 0, "dropped": {}, "parted": 0}
    assert report["rows"]["validation"]["used"] == 2
    assert [entry["step"] for entry in report["validation"]] == [0, 10, 20]
    begun, _, ended = report["validation"]
    assert (begun["loss"], begun["rewards/margins"]) == pytest.approx((math.log(2), 0), abs=1e-5)
    worked_out = [0.1 * margin(logps(tiny, number), logps(made, number)) for number in HELD]
    assert ended["rewards/margins"] == pytest.approx(mean(worked_out), abs=1e-3)
    assert ended["loss"] == pytest.approx(mean([math.log1p(math.exp(-m)) for m in worked_out]), abs=1e-3)
    assert ended["rewards/accuracies"] == 1


def simpo_loss(found: Logps, beta: float, gamma: float) -> float:
    """Equation 6 of https://arxiv.org/abs/2405.14734."""
    per_token = {side: total / count for side, (total, count) in found.items()}
    return math.log1p(math.exp(-(beta * (per_token["chosen"] - per_token["rejected"]) - gamma)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_simpo_s_loss_is_that_of_its_paper_with_the_tools_of_a_row_in_its_prompt(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    given = {"method": "simpo", "learning_rate": 1e-2}
    made, report = trained(release, tiny, tmp_path, max_steps=20, gamma=0.7, **given)
    assert (report["settings"]["beta"], report["settings"]["gamma"]) == (2.0, 0.7)
    worked_out = mean([simpo_loss(logps(tiny, number), 2.0, 0.7) for number in TRAINED])
    assert losses(report)[0] == pytest.approx(worked_out, abs=1e-4)
    assert losses(report)[-1] < losses(report)[0] - 0.1
    assert [entry["step"] for entry in report["validation"]] == [0, 10, 20]
    worked_out = mean([simpo_loss(logps(made, number), 2.0, 0.7) for number in HELD])
    assert report["validation"][-1]["loss"] == pytest.approx(worked_out, abs=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["dpo", "simpo"])
def test_lora_ends_with_an_adapter_that_loads_on_the_model(
    method: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    lora = {"r": 4, "alpha": 8}
    given = {"method": method, "lora": lora, "gradient_checkpointing": True}
    made, report = trained(release, tiny, tmp_path, max_steps=2, learning_rate=1e-2, **given)
    assert (made / "adapter_model.safetensors").stat().st_size < (tiny / "model.safetensors").stat().st_size
    assert not (made / "model.safetensors").exists()
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny), made)
    weights = {name: value for name, value in model.named_parameters() if "lora_B" in name}
    assert len(weights) == 7  # four of attention, three of the perceptron
    assert any(value.abs().max() > 0 for value in weights.values())
    assert len(report["losses"]) == 2
    if method == "dpo":
        assert losses(report)[0] == pytest.approx(math.log(2), abs=1e-5)
        assert losses(report)[1] < losses(report)[0]
    assert "peft" in report["versions"]


@pytest.mark.slow
def test_a_seed_gives_the_same_losses_twice_and_another_one_others(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    given = {"max_steps": 4, "batch": 2, "learning_rate": 1e-2}
    one, again, other = (
        losses(trained(release, tiny, tmp_path / str(place), seed=seed, **given)[1])
        for place, seed in enumerate((1, 1, 2))
    )
    assert one == again
    assert one != other


def test_gamma_is_of_simpo_alone_and_each_method_has_its_own_beta() -> None:
    def settings(**given: Any) -> TrainingSettings:
        return TrainingSettings.model_validate({"model": "a/b", **given})

    assert (settings().beta, settings().gamma) == (0.1, None)
    assert (settings(method="simpo").beta, settings(method="simpo").gamma) == (2.0, 1.0)
    assert (settings(method="simpo", gamma=0).gamma, settings(beta=0.3).beta) == (0, 0.3)
    assert len({settings(**one).fingerprint() for one in ({}, {"method": "simpo"}, {"beta": 2.0})}) == 3
    for one in (settings(), settings(method="simpo")):
        assert TrainingSettings.model_validate_json(one.model_dump_json()) == one
    with pytest.raises(ValueError, match='gamma is a setting of method = "simpo" alone'):
        settings(gamma=0.5)
