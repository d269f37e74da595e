"""OpenHands files and folders, read as the dialect they are in."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ingesters.openhands_completion import trace_of_completion
from ingesters.openhands_v0_rows import trace_of_events, trace_of_row
from ingesters.openhands_v1_rows import trace_of_folder, trace_of_v1_events
from ingesters.reading import iter_json_lines, read_json
from records.errors import SourceError
from records.skip import IngestReport
from records.state import Trace

_NUMBERED = re.compile(r"(\d+)\.json$")
_LINES = (".jsonl", ".jsonl.gz", ".ndjson")


def rows_of(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """Evaluation and resolver outputs: one row a run."""
    for row in _values(path, report):
        if _is_v1(row.get("history")):
            yield trace_of_v1_events(row["history"], {}, path.name, report, row, dialect)
        else:
            yield trace_of_row(row, dialect, path.name, report)


def v0_events_of(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """A GUI export, a file of events by line, or a folder with one file an event."""
    if path.is_dir():
        events, origin = list(_event_folder(path, report)), _session_name(path)
    else:
        events, origin = _event_list(path, report), path.name
    yield trace_of_events(events, dialect, origin, report)


def v1_events_of(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """A conversation folder, or its events in one file."""
    if path.is_dir():
        yield trace_of_folder(path, report)
        return
    report.flags["no base_state.json"] += 1
    yield trace_of_v1_events(_event_list(path, report), {}, path.name, report, None, dialect)


def completion_of(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """One completion log."""
    yield trace_of_completion(read_json(path, report), dialect, path.name, report)


READERS: Mapping[str, Callable[[Path, str, IngestReport], Iterator[Trace | None]]] = {
    "openhands_eval_v0": rows_of,
    "openhands_resolver_v0": rows_of,
    "openhands_events_v0": v0_events_of,
    "openhands_sdk_v1": v1_events_of,
    "openhands_completion_v0": completion_of,
    "openhands_completion_v1": completion_of,
}
"""How each dialect is read."""


def _values(path: Path, report: IngestReport) -> Iterator[dict[str, Any]]:
    """The objects of a file: lines, or a JSON list, or one JSON object."""
    if path.name.endswith(_LINES):
        for _, row in iter_json_lines(path, report, kind=None):
            yield row
        return
    value = read_json(path, report)
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict):
            yield row
        else:
            report.skipped["row is no object"] += 1


def _event_list(path: Path, report: IngestReport) -> list[Any]:
    """The events of one file. Raises SourceError where the file holds no list of events."""
    if path.name.endswith(_LINES):
        return [row for _, row in iter_json_lines(path, report, kind=None)]
    value = read_json(path, report)
    if isinstance(value, Mapping):
        value = next((value[k] for k in ("trajectory", "history", "events") if k in value), value)
    if not isinstance(value, list):
        raise SourceError(f"{path} holds no events", "a list of events", "check that it is an export")
    return value


def _event_folder(path: Path, report: IngestReport) -> Iterator[Any]:
    """The events of `<session>/events/<id>.json` in the order of ids; a broken file is counted."""
    folder = path / "events" if (path / "events").is_dir() else path
    matches = ((_NUMBERED.fullmatch(file.name), file) for file in folder.iterdir())
    for _, file in sorted((int(found.group(1)), file) for found, file in matches if found):
        try:
            report.bytes += file.stat().st_size
            yield read_json(file, report)
        except (SourceError, OSError):
            report.skipped["event file does not parse"] += 1


def _session_name(path: Path) -> str:
    return path.parent.name if path.name == "events" else path.name


def _is_v1(history: Any) -> bool:
    """Whether the events of a row are those of the SDK: they have a `kind`."""
    if not isinstance(history, list):
        return False
    first = next((event for event in history if isinstance(event, Mapping)), {})
    is_v0 = isinstance(first.get("action"), str) or isinstance(first.get("observation"), str)
    return isinstance(first.get("kind"), str) and not is_v0
