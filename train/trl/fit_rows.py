"""Which rows fit the trainer's window, and how a context that does not is cut.

TRL cuts a row that is longer than `max_length` at its end, where the answer is, and leaves out without a
word those whose prompt fills it. So every row is measured before TRL sees it.
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
"""Tokens of a prompt with the longer side of the row. Raises ValueError where it cannot be told."""

MARKER = "\n\n[{count} earlier messages are left out]"
_SIDES = ("chosen", "rejected", "completion")
_BESIDE = ("label", "weight")


@dataclass(slots=True)
class Fitted:
    """Rows as the trainer gets them (`prompt`, sides, `tools`, and `label` and `weight` where they have them)
    and what became of the others."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    cut: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    parted: int = 0
    """Rows whose prompt the chat template writes otherwise once an answer follows."""
    measured: int = 0
    """Rows that count, whether they fit or not."""
    shortest_tokens: int | None = None
    """The shortest row before any cut."""


def sides_of(row: Row) -> list[str]:
    """The columns of a row that answer its prompt: both sides of a pair, or the one completion."""
    return [name for name in _SIDES if name in row]


def fit_rows(rows: Iterable[Row], measure: Measure, max_length: int, cut: bool) -> Fitted:
    """The rows of at most `max_length` tokens; with `cut` also longer ones, without their oldest turns. Rows
    of weight 0 are left out."""
    done = Fitted()
    for row in rows:
        if row.get("weight") is not None and not row["weight"] > 0:
            done.dropped["of weight 0"] += 1
            continue
        done.measured += 1
        prompt = list(row["prompt"])
        try:
            tokens = measure(prompt, row)
        except ValueError:
            done.dropped["the chat template refuses it"] += 1
            continue
        if done.shortest_tokens is None or tokens < done.shortest_tokens:
            done.shortest_tokens = tokens
        if tokens > max_length:
            shorter = cut_prompt(prompt, row, measure, max_length, tokens) if cut else None
            if shorter is None:
                done.dropped[f"longer than {max_length} tokens"] += 1
                continue
            prompt, done.cut = shorter, done.cut + 1
        kept = {name: row[name] for name in (*sides_of(row), *_BESIDE) if name in row}
        if "weight" in kept and kept["weight"] is None:
            kept["weight"] = 1.0
        done.rows.append({"prompt": prompt, **kept, "tools": row["tools"] or None})
    return done


def cut_prompt(
    prompt: list[Message], row: Row, measure: Measure, max_length: int, tokens: float
) -> list[Message] | None:
    """The system prompt, the task and the last turns, as many as fit; the task says how many messages are
    left out. A call is never parted from its results. None where not even the last turn fits.

    `tokens` is what the whole prompt measures.
    """
    head, turns = _parts(prompt)
    count, shown, fits = len(turns), prompt, None
    while fits is None and count > 1:
        count = _likely(turns[-count:], shown, tokens - max_length, tokens)
        shown = _last(head, turns, count)
        tokens = _measured(measure, shown, row)
        fits = shown if tokens <= max_length else None
    while fits is not None and count + 1 < len(turns):  # the guess may have left out too many
        count += 1
        shown = _last(head, turns, count)
        if _measured(measure, shown, row) > max_length:
            break
        fits = shown
    return fits


def _measured(measure: Measure, prompt: list[Message], row: Row) -> float:
    try:
        return measure(prompt, row)
    except ValueError:  # templates may want roles in an order that another cut has
        return math.inf


def _last(head: list[Message], turns: list[list[Message]], count: int) -> list[Message]:
    left_out = sum(map(len, turns[:-count]))
    return [*_marked(head, left_out), *(message for turn in turns[-count:] for message in turn)]


def _likely(turns: list[list[Message]], shown: list[Message], excess: float, tokens: float) -> int:
    """How many turns are left, at least one, without the oldest ones that `excess` tokens are probably in;
    one less where that cannot be told."""
    excess_chars = excess * sum(map(_chars, shown)) / tokens if tokens < math.inf else 0.0
    gone = 0.0
    for place, turn in enumerate(turns[:-1]):
        gone += sum(map(_chars, turn))
        if gone >= excess_chars:
            return len(turns) - place - 1
    return 1


def _parts(prompt: list[Message]) -> tuple[list[Message], list[list[Message]]]:
    """What stays in any case (system prompt, task), and the turns: a message with its tools' results."""
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


def _marked(head: list[Message], left_out: int) -> list[Message]:
    if not head:
        return head
    said = (head[-1].get("content") or "") + MARKER.format(count=left_out)
    return [*head[:-1], {**head[-1], "content": said}]


def _chars(message: Message) -> int:
    return len(message.get("content") or "") + len(json.dumps(message.get("tool_calls") or "", default=str))
