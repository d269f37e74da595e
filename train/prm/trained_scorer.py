"""Read what `method = "prm"` says of a step scorer beside its weights, without torch."""

import importlib.util
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tracemill.records.errors import TrainingError
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.start_child import INSTALL
from tracemill.train.training_job import REPORT

_METHOD = "prm"


@dataclass(frozen=True, slots=True)
class TrainedScorer:
    """A step scorer: its folder, a digest of its training, its calibration, and its context length."""

    folder: Path
    digest: str
    slope: float
    offset: float
    max_length: int

    @classmethod
    def read(cls, folder: Path) -> "TrainedScorer":
        """Read the checkpoint of a step scorer. Raises TrainingError if it is not one or not calibrated."""
        try:
            written = (folder / REPORT).read_bytes()
            report = json.loads(written)
            settings, calibration = report["settings"], report.get("calibration")
            method, max_length = settings["method"], settings["max_length"]
            scales = None if calibration is None else (calibration["slope"], calibration["offset"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrainingError(
                f"{folder} holds no step scorer", f'the checkpoint of a training with method = "{_METHOD}"'
            ) from error
        if method != _METHOD or scales is None:
            why = "is no step scorer" if method != _METHOD else "is not calibrated"
            raise TrainingError(f"{folder} {why}", f'method = "{_METHOD}" on a release that holds out pairs')
        return cls(folder, sha256(written).hexdigest()[:8], *scales, max_length)


def check_scorer_packages() -> None:
    """Raise TrainingError if a package that a step scorer needs is not installed, without loading any."""
    for name in TRAINING_METHODS.get(_METHOD).packages:
        if importlib.util.find_spec(name) is None:
            raise TrainingError(
                f"{name} is not installed, which a step scorer needs", "the extra `train`", INSTALL
            )
