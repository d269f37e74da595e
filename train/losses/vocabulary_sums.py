"""Sums over the vocabulary of functions of two distributions, one chunk of the vocabulary at a time."""

# pyright: reportMissingImports=false

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tracemill.train.losses.tensor_checks import full_precision

CHUNK_SIZE = 8192
"""Entries of the vocabulary that are taken at a time, by default."""

Summands = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""Takes log q (student) and log p (target) of a chunk, each `[n, chunk]`; gives summands of that shape."""

Prepare = Callable[..., tuple[Tensor, ...]]
"""Takes a chunk of each model's logits, `[n, chunk]`; gives the logits of the distributions."""


def sum_over_vocabulary(
    summands: Summands,
    student_logits: Tensor,
    teacher_logits: Tensor,
    rows: Tensor | None,
    *,
    chunk_size: int | None = CHUNK_SIZE,
    prepare: Prepare | None = None,
) -> tuple[Tensor, ...]:
    """Return sum_v f(log q(v), log p(v)) for each f of `summands` and each kept token, `[n]`.

    student_logits, teacher_logits: `[..., V]`. rows: indices of the kept tokens, None for all; what the
    others hold has no effect, be it NaN. The teacher is a constant. With `chunk_size`, no tensor of the
    forward pass has more than n x `chunk_size` entries, and the backward pass computes each chunk again; sums
    are equal up to rounding whatever the size. None takes the whole vocabulary at once.
    """
    logits = (student_logits, teacher_logits.detach())
    mapped = _map_chunks(summands, logits, rows, chunk_size, prepare, summed=True)
    return tuple(torch.stack(chunks).sum(0) if len(chunks) > 1 else chunks[0] for chunks in mapped)


def map_vocabulary(
    summands: Summands,
    student_logits: Tensor,
    teacher_logits: Tensor,
    rows: Tensor | None,
    *,
    chunk_size: int | None = CHUNK_SIZE,
    prepare: Prepare | None = None,
) -> tuple[Tensor, ...]:
    """Return f(log q, log p) for each f of `summands`, `[n, V]`: as `sum_over_vocabulary`, before the sum."""
    logits = (student_logits, teacher_logits.detach())
    mapped = _map_chunks(summands, logits, rows, chunk_size, prepare, summed=False)
    return tuple(torch.cat(chunks, dim=-1) for chunks in mapped)


def log_normalizers(
    logits: tuple[Tensor, ...],
    rows: Tensor | None,
    *,
    chunk_size: int | None = CHUNK_SIZE,
    prepare: Prepare | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the largest logit and log sum_v exp(logit of v - largest) of each kept token.

    Both are `[len(logits), n]`, for logits `[..., V]`. Their sum is log Z; taken off a logit one after the
    other they lose less to rounding. Entries of -inf count nothing and get no gradient; NaN stays NaN.
    """
    chunks, run = _split(logits, chunk_size)

    def largest(*chunk: Tensor) -> Tensor:
        return torch.stack([each.amax(-1) for each in _take(chunk, rows, prepare)])

    def total(*chunk: Tensor) -> Tensor:
        selected = zip(_take(chunk, rows, prepare), top, strict=True)
        return torch.stack([(each - most[:, None]).exp().sum(-1) for each, most in selected])

    with torch.no_grad():
        top = torch.stack([largest(*chunk) for chunk in chunks]).amax(0)
    return top, torch.stack([run(total, *chunk) for chunk in chunks]).sum(0).log()


def expectation_terms(log_weight: Tensor, value: Tensor) -> Tensor:
    """Return exp(log_weight) * value, and 0 if the weight is 0, as 0 log 0 is 0. NaN stays NaN."""
    weight = log_weight.exp()
    return weight * torch.where(weight > 0, value, 0)


def at_rows(values: Tensor, rows: Tensor | None) -> Tensor:
    """Return the `values` of kept tokens, `[..., k]`, as `[n, k]`."""
    flat = values.flatten(0, -2)
    return flat if rows is None else flat.index_select(0, rows)


def spread_over_tokens(values: Tensor, rows: Tensor | None, shape: torch.Size) -> Tensor:
    """Return the values of kept tokens, `[n]`, in `shape`, with 0 for the other tokens."""
    if rows is None:
        return values.view(shape)
    return values.new_zeros(shape.numel()).index_copy(0, rows, values).view(shape)


def _map_chunks(
    summands: Summands,
    logits: tuple[Tensor, ...],
    rows: Tensor | None,
    chunk_size: int | None,
    prepare: Prepare | None,
    summed: bool,
) -> list[list[Tensor]]:
    """Return the results of every chunk, by summand."""
    top, log_sum = log_normalizers(logits, rows, chunk_size=chunk_size, prepare=prepare)
    chunks, run = _split(logits, chunk_size)

    def of_chunk(log_sum: Tensor, *chunk: Tensor) -> tuple[Tensor, ...]:
        selected = zip(_take(chunk, rows, prepare), top, log_sum, strict=True)
        log_q, log_p = (each - most[:, None] - z[:, None] for each, most, z in selected)
        return tuple(each.sum(-1) if summed else each for each in summands(log_q, log_p))

    results = [run(of_chunk, log_sum, *chunk) for chunk in chunks]
    return [list(each) for each in zip(*results, strict=True)]


def _split(
    logits: tuple[Tensor, ...], chunk_size: int | None
) -> tuple[list[tuple[Tensor, ...]], Callable[..., Any]]:
    """Return the chunks of the logits, flattened to `[tokens, chunk]`, and a function that runs on one."""
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size is {chunk_size}; it must be 1 or more, or None.")
    size = chunk_size or logits[0].shape[-1]
    chunks = list(zip(*(each.flatten(0, -2).split(size, dim=-1) for each in logits), strict=True))
    return chunks, _recomputed if len(chunks) > 1 else _at_once


def _take(chunk: tuple[Tensor, ...], rows: Tensor | None, prepare: Prepare | None) -> tuple[Tensor, ...]:
    """Return the logits of kept tokens in one chunk, prepared."""
    selected = tuple(full_precision(at_rows(each, rows)) for each in chunk)
    return prepare(*selected) if prepare else selected


def _at_once(function: Callable[..., Any], *inputs: Tensor) -> Any:
    return function(*inputs)


def _recomputed(function: Callable[..., Any], *inputs: Tensor) -> Any:
    return checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)
