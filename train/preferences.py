"""Measure how models rank the pairs that a release holds out.

A pair is ranked right if the mean log probability of a token of its chosen side is above that of its rejected
side (the reward of SimPO, https://arxiv.org/abs/2405.14734, without its scale); the margin is the mean
difference, in nats a token. Neither needs the model that a training began from.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.records.frozen_model import FrozenModel
from tracemill.train.ask_child import ask_child
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

HELD_OUT = ("validation", "test")
"""Splits whose pairs no training reads."""
PAIR_COLUMNS = ("trace_id", "chosen_operation", "rejected_operation", "label_source")
"""Columns of a held-out pair that its figures are grouped by."""
NO_PAIR = "the release holds out no pair"
_SAMPLES = 1000
_TAIL = 0.025
_FEWEST_SESSIONS = 10


class PreferenceRequest(FrozenModel):
    """A request to measure models on the held-out pairs of a release."""

    release: TrainingRelease
    settings: TrainingSettings
    models: dict[str, str]
    """Folder or id of each model by a name; the first decides which pairs fit."""


class PreferenceMargins(FrozenModel):
    """Margins of each model on the held-out pairs, in nats a token, in the order of `pairs`."""

    pairs: list[dict[str, str]]
    """`PAIR_COLUMNS` of each pair that was measured, as far as the release has them."""
    margins: dict[str, list[float]]
    left_out: dict[str, int]
    """Number of pairs that do not fit, by the reason."""


@dataclass(frozen=True, slots=True)
class PreferenceSummary:
    """The figures of a model on held-out pairs: number, share ranked right, mean margin in nats a token."""

    rows: int
    accuracy: float
    margin: float

    @classmethod
    def of(cls, margins: Sequence[float]) -> "PreferenceSummary":
        """Sum up the margins of at least one pair."""
        right = sum(margin > 0 for margin in margins)
        return cls(len(margins), right / len(margins), sum(margins) / len(margins))


def held_out_files(release: Path) -> list[Path]:
    """Return the tables of held-out pairs in the folder of a release."""
    return [file for split in HELD_OUT for file in release.glob(f"data/dpo/{split}*.parquet")]


def measure_preferences(question: PreferenceRequest, environment: dict[str, str]) -> PreferenceMargins:
    """Measure models in a child process with PyTorch.

    Raises TrainingError if a model or the release cannot be loaded, or no pair is held out.
    """
    return PreferenceMargins.model_validate(ask_child("tracemill.train.trl.measure", question, environment))


def resample(
    traces: Sequence[str], statistic: Callable[[Sequence[int]], float], seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of a statistic of pairs, with whole sessions drawn.

    Args:
        traces: Session of each pair. Pairs of one session are not independent.
        statistic: Takes indices of pairs, repeated where a session is drawn twice.
        seed: Seed of the draws.

    Returns:
        The interval, or None for fewer than ten sessions, which say nothing of others.
    """
    by_trace: dict[str, list[int]] = {}
    for index, trace in enumerate(traces):
        by_trace.setdefault(trace, []).append(index)
    sessions = list(by_trace.values())
    if len(sessions) < _FEWEST_SESSIONS:
        return None
    draw = random.Random(seed)
    found = sorted(
        statistic([index for session in draw.choices(sessions, k=len(sessions)) for index in session])
        for _ in range(_SAMPLES)
    )
    last = len(found) - 1
    return found[round(_TAIL * last)], found[round((1 - _TAIL) * last)]
