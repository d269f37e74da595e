"""Policy-gradient losses of sampled tokens: GRPO and its variants, DAPO's parts, prime-rl's DPPO mask."""

# pyright: reportMissingImports=false

from typing import Literal, get_args

import torch
from torch import Tensor

from tracemill.train.losses.tensor_checks import (
    as_keep_or_all,
    check_choice,
    check_same_shape,
    full_precision,
)

LossType = Literal["grpo", "bnpo", "dr_grpo", "dapo", "cispo"]
ImportanceMode = Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]


def grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor | None,
    advantages: Tensor,
    mask: Tensor | None = None,
    *,
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.28,
    delta: float | None = None,
    loss_type: LossType = "dapo",
    importance_level: Literal["token", "sequence"] = "token",
    num_items_in_batch: float | Tensor | None = None,
    max_completion_length: int | None = None,
    ref_log_probs: Tensor | None = None,
    kl_beta: float = 0.0,
) -> Tensor:
    """Return the clipped policy loss of sampled tokens.

    With r = exp(log_probs - old_log_probs) and advantage A, of a token:

        -min(min(r, delta) A, clamp(r, 1 - epsilon_low, 1 + epsilon_high) A)
        loss_type "cispo":  -sg(min(r, epsilon_high)) A log_probs

    plus kl_beta (exp(d) - d - 1), d = ref_log_probs - log_probs. log_probs, old_log_probs: `[B, T]`, log
    probability of each sampled token now and when it was sampled, in nats; None for old_log_probs takes
    log_probs as a constant, so that r is 1. advantages: `[B]` or `[B, T]`. mask: `[B, T]`, 0 for a token that
    does not count. importance_level "sequence" puts the row's geometric mean of r (GSPO) in the place of r.
    delta caps r from above where A is negative. The mean of token losses l:

        "grpo"           mean over all B rows of the row's mean over kept tokens
        "bnpo"           sum / count of kept tokens
        "dr_grpo"        sum / (B x max_completion_length)
        "dapo", "cispo"  sum / num_items_in_batch, the count of kept tokens where it is None

    No kept token: 0 with zero gradients.

    Sources: GRPO (https://arxiv.org/abs/2402.03300); DAPO (https://arxiv.org/abs/2503.14476): asymmetric clip
    and token-level mean; Dr. GRPO (https://arxiv.org/abs/2503.20783); CISPO
    (https://arxiv.org/abs/2506.13585); GSPO (https://arxiv.org/abs/2507.18071).
    """
    check_same_shape({"log_probs": log_probs, "old_log_probs": old_log_probs, "ref_log_probs": ref_log_probs})
    if log_probs.ndim != 2:
        raise ValueError(f"log_probs has shape {list(log_probs.shape)}; it must be [B, T].")
    check_choice("loss_type", loss_type, get_args(LossType))
    check_choice("importance_level", importance_level, ("token", "sequence"))
    if loss_type == "dr_grpo" and not max_completion_length:
        raise ValueError("max_completion_length is missing; loss_type 'dr_grpo' divides by it.")
    if kl_beta and ref_log_probs is None:
        raise ValueError("ref_log_probs is missing; kl_beta other than 0 needs it.")
    keep = as_keep_or_all(mask, log_probs)
    advantage = _by_token(advantages, keep)
    now = _kept(log_probs, keep)
    old = now.detach() if old_log_probs is None else _kept(old_log_probs.detach(), keep)
    counts = keep.sum(-1)
    log_ratio = now - old
    if importance_level == "sequence":
        log_ratio = (log_ratio.sum(-1) / counts.clamp(min=1))[:, None]
    ratio = log_ratio.exp()
    if loss_type == "cispo":
        losses = -ratio.clamp(max=epsilon_high).detach() * advantage * now
    else:
        clipped = ratio.clamp(1 - epsilon_low, 1 + epsilon_high)
        capped = ratio if delta is None else ratio.clamp(max=delta)
        losses = -torch.min(capped * advantage, clipped * advantage)
    if kl_beta and ref_log_probs is not None:
        difference = _kept(ref_log_probs.detach(), keep) - now
        losses = losses + kl_beta * (difference.exp() - difference - 1)
    losses = torch.where(keep, losses, 0)
    if loss_type == "grpo":
        return (losses.sum(-1) / counts.clamp(min=1)).sum() / max(len(losses), 1)
    if loss_type == "dr_grpo":
        return losses.sum() / (max(len(losses), 1) * (max_completion_length or 1))
    if loss_type == "bnpo" or num_items_in_batch is None:
        return losses.sum() / counts.sum().clamp(min=1)
    return losses.sum() / torch.as_tensor(num_items_in_batch).clamp(min=1)


