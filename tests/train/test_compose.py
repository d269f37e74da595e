"""The three channels together, over a real model: sums, alignment, channels that are off, bad input."""

import copy
import logging
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from torch import Tensor, tensor  # noqa: E402

from tracemill.train.compose import Channel, compose_loss  # noqa: E402
from tracemill.train.losses.entropy_aware import entropy_mix_loss  # noqa: E402
from tracemill.train.losses.generalized_jsd import generalized_jsd_loss  # noqa: E402
from tracemill.train.losses.policy import grpo_loss  # noqa: E402
from tracemill.train.losses.taid import taid_loss  # noqa: E402

pytestmark = pytest.mark.slow  # as all that needs PyTorch
VOCABULARY = 23


@pytest.fixture(scope="module")
def model() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(config).double()


def rows(texts: list[tuple[list[int], list[int]]], prefix: str = "") -> dict[str, Tensor]:
    """Contexts and responses, padded on the right."""
    length = max(len(context) + len(said) for context, said in texts)
    ids = torch.zeros(len(texts), length, dtype=torch.long)
    attended, response = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (context, said) in enumerate(texts):
        end = len(context) + len(said)
        ids[row, :end] = tensor(context + said)
        attended[row, :end] = 1
        response[row, len(context) : end] = 1
    names = ("input_ids", "attention_mask", "response_mask")
    return {prefix + name: each for name, each in zip(names, (ids, attended, response), strict=True)}


ROLLOUTS = [([1, 2, 3], [4, 5]), ([6], [7, 8, 9])]
CONTEXTS = [([1, 2], [10, 11, 12]), ([3, 4, 5], [13])]
HINTED = [([1, 2, 20, 21, 22], [10, 11, 12]), ([20, 3, 4, 5], [13])]
CHOSEN = [([1, 2], [14, 15]), ([3], [16, 17, 18])]
REJECTED = [([1, 2], [19]), ([3], [4, 5])]


def batch() -> dict[str, Tensor]:
    return {
        **rows(ROLLOUTS),
        "advantages": tensor([1.0, -0.5], dtype=torch.float64),
        **rows(CONTEXTS, "student_"),
        **rows(HINTED, "hinted_"),
        **rows(CHOSEN, "chosen_"),
        **rows(REJECTED, "rejected_"),
        "reference_chosen_logps": tensor([-7.0, -9.5], dtype=torch.float64),
        "reference_rejected_logps": tensor([-3.0, -8.0], dtype=torch.float64),
    }


def logits_of(model: Any, context: list[int], said: list[int]) -> Tensor:
    """Of the response tokens, one row at a time and without padding: `[tokens, V]`."""
    begin = len(context)
    return model(input_ids=tensor([context + said])).logits[0, begin - 1 : -1]


def logps_of(model: Any, context: list[int], said: list[int]) -> Tensor:
    return logits_of(model, context, said).log_softmax(-1)[range(len(said)), said]


def slopes(model: Any, loss: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(model.parameters(), found, strict=True)]


def grpo_by_hand(model: Any) -> Tensor:
    tokens = [-(logps - logps.detach()).exp() * advantage for logps, advantage in by_advantage(model)]
    return torch.cat(tokens).mean()


def by_advantage(model: Any) -> list[tuple[Tensor, float]]:
    return [(logps_of(model, *row), advantage) for row, advantage in zip(ROLLOUTS, (1.0, -0.5), strict=True)]


def dpo_by_hand(model: Any, beta: float) -> Tensor:
    margins = []
    references = ((-7.0, -3.0), (-9.5, -8.0))
    for chosen, rejected, (to_chosen, to_rejected) in zip(CHOSEN, REJECTED, references, strict=True):
        moved = logps_of(model, *chosen).sum() - to_chosen - logps_of(model, *rejected).sum() + to_rejected
        margins.append(beta * moved)
    return torch.nn.functional.softplus(-torch.stack(margins)).mean()


def aligned_by_hand(model: Any, teacher: Any) -> tuple[Tensor, Tensor]:
    student = torch.cat([logits_of(model, *row) for row in CONTEXTS])
    return student, torch.cat([logits_of(teacher, *row) for row in HINTED]).detach()


