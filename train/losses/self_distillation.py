"""SDPO: a model distils its own answers after feedback into its answers without it."""

# pyright: reportMissingImports=false

from typing import Literal, get_args

import torch
from torch import Tensor

from tracemill.train.losses.generalized_jsd import jsd_summands
from tracemill.train.losses.tensor_checks import (
    as_keep,
    as_keep_or_all,
    check_choice,
    check_logits,
    check_shape,
    full_precision,
    kept_rows,
)
from tracemill.train.losses.vocabulary_sums import (
    CHUNK_SIZE,
    at_rows,
    log_normalizers,
    spread_over_tokens,
    sum_over_vocabulary,
)

Mode = Literal["full", "topk_tail", "topk_renorm", "sampled"]
Reduction = Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "none"]
_LARGEST_LOG_RATIO = 20.0
"""Limit of the log of the importance weight, in nats, before `is_clip`."""
_COUNT_OFFSET = 1e-8
"""Added to the number of tokens of a row, as in the code of SDPO."""


def sdpo_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    response_mask: Tensor | None = None,
    *,
    alpha: float = 0.0,
    mode: Mode = "full",
    top_k: int | None = None,
    token_ids: Tensor | None = None,
    old_log_probs: Tensor | None = None,
    is_clip: float | None = None,
    sample_mask: Tensor | None = None,
    rollout_weights: Tensor | None = None,
    reduction: Reduction = "token-mean",
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return the divergence of student q from teacher p over the kept tokens, in nats.

    student_logits: `[B, T, V]`, of the response after the plain context. teacher_logits: `[B, T, V]`, of the
    same tokens after the context with feedback; no gradient reaches it. response_mask: `[B, T]`, 0 for a
    token that does not count. alpha is the beta of `generalized_jsd_loss`: 0 is KL(p || q), 1 is KL(q || p),
    between them m = alpha p + (1 - alpha) q. mode:

        "full"         over the vocabulary
        "topk_tail"    over the `top_k` likeliest entries of the *student* and one entry for all others
        "topk_renorm"  over these entries alone, both distributions renormalised
        "sampled"      sg(log q(y) - log p(y)) log q(y) of the sampled token y, whose gradient is that of
                       KL(q || p) in expectation; alpha must be 1

    token_ids: `[B, T]`, the sampled tokens y, for "sampled" and is_clip. is_clip multiplies each token by the
    constant min(exp(clamp(log q(y) - old_log_probs, -20, 20)), is_clip); old_log_probs: `[B, T]`, log
    probability of y when it was sampled. sample_mask: `[B]`, 0 for a row without a teacher. rollout_weights:
    `[B, T]`, constants that multiply the loss of each token. reduction, over kept tokens:

        "token-mean"           sum / count of kept tokens
        "seq-mean-token-sum"   mean over rows that have a kept token of the row's sum
        "seq-mean-token-mean"  mean over rows that have a kept token of the row's sum / (count + 1e-8)
        "none"                 `[B, T]`, 0 for the other tokens

    No kept token: 0 with zero gradients.

    Source: SDPO (https://arxiv.org/abs/2601.20802).
    """
    check_logits(student_logits, teacher_logits)
    if student_logits.ndim != 3:
        raise ValueError(f"Logits have shape {list(student_logits.shape)}; they must be [B, T, V].")
    check_choice("reduction", reduction, get_args(Reduction))
    _check_settings(alpha, mode, top_k, student_logits.shape[-1])
    shape = student_logits.shape[:-1]
    _check_samples(token_ids, old_log_probs, is_clip, mode, shape)
    keep = as_keep_or_all(response_mask, student_logits[..., 0], "response_mask")
    samples = as_keep(sample_mask, shape[:1], "sample_mask")
    keep = keep if samples is None else keep & samples[:, None]
    rows = kept_rows(keep)
    teacher_logits = teacher_logits.detach()
    if mode == "full":
        (losses,) = sum_over_vocabulary(
            lambda log_q, log_p: (jsd_summands(log_q, log_p, alpha),),
            student_logits,
            teacher_logits,
            rows,
            chunk_size=chunk_size,
        )
    elif mode == "sampled":
        assert token_ids is not None
        log_q, log_p = _log_probs_at(token_ids[..., None], (student_logits, teacher_logits), rows, chunk_size)
        losses = ((log_q - log_p).detach() * log_q).squeeze(1)
    else:
        assert top_k is not None
        ids = student_logits.detach().topk(top_k, dim=-1).indices
        log_q, log_p = _log_probs_at(ids, (student_logits, teacher_logits), rows, chunk_size)
        complete = _with_tail if mode == "topk_tail" else _renormalised
        losses = jsd_summands(complete(log_q), complete(log_p), alpha).sum(-1)
    if is_clip is not None:
        assert token_ids is not None
        assert old_log_probs is not None
        (now,) = _log_probs_at(token_ids[..., None], (student_logits.detach(),), rows, chunk_size)
        log_ratio = (now - at_rows(old_log_probs.detach()[..., None], rows)).squeeze(1)
        losses = losses * log_ratio.clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO).exp().clamp(max=is_clip)
    losses = spread_over_tokens(losses, rows, shape)
    if rollout_weights is not None:
        check_shape("rollout_weights", rollout_weights, shape)
        losses = losses * rollout_weights.detach().where(keep, 0)
    return _reduce(losses, keep, reduction)


def _reduce(losses: Tensor, keep: Tensor, reduction: Reduction) -> Tensor:
    counts = keep.sum(-1)
    if reduction == "none":
        return losses
    if reduction == "token-mean":
        return losses.sum() / counts.sum().clamp(min=1)
    rows = losses.sum(-1)
    if reduction == "seq-mean-token-mean":
        rows = rows / (counts.to(rows.dtype) + _COUNT_OFFSET)
    return rows.sum() / (counts > 0).sum().clamp(min=1)


def _log_probs_at(
    ids: Tensor, logits: tuple[Tensor, ...], rows: Tensor | None, chunk_size: int | None
) -> tuple[Tensor, ...]:
    """Return the log probabilities of the entries `ids`, `[..., k]`, as `[n, k]`, of each model."""
    top, log_sum = log_normalizers(logits, rows, chunk_size=chunk_size)
    gathered = [full_precision(at_rows(each.gather(-1, ids), rows)) for each in logits]
    each_model = zip(gathered, top, log_sum, strict=True)
    return tuple(each - most[:, None] - z[:, None] for each, most, z in each_model)


def _with_tail(log_probs: Tensor) -> Tensor:
    """Return the log probabilities and one more, of all entries that are not among them."""
    head = log_probs.logsumexp(-1, keepdim=True).clamp(max=-torch.finfo(log_probs.dtype).eps)
    return torch.cat([log_probs, (-head.expm1()).log()], dim=-1)


def _renormalised(log_probs: Tensor) -> Tensor:
    return log_probs.log_softmax(-1)


def _check_settings(alpha: float, mode: str, top_k: int | None, vocabulary: int) -> None:
    check_choice("mode", mode, get_args(Mode))
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}; it must be between 0 and 1.")
    if mode == "sampled" and alpha != 1:
        raise ValueError(f"alpha is {alpha}; mode 'sampled' estimates KL(student || teacher): give 1.")
    if mode.startswith("topk") and (top_k is None or not 1 <= top_k <= vocabulary):
        raise ValueError(f"top_k is {top_k}; it must be between 1 and the {vocabulary} entries.")


def _check_samples(
    token_ids: Tensor | None,
    old_log_probs: Tensor | None,
    is_clip: float | None,
    mode: str,
    shape: torch.Size,
) -> None:
    if is_clip is not None and not is_clip > 0:
        raise ValueError(f"is_clip is {is_clip}; it must be above 0.")
    for name, tensor, is_needed in (
        ("token_ids", token_ids, mode == "sampled" or is_clip is not None),
        ("old_log_probs", old_log_probs, is_clip is not None),
    ):
        if tensor is not None:
            check_shape(name, tensor, shape)
        elif is_needed:
            raise ValueError(f"{name} is missing; mode 'sampled' and is_clip need it.")
