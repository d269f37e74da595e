"""Compare a new model with the last promoted one on held-out pairs, and decide whether it takes its place."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.train.preferences import (
    NO_PAIR,
    PreferenceRequest,
    PreferenceSummary,
    held_out_files,
    measure_preferences,
)
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.start_child import check_packages, training_environment
from tracemill.train.training_job import TrainingJob

CANDIDATE, LATEST = "candidate", "latest"
"""Tags of a model repository: the newest model, and the newest one that was promoted."""


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """A decision on whether a new model replaces the last promoted one, and the reason."""

    promoted: bool
    reason: str
    new: PreferenceSummary | None = None
    last: PreferenceSummary | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"decision": "promote" if self.promoted else "keep"} | asdict(self)


def decide(new: PreferenceSummary, last: PreferenceSummary | None) -> PromotionDecision:
    """Promote a model that ranks more held-out pairs right, or as many with a margin that is not smaller."""
    if last is None:
        return PromotionDecision(True, "no model was promoted before", new)
    if new.accuracy != last.accuracy:
        better = new.accuracy > last.accuracy
        return PromotionDecision(better, f"it ranks {'more' if better else 'fewer'} pairs right", new, last)
    better = new.margin >= last.margin
    said = "at least the same" if better else "a smaller"
    return PromotionDecision(better, f"it ranks as many pairs right, with {said} margin", new, last)


def compare_models(job: TrainingJob, checkpoint: Path, last: Path | None) -> PromotionDecision:
    """Measure a checkpoint, and the last promoted one if there is one, and decide.

    A checkpoint that cannot be measured is not promoted, with the reason in the decision.
    """
    if not TRAINING_METHODS.get(job.settings.method).language_model:
        return PromotionDecision(False, f"not compared: method {job.settings.method!r} makes a step scorer")
    if job.release.path is not None and not held_out_files(job.release.path):
        return PromotionDecision(False, f"not compared: {NO_PAIR}")
    models = {"new": str(checkpoint)} | ({"last": str(last)} if last is not None else {})
    settings = job.settings.model_copy(update={"method": "dpo", "composer": None, "chat_template": None})
    question = PreferenceRequest(release=job.release, settings=settings, models=models)
    try:
        check_packages(settings)  # a launcher may train where this machine has no torch
        margins = measure_preferences(question, training_environment(job)).margins
    except TrainingError as error:
        return PromotionDecision(False, f"not compared: {error}")
    found = {name: PreferenceSummary.of(each) for name, each in margins.items()}
    return decide(found["new"], found.get("last"))
