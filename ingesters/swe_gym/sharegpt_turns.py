"""Convert turns of ShareGPT ({from, value}) to chat messages; the turns of one answer form one message.

LLaMA-Factory writes calls and results as turns of their own
(https://llamafactory.readthedocs.io/en/latest/getting_started/data_preparation.html), ms-swift among chat
messages. Hermes writes them as `<tool_call>` and `<tool_response>` in the text, and thoughts as `<think>`;
Glaive writes `<functioncall>`, with arguments in single quotes. Calls have no ids: results answer them in
order.

The Agent Data Protocol (https://github.com/neulab/agent-data-protocol) calls every answer `function_call`.
Its call, if it has one, stays in its text (`<function=...>`, a block of bash). What answers it is a message
of the user, as harnesses with such calls send it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tracemill.ingesters.common.run_identity import PREVIEWED
from tracemill.ingesters.swe_gym.response_items import TEXT_BEHIND_CALL
from tracemill.ingesters.swe_gym.row_messages import NotUnderstood, check_known_keys, plain_name
from tracemill.ingesters.swe_gym.row_signs import is_turn
from tracemill.records.identity import canonical_json
from tracemill.records.ingest_report import record_type

TURN_KEYS = frozenset(("from", "value", "name", "id", "timestamp"))
ROLES: Mapping[str, str] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model", "bot"), "assistant"),
    **dict.fromkeys(("function_call", "function-call", "tool_call"), "call"),
    **dict.fromkeys(
        ("observation", "tool", "tool_response", "function_response", "function-response"), "tool"
    ),
    "system": "system",
}
"""What each speaker is. `function` is a call in some sets and a result in others, so it is none here."""
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>", re.DOTALL)
_TEXT_CALL = "<function="
_FUNCTION_NAME = re.compile(r"<function=([\w.-]+)>")
_COMMAND = re.compile(r"^```bash[ \t]*$", re.MULTILINE)
_GLAIVE_TAG = "<functioncall>"
_GLAIVE_CALL = re.compile(r"""\s*\{"name": "([^"\\]+)", "arguments": '(.*)'\}\s*""", re.DOTALL)
SWIFT_ROLES = frozenset(("tool_call", "tool_response"))
"""Roles of ms-swift, which a list of chat messages has beside those of OpenAI.

Source: https://swift.readthedocs.io/en/latest/Instruction/Agent-support.html.
"""
_CALL_TAGS = ("<tool_call>", "</tool_call>")
_RESPONSE_TAGS = ("<tool_response>", "</tool_response>")
_CALL_KEYS = frozenset(("name", "arguments", "parameters"))
_RESPONSE_KEYS = frozenset(("tool_call_id", "name", "content"))


def turns_of_swift(listed: list[Any]) -> list[Any]:
    """Return chat messages with roles of ms-swift as turns, any other list as it is."""
    if not any(isinstance(item, dict) and item.get("role") in SWIFT_ROLES for item in listed):
        return listed
    if all(PREVIEWED in item for item in listed):
        return list(_swift_preview(listed))
    return [_swift_turn(item) for item in listed]


def _swift_turn(item: Any) -> Any:
    if not isinstance(item, dict) or "role" not in item or "content" not in item:
        return item
    rest = {key: value for key, value in item.items() if key not in ("role", "content")}
    return {"from": item["role"], "value": item["content"], **rest}


