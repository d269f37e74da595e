"""Convert recorded messages, one by one, to messages that chat completions APIs accept.

All providers behind the API require: one system message at the start, a user message first and between two
messages of the assistant, every tool call answered right behind it and once, no answer without its call,
unique call ids, arguments that are a JSON object, no empty turns, no lone surrogates. Inserted text is in
square brackets.
"""

import json
from dataclasses import dataclass, field, replace

from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.records.message import Message, ToolCall

NO_RESULT = "[no result was recorded]"
NO_BEGINNING = "[the beginning of this conversation was not recorded]"
NO_USER_TURN = "[nothing was said here; go on]"
LATE_RESULT = "[result of an earlier call]"
UNPARSED = "_unparsed_arguments"


@dataclass(slots=True)
class MessageBuilder:
    """Builder of valid messages from recorded ones; `out` is valid after a call of `ready`.

    Text between the answers to calls is moved after them. Messages are only appended to `out`, so the
    messages shown at an earlier step are a prefix of those shown later.
    """

    out: list[Message] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _waiting: dict[str, list[str]] = field(default_factory=dict)
    _deferred: list[Message] = field(default_factory=list)

    def ready(self) -> int:
        """Add missing answers to calls, so that the agent may act next; return the number of messages."""
        self._answer_open_calls()
        if not self.out or self.out[-1].role == "system":
            self.out.append(Message("user", NO_BEGINNING))
        elif self.out[-1].role == "assistant":
            self.out.append(Message("user", NO_USER_TURN))
        return len(self.out)

    def add(self, message: Message) -> None:
        """Add the next recorded message."""
        if message.role == "tool":
            self._add_result(message)
        elif message.role == "assistant":
            self._add_assistant(message)
        elif message.content.strip():
            self._add_text(_valid_message(message))

    def _add_text(self, message: Message) -> None:
        """Add a text that answers no call; it is placed after the answers still expected."""
        if any(self._waiting.values()):
            self._deferred.append(replace(message, role="user"))
        elif message.role == "user" or not self.out:
            self.out.append(message)
        else:
            self.out.append(replace(message, role="user"))

    def _add_assistant(self, message: Message) -> None:
        if not message.tool_calls and not message.content.strip():
            return
        self.ready()
        calls = tuple(self._register(call) for call in message.tool_calls)
        self.out.append(_valid_message(message, calls))

    def _register(self, call: ToolCall) -> ToolCall:
        fresh, copy = call.id, 1
        while not fresh or fresh in self._used:
            copy += 1
            fresh = f"{call.id or 'call'}_{copy}"
        self._used.add(fresh)
        name = clean_schema_name(call.name)
        self._waiting.setdefault(call.id, []).append(fresh)
        arguments = valid_message_text(
            call.arguments if call.parsed() is not None else _as_object(call.arguments)
        )
        if fresh == call.id and name == call.name and arguments == call.arguments:
            return call
        return ToolCall(fresh, name, arguments)

    def _add_result(self, message: Message) -> None:
        waiting = self._waiting.get(message.tool_call_id or "")
        if not waiting:
            if message.content.strip():
                self._add_text(Message("user", f"{LATE_RESULT}\n{valid_message_text(message.content)}"))
            return
        valid, call_id = _valid_message(message), waiting.pop(0)
        self.out.append(valid if call_id == valid.tool_call_id else replace(valid, tool_call_id=call_id))
        if not any(self._waiting.values()):
            self._answer_open_calls()

    def _answer_open_calls(self) -> None:
        for waiting in self._waiting.values():
            for call_id in waiting:
                self.out.append(Message("tool", NO_RESULT, tool_call_id=call_id))
        self._waiting.clear()
        self.out.extend(self._deferred)
        self._deferred.clear()


def valid_message_text(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _as_object(arguments: str) -> str:
    if not arguments.strip():
        return "{}"
    return json.dumps({UNPARSED: arguments}, ensure_ascii=False)


def _valid_message(message: Message, calls: tuple[ToolCall, ...] | None = None) -> Message:
    """Return the message without reasoning and lone surrogates; the same object where nothing changes."""
    content = valid_message_text(message.content)
    calls = message.tool_calls if calls is None else calls
    if message.reasoning is None and calls == message.tool_calls and content == message.content:
        return message
    return replace(message, content=content, tool_calls=calls, reasoning=None)
