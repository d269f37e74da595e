"""Find the sessions of a workspace that a training learns from, and write the rows made of them.

Rows lie in a folder of `trainings` in the workspace, as `<digest>.jsonl`, until the training is finished.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_records import HINT_ROWS, STATE_ROWS
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.records.errors import TrainingError
from tracemill.records.identity import StepId, digest
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

TRAIN = "train"
"""Split that trainings learn from."""


def release_folder(release: TrainingRelease, rows: str, key: str) -> Path:
    """Return the folder of a workspace's release, whose splits say which sessions are held out.

    Raises TrainingError for a release on the Hub; its message names the kind of rows to make (`rows`) and
    their key in `training.composer` (`key`).
    """
    if release.path is None:
        raise TrainingError(
            f"{rows} cannot be made for {release.place}: that release is on the Hub, without its sessions",
            f"a release of the workspace, or a file as training.composer.{key}",
        )
    return release.path


def held_out_traces(release: Path) -> set[str]:
    """Return the traces with rows in another split than `train`."""
    found = set[str]()
    for file in (release / "data").glob("*/*.parquet"):
        if not file.name.startswith(TRAIN):
            found |= {StepId.parse(step).trace_id for step in _column(file, "step_id")}
    return found


def stored_traces(work: Workspace, held_out: Container[str]) -> Iterator[Trace]:
    """Return every stored trace that is not held out, as it is stored, one in memory at a time."""
    return (trace for trace in read_traces(work) if trace.trace_id not in held_out)


def write_rows(settings: RunSettings, folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path | None:
    """Write rows into a file named by its content, readable by its owner alone; None for no rows."""
    lines = sorted(json.dumps(row, sort_keys=True) for row in rows)
    if not lines:
        return None
    text = "\n".join(lines) + "\n"
    path = settings.workspace / folder / f"{digest(folder.name, text)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path, private=True) as file:
        file.write_text(text, encoding="utf-8")
    return path.resolve()


def remove_rows(workspace: Path, training: TrainingSettings) -> None:
    """Remove the files of rows that were written for a training; a user's own file stays."""
    composer = training.composer
    for folder, path in (
        (HINT_ROWS, composer and composer.hints),
        (STATE_ROWS, composer and composer.states),
    ):
        if path is not None and path.parent == (workspace / folder).resolve():
            path.unlink(missing_ok=True)


def _column(file: Path, name: str) -> list[Any]:
    table: Any = ds.dataset(file)
    return table.to_table(columns=[name])[name].to_pylist() if name in table.schema.names else []