def dppo_loss(
    trainer_log_probs: Tensor,
    inference_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor | None = None,
    loss_weights: Tensor | None = None,
    *,
    dppo_mask_low: float = 0.2,
    dppo_mask_high: float = 0.2,
    adv_tau: float = 1.0,
    kl_tau: float = 1e-3,
) -> Tensor:
    """Return prime-rl's policy loss, a *sum* over kept tokens: divide it by the tokens of the whole batch.

    With trainer's log probability a, inference's b, r = exp(a - b) and the difference of probabilities
    d = exp(a) - exp(b), of a token:

        w (-k adv_tau A r + kl_tau (a - b)^2)

    k is 0 if the token moved too far in the direction of its advantage: d > dppo_mask_high where A > 0, d
    < -dppo_mask_low where A <= 0; else 1. Gradients flow through r and a - b, not through k. All tensors have
    one shape, in nats; mask: 0 for a token that does not count; w: loss_weights, 1 where None. No kept token:
    0 with zero gradients.

    Source: https://github.com/PrimeIntellect-ai/prime-rl, default loss of the trainer (0.8.0).
    """
    tensors = {
        "trainer_log_probs": trainer_log_probs,
        "inference_log_probs": inference_log_probs,
        "advantages": advantages,
        "loss_weights": loss_weights,
    }
    check_same_shape(tensors)
    keep = as_keep_or_all(mask, trainer_log_probs)
    now, old = _kept(trainer_log_probs, keep), _kept(inference_log_probs.detach(), keep)
    advantage = _kept(advantages.detach(), keep)
    moved = (now.exp() - old.exp()).detach()
    too_far = torch.where(advantage > 0, moved > dppo_mask_high, moved < -dppo_mask_low)
    log_ratio = now - old
    gain = torch.where(too_far, 0, adv_tau * advantage * log_ratio.exp())
    losses = kl_tau * log_ratio.square() - gain
    if loss_weights is not None:
        losses = losses * _kept(loss_weights.detach(), keep)
    return torch.where(keep, losses, 0).sum()


def shape_advantages(
    advantages: Tensor,
    hinted_log_probs: Tensor,
    log_probs: Tensor,
    mask: Tensor | None = None,
    *,
    grpo_share: float,
) -> Tensor:
    """Return the advantage of each sampled token, `[B, T]`: part GRPO's, part from the hint.

        grpo_share A + (1 - grpo_share) (hinted_log_probs - log_probs)

    advantages: `[B]` or `[B, T]`. hinted_log_probs, log_probs: `[B, T]`, log probability of each sampled
    token by the same model after a context with a hint, and after the context it was sampled in, in nats.
    mask: `[B, T]`, 0 for a token that does not count, whose advantage is 0. grpo_share: the lambda of the
    paper, 0 to 1. The second part is the advantage whose policy gradient is that of -KL(student || hinted).

    Source: SDPO (https://arxiv.org/abs/2601.20802).
    """
    check_same_shape({"log_probs": log_probs, "hinted_log_probs": hinted_log_probs})
    if log_probs.ndim != 2:
        raise ValueError(f"log_probs has shape {list(log_probs.shape)}; it must be [B, T].")
    if not 0 <= grpo_share <= 1:
        raise ValueError(f"grpo_share is {grpo_share}; it must be between 0 and 1.")
    keep = as_keep_or_all(mask, log_probs)
    told = _kept(hinted_log_probs.detach(), keep) - _kept(log_probs.detach(), keep)
    return grpo_share * _by_token(advantages, keep) + (1 - grpo_share) * told


