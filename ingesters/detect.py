"""Which dialect a file or folder is in, told by its content, never by its name.

| dialect | told by |
|---|---|
| `claude_code` | records with `type` and `uuid` or `sessionId` |
| `openhands_eval_v0` | rows with `history` and `instance_id`, or with `metadata` and a task or its result |
| `openhands_resolver_v0` | rows with `issue` and `history` |
| `openhands_events_v0` | events with `source` and `action` or `observation`; a folder of `events/<id>.json` |
| `openhands_sdk_v1` | events with `source` and `kind`; a folder of `base_state.json`, `events/event-*.json` |
| `openhands_completion_v0`, `_v1` | one object with a prompt, a `response` and its cost |
| `swe_agent` | `trajectory` of steps with `action` and `observation`, or `history` of an agent |
| `mini_swe_agent` | `messages` with `trajectory_format` or `info`; a bare list of messages |
| `swe_gym` | rows with `messages` or `trajectory` of chat messages |
| `zip archive` | no session: it is not unpacked |
| `evaluation` | no session: verdicts or patches by instance, read with the runs they lie beside |
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from ingesters.claude_code_entries import is_native
from ingesters.reading import open_bytes, read_json
from records.errors import SourceError

EVALUATION = "evaluation"
ARCHIVE = "zip archive"
DIALECTS = (
    "claude_code",
    "openhands_eval_v0",
    "openhands_resolver_v0",
    "openhands_events_v0",
    "openhands_sdk_v1",
    "openhands_completion_v0",
    "openhands_completion_v1",
    "swe_agent",
    "mini_swe_agent",
    "swe_gym",
)
"""Every dialect there is a reader for."""

_LOOKED_AT = 50
_LOOKED_AT_TEXT = 100_000
_LONGEST_LINE = 1 << 28
_V0_EVENT_FILE = re.compile(r"\d+(?:-\d+)?\.json")
_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_TRAJ_HEAD = re.compile(
    rb'\{\s*(?:"environment":\s*"[^"]{0,200}",\s*)?"trajectory":\s*\[\s*\{\s*"action":\s*"'
)  # enough to know a .traj, also a cut one, without reading what may be many MB
_INDENTED = re.compile(rb'[\xef\xbb\xbf\s]*(\{\s*"trajectory":\s*)?\[\s*\n([ \t]+)(?=\{\r?\n)')
_FIRST_BYTES = (1 << 16, 1 << 18)
"""Bytes in which the first object of an indented list is looked for, one after the other."""
_ROW_KEYS = frozenset(("instance_id", "traj_id", "trajectory_id"))
_RUN_KEYS = frozenset(("instruction", "test_result"))
_BARE_ROW = frozenset(("messages", "tools"))
_ROLES = frozenset(("system", "user", "assistant", "tool", "ai", "developer", "function"))
_MINI_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)\s*\n|<(?:mswea_bash_command|bash_code)>")


def detect(path: Path) -> str | None:
    """The dialect of a file or of a session folder, None where it is none that is known.

    Raises SourceError where the path cannot be read.
    """
    try:
        if path.is_dir():
            return _folder(path)
        with open_bytes(path, glance=True) as stream:
            head = stream.read(4)
        if head == _PARQUET:
            return _parquet(path)
        if head == _ZIP:
            return ARCHIVE
        return _lines(path) or _whole(path)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path} cannot be read: {reason}", "a readable file", "check it") from None


def _folder(path: Path) -> str | None:
    """A conversation folder of OpenHands: V1 with named events, V0 with numbered ones."""
    if (path / "base_state.json").is_file():
        return "openhands_sdk_v1"
    events = path / "events"
    names = [child.name for child in events.iterdir()] if events.is_dir() else []
    if any(name.startswith("event-") and name.endswith(".json") for name in names):
        return "openhands_sdk_v1"
    pages = path / "event_cache"
    names += [child.name for child in pages.iterdir()] if pages.is_dir() else []
    if any(_V0_EVENT_FILE.fullmatch(name) for name in names):
        return "openhands_events_v0"
    return None


def _lines(path: Path) -> str | None:
    """The dialect of the first lines that are JSON objects."""
    for value in _first_objects(path):
        found = dialect_of(value)
        if found is not None:
            return found
    return None


def _first_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Objects among the first lines; a single line may hold a list of them."""
    with open_bytes(path, glance=True) as stream:
        left = _LOOKED_AT
        while left and (line := stream.readline(_LONGEST_LINE)):
            line = line.strip().removeprefix(b"\xef\xbb\xbf")
            if not line:
                continue
            left -= 1
            if line[:1] != b"{" or line[-1:] != b"}":
                if left == _LOOKED_AT - 1 and line[:1] == b"[":
                    return
                continue
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                yield value


def _whole(path: Path) -> str | None:
    """The dialect of a file that is one JSON value over many lines, or a list."""
    with open_bytes(path, glance=True) as stream:
        head = stream.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:1] not in (b"[", b"{"):
        return None
    if _TRAJ_HEAD.match(head):
        return "swe_agent"
    if (told := _by_first(path, head)) is not None:
        return told
    try:
        value = read_json(path)
    except SourceError:
        return None
    if isinstance(value, Mapping):
        return dialect_of(value)
    items = (
        [item for item in value[:_LOOKED_AT] if isinstance(item, Mapping)] if isinstance(value, list) else []
    )
    found = next((found for item in items if (found := dialect_of(item))), None)
    return found or ("mini_swe_agent" if any(_acts_as_mini(item) for item in items) else None)


