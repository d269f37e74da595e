"""OpenHands SDK (V1): from events to the contexts the agent saw.

Follows `View.from_events` and `events_to_messages` of openhands-sdk 1.x. A context ends where a
condensation shortens the view, where the tools or the system prompt change, and where the event tree
(`parent_id`) goes back to an earlier event.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesses.harness import harness_for
from ingesters.growing import ORPHAN_RESULT, GrowingContext, StepFacts
from ingesters.openhands_v1_text import (
    RESULT_KINDS,
    SHOWN_KINDS,
    SYSTEM_KINDS,
    Event,
    action_message,
    kind_of,
    result_message,
    said_message,
    system_message,
    text_field,
    working_dir,
)
from ingesters.wire import all_calls, specs_of
from records.message import Message
from records.skip import IngestReport
from records.state import Context, ContextStart, Usage

_HARNESS = harness_for("openhands", "1")


@dataclass(slots=True)
class V1Settings:
    """What the surroundings of the events say: the model, and usage by response id."""

    model: str | None = None
    usages: Mapping[str, Usage] = field(default_factory=dict)
    cwd: str | None = None


class V1History:
    """Folds the events of one conversation into contexts."""

    def __init__(self, settings: V1Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self._settings = settings
        self._report = report
        self._growing = GrowingContext()
        self._view: list[Event] = []
        self._batches: dict[str, list[Event]] = {}
        self._responses: set[str] = set()
        self._path: dict[str, str | None] = {}
        self._by_id: dict[str, Event] = {}
        self._last: str | None = None
        self._cwd = settings.cwd
        self._orphans = False

    def fold(self, events: list[Event]) -> list[Context]:
        """The contexts of the events, in order."""
        self._batches = _batches(events)
        for event in events:
            self._rewind(event)
            self._remember(event)
            kind = kind_of(event)
            if kind == "Condensation":
                self._condense(event)
            elif kind in SYSTEM_KINDS and any(kind_of(e) in SYSTEM_KINDS for e in self._view):
                self._change_system(event)
            elif kind in SHOWN_KINDS:
                self._view.append(event)
                self._apply(event, recorded=True)
        self._close()
        return self.contexts

    def _apply(self, event: Event, recorded: bool) -> None:
        """One event onto the growing context; steps are taken down only where `recorded`."""
        kind = kind_of(event)
        if kind in SYSTEM_KINDS:
            self._growing.say(system_message(event))
        elif kind == "CondensationSummaryEvent":
            self._growing.say(Message("user", text_field(event, "summary")))
        elif kind == "ActionEvent":
            self._act(event, recorded)
        elif kind in RESULT_KINDS:
            self._answer(event, recorded)
        else:
            message = said_message(event)
            if message.role == "assistant":
                self._growing.act(message, self._facts(event) if recorded else None)
            else:
                self._growing.say(message)

    def _act(self, event: Event, recorded: bool) -> None:
        """The response behind an action, once for all its actions."""
        key = _response_key(event)
        if key in self._responses:
            return
        self._responses.add(key)
        batch = self._batches.get(key, [event])
        self._growing.act(action_message(batch), self._facts(event) if recorded else None)

    def _facts(self, event: Event) -> StepFacts:
        native = text_field(event, "llm_response_id") or None
        usage = self._settings.usages.get(native or "", Usage())
        when = text_field(event, "timestamp") or None
        return StepFacts(self._settings.model, native, usage, self._cwd, when)

    def _answer(self, event: Event, recorded: bool) -> None:
        result = result_message(event)
        if recorded:
            self._cwd = working_dir(event) or self._cwd
            self._report.tool_errors += result.is_error is True
        misfit = self._growing.answer(result)
        if misfit and recorded:
            self._report.flags[misfit] += 1
        self._orphans |= misfit == ORPHAN_RESULT

    def _condense(self, event: Event) -> None:
        """Forget events, put the summary at its place, start a context with what is left."""
        self._report.compactions += 1
        self._restart(_condensed(self._view, event), "compaction")

    def _change_system(self, event: Event) -> None:
        """New tools or a new system prompt: the update takes the place of what it updates."""
        old = next(e for e in self._view if kind_of(e) in SYSTEM_KINDS)
        view = _with_system(self._view, event)
        if old.get("tools") == event.get("tools") and system_message(old) == system_message(event):
            self._view = view
        else:
            self._restart(view, "tools_changed")

    def _rewind(self, event: Event) -> None:
        """Where an event continues from an earlier one than the last, its context is that branch."""
        parent = event.get("parent_id")
        if not isinstance(parent, str) or parent == self._last or self._last is None:
            return
        if parent not in self._by_id:
            self._report.flags["parent event is not recorded"] += 1
            return
        if not any(kind_of(e) in SHOWN_KINDS for e in self._after(parent)):
            return
        self._report.branches_real += 1
        chain: list[Event] = []
        at: str | None = parent
        while at is not None:
            chain.append(self._by_id[at])
            at = self._path.get(at)
        self._restart(_view_of(chain[::-1]), "rewind")

    def _after(self, parent: str) -> list[Event]:
        """The events from `parent` (not included) to the last one, where that is its line."""
        found: list[Event] = []
        at = self._last
        while at is not None and at != parent:
            found.append(self._by_id[at])
            at = self._path.get(at)
        return found

    def _remember(self, event: Event) -> None:
        """Place in the event tree; an event without a parent follows the one before it."""
        own, parent = text_field(event, "id"), event.get("parent_id")
        if not own or own in self._by_id:
            return
        known = isinstance(parent, str) and parent in self._by_id
        self._path[own] = parent if known else self._last
        self._by_id[own] = event
        self._last = own

    def _restart(self, view: list[Event], start: ContextStart) -> None:
        """Close the growing context and open one that begins with `view`."""
        self._close()
        self._growing = GrowingContext(start)
        self._responses = set()
        self._orphans = False
        self._view = view
        for event in view:
            self._apply(event, recorded=False)
        if not (view and kind_of(view[-1]) == "ActionEvent"):  # else its results are still to come
            self._growing.keep_matched()

    def _close(self) -> None:
        """End the growing context; one in which nothing was done is left out."""
        growing = self._growing
        system = next((e for e in self._view if kind_of(e) in SYSTEM_KINDS), {})
        growing.settle()
        tools = specs_of(system.get("tools"), all_calls(growing.messages), _HARNESS)
        context = growing.finish(len(self.contexts), tools, lost=self._orphans)
        if growing.unanswered:
            self._report.flags["call without a result"] += growing.unanswered
        if any(spec.origin != "recorded" for spec in tools):
            self._report.flags["tool schema is not recorded"] += 1
        if context.steps:
            self.contexts.append(context)
        elif context.messages:
            self._report.flags["context without a step"] += 1


def _view_of(chain: list[Event]) -> list[Event]:
    """What a line of events leaves in view: condensations and updates of the system prompt applied."""
    view: list[Event] = []
    for event in chain:
        kind = kind_of(event)
        if kind == "Condensation":
            view = _condensed(view, event)
        elif kind in SYSTEM_KINDS:
            view = _with_system(view, event)
        elif kind in SHOWN_KINDS:
            view.append(event)
    return view


def _condensed(view: list[Event], event: Event) -> list[Event]:
    """The view without what a condensation forgets, its summary at its place."""
    listed = event.get("forgotten_event_ids")
    forgotten = {i for i in listed if isinstance(i, str)} if isinstance(listed, list) else set()
    kept = [e for e in view if text_field(e, "id") not in forgotten]
    offset = event.get("summary_offset")
    if isinstance(event.get("summary"), str) and isinstance(offset, int):
        kept.insert(offset, _summary_event(event))
    return kept


def _with_system(view: list[Event], event: Event) -> list[Event]:
    """The view with a system event in the place of the one before it, else at its end."""
    place = next((i for i, e in enumerate(view) if kind_of(e) in SYSTEM_KINDS), None)
    return [*view, event] if place is None else [*view[:place], event, *view[place + 1 :]]


def _batches(events: list[Event]) -> dict[str, list[Event]]:
    """The actions of each response, in order."""
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if kind_of(event) == "ActionEvent":
            found[_response_key(event)].append(event)
    return dict(found)


def _response_key(event: Event) -> str:
    return text_field(event, "llm_response_id") or f"event {text_field(event, 'id')}"


def _summary_event(event: Event) -> dict[str, Any]:
    """The event a condensation leaves in place of what it forgets."""
    own = f"{text_field(event, 'id')}-summary"
    return {"id": own, "kind": "CondensationSummaryEvent", "summary": event["summary"]}