def importance_weights(
    log_probs: Tensor,
    sampling_log_probs: Tensor,
    mask: Tensor | None = None,
    *,
    mode: ImportanceMode = "token_truncate",
    cap: float = 3.0,
) -> Tensor:
    """Return the constant that corrects the loss of each token for who sampled it, `[B, T]`.

    With r = exp(log_probs - sampling_log_probs) of a token, or of the sums over a row's kept tokens:

        "token_truncate", "sequence_truncate"   min(r, cap)
        "token_mask", "sequence_mask"           r, and 0 where r > cap

    log_probs, sampling_log_probs: `[B, T]`, log probability of each sampled token by the model that learns,
    and by what sampled it, in nats; where the second is NaN the token has r = 1. mask: `[B, T]`, 0 for a
    token that does not count, whose weight is 1.

    Source: truncated importance sampling as in TRL 1.16, `vllm_importance_sampling_mode`.
    """
    check_same_shape({"log_probs": log_probs, "sampling_log_probs": sampling_log_probs})
    if log_probs.ndim != 2:
        raise ValueError(f"log_probs has shape {list(log_probs.shape)}; it must be [B, T].")
    check_choice("mode", mode, get_args(ImportanceMode))
    if not cap > 0:
        raise ValueError(f"cap is {cap}; it must be above 0.")
    keep = as_keep_or_all(mask, log_probs) & ~sampling_log_probs.isnan()
    log_ratio = _kept(log_probs.detach(), keep) - _kept(sampling_log_probs.detach(), keep)
    if mode.startswith("sequence"):
        log_ratio = log_ratio.sum(-1, keepdim=True).expand(keep.shape)
    ratio = log_ratio.exp()
    weights = ratio.clamp(max=cap) if mode.endswith("truncate") else ratio.where(ratio <= cap, 0)
    return weights.where(as_keep_or_all(mask, log_probs), 1)


def overlong_penalty(lengths: Tensor, max_length: int, cache_length: int) -> Tensor:
    """Return the penalty that DAPO adds to the reward of each long response, 0 to -1.

    0 up to max_length - cache_length tokens, then falling linearly to -1 at max_length, and -1 above it:

        clamp((max_length - cache_length - length) / cache_length, -1, 0)

    lengths: `[B]`, in tokens. With cache_length 0, -1 above max_length.

    Source: DAPO (https://arxiv.org/abs/2503.14476), soft overlong punishment.
    """
    if not 0 <= cache_length <= max_length:
        raise ValueError(
            f"cache_length is {cache_length}; it must be between 0 and max_length, {max_length}."
        )
    over = (lengths - (max_length - cache_length)).to(torch.get_default_dtype())
    if cache_length == 0:
        return -(over > 0).to(over.dtype)
    return -(over / cache_length).clamp(0, 1)


def dynamic_sampling_mask(rewards: Tensor, groups: Tensor) -> Tensor:
    """Return which responses DAPO's dynamic sampling keeps, booleans `[B]`.

    A response is kept where the rewards of its group are not all equal: others have advantage 0. With rewards
    of 0 and 1 that is 0 < correct responses < size of the group. rewards: `[B]`; groups: `[B]`, integers, one
    for each prompt, in any order.

    Source: DAPO (https://arxiv.org/abs/2503.14476), dynamic sampling. Drawing more prompts until a batch is
    full is for the trainer.
    """
    check_same_shape({"rewards": rewards, "groups": groups})
    if rewards.ndim != 1:
        raise ValueError(f"rewards has shape {list(rewards.shape)}; it must be [B].")
    if not rewards.isfinite().all():
        raise ValueError("rewards has entries that are not finite.")
    same = groups[:, None] == groups[None, :]
    return (same & (rewards[:, None] != rewards[None, :])).any(1)


def _kept(values: Tensor, keep: Tensor) -> Tensor:
    """Return values with 0 for tokens that do not count, even if these are NaN."""
    return torch.where(keep, full_precision(values), 0)


def _by_token(advantages: Tensor, keep: Tensor) -> Tensor:
    """Return advantages `[B]` or `[B, T]` as `[B, T]`, constants."""
    if advantages.shape == keep.shape[:1]:
        advantages = advantages[:, None].expand(keep.shape)
    if advantages.shape != keep.shape:
        expected = f"{list(keep.shape[:1])} or {list(keep.shape)}"
        raise ValueError(f"advantages has shape {list(advantages.shape)}; it must be {expected}.")
    return _kept(advantages.detach(), keep)
