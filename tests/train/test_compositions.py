"""The three ways of composing hints with GRPO, and the correction for who sampled: numbers and trainings."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

import composer_training as given  # noqa: E402
from torch import tensor  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from tracemill.train.composer.composer_trainer import Channels  # noqa: E402
from tracemill.train.hints.hint_rows import add_hint  # noqa: E402
from tracemill.train.losses.policy import grpo_loss, importance_weights, shape_advantages  # noqa: E402

pytestmark = [
    pytest.mark.slow,  # as all that needs PyTorch
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL's own defaults
    pytest.mark.filterwarnings("ignore::trl.import_utils.TRLExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:You are using .rollout_func.:UserWarning"),
]
FOUR = {"per_device_train_batch_size": 4, "num_generations": 4}
NAN = math.nan


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return given.make_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny)


def hinted(trainer: Any, hints: list[str]) -> Any:
    """The trainer, with a hint on each of its rows."""
    rows = trainer.train_dataset
    trainer.train_dataset = rows.add_column("hint", [hints[n % len(hints)] for n in range(len(rows))])
    return trainer


def watch(trainer: Any) -> list[dict[str, Any]]:
    """What the loss is given at each micro-step."""
    seen, inner = [], trainer._add_channels

    def add_channels(grpo: Any, model: Any) -> Any:
        seen.append({"grpo": grpo.detach().clone()})
        return inner(grpo, model)

    trainer._add_channels = add_channels
    return seen


def test_shaped_advantages_by_hand() -> None:
    hints = tensor([[-1.0, -2.0, -0.5], [-3.0, -1.0, NAN]], dtype=torch.float64)
    now = tensor([[-1.5, -1.0, -0.5], [-2.0, -4.0, NAN]], dtype=torch.float64)
    advantages, mask = tensor([2.0, -1.0], dtype=torch.float64), tensor([[1, 1, 1], [1, 1, 0]])

    def shaped(share: float) -> list[list[float]]:
        return shape_advantages(advantages, hints, now, mask, grpo_share=share).tolist()

    assert shaped(1.0) == [[2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]]
    assert shaped(0.0) == [[0.5, -1.0, 0.0], [-1.0, 3.0, 0.0]]
    assert shaped(0.75) == [[1.625, 1.25, 1.5], [-1.0, 0.0, 0.0]]
    by_token = advantages[:, None].expand(2, 3)
    assert shape_advantages(by_token, hints, now, mask, grpo_share=0.75).tolist() == shaped(0.75)


def test_the_gradient_of_the_hints_part_is_that_of_the_divergence() -> None:
    """Over all tokens, weighted by their probability: the policy gradient is the gradient of KL(q || p)."""
    student = tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    teacher = tensor([1.0, 0.5, -0.5, 0.0], dtype=torch.float64).log_softmax(0)
    now = student.log_softmax(0)
    part = shape_advantages(torch.zeros(1), teacher[None], now[None], grpo_share=0.0)[0]
    policy = -(now.detach().exp() * part * now).sum()
    kl = (now.exp() * (now - teacher)).sum()
    found, wanted = (torch.autograd.grad(each, student, retain_graph=True)[0] for each in (policy, kl))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("token_truncate", [[0.5, 2.0, 1.0], [3.0, 1.0, 1.0]]),
        ("token_mask", [[0.5, 2.0, 1.0], [0.0, 1.0, 1.0]]),
        ("sequence_truncate", [[1.0, 1.0, 1.0], [3.0, 3.0, 1.0]]),
        ("sequence_mask", [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]),
    ],
)
def test_importance_weights_by_hand(mode: Any, wanted: list[list[float]]) -> None:
    ratios = tensor([[0.5, 2.0, 1.0], [4.0, 1.0, 9.0]], dtype=torch.float64)
    sampling = torch.full((2, 3), -2.0, dtype=torch.float64)
    now, mask = sampling + ratios.log(), tensor([[1, 1, 1], [1, 1, 0]])
    sampling[1, 1] = NAN  # not known: no correction
    found = importance_weights(now, sampling, mask, mode=mode, cap=3.0)
    torch.testing.assert_close(found, tensor(wanted, dtype=torch.float64))


def test_a_corrected_loss_is_the_clipped_loss_of_a_token_times_its_weight() -> None:
    now = tensor([[-1.0, -1.0, -2.0]], dtype=torch.float64)
    old = now - tensor([[0.5, -0.5, 0.1]], dtype=torch.float64)
    weights = tensor([[0.5, 3.0, 1.0]], dtype=torch.float64)
    for sign in (1.0, -1.0):
        advantage = tensor([[sign, 2 * sign, -sign]], dtype=torch.float64)
        each = torch.cat(
            [grpo_loss(now[:, t : t + 1], old[:, t : t + 1], advantage[:, t : t + 1])[None] for t in range(3)]
        )
        assert grpo_loss(now, old, advantage * weights).item() == pytest.approx(
            (each * weights[0]).mean().item()
        )


def test_what_cannot_be_is_one_sentence() -> None:
    two, three = torch.zeros(1, 2), torch.zeros(1, 3)
    for call, said in (
        (lambda: shape_advantages(torch.zeros(1), two, three, grpo_share=1.0), "Shapes differ: log_probs"),
        (lambda: shape_advantages(torch.zeros(1), two, two, grpo_share=1.5), "grpo_share is 1.5; it must be"),
        (lambda: importance_weights(two, two, mode="cap"), "mode is 'cap'; it must be 'token_truncate'"),  # type: ignore[arg-type]
        (lambda: importance_weights(two, two, cap=0.0), "cap is 0.0; it must be above 0."),
        (lambda: Channels(composition="sum"), "composition is 'sum'; it must be 'additive', 'mix' or"),  # type: ignore[arg-type]
        (lambda: Channels(composition="mix", alpha_sdpo=1.5), "alpha_sdpo is 1.5; composition 'mix' needs a"),
        (lambda: Channels(importance="cap"), "importance is 'cap'; it must be 'off', 'token_truncate'"),  # type: ignore[arg-type]
        (lambda: Channels(composition="mix", alpha_sdpo=0.5), "alpha_sdpo is 0.5 and there are no examples"),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            call()
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize("composition", ["mix", "advantage"])
def test_a_share_of_0_is_grpo_bit_by_bit(
    tiny: Path, tokenizer: Any, tmp_path: Path, composition: Any
) -> None:
    plain = given.trainer_of(tiny, tmp_path / "a", None, given.varied, **FOUR)
    plain.train()
    channels = given.channels_of(tiny, tokenizer, composition=composition)
    ours = hinted(given.trainer_of(tiny, tmp_path / "b", channels, given.varied, **FOUR), ["Say: test"])
    ours.train()
    before, after = given.weights(plain), given.weights(ours)
    start = dict(given.model_of(tiny).named_parameters())
    assert any(not torch.equal(before[name], start[name]) for name in before)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert given.logged(plain, "loss") == given.logged(ours, "loss")


def test_a_mix_is_that_of_trl_and_at_1_distillation_alone(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    from trl.experimental.sdpo.sdpo_trainer import SDPOTrainer

    more = {"alpha_sdpo": 0.25, "composition": "mix", "beta_replay": 0.2}
    trainer = given.trainer_of(
        tiny, tmp_path / "a", given.channels_of(tiny, tokenizer, **more), given.varied, **FOUR
    )
    trainer.train()
    names = ("loss/total", "loss/grpo", "loss/sdpo_kl", "loss/trace_replay_dpo")
    rows = list(zip(*(given.logged(trainer, name) for name in names), strict=True))
    assert len(rows) == 2
    for total, grpo, kl, dpo in rows:
        stub: Any = SimpleNamespace(
            args=SimpleNamespace(distillation_weight=0.25),
            model=SimpleNamespace(training=True),
            teacher_model=None,
            current_gradient_accumulation_steps=1,
            _compute_teacher_student_logits=lambda *_: SimpleNamespace(student_logits=None),
            _compute_policy_loss=lambda *_, grpo=grpo: grpo,
            _compute_self_distillation_loss=lambda *_, kl=kl: kl,
        )
        upstream: Any = SDPOTrainer.compute_loss(stub, None, {})
        assert total == pytest.approx(upstream + 0.2 * dpo, rel=1e-5)
        assert kl > 1e-6

    only = {"alpha_sdpo": 1.0, "composition": "mix"}
    mixed = given.trainer_of(
        tiny, tmp_path / "b", given.channels_of(tiny, tokenizer, **only), given.varied, **FOUR
    )
    mixed.train()
    alone = given.trainer_of(
        tiny, tmp_path / "c", given.channels_of(tiny, tokenizer, alpha_sdpo=1.0), given.constant, **FOUR
    )
    alone.train()
    assert given.logged(mixed, "loss/total") == given.logged(mixed, "loss/sdpo_kl")
    first, second = given.weights(mixed), given.weights(alone)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_step_of_a_mix_is_the_mix_of_two_steps(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    """Plain gradient descent: what a step moves is linear in the loss."""
    start, moved = dict(given.model_of(tiny).named_parameters()), {}
    steps = {"max_steps": 1, "optim": "sgd", "learning_rate": 0.1, "max_grad_norm": 0.0}
    for name, reward, more in (
        ("grpo", given.varied, {}),
        ("hints", given.constant, {"alpha_sdpo": 1.0}),
        ("mix", given.varied, {"alpha_sdpo": 0.25, "composition": "mix"}),
    ):
        channels = given.channels_of(tiny, tokenizer, **more)
        trainer = given.trainer_of(tiny, tmp_path / name, channels, reward, **FOUR, **steps)
        trainer.train()
        moved[name] = {key: value - start[key] for key, value in given.weights(trainer).items()}
    assert all(max(each.abs().max() for each in part.values()) > 1e-3 for part in moved.values())
    for key, found in moved["mix"].items():
        wanted = 0.75 * moved["grpo"][key] + 0.25 * moved["hints"][key]
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


def test_shaped_advantages_are_of_the_same_tokens_after_the_hint(
    tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    """Two of three rows have a hint; every number is computed again without padding."""
    hints = ["Say: test", "", "Say: something longer"]
    channels = Channels(alpha_sdpo=0.25, composition="advantage")
    trainer = hinted(given.trainer_of(tiny, tmp_path, channels, given.varied, max_steps=1), hints)
    model = given.model_of(tiny).eval()
    rows = [trainer.train_dataset[number] for number in (0, 0, 1, 1, 2, 2)]
    trainer.model.train()
    batch = trainer._generate_and_score_completions(rows)
    assert batch["advantages"].shape == batch["completion_ids"].shape
    rewards = torch.tensor(
        [
            float(sum(map(ord, text)) % 7)
            for text in tokenizer.batch_decode(batch["completion_ids"], skip_special_tokens=True)
        ]
    ).view(3, 2)
    plain = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).flatten()
    assert plain.abs().max() > 0.5

    def log_probs(prompt: Any, said: list[int]) -> Any:
        context = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=True)[
            "input_ids"
        ]
        with torch.no_grad():
            logits = model(torch.tensor([[*context, *said]])).logits[0, len(context) - 1 : -1]
        return logits.log_softmax(-1)[range(len(said)), said]

    told = []
    for number, row in enumerate(rows):
        said = batch["completion_ids"][number][batch["completion_mask"][number].bool()].tolist()
        wanted = 0.75 * plain[number].expand(len(said))
        if row["hint"]:
            part = log_probs(add_hint(row["prompt"], row["hint"]), said) - log_probs(row["prompt"], said)
            told.append(part.abs())
            wanted = wanted + 0.25 * part
        found = batch["advantages"][number]
        torch.testing.assert_close(found[: len(said)], wanted, rtol=1e-3, atol=1e-4)
        assert not found[len(said) :].any()
    assert torch.cat(told).max() > 0.1
    noted = trainer._metrics["train"]
    assert noted["advantage/hinted"] == [pytest.approx(4 / 6)]
    assert noted["advantage/sdpo"] == [pytest.approx(torch.cat(told).mean().item(), rel=1e-3)]
    assert noted["advantage/grpo"] == [pytest.approx(plain.abs().mean().item(), rel=1e-3)]


def test_shaped_advantages_train_and_are_logged(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    """With a constant reward GRPO learns nothing; what the hint says moves the model."""
    moved = {}
    for alpha in (0.0, 0.5):
        more = {"alpha_sdpo": alpha, "beta_replay": 0.2, "composition": "advantage"}
        channels = given.channels_of(tiny, tokenizer, **more)
        trainer = hinted(
            given.trainer_of(tiny, tmp_path / str(alpha), channels, given.constant, **FOUR), ["Say: test"]
        )
        trainer.train()
        moved[alpha] = given.logged(trainer, "loss/grpo")
        if alpha:
            assert given.logged(trainer, "alpha_sdpo") == [0.5, 0.5]
            assert given.logged(trainer, "advantage/grpo") == [0.0, 0.0]
            assert given.logged(trainer, "advantage/hinted") == [1.0, 1.0]
            assert all(value > 1e-2 for value in given.logged(trainer, "advantage/sdpo"))
            for total, grpo, dpo in zip(
                *(given.logged(trainer, f"loss/{name}") for name in ("total", "grpo", "trace_replay_dpo")),
                strict=True,
            ):
                assert total == pytest.approx(grpo + 0.2 * dpo, rel=1e-5)
            assert given.logged(trainer, "loss/sdpo_kl") == []
    assert moved[0.0] == [0.0, 0.0]
    assert all(abs(value) > 1e-3 for value in moved[0.5])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_of_the_sampler_are_those_of_the_tokens_it_drew(
    tiny: Path, tokenizer: Any, tmp_path: Path, temperature: float
) -> None:
    channels = Channels(importance="token_truncate")
    trainer = given.trainer_of(tiny, tmp_path, channels, given.varied, temperature=temperature, top_k=0)
    rows = [trainer.train_dataset[number] for number in (0, 0, 1, 1)]
    trainer.model.train()
    batch = trainer._generate_and_score_completions(rows)
    keep = batch["completion_mask"].bool()
    now = trainer._log_probs(batch, batch["prompt_ids"], batch["prompt_mask"])
    torch.testing.assert_close(batch["sampling_per_token_logps"][keep], now[keep], rtol=1e-3, atol=1e-4)
    assert now[keep].min() < -0.5
    assert trainer._metrics["train"]["importance/mean"] == [pytest.approx(1.0, abs=1e-3)]
    assert trainer._metrics["train"]["importance/over_cap"] == [0.0]


def test_rollouts_of_another_sampler_are_corrected_and_it_is_logged(
    tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    """A sampler that says each token was half as likely as it was: all ratios are 2, or 1.5 with that cap."""

    def rollouts(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        made = tokenizer.apply_chat_template(prompts, add_generation_prompt=True, return_dict=True)[
            "input_ids"
        ]
        said = [[20 + number, 30, 40 + number] for number in range(len(prompts))]
        model, logprobs = trainer.accelerator.unwrap_model(trainer.model), []
        for context, ids in zip(made, said, strict=True):
            with torch.no_grad():
                logits = model(torch.tensor([[*context, *ids]])).logits[0, len(context) - 1 : -1]
            logprobs.append((logits.log_softmax(-1)[range(3), ids] - math.log(2)).tolist())
        return {"prompt_ids": made, "completion_ids": said, "logprobs": logprobs if trainer.tells else None}

    losses = {}
    for mode, cap in (("off", 3.0), ("token_truncate", 3.0), ("token_truncate", 1.5), ("sequence_mask", 3.0)):
        channels = Channels(importance=mode, importance_cap=cap)  # type: ignore[arg-type]
        trainer = given.trainer_of(
            tiny, tmp_path / mode, channels, given.varied, rollout_func=rollouts, learning_rate=0.0
        )
        trainer.tells = True
        trainer.train()
        norms = given.logged(trainer, "grad_norm")
        losses[mode, cap] = norms[0]
        if mode == "token_truncate":
            assert given.logged(trainer, "importance/mean") == pytest.approx([2.0, 2.0], rel=1e-3)
            assert given.logged(trainer, "importance/max") == pytest.approx([2.0, 2.0], rel=1e-3)
            assert given.logged(trainer, "importance/over_cap") == [float(cap < 2)] * 2
    assert losses["off", 3.0] > 1e-3
    assert losses["token_truncate", 3.0] == pytest.approx(2 * losses["off", 3.0], rel=1e-3)
    assert losses["token_truncate", 1.5] == pytest.approx(1.5 * losses["off", 3.0], rel=1e-3)
    assert losses["sequence_mask", 3.0] == 0.0  # 2 x 2 x 2 is above the cap
    trainer.tells = False
    with pytest.raises(ValueError, match="importance is on and the rollouts have no logprobs"):
        trainer.train()
