"""Our training methods as values of the registry."""

from collections.abc import Mapping
from typing import Any

from tracemill.train.method import TrainingMethod


def _anything(settings: Mapping[str, Any]) -> None:
    return None


DPO = TrainingMethod("dpo", "tracemill.train.trl.trainers:dpo_trainer")
SIMPO = TrainingMethod(
    "simpo",
    "tracemill.train.trl.trainers:simpo_trainer",
    # Within what its paper searched (https://arxiv.org/abs/2405.14734, appendix B).
    defaults={"beta": 2.0, "gamma": 1.0},
    check=_anything,
)