def test_the_total_is_the_weighted_sum_of_three_losses_and_so_is_its_gradient(model: Any) -> None:
    total, channels = compose_loss(model, batch(), 0.7, 0.3, dpo_beta=0.2, jsd_beta=0.25)
    student, hinted = aligned_by_hand(model, copy.deepcopy(model))
    by_hand = {
        "grpo": grpo_by_hand(model),
        "sdpo": generalized_jsd_loss(student, hinted, mask=torch.ones(4), beta=0.25),
        "replay": dpo_by_hand(model, 0.2),
    }
    assert list(channels) == ["grpo", "sdpo", "replay"]
    for name, wanted in by_hand.items():
        found = channels[name].loss
        assert found is not None
        assert found.item() == pytest.approx(wanted.item(), rel=1e-10), name
        assert not found.requires_grad
        assert channels[name].off is None
    assert [channel.weight for channel in channels.values()] == [1.0, 0.7, 0.3]
    wanted = by_hand["grpo"] + 0.7 * by_hand["sdpo"] + 0.3 * by_hand["replay"]
    assert total.item() == pytest.approx(wanted.item(), rel=1e-10)
    assert by_hand["sdpo"].item() > 1e-3
    for ours, theirs in zip(slopes(model, total), slopes(model, wanted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


def test_weights_of_0_leave_grpo_bit_by_bit_and_say_so(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    given = batch()
    ids, keep = given["input_ids"], given["response_mask"]
    logits = model(input_ids=ids, attention_mask=given["attention_mask"]).logits[:, :-1]
    now = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    alone = grpo_loss(now, None, given["advantages"], keep[:, 1:])
    with caplog.at_level(logging.INFO, logger="tracemill.train.compose"):
        total, channels = compose_loss(model, given, 0.0, 0.0)
    only, _ = compose_loss(model, {**rows(ROLLOUTS), "advantages": given["advantages"]}, 0, 0)
    assert total.item() == only.item() == alone.item() == channels["grpo"].loss
    for found, wanted, same in zip(*(slopes(model, each) for each in (total, only, alone)), strict=True):
        assert torch.equal(found, wanted)
        torch.testing.assert_close(found, same, rtol=1e-12, atol=1e-15)
    assert channels["sdpo"] == Channel(0.0, None, "alpha_sdpo is 0")
    assert channels["replay"] == Channel(0.0, None, "beta_replay is 0")
    assert [record.getMessage() for record in caplog.records] == [
        "channel sdpo is off: alpha_sdpo is 0",
        "channel replay is off: beta_replay is 0",
    ]


def test_the_model_is_called_for_channels_that_are_on_and_without_gradients_on_hints(model: Any) -> None:
    calls = []

    def watched(**given: Tensor) -> Any:
        calls.append((tuple(given["input_ids"].shape), torch.is_grad_enabled()))
        return model(**given)

    for alpha, beta, wanted in (
        (0, 0, [((2, 5), True)]),
        (1, 0, [((2, 5), True), ((2, 5), True), ((2, 8), False)]),
        (0, 1, [((2, 5), True), ((2, 4), True), ((2, 3), True)]),
    ):
        calls.clear()
        compose_loss(watched, batch(), alpha, beta)
        assert calls == wanted


def test_without_rollouts_grpo_is_off_and_says_so(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    given = {name: value for name, value in batch().items() if "_" in name and not name.startswith("at")}
    given = {name: value for name, value in given.items() if name not in ("input_ids", "response_mask")}
    with caplog.at_level(logging.INFO, logger="tracemill.train.compose"):
        total, channels = compose_loss(model, given, 0.0, 2.0)
    assert channels["grpo"] == Channel(1.0, None, "no rollouts in the batch")
    assert channels["replay"].loss is not None
    assert total.item() == 2 * channels["replay"].loss.item()
    assert "channel grpo is off: no rollouts in the batch" in caplog.messages
    with pytest.raises(
        ValueError, match=r"Every channel is off \(no rollouts.*; there is nothing to learn\."
    ):
        compose_loss(model, given, 0.0, 0.0)


def test_old_log_probabilities_belong_to_the_tokens_at_their_positions(model: Any) -> None:
    given = batch()
    old = torch.full(given["input_ids"].shape, math.nan, dtype=torch.float64)
    moved = []
    for row, (context, said) in enumerate(ROLLOUTS):
        logps = logps_of(model, context, said).detach()
        shifts = 0.1 * torch.arange(1, len(said) + 1)
        old[row, len(context) : len(context) + len(said)] = logps - shifts
        advantage = (1.0, -0.5)[row]
        ratio = shifts.exp()
        clipped = ratio.clamp(0.8, 1.28)
        moved.append(-torch.minimum(ratio * advantage, clipped * advantage))
    total, _ = compose_loss(model, given | {"old_log_probs": old}, 0, 0)
    assert total.item() == pytest.approx(torch.cat(moved).mean().item(), rel=1e-6)
    by_token = given["advantages"][:, None].expand(given["input_ids"].shape)
    again, _ = compose_loss(model, given | {"old_log_probs": old, "advantages": by_token}, 0, 0)
    assert again.item() == total.item()


def test_each_wrapper_takes_the_aligned_logits(model: Any) -> None:
    student, hinted = aligned_by_hand(model, model)
    wanted = {
        "taid": taid_loss(student, hinted, 0.4),
        "entropy_opd": entropy_mix_loss(student, hinted, h_max=2.0),
        "none": generalized_jsd_loss(student, hinted, mask=torch.ones(4)),
    }
    for wrapper, loss in wanted.items():
        _, channels = compose_loss(
            model, batch(), 1.0, 0.0, sdpo_wrapper=wrapper, taid_t=0.4, entropy_opd_h_max=2.0
        )
        assert channels["sdpo"].loss.item() == pytest.approx(loss.item(), rel=1e-10), wrapper


def test_simpo_takes_averaged_log_probabilities_and_no_reference(model: Any) -> None:
    given = {name: value for name, value in batch().items() if not name.startswith("reference")}
    _, channels = compose_loss(model, given, 0, 1.0, "simpo", simpo_beta=2.5, simpo_gamma=0.5)
    margins = [
        2.5 * (logps_of(model, *chosen).mean() - logps_of(model, *rejected).mean()) - 0.5
        for chosen, rejected in zip(CHOSEN, REJECTED, strict=True)
    ]
    wanted = torch.nn.functional.softplus(-torch.stack(margins)).mean().item()
    assert channels["replay"].loss.item() == pytest.approx(wanted, rel=1e-10)


def test_masks_without_a_token_give_0_with_zero_gradients(model: Any) -> None:
    given = batch()
    given |= {name: torch.zeros_like(value) for name, value in given.items() if "response_mask" in name}
    for wrapper in ("none", "taid", "entropy_opd"):
        for variant in ("dpo", "simpo"):
            total, _ = compose_loss(model, given, 1.0, 1.0, variant, wrapper, taid_t=0.5)
            assert total.item() == 0
            assert max(slope.abs().max().item() for slope in slopes(model, total)) == 0


def test_pairs_that_are_padding_do_not_count(model: Any) -> None:
    given = batch()
    _, channels = compose_loss(model, given, 0, 1.0)
    padded = {
        name: torch.cat([value, torch.zeros_like(value[:1])])
        for name, value in given.items()
        if name.startswith(("chosen", "rejected", "reference"))
    }
    _, more = compose_loss(model, padded, 0, 1.0)
    assert more["replay"].loss.item() == pytest.approx(channels["replay"].loss.item(), rel=1e-12)


def test_a_channel_that_is_on_and_lacks_a_field_names_it(model: Any) -> None:
    for field, alpha, beta, name in (
        ("advantages", 0, 0, "grpo"),
        ("hinted_response_mask", 1, 0, "sdpo"),
        ("rejected_input_ids", 0, 1, "replay"),
        ("reference_rejected_logps", 0, 1, "replay"),
    ):
        given: dict[str, Any] = batch() | {field: None}
        with pytest.raises(ValueError, match=r"\.$") as caught:
            compose_loss(model, given, alpha, beta)
        assert str(caught.value) == f"Channel {name} is on and the batch lacks {field}; give them all."


def test_bad_input_is_one_sentence(model: Any) -> None:
    whole = batch()
    other = rows([([1, 2, 20, 21, 22], [10, 11, 12]), ([20, 3, 4, 5], [14])], "hinted_")
    first = whole["response_mask"].clone()
    first[0, 0] = 1
    behind = whole["response_mask"].clone()
    behind[1, 4] = 1
    ids = whole["chosen_input_ids"]
    empty = {"rejected_response_mask": whole["rejected_response_mask"] * tensor([[1], [0]])}
    zeros = dict.fromkeys(("reference_chosen_logps", "reference_rejected_logps"), torch.zeros(2))
    for changes, said in (
        (other, "The responses of row 1 differ after the student's and the hinted context."),
        ({"response_mask": first}, "response_mask has a first token, which no logits are of; a context must"),
        ({"response_mask": behind}, "response_mask has tokens that attention_mask leaves out."),
        ({"response_mask": 2 * first}, "response_mask must hold 0 and 1 only."),
        ({"chosen_input_ids": ids[:, 1:]}, "Shapes differ: chosen_input_ids [2, 3], chosen_attention_mask"),
        (empty, "One side of pair 1 has no response token; both must have some, or none."),
        (zeros, "Reference log probabilities are all 0; give those of the reference model."),
        ({"reference_chosen_logps": tensor([-1.0, 2.0])}, "reference_chosen_logps must hold log probabil"),
        ({"reference_chosen_logps": tensor([-1.0])}, "reference_chosen_logps has shape [1]; it must be [2]."),
        ({"advantages": torch.zeros(2, 4)}, "advantages has shape [2, 4]; it must be [2] or [2, 5]."),
        ({"advantages": torch.zeros(3)}, "advantages has shape [3]; it must be [2] or [2, 5]."),
    ):
        with pytest.raises(ValueError, match=r"\.$") as caught:
            compose_loss(model, whole | changes, 1.0, 1.0)
        assert str(caught.value).startswith(said)
    for settings, said in (
        ({"dpo_variant": "ipo"}, "dpo_variant is 'ipo'; it must be 'dpo' or 'simpo'."),
        ({"sdpo_wrapper": "opd"}, "sdpo_wrapper is 'opd'; it must be 'none', 'taid' or 'entropy_opd'."),
        ({"sdpo_wrapper": "taid"}, "sdpo_wrapper is 'taid', and taid_t is missing; give t, such as"),
        ({"alpha_sdpo": -1.0}, "alpha_sdpo is -1.0; it must be 0 or more, and finite."),
        ({"beta_replay": math.nan}, "beta_replay is nan; it must be 0 or more, and finite."),
    ):
        with pytest.raises(ValueError, match=r"\.$") as caught:
            compose_loss(model, whole, **{"alpha_sdpo": 1.0, "beta_replay": 1.0, **settings})
        assert str(caught.value).startswith(said)