def _by_first(path: Path, head: bytes) -> str | None:
    """The dialect by the first object of an indented list, which ends at the first brace with its own
    indentation, since no string holds a line break. None where that does not tell."""
    found = _INDENTED.match(head)
    if found is None:
        return None
    data, start, end = b"", 0, -1
    with open_bytes(path, glance=True) as stream:
        for size in _FIRST_BYTES:
            data += stream.read(size - len(data))
            start = data.find(b"{", data.find(b"["))
            end = data.find(b"\n" + found[2] + b"}", start)
            if end >= 0:
                break
    try:
        value = orjson.loads(data[start : end + len(found[2]) + 2])
    except orjson.JSONDecodeError:
        return None
    return _event(value) if found[1] else dialect_of(value)


def _acts_as_mini(item: Mapping[str, Any]) -> bool:
    """Whether a message of a bare list is an answer with a command of mini-swe-agent."""
    content = item.get("content")
    return (
        item.get("role") == "assistant"
        and isinstance(content, str)
        and _MINI_COMMAND.search(content) is not None
    )


def dialect_of(record: Mapping[str, Any]) -> str | None:
    """The dialect of one JSON object, None where its keys say nothing."""
    found = _agent_run(record)
    if found:
        return found
    if not _ROW_KEYS.isdisjoint(record):
        return _row(record)
    if "issue" in record and "history" in record:
        return "openhands_resolver_v0"
    if "history" in record and "metadata" in record and not _RUN_KEYS.isdisjoint(record):
        return "openhands_eval_v0"
    if is_native(record):
        return "claude_code"
    if _is_completion(record):
        is_v1 = "usage_summary" in record or "context_window" in record or "instructions" in record
        return "openhands_completion_v1" if is_v1 else "openhands_completion_v0"
    found = _event(record) or _export(record) or ("swe_gym" if _holds_chat(record) else None)
    return found or (EVALUATION if _is_evaluation(record) else None)


def _agent_run(record: Mapping[str, Any]) -> str | None:
    """A run of mini-swe-agent or SWE-agent, as a file or a row."""
    info = record.get("info")
    if "messages" in record and (
        str(record.get("trajectory_format")).startswith("mini-swe-agent")
        or (isinstance(info, Mapping) and ("exit_status" in info or "mini_version" in info))
    ):
        return "mini_swe_agent"
    attempts = record.get("attempts")
    for run in (record, *(attempts[:1] if isinstance(attempts, list) else ())):
        if isinstance(run, Mapping) and (
            _steps(run.get("trajectory")) or _agent_messages(run.get("history"))
        ):
            return "swe_agent"
    return None


def _steps(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, Mapping) and "action" in first and "observation" in first and "id" not in first


def _agent_messages(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, Mapping) and "role" in first and ("agent" in first or "message_type" in first)


def _holds_chat(record: Mapping[str, Any]) -> bool:
    """Whether `messages` is a conversation; of a table only the name of the column is known."""
    value = record.get("messages")
    if "response" in record or "prompt" in record:
        return False
    if value is None:
        return "messages" in record
    if isinstance(value, str):
        return value[:1] == "[" and '"role"' in value[:_LOOKED_AT_TEXT]
    first = value[0] if isinstance(value, list) and value else None
    return record.keys() <= _BARE_ROW or (isinstance(first, Mapping) and first.get("role") in _ROLES)


def _is_evaluation(record: Mapping[str, Any]) -> bool:
    """Whether an object lists instances by verdict, or gives each its verdict or patch."""
    if any(isinstance(record.get(key), list) for key in ("resolved_ids", "resolved")):
        return True
    values = [value for value in list(record.values())[:_LOOKED_AT] if isinstance(value, Mapping)]
    return bool(values) and all("resolved" in value or "model_patch" in value for value in values)


def _row(record: Mapping[str, Any]) -> str | None:
    if "history" in record:
        return "openhands_eval_v0"
    return "swe_gym" if "messages" in record or "trajectory" in record else None


def _is_completion(record: Mapping[str, Any]) -> bool:
    prompt = isinstance(record.get("messages"), list) or "input" in record
    return prompt and isinstance(record.get("response"), Mapping) and ("cost" in record or "kwargs" in record)


def _event(record: Mapping[str, Any]) -> str | None:
    """An event of OpenHands on its own."""
    if "source" not in record or "id" not in record:
        return None
    if isinstance(record.get("action"), str) or isinstance(record.get("observation"), str):
        return "openhands_events_v0"
    return "openhands_sdk_v1" if isinstance(record.get("kind"), str) else None


def _export(record: Mapping[str, Any]) -> str | None:
    """Events wrapped in an object, or the state of a V1 conversation."""
    for key in ("trajectory", "history", "events"):
        items = record.get(key)
        for item in items[:_LOOKED_AT] if isinstance(items, list) else ():
            found = _event(item) if isinstance(item, Mapping) else None
            if found:
                return found
    return "openhands_sdk_v1" if "agent" in record and "persistence_dir" in record else None


def _parquet(path: Path) -> str | None:
    """The dialect of a Parquet file."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowInvalid

    try:
        return dialect_of_table(pq.read_schema(path))
    except ArrowInvalid as error:
        raise SourceError(f"{path} is broken Parquet: {error}", "a whole file", "fetch it again") from None


def dialect_of_table(schema: Any) -> str | None:
    """The dialect by the columns of a table, an Arrow schema."""
    import pyarrow as pa

    record: dict[str, Any] = dict.fromkeys(schema.names)
    for name in ("trajectory", "history"):
        kind = schema.field(name).type if name in record else None
        if kind is not None and pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            record[name] = [dict.fromkeys(field.name for field in kind.value_type)]
    return dialect_of(record)
