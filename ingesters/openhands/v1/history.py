"""Build the contexts that the agent saw from V1 events.

A context ends where a condensation shortens the view, where the tools or the system prompt change, where the
event tree (`parent_id`) continues from an earlier event, and where a call without a result is dropped from
the view. The next step begins a context with the view as it is by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from operator import is_
from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.growing_context import (
    ORPHAN_RESULT,
    GrowingContext,
    PromptStyle,
    StepMetadata,
)
from tracemill.ingesters.common.openai_messages import collect_message_calls, parse_openai_tools
from tracemill.ingesters.openhands.v1.condensed_view import (
    batch_condensed_view,
    build_condensed_view,
    condense_view,
    condensed_view_messages,
    enforce_view_rules,
    find_message_results,
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
    system_event_message,
    text_event_message,
    v1_event_call_id,
    v1_event_kind,
)
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Usage

HARNESS = harness_for("openhands", "1")
GAP = "(gap)"
"""Kind of the event that replaces missing events."""
_UPDATE = "ConversationStateUpdateEvent"
_FOREIGN = "ACPToolCallEvent"
_ROOT = "__root__"


@dataclass(slots=True)
class V1Settings:
    """Settings of a conversation, from the files around its events.

    `model` is the configured model; `usages` and `models` are by response id; `cwd` is the working folder;
    `merges_users` says whether consecutive user texts are sent as one.
    """

    model: str | None = None
    usages: Mapping[str, Usage] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    merges_users: bool = False


class V1History:
    """Builder of contexts from the events of one conversation."""

    def __init__(self, settings: V1Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self._settings = settings
        self._report = report
        self._style = PromptStyle(merges_users=settings.merges_users, by_arrival=True)
        self._growing = GrowingContext(style=self._style)
        self._stale: ContextStart | None = None  # why the next step begins a context
        self._view: list[Event] = []
        self._line: list[Event] = []  # the events up to now, on the branch they are on
        self._system: Event = {}
        self._batches: dict[str, list[Event]] = {}
        self._responses: set[str] = set()
        self._calls: set[str] = set()
        self._ahead: set[str] = set()  # calls of events still to come
        self._message_results: set[str] = set()
        self._failures: dict[str, Message] = {}
        self._parents: dict[str, str | None] = {}
        self._by_id: dict[str, Event] = {}
        self._last: str | None = None
        self._model = settings.model
        self._usage = Usage()
        self._cwd = settings.cwd
        self._asked = False
        self._is_late = False  # a result came after the next step began
        self._gap = self._lost = False

    def build_contexts(self, events: list[Event]) -> list[Context]:
        """Return the contexts of the events, in order."""
        self._batches = batch_condensed_view(events)
        self._message_results = find_message_results(events)
        self._ahead = {v1_event_call_id(event) for event in events if v1_event_kind(event) == "ActionEvent"}
        for event in events:
            self._add(event, v1_event_kind(event))
        if self._stale is None:
            self._close()
        elif self._stale == "compaction":
            self._report.flags["context without a step"] += 1
        return self.contexts

    def _add(self, event: Event, kind: str) -> None:
        if kind == GAP:
            self._gap = True
            return
        parent = event.get("parent_id")
        if parent is not None and parent != self._last and self._last is not None:
            self._rewind(parent)
        self._link_event(event, kind, parent)
        if kind in RESULT_KINDS and event_text_field(event, "tool_call_id") in self._ahead:
            self._report.flags["result before its call"] += 1
            self._report.tool_errors += result_event_message(event).is_error is True
            self._gap = True
        elif kind in SHOWN_KINDS and kind not in SYSTEM_KINDS:
            self._add_shown(event, kind)
            self._view.append(event)
        elif kind == _UPDATE:
            self._update(event)
        elif kind == "Condensation":
            self._report.compactions += 1
            self._end_context("compaction")
            self._view = condense_view(self._view, event)
        elif kind in SYSTEM_KINDS:
            self._set_system(event)
        elif kind == _FOREIGN:
            self._report.flags["call of a foreign agent (ACP), not shown"] += 1
            self._gap = True

    def _add_shown(self, event: Event, kind: str) -> None:
        """Add one event of the prompt."""
        if kind == "ActionEvent":
            self._ahead.discard(v1_event_call_id(event))
            self._add_action(event)
        elif kind in RESULT_KINDS:
            self._add_result(event)
        elif kind == "CondensationSummaryEvent":
            self._add_text(Message("user", event_text_field(event, "summary")))
        else:
            message = text_event_message(event)
            if message.role == "assistant":
                self._calls.update(call.id for call in message.tool_calls)
                self._ahead -= self._calls
                self._step(message, event)
            elif message.role == "tool":
                self._add_message_result(message)
            else:
                self._add_text(message)

    def _add_action(self, event: Event) -> None:
        """Add the response that an action belongs to, once for all its actions."""
        key = view_response_key(event)
        if key not in self._responses and v1_event_call_id(event) not in self._calls:
            self._responses.add(key)
            self._step(action_event_message(self._batches.get(key, [event])), event)

    def _step(self, message: Message, event: Event) -> None:
        """Add a step, in a new context if the view has changed."""
        if self._growing.unfinished or self._is_late:
            self._end_context("rewritten")
        if self._stale is not None:
            kept = condensed_view_messages(
                enforce_view_rules(self._view, self._line), self._message_results, self._calls
            )
            self._growing = GrowingContext(self._stale, self._style, kept)
            self._stale, self._is_late = None, False
        self._lost |= self._gap
        native = event_text_field(event, "llm_response_id")
        self._model = self._settings.models.get(native) or self._model
        usage = self._settings.usages.get(native, self._usage)
        when = event_text_field(event, "timestamp") or None
        self._growing.add_action(message, StepMetadata(self._model, native or None, usage, self._cwd, when))
        self._usage, self._asked = Usage(), False

    def _add_text(self, message: Message) -> None:
        if self._stale is None:
            self._growing.add_message(message)

    def _add_result(self, event: Event) -> None:
        """Add a result; if a later message holds it, this event only says whether it failed."""
        result = result_event_message(event)
        self._cwd = event_working_dir(event) or self._cwd
        self._report.tool_errors += result.is_error is True
        if result.tool_call_id in self._message_results:
            self._failures[result.tool_call_id] = result
        else:
            self._place_result(result)

    def _add_message_result(self, message: Message) -> None:
        failure = self._failures.get(message.tool_call_id or "")
        verdict = (
            (failure.name, failure.is_error, failure.error_kind) if failure else (message.name, None, None)
        )
        self._place_result(Message("tool", message.content, (), message.tool_call_id, *verdict))

    def _place_result(self, result: Message) -> None:
        """Add a result after its call; one that does not fit is counted."""
        misfit = "" if self._stale else self._growing.add_result(result)
        if misfit == ORPHAN_RESULT and self._is_made(result.tool_call_id or ""):
            self._is_late = True
            misfit = "result after the next step began"
        elif misfit == ORPHAN_RESULT:
            self._growing.add_message(result)
            self._gap = True
        if misfit:
            self._report.flags[misfit] += 1

    def _is_made(self, call_id: str) -> bool:
        return call_id in self._calls or any(
            v1_event_call_id(event) == call_id for event in self._view if event.get("kind") == "ActionEvent"
        )

    def _set_system(self, event: Event) -> None:
        """Set the system prompt; a changed one begins a context."""
        old = self._system
        self._view = put_system_in_view(self._view, event)
        self._system = event
        if not old:
            self._add_text(system_event_message(event))
        elif old.get("tools") != event.get("tools") or system_event_message(old) != system_event_message(
            event
        ):
            self._end_context("tools_changed", old)

    def _update(self, event: Event) -> None:
        """Read the model and the tokens that the TypeScript port records between steps."""
        value = event.get("value")
        if event.get("key") == "llm_request" and isinstance(value, dict):
            self._model = event_text_field(value, "model") or self._model
            self._usage, self._asked = Usage(), True
        elif event.get("key") == "llm_usage":
            self._usage = event_port_usage(value)
            if not self._asked:
                self._growing.report_usage(self._usage)

    def _rewind(self, parent: Any) -> None:
        """Switch to an earlier branch if an event continues from an earlier event than the last."""
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
            self._end_context("rewind")
            self._line, self._view = line, build_condensed_view(line)
            self._system = next((e for e in self._view if v1_event_kind(e) in SYSTEM_KINDS), {})

    def _line_to(self, own: str) -> list[Event]:
        """Return the events from the root to the one with this id."""
        line: list[Event] = []
        at: str | None = own
        while at is not None and at in self._by_id:
            line.append(self._by_id[at])
            at = self._parents.get(at)
        return line[::-1]

    def _link_event(self, event: Event, kind: str, parent: Any) -> None:
        """Place an event in the event tree; one without a parent follows the event before it."""
        own = event_text_field(event, "id")
        if own and own not in self._by_id:
            is_known = isinstance(parent, str) and (parent in self._by_id or parent == _ROOT)
            self._parents[own] = parent if is_known else self._last
            self._by_id[own] = event
        if kind != _UPDATE:  # updates are not in the tree
            self._line.append(event)
            self._last = own or self._last

    def _end_context(self, start: ContextStart, system: Event | None = None) -> None:
        """End the growing context; the next step begins one with the messages in view then."""
        if self._stale is None:
            self._close(system)
        if self._stale != "compaction" or start == "rewind":
            self._stale = start

    def _close(self, system: Event | None = None) -> None:
        """End the growing context; one without a step is left out."""
        growing = self._growing
        growing.close_calls()
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
