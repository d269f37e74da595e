"""OpenHands files and folders, read as the dialect they are in.

Modules of one dialect alone are imported when the first source of it is read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.report_counts import read_rows_counting_faults
from tracemill.ingesters.openhands.prompts.completion_log_files import (
    LOG_FOLDERS,
    find_log_files_below,
    find_log_files_beside,
    find_row_log_files,
    read_logs,
)
from tracemill.ingesters.openhands.v0.rows import V0Source, traces_of_v0_events, traces_of_v0_row
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.ingesters.reading.row_files import RowFile, row_file
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_NUMBERED = re.compile(r"(\d+)\.json")
_NESTED = ("history", "trajectory", "metadata", "metrics", "test_result", "instance", "issue")
_PAGE = re.compile(r"(\d+)-(\d+)\.json")


def read_row_dialect(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """Read evaluation and resolver outputs, one run a row."""
    file = row_file(path)
    rows = file.rows(report) if file.layout == "table" else _values(file, report)
    read = partial(read_one_dialect_row, dialect=dialect, origin=path.name, report=report, beside=path)
    yield from read_rows_counting_faults((row for row in rows if row is not None), read, report)


def read_one_dialect_row(
    row: Any, dialect: str, origin: str, report: IngestReport, beside: Path | None = None
) -> Iterator[Trace | None]:
    """Yield the traces of a row with events of either version, the main one first.

    Prompts come from the completion logs next to the file `beside`. None stands for a counted skip.
    """
    if not isinstance(row, dict):
        report.skipped["row is not an object"] += 1
        return
    row = unpack_row(row)
    if "history" not in row and isinstance(row.get("trajectory"), list):
        row = row | {"history": row["trajectory"]}
    logs = find_row_log_files(beside, row.get("instance_id"), report) if beside is not None else []
    calls = read_logs(logs, report)
    if _is_v1(row.get("history")):
        from tracemill.ingesters.openhands.v1.rows import V1Source, trace_of_v1_events

        yield trace_of_v1_events(row["history"], V1Source(origin, {}, row, calls, dialect), report)
    else:
        yield from traces_of_v0_row(V0Source(origin, dialect, row, {}, calls), report)


def unpack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with columns of JSON text decoded; tables store nested values of varying shape so."""
    decoded: dict[str, Any] = {}
    for key in _NESTED:
        value = row.get(key)
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            with suppress(orjson.JSONDecodeError):
                decoded[key] = orjson.loads(value)
    return row | decoded if decoded else row


