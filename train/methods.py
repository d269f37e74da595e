"""The training methods that ship with tracemill, with the learning rates of TRL's own configurations."""

from collections.abc import Mapping
from typing import Any

from tracemill.train.composer_settings import ComposerSettings
from tracemill.train.method import TrainingMethod


def _check_kto_batch(settings: Mapping[str, Any]) -> None:
    if settings["batch"] < 2:
        raise ValueError('batch is 1, and method = "kto" compares rows of a batch; expected 2 or more')


def _replays(settings: Mapping[str, Any]) -> bool:
    composer: ComposerSettings | None = settings["composer"]
    return composer is not None and composer.beta_replay > 0


def _check_composer(settings: Mapping[str, Any]) -> None:
    composer: ComposerSettings | None = settings["composer"]
    if composer is None:
        raise ValueError(
            'method = "composer" without [training.composer]; expected tasks, prompts or states there'
        )
    rows = settings["batch"] * settings["accumulate"] * settings["processes"]
    if rows % composer.generations:
        raise ValueError(
            f"batch x accumulate x processes is {rows}; expected a multiple of composer.generations = "
            f"{composer.generations}"
        )
    if settings["launcher"] != "local":
        raise ValueError('method = "composer" is for launcher = "local" alone: its files are of this machine')


SFT = TrainingMethod(
    "sft",
    "tracemill.train.trl.trainers:sft_trainer",
    config="sft",
    columns=("prompt", "completion", "tools"),
    weighted=True,
    packed=True,
    defaults={"learning_rate": 2e-5},
)
DPO = TrainingMethod(
    "dpo",
    "tracemill.train.trl.trainers:dpo_trainer",
    packed=True,
    defaults={"learning_rate": 1e-6, "nll_weight": 1.0},
)
SIMPO = TrainingMethod(
    "simpo",
    "tracemill.train.trl.trainers:simpo_trainer",
    packed=True,
    # Within what its paper searched (https://arxiv.org/abs/2405.14734, appendix B).
    defaults={"learning_rate": 1e-6, "beta": 2.0, "gamma": 1.0},
)
KTO = TrainingMethod(
    "kto",
    "tracemill.train.trl.trainers:kto_trainer",
    config="kto",
    columns=("prompt", "completion", "label", "tools"),
    defaults={"learning_rate": 1e-6, "batch": 2, "accumulate": 4},
    check=_check_kto_batch,
)
PRM = TrainingMethod(
    "prm",
    "tracemill.train.prm.reward_trainer:prm_trainer",
    language_model=False,
    defaults={"learning_rate": 1e-5},
)
COMPOSER = TrainingMethod(
    "composer",
    "tracemill.train.composer.method_trainer:composer_trainer",
    columns=("prompt", "chosen", "rejected", "tools", "pair_id"),
    reads_rows=_replays,
    evaluates=False,
    defaults={"learning_rate": 1e-6, "batch": 4, "accumulate": 2},
    check=_check_composer,
)
