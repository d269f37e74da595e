"""Parse OpenHands V0 events from the four shapes they are stored in.

- event dicts with `id`, `action` + `args` or `observation` + `content` + `extras` (event stream, GUI);
- lists of [action, observation] pairs of such dicts (evaluation outputs before 0.14);
- flattened dataclasses without id, source and args (resolver outputs): the fields are at the top level;
- rows of a table, where every event has every column, and `extras` holds the arguments too.

Early GUI sessions also hold messages of the server about the connection.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.common.openai_messages import unread_calls, unread_content
from tracemill.records.ingest_report import IngestReport, record_type

_TOP = frozenset({"id", "timestamp", "source", "message", "cause", "action", "observation", "content"})
UNREAD_EVENT = "event that is not understood"
EVENT_KEYS = _TOP | {"args", "extras", "tool_call_metadata", "llm_metrics", "timeout", "success"}
"""Keys of an event whose fields lie below `args` or `extras`."""


@dataclass(slots=True)
class V0Event:
    """One event; `fields` are the arguments of an action or the extras of an observation.

    `call` is the recorded `tool_call_metadata`; `cause` the id of the action an observation answers, None
    where the record does not say.
    """

    id: int
    is_action: bool
    name: str
    source: str
    content: str
    fields: Mapping[str, Any]
    cause: int | None = None
    timestamp: str | None = None
    call: Mapping[str, Any] | None = None

    def field(self, name: str) -> str:
        """Return a text field, "" if it is missing or not text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def read_v0_events(history: list[Any], report: IngestReport) -> tuple[list[V0Event], bool]:
    """Return the events of a history in order, and whether one before the last could not be read.

    An event that could not be read is None in `history`; other values are counted in `report.skipped`.
    """
    events: list[V0Event] = []
    kinds: Counter[tuple[bool, str]] = Counter()
    seen: dict[int, Any] = {}
    broken = lost = False
    last_action: int | None = None
    flat = _flat(history)
    linked = any(
        isinstance(raw, dict) and (raw.get("cause") or raw.get("tool_call_metadata")) for raw, _ in flat
    )
    for raw, paired in _in_order(flat, report):
        if is_status_event(raw):
            report.records["status"] += 1
            continue
        event = None if raw is None else _event(raw, len(events), report)
        if event is None or raw is None:
            broken = True
            continue
        number = raw.get("id")
        if type(number) is int and (first := seen.setdefault(number, raw)) is not raw and first == raw:
            report.skipped["repeated event"] += 1
            continue
        lost |= broken
        unnumbered = number is None and "id" not in raw
        if not event.is_action and event.cause is None and (paired or unnumbered or not linked):
            event.cause = last_action
        if event.source == "":
            event.source = _source(event, events)
        if event.is_action and event.source == "agent":
            last_action = event.id
        kinds[event.is_action, event.name] += 1
        events.append(event)
    for (is_action, name), count in kinds.items():
        report.records[f"{'A' if is_action else 'O'}:{record_type(name)}"] += count
    return events, lost


def _flat(history: list[Any]) -> list[tuple[Any, bool]]:
    """Return every raw event, and whether it is the observation of a pair."""
    flat: list[tuple[Any, bool]] = []
    for item in history:
        if isinstance(item, list):
            flat.extend((raw, place > 0) for place, raw in enumerate(item))
        else:
            flat.append((item, False))
    return flat


def _in_order(flat: list[tuple[Any, bool]], report: IngestReport) -> list[tuple[Any, bool]]:
    """Return raw events in the order of their ids, where each has an id of its own."""
    first = flat[0][0] if flat else None
    if not isinstance(first, dict) or type(first.get("id")) is not int:
        return flat
    ids = [raw.get("id") if isinstance(raw, dict) else None for raw, _ in flat]
    numbered = [number for number in ids if type(number) is int]
    if len(numbered) < len(ids) or numbered == sorted(numbered) or len(set(numbered)) < len(ids):
        return flat
    report.flags["events out of order"] += 1
    return [flat[place] for place in sorted(range(len(flat)), key=numbered.__getitem__)]


def _event(raw: Any, place: int, report: IngestReport) -> V0Event | None:
    if not isinstance(raw, dict):
        report.skipped["event is not an object"] += 1
        return None
    get = raw.get
    name = get("action")
    is_action = isinstance(name, str)
    if not is_action:
        name = get("observation")
        if not isinstance(name, str):
            report.skipped["event is neither action nor observation"] += 1
            return None
    fields = _fields(raw, is_action)
    if unread := unread_v0_event(raw):
        report.skipped[UNREAD_EVENT] += 1
        report.unknown.update(f"event {record_type(part)}" for part in unread)
        return None
    number, source, content = get("id"), get("source"), get("content")
    call, cause, timestamp = get("tool_call_metadata"), get("cause"), get("timestamp")
    if not content or not isinstance(content, str):
        inner = fields.get("content") if is_action else None
        content = inner if isinstance(inner, str) else ""
    return V0Event(
        place if number is None else _integer(number, place),
        is_action,
        name,
        source if isinstance(source, str) else "",
        content,
        fields,
        None if cause is None else _integer(cause, -1),
        timestamp if timestamp and isinstance(timestamp, str) else None,
        call if isinstance(call, dict) else None,
    )


def _fields(raw: Mapping[str, Any], is_action: bool) -> Mapping[str, Any]:
    """Return the arguments of an action or the extras of an observation.

    Of a flattened event these are its own keys.
    """
    for key in ("args", "extras") if is_action else ("extras",):
        value = raw.get(key)
        if isinstance(value, dict):
            return value
    return {key: value for key, value in raw.items() if key not in _TOP}


def unread_v0_event(raw: Mapping[str, Any]) -> list[str]:
    """Return the names of texts, and of parts of the recorded response, that are not understood."""
    is_action = isinstance(raw.get("action"), str)
    texts = [("content", raw.get("content"))]
    if is_action:
        fields = _fields(raw, is_action)
        texts += [(key, fields.get(key)) for key in ("content", "thought")]
    unread = [key for key, value in texts if not isinstance(value, str | None)]
    response = recorded_message(raw.get("tool_call_metadata")) if is_action else None
    if response is not None:
        unread += [*unread_content(response.get("content")), *unread_calls(response)]
    return unread


def recorded_message(call: Any) -> dict[str, Any] | None:
    """Return the message of the response in the metadata of a call, None if there is none."""
    response = call.get("model_response") if isinstance(call, dict) else None
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def is_status_event(raw: Any) -> bool:
    """Return whether this is a message of the server about the connection, which has no id."""
    if not isinstance(raw, dict) or raw.get("source") != "environment" or raw.get("id") is not None:
        return False
    return raw.get("action") is None and raw.get("observation") is None


def _source(event: V0Event, before: list[V0Event]) -> str:
    """Return the source of an event that names none; a message that waits for a reply is the agent's."""
    if not event.is_action:
        return "environment"
    if event.name != "message":
        return "agent"
    is_first = all(not e.is_action for e in before)
    return "agent" if event.fields.get("wait_for_response") and not is_first else "user"


def _integer(value: Any, fallback: int) -> int:
    """Return an id as an integer; ids below zero mean "not set"."""
    if type(value) is int:
        return value if value >= 0 else fallback
    if not isinstance(value, str):
        return fallback
    try:
        return int(value) if int(value) >= 0 else fallback
    except ValueError:
        return fallback
