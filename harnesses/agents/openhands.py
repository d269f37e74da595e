"""OpenHands (event format V0 and SDK V1): a stand-in system prompt, tool schemas, what each tool does.

In our own words, after the calls recorded sessions hold and the public documentation
(https://docs.openhands.dev).
"""

from tracemill.harnesses.core.schema_builders import (
    build_flag_schema,
    build_integer_schema,
    build_list_schema,
    build_object_schema,
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)
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

_EDITOR_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
_EDITOR = {
    "command": build_text_schema("What to do.", options=_EDITOR_COMMANDS),
    "path": build_text_schema("Absolute path of the file or folder."),
    "file_text": build_text_schema("With create: the content of the new file."),
    "old_str": build_text_schema("With str_replace: the text to replace, exactly and only once in the file."),
    "new_str": build_text_schema("With str_replace: the new text; with insert: the text to insert."),
    "insert_line": build_integer_schema("With insert: the line to insert after; 0 for the start."),
    "view_range": build_list_schema("With view: first and last line; -1 for the end.", {"type": "integer"}),
}
_EDITOR_USE = (
    "Views, creates and edits files. view shows a file with line numbers, or lists a folder; create makes a "
    "file that does not exist yet; str_replace replaces a text that stands in the file exactly once; insert "
    "adds lines; undo_edit takes back the last edit of the file."
)
_SHELL_USE = (
    "Runs a command in a shell that stays open between calls. If the command has not ended in time, its exit "
    "code is -1: call again to see more output, to send input, or to stop it."
)
_SHELL = {
    "command": build_text_schema("The command; empty for more output of the running one, C-c to stop it."),
    "is_input": build_text_schema(
        "The command is input for the running one.", options=("true", "false"), default="false"
    ),
    "timeout": {"type": "number", "description": "Longest time to wait, in seconds."},
}
_TASK = build_object_schema(
    {
        "id": build_text_schema("Id of the task."),
        "title": build_text_schema("The task."),
        "status": build_text_schema("Where it stands.", options=("todo", "in_progress", "done")),
        "notes": build_text_schema("More about it."),
    },
    ("title", "status"),
)

_TOOLS = tool_schemas_by_name(
    build_tool_schema("execute_bash", _SHELL_USE, _SHELL, ("command",)),
    build_tool_schema(
        "terminal",
        _SHELL_USE,
        {
            **_SHELL,
            "is_input": build_flag_schema("Input for the running one."),
            "reset": build_flag_schema("Start anew."),
        },
        ("command",),
    ),
    build_tool_schema("str_replace_editor", _EDITOR_USE, _EDITOR, ("command", "path")),
    build_tool_schema("file_editor", _EDITOR_USE, _EDITOR, ("command", "path")),
    build_tool_schema(
        "execute_ipython_cell",
        "Runs Python code in an IPython session that stays open between calls.",
        {"code": build_text_schema("The code.")},
        ("code",),
    ),
    build_tool_schema(
        "think",
        "Notes a thought; nothing else.",
        {"thought": build_text_schema("The thought.")},
        ("thought",),
    ),
    build_tool_schema(
        "finish",
        "Ends the work: the task is done, or cannot be done.",
        {"message": build_text_schema("What was done, for the user.")},
    ),
    build_tool_schema(
        "browser",
        "Works a web browser with Python calls such as goto(url) and click(id).",
        {"code": build_text_schema("The calls.")},
        ("code",),
    ),
    build_tool_schema(
        "web_read",
        "Gives a web page as Markdown.",
        {"url": build_text_schema("Address of the page.")},
        ("url",),
    ),
    build_tool_schema(
        "task_tracker",
        "Shows or writes the list of tasks.",
        {
            "command": build_text_schema("What to do.", options=("view", "plan")),
            "task_list": build_list_schema("With plan: the whole list.", _TASK),
        },
        ("command",),
    ),
    build_tool_schema(
        "edit_file",
        "Writes new lines in the place of a range of lines of a file.",
        {
            "path": build_text_schema("Absolute path of the file."),
            "content": build_text_schema("The new lines."),
            "start": build_integer_schema("First line replaced."),
            "end": build_integer_schema("Last line replaced; -1 for the end."),
        },
        ("path", "content"),
    ),
)


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


_RULES = _rules()

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
