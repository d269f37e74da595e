"""SWE-agent: a stand-in system prompt, tool schemas, what each tool does.

Two ways of acting: tool calls (1.x), or one command in a fenced block of the message (0.x and some
configurations of 1.x). In our own words, after recorded runs and the public documentation
(https://swe-agent.com).
"""

from tracemill.harnesses.agents.swe_agent_commands import locate_swe_agent_command, parse_swe_agent_command
from tracemill.harnesses.core.schema_builders import (
    build_integer_schema,
    build_list_schema,
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule, WrittenCommand
from tracemill.harnesses.shell.program_tables import FORFEIT

_SYSTEM = """\
You are a programmer who works on the command line of a computer that holds a repository. You get an issue, \
and you change the code until the issue is solved.

How you work:
- Find the code that matters, reproduce the fault where you can, change it, check the change.
- {acting}
- Programs that wait for a person, such as vim or a Python prompt, do not work here.
- When the work is done, {submit}.

(This prompt is a stand-in: what the run was really given was not recorded.)"""

_TEXT_ACTING = """\
Write what you think, and after it exactly one command in a block between lines of three backticks. Besides \
the commands of bash there are: open <path> [<line>], goto <line>, scroll_up, scroll_down show a file in a \
window of lines; search_dir <text> [<folder>], search_file <text> [<file>], find_file <name> [<folder>] \
search; create <path> makes a file; edit <first>:<last>, then the new lines, then a line end_of_edit, \
replaces lines of the open file; submit hands the work in"""

_OPEN_FILE = "(the open file)"
_WINDOW = {
    "path": build_text_schema("Path of the file."),
    "line_number": build_integer_schema("Line to show."),
}

_TOOLS = tool_schemas_by_name(
    build_tool_schema(
        "bash",
        "Runs a command and gives its output.",
        {"command": build_text_schema("The command.")},
        ("command",),
    ),
    build_tool_schema(
        "str_replace_editor",
        "Views, creates and edits files: view shows a file or folder, create makes a new file, str_replace "
        "replaces a text that stands in the file exactly once, insert adds lines, undo_edit takes back.",
        {
            "command": build_text_schema(
                "What to do.", options=("view", "create", "str_replace", "insert", "undo_edit")
            ),
            "path": build_text_schema("Absolute path of the file or folder."),
            "file_text": build_text_schema("With create: the content."),
            "old_str": build_text_schema("With str_replace: the text to replace."),
            "new_str": build_text_schema("With str_replace and insert: the new text."),
            "insert_line": build_integer_schema("With insert: the line to insert after."),
            "view_range": build_list_schema("With view: first and last line.", {"type": "integer"}),
        },
        ("command", "path"),
    ),
    build_tool_schema("submit", "Hands the work in and ends the run.", {}),
    build_tool_schema("exit_forfeit", "Gives up and ends the run.", {}),
    build_tool_schema(
        "filemap",
        "Shows a Python file without the bodies of its long functions.",
        {"file_path": build_text_schema("Path of the file.")},
        ("file_path",),
    ),
    build_tool_schema(
        "view_image",
        "Shows an image file.",
        {"image_file": build_text_schema("Path of the image.")},
        ("image_file",),
    ),
    build_tool_schema("open", "Opens a file in the window.", _WINDOW, ("path",)),
    build_tool_schema(
        "goto",
        "Moves the window to a line.",
        {"line_number": build_integer_schema("The line.")},
        ("line_number",),
    ),
    build_tool_schema("scroll_up", "Moves the window up.", {}),
    build_tool_schema("scroll_down", "Moves the window down.", {}),
    build_tool_schema(
        "create", "Makes and opens a file.", {"filename": build_text_schema("Its path.")}, ("filename",)
    ),
    build_tool_schema(
        "edit",
        "Replaces a text in the open file.",
        {
            "search": build_text_schema("Text to find."),
            "replace": build_text_schema("New text."),
            "replace-all": build_text_schema("True for all."),
        },
        ("search", "replace"),
    ),
    build_tool_schema(
        "insert",
        "Inserts text into the open file.",
        {
            "text": build_text_schema("The text."),
            "line": build_integer_schema("Line to insert after; the end if left out."),
        },
        ("text",),
    ),
    build_tool_schema(
        "search_dir",
        "Searches the files of a folder for a text.",
        {
            "search_term": build_text_schema("The text."),
            "dir": build_text_schema("The folder; the working directory if left out."),
        },
        ("search_term",),
    ),
    build_tool_schema(
        "search_file",
        "Searches one file for a text.",
        {
            "search_term": build_text_schema("The text."),
            "file": build_text_schema("The file; the open one if left out."),
        },
        ("search_term",),
    ),
    build_tool_schema(
        "find_file",
        "Finds files by name.",
        {
            "file_name": build_text_schema("Name or pattern."),
            "dir": build_text_schema("The folder; here if left out."),
        },
        ("file_name",),
    ),
)


def _rules() -> dict[str, ToolRule]:
    op = Operation
    window = ToolRule(op.READ, ("path",), paths=("path",), standing=_OPEN_FILE)
    edit = ToolRule(op.EDIT, ("path",), paths=("path",), standing=_OPEN_FILE)
    return {
        "bash": ToolRule(op.RUN, ("command",), "shell", ignored=("timeout",)),
        "str_replace_editor": ToolRule(op.EDIT, ("path",), "editor", paths=("path",)),
        "submit": ToolRule(op.FINISH),
        "exit_forfeit": ToolRule(op.FINISH, standing=FORFEIT),
        "open": window,
        "goto": window,
        "set_cursors": window,
        "scroll_up": window,
        "scroll_down": window,
        "filemap": ToolRule(op.READ, ("file_path",), paths=("file_path",)),
        "view_image": ToolRule(op.READ, ("image_file",), paths=("image_file",)),
        "create": ToolRule(op.CREATE, ("filename",), paths=("filename",)),
        "edit": edit,
        "insert": edit,
        "search_dir": ToolRule(op.SEARCH, ("search_term",), paths=("dir",)),
        "search_file": ToolRule(op.SEARCH, ("search_term",), paths=("file",)),
        "find_file": ToolRule(op.SEARCH, ("file_name",), paths=("dir",)),
    }


SWE_AGENT = Harness(
    "swe_agent",
    "0.x and 1.x",
    _SYSTEM.format(acting="Call one tool at a time and wait for its result", submit="call submit"),
    _TOOLS,
    ("bash", "submit"),
    _rules(),
    text_actions=True,
    text_system=_SYSTEM.format(acting=_TEXT_ACTING, submit="give the command submit"),
    written=WrittenCommand(locate_swe_agent_command, parse_swe_agent_command, functions_first=True),
    user_answers=True,
    prefixes=("swe_agent", "sweagent"),
    text_ends=False,
)
"""Both ways of acting; `text_system` is shown where a run holds no tool call."""
