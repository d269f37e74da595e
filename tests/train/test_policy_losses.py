"""DPO, SimPO, GRPO with DAPO's pieces, and DPPO: numbers worked out by hand, masks, bad input."""

import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from torch import Tensor, tensor  # noqa: E402

from tracemill.train.losses.policy import (  # noqa: E402
    dppo_loss,
    dynamic_sampling_mask,
    grpo_loss,
    overlong_penalty,
)
from tracemill.train.losses.preference import dpo_loss, simpo_loss  # noqa: E402

pytestmark = pytest.mark.slow  # as all that needs PyTorch
POLICY: dict[str, Callable[..., Tensor]] = {
    "dppo": lambda now, old, advantages, mask: dppo_loss(now, old, advantages, mask),
    **{
        name: lambda now, old, advantages, mask, name=name: grpo_loss(
            now, old, advantages, mask, loss_type=name, max_completion_length=8
        )
        for name in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo")
    },
}


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_dpo_starts_at_log_2_and_counts_what_moved_against_the_reference() -> None:
    chosen, rejected = tensor([-10.0, -4.0]), tensor([-12.0, -3.0])
    assert dpo_loss(chosen, rejected, chosen, rejected).item() == pytest.approx(math.log(2))
    # Margins: 0.1 ((-10 + 12) - (-12 + 11)) = 0.3 and 0.1 ((-4 + 4) - (-3 + 5)) = -0.2.
    each = dpo_loss(chosen, rejected, tensor([-12.0, -4.0]), tensor([-11.0, -5.0]), 0.1, reduction="none")
    assert each.tolist() == pytest.approx([softplus(-0.3), softplus(0.2)])
    mean = dpo_loss(chosen, rejected, tensor([-12.0, -4.0]), tensor([-11.0, -5.0]), 0.1)
    assert mean.item() == pytest.approx((softplus(-0.3) + softplus(0.2)) / 2)


def test_dpo_has_no_gradient_to_the_reference() -> None:
    sides = [torch.randn(3, requires_grad=True) for _ in range(4)]
    dpo_loss(*sides).backward()
    assert [side.grad is None for side in sides] == [False, False, True, True]


def test_simpo_is_zero_margin_at_gamma_over_beta() -> None:
    chosen, rejected = tensor([-0.5]), tensor([-1.0])
    # 2 x 0.5 - 1 = 0: the sides are as far apart as gamma wants.
    assert simpo_loss(chosen, rejected, 2.0, 1.0).item() == pytest.approx(math.log(2))
    assert simpo_loss(chosen, rejected, 2.0, 0.0).item() == pytest.approx(softplus(-1.0))
    assert simpo_loss(chosen, rejected, 4.0, 1.5).item() == pytest.approx(softplus(-0.5))
    assert simpo_loss(chosen, rejected).item() == simpo_loss(chosen, rejected, 2.0, 1.0).item()
    smooth = 0.9 * softplus(-1.0) + 0.1 * softplus(1.0)
    assert simpo_loss(chosen, rejected, 2.0, 0.0, label_smoothing=0.1).item() == pytest.approx(smooth)
    # AlphaPO: rewards (1 - exp(0.5)) and (1 - exp(1)) at alpha 1.
    apart = math.e - math.exp(0.5)
    assert simpo_loss(chosen, rejected, 2.0, 1.0, alpha=1.0).item() == pytest.approx(softplus(1 - 2 * apart))


def test_no_pair_gives_0_and_bad_input_is_one_sentence() -> None:
    none = torch.zeros(0, requires_grad=True)
    for loss in (dpo_loss(none, none, none, none), simpo_loss(none, none)):
        assert loss.item() == 0
        loss.backward()
    with pytest.raises(
        ValueError, match=r"Shapes differ: chosen_logps \[2\], rejected_logps \[3\]; they must"
    ):
        simpo_loss(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match="reference_rejected_logps"):
        dpo_loss(torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.zeros(1))
    for given in ({"beta": 0.0}, {"label_smoothing": 0.6}, {"reduction": "x"}):
        with pytest.raises(ValueError, match=r"\.$"):
            simpo_loss(torch.zeros(2), torch.zeros(2), **given)
    assert simpo_loss(tensor([math.nan]), tensor([-1.0])).isnan()


@pytest.mark.parametrize("name", POLICY)
def test_tokens_that_do_not_count_have_no_effect_and_an_empty_mask_gives_0(name: str) -> None:
    torch.manual_seed(0)
    now, old = (-torch.rand(2, 4, dtype=torch.float64) for _ in range(2))
    mask = tensor([[1, 1, 0, 0], [0, 1, 1, 1]])
    advantages = torch.randn(2, 4, dtype=torch.float64)
    leaf = now.clone().requires_grad_()
    wanted = POLICY[name](leaf, old, advantages, mask)
    broken = [torch.where(mask == 1, each, math.nan) for each in (now, old, advantages)]
    broken[0].requires_grad_()
    found = POLICY[name](*broken, mask)
    assert found.item() == wanted.item() != 0
    slopes = [torch.autograd.grad(*each)[0] for each in ((found, broken[0]), (wanted, leaf))]
    assert torch.equal(slopes[0], slopes[1])
    assert slopes[0][mask == 0].abs().max() == 0
    nothing = POLICY[name](leaf, old, advantages, torch.zeros(2, 4))
    assert nothing.item() == 0
    assert torch.autograd.grad(nothing, leaf)[0].abs().max() == 0
    now[0, 0] = math.nan
    assert POLICY[name](now, old, advantages, mask).isnan()


