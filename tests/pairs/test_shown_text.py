"""What a context has shown up to a step."""

import json

from tracemill.pairs.shown_text import ShownText
from tracemill.records.message import Message, ToolCall


def test_shown_text_knows_numbered_lines_written_text_and_paths() -> None:
    messages = (
        Message("user", "see src/lib/util.py"),
        Message(
            "assistant",
            "",
            (ToolCall("c", "Write", json.dumps({"file_path": "/n.py", "content": "a\n  b"})),),
        ),
        Message("tool", "    1\u2192def f():\n    2\u2192    return 1  \n    3\u2192", tool_call_id="c"),
    )
    shown = ShownText(messages)
    assert shown.holds("def f():\n    return 1", 3)
    assert not shown.holds("def f():\n    return 1", 2)
    assert not shown.holds("def f():\n    return 2", 3)
    assert shown.holds("a\n  b", 2)
    assert not shown.holds("  \n", 3)
    assert shown.mentions("/repo/src/lib/util.py", 1)
    assert not shown.mentions("/repo/src/other/util.py", 1)
    assert not shown.mentions("/repo/src/lib/util.py", 0)
