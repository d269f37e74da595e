"""Distillation losses with forward KL where the teacher is uncertain, in two forms."""

# pyright: reportMissingImports=false

import math
from typing import Literal

import torch
from torch import Tensor

from tracemill.train.losses.tensor_checks import as_keep, check_choice, check_logits, kept_rows, mean_of_kept
from tracemill.train.losses.vocabulary_sums import CHUNK_SIZE, expectation_terms, sum_over_vocabulary


def entropy_mix_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    mask: Tensor | None = None,
    *,
    h_max: float | None = None,
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return the mean over kept tokens of w KL(p || q) + (1 - w) KL(q || p), in nats.

    w = clamp(H(p) / h_max, 0, 1), with teacher p, student q and the entropy H(p) of the teacher in nats;
    h_max is log V unless it is given. A uniform teacher gives forward KL, a one-hot teacher reverse KL.

    student_logits, teacher_logits: `[..., V]`; mask: `[...]`, 0 for a token that does not count. No gradient
    reaches the teacher or w. No kept token: 0 with zero gradients. This is a mix, not the objective of the
    EOPD paper, which is `eopd_loss`.
    """
    check_logits(student_logits, teacher_logits)
    h_max = math.log(student_logits.shape[-1]) if h_max is None else h_max
    if not h_max > 0:
        raise ValueError(f"h_max is {h_max}; it must be above 0 nats.")
    entropy, forward, reverse = _terms(student_logits, teacher_logits, mask, chunk_size)
    weight = (entropy / h_max).clamp(0, 1)
    return mean_of_kept(weight * forward + (1 - weight) * reverse)


def eopd_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    mask: Tensor | None = None,
    *,
    tau: float,
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return the mean over kept tokens of KL(q || p) + 1[H(p) > tau] KL(p || q), in nats.

    Teacher p, student q; tau: a threshold of the teacher's entropy H(p), in nats. tau = inf is reverse KL
    alone, tau = -inf the sum of both. student_logits, teacher_logits: `[..., V]`; mask: `[...]`, 0 for a
    token that does not count. No gradient reaches the teacher. No kept token: 0 with zero gradients.

    Source: EOPD (https://arxiv.org/abs/2603.07079): reverse KL, "augmented with forward KL when teacher
    entropy is high". Both divergences are exact over the vocabulary here. The paper's own threshold is not a
    default: tau must be given.
    """
    check_logits(student_logits, teacher_logits)
    if math.isnan(tau):
        raise ValueError("tau is NaN; it must be a number of nats, or inf or -inf.")
    entropy, forward, reverse = _terms(student_logits, teacher_logits, mask, chunk_size)
    return mean_of_kept(reverse + torch.where(entropy > tau, forward, 0))


def entropy_aware_opd_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    mask: Tensor | None = None,
    *,
    form: Literal["entropy_mix", "eopd"] = "entropy_mix",
    h_max: float | None = None,
    tau: float | None = None,
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return `entropy_mix_loss` (form "entropy_mix", with h_max) or `eopd_loss` (form "eopd", with tau).

    Raises ValueError for another form, for "eopd" without tau, and for the setting of the other form.
    """
    check_choice("form", form, ("entropy_mix", "eopd"))
    if form == "entropy_mix":
        if tau is not None:
            raise ValueError("tau is given, and form is 'entropy_mix'; tau belongs to form 'eopd'.")
        return entropy_mix_loss(student_logits, teacher_logits, mask, h_max=h_max, chunk_size=chunk_size)
    if h_max is not None:
        raise ValueError("h_max is given, and form is 'eopd'; h_max belongs to form 'entropy_mix'.")
    if tau is None:
        raise ValueError("form is 'eopd', and tau is missing; give the threshold in nats.")
    return eopd_loss(student_logits, teacher_logits, mask, tau=tau, chunk_size=chunk_size)


def _terms(
    student_logits: Tensor, teacher_logits: Tensor, mask: Tensor | None, chunk_size: int | None
) -> tuple[Tensor, ...]:
    """Return H(p), KL(p || q) and KL(q || p) of each kept token, `[n]`."""
    rows = kept_rows(as_keep(mask, student_logits.shape[:-1]))

    def summands(log_q: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        entropy = expectation_terms(log_p, -log_p)
        forward = expectation_terms(log_p, log_p - log_q)
        return entropy, forward, expectation_terms(log_q, log_q - log_p)

    return sum_over_vocabulary(summands, student_logits, teacher_logits, rows, chunk_size=chunk_size)
