"""OpenHands V0: from events to the contexts the agent saw.

Follows `View.from_events` and `ConversationMemory.process_events` of OpenHands. A context ends where a
condensation forgets events, and where the harness shows its past in another form than it happened: a
call that never got its result is left out, a finish becomes plain text, a text said while a command ran
goes in front of that call.
"""

from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.growing_context import ORPHAN_RESULT, GrowingContext, Manner, StepFacts
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
    V0Settings,
    V0Words,
    build_prompt_messages,
    is_agents,
    is_text,
)
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart

# recall actions stay: they count where a condensation says at which place its summary goes
_PASSED_OVER = SILENT_ACTIONS - {"recall"}
_MAY_COUNT = frozenset({"error", "run"})
_MANNER = Manner(user_gap="\n\n")
LOST_STEP = "step lost: the response was malformed and is not recorded"


class V0History:
    """Folds the events of one agent, without those of its delegates, into contexts."""

    def __init__(self, settings: V0Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self.version: str | None = None
        self.lost_steps = 0
        self._settings = settings
        self._report = report
        self._words = V0Words(settings)
        self._growing = GrowingContext(manner=_MANNER)
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

    def fold(self, events: list[V0Event]) -> list[Context]:
        """The contexts of the events, in order."""
        report, history = self._report, self._history
        for event in events:
            if event.is_action:
                if event.name == "condensation":
                    self._condense(event)
                    continue
                silent = event.name in _PASSED_OVER
            else:
                silent = event.name in SILENT_OBSERVATIONS
                if event.name in _MAY_COUNT and _is_counted(event):
                    report.tool_errors += 1
            if not silent:  # the model sees the event, or did it
                self._take(event)
                history.append(event)
        if self._stale is None:
            self._close()
        elif self._stale == "compaction":
            self._report.flags["context without a step"] += 1
        return self.contexts

    def _take(self, event: V0Event) -> None:
        """One event onto the growing context."""
        if is_agents(event):
            self._act(event)
        elif event.is_action:
            if event.name == "system":
                self._tools = event.fields.get("tools") or self._tools
                self.version = event.field("openhands_version") or self.version
            elif event.name == "message" and self._first_user is None:
                self._first_user = event
            self._say(event)
        else:
            self._observe(event)

    def _act(self, event: V0Event) -> None:
        """The response behind an action, once for all its actions."""
        if is_text(event):
            self._step(Message("assistant", event.content), self._facts(event, None))
            return
        key = v0_action_response_key(event)
        if key in self._responses:
            self._words.learn(event, None)
            return
        response = v0_action_response(event)
        self._step(response.message, self._facts(event, response))
        self._responses.add(key)
        if response.rebuilt:
            self._report.flags["call rebuilt from its action"] += 1
        self._words.learn(event, response.message)

    def _step(self, message: Message, facts: StepFacts) -> None:
        """A step, in a context of its own where the harness shows its past in a new form."""
        if self._growing.unfinished or self._growing.displaced:
            self._turn("rewritten")
        if self._stale is not None:
            prompt = build_prompt_messages(self._kept(), self._words)
            self._growing = GrowingContext(self._stale, _MANNER, prompt.messages)
            self._responses |= prompt.responses
            self._knowledge, self._stale = prompt.knowledge, None
        self._growing.act(message, facts)

    def _facts(self, event: V0Event, response: V0Response | None) -> StepFacts:
        native, model, usage = None, None, None
        if response is not None:
            native, model, usage = response.id, response.model, response.usage
        if native is not None:
            usage = self._settings.usages.get(native) or usage
            model = model or self._settings.models.get(native)
        self._model = model or self._model
        return StepFacts(self._model, native, parse_openai_usage(usage), self._cwd, event.timestamp)

    def _say(self, event: V0Event) -> None:
        """A text of user or harness; in between contexts it waits in the history."""
        if self._stale is None:
            message = self._words.said(event, self._knowledge)
            if message is not None:
                self._growing.say(message)

    def _observe(self, event: V0Event) -> None:
        if event.name == "run":
            self._cwd = observation_working_dir(event) or self._cwd
        call_id = None if event.name == "recall" else self._words.answered(event)
        if call_id is not None:
            self._answer(event, self._words.result(event, call_id))
            return
        if event.name == "recall":
            told = recall_observation_text(event, self._recalled)
            said = "in our words" if self._settings.shows_recall else "that the run did not show"
            if told:
                self._report.flags[f"recalled context {said}"] += 1
        if event.name == "error" and event.source == "agent":
            # a response that did not parse: its error is shown, the response itself is not recorded
            self.lost_steps += 1
        self._say(event)

    def _answer(self, event: V0Event, result: Message) -> None:
        """The result of a call. One that comes after the next step began is shown from then on."""
        if result.is_error is True and not _is_counted(event):
            self._report.flags["failure told only by its text"] += 1
        if event.name == "edit" and event.fields.get("impl_source") == "llm_based_edit":
            self._report.flags["edit result in another form than shown"] += 1
        misfit = "" if self._stale else self._growing.answer(result)
        if misfit == ORPHAN_RESULT:
            if self._words.is_known(result.tool_call_id or ""):
                self._growing.displaced = True
                misfit = "result after the next step began"
            else:
                self._growing.say(result)
        if misfit:
            self._report.flags[misfit] += 1

    def _condense(self, event: V0Event) -> None:
        """A condensation: forget events, and put the summary in their place."""
        self._report.compactions += 1
        self._forgotten |= _forgotten_ids(event)
        summary, offset = event.fields.get("summary"), event.fields.get("summary_offset")
        if isinstance(summary, str) and isinstance(offset, int):
            self._summary = V0Event(-1, False, SUMMARY, "agent", summary, {})
            self._offset = offset
        self._turn("compaction")

    def _turn(self, start: ContextStart) -> None:
        """End the growing context; the next step begins one with what is shown by then."""
        if self._stale is None:
            self._close()
        if self._stale != "compaction":
            self._stale = start

    def _kept(self) -> list[V0Event]:
        """The events in view: not forgotten, the summary at its place, the first user text kept."""
        kept = [event for event in self._history if event.id not in self._forgotten]
        if self._summary is not None:
            kept.insert(self._offset, self._summary)
        first = self._first_user
        if first is not None and first.id in self._forgotten:
            kept.insert(1 if kept and kept[0].name == "system" else 0, first)
        return kept

    def _close(self) -> None:
        """End the growing context; one in which nothing was said or done is left out."""
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
    """Whether `tool_errors` counts an observation: error observations, exit codes other than 0."""
    if event.is_action:
        return False
    return event.name == "error" or (event.name == "run" and observation_exit_code(event) not in (None, 0))


def _forgotten_ids(event: V0Event) -> set[int]:
    """The ids a condensation forgets: listed, or a range with both ends."""
    listed = event.fields.get("forgotten_event_ids")
    if isinstance(listed, list):
        return {i for i in listed if isinstance(i, int)}
    first = event.fields.get("forgotten_events_start_id")
    last = event.fields.get("forgotten_events_end_id")
    if isinstance(first, int) and isinstance(last, int):
        return set(range(first, last + 1)) if last - first < 10**7 else set()
    return set()
