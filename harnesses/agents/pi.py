"""Pi: a stand-in system prompt, tool schemas, and what each tool does.

Original wording, based on recorded sessions and the public documentation (https://github.com/badlogic/pi-mono).
"""

from tracemill.harnesses.agents.common_tools import common_tool_rule
from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Pi, on the project in the current folder.

How you work:
- Read files with read, search and run with bash. Look before you change.
- Change files with edit, whose old text must stand in the file as you give it; use write for new files.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


_TOOLS = load_stand_in_tools("pi")
_FIND = ToolRule(Operation.SEARCH, ("pattern",), paths=("path",))

PI = Harness(
    "pi",
    "0.x",
    _SYSTEM,
    _TOOLS,
    ("bash", "edit", "read", "write"),
    {name: common_tool_rule(name) or _FIND for name in _TOOLS},
    persistent_shell=False,
    prefixes=("pi_",),
)
"""Pi, in the versions that write sessions of file version 1 to 3."""
