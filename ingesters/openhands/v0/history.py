"""Build the contexts that the agent saw from V0 events.

Follows `View.from_events` and `ConversationMemory.process_events` of OpenHands. A context ends where a
condensation forgets events, and where the harness shows its past in another form: a call without a result is
left out, a finish becomes plain text, a text that came while a command ran goes in front of that call.
"""

from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.growing_context import (
    ORPHAN_RESULT,
    GrowingContext,
    PromptStyle,
    StepMetadata,
)
from tracemill.ingesters.common.openai_messages import (
    collect_message_calls,
    parse_openai_tools,
    parse_openai_usage,
)
from tracemill.ingesters.openhands.v0.actions import (
    SILENT_ACTIONS,
    V0Response,
    v0_action_response,
    v0_action_response_key,
)
from tracemill.ingesters.openhands.v0.events import V0Event
from tracemill.ingesters.openhands.v0.observation_text import (
    SILENT_OBSERVATIONS,
    observation_exit_code,
    observation_working_dir,
    recall_observation_text,
)
from tracemill.ingesters.openhands.v0.prompt_messages import (
    SUMMARY,
    V0Messages,
    V0Settings,
    build_prompt_messages,
    is_agent_action,
    is_text_only,
)
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart

# recall actions stay: the offset of a condensation's summary counts them
_SKIPPED = SILENT_ACTIONS - {"recall"}
_MAY_FAIL = frozenset({"error", "run"})
_STYLE = PromptStyle(user_gap="\n\n")
LOST_STEP = "step lost: the response was malformed and is not recorded"


