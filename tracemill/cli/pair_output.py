"""A pair on a terminal: what was asked, what came last, and both sides from where they differ."""

import json
from collections.abc import Iterator, Sequence
from textwrap import shorten

from rich.panel import Panel
from rich.text import Text

from tracemill.records.label_source import source_title
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.printable import printable, printable_lines

MOST_LINES = 16
"""Lines of a side that are shown."""
_WIDTH = 200
_KEPT = 2
"""Equal lines that are shown before the first difference."""
_MARKS = {"old_string": "-", "old_str": "-", "new_string": "+", "new_str": "+"}
"""How the lines of an edit begin, by the name of the argument they are in."""


def pair_panel(pair: DPOPair, state: Sequence[Message]) -> Panel:
    """Return a panel of a pair with the votes on it; `state` are the messages that its step had before it."""
    text = Text()
    text.append(f"{source_title(pair.label_source)}: {printable(pair.evidence)}\n", style="italic")
    for name, message in _state_lines(state):
        text.append(f"{name:<9} {printable(message)}\n", style="dim")
    sides = [list(_side_lines(turn)) for turn in (pair.chosen, pair.rejected)]
    for (name, style), lines in zip(
        (("chosen", "green"), ("rejected", "red")), _from_difference(*sides), strict=True
    ):
        text.append(f"{name}\n", style=f"bold {style}")
        text.append("".join(f"  {printable_lines(line, _WIDTH)}\n" for line in lines))
    for vote in pair.votes:
        mark = "+" if vote.agrees else "-" if vote.counted else "no vote"
        text.append(printable(f"{mark} {vote.teacher} {vote.operation} {vote.reason}") + "\n", style="dim")
    return Panel(text, title=Text(pair.step_id), title_align="left")


def _state_lines(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the first request and the last message, a line each."""
    asked = next((each for each in messages if each.role == "user"), None)
    if asked is not None:
        yield "asked", shorten(asked.content, _WIDTH, placeholder=" ...")
    if messages and messages[-1] is not asked:
        last = messages[-1]
        yield "last", f"{last.role}: {shorten(last.content, _WIDTH, placeholder=' ...')}"


def _side_lines(turn: Sequence[Message]) -> Iterator[str]:
    """Yield the text and calls of a side; edits as removed and added lines."""
    for message in turn:
        yield from message.content.splitlines()
        for call in message.tool_calls:
            yield from _call_lines(call)


def _call_lines(call: ToolCall) -> Iterator[str]:
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        yield f"{call.name} {call.arguments}"
        return
    values = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    short = {name: value for name, value in values.items() if name not in _MARKS and "\n" not in value}
    texts = [value for name, value in short.items() if isinstance(given[name], str)]
    others = [f"{name}={value}" for name, value in short.items() if not isinstance(given[name], str)]
    yield " ".join([call.name, *texts, *others])
    for name, value in values.items():
        if name in _MARKS or "\n" in value:
            mark = _MARKS.get(name, " ")
            yield from (f"  {mark} {line}" for line in value.rstrip("\n").split("\n"))


def _from_difference(*sides: list[str]) -> list[list[str]]:
    """Return the lines of both sides from shortly before the first difference, up to the limit."""
    same = 0
    for one, other in zip(*sides, strict=False):
        if one != other:
            break
        same += 1
    skipped = max(0, same - _KEPT)
    shown = []
    for lines in sides:
        rest = lines[skipped:]
        left = len(rest) - MOST_LINES
        head = [f"... {skipped} unchanged lines"] if skipped else []
        shown.append([*head, *rest[:MOST_LINES], *([f"... {left} more lines"] if left > 0 else [])])
    return shown