def _swift_preview(listed: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a message for each answer and each other message, of messages of which only the role is known."""
    before = None
    for item in listed:
        role = ROLES.get(item["role"], item["role"])
        if role != "call" or before not in ("assistant", "call"):
            yield {**item, "role": "assistant" if role == "call" else role}
        before = role


def holds_rewritten_texts(listed: Sequence[Any]) -> bool:
    """Return whether texts are not those sent: they hold thoughts, calls or results, or calls are texts."""
    tags = ("<think>", _CALL_TAGS[0], _RESPONSE_TAGS[0], _GLAIVE_TAG)
    texts = (item["value"] for item in listed if is_turn(item) and isinstance(item["value"], str))
    return any(tag in text for text in texts for tag in tags) or any(
        _TEXT_CALL not in text for text in _texts_of_calls(listed) if _is_prose(text)
    )


def acts_by_commands(listed: Sequence[Any]) -> bool:
    """Return whether the calls of the turns are blocks of bash, as mini-swe-agent writes them."""
    texts = _texts_of_calls(listed)
    named = {name for text in texts for name in _FUNCTION_NAME.findall(text)}
    return all(map(_is_prose, texts)) and any(map(_COMMAND.search, texts)) and named <= {"finish", "submit"}


def _texts_of_calls(listed: Sequence[Any]) -> list[str]:
    turns = (item for item in listed if is_turn(item) and ROLES.get(item["from"]) == "call")
    return [item["value"] for item in turns if isinstance(item["value"], str)]


def _is_prose(text: str) -> bool:
    """Return whether the text of a call is no JSON, by how it begins behind its thoughts."""
    return not _split_thought(text)[0].lstrip().startswith(("{", "["))


def chat_of_turns(listed: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the turns as chat messages, in order. Raises NotUnderstood.

    The text of a call that is no JSON is an answer in a row where another call is written in its text.
    """
    answer: dict[str, Any] | None = None
    in_text = False
    in_prose = any(_TEXT_CALL in text or _COMMAND.search(text) for text in _texts_of_calls(listed))
    for item in listed:
        role, value = _read_turn(item)
        if role == "call" and _TEXT_CALL not in value and not (in_prose and _is_prose(value)):
            calls = _calls_of_turn(value, answer or {})
            if answer is None:
                answer = {"role": "assistant", "content": ""}
            answer |= {**calls, "tool_calls": [*answer.get("tool_calls", ()), *calls["tool_calls"]]}
            in_text = False
            continue
        if answer is not None:
            yield answer
            answer = None
        if role in ("assistant", "call"):
            answer = _answer(value)
            in_text = (_TEXT_CALL in value or role == "call") and "tool_calls" not in answer
        elif role == "tool" and in_text:
            yield {"role": "user", "content": value}
        elif role == "tool":
            yield from _results(value, item)
        else:
            yield {"role": role, "content": value}
    if answer is not None:
        yield answer


def _read_turn(item: Any) -> tuple[str, str]:
    """Return the role and the text of a turn."""
    if not is_turn(item):
        raise NotUnderstood("turn without from and value")
    check_known_keys(item, TURN_KEYS, "key of a turn")
    speaker = item["from"]
    role = ROLES.get(speaker)
    if role is None:
        raise NotUnderstood(f"speaker not understood: {plain_name(speaker)}", f"turn {record_type(speaker)}")
    value = item["value"]
    if value is not None and not isinstance(value, str):
        raise NotUnderstood("value of a turn that is not text")
    return role, value or ""


def _answer(text: str) -> dict[str, Any]:
    """Return a message of the agent, with the thoughts and calls that its text holds."""
    rest, thought = _split_thought(text)
    if _GLAIVE_TAG in rest:
        before, _, behind = rest.partition(_GLAIVE_TAG)
        call = read_call(behind.removesuffix("<|endoftext|>"))
        return {"role": "assistant", "content": before.rstrip(), **thought, "tool_calls": [call]}
    calls = [read_call(match[1]) for match in _CALL.finditer(rest)]
    first = rest.find(_CALL_TAGS[0])
    if any(tag in _CALL.sub("", rest) for tag in _CALL_TAGS):
        raise NotUnderstood("tool call in a text not understood")
    if calls and _CALL.sub("", rest[first:]).strip():
        raise NotUnderstood(TEXT_BEHIND_CALL)
    content = rest[:first].rstrip() if calls else rest
    return {"role": "assistant", "content": content, **thought} | ({"tool_calls": calls} if calls else {})


def _calls_of_turn(text: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls of a turn that holds nothing else but thoughts."""
    rest, thought = _split_thought(text)
    if thought and before:
        raise NotUnderstood("thoughts behind other parts of the same answer")
    value = _json(rest)
    calls = value if isinstance(value, list) else [value]
    if not calls:
        raise NotUnderstood("tool call in a text not understood")
    return {**thought, "tool_calls": [_make_call(call) for call in calls]}


def _split_thought(text: str) -> tuple[str, dict[str, str]]:
    """Return a text without the thoughts at its start, and these as a field of the message."""
    if not (match := _THOUGHT.match(text)):
        return text, {}
    thought = match[1].strip()
    return text[match.end() :], {"reasoning_content": thought} if thought else {}


def read_call(text: str) -> dict[str, Any]:
    """Return the call that a text of JSON holds, as a call of a chat message. Raises NotUnderstood."""
    return _make_call(_json(text))


def _make_call(value: Any) -> dict[str, Any]:
    """Return a call of {name, arguments}. Raises NotUnderstood where it is another value."""
    if not isinstance(value, dict) or not value.keys() <= _CALL_KEYS:
        raise NotUnderstood("tool call in a text not understood")
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(value.get("name"), str) or not isinstance(arguments, str | dict):
        raise NotUnderstood("tool call in a text not understood")
    body = arguments if isinstance(arguments, str) else canonical_json(arguments)
    return {"function": {"name": value["name"], "arguments": body}}


def _results(text: str, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results that a turn holds: all of its text, or one in each pair of tags."""
    if not any(tag in text for tag in _RESPONSE_TAGS):
        yield {"role": "tool", "name": item.get("name"), "content": text}
        return
    if _RESPONSE.sub("", text).strip():
        raise NotUnderstood("text beside a tool_response")
    for match in _RESPONSE.finditer(text):
        yield {"role": "tool", **_response(match[1])}


def _response(text: str) -> dict[str, Any]:
    """Return name and text of a result; one that is no {name, content} is its text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"content": text}
    if not isinstance(value, dict) or "content" not in value or not value.keys() <= _RESPONSE_KEYS:
        return {"content": text}
    content = value["content"]
    shown = (
        content
        if isinstance(content, str)
        else json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    )
    return {"name": value.get("name"), "content": shown}


def _json(text: str) -> Any:
    """Return the value of a text; arguments may stand in single quotes. Raises NotUnderstood."""
    match = _GLAIVE_CALL.fullmatch(text)
    try:
        if match is None:
            return orjson.loads(text)
        if isinstance(orjson.loads(match[2]), dict):
            return {"name": match[1], "arguments": match[2]}
    except orjson.JSONDecodeError:
        pass
    raise NotUnderstood("tool call in a text not understood")
