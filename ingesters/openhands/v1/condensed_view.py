"""The view of a V1 conversation: the events that are in the prompt, and their messages.

Follows `View.from_events`, its properties and `events_to_messages` of openhands-sdk 1.x.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tracemill.ingesters.openhands.v1.event_text import (
    RESULT_KINDS,
    SHOWN_KINDS,
    SYSTEM_KINDS,
    Event,
    action_event_message,
    event_text_field,
    result_event_message,
    system_event_message,
    text_event_message,
    v1_event_kind,
)
from tracemill.records.message import Message


def view_response_key(event: Event) -> str:
    """Return a key of the response that an action belongs to: its id, else the id of the event."""
    return event_text_field(event, "llm_response_id") or f"event {event_text_field(event, 'id')}"


def batch_condensed_view(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Return the actions of each response, in order."""
    batches: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.get("kind") == "ActionEvent":
            batches[view_response_key(event)].append(event)
    return dict(batches)


def find_message_results(events: Iterable[Event]) -> set[str]:
    """Return the calls whose results are messages, as in the TypeScript port."""
    messages = (event.get("llm_message") for event in events if event.get("kind") == "MessageEvent")
    results = (m for m in messages if isinstance(m, dict) and m.get("role") == "tool")
    return {event_text_field(result, "tool_call_id") for result in results}


def build_condensed_view(line: Iterable[Event]) -> list[Event]:
    """Return the events in view after condensations and updates of the system prompt."""
    view: list[Event] = []
    for event in line:
        kind = v1_event_kind(event)
        if kind == "Condensation":
            view = condense_view(view, event)
        elif kind in SYSTEM_KINDS:
            view = put_system_in_view(view, event)
        elif kind in SHOWN_KINDS:
            view.append(event)
    return view


def condense_view(view: list[Event], event: Event) -> list[Event]:
    """Return the view without the events that a condensation removes, with its summary in their place."""
    listed = event.get("forgotten_event_ids")
    forgotten = {i for i in listed if isinstance(i, str)} if isinstance(listed, list) else set()
    kept = [e for e in view if event_text_field(e, "id") not in forgotten]
    offset = event.get("summary_offset")
    if isinstance(event.get("summary"), str) and isinstance(offset, int):
        kept.insert(offset, _summary_event(event))
    return kept


def put_system_in_view(view: list[Event], event: Event) -> list[Event]:
    """Return the view with a system event in place of the earlier one, else at its end."""
    place = next((i for i, e in enumerate(view) if v1_event_kind(e) in SYSTEM_KINDS), None)
    return [*view, event] if place is None else [*view[:place], event, *view[place + 1 :]]


def enforce_view_rules(view: Sequence[Event], line: Sequence[Event]) -> list[Event]:
    """Return the view without events that an API would refuse, as the SDK drops them.

    Dropped are parts of a tool loop that began with thinking, parts of a response, second results, calls
    without result and results without call, until nothing is left to drop. `line` holds all events so far.
    """
    kept = list(view)
    loops, whole = _tool_loops(line), batch_condensed_view(line)
    while True:
        drop = _torn_loops(kept, loops) or _torn_batches(kept, whole) or _second_results(kept)
        drop = drop or _unmatched(kept)
        if not drop:
            return kept
        kept = [event for event in kept if id(event) not in drop]


def condensed_view_messages(
    view: Sequence[Event], message_results: set[str], message_calls: set[str]
) -> Iterator[Message]:
    """Yield the messages of a view: actions of one response as one message, results in order of arrival.

    `message_results` are calls whose results are messages, `message_calls` calls made in messages of the
    agent (both in the TypeScript port): their own events are left out.
    """
    whole = batch_condensed_view(view)
    for event in view:
        kind = v1_event_kind(event)
        if kind == "ActionEvent":
            actions = whole[view_response_key(event)]
            if actions[0] is event and event_text_field(event, "tool_call_id") not in message_calls:
                yield action_event_message(actions)
        elif kind in RESULT_KINDS:
            if event_text_field(event, "tool_call_id") not in message_results:
                yield result_event_message(event)
        elif kind in SYSTEM_KINDS:
            yield system_event_message(event)
        elif kind == "CondensationSummaryEvent":
            yield Message("user", event_text_field(event, "summary"))
        else:
            yield text_event_message(event)


def _tool_loops(line: Sequence[Event]) -> list[set[int]]:
    """Return runs of actions and results that begin with an action that has thinking blocks."""
    loops: list[set[int]] = []
    inside = False
    for event in line:
        kind = v1_event_kind(event)
        if kind == "ActionEvent" and event.get("thinking_blocks"):
            loops.append(set())
            inside = True
        elif kind != "ActionEvent" and kind not in RESULT_KINDS:
            inside = False
        if inside:
            loops[-1].add(id(event))
    return loops


def _torn_loops(view: Sequence[Event], loops: Sequence[set[int]]) -> set[int]:
    present = {id(event) for event in view}
    return {each for loop in loops if loop & present and not loop <= present for each in loop & present}


def _torn_batches(view: Sequence[Event], whole: dict[str, list[Event]]) -> set[int]:
    here = batch_condensed_view(view)
    torn = (actions for key, actions in here.items() if len(actions) != len(whole.get(key, actions)))
    return {id(event) for actions in torn for event in actions}


def _second_results(view: Sequence[Event]) -> set[int]:
    seen: set[str] = set()
    drop: set[int] = set()
    for event in view:
        if v1_event_kind(event) in RESULT_KINDS:
            call = event_text_field(event, "tool_call_id")
            drop |= {id(event)} if call in seen else set()
            seen.add(call)
    return drop


def _unmatched(view: Sequence[Event]) -> set[int]:
    called = {event_text_field(e, "tool_call_id") for e in view if v1_event_kind(e) == "ActionEvent"}
    answered = {event_text_field(e, "tool_call_id") for e in view if v1_event_kind(e) in RESULT_KINDS}
    return {
        id(event)
        for event in view
        if (v1_event_kind(event) == "ActionEvent" and event_text_field(event, "tool_call_id") not in answered)
        or (v1_event_kind(event) in RESULT_KINDS and event_text_field(event, "tool_call_id") not in called)
    }


def _summary_event(event: Event) -> dict[str, Any]:
    """Return the summary event that replaces the events a condensation removes."""
    own = f"{event_text_field(event, 'id')}-summary"
    return {"id": own, "kind": "CondensationSummaryEvent", "summary": event["summary"]}
