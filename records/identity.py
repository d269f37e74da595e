"""Ids of steps, prompts and requests, and the hashes they are made of.

- `step_id` = (trace, context, step): the key of states, decisions, replies and pairs.
- `prompt_id` = hash of the text shown to a teacher, chained message by message, so that the prompts of a
  context with T steps cost O(T) together.
- `request_key` = the key an answer is bought under, once: prompt_id, model snapshot, pinned provider,
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

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_ALIKE = frozenset((str, int, bool, type(None)))
"""Types of values that orjson writes as the standard library does, several times as fast."""


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no blanks, so that equal values give equal text."""
    if type(value) is dict and _ALIKE.issuperset(map(type, value.values())):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        except orjson.JSONEncodeError:  # half of an emoji, a long number, a key that is no text
            pass
    return _CANONICAL.encode(value)


def digest(*parts: str, size: int = 16) -> str:
    """Return the BLAKE2b hash of texts as `2 * size` hex digits.

    Each text is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    """
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()


def make_trace_id(source: str, *native: str) -> str:
    """Return `<source>-<20 hex>`, a hash of the source's own ids, which it does not reveal."""
    return f"{source}-{digest(source, *native, size=10)}"


@dataclass(frozen=True, slots=True, order=True)
class StepId:
    """Place of a step: the trace, the index of the context in it, and the index of the step in that."""

    trace_id: str
    context: int
    step: int

    def __str__(self) -> str:
        return f"{self.trace_id}:{self.context}:{self.step}"

    @classmethod
    def parse(cls, text: str) -> "StepId":
        """Parse the result of `str`. Raises TracemillError if the text is not a step id."""
        try:
            trace_id, context, step = text.rsplit(":", 2)
            return cls(trace_id, int(context), int(step))
        except ValueError:
            raise TracemillError(f"{text!r} is not a step id", "<trace>:<context>:<step>") from None


def message_digest(message: Message) -> str:
    """Return the hash of a message's parts that are part of a prompt."""
    calls = [part for c in message.tool_calls for part in (c.id, c.name, c.arguments)]
    return digest(message.role, message.content, message.tool_call_id or "", str(len(calls)), *calls)


def prompt_root(tools: Iterable[ToolSpec], presentation: str) -> str:
    """Return the first link of a prompt chain: a hash of the tools and the version of the presentation."""
    wire = [tool.to_wire() for tool in tools]
    return digest("prompt", presentation, canonical_json(wire))


def extend_prompt(prompt_id: str, message: Message) -> str:
    """Return the prompt_id after one more message."""
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
    """Return the key an answer is bought under; `provider` is the pinned one, None if none is pinned."""
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
