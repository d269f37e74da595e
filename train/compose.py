"""Sum of three losses: GRPO on rollouts, self-distillation from hints, and preference pairs."""

# pyright: reportMissingImports=false

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from tracemill.train.losses.entropy_aware import entropy_mix_loss
from tracemill.train.losses.generalized_jsd import generalized_jsd_loss
from tracemill.train.losses.policy import LossType, grpo_loss
from tracemill.train.losses.preference import dpo_loss, simpo_loss
from tracemill.train.losses.taid import taid_loss
from tracemill.train.losses.tensor_checks import as_keep_or_all, check_choice, check_same_shape
from tracemill.train.losses.token_log_probs import token_log_probs

_TEXT = ("input_ids", "attention_mask", "response_mask")
ROLLOUT = (*_TEXT, "advantages")
HINTS = tuple(f"{side}_{name}" for side in ("student", "hinted") for name in _TEXT)
PAIRS = tuple(f"{side}_{name}" for side in ("chosen", "rejected") for name in _TEXT)
REFERENCE = ("reference_chosen_logps", "reference_rejected_logps")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Channel:
    """The weight of one channel and its unweighted loss; `off` is the reason if it has none."""

    weight: float
    loss: Tensor | None
    off: str | None = None


def compose_loss(
    model: Callable[..., Any],
    batch: Mapping[str, Tensor | None],
    alpha_sdpo: float,
    beta_replay: float,
    dpo_variant: Literal["dpo", "simpo"] = "dpo",
    sdpo_wrapper: Literal["none", "taid", "entropy_opd"] = "none",
    taid_t: float | None = None,
    entropy_opd_h_max: float | None = None,
    simpo_beta: float = 2.0,
    simpo_gamma: float = 1.0,
    *,
    dpo_beta: float = 0.1,
    jsd_beta: float = 0.5,
    jsd_temperature: float = 1.0,
    jsd_token_clip: float | None = None,
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.28,
    loss_type: LossType = "dapo",
    num_items_in_batch: float | Tensor | None = None,
    max_completion_length: int | None = None,
) -> tuple[Tensor, dict[str, Channel]]:
    """Return grpo + alpha_sdpo sdpo + beta_replay replay, and the channels "grpo", "sdpo", "replay" by name.

    model: called with `input_ids` and `attention_mask`, gives an object with `logits`, `[B, L, V]`. batch,
    where every mask is 0 or 1 and the logits at position i - 1 are of the token at i:

        input_ids, attention_mask, response_mask    `[B, L]`, rollouts of the model
        advantages                                  `[B]` or `[B, L]`
        old_log_probs                               `[B, L]`, of the token at i when it was sampled, in nats;
                                                    without it the ratio is 1: rollouts of the model as it is
        student_input_ids, student_...              `[S, Ls]`, three tensors: responses after their context
        hinted_input_ids, hinted_...                `[S, Lh]`, the same responses after a context with a hint
        chosen_input_ids, chosen_...                `[P, Lc]`, chosen sides
        rejected_input_ids, rejected_...            `[P, Lr]`, rejected sides
        reference_chosen_logps                      `[P]`, log probability of chosen sides by the reference
                                                    model, summed over response tokens, in nats ("dpo" alone)
        reference_rejected_logps                    `[P]`, the same of the rejected sides

    grpo is `grpo_loss` with the settings that it has here. sdpo compares the logits of the n-th response
    token of both contexts, which may differ in length but not in response; the hinted side is a constant, by
    the same model. Its mean over response tokens is that of `generalized_jsd_loss` (sdpo_wrapper "none"),
    `taid_loss` at taid_t ("taid") or `entropy_mix_loss` with entropy_opd_h_max ("entropy_opd"). replay is
    `dpo_loss` of summed, or `simpo_loss` of averaged log probabilities, over pairs that have response
    tokens.

    A channel is off if its weight is 0 (then the model is not called for it) or, for GRPO, if the batch has
    none of its inputs; its `off` and the log say so. Raises ValueError if a channel is on and lacks a field,
    and if every channel is off. With both weights 0 the total equals the GRPO loss bit by bit. Losses in
    channels are detached.
    """
    check_choice("dpo_variant", dpo_variant, ("dpo", "simpo"))
    check_choice("sdpo_wrapper", sdpo_wrapper, ("none", "taid", "entropy_opd"))
    if sdpo_wrapper == "taid" and alpha_sdpo and taid_t is None:
        raise ValueError("sdpo_wrapper is 'taid', and taid_t is missing; give t, such as TAIDScheduler.t.")
    fields = {"grpo": ROLLOUT, "sdpo": HINTS, "replay": PAIRS + (REFERENCE if dpo_variant == "dpo" else ())}
    off = _channels_off(batch, alpha_sdpo, beta_replay, fields)
    tensors = {name: tensor for name, tensor in batch.items() if tensor is not None}

    def distil() -> Tensor:
        student, hinted = _aligned_logits(model, tensors)
        if sdpo_wrapper == "taid" and taid_t is not None:
            return taid_loss(student, hinted, taid_t)
        if sdpo_wrapper == "entropy_opd":
            return entropy_mix_loss(student, hinted, h_max=entropy_opd_h_max)
        return generalized_jsd_loss(
            student, hinted, beta=jsd_beta, temperature=jsd_temperature, token_clip=jsd_token_clip
        )

    def prefer() -> Tensor:
        chosen, rejected, counted = pair_log_probs(model, tensors, average=dpo_variant == "simpo")
        if dpo_variant == "simpo":
            return simpo_loss(chosen, rejected, simpo_beta, simpo_gamma)
        return dpo_loss(chosen, rejected, *_references(tensors, counted), dpo_beta)

    clip = {"epsilon_low": epsilon_low, "epsilon_high": epsilon_high}
    counts = {"num_items_in_batch": num_items_in_batch, "max_completion_length": max_completion_length}
    losses: dict[str, tuple[float, Callable[[], Tensor]]] = {
        "grpo": (1.0, lambda: _grpo(model, tensors, loss_type=loss_type, **clip, **counts)),
        "sdpo": (alpha_sdpo, distil),
        "replay": (beta_replay, prefer),
    }
    channels, weighted = dict[str, Channel](), list[Tensor]()
    for name, (weight, compute) in losses.items():
        if name in off:
            _log.info("channel %s is off: %s", name, off[name])
            channels[name] = Channel(weight, None, off[name])
        else:
            loss = compute()
            weighted.append(weight * loss)
            channels[name] = Channel(weight, loss.detach())
    return sum(weighted[1:], start=weighted[0]), channels


