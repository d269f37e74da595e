"""OpenHands V0 events in one shape, from the four shapes they are stored in.

- event dicts with `id`, `action` + `args` or `observation` + `content` + `extras` (event stream, GUI);
- lists of [action, observation] pairs of such dicts (evaluation outputs before 0.14);
- flattened dataclasses without id, source and args (resolver outputs): the fields lie on the top;
- rows of a table, where every event has every column, and `extras` holds the arguments too.

Between the events of early GUI sessions lie messages of the server about the connection.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracemill.records.ingest_report import IngestReport, record_type

_TOP = frozenset({"id", "timestamp", "source", "message", "cause", "action", "observation", "content"})


@dataclass(slots=True)
class V0Event:
    """One event. `fields` are the arguments of an action or the extras of an observation.

    `call` is the recorded `tool_call_metadata`; `cause` the id of the action an observation answers,
    None where the record does not say.
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
        """A text field, "" where it is absent or no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def read_v0_events(history: list[Any], report: IngestReport) -> tuple[list[V0Event], bool]:
    """The events of a history in order, and whether one before the last of them could not be read (None
    in `history`, or no event; what is no event is counted in `report.skipped`)."""
    events: list[V0Event] = []
    kinds: Counter[tuple[bool, str]] = Counter()
    seen: dict[int, Any] = {}
    broken = lost = False
    acted: int | None = None  # the agent's last action
    flat = _flat(history)
    linked = any(
        isinstance(raw, dict) and (raw.get("cause") or raw.get("tool_call_metadata")) for raw, _ in flat
    )
    for raw, paired in _in_order(flat, report):
        if _is_status(raw):
            report.records["status"] += 1
            continue
        event = None if raw is None else _event(raw, len(events), report)
        if event is None or raw is None:
            broken = True
            continue
        number = raw.get("id")
        if type(number) is int and (first := seen.setdefault(number, raw)) is not raw and first == raw:
            report.skipped["repeated event"] += 1  # the same in all under one id
            continue
        lost |= broken
        unnumbered = number is None and "id" not in raw
        if not event.is_action and event.cause is None and (paired or unnumbered or not linked):
            event.cause = acted
        if event.source == "":
            event.source = _source(event, events)
        if event.is_action and event.source == "agent":
            acted = event.id
        kinds[event.is_action, event.name] += 1
        events.append(event)
    for (is_action, name), count in kinds.items():
        report.records[f"{'A' if is_action else 'O'}:{record_type(name)}"] += count
    return events, lost


def _flat(history: list[Any]) -> list[tuple[Any, bool]]:
    """Every raw event, and whether it is the observation of a pair."""
    if list not in map(type, history):
        return [(item, False) for item in history]
    found: list[tuple[Any, bool]] = []
    for item in history:
        if isinstance(item, list):
            found.extend((raw, place > 0) for place, raw in enumerate(item))
        else:
            found.append((item, False))
    return found


def _in_order(flat: list[tuple[Any, bool]], report: IngestReport) -> list[tuple[Any, bool]]:
    """Raw events in the order of their ids, where each has one of its own."""
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
        report.skipped["event is no object"] += 1
        return None
    get = raw.get
    name = get("action")
    is_action = isinstance(name, str)
    if not is_action:
        name = get("observation")
        if not isinstance(name, str):
            report.skipped["event is neither action nor observation"] += 1
            return None
    fields = get("args") if is_action else None
    if not isinstance(fields, dict):
        fields = get("extras")
    if not isinstance(fields, dict):
        fields = {key: value for key, value in raw.items() if key not in _TOP}
    number, source, content = get("id"), get("source"), get("content")
    call, cause, timestamp = get("tool_call_metadata"), get("cause"), get("timestamp")
    if not content or not isinstance(content, str):
        content = _text(fields.get("content")) if is_action else ""
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


def _is_status(raw: Any) -> bool:
    """Whether it is a message of the server about the connection, which is no event and has no number."""
    if not isinstance(raw, dict) or raw.get("source") != "environment" or raw.get("id") is not None:
        return False
    return raw.get("action") is None and raw.get("observation") is None


def _source(event: V0Event, before: list[V0Event]) -> str:
    """Who is behind an event that does not say: a message is the agent's where it waits for a reply."""
    if not event.is_action:
        return "environment"
    if event.name != "message":
        return "agent"
    is_first = all(not e.is_action for e in before)
    return "agent" if event.fields.get("wait_for_response") and not is_first else "user"


def _integer(value: Any, fallback: int) -> int:
    """An id as an integer; ids below zero mean "not set"."""
    if type(value) is int:
        return value if value >= 0 else fallback
    if not isinstance(value, str):
        return fallback
    try:
        return int(value) if int(value) >= 0 else fallback
    except ValueError:
        return fallback


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
