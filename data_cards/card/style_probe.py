"""Measure how well style alone tells the chosen side from the rejected one.

A trained model may learn what words or length give away instead of the task (Singhal et al. 2023,
https://arxiv.org/abs/2310.03716: length alone explains most of the gain of RLHF in three settings).
"""

import hashlib
import heapq
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracemill.data_cards.model.manifest import StyleEntry
from tracemill.records.identity import StepId
from tracemill.records.pair import NormalizedDPOPair

SAMPLE = 2000
_LEAST_PAIRS = 40  # with fewer the figures are chance
_FOLDS = 5
_WORDS = 4096
_READ_CHARS = 8000
_WORD = re.compile(r"\w+|[^\w\s]")
Bag = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _SampledPair:
    fold: int
    chosen: Bag
    rejected: Bag
    lengths: tuple[int, int]


@dataclass(slots=True)
class StyleSample:
    """A sample of at most `SAMPLE` pairs, drawn by a hash of their ids, so that order does not matter."""

    _drawn: list[tuple[int, str, _SampledPair]] = field(default_factory=list)

    def keep(self, kept: NormalizedDPOPair) -> None:
        """Add a pair to the sample if its hash is low enough."""
        pair_id = kept.pair.pair_id
        rank = -_hash(pair_id)
        if len(self._drawn) >= SAMPLE and rank <= self._drawn[0][0]:
            return
        trace = StepId.parse(kept.pair.step_id).trace_id
        sampled = _SampledPair(
            _hash(trace) % _FOLDS,
            _bag(kept.chosen_text),
            _bag(kept.rejected_text),
            (len(kept.chosen_text), len(kept.rejected_text)),
        )
        push = heapq.heappush if len(self._drawn) < SAMPLE else heapq.heappushpop
        push(self._drawn, (rank, pair_id, sampled))

    def figures(self) -> StyleEntry | None:
        """Return the figures, None if the sample is too small or from one fold."""
        drawn = [each for _, _, each in sorted(self._drawn, key=lambda item: item[:2])]
        if len(drawn) < _LEAST_PAIRS or len({each.fold for each in drawn}) < 2:
            return None
        length_auc = auc([each.lengths[0] for each in drawn], [each.lengths[1] for each in drawn])
        return StyleEntry(
            pairs=len(drawn), words_auc=round(_words_auc(drawn), 4), length_auc=round(length_auc, 4)
        )


def auc(chosen: Sequence[float], rejected: Sequence[float]) -> float:
    """Return the probability that a chosen side scores above a rejected one, ties half (Mann-Whitney)."""
    scores = np.concatenate([np.asarray(chosen, float), np.asarray(rejected, float)])
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    n, m = len(chosen), len(rejected)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def _words_auc(drawn: Sequence[_SampledPair]) -> float:
    """Score each fold by weights of the others, and return the AUC.

    Weights are log odds of a word being on a chosen side, with one added to each count (multinomial naive
    Bayes over presence). All pairs of a trace are in one fold.
    """
    chosen: list[float] = []
    rejected: list[float] = []
    for fold in range(_FOLDS):
        held_out = [each for each in drawn if each.fold == fold]
        rest = [each for each in drawn if each.fold != fold]
        if not held_out or not rest:
            continue
        weights = _log_share([each.chosen for each in rest]) - _log_share([each.rejected for each in rest])
        chosen += [float(weights[each.chosen].sum()) for each in held_out]
        rejected += [float(weights[each.rejected].sum()) for each in held_out]
    return auc(chosen, rejected)


def _log_share(bags: Sequence[Bag]) -> NDArray[np.float64]:
    counts = np.bincount(np.concatenate(bags), minlength=_WORDS) + 1.0
    return np.log(counts / counts.sum())


def _bag(text: str) -> Bag:
    """Return the distinct words of a side as indices of a hash table of `_WORDS` entries."""
    words = {
        zlib.crc32(word.lower().encode("utf-8", "replace")) % _WORDS
        for word in _WORD.findall(text[:_READ_CHARS])
    }
    return np.fromiter(sorted(words), np.int64, len(words))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
