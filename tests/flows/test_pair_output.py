"""A pair on a terminal."""

import json
from io import StringIO

from plain_pairs import plain_pair
from rich.console import Console

from tracemill.cli.pair_output import pair_panel
from tracemill.records.message import Message, ToolCall


def test_the_sides_of_a_pair_are_shown_from_where_they_differ() -> None:
    """Two long edits that begin alike, and a state of which the task and the last result are shown."""
    same = [f"same line {number}" for number in range(40)]

    def side(last: str) -> tuple[Message, ...]:
        edit = {"path": "a.py", "old_str": "\n".join(same), "new_str": "\n".join([*same, last])}
        return (Message("assistant", "I edit.", (ToolCall("c", "str_replace_editor", json.dumps(edit)),)),)

    pair = plain_pair(chosen=side("right = 1"), rejected=side("wrong = 2"))
    state = [Message("user", "Fix a.py"), Message("assistant", "look"), Message("tool", "found it")]
    console = Console(width=100, file=StringIO())
    console.print(pair_panel(pair, state))
    shown = [line.strip("│ ").strip() for line in console.file.getvalue().splitlines()]
    assert "asked     Fix a.py" in shown
    assert "last      tool: found it" in shown
    good, bad = shown.index("chosen"), shown.index("rejected")
    assert "+ right = 1" in shown[good:bad]
    assert "+ wrong = 2" in shown[bad:]
    assert "... 80 unchanged lines" in shown[good:bad]
    assert "same line 39" in shown[good + 3]
    assert not any("same line 5" in line for line in shown)
