"""Log probabilities of answer tokens, without logits of any other token."""

# pyright: reportMissingImports=false

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK = 256
"""Tokens whose logits exist at a time."""


class AnswerScores(NamedTuple):
    """Figures of answer tokens, each `[A]`; only `log_probs`, in nats, has a gradient."""

    log_probs: Tensor
    entropy: Tensor
    mean_logits: Tensor
    is_top1: Tensor


def score_answers(head: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor) -> AnswerScores:
    """Score the tokens `targets` `[A]` after the hidden states `[A, D]`.

    `head` gives logits `[n, V]`. They are computed `CHUNK` tokens at a time, and again in the backward pass.
    """

    def score(states: Tensor, ids: Tensor) -> tuple[Tensor, ...]:
        logits = head(states).float()
        total = logits.logsumexp(-1)
        log_probs = logits.gather(-1, ids[:, None])[:, 0] - total
        with torch.no_grad():
            entropy = total - (logits.softmax(-1) * logits).sum(-1)
            return log_probs, entropy, logits.mean(-1), logits.argmax(-1) == ids

    chunks = zip(hidden.split(CHUNK), targets.split(CHUNK), strict=True)
    parts = [
        checkpoint(score, *chunk, use_reentrant=False, preserve_rng_state=False)
        if torch.is_grad_enabled()
        else score(*chunk)
        for chunk in chunks
    ]
    return AnswerScores(*map(torch.cat, zip(*parts, strict=True)))
