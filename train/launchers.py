"""Launchers: what runs a training, here or somewhere else, and the one list of them.

A launcher of a package is added by an entry point of the group `tracemill.launchers`.
"""

from typing import Protocol

from tracemill.records.registry import Registry
from tracemill.train.training_job import Job, Told, Trained
from tracemill.train.training_settings import TrainingSettings


class Launcher(Protocol):
    """What runs a training.

    `python -m tracemill.train.trl.worker FOLDER` does the work, wherever it is started: it reads `job.json`
    in the folder, which is `job.model_dump_json()`, and leaves the checkpoint in `final/`.
    """

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError, before anything is spent, for what can be known to keep a training from
        starting."""
        ...

    def run(self, job: Job, told: Told) -> Trained:
        """Train, and return the checkpoint once it lies in `job.target` with its `training.json`, whole.

        It is called only where nothing is there yet. `told` takes what is known of the progress: `{"phase":
        "words"}`, or `{"step": 3, "total": 10, "loss": 0.6}`. What a later call can go on from belongs into
        `job.partial`. Raises TrainingError where the training fails.
        """
        ...


LAUNCHERS: Registry[Launcher] = Registry(
    "launcher",
    "tracemill.launchers",
    {"local": "tracemill.train.start_child:LOCAL"},
    fits=lambda _, launcher: all(callable(getattr(launcher, each, None)) for each in ("check", "run")),
    wanted="a value with the methods `check` and `run`",
)
