"""OpenHands V0 events in one shape, from the four shapes they are stored in.

- event dicts with `id`, `action` + `args` or `observation` + `content` + `extras` (event stream, GUI);
- lists of [action, observation] pairs of such dicts (evaluation outputs before 0.14);
- flattened dataclasses without id, source and args (resolver outputs): the fields lie on the top.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from records.skip import IngestReport

_TOP = frozenset({"id", "timestamp", "source", "message", "cause", "action", "observation", "content"})


@dataclass(frozen=True, slots=True)
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


def v0_events(history: list[Any], report: IngestReport) -> list[V0Event]:
    """The events of a history in order; what is no event is counted in `report.skipped`."""
    events: list[V0Event] = []
    for raw, paired in _flat(history):
        event = _event(raw, len(events), report)
        if event is None:
            continue
        if not event.is_action and event.cause is None and (paired or "id" not in raw):
            event = replace(event, cause=_last_agent_action(events))
        if event.source == "":
            event = replace(event, source=_source(event, events))
        report.records[f"{'A' if event.is_action else 'O'}:{event.name}"] += 1
        events.append(event)
    return events


def _flat(history: list[Any]) -> Iterator[tuple[Any, bool]]:
    """Every raw event, and whether it is the observation of a pair."""
    for item in history:
        if isinstance(item, list):
            yield from ((raw, place > 0) for place, raw in enumerate(item))
        else:
            yield item, False


def _event(raw: Any, place: int, report: IngestReport) -> V0Event | None:
    if not isinstance(raw, Mapping):
        report.skipped["event is no object"] += 1
        return None
    action, observation = raw.get("action"), raw.get("observation")
    name = action if isinstance(action, str) else observation
    if not isinstance(name, str):
        report.skipped["event is neither action nor observation"] += 1
        return None
    is_action = isinstance(action, str)
    nested = raw.get("args" if is_action else "extras")
    fields = nested if isinstance(nested, Mapping) else {k: v for k, v in raw.items() if k not in _TOP}
    return V0Event(
        id=_integer(raw.get("id"), place),
        is_action=is_action,
        name=name,
        source=_text(raw.get("source")),
        content=_text(raw.get("content")) or _text(fields.get("content") if is_action else ""),
        fields=fields,
        cause=_integer(raw.get("cause"), -1) if raw.get("cause") is not None else None,
        timestamp=_text(raw.get("timestamp")) or None,
        call=_mapping(raw.get("tool_call_metadata")),
    )


def _source(event: V0Event, before: list[V0Event]) -> str:
    """Who is behind an event that does not say: a message is the agent's where it waits for a reply."""
    if not event.is_action:
        return "environment"
    if event.name != "message":
        return "agent"
    is_first = all(not e.is_action for e in before)
    return "agent" if event.fields.get("wait_for_response") and not is_first else "user"


def _last_agent_action(events: list[V0Event]) -> int | None:
    return next((e.id for e in reversed(events) if e.is_action and e.source == "agent"), None)


def _integer(value: Any, fallback: int) -> int:
    """An id as an integer; ids below zero mean "not set"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return fallback
    try:
        return int(value) if int(value) >= 0 else fallback
    except ValueError:
        return fallback


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None