def read_v0_event_dialect(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """Read V0 events: one or several GUI exports, a file with an event a line, or a folder of event files."""
    if path.is_dir():
        yield from _v0_folder(path, dialect, report)
        return
    events = _event_list(path, report)
    exports = [each for each in events if isinstance(each, dict) and _wrapped(each) is not None]
    if exports:
        read = partial(read_one_dialect_row, dialect=dialect, origin=path.name, report=report)
        yield from read_rows_counting_faults(exports, read, report)
    else:
        yield from traces_of_v0_events(events, V0Source(path.name, dialect), report)


def read_v1_event_dialect(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """Read V1 events from a conversation folder or a single file."""
    from tracemill.ingesters.openhands.v1.rows import V1Source, trace_of_v1_events, traces_of_v1_folder

    if path.is_dir():
        yield from traces_of_v1_folder(path, report)
        return
    report.flags["no base_state.json"] += 1
    yield trace_of_v1_events(_event_list(path, report), V1Source(path.name, {}, {}, (), dialect), report)


def read_completion_dialect(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace | None]:
    """Read one completion log; in `llm_completions/<instance>/` it belongs to that instance."""
    from tracemill.ingesters.openhands.prompts.completion_log import trace_of_completion_log

    folder = path.resolve().parent
    instance = folder.name if folder.parent.name in LOG_FOLDERS else None
    yield trace_of_completion_log(read_json(path, report), dialect, path.name, report, instance)


READERS: Mapping[str, Callable[[Path, str, IngestReport], Iterator[Trace | None]]] = {
    "openhands_eval_v0": read_row_dialect,
    "openhands_resolver_v0": read_row_dialect,
    "openhands_events_v0": read_v0_event_dialect,
    "openhands_sdk_v1": read_v1_event_dialect,
    "openhands_completion_v0": read_completion_dialect,
    "openhands_completion_v1": read_completion_dialect,
}
"""The reader of each dialect."""


def _values(file: RowFile, report: IngestReport) -> Iterator[dict[str, Any] | None]:
    """Yield the objects of a file of lines, a list or one object; None for each value that is not one."""
    if file.layout == "lines":
        skipped = 0
        for row in file.rows(report):
            if report.skipped and report.skipped.total() > skipped:
                yield None
                skipped = report.skipped.total()
            yield row
        return
    value = file.value(report)
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict):
            yield row
        else:
            report.skipped["row is not an object"] += 1
            yield None


def _event_list(path: Path, report: IngestReport) -> list[Any]:
    """Return the events of one file, None at the place of each that cannot be read.

    Raises SourceError if the file holds no list of events.
    """
    file = row_file(path)
    value = list(_values(file, report)) if file.layout == "lines" else file.value(report)
    if isinstance(value, list) and len(value) == 1:
        value = _wrapped(value[0]) or value
    elif isinstance(value, dict):
        value = _wrapped(value) or ([value] if "source" in value else None)
    if not isinstance(value, list):
        raise SourceError(f"{path} holds no events", "a list of events", "check that it is an export")
    return value


def _wrapped(value: Any) -> list[Any] | None:
    """Return the list of events in an object, None if there is none."""
    keys = ("trajectory", "history", "events") if isinstance(value, dict) else ()
    return next((value[key] for key in keys if isinstance(value.get(key), list)), None)


def _v0_folder(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    """Read a session folder: `events/<id>.json`, `metadata.json` and completion logs where they exist."""
    root = path.parent if path.name == "events" else path
    events = _event_folder(path, report)
    responses: set[str | None] = {_response_of(event) for event in events} - {None}
    calls = read_logs(find_log_files_below(root, report) or find_log_files_beside(root, responses), report)
    source = V0Source(root.name, dialect, {}, _session(root), calls)
    return traces_of_v0_events(events, source, report)


def _session(root: Path) -> Mapping[str, Any]:
    """Return the content of the session's `metadata.json`, {} where it cannot be read."""
    path = root / "metadata.json"
    try:
        value = read_json(path) if path.is_file() else {}
    except SourceError:
        return {}
    return value if isinstance(value, dict) else {}


def _response_of(event: Any) -> str | None:
    call = event.get("tool_call_metadata") if isinstance(event, dict) else None
    response = call.get("model_response") if isinstance(call, dict) else None
    native = response.get("id") if isinstance(response, dict) else None
    return native if isinstance(native, str) else None


def _event_folder(path: Path, report: IngestReport) -> list[Any]:
    """Return the events of `events/<id>.json` in the order of ids.

    A missing or broken event is taken from the pages of `event_cache`, else it is None. Raises SourceError
    where the folder cannot be listed.
    """
    folder = path / "events" if (path / "events").is_dir() else path
    try:
        files = {int(n.group(1)): f for f in folder.iterdir() if (n := _NUMBERED.fullmatch(f.name))}
        cached = _cached(folder.parent / "event_cache" if folder.name == "events" else folder / "event_cache")
    except OSError as error:
        expected = "a folder of event files"
        raise SourceError(
            f"{folder} cannot be listed: {error.strerror}", expected, "check its permissions"
        ) from None
    events: list[Any] = []
    for number in sorted(files.keys() | cached.keys()):
        event = _read_event(files[number], report) if number in files else None
        if event is None and number in cached:
            report.flags["event out of the event cache"] += 1
            event = cached[number]
        elif event is None:
            report.skipped["event file does not parse"] += 1
        events.append(event)
    return events


def _read_event(path: Path, report: IngestReport) -> Any:
    try:
        event = read_json(path, report)
        report.bytes += path.stat().st_size
    except (SourceError, OSError):
        return None
    return event


def _cached(folder: Path) -> dict[int, Any]:
    """Return the events of the pages `<first>-<end>.json` of an event cache, by id."""
    events: dict[int, Any] = {}
    for page in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            listed = read_json(page) if _PAGE.fullmatch(page.name) else []
        except SourceError:
            continue
        for event in listed if isinstance(listed, list) else ():
            number = event.get("id") if isinstance(event, dict) else None
            if type(number) is int:
                events[number] = event
    return events


def _is_v1(history: Any) -> bool:
    """Return whether the events of a row are those of the SDK, which have a `kind`."""
    if not isinstance(history, list):
        return False
    first = next((event for event in history if isinstance(event, dict)), {})
    is_v0 = isinstance(first.get("action"), str) or isinstance(first.get("observation"), str)
    return isinstance(first.get("kind"), str) and not is_v0
