"""OpenHands V0: from events to the contexts the agent saw.

Follows `ConversationMemory.process_events` and `View.from_events` of OpenHands. Where these change the
past (a finish that becomes plain text, a user text that slips in front of a running call), the order
of events wins inside a context, so that prefixes only grow; a context rebuilt after a condensation has
the changed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesses.harness import harness_for
from ingesters.growing import GrowingContext, StepFacts
from ingesters.openhands_v0_actions import (
    SILENT_ACTIONS,
    V0Response,
    call_id_of,
    rebuilt_call_id,
    response_of,
)
from ingesters.openhands_v0_events import V0Event
from ingesters.openhands_v0_text import (
    MAX_MESSAGE_CHARS,
    SILENT_OBSERVATIONS,
    exit_code,
    observation_error,
    observation_text,
    recall_text,
    working_dir,
)
from ingesters.wire import all_calls, image_part_text, specs_of
from records.identity import canonical_json
from records.message import ErrorKind, Message
from records.skip import IngestReport
from records.state import Context, Usage

_USER_GAP = "\n\n"
_SUMMARY = "condensation summary"


@dataclass(slots=True)
class V0Settings:
    """What the surroundings of a history say: the model configured, usage by response id, the cut of
    long texts, and whether recalled context was shown."""

    model: str | None = None
    usages: Mapping[str, Usage] = field(default_factory=dict)
    max_message_chars: int = MAX_MESSAGE_CHARS
    shows_recall: bool = True


class V0History:
    """Folds the events of one session into contexts."""

    def __init__(self, settings: V0Settings, report: IngestReport) -> None:
        self.contexts: list[Context] = []
        self.version: str | None = None
        self._settings = settings
        self._report = report
        self._growing = GrowingContext(user_gap=_USER_GAP)
        self._history: list[V0Event] = []
        self._forgotten: set[int] = set()
        self._summary: V0Event | None = None
        self._offset = 0
        self._tools: Any = None
        self._responses: set[str] = set()
        self._shown: set[str] = set()
        self._calls: dict[int, str] = {}
        self._names: dict[str, str] = {}
        self._delegate: int | None = None
        self._cwd: str | None = None
        self._model = settings.model

    def fold(self, events: list[V0Event]) -> list[Context]:
        """The contexts of the events, in order."""
        for event in events:
            self._count_error(event)
            if event.is_action and event.name == "condensation":
                self._condense(event)
                continue
            if self._is_silent(event):
                continue
            self._history.append(event)
            self._apply(event, recorded=True)
        self._close()
        return self.contexts

    def _is_silent(self, event: V0Event) -> bool:
        """Whether the model never sees the event, nor did it."""
        if self._in_delegate(event):
            self._report.flags["event inside a delegate"] += 1
            return True
        # recall actions stay: they count where a condensation says at which place its summary goes
        silent = SILENT_ACTIONS - {"recall"} if event.is_action else SILENT_OBSERVATIONS
        return event.name in silent

    def _in_delegate(self, event: V0Event) -> bool:
        """Between a delegation and its result everything is another agent's."""
        if self._delegate is not None:
            if not event.is_action and event.name == "delegate":
                self._delegate = None
                return False
            return True
        if event.is_action and event.name == "delegate":
            self._delegate = event.id
        return False

    def _apply(self, event: V0Event, recorded: bool) -> None:
        """One event onto the growing context; steps are taken down only where `recorded`."""
        if not event.is_action:
            self._observe(event, recorded)
        elif event.name == "system":
            self._system(event)
        elif event.name == "recall":
            return
        elif event.source == "user":
            self._growing.say(Message("user", _user_text(event)))
        elif event.name == "message" and event.call is None:
            self._say_step(event, recorded)
        elif event.name == "finish" and not recorded:
            self._growing.act(Message("assistant", _finish_text(event)), None)
        else:
            self._act(event, recorded)

    def _system(self, event: V0Event) -> None:
        self._growing.say(Message("system", event.content))
        self._tools = event.fields.get("tools") or self._tools
        self.version = event.field("openhands_version") or self.version

    def _say_step(self, event: V0Event, recorded: bool) -> None:
        """A text of the agent without any call."""
        facts = StepFacts(model=self._model, cwd=self._cwd, timestamp=event.timestamp) if recorded else None
        self._growing.act(Message("assistant", event.content), facts)

    def _act(self, event: V0Event, recorded: bool) -> None:
        """The response behind an action, once for all its actions."""
        response = response_of(event)
        self._calls[event.id] = call_id_of(event) or rebuilt_call_id(event.id)
        if response.key in self._responses:
            return
        self._responses.add(response.key)
        self._names.update({call.id: call.name for call in response.message.tool_calls})
        if recorded and response.rebuilt:
            self._report.flags["call rebuilt from its action"] += 1
        self._growing.act(response.message, self._facts(event, response) if recorded else None)

    def _facts(self, event: V0Event, response: V0Response) -> StepFacts:
        self._model = response.model or self._model
        usage = self._settings.usages.get(response.id or "", response.usage)
        return StepFacts(self._model, response.id, usage, self._cwd, event.timestamp)

    def _observe(self, event: V0Event, recorded: bool) -> None:
        if event.name == _SUMMARY:
            self._growing.say(Message("user", event.content))
        elif event.name == "recall":
            self._recall(event, recorded)
        else:
            self._cwd = (working_dir(event) if recorded else None) or self._cwd
            self._result(event, recorded)

    def _recall(self, event: V0Event, recorded: bool) -> None:
        text = recall_text(event, self._shown)
        if text and not self._settings.shows_recall:
            self._report.flags["recalled context that the run did not show"] += recorded
        elif text:
            self._growing.say(Message("user", text))
            self._report.flags["recalled context in our words"] += recorded

    def _result(self, event: V0Event, recorded: bool) -> None:
        """An observation: the result of a call, or a text to the agent where it answers none."""
        text = observation_text(event, self._settings.max_message_chars)
        is_error, kind = observation_error(event)
        call_id = self._call_answered(event)
        if call_id is None:
            self._unasked(event, text, is_error, kind, recorded)
            return
        result = Message("tool", text, (), call_id, self._tool_of(event, call_id), is_error, kind)
        misfit = self._growing.answer(result)
        if misfit and recorded:
            self._report.flags[misfit] += 1

    def _tool_of(self, event: V0Event, call_id: str) -> str | None:
        """The tool a result comes from."""
        name = event.call.get("function_name") if event.call else None
        return name if isinstance(name, str) else self._names.get(call_id)

    def _call_answered(self, event: V0Event) -> str | None:
        """The call an observation answers: by its metadata, or by the action that caused it."""
        call_id = call_id_of(event)
        if call_id is not None or event.cause is None:
            return call_id
        return self._calls.get(event.cause)

    def _unasked(
        self, event: V0Event, text: str, is_error: bool | None, kind: ErrorKind | None, recorded: bool
    ) -> None:
        """An observation that answers no call of the agent."""
        if event.name == "run":
            text = f"\nObserved result of command executed by user:\n{text}"
        if event.name == "error" and event.source == "agent" and recorded:
            # a response that did not parse: its error is shown, the response itself is not recorded
            self._report.skipped["step lost: the response was malformed and is not recorded"] += 1
        self._growing.say(Message("user", text, is_error=is_error, error_kind=kind))

    def _condense(self, event: V0Event) -> None:
        """A condensation: forget events, insert the summary, and start a context with what is left."""
        self._report.compactions += 1
        self._forgotten |= _forgotten_ids(event)
        summary, offset = event.fields.get("summary"), event.fields.get("summary_offset")
        if isinstance(summary, str) and isinstance(offset, int):
            self._summary = V0Event(-1, False, _SUMMARY, "agent", summary, {})
            self._offset = offset
        self._close()
        self._growing = GrowingContext("compaction", _USER_GAP)
        self._responses, self._shown = set(), set()
        kept = [e for e in self._history if e.id not in self._forgotten]
        if self._summary is not None:
            kept.insert(self._offset, self._summary)
        for old in kept:
            self._apply(old, recorded=False)
        self._growing.keep_matched()

    def _close(self) -> None:
        """End the growing context; one in which nothing was said or done is left out."""
        growing = self._growing
        tools = specs_of(self._tools, all_calls(growing.messages), harness_for("openhands", self.version))
        context = growing.finish(len(self.contexts), tools)
        if growing.unanswered:
            self._report.flags["call without a result"] += growing.unanswered
        if context.steps:
            self.contexts.append(context)
        elif context.messages:
            self._report.flags["context without a step"] += 1

    def _count_error(self, event: V0Event) -> None:
        """`tool_errors` counts error observations and exit codes other than 0."""
        if event.is_action:
            return
        if event.name == "error" or (event.name == "run" and exit_code(event) not in (None, 0)):
            self._report.tool_errors += 1
        elif observation_error(event)[0]:
            self._report.flags["failure told only by its text"] += 1


def _user_text(event: V0Event) -> str:
    """What the agent is shown of an action of the user's."""
    if event.name == "message":
        urls = event.fields.get("image_urls") or event.fields.get("images_urls")
        images = [image_part_text(url) for url in urls] if isinstance(urls, list) else []
        return "\n".join(filter(None, (event.content, *images)))
    if event.name == "run":
        return f"User executed the command:\n{event.field('command')}"
    return f"User requested: {event.name} {canonical_json(dict(event.fields))}"


def _finish_text(event: V0Event) -> str:
    """A finish in the past is plain text: the thought, then the text of the response."""
    said = response_of(event).message.content
    thought = event.field("thought")
    return thought if said in ("", thought) else f"{thought}\n{said}".strip()


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
