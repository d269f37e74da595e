"""Read what a stored reply tells the gate about a step."""

import math
from collections.abc import Iterator
from typing import Any

import orjson

from tracemill.records.reply import TeacherReply
from tracemill.teachers.gate.features import SecondOpinion


def read_second_reply(reply: TeacherReply) -> SecondOpinion:
    """Return the action of a reply and the mean entropy of its tokens."""
    return SecondOpinion(reply.action, second_reply_entropy(reply.raw))


def second_reply_entropy(raw: str) -> float | None:
    """Return the mean entropy of the tokens in nats, None without log probabilities.

    The probability that the given alternatives leave counts as one more. Shape:
    https://platform.openai.com/docs/api-reference/chat/object (`choices[].logprobs.content`).
    """
    try:
        answer = orjson.loads(raw) if raw else {}
    except ValueError:
        return None
    found = [_entropy(token) for token in _tokens(answer)]
    return math.fsum(found) / len(found) if found else None


def _tokens(answer: Any) -> Iterator[dict[str, Any]]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    logprobs = first.get("logprobs") if isinstance(first, dict) else None
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    for token in content if isinstance(content, list) else ():
        if isinstance(token, dict) and isinstance(token.get("logprob"), int | float):
            yield token


def _entropy(token: dict[str, Any]) -> float:
    given = token.get("top_logprobs")
    alternatives = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    logs = [each["logprob"] for each in alternatives if isinstance(each.get("logprob"), int | float)]
    shares = [math.exp(min(value, 0.0)) for value in logs or [token["logprob"]]]
    rest = max(1.0 - sum(shares), 0.0)
    return -sum(share * math.log(share) for share in [*shares, rest] if share > 1e-12)
