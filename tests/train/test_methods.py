"""What SFT, DPO, SimPO, KTO and LoRA do to a tiny model, against the same figures worked out here from its
weights."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model, train_here

from tracemill.records.message import Message
from tracemill.train.training_job import REPORT, TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.likelihood import likelihood_warnings

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
    made = train_here(TrainingJob(release=release, settings=settings, tracemill_version="0"))
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
    given = {"method": "dpo", "nll_weight": 0, "learning_rate": 1e-3}
    made, report = trained(release, tiny, tmp_path, max_steps=20, **given)
    first, last = report["losses"][0], report["losses"][-1]
    assert (first["loss"], first["rewards/margins"]) == pytest.approx((math.log(2), 0), abs=1e-5)
    sides = logps(tiny, TRAINED[0])
    assert abs(sides["chosen"][0] - sides["rejected"][0]) > 20
    assert last["loss"] < 0.6
    assert last["rewards/margins"] > 0.1
    rows = {"used": 8, "cut": 0, "dropped": {}, "parted": 0, "weight": None}
    assert report["rows"]["train"] == rows
    assert report["rows"]["validation"]["used"] == 2
    assert [entry["step"] for entry in report["validation"]] == [0, 10, 20]
    begun, _, ended = report["validation"]
    assert (begun["loss"], begun["rewards/margins"]) == pytest.approx((math.log(2), 0), abs=1e-5)
    worked_out = [0.1 * margin(logps(tiny, number), logps(made, number)) for number in HELD]
    assert ended["rewards/margins"] == pytest.approx(mean(worked_out), abs=1e-3)
    assert ended["loss"] == pytest.approx(mean([math.log1p(math.exp(-m)) for m in worked_out]), abs=1e-3)
    assert ended["rewards/accuracies"] == 1


def nll(found: list[Logps], side: str = "chosen") -> float:
    """Mean negative log-likelihood of a token of these sides."""
    return -sum(each[side][0] for each in found) / sum(each[side][1] for each in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_sft_s_loss_is_that_of_the_completions_alone(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    """The default method."""
    made, report = trained(release, tiny, tmp_path, max_steps=20, learning_rate=1e-2)
    assert report["settings"]["method"] == "sft"
    before = [logps(tiny, number) for number in TRAINED]
    assert losses(report)[0] == pytest.approx(nll(before), abs=1e-4)
    assert losses(report)[-1] < losses(report)[0] - 0.5
    ended = report["validation"][-1]
    assert ended["loss"] == pytest.approx(nll([logps(made, number) for number in HELD]), abs=1e-3)
    assert ended["mean_token_accuracy"] > 0.4
    assert report["warnings"] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dpo_adds_the_likelihood_of_the_chosen_sides(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    given = {"method": "dpo", "learning_rate": 1e-3, "nll_weight": 0.5}
    made, report = trained(release, tiny, tmp_path, max_steps=10, **given)
    before = nll([logps(tiny, number) for number in TRAINED])
    assert losses(report)[0] == pytest.approx(math.log(2) + 0.5 * before, abs=1e-4)
    after = [logps(made, number) for number in HELD]
    margins = [0.1 * margin(logps(tiny, number), found) for number, found in zip(HELD, after, strict=True)]
    expected = mean([math.log1p(math.exp(-m)) for m in margins]) + 0.5 * nll(after)
    assert report["validation"][-1]["loss"] == pytest.approx(expected, abs=1e-3)
    assert report["validation"][-1]["rewards/chosen"] > 0
    assert report["warnings"] == []


def kto_loss(found: Logps, before: Logps, side: str, kl: float) -> float:
    """1 less the value of a side (https://arxiv.org/abs/2402.01306, equation 8), with beta 0.1."""
    sign = 1 if side == "chosen" else -1
    return 1 - 1 / (1 + math.exp(-0.1 * sign * (found[side][0] - before[side][0] - kl)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_kto_tells_good_sides_from_bad_ones(release: TrainingRelease, tiny: Path, tmp_path: Path) -> None:
    """Rows are sides, each alone. How far the model moved is estimated from completions behind the prompts
    of other rows of a batch; here all prompts are one, so it is the mean of the rows themselves."""
    given = {"method": "kto", "learning_rate": 1e-3, "batch": 4, "accumulate": 1}
    made, report = trained(release, tiny, tmp_path, max_steps=10, **given)
    assert report["rows"]["train"]["used"] == 16
    assert report["rows"]["validation"]["used"] == 4
    assert losses(report)[0] == pytest.approx(0.5, abs=1e-4)
    begun, ended = report["validation"][0], report["validation"][-1]
    assert begun["loss"] == pytest.approx(0.5, abs=1e-4)
    before, after = ([logps(folder, number) for number in HELD] for folder in (tiny, made))
    reward = 0.1 * mean([a["chosen"][0] - b["chosen"][0] for a, b in zip(after, before, strict=True)])
    assert ended["rewards/chosen"] == pytest.approx(reward, abs=1e-3)
    assert reward > 0.1
    sides = [(a, b, side) for a, b in zip(after, before, strict=True) for side in ("chosen", "rejected")]
    kl = max(mean([a[side][0] - b[side][0] for a, b, side in sides]), 0.0)
    assert kl > 1
    assert ended["loss"] == pytest.approx(mean([kto_loss(*each, kl) for each in sides]), abs=1e-3)
    assert ended["loss"] < 0.5


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
@pytest.mark.parametrize(
    "method", ["dpo", *(pytest.param(name, marks=pytest.mark.long) for name in ("sft", "simpo", "kto"))]
)
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
        before = nll([logps(tiny, number) for number in TRAINED])
        assert losses(report)[0] == pytest.approx(math.log(2) + before, abs=1e-4)
    assert losses(report)[1] < losses(report)[0]
    assert "peft" in report["versions"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_plain_dpo_that_makes_the_chosen_sides_less_likely_says_so(tiny: Path, tmp_path: Path) -> None:
    """The rejected side says eight times what the chosen one says once: to say it less often is to say it
    with less likelihood."""
    sides = {side: (Message("assistant", "I test. " * n),) for side, n in (("chosen", 1), ("rejected", 8))}
    made = released(tmp_path / "releases", rows=10, validation=HELD, **sides)
    release = TrainingRelease(name="views", version=made.version, digest="0", path=made.path)
    given = {"method": "dpo", "nll_weight": 0, "learning_rate": 1e-2}
    _, report = trained(release, tiny, tmp_path, max_steps=20, **given)
    end = mean([entry["rewards/chosen"] for entry in report["losses"][-4:]])
    held = report["validation"][-1]["rewards/chosen"]
    assert max(end, held) < -0.1
    assert report["losses"][-1]["rewards/margins"] > 1
    assert report["warnings"] == [
        f"the chosen sides became less likely (rewards/chosen is {round(end, 4)} on training rows and "
        f"{round(held, 4)} on rows of validation at the end); raise training.nll_weight, or lower "
        "training.learning_rate"
    ]


def test_the_end_of_a_training_is_its_last_fifth_and_its_last_measurement() -> None:
    def warned(rewards: list[float], held: list[float], **given: Any) -> list[str]:
        settings = TrainingSettings.model_validate({"model": "a/b", "method": "dpo", **given})
        entries = [[{"rewards/chosen": reward} for reward in each] for each in (rewards, held)]
        return likelihood_warnings(settings, *entries)

    assert warned([-1.0] * 8 + [0.2, -0.1], [-1.0, 0.1]) == []
    [line] = warned([1.0] * 8 + [0.1, -0.3], [])
    assert "(rewards/chosen is -0.1 on training rows at the end); raise training.nll_weight" in line
    [line] = warned([1.0, 1.0], [0.5, -0.25])
    assert "(rewards/chosen is -0.25 on rows of validation at the end)" in line
    assert warned([-0.00001], []) == []
    assert warned([], []) == []
    assert warned([-9.0], [-9.0], method="simpo") == []


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


def test_each_method_has_its_own_defaults_and_settings() -> None:
    def settings(**given: Any) -> TrainingSettings:
        return TrainingSettings.model_validate({"model": "a/b", **given})

    assert settings().method == "sft"
    assert (settings(method="dpo").beta, settings(method="dpo").gamma) == (0.1, None)
    assert (settings(method="dpo").nll_weight, settings(method="dpo", nll_weight=0).nll_weight) == (1.0, 0)
    rates = [settings(method=name).learning_rate for name in ("sft", "dpo", "simpo", "kto")]
    assert rates == [2e-5, 1e-6, 1e-6, 1e-6]
    assert (settings(method="kto").batch, settings(method="kto").accumulate) == (2, 4)
    assert (settings(method="simpo").beta, settings(method="simpo").gamma) == (2.0, 1.0)
    assert (settings(method="simpo", gamma=0).gamma, settings(beta=0.3).beta) == (0, 0.3)
    others = ({}, {"method": "simpo"}, {"beta": 2.0}, {"method": "dpo"}, {"method": "kto"})
    assert len({settings(**one).fingerprint() for one in (*others, {"use_weights": False})}) == 6
    for one in (settings(), settings(method="dpo"), settings(method="simpo"), settings(method="kto")):
        assert TrainingSettings.model_validate_json(one.model_dump_json()) == one
    with pytest.raises(ValueError, match='gamma is a setting of method = "simpo" alone'):
        settings(gamma=0.5)
    with pytest.raises(ValueError, match='nll_weight is a setting of method = "dpo" alone'):
        settings(method="simpo", nll_weight=0.5)
    with pytest.raises(
        ValueError, match='batch is 1, and method = "kto" compares rows of a batch; expected 2'
    ):
        settings(method="kto", batch=1)
    with pytest.raises(ValueError, match="nll_weight"):
        settings(method="dpo", nll_weight=-1)
