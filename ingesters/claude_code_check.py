"""The ingester's check on itself: characters of the rebuilt prefixes against the tokens reported.

Over the steps of a session the two rise and fall together (median correlation 0.999 on real sessions);
a session where they do not was rebuilt wrongly, or holds something the rebuilding does not know.
"""

from collections.abc import Iterable
from itertools import accumulate
from math import sqrt

from records.message import Message
from records.state import Context

MIN_STEPS = 8
MIN_CORRELATION = 0.9
_MIN_SPREAD_TOKENS = 2000


def prefix_correlation(contexts: Iterable[Context]) -> float | None:
    """Pearson's r of prefix characters and prompt tokens over the steps of a session, the worst of its parts.

    Contexts that are whole are one part; one whose start is lost is a part of its own, since what is
    lost moves its characters alone. None where no part has MIN_STEPS steps that report tokens, or the
    tokens hardly move.
    """
    parts: list[list[tuple[int, int]]] = [[]]
    for context in contexts:
        if context.fidelity.context == "lost":
            parts.append(_points(context))
        else:
            parts[0].extend(_points(context))
    return min((_pearson(part) for part in parts if _tells(part)), default=None)


def _tells(points: list[tuple[int, int]]) -> bool:
    tokens = [y for _, y in points]
    return len(points) >= MIN_STEPS and max(tokens) - min(tokens) >= _MIN_SPREAD_TOKENS


def _points(context: Context) -> list[tuple[int, int]]:
    lengths = [0, *accumulate(_length(message) for message in context.messages)]
    return [
        (lengths[step.cut], step.usage.prompt_tokens) for step in context.steps if step.usage.prompt_tokens
    ]


def _length(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) + len(call.name) for call in message.tool_calls)


def _pearson(points: list[tuple[int, int]]) -> float:
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    return xy / sqrt(xx * yy) if xx and yy else 0.0
