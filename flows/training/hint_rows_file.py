"""Write the hint rows of a workspace for a training: its failed actions, with what teachers agreed on there.

`trainings/hints/<digest>.jsonl` in the workspace, until the training is finished.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_records import HINT_ROWS
from tracemill.flows.training.hint_writer import HintConsent, write_hints
from tracemill.flows.training.workspace_rows import (
    TRAIN,
    held_out_traces,
    release_folder,
    stored_traces,
    write_rows,
)
from tracemill.records.errors import TrainingError
from tracemill.records.message import Message
from tracemill.records.storage.workspace import Workspace
from tracemill.train.consensus.state_rows import message_of
from tracemill.train.hints.error_sites import ErrorSite
from tracemill.train.hints.hint_rows import WriteHint, build_hint_rows, template_hint
from tracemill.train.hints.hint_text import Hint, add_agreed_action
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

_NOT_ASKED = "not asked"


def add_hint_rows(
    settings: RunSettings,
    training: TrainingSettings,
    release: TrainingRelease,
    consent: HintConsent | None = None,
) -> TrainingSettings:
    """Return a training's settings with the file of its hint rows, if it needs one and names none.

    Stored text is redacted again by today's rules. Sessions that the release holds out give no rows. A
    configured writer is asked for the hints it has not written yet. Raises TrainingError without any row,
    and the errors of `write_hints`.
    """
    composer = training.composer
    if composer is None or not composer.needs_hint_rows or composer.hints is not None:
        return training
    folder = release_folder(release, "hint rows", "hints")
    work = Workspace.open(settings.workspace, create=False)
    reredactor = make_reredactor(work, settings)
    held_out, agreed = held_out_traces(folder), _agreed_actions(folder)
    write = template_hint
    if settings.hint_writer() is not None:
        write = _by_writer(
            write_hints(settings, work, reredactor, held_out, release, consent or HintConsent())
        )
    traces = (reredactor.redact_again(trace).trace for trace in stored_traces(work, held_out))
    path = write_rows(settings, HINT_ROWS, build_hint_rows(traces, agreed, write))
    if path is None:
        raise TrainingError(
            f"composer.alpha_sdpo is {composer.alpha_sdpo} and no session to train on has a failed action",
            "sessions with failed actions, or a file as training.composer.hints",
            "set training.composer.alpha_sdpo = 0 to train without hints",
        )
    made = {"hints": path, "hint_writer": None, "hint_max_usd": None}
    return training.model_copy(update={"composer": composer.model_copy(update=made)})


def _by_writer(hints: Mapping[str, Hint]) -> WriteHint:
    """Return a function that gives the writer's hint of a step, or a template's if there is none."""

    def write(site: ErrorSite, agreed: Message | None) -> Hint:
        found = hints.get(str(site.state.step_id), Hint("", fallback=_NOT_ASKED))
        if found.text:
            return replace(found, text=add_agreed_action(found.text, agreed))
        return replace(template_hint(site, agreed), fallback=found.fallback)

    return write


def _agreed_actions(release: Path) -> dict[str, Message]:
    """Return the actions that teachers agreed on by step, in the training rows."""
    found = dict[str, Message]()
    for file in (release / "data" / "agreed").glob(f"{TRAIN}*.parquet"):
        table: pa.Table = ds.dataset(file).to_table(columns=["step_id", "completion"])
        for row in table.to_pylist():
            found[row["step_id"]] = message_of(row["completion"][0])
    return found
