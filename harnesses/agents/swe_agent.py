"""SWE-agent: a stand-in system prompt, tool schemas, what each tool does.

Two ways of acting: tool calls (1.x), or one command in a fenced block of the message (0.x and some
configurations of 1.x). In our own words, after recorded runs and the public documentation
(https://swe-agent.com).
"""

from tracemill.harnesses.agents.swe_agent_commands import call_of_command, places_of_command
from tracemill.harnesses.core.schema_builders import by_name, integer, items, stand_in, text
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
_WINDOW = {"path": text("Path of the file."), "line_number": integer("Line to show.")}

_TOOLS = by_name(
    stand_in("bash", "Runs a command and gives its output.", {"command": text("The command.")}, ("command",)),
    stand_in(
        "str_replace_editor",
        "Views, creates and edits files: view shows a file or folder, create makes a new file, str_replace "
        "replaces a text that stands in the file exactly once, insert adds lines, undo_edit takes back.",
        {
            "command": text("What to do.", options=("view", "create", "str_replace", "insert", "undo_edit")),
            "path": text("Absolute path of the file or folder."),
            "file_text": text("With create: the content."),
            "old_str": text("With str_replace: the text to replace."),
            "new_str": text("With str_replace and insert: the new text."),
            "insert_line": integer("With insert: the line to insert after."),
            "view_range": items("With view: first and last line.", {"type": "integer"}),
        },
        ("command", "path"),
    ),
    stand_in("submit", "Hands the work in and ends the run.", {}),
    stand_in("exit_forfeit", "Gives up and ends the run.", {}),
    stand_in(
        "filemap",
        "Shows a Python file without the bodies of its long functions.",
        {"file_path": text("Path of the file.")},
        ("file_path",),
    ),
    stand_in(
        "view_image", "Shows an image file.", {"image_file": text("Path of the image.")}, ("image_file",)
    ),
    stand_in("open", "Opens a file in the window.", _WINDOW, ("path",)),
    stand_in("goto", "Moves the window to a line.", {"line_number": integer("The line.")}, ("line_number",)),
    stand_in("scroll_up", "Moves the window up.", {}),
    stand_in("scroll_down", "Moves the window down.", {}),
    stand_in("create", "Makes and opens a file.", {"filename": text("Its path.")}, ("filename",)),
    stand_in(
        "edit",
        "Replaces a text in the open file.",
        {"search": text("Text to find."), "replace": text("New text."), "replace-all": text("True for all.")},
        ("search", "replace"),
    ),
    stand_in(
        "insert",
        "Inserts text into the open file.",
        {"text": text("The text."), "line": integer("Line to insert after; the end if left out.")},
        ("text",),
    ),
    stand_in(
        "search_dir",
        "Searches the files of a folder for a text.",
        {"search_term": text("The text."), "dir": text("The folder; the working directory if left out.")},
        ("search_term",),
    ),
    stand_in(
        "search_file",
        "Searches one file for a text.",
        {"search_term": text("The text."), "file": text("The file; the open one if left out.")},
        ("search_term",),
    ),
    stand_in(
        "find_file",
        "Finds files by name.",
        {"file_name": text("Name or pattern."), "dir": text("The folder; here if left out.")},
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
    written=WrittenCommand(places_of_command, call_of_command, functions_first=True),
    user_answers=True,
    prefixes=("swe_agent", "sweagent"),
    text_ends=False,
)
"""Both ways of acting; `text_system` is shown where a run holds no tool call."""
