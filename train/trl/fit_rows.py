"""Select the rows that fit `max_length`, and cut the contexts of longer ones.

TRL truncates a longer row at its end, where the answer is, and silently drops one whose prompt fills
`max_length`. So every row is measured before TRL sees it.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Row = Mapping[str, Any]
Measure = Callable[[list[Message], Row], int]
"""Returns the tokens of a prompt with the longest side of the row. Raises ValueError if it cannot."""

WINDOWS = (4096, 8192, 16384, 32768)
"""Values of `max_length`, in tokens, that users choose from."""
LEFT_OUT = "\n\n[{count} earlier messages are left out]"
_SIDES = ("chosen", "rejected", "completion")


@dataclass(slots=True)
class FittedRows:
    """Rows as the trainer gets them, and counts of the others.

    A row has `prompt`, maybe cut, `tools`, which may be None, and its other columns as they were. `measured`
    counts rows of a weight above 0, `parted` rows whose prompt the template writes differently once an answer
    follows, `lengths` holds the tokens of each row that the template takes, before any cut.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    cut: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    parted: int = 0
    measured: int = 0
    lengths: list[int] = field(default_factory=list)

    def whole_at(self) -> dict[int, int]:
        """Return how many rows would fit uncut, by the value of `max_length`."""
        return {window: sum(tokens <= window for tokens in self.lengths) for window in WINDOWS}


def sides_of(row: Row) -> list[str]:
    """Return the columns of a row that answer its prompt: both sides of a pair, or the completion."""
    return [name for name in _SIDES if name in row]


def fit_rows(rows: Iterable[Row], measure: Measure, max_length: int, cut: bool) -> FittedRows:
    """Return the rows of at most `max_length` tokens; with `cut` also longer ones without their oldest turns.

    Rows of weight 0 are dropped.
    """
    fitted = FittedRows()
    for row in rows:
        if row.get("weight") is not None and not row["weight"] > 0:
            fitted.dropped["of weight 0"] += 1
            continue
        fitted.measured += 1
        prompt = list(row["prompt"])
        try:
            tokens = measure(prompt, row)
        except ValueError:
            fitted.dropped["the chat template refuses it"] += 1
            continue
        fitted.lengths.append(tokens)
        if tokens > max_length:
            shorter = cut_prompt(prompt, row, measure, max_length, tokens) if cut else None
            if shorter is None:
                fitted.dropped[f"longer than {max_length} tokens"] += 1
                continue
            prompt, fitted.cut = shorter, fitted.cut + 1
        kept = {name: value for name, value in row.items() if name not in ("prompt", "tools")}
        if "weight" in kept and kept["weight"] is None:
            kept["weight"] = 1.0
        fitted.rows.append({"prompt": prompt, **kept, "tools": row["tools"] or None})
    return fitted


def cut_prompt(
    prompt: list[Message], row: Row, measure: Measure, max_length: int, tokens: float
) -> list[Message] | None:
    """Return the system prompt, the task and as many of the last turns as fit; None if not even one does.

    The task says how many messages are left out. A call stays with its results. `tokens` is the length of the
    whole prompt.
    """
    head, turns = _split_turns(prompt)
    count, shorter, fits = len(turns), prompt, None
    while fits is None and count > 1:
        count = _estimate_count(turns[-count:], shorter, tokens - max_length, tokens)
        shorter = _keep_last(head, turns, count)
        tokens = _measure_or_inf(measure, shorter, row)
        fits = shorter if tokens <= max_length else None
    while fits is not None and count + 1 < len(turns):  # the estimate may have left out too many
        count += 1
        shorter = _keep_last(head, turns, count)
        if _measure_or_inf(measure, shorter, row) > max_length:
            break
        fits = shorter
    return fits


def _measure_or_inf(measure: Measure, prompt: list[Message], row: Row) -> float:
    try:
        return measure(prompt, row)
    except ValueError:  # the template may demand another order of roles, which another cut has
        return math.inf


def _keep_last(head: list[Message], turns: list[list[Message]], count: int) -> list[Message]:
    kept = [message for turn in turns[-count:] for message in turn]
    if not head:
        return kept
    text = (head[-1].get("content") or "") + LEFT_OUT.format(count=sum(map(len, turns[:-count])))
    return [*head[:-1], {**head[-1], "content": text}, *kept]


def _estimate_count(turns: list[list[Message]], prompt: list[Message], excess: float, tokens: float) -> int:
    """Estimate how many of the last turns, at least one, are left without `excess` of `tokens` tokens."""
    excess_chars = excess * sum(map(_chars, prompt)) / tokens if tokens < math.inf else 0.0
    removed = 0.0
    for place, turn in enumerate(turns[:-1]):
        removed += sum(map(_chars, turn))
        if removed >= excess_chars:
            return len(turns) - place - 1
    return 1


def _split_turns(prompt: list[Message]) -> tuple[list[Message], list[list[Message]]]:
    """Return the system prompt and task, and the turns: a message with the results of its tools."""
    start = 0
    while start < len(prompt) and prompt[start]["role"] == "system":
        start += 1
    if start < len(prompt) and prompt[start]["role"] == "user":
        start += 1
    turns: list[list[Message]] = []
    for message in prompt[start:]:
        if message["role"] == "tool" and turns:
            turns[-1].append(message)
        else:
            turns.append([message])
    return prompt[:start], turns


def _chars(message: Message) -> int:
    return len(message.get("content") or "") + len(json.dumps(message.get("tool_calls") or "", default=str))
