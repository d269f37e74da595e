"""Compare a new model with the last promoted one on held-out pairs, and decide whether it takes its place.

A pair is ranked right if the mean log probability of a token of its chosen side is above that of its rejected
side (the reward of SimPO, https://arxiv.org/abs/2405.14734, without its scale); the margin is the mean
difference, in nats a token. Neither needs the model that a training began from.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tracemill.records.errors import TrainingError
from tracemill.train.start_child import check_packages, training_environment
from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

QUESTION, MEASURED = "measure.json", "measured.json"
HELD_OUT = ("validation", "test")
"""Splits whose pairs no training reads."""
NO_PAIR = "the release holds out no pair"
CANDIDATE, LATEST = "candidate", "latest"
"""Tags of a model repository: the newest model, and the newest one that was promoted."""


class PreferenceQuestion(BaseModel):
    """Which models are measured on the held-out pairs of which release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: TrainingRelease
    settings: TrainingSettings
    models: dict[str, str]
    """Folder of each model by a name; the first decides which pairs fit."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a model makes of held-out pairs: how many, share ranked right, mean margin in nats a token."""

    rows: int
    accuracy: float
    margin: float


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Whether a new model takes the place of the last one, and why."""

    promoted: bool
    reason: str
    new: Preferences | None = None
    last: Preferences | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"decision": "promote" if self.promoted else "keep"} | asdict(self)


def decide(new: Preferences, last: Preferences | None) -> PromotionDecision:
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

    What cannot be measured is not promoted, and the decision says why.
    """
    if job.release.path is not None and not _held_out_files(job.release.path):
        return PromotionDecision(False, f"not compared: {NO_PAIR}")
    models = {"new": str(checkpoint)} | ({"last": str(last)} if last is not None else {})
    settings = job.settings.model_copy(update={"method": "dpo", "chat_template": None})
    try:
        check_packages(settings)
    except TrainingError as error:  # a launcher may train where this machine has no torch
        return PromotionDecision(False, f"not compared: {error}")
    measured = _measure(PreferenceQuestion(release=job.release, settings=settings, models=models), job)
    if (why := measured.get("refused")) is not None:
        return PromotionDecision(False, f"not compared: {why}")
    found = {name: Preferences(**figures) for name, figures in measured.items()}
    return decide(found["new"], found.get("last"))


def _held_out_files(release: Path) -> list[Path]:
    return [file for split in HELD_OUT for file in release.glob(f"data/dpo/{split}*.parquet")]


def _measure(question: PreferenceQuestion, job: TrainingJob) -> dict[str, Any]:
    """Return what a child process with torch measured."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / QUESTION).write_text(question.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "tracemill.train.trl.measure", folder]
        done = subprocess.run(
            command,
            cwd=folder,
            env=training_environment(job),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        try:
            return json.loads((Path(folder) / MEASURED).read_bytes())
        except OSError:
            raise TrainingError(
                f"the comparison of models ended with code {done.returncode}", "figures", "call it again"
            ) from None
