"""The generalized Jensen-Shannon divergence of a student from its teacher."""

# pyright: reportMissingImports=false

import math
from typing import Literal

import torch
from torch import Tensor

from tracemill.train.losses.tensor_checks import as_keep, check_choice, check_logits, check_shape, kept_rows
from tracemill.train.losses.vocabulary_sums import (
    CHUNK_SIZE,
    expectation_terms,
    map_vocabulary,
    sum_over_vocabulary,
)

IGNORED = -100
"""The label of a token that does not count."""


def generalized_jsd_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    labels: Tensor | None = None,
    beta: float = 0.5,
    temperature: float = 1.0,
    reduction: Literal["batchmean", "mean", "sum", "none"] = "batchmean",
    *,
    mask: Tensor | None = None,
    top_k: int | None = None,
    top_k_of: Literal["teacher", "student"] = "teacher",
    token_clip: float | None = None,
    num_items_in_batch: float | Tensor | None = None,
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return the generalized Jensen-Shannon divergence between teacher p and student q.

    With m = beta p + (1 - beta) q, of a token, in nats:

        beta = 0:      KL(p || q)    forward KL
        beta = 1:      KL(q || p)    reverse KL
        0 < beta < 1:  beta KL(p || m) + (1 - beta) KL(q || m)

    student_logits, teacher_logits: `[B, T, V]` (or `[..., V]`), both divided by `temperature`; there is no
    factor temperature^2. No gradient reaches the teacher. labels: `[B, T]`, -100 for a token that does not
    count; or `mask`, `[B, T]`, 0 for one that does not. reduction:

        "batchmean"  sum / count of kept tokens; without labels and mask sum / B (the first dimension)
        "mean"       sum / (count of kept tokens x V), with top_k x top_k in place of x V
        "sum"        sum over kept tokens and the vocabulary
        "none"       `[kept tokens, V]`, or `[kept tokens, top_k]` from the likeliest on, before any sum

    num_items_in_batch divides the sum instead of the count of kept tokens ("batchmean" alone). token_clip
    caps each entry of the vocabulary from above, before the sum, so that the loss may be negative. top_k
    keeps the likeliest entries of `top_k_of` and renormalises both distributions over them. chunk_size:
    entries of the vocabulary at a time. No kept token: 0 with zero gradients.

    Sources: GKD (https://arxiv.org/abs/2306.13649), section 3; OPSD (https://arxiv.org/abs/2601.18734), which
    adds top_k of the teacher and token_clip. beta weighs the teacher, as in both.
    """
    check_logits(student_logits, teacher_logits)
    if not 0 <= beta <= 1:
        raise ValueError(f"beta is {beta}; it must be between 0 and 1.")
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"temperature is {temperature}; it must be above 0 and finite.")
    check_choice("reduction", reduction, ("batchmean", "mean", "sum", "none"))
    if labels is not None and mask is not None:
        raise ValueError("Both labels and mask are given; give one of them.")
    shape = student_logits.shape[:-1]
    if labels is not None:
        check_shape("labels", labels, shape)
    keep = as_keep(mask, shape) if labels is None else labels != IGNORED
    if top_k is not None:
        student_logits, teacher_logits = _top(student_logits, teacher_logits, top_k, top_k_of)

    def summand(log_q: Tensor, log_p: Tensor) -> tuple[Tensor]:
        each = jsd_summands(log_q, log_p, beta)
        return (each if token_clip is None else each.clamp(max=token_clip),)

    reduce = sum_over_vocabulary if reduction != "none" else map_vocabulary
    (losses,) = reduce(
        summand,
        student_logits,
        teacher_logits,
        kept_rows(keep),
        chunk_size=chunk_size,
        prepare=lambda student, teacher: (student / temperature, teacher / temperature),
    )
    if reduction in ("sum", "none"):
        return losses.sum() if reduction == "sum" else losses
    count = max(losses.numel(), 1)
    if reduction == "mean":
        return losses.sum() / (count * student_logits.shape[-1])
    if num_items_in_batch is not None:
        return losses.sum() / torch.as_tensor(num_items_in_batch).clamp(min=1)
    return losses.sum() / (count if keep is not None else max(student_logits.shape[0], 1))


def jsd_summands(log_q: Tensor, log_p: Tensor, beta: float) -> Tensor:
    """Return the summands of the divergence of `generalized_jsd_loss`, by entry of the vocabulary."""
    if beta == 0:
        return expectation_terms(log_p, log_p - log_q)
    if beta == 1:
        return expectation_terms(log_q, log_q - log_p)
    absent = (log_q == -math.inf) & (log_p == -math.inf)  # there the gradient of logaddexp is NaN
    terms = log_p + math.log(beta), log_q + math.log1p(-beta)
    log_m = torch.logaddexp(*(term.masked_fill(absent, 0) for term in terms))
    of_teacher = expectation_terms(log_p, log_p - log_m)
    return beta * of_teacher + (1 - beta) * expectation_terms(log_q, log_q - log_m)


def _top(student: Tensor, teacher: Tensor, top_k: int, of: str) -> tuple[Tensor, Tensor]:
    """Return the logits of both at the `top_k` likeliest entries of one side."""
    check_choice("top_k_of", of, ("teacher", "student"))
    if not 1 <= top_k <= student.shape[-1]:
        raise ValueError(f"top_k is {top_k}; it must be between 1 and the {student.shape[-1]} entries.")
    ids = (teacher if of == "teacher" else student).detach().topk(top_k, dim=-1).indices

    def gather(logits: Tensor) -> Tensor:
        has_nan = logits.detach().amax(-1, keepdim=True).isnan()  # also at an entry outside the top k
        return logits.gather(-1, ids).masked_fill(has_nan, math.nan)

    return gather(student), gather(teacher.detach())
