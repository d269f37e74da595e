"""The three identities, never mixed up.

- `step_id` = (trace, context, step): the key of states, decisions, replies and pairs.
- `prompt_id` = hash of the text a teacher is shown, chained message by message, so that the T prompts
  of a context cost O(T) together.
- `request_key` = what an answer is bought under, once: prompt_id, model snapshot, pinned provider,
  sampling and reasoning settings, presentation version, sample index, and nothing else.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tracemill.records.errors import TracemillError
from tracemill.records.message import Message, ToolSpec

_SIZE = 16
_EMPTY = hashlib.blake2b(digest_size=_SIZE)
_PLAIN = frozenset((str, int, bool, type(None)))


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    try:  # the same text, several times as fast; of floats it would be another one
        if _is_plain(value):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):  # no text as key, half a surrogate pair, more than 64 bits, too deep
        pass
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _is_plain(value: Any) -> bool:
    """Whether a value is made of objects, lists, texts, whole numbers, booleans and nulls alone."""
    kind = type(value)
    if kind is dict:
        inner = value.values()
    elif kind is list or kind is tuple:
        inner = value
    else:
        return kind in _PLAIN
    if _PLAIN.issuperset(map(type, inner)):
        return True
    return all(_is_plain(item) for item in inner if type(item) not in _PLAIN)


def digest(*parts: str, size: int = _SIZE) -> str:
    """BLAKE2b of the parts, each preceded by its length so that joints cannot move; `2 * size` hex."""
    hasher = _EMPTY.copy() if size == _SIZE else hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()


def make_trace_id(source: str, *native: str) -> str:
    """`<source>-<20 hex>`, from the ids the source itself gives; holds nothing readable of them."""
    return f"{source}-{digest(source, *native, size=10)}"


@dataclass(frozen=True, slots=True, order=True)
class StepId:
    """Where a step is: trace, index of the context in it, index of the step in that."""

    trace_id: str
    context: int
    step: int

    def __str__(self) -> str:
        return f"{self.trace_id}:{self.context}:{self.step}"

    @classmethod
    def parse(cls, text: str) -> "StepId":
        """The inverse of `str`. Raises TracemillError where the text is no step id."""
        try:
            trace_id, context, step = text.rsplit(":", 2)
            return cls(trace_id, int(context), int(step))
        except ValueError:
            raise TracemillError(f"{text!r} is no step id", "<trace>:<context>:<step>") from None


def message_digest(message: Message) -> str:
    """Hash of what a model is shown of the message."""
    calls = [part for c in message.tool_calls for part in (c.id, c.name, c.arguments)]
    return digest(message.role, message.content, message.tool_call_id or "", str(len(calls)), *calls)


def prompt_root(tools: Iterable[ToolSpec], presentation: str) -> str:
    """First link of a prompt chain: the tools offered and the version of the presentation."""
    wire = [tool.to_wire() for tool in tools]
    return digest("prompt", presentation, canonical_json(wire))


def extend_prompt(prompt_id: str, message: Message) -> str:
    """The prompt_id after one more message."""
    return digest(prompt_id, message_digest(message))


def request_key(
    *,
    prompt_id: str,
    model: str,
    provider: str | None,
    sampling: Mapping[str, Any],
    reasoning: Mapping[str, Any],
    presentation: str,
    sample: int,
) -> str:
    """The key an answer is bought under. `provider` is the pinned one, None where none is pinned."""
    return digest(
        "request",
        prompt_id,
        model,
        provider or "",
        canonical_json(dict(sampling)),
        canonical_json(dict(reasoning)),
        presentation,
        str(sample),
    )
