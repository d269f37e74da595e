"""Find the completion logs of a session.

- below a conversation folder, in any folder but those of its events and subagents;
- beside it: in folders next to it, or next to the `conversations` folder it lies in;
- for a row of an evaluation: `llm_completions/<instance>/` (or `completions/`) next to the file of rows.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message

if TYPE_CHECKING:
    from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall

LOG_FOLDERS = ("llm_completions", "completions")
CLOSED = "folder of completion logs cannot be listed"
_MIN_ID_CHARS = 8  # shorter ids of responses may belong to another session
_LOG_NAME = re.compile(r"-(\d{9,11}\.\d+)(?:-[0-9a-f]{4})?\.json$")
_LOG_HEAD = re.compile(rb'\s*\{\s*"(?:messages|context_window|llm_path|instructions|input)"')
_CONVERSATION = re.compile(r"[0-9a-f]{32}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NOT_LOGS = frozenset({"events", "event_cache", "subagents"})
_RESPONSE_ID = re.compile(rb'"(?:llm_response_id|id)"\s*:\s*"([^"\\]+)"')
_INSTANCE_ID = re.compile(rb'"instance_id"\s*:\s*"([^"\\]+)"')


def read_logs(paths: Iterable[Path], report: IngestReport) -> "list[LoggedCall]":
    """Return the calls logged in files, in order of time; equal messages become one object."""
    calls: list[LoggedCall] = []
    shared: dict[Message, Message] = {}
    if not (logs := sorted(paths, key=_time_of)):
        return calls
    from tracemill.ingesters.openhands.prompts.completion_log import parse_completion_log

    for path in logs:
        try:
            call = parse_completion_log(read_json(path), report)
        except SourceError:
            report.skipped["completion log does not parse"] += 1
            continue
        _add_call(calls, call, shared)
    return calls


def _add_call(calls: "list[LoggedCall]", call: "LoggedCall | None", shared: dict[Message, Message]) -> None:
    if call is None:
        return
    prompt = tuple(shared.setdefault(message, message) for message in call.prompt)
    offered = calls[-1].offered if calls and calls[-1].offered == call.offered else call.offered
    calls.append(replace(call, prompt=prompt, offered=offered))


def read_logs_in_events(events: Iterable[Mapping[str, Any]], report: IngestReport) -> "list[LoggedCall]":
    """Return the calls that a remote agent logged as events."""
    calls: list[LoggedCall] = []
    shared: dict[Message, Message] = {}
    for event in events:
        if event.get("kind") == "LLMCompletionLogEvent":
            from tracemill.ingesters.openhands.prompts.completion_log import parse_completion_log

            try:
                log = orjson.loads(str(event.get("log_data")))
            except orjson.JSONDecodeError:
                log = None
            _add_call(calls, parse_completion_log(log, report), shared)
    return calls


def find_log_files_below(conversation: Path, report: IngestReport) -> list[Path]:
    """Return the completion logs in folders below a conversation; flag folders that cannot be listed."""
    logs: list[Path] = []
    errors: list[OSError] = []
    for folder, folders, names in os.walk(conversation, onerror=errors.append):
        folders[:] = sorted(name for name in folders if name not in _NOT_LOGS and name[0] != ".")
        named = (f"{folder}/{name}" for name in names if name.endswith(".json"))
        logs.extend(Path(path) for path in named if _looks_like_log(path))
    if errors:
        report.flags[CLOSED] += len(errors)
    return logs


def find_log_files_beside(conversation: Path, responses: set[str | None]) -> list[Path]:
    """Return the completion logs of these responses in folders next to a conversation."""
    parents = [conversation.parent]
    if conversation.parent.name == "conversations":
        parents.append(conversation.parent.parent)
    logs: list[Path] = []
    for folder in (Path(f) for parent in parents for f in _log_folders(str(parent))):
        try:
            by_response = _responses_in(folder, folder.stat().st_mtime_ns)
        except OSError:
            continue
        logs.extend(by_response[response] for response in responses if response in by_response)
    return logs


def find_row_log_files(rows: Path, instance: Any, report: IngestReport) -> list[Path]:
    """Return the completion logs of a row's instance, next to the file of rows.

    A folder of logs that cannot be listed is flagged.
    """
    logs: list[Path] = []
    if not isinstance(instance, str) or not instance or Path(instance).name != instance:
        return logs
    for name in LOG_FOLDERS:
        try:
            logs.extend(p for p in (rows.parent / name / instance).iterdir() if p.suffix == ".json")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            report.flags[CLOSED] += 1
    return logs


def drop_read_log_files(sources: list[SourceFile]) -> list[SourceFile]:
    """Return the sources without the completion logs that are read with another one of them."""
    logs = [s for s in sources if (s.dialect or "").startswith("openhands_completion")]
    if not logs:
        return sources
    claimed: set[Path] = set()
    for source in sources:
        if source.dialect == "openhands_eval_v0":
            claimed |= _logs_of_rows(source.path, logs)
        elif source.dialect in ("openhands_sdk_v1", "openhands_events_v0") and not source.path.is_file():
            responses: set[str | None] = set(_ids_in(source.path))
            claimed |= {path.resolve() for path in find_log_files_beside(source.path, responses)}
    read = {id(log) for log in logs if log.path.resolve() in claimed}
    return [source for source in sources if id(source) not in read]


def _logs_of_rows(rows: Path, logs: Iterable[SourceFile]) -> set[Path]:
    """Return the logs in the folders of instances that the file has a row of."""
    near = [log.path for log in logs if log.path.parent.parent.parent == rows.parent]
    near = [path for path in near if path.parent.parent.name in LOG_FOLDERS]
    if not near:
        return set()
    named: set[str] = set()
    with suppress(OSError, EOFError), open_bytes(rows) as stream:
        for line in stream:
            named.update(instance.decode("utf-8", "replace") for instance in _INSTANCE_ID.findall(line))
    return {path.resolve() for path in near if path.parent.name in named}


def _ids_in(conversation: Path) -> Iterator[str]:
    """Yield every id in the event files of a conversation, those of responses included."""
    for path in (*conversation.glob("events/*.json"), *conversation.glob("*.json")):
        try:
            yield from (
                native.decode("utf-8", "replace") for native in _RESPONSE_ID.findall(path.read_bytes())
            )
        except OSError:
            continue


def _log_folders(place: str) -> Iterator[str]:
    """Yield the folders next to conversations that may hold completion logs, and `place` itself."""
    yield place
    for name in _folders_in(place):
        entry = f"{place}/{name}"
        if not _CONVERSATION.fullmatch(name) and not os.path.lexists(f"{entry}/base_state.json"):
            yield entry
            yield from (f"{entry}/{below}" for below in _folders_in(entry))


def _folders_in(folder: str) -> list[str]:
    """Return the names of the folders in a folder."""
    try:
        with os.scandir(folder) as entries:
            named = [e.name for e in entries if e.is_dir(follow_symlinks=False) and e.name[0] != "."]
    except OSError:
        return []
    return [name for name in sorted(named) if name not in _NOT_LOGS]


@lru_cache(maxsize=64)
def _responses_in(folder: Path, modified_ns: int) -> dict[str | None, Path]:
    """Return the logs of a folder by response id; read again when the folder has changed."""
    by_response: dict[str | None, Path] = {}
    for path in sorted(folder.iterdir()):
        if _LOG_NAME.search(path.name):
            try:
                log = read_json(path)
            except SourceError:
                continue
            response = log.get("response") if isinstance(log, dict) else None
            native = response.get("id") if isinstance(response, dict) else None
            if isinstance(native, str) and len(native) >= _MIN_ID_CHARS:
                by_response[native] = path
    return by_response


def _looks_like_log(path: str) -> bool:
    try:
        with io.FileIO(path) as stream:
            return _LOG_HEAD.match(stream.read(200)) is not None
    except OSError:
        return False


def _time_of(path: Path) -> tuple[float, str]:
    """Return when a log was written, from its name."""
    match = _LOG_NAME.search(path.name)
    return float(match.group(1)) if match else 0.0, path.name
