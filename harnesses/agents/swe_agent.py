"""SWE-agent: a stand-in system prompt, tool schemas, what each tool does.

The agent acts by tool calls (1.x), or by one command in a fenced block of the message (0.x and some
configurations of 1.x). Original wording, based on recorded runs and the public documentation
(https://swe-agent.com).
"""

from tracemill.harnesses.agents.swe_agent_commands import locate_swe_agent_command, parse_swe_agent_command
from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, TextCommands, ToolRule
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


def _rules() -> dict[str, ToolRule]:
    op = Operation
    window = ToolRule(op.READ, ("path",), paths=("path",), default_target=_OPEN_FILE)
    edit = ToolRule(op.EDIT, ("path",), paths=("path",), default_target=_OPEN_FILE)
    return {
        "bash": ToolRule(op.RUN, ("command",), "shell", ignored=("timeout",)),
        "str_replace_editor": ToolRule(op.EDIT, ("path",), "editor", paths=("path",)),
        "submit": ToolRule(op.FINISH),
        "exit_forfeit": ToolRule(op.FINISH, default_target=FORFEIT),
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
    load_stand_in_tools("swe_agent"),
    ("bash", "submit"),
    _rules(),
    text_actions=True,
    text_system=_SYSTEM.format(acting=_TEXT_ACTING, submit="give the command submit"),
    text_commands=TextCommands(locate_swe_agent_command, parse_swe_agent_command, functions_first=True),
    results_as_user=True,
    prefixes=("swe_agent", "sweagent"),
    text_ends_run=False,
)
"""Both ways of acting; `text_system` is shown where a run holds no tool call."""
