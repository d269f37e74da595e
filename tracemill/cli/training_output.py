"""What `tracemill train` does and prints."""

import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from tracemill.cli.commands import quiet_prefect, say, warn_of_training
from tracemill.records.errors import ConfigError
from tracemill.records.printable import printable

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings


class TrainAction(StrEnum):
    """The action of `tracemill train` on a training's job."""

    WAIT = "wait"
    DRY_RUN = "--dry-run"
    DETACH = "--detach"
    LOGS = "--logs"
    CANCEL = "--cancel"

    @classmethod
    def of(cls, flags: Iterable[str]) -> "TrainAction":
        """Return the action of these flags. Raises ConfigError for two of them."""
        match list(flags):
            case []:
                return cls.WAIT
            case [flag]:
                return cls(flag)
            case chosen:
                raise ConfigError(f"{' and '.join(chosen)} are both given", "one of them")


def run_action(
    action: TrainAction, settings: "RunSettings", release: str | None, as_json: bool, yes: bool
) -> None:
    """Run `tracemill train`; `yes` accepts that a teacher is asked for hints."""
    from tracemill.flows.training import training_run as run

    if settings.training is not None and settings.training.launcher == "prefect":
        quiet_prefect()
    match action:
        case TrainAction.DRY_RUN:
            described = run.describe_training(settings, release)
            if "missing" in described:
                sys.stderr.write(f"tracemill: a training cannot start here: {described['missing']}\n")
            sys.stdout.write(json.dumps(described, indent=2) + "\n")
        case TrainAction.LOGS:
            for line in run.training_log(settings, release):
                sys.stdout.write(printable(line, 10_000) + "\n")
        case TrainAction.DETACH | TrainAction.CANCEL:
            if action == TrainAction.DETACH:
                record, done = run.start_training(settings, release, yes).record, "submitted"
            else:
                record, done = run.stop_training(settings, release), "told to stop"
            found = record.model_dump(mode="json", include={"launcher", "job_id", "release", "checkpoint"})
            rows = [
                ("job", f"{record.job_id or record.key} of {record.launcher}, {done}"),
                ("checkpoint", record.checkpoint),
            ]
            say(rows, f"tracemill train {record.release}", found, as_json)
        case TrainAction.WAIT:
            found = run.train_and_decide(settings, release, yes)
            rows = run.training_table_rows(found)
            say(rows, f"tracemill train {found['release']}", found, as_json)
            warn_of_training(found)
