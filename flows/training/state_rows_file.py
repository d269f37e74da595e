"""Write the states of a workspace that teachers answered in, for a training that rewards by their answers.

`trainings/states/<digest>.jsonl` in the workspace, until the training is finished.
"""

from collections.abc import Container, Iterator
from typing import Any

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.label_shard import ShownTrace, group_replies, load_replies, voted_steps
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.flows.run_state.run_records import STATE_ROWS
from tracemill.flows.training.workspace_rows import (
    held_out_traces,
    release_folder,
    stored_traces,
    write_rows,
)
from tracemill.records.errors import TrainingError
from tracemill.records.storage.workspace import Workspace
from tracemill.train.consensus.state_rows import state_row
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings


def add_state_rows(
    settings: RunSettings, training: TrainingSettings, release: TrainingRelease
) -> TrainingSettings:
    """Return a training's settings with the file of its states, if it needs one and names none.

    Stored text is redacted again by today's rules, and answers count as for pairs. Sessions that the
    release holds out give no rows. Raises TrainingError without any row.
    """
    composer = training.composer
    if composer is None or not composer.needs_state_rows:
        return training
    held_out = held_out_traces(release_folder(release, "states", "states"))
    path = write_rows(settings, STATE_ROWS, _rows(settings, held_out))
    if path is None:
        raise TrainingError(
            f"composer.consensus is {composer.consensus!r} and teachers answered in no session to train on",
            "sessions that `tracemill run` asked teachers about, or a file as training.composer.states",
        )
    return training.model_copy(update={"composer": composer.model_copy(update={"states": path})})


def _rows(settings: RunSettings, held_out: Container[str]) -> Iterator[dict[str, Any]]:
    work = Workspace.open(settings.workspace, create=False)
    reredactor, policy = make_reredactor(work, settings), build_vote_policy(settings)
    for trace in stored_traces(work, held_out):
        replies = group_replies(load_replies(work, [trace.trace_id]))
        if not replies:
            continue
        for step in voted_steps(ShownTrace.of(trace, reredactor), replies, policy):
            row = state_row(step.state, step.presentation, step.result.votes, step.answers)
            if row["answers"]:
                yield row
