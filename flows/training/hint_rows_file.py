"""Write the hint rows of a workspace for a training: its failed actions, with what teachers agreed on there.

`trainings/hints/<digest>.jsonl` in the workspace, until the training is finished.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_records import HINT_ROWS
from tracemill.flows.training.hint_writer import HintConsent, write_hints
from tracemill.records.errors import TrainingError
from tracemill.records.identity import StepId, digest
from tracemill.records.message import Message, ToolCall
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace
from tracemill.train.hints.error_sites import ErrorSite
from tracemill.train.hints.hint_rows import WriteHint, build_hint_rows, template_hint
from tracemill.train.hints.hint_text import Hint, add_agreed_action
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

_TRAIN = "train"
_NOT_ASKED = "not asked"


def add_hint_rows(
    settings: RunSettings,
    training: TrainingSettings,
    release: TrainingRelease,
    consent: HintConsent | None = None,
) -> TrainingSettings:
    """Return the settings of a training with the file of its hint rows, where it wants some and names none.

    Stored text is redacted again by today's rules. Sessions that the release holds out give no rows. A
    configured writer is asked for the hints it has not written yet. Raises TrainingError where there is no
    row, and what `write_hints` raises.
    """
    composer = training.composer
    if composer is None or not composer.wants_hint_rows or composer.hints is not None:
        return training
    if release.path is None:
        raise TrainingError(
            f"hint rows of sessions want a release of the workspace, and {release.place} is at the Hub",
            "a release of the workspace, or a file as training.composer.hints",
        )
    work = Workspace.open(settings.workspace, create=False)
    reredactor = make_reredactor(work, settings)
    held_out, agreed = _held_out_traces(release.path), _agreed_actions(release.path)
    write = template_hint
    if settings.hint_writer() is not None:
        write = _by_writer(
            write_hints(settings, work, reredactor, held_out, release, consent or HintConsent())
        )
    traces = (
        reredactor.redact_again(trace).trace for trace in _traces(work) if trace.trace_id not in held_out
    )
    lines = sorted(json.dumps(row, sort_keys=True) for row in build_hint_rows(traces, agreed, write))
    if not lines:
        raise TrainingError(
            f"composer.alpha_sdpo is {composer.alpha_sdpo} and no session to train on has a failed action",
            "sessions with failed actions, or a file as training.composer.hints",
            "set training.composer.alpha_sdpo = 0 to train without hints",
        )
    text = "\n".join(lines) + "\n"
    path = settings.workspace / HINT_ROWS / f"{digest('hints', text)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path, private=True) as file:
        file.write_text(text, encoding="utf-8")
    made = {"hints": path.resolve(), "hint_writer": None, "hint_max_usd": None}
    return training.model_copy(update={"composer": composer.model_copy(update=made)})


def remove_hint_rows(trainings: Path, training: TrainingSettings) -> None:
    """Remove the file of hint rows that was written for a training; a file of the user's stays."""
    hints = training.composer.hints if training.composer is not None else None
    if hints is not None and hints.parent == (trainings / HINT_ROWS.name).resolve():
        hints.unlink(missing_ok=True)


def _by_writer(hints: Mapping[str, Hint]) -> WriteHint:
    """Return what gives the hints of a writer, and those of templates where it wrote none."""

    def write(site: ErrorSite, agreed: Message | None) -> Hint:
        found = hints.get(str(site.state.step_id), Hint("", fallback=_NOT_ASKED))
        if found.text:
            return replace(found, text=add_agreed_action(found.text, agreed))
        return replace(template_hint(site, agreed), fallback=found.fallback)

    return write


def _traces(work: Workspace) -> Iterator[Trace]:
    """Yield every stored trace, one in memory at a time."""
    for table in work.current("traces"):
        for row in range(table.num_rows):
            yield traces_from_table(table.slice(row, 1))[0]


def _held_out_traces(release: Path) -> set[str]:
    """Return the traces with rows in another split than `train`."""
    found = set[str]()
    for file in (release / "data").glob("*/*.parquet"):
        if not file.name.startswith(_TRAIN):
            found |= {StepId.parse(step).trace_id for step in _column(file, "step_id")}
    return found


def _agreed_actions(release: Path) -> dict[str, Message]:
    """Return the actions that teachers agreed on by step, of the rows to train on."""
    found = dict[str, Message]()
    for file in (release / "data" / "agreed").glob(f"{_TRAIN}*.parquet"):
        for row in _rows(file, ["step_id", "completion"]):
            found[row["step_id"]] = _message(row["completion"][0])
    return found


def _column(file: Path, name: str) -> list[Any]:
    table: Any = ds.dataset(file)
    return table.to_table(columns=[name])[name].to_pylist() if name in table.schema.names else []


def _rows(file: Path, columns: list[str]) -> list[dict[str, Any]]:
    table: pa.Table = ds.dataset(file).to_table(columns=columns)
    return table.to_pylist()


def _message(wire: dict[str, Any]) -> Message:
    calls = []
    for call in wire.get("tool_calls") or ():
        made = json.loads(call) if isinstance(call, str) else call
        arguments = made["function"]["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(ToolCall(made.get("id") or "", made["function"]["name"], text))
    return Message("assistant", wire.get("content") or "", tuple(calls))
