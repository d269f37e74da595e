"""Build prompts from V0 events.

Follows `ConversationMemory.process_events`: a response of the model is shown when all its calls are answered,
then the results in call order; a past finish is plain text; calls without a result are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemill.ingesters.common.openai_messages import openai_image_text
from tracemill.ingesters.openhands.v0.actions import (
    rebuilt_action_call_id,
    v0_action_call_id,
    v0_action_response,
    v0_action_response_key,
)
from tracemill.ingesters.openhands.v0.events import V0Event
from tracemill.ingesters.openhands.v0.observation_text import (
    MAX_MESSAGE_CHARS,
    cut_middle,
    recall_observation_text,
    v0_observation_error,
    v0_observation_text,
)
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message

SUMMARY = "condensation summary"
"""Name of the event that replaces what a condensation forgot."""


@dataclass(slots=True)
class V0Settings:
    """Settings of a history, from the files around it.

    `model` is the configured model; `usages` and `models` are by response id; longer texts are cut at
    `max_message_chars`; `shows_recall` says whether recalled context was shown; `lost` whether events could
    not be read.
    """

    model: str | None = None
    usages: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    max_message_chars: int = MAX_MESSAGE_CHARS
    shows_recall: bool = True
    lost: bool = False


@dataclass(slots=True)
class V0Prompt:
    """A prompt: its messages, the responses in it, and the names of knowledge in it."""

    messages: list[Message] = field(default_factory=list)
    responses: set[str] = field(default_factory=set)
    knowledge: set[str] = field(default_factory=set)


def is_agent_action(event: V0Event) -> bool:
    """Return whether an event, one that is shown, is an action of the model."""
    return event.is_action and event.source != "user" and event.name not in ("system", "recall")


def is_text_only(event: V0Event) -> bool:
    """Return whether an action of the model is a message without a call."""
    return event.name == "message" and event.call is None


class V0Messages:
    """Renderer of the events of one session as messages."""

    def __init__(self, settings: V0Settings) -> None:
        self._settings = settings
        self._calls: dict[int, str] = {}
        self._names: dict[str, str] = {}

    def register(self, event: V0Event, message: Message | None) -> None:
        """Register the call of an action and those of its response, so that observations find them."""
        self._calls[event.id] = v0_action_call_id(event) or rebuilt_action_call_id(event.id)
        for call in message.tool_calls if message else ():
            self._names[call.id] = call.name

    def answered_call(self, event: V0Event) -> str | None:
        """Return the call an observation answers, by its metadata or the action that caused it."""
        call_id = v0_action_call_id(event)
        if call_id is not None or event.cause is None:
            return call_id
        return self._calls.get(event.cause)

    def is_known(self, call_id: str) -> bool:
        """Return whether a call was made in this session."""
        return call_id in self._names

    def result(self, event: V0Event, call_id: str) -> Message:
        """Return an observation as a tool result."""
        named = event.call.get("function_name") if event.call else None
        name = named if isinstance(named, str) else self._names.get(call_id)
        text = v0_observation_text(event, self._settings.max_message_chars)
        is_error, kind = v0_observation_error(event, text)
        return Message("tool", text, (), call_id, name, is_error, kind)

    def text(self, event: V0Event, knowledge: set[str]) -> Message | None:
        """Return an event that is neither an action of the model nor a result; None if not shown."""
        if event.is_action:
            return _user_action_message(event)
        limit = self._settings.max_message_chars
        if event.name == SUMMARY:
            return Message("user", cut_middle(event.content, limit))
        if event.name == "recall":
            text = recall_observation_text(event, knowledge)
            return Message("user", text) if text and self._settings.shows_recall else None
        text = v0_observation_text(event, limit, by_user=True)
        is_error, kind = v0_observation_error(event, text)
        return Message("user", text, is_error=is_error, error_kind=kind)


def build_prompt_messages(events: Iterable[V0Event], messages: V0Messages) -> V0Prompt:
    """Build the prompt from past events."""
    prompt = V0Prompt()
    waiting: dict[str, Message] = {}
    results: dict[str, Message] = {}
    for event in events:
        if is_agent_action(event):
            message = _past_text(event)
            if message is None:
                response = v0_action_response(event).message
                waiting[v0_action_response_key(event)] = response
                messages.register(event, response)
        else:
            call_id = None if event.is_action or event.name == "recall" else messages.answered_call(event)
            if call_id is not None:
                results.setdefault(call_id, messages.result(event, call_id))
            message = None if call_id is not None else messages.text(event, prompt.knowledge)
        if message is not None:
            prompt.messages.append(message)
        _add_complete(waiting, results, prompt)
    return prompt


def _add_complete(waiting: dict[str, Message], results: dict[str, Message], prompt: V0Prompt) -> None:
    """Move responses whose calls are all answered into the prompt, followed by their results."""
    for key in [k for k, m in waiting.items() if all(c.id in results for c in m.tool_calls)]:
        message = waiting.pop(key)
        prompt.responses.add(key)
        prompt.messages.append(message)
        prompt.messages.extend(results.pop(call.id) for call in message.tool_calls)


def _past_text(event: V0Event) -> Message | None:
    """Return a past action that is shown as text: a message, or a finish. None for other actions."""
    if is_text_only(event):
        return Message("assistant", event.content)
    if event.name != "finish":
        return None
    text, thought = v0_action_response(event).message.content, event.field("thought")
    return Message("assistant", thought if text in ("", thought) else f"{thought}\n{text}".strip())


def _user_action_message(event: V0Event) -> Message | None:
    """Return a system prompt or an action of the user as the model is shown it."""
    if event.name == "system":
        return Message("system", event.content)
    if event.name == "recall":
        return None
    if event.name == "message":
        urls = event.fields.get("image_urls") or event.fields.get("images_urls")
        images = [openai_image_text(url) for url in urls] if isinstance(urls, list) else []
        return Message("user", "\n".join(filter(None, (event.content, *images))))
    if event.name == "run":
        return Message("user", f"User executed the command:\n{event.field('command')}")
    return Message("user", f"User requested: {event.name} {canonical_json(dict(event.fields))}")