def _channels_off(
    batch: Mapping[str, Tensor | None],
    alpha_sdpo: float,
    beta_replay: float,
    fields: Mapping[str, tuple[str, ...]],
) -> dict[str, str]:
    """Return the channels that are off, with the reason.

    Raises ValueError for a weight below 0, if all are off, and if one that is on lacks one of its `fields`.
    """
    off: dict[str, str] = {}
    if all(batch.get(name) is None for name in ROLLOUT):
        off["grpo"] = "no rollouts in the batch"
    for channel, name, weight in (("sdpo", "alpha_sdpo", alpha_sdpo), ("replay", "beta_replay", beta_replay)):
        if not 0 <= weight < float("inf"):
            raise ValueError(f"{name} is {weight}; it must be 0 or more, and finite.")
        if weight == 0:
            off[channel] = f"{name} is 0"
    if len(off) == len(fields):
        raise ValueError(f"Every channel is off ({'; '.join(off.values())}); there is nothing to learn.")
    for channel, names in fields.items():
        missing = [name for name in names if batch.get(name) is None]
        if channel not in off and missing:
            raise ValueError(
                f"Channel {channel} is on and the batch lacks {', '.join(missing)}; give them all."
            )
    return off


def _response_mask(batch: Mapping[str, Tensor], prefix: str) -> Tensor:
    """Return where the responses are, `[B, L]`, after checks of the three tensors of one side."""
    names = [f"{prefix}{name}" for name in ("input_ids", "attention_mask", "response_mask")]
    check_same_shape({name: batch[name] for name in names})
    ids, attention, response = (batch[name] for name in names)
    if ids.ndim != 2:
        raise ValueError(f"{names[0]} has shape {list(ids.shape)}; it must be [B, L].")
    keep = as_keep_or_all(response, ids, names[2])
    attended = as_keep_or_all(attention, ids, names[1])
    if (keep & ~attended).any():
        raise ValueError(f"{names[2]} has tokens that {names[1]} leaves out.")
    if keep[:, :1].any():
        raise ValueError(f"{names[2]} has a first token, which no logits are of; a context must come before.")
    return keep


