"""After a training: compare the new model with the last one, promote it or not, tag it on the Hub.

Each decision is a line of `trainings/<release>/decisions.jsonl` in the workspace.
"""

from pathlib import Path
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.jsonl_log import append_lines, read_jsonl_log
from tracemill.train.launch.job_record import now
from tracemill.train.launch.launch_training import find_job
from tracemill.train.model_repository import ModelRepository
from tracemill.train.promotion import CANDIDATE, LATEST, PromotionDecision, compare_models
from tracemill.train.training_job import TrainingJob, TrainingResult

_DECISIONS = "decisions.jsonl"


def promote_or_keep(settings: RunSettings, job: TrainingJob, made: TrainingResult) -> dict[str, Any] | None:
    """Decide on the checkpoint of a job and return the record; None if promotion is off.

    A checkpoint is decided on once. With `training.hub` it is pushed there, tagged `candidate`, and
    `latest` too if it is promoted. Raises TrainingError if the Hub refuses: the same command tries again.
    """
    training = job.settings
    if not training.compare and training.hub is None:
        return None
    log = settings.workspace / "trainings" / job.release.name / _DECISIONS
    earlier = list(read_jsonl_log(log))
    for record in earlier:
        if (record["fingerprint"], record["checkpoint"]) == (job.fingerprint(), str(made.path)):
            return record
    commit = _push(settings, job, made.path) if training.hub is not None else None
    last = _last_promoted(earlier)
    decision = PromotionDecision(False, "not compared: training.compare is off")
    if training.compare:
        decision = compare_models(job, made.path, last)
    if training.hub is not None and commit is not None and decision.promoted:
        ModelRepository(training.hub).tag(LATEST, commit)
    tags = [CANDIDATE, *([LATEST] if decision.promoted else [])]
    record = {
        "at": now(),
        "release": job.name,
        "digest": job.release.digest,
        "fingerprint": job.fingerprint(),
        "checkpoint": str(made.path),
        "last_checkpoint": str(last) if last is not None else None,
        **decision.to_json(),
        "hub": {"repository": training.hub, "commit": commit, "tags": tags} if commit else None,
    }
    log.parent.mkdir(parents=True, exist_ok=True)
    append_lines(log, [record])
    return record


def _push(settings: RunSettings, job: TrainingJob, checkpoint: Path) -> str:
    """Tag a checkpoint on the Hub and return its commit; push it first unless its job has done so."""
    assert job.settings.hub is not None
    models = ModelRepository(job.settings.hub)
    found = find_job(job, settings.workspace / "trainings")
    pushed = models.tags().get(found.record.key) if found is not None else None
    commit = pushed or models.push(checkpoint, job.name)
    models.tag(CANDIDATE, commit)
    return commit


def _last_promoted(earlier: list[dict[str, Any]]) -> Path | None:
    """Return the newest promoted checkpoint that still exists."""
    promoted = (Path(record["checkpoint"]) for record in reversed(earlier) if record["promoted"])
    return next((path for path in promoted if path.is_dir()), None)


def decision_table_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Format a decision as rows of a closing table."""
    lines = ["promoted" if record["promoted"] else "kept the last model", record["reason"]]
    for name, figures in (("new", record["new"]), ("last", record["last"])):
        if figures is not None:
            lines.append(
                f"{name}: {figures['accuracy']:.1%} of {figures['rows']:,} held-out pairs ranked right,"
                f" margin {figures['margin']:+.4f} nats a token"
            )
    if record["hub"]:
        lines.append(f"{record['hub']['repository']}: {', '.join(record['hub']['tags'])}")
    return [("decision", "\n".join(lines))]
