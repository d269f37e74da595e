"""OpenHands (event format V0 and SDK V1): a stand-in system prompt, tool schemas, what each tool does.

Original wording, based on calls in recorded sessions and the public documentation
(https://docs.openhands.dev).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are OpenHands, a coding agent with a sandboxed computer: a shell, and an editor for files. You get a \
task, usually an issue of a repository under /workspace, and you solve it by calling tools, one step at a \
time.

How you work:
- Explore the repository before you change anything, and find where the fault is.
- Where you can, reproduce the fault first, and run the tests after the change.
- Make the smallest change that solves the task; give absolute paths to the editor.
- If a command is still running when its time is over, look at its output again or stop it.
- When the task is done, call {finish}.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


def _rules() -> dict[str, ToolRule]:
    op = Operation
    chat = ("security_risk", "summary")
    shell = ToolRule(op.RUN, ("command",), "shell", ignored=("timeout", *chat))
    editor = ToolRule(op.EDIT, ("path",), "editor", paths=("path",), ignored=chat)
    web = ToolRule(op.WEB, ("url", "code"), ignored=chat)
    return {
        "execute_bash": shell,
        "bash": shell,
        "terminal": shell,
        "str_replace_editor": editor,
        "file_editor": editor,
        "planning_file_editor": editor,
        "edit_file": ToolRule(op.EDIT, ("path",), paths=("path",), ignored=chat),
        "apply_patch": ToolRule(op.EDIT, ("patch", "input"), "patch", ignored=chat),
        "execute_ipython_cell": ToolRule(op.RUN, ignored=chat),
        "glob": ToolRule(op.SEARCH, ("pattern",), paths=("path",), ignored=chat),
        "grep": ToolRule(op.SEARCH, ("pattern",), paths=("path",), ignored=chat),
        "think": ToolRule(op.PLAN, ignored=chat),
        "task_tracker": ToolRule(op.PLAN, ("command",), ignored=chat),
        "finish": ToolRule(op.FINISH, ("task_completed",), ignored=chat),
        "browser": web,
        "browse": web,
        "browse_interactive": web,
        "web_read": web,
        "fetch": web,
        "delegate": ToolRule(op.OTHER, ignored=chat),
    }


_RULES, _TOOLS = _rules(), load_stand_in_tools("openhands")

V0 = Harness(
    "openhands",
    "0.x",
    _SYSTEM.format(finish="finish"),
    _TOOLS,
    ("execute_bash", "finish", "str_replace_editor", "think"),
    _RULES,
    text_actions=True,
)
"""The event format before the SDK."""

V1 = Harness(
    "openhands",
    "1.x",
    _SYSTEM.format(finish="finish, or reply with text and no call"),
    _TOOLS,
    ("file_editor", "finish", "terminal", "think"),
    _RULES,
    since=(1, 0, 0),
    suffixes=("v1", "sdk"),
)
"""The SDK and what is built on it."""