def _logits(model: Callable[..., Any], batch: Mapping[str, Tensor], prefix: str) -> Tensor:
    """Return the logits of the token at every position but the first, `[B, L - 1, V]`."""
    ids, attended = batch[f"{prefix}input_ids"], batch[f"{prefix}attention_mask"]
    return model(input_ids=ids, attention_mask=attended).logits[:, :-1]


def _grpo(model: Callable[..., Any], batch: Mapping[str, Tensor], **settings: Any) -> Tensor:
    keep = _response_mask(batch, "")
    old, advantages = batch.get("old_log_probs"), batch["advantages"]
    check_same_shape({"input_ids": batch["input_ids"], "old_log_probs": old})
    if advantages.shape not in (keep.shape, keep.shape[:1]):
        expected = f"{list(keep.shape[:1])} or {list(keep.shape)}"
        raise ValueError(f"advantages has shape {list(advantages.shape)}; it must be {expected}.")
    if advantages.ndim == 2:
        advantages = advantages[:, 1:]
    now = token_log_probs(_logits(model, batch, ""), batch["input_ids"][:, 1:], keep[:, 1:])
    return grpo_loss(now, None if old is None else old[:, 1:], advantages, keep[:, 1:], **settings)


def _aligned_logits(model: Callable[..., Any], batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the logits of the response tokens in both contexts, `[tokens, V]` each, in one order."""
    sides = ("student_", "hinted_")
    keeps = [_response_mask(batch, side) for side in sides]
    if len(keeps[0]) != len(keeps[1]):
        raise ValueError(f"Contexts differ: {len(keeps[0])} of the student and {len(keeps[1])} with a hint.")
    responses = [batch[f"{side}input_ids"][keep] for side, keep in zip(sides, keeps, strict=True)]
    counts = [keep.sum(1) for keep in keeps]
    if not torch.equal(counts[0], counts[1]) or not torch.equal(responses[0], responses[1]):
        row = next(
            number
            for number, (student, hinted) in enumerate(zip(*keeps, strict=True))
            if not torch.equal(
                batch["student_input_ids"][number][student], batch["hinted_input_ids"][number][hinted]
            )
        )
        raise ValueError(f"The responses of row {row} differ after the student's and the hinted context.")
    student = _logits(model, batch, "student_")[keeps[0][:, 1:]]
    with torch.no_grad():
        hinted = _logits(model, batch, "hinted_")[keeps[1][:, 1:]]
    return student, hinted


def pair_log_probs(
    model: Callable[..., Any], batch: Mapping[str, Tensor], average: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log probability of both sides of each pair that counts, `[n]`, and which do, `[P]`.

    A pair counts if its sides have response tokens. The values are sums over these in nats, or means
    (`average`).
    """
    sides = ("chosen_", "rejected_")
    keeps = [_response_mask(batch, side)[:, 1:] for side in sides]
    if len(keeps[0]) != len(keeps[1]):
        raise ValueError(f"Pairs differ: {len(keeps[0])} chosen sides and {len(keeps[1])} rejected ones.")
    counts = [keep.sum(1) for keep in keeps]
    counted = counts[0] > 0
    if not torch.equal(counted, counts[1] > 0):
        row = int((counted != (counts[1] > 0)).nonzero()[0])
        raise ValueError(f"One side of pair {row} has no response token; both must have some, or none.")
    logps = []
    for side, keep, count in zip(sides, keeps, counts, strict=True):
        ids = batch[f"{side}input_ids"][:, 1:]
        summed = token_log_probs(_logits(model, batch, side), ids, keep).sum(1)[counted]
        logps.append(summed / count[counted] if average else summed)
    return logps[0], logps[1], counted


def _references(batch: Mapping[str, Tensor], counted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log probabilities of the reference model of each pair that counts, `[n]` each."""
    references = []
    for name in REFERENCE:
        if batch[name].shape != counted.shape:
            raise ValueError(f"{name} has shape {list(batch[name].shape)}; it must be {list(counted.shape)}.")
        logps = batch[name][counted]
        if not (logps.isfinite() & (logps <= 0)).all():
            raise ValueError(f"{name} must hold log probabilities: finite, and 0 or less.")
        references.append(logps)
    if len(references[0]) and not torch.cat(references).any():
        raise ValueError("Reference log probabilities are all 0; give those of the reference model.")
    return references[0], references[1]