def test_the_clip_is_asymmetric_and_holds_the_gradient() -> None:
    ratios = [1.5, 1.25, 0.7, 1.5, 0.7]
    now = tensor([ratios]).log().requires_grad_()
    advantages = tensor([[1.0, 1.0, 1.0, -1.0, -1.0]])
    loss = grpo_loss(now, torch.zeros(1, 5), advantages, epsilon_low=0.2, epsilon_high=0.28)
    # Clipped above 1.28 where A > 0 and below 0.8 where A < 0; the worse of both otherwise.
    assert loss.item() == pytest.approx(-(1.28 + 1.25 + 0.7 - 1.5 - 0.8) / 5)
    (slope,) = torch.autograd.grad(loss, now)
    assert slope[0].tolist() == pytest.approx([0, -1.25 / 5, -0.7 / 5, 1.5 / 5, 0])
    capped = grpo_loss(now, torch.zeros(1, 5), advantages, delta=1.4)
    assert capped.item() == pytest.approx(-(1.28 + 1.25 + 0.7 - 1.4 - 0.8) / 5)


def test_means_count_tokens_rows_or_a_given_number() -> None:
    now = torch.zeros(2, 3)
    mask = tensor([[1, 1, 1], [1, 0, 0]])
    advantages = tensor([1.0, 4.0])  # token losses -1, -1, -1 and -4

    def found(loss_type: str, **given: object) -> float:
        return grpo_loss(now, None, advantages, mask, loss_type=loss_type, **given).item()

    assert found("dapo") == found("bnpo") == pytest.approx(-7 / 4)
    assert found("dapo", num_items_in_batch=14) == pytest.approx(-7 / 14)
    assert found("grpo") == pytest.approx(-5 / 2)
    assert found("dr_grpo", max_completion_length=10) == pytest.approx(-7 / 20)
    by_token = advantages[:, None].expand(2, 3)
    assert grpo_loss(now, None, by_token, mask).item() == pytest.approx(-7 / 4)


def test_bad_input_of_the_policy_loss_is_one_sentence() -> None:
    now, advantages = torch.zeros(2, 3), torch.zeros(2)
    for given, said in (
        ({"loss_type": "ppo"}, "loss_type is 'ppo'"),
        ({"loss_type": "dr_grpo"}, "max_completion_length is missing"),
        ({"kl_beta": 0.1}, "ref_log_probs is missing"),
        ({"importance_level": "batch"}, "importance_level is 'batch'"),
        ({"mask": torch.ones(2, 4)}, r"mask has shape \[2, 4\]; it must be \[2, 3\]\."),
        ({"old_log_probs": torch.zeros(2, 2)}, r"old_log_probs \[2, 2\]"),
        ({"advantages": torch.zeros(3)}, r"advantages has shape \[3\]; it must be \[2\] or \[2, 3\]\."),
    ):
        with pytest.raises(ValueError, match=said):
            grpo_loss(now, **{"old_log_probs": None, "advantages": advantages, **given})


def test_dppo_drops_tokens_that_moved_too_far_and_sums_the_rest() -> None:
    # Probabilities of the trainer and of inference, and the advantage.
    rows = [
        (0.75, 0.5, 1.0),  # moved up by 0.25 with A > 0: dropped
        (0.75, 0.5, -1.0),  # moved up with A < 0: kept
        (0.25, 0.5, -1.0),  # moved down by 0.25 with A < 0: dropped
        (0.25, 0.5, 0.0),  # A = 0 counts as the low side: dropped
        (0.55, 0.5, 2.0),  # moved up by 0.05: kept
        (0.10, 0.05, 1.0),  # twice as likely, and up by 0.05: kept
    ]
    now, old, advantages = (tensor(column) for column in zip(*rows, strict=True))
    logs = [math.log(trainer / inference) for trainer, inference, _ in rows]
    gains = [0, -1.5, 0, 0, 2 * 1.1, 2.0]
    wanted = sum(1e-3 * log**2 - gain for log, gain in zip(logs, gains, strict=True))
    assert dppo_loss(now.log(), old.log(), advantages).item() == pytest.approx(wanted, rel=1e-6)
    weights = tensor([1.0, 0.0, 1.0, 1.0, 3.0, 0.0])
    parts = [1e-3 * log**2 - gain for log, gain in zip(logs, gains, strict=True)]
    weighted = dppo_loss(now.log(), old.log(), advantages, loss_weights=weights).item()
    assert weighted == pytest.approx(parts[0] + parts[2] + parts[3] + 3 * parts[4], rel=1e-6)
    with pytest.raises(ValueError, match="Shapes differ"):
        dppo_loss(now, old[:2], advantages)


def test_an_overlong_answer_loses_up_to_1() -> None:
    lengths = tensor([10, 80, 81, 90, 100, 101, 1000])
    found = overlong_penalty(lengths, max_length=100, cache_length=20).tolist()
    assert found == pytest.approx([0, 0, -0.05, -0.5, -1, -1, -1])
    assert overlong_penalty(lengths, 100, 0).tolist() == [0, 0, 0, 0, 0, -1, -1]
    with pytest.raises(ValueError, match="cache_length is 200; it must be between 0 and max_length, 100"):
        overlong_penalty(lengths, 100, 200)


def test_groups_of_equal_rewards_are_left_out() -> None:
    rewards = tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    groups = tensor([7, 3, 7, 3, 5, 5, 9])  # 7: all right; 3: one of two; 5: none; 9: alone
    assert dynamic_sampling_mask(rewards, groups).tolist() == [False, True, False, True, False, False, False]
    with pytest.raises(ValueError, match="rewards has entries that are not finite"):
        dynamic_sampling_mask(tensor([math.nan, 1.0]), tensor([0, 0]))
    with pytest.raises(ValueError, match="Shapes differ"):
        dynamic_sampling_mask(rewards, groups[:2])
