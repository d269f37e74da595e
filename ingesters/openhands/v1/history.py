"""OpenHands SDK (V1): from events to the contexts the agent saw.

A context ends where a condensation shortens the view, where the tools or the system prompt change, where
the event tree (`parent_id`) goes on from an earlier event, and where a call that never got its result is
dropped from the view. The next step begins one with the view as it is by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from operator import is_
from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.growing_context import ORPHAN_RESULT, GrowingContext, Manner, StepFacts
from tracemill.ingesters.common.openai_messages import collect_message_calls, parse_openai_tools
from tracemill.ingesters.openhands.v1.condensed_view import (
    batch_condensed_view,
    build_condensed_view,
    condense_view,
    condensed_view_messages,
    enforce_view_rules,
    find_told_view_calls,
    put_system_in_view,
    view_response_key,
)
from tracemill.ingesters.openhands.v1.event_text import (
    RESULT_KINDS,
    SHOWN_KINDS,
    SYSTEM_KINDS,
    Event,
    action_event_message,
    event_port_usage,
    event_text_field,
    event_working_dir,
    result_event_message,
    spoken_event_message,
    system_event_message,
    v1_event_call_id,
    v1_event_kind,
)
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Usage

HARNESS = harness_for("openhands", "1")
GAP = "(gap)"
"""Kind of the event that stands for events that are missing."""
_UPDATE = "ConversationStateUpdateEvent"
_FOREIGN = "ACPToolCallEvent"
_ROOT = "__root__"


@dataclass(slots=True)
class V1Settings:
    """What the surroundings of the events say: the model configured, usage and model by response id, the
    working folder, and whether user texts in a row are sent as one."""

    model: str | None = None
    usages: Mapping[str, Usage] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    merges_users: bool = False


class V1History:
    """Folds the events of one conversation into contexts."""

    def __init__(self, settings: V1Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self._settings = settings
        self._report = report
        self._manner = Manner(merges_users=settings.merges_users, by_arrival=True)
        self._growing = GrowingContext(manner=self._manner)
        self._stale: ContextStart | None = None  # why the next step begins a context
        self._view: list[Event] = []
        self._line: list[Event] = []  # the events up to now, on the branch they are on
        self._system: Event = {}
        self._batches: dict[str, list[Event]] = {}
        self._responses: set[str] = set()
        self._calls: set[str] = set()
        self._ahead: set[str] = set()  # calls of events still to come
        self._told: set[str] = set()
        self._verdicts: dict[str, Message] = {}
        self._parents: dict[str, str | None] = {}
        self._by_id: dict[str, Event] = {}
        self._last: str | None = None
        self._model = settings.model
        self._usage = Usage()
        self._cwd = settings.cwd
        self._asked = False
        self._is_late = False  # a result came after the next step began
        self._gap = self._lost = False

    def fold(self, events: list[Event]) -> list[Context]:
        """The contexts of the events, in order."""
        self._batches = batch_condensed_view(events)
        self._told = find_told_view_calls(events)
        self._ahead = {v1_event_call_id(event) for event in events if v1_event_kind(event) == "ActionEvent"}
        for event in events:
            self._take(event, v1_event_kind(event))
        if self._stale is None:
            self._close()
        elif self._stale == "compaction":
            self._report.flags["context without a step"] += 1
        return self.contexts

    def _take(self, event: Event, kind: str) -> None:
        if kind == GAP:
            self._gap = True
            return
        parent = event.get("parent_id")
        if parent is not None and parent != self._last and self._last is not None:
            self._rewind(parent)
        self._remember(event, kind, parent)
        if kind in RESULT_KINDS and event_text_field(event, "tool_call_id") in self._ahead:
            self._report.flags["result before its call"] += 1
            self._report.tool_errors += result_event_message(event).is_error is True
            self._gap = True
        elif kind in SHOWN_KINDS and kind not in SYSTEM_KINDS:
            self._show(event, kind)
            self._view.append(event)
        elif kind == _UPDATE:
            self._update(event)
        elif kind == "Condensation":
            self._report.compactions += 1
            self._turn("compaction")
            self._view = condense_view(self._view, event)
        elif kind in SYSTEM_KINDS:
            self._take_system(event)
        elif kind == _FOREIGN:
            self._report.flags["call of a foreign agent (ACP), not shown"] += 1
            self._gap = True

    def _show(self, event: Event, kind: str) -> None:
        """One event of the prompt."""
        if kind == "ActionEvent":
            self._ahead.discard(v1_event_call_id(event))
            self._act(event)
        elif kind in RESULT_KINDS:
            self._answer(event)
        elif kind == "CondensationSummaryEvent":
            self._say(Message("user", event_text_field(event, "summary")))
        else:
            message = spoken_event_message(event)
            if message.role == "assistant":
                self._calls.update(call.id for call in message.tool_calls)
                self._ahead -= self._calls
                self._step(message, event)
            elif message.role == "tool":
                self._tell(message)
            else:
                self._say(message)

    def _act(self, event: Event) -> None:
        """The response behind an action, once for all its actions."""
        key = view_response_key(event)
        if key not in self._responses and v1_event_call_id(event) not in self._calls:
            self._responses.add(key)
            self._step(action_event_message(self._batches.get(key, [event])), event)

    def _step(self, message: Message, event: Event) -> None:
        """A step, in a context of its own where the view is no longer what it was."""
        if self._growing.unfinished or self._is_late:
            self._turn("rewritten")
        if self._stale is not None:
            kept = condensed_view_messages(
                enforce_view_rules(self._view, self._line), self._told, self._calls
            )
            self._growing = GrowingContext(self._stale, self._manner, kept)
            self._stale, self._is_late = None, False
        self._lost |= self._gap
        native = event_text_field(event, "llm_response_id")
        self._model = self._settings.models.get(native) or self._model
        usage = self._settings.usages.get(native, self._usage)
        when = event_text_field(event, "timestamp") or None
        self._growing.act(message, StepFacts(self._model, native or None, usage, self._cwd, when))
        self._usage, self._asked = Usage(), False

    def _say(self, message: Message) -> None:
        if self._stale is None:
            self._growing.say(message)

    def _answer(self, event: Event) -> None:
        """A result. Where a message tells it, that comes later and this says only whether it failed."""
        result = result_event_message(event)
        self._cwd = event_working_dir(event) or self._cwd
        self._report.tool_errors += result.is_error is True
        if result.tool_call_id in self._told:
            self._verdicts[result.tool_call_id] = result
        else:
            self._put(result)

    def _tell(self, message: Message) -> None:
        known = self._verdicts.get(message.tool_call_id or "")
        verdict = (known.name, known.is_error, known.error_kind) if known else (message.name, None, None)
        self._put(Message("tool", message.content, (), message.tool_call_id, *verdict))

    def _put(self, result: Message) -> None:
        """A result behind its call; what does not fit is counted."""
        misfit = "" if self._stale else self._growing.answer(result)
        if misfit == ORPHAN_RESULT and self._is_made(result.tool_call_id or ""):
            self._is_late = True
            misfit = "result after the next step began"
        elif misfit == ORPHAN_RESULT:
            self._growing.say(result)
            self._gap = True
        if misfit:
            self._report.flags[misfit] += 1

    def _is_made(self, call_id: str) -> bool:
        return call_id in self._calls or any(
            v1_event_call_id(event) == call_id for event in self._view if event.get("kind") == "ActionEvent"
        )

    def _take_system(self, event: Event) -> None:
        """The system prompt; a later one takes its place, and begins a context where it says other."""
        old = self._system
        self._view = put_system_in_view(self._view, event)
        self._system = event
        if not old:
            self._say(system_event_message(event))
        elif old.get("tools") != event.get("tools") or system_event_message(old) != system_event_message(
            event
        ):
            self._turn("tools_changed", old)

    def _update(self, event: Event) -> None:
        """What the port to TypeScript says between steps: the model asked, and the tokens it took."""
        value = event.get("value")
        if event.get("key") == "llm_request" and isinstance(value, dict):
            self._model = event_text_field(value, "model") or self._model
            self._usage, self._asked = Usage(), True
        elif event.get("key") == "llm_usage":
            self._usage = event_port_usage(value)
            if not self._asked:
                self._growing.report_usage(self._usage)

    def _rewind(self, parent: Any) -> None:
        """Where an event continues from an earlier one than the last, its context is that branch."""
        if not isinstance(parent, str):
            return
        if parent not in self._by_id and parent != _ROOT:
            self._report.flags["parent event is not recorded"] += 1
            self._gap = True
            return
        line = self._line_to(parent)
        common = sum(takewhile(bool, map(is_, line, self._line)))
        if any(v1_event_kind(e) in SHOWN_KINDS for e in (*line[common:], *self._line[common:])):
            self._report.branches_real += 1
            self._turn("rewind")
            self._line, self._view = line, build_condensed_view(line)
            self._system = next((e for e in self._view if v1_event_kind(e) in SYSTEM_KINDS), {})

    def _line_to(self, own: str) -> list[Event]:
        """The events from the root to the one with this id."""
        found: list[Event] = []
        at: str | None = own
        while at is not None and at in self._by_id:
            found.append(self._by_id[at])
            at = self._parents.get(at)
        return found[::-1]

    def _remember(self, event: Event, kind: str, parent: Any) -> None:
        """Place in the event tree; an event without a parent follows the one before it."""
        own = event_text_field(event, "id")
        if own and own not in self._by_id:
            known = isinstance(parent, str) and (parent in self._by_id or parent == _ROOT)
            self._parents[own] = parent if known else self._last
            self._by_id[own] = event
        if kind != _UPDATE:  # which is no node of the tree
            self._line.append(event)
            self._last = own or self._last

    def _turn(self, start: ContextStart, system: Event | None = None) -> None:
        """End the growing context; the next step begins one with what is in view by then."""
        if self._stale is None:
            self._close(system)
        if self._stale != "compaction" or start == "rewind":
            self._stale = start

    def _close(self, system: Event | None = None) -> None:
        """End the growing context; one in which nothing was done is left out."""
        growing = self._growing
        growing.settle()
        offered = (self._system if system is None else system).get("tools")
        tools = parse_openai_tools(offered, collect_message_calls(growing.messages), HARNESS)
        context = growing.finish(len(self.contexts), tools, lost=self._lost)
        if growing.unanswered:
            self._report.flags["call without a result"] += growing.unanswered
        if any(spec.origin != "recorded" for spec in tools):
            self._report.flags["tool schema is not recorded"] += 1
        if context.steps:
            self.contexts.append(context)
        elif context.messages:
            self._report.flags["context without a step"] += 1
