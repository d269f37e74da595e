"""Which dialect a record is in, told by its keys.

| dialect | told by |
|---|---|
| `claude_code` | records with `type` and `uuid` or `sessionId` |
| `openhands_eval_v0` | rows with `history` and `instance_id`, or `metadata` and a task, result or pairs |
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
from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.ingesters.claude_code.record_fields import is_native

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
_ROW_KEYS = frozenset(("instance_id", "traj_id", "trajectory_id"))
_RUN_KEYS = frozenset(("instruction", "test_result"))
_EVENT_COLUMNS = frozenset(("id", "source", "action", "observation"))
_BARE_ROW = frozenset(("messages", "tools"))
_ROLES = frozenset(("system", "user", "assistant", "tool", "ai", "developer", "function"))
_MINI_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)\s*\n|<(?:mswea_bash_command|bash_code)>")


def dialect_of(record: Mapping[str, Any]) -> str | None:
    """The dialect of one JSON object, None where its keys say nothing."""
    found = _agent_run(record)
    if found:
        return found
    if not _ROW_KEYS.isdisjoint(record):
        return _row(record)
    if "issue" in record and "history" in record:
        return "openhands_resolver_v0"
    if (
        "history" in record
        and "metadata" in record
        and (not _RUN_KEYS.isdisjoint(record) or _pairs(record["history"]))
    ):
        return "openhands_eval_v0"
    if is_native(record):
        return "claude_code"
    if _is_completion(record):
        is_v1 = "usage_summary" in record or "context_window" in record or "instructions" in record
        return "openhands_completion_v1" if is_v1 else "openhands_completion_v0"
    found = event_dialect(record) or _export(record) or ("swe_gym" if _holds_chat(record) else None)
    return found or (EVALUATION if _is_evaluation(record) else None)


def dialect_of_list(values: Sequence[Any]) -> str | None:
    """The dialect of a JSON list by its first objects, None where they say nothing."""
    items = [item for item in values[:_LOOKED_AT] if isinstance(item, Mapping)]
    found = next((found for item in items if (found := dialect_of(item))), None)
    return found or ("mini_swe_agent" if any(_acts_as_mini(item) for item in items) else None)


def dialect_of_table(schema: Any) -> str | None:
    """The dialect by the columns of a table, an Arrow schema."""
    import pyarrow as pa

    record: dict[str, Any] = dict.fromkeys(schema.names)
    for name in ("trajectory", "history"):
        kind = schema.field(name).type if name in record else None
        if kind is not None and pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            record[name] = [dict.fromkeys(field.name for field in kind.value_type)]
            if record[name][0].keys() >= _EVENT_COLUMNS:
                return "openhands_eval_v0"
    return dialect_of(record)


def _acts_as_mini(item: Mapping[str, Any]) -> bool:
    """Whether a message of a bare list is an answer with a command of mini-swe-agent."""
    content = item.get("content")
    return (
        item.get("role") == "assistant"
        and isinstance(content, str)
        and _MINI_COMMAND.search(content) is not None
    )


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


def _pairs(value: Any) -> bool:
    """Whether a history is of pairs [action, observation], each an event of OpenHands."""
    first = value[0] if isinstance(value, list) and value else None
    action = first[0] if isinstance(first, list) and first else None
    return isinstance(action, Mapping) and event_dialect(action) is not None


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


def event_dialect(record: Mapping[str, Any]) -> str | None:
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
            found = event_dialect(item) if isinstance(item, Mapping) else None
            if found:
                return found
    return "openhands_sdk_v1" if "agent" in record and "persistence_dir" in record else None