class V0History:
    """Builder of contexts from the events of one agent, without those of its delegates."""

    def __init__(self, settings: V0Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self.version: str | None = None
        self.lost_steps = 0
        self._settings = settings
        self._report = report
        self._messages = V0Messages(settings)
        self._growing = GrowingContext(style=_STYLE)
        self._stale: ContextStart | None = None  # why the next step begins a context
        self._history: list[V0Event] = []
        self._first_user: V0Event | None = None
        self._forgotten: set[int] = set()
        self._summary: V0Event | None = None
        self._offset = 0
        self._tools: Any = None
        self._responses: set[str] = set()
        self._knowledge: set[str] = set()
        self._recalled: set[str] = set()
        self._model = settings.model
        self._cwd: str | None = None

    def build_contexts(self, events: list[V0Event]) -> list[Context]:
        """Return the contexts of the events, in order."""
        report, history = self._report, self._history
        for event in events:
            if event.is_action:
                if event.name == "condensation":
                    self._condense(event)
                    continue
                silent = event.name in _SKIPPED
            else:
                silent = event.name in SILENT_OBSERVATIONS
                if event.name in _MAY_FAIL and _is_counted(event):
                    report.tool_errors += 1
            if not silent:  # the model did the event or is shown it
                self._add(event)
                history.append(event)
        if self._stale is None:
            self._close()
        elif self._stale == "compaction":
            self._report.flags["context without a step"] += 1
        return self.contexts

    def _add(self, event: V0Event) -> None:
        """Add one event to the growing context."""
        if is_agent_action(event):
            self._add_action(event)
        elif event.is_action:
            if event.name == "system":
                self._tools = event.fields.get("tools") or self._tools
                self.version = event.field("openhands_version") or self.version
            elif event.name == "message" and self._first_user is None:
                self._first_user = event
            self._add_text(event)
        else:
            self._add_observation(event)

    def _add_action(self, event: V0Event) -> None:
        """Add the response that an action belongs to, once for all its actions."""
        if is_text_only(event):
            self._step(Message("assistant", event.content), self._metadata(event, None))
            return
        key = v0_action_response_key(event)
        if key in self._responses:
            self._messages.register(event, None)
            return
        response = v0_action_response(event)
        self._step(response.message, self._metadata(event, response))
        self._responses.add(key)
        if response.rebuilt:
            self._report.flags["call rebuilt from its action"] += 1
        self._messages.register(event, response.message)

    def _step(self, message: Message, metadata: StepMetadata) -> None:
        """Add a step, in a new context if the harness shows its past in another form."""
        if self._growing.unfinished or self._growing.displaced:
            self._end_context("rewritten")
        if self._stale is not None:
            prompt = build_prompt_messages(self._view(), self._messages)
            self._growing = GrowingContext(self._stale, _STYLE, prompt.messages)
            self._responses |= prompt.responses
            self._knowledge, self._stale = prompt.knowledge, None
        self._growing.add_action(message, metadata)

    def _metadata(self, event: V0Event, response: V0Response | None) -> StepMetadata:
        native, model, usage = None, None, None
        if response is not None:
            native, model, usage = response.id, response.model, response.usage
        if native is not None:
            usage = self._settings.usages.get(native) or usage
            model = model or self._settings.models.get(native)
        self._model = model or self._model
        return StepMetadata(self._model, native, parse_openai_usage(usage), self._cwd, event.timestamp)

    def _add_text(self, event: V0Event) -> None:
        """Add a text of user or harness; between contexts it is kept in the history."""
        if self._stale is None:
            message = self._messages.text(event, self._knowledge)
            if message is not None:
                self._growing.add_message(message)

    def _add_observation(self, event: V0Event) -> None:
        if event.name == "run":
            self._cwd = observation_working_dir(event) or self._cwd
        call_id = None if event.name == "recall" else self._messages.answered_call(event)
        if call_id is not None:
            self._add_result(event, self._messages.result(event, call_id))
            return
        if event.name == "recall" and recall_observation_text(event, self._recalled):
            shown = "as a stand-in" if self._settings.shows_recall else "missing from the recording"
            self._report.flags[f"retrieved context {shown}"] += 1
        if event.name == "error" and event.source == "agent":
            # The response did not parse: its error is shown, the response itself is not recorded.
            self.lost_steps += 1
        self._add_text(event)

    def _add_result(self, event: V0Event, result: Message) -> None:
        """Add the result of a call; one that comes after the next step began is shown from then on."""
        if result.is_error is True and not _is_counted(event):
            self._report.flags["failure detected from the tool's output text"] += 1
        if event.name == "edit" and event.fields.get("impl_source") == "llm_based_edit":
            self._report.flags["edit result in another form than shown"] += 1
        misfit = "" if self._stale else self._growing.add_result(result)
        if misfit == ORPHAN_RESULT:
            if self._messages.is_known(result.tool_call_id or ""):
                self._growing.displaced = True
                misfit = "result after the next step began"
            else:
                self._growing.add_message(result)
        if misfit:
            self._report.flags[misfit] += 1

    def _condense(self, event: V0Event) -> None:
        """Apply a condensation: remove the forgotten events, and insert the summary in their place."""
        self._report.compactions += 1
        self._forgotten |= _forgotten_ids(event)
        summary, offset = event.fields.get("summary"), event.fields.get("summary_offset")
        if isinstance(summary, str) and isinstance(offset, int):
            self._summary = V0Event(-1, False, SUMMARY, "agent", summary, {})
            self._offset = offset
        self._end_context("compaction")

    def _end_context(self, start: ContextStart) -> None:
        """End the growing context; the next step begins one with the messages in view then."""
        if self._stale is None:
            self._close()
        if self._stale != "compaction":
            self._stale = start

    def _view(self) -> list[V0Event]:
        """Return the events in view: not forgotten, with the summary and the first user text."""
        kept = [event for event in self._history if event.id not in self._forgotten]
        if self._summary is not None:
            kept.insert(self._offset, self._summary)
        first = self._first_user
        if first is not None and first.id in self._forgotten:
            kept.insert(1 if kept and kept[0].name == "system" else 0, first)
        return kept

    def _close(self) -> None:
        """End the growing context; one without a step is left out."""
        growing = self._growing
        tools = parse_openai_tools(
            self._tools, collect_message_calls(growing.messages), harness_for("openhands", self.version)
        )
        context = growing.finish(len(self.contexts), tools, self._settings.lost)
        if growing.unanswered:
            self._report.flags["call without a result"] += growing.unanswered
        if context.steps:
            self.contexts.append(context)
        elif context.messages:
            self._report.flags["context without a step"] += 1


def _is_counted(event: V0Event) -> bool:
    """Return whether `tool_errors` counts an observation: errors, exit codes other than 0."""
    if event.is_action:
        return False
    return event.name == "error" or (event.name == "run" and observation_exit_code(event) not in (None, 0))


def _forgotten_ids(event: V0Event) -> set[int]:
    """Return the ids a condensation forgets: listed, or a range that includes both ends."""
    listed = event.fields.get("forgotten_event_ids")
    if isinstance(listed, list):
        return {i for i in listed if isinstance(i, int)}
    first = event.fields.get("forgotten_events_start_id")
    last = event.fields.get("forgotten_events_end_id")
    if isinstance(first, int) and isinstance(last, int):
        return set(range(first, last + 1)) if last - first < 10**7 else set()
    return set()
