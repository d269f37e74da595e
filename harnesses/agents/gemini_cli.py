"""Gemini CLI: a stand-in system prompt, tool schemas, and what each tool does.

Original wording, based on recorded sessions and the public documentation
(https://google-gemini.github.io/gemini-cli/docs/tools/).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Gemini CLI, on the project in the current folder.

How you work:
- Read the code that matters before you change it; give paths of files as the tools ask for them.
- Change files with replace and write_file, run builds and tests with run_shell_command.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


def _rules() -> dict[str, ToolRule]:
    op = Operation
    file = ("file_path", "absolute_path")
    place = ("dir_path", "path")
    return {
        "read_file": ToolRule(op.READ, file, paths=file),
        "read_many_files": ToolRule(op.READ, ("include", "paths")),
        "write_file": ToolRule(op.CREATE, file, paths=file),
        "replace": ToolRule(op.EDIT, file, paths=file, ignored=("instruction",)),
        "run_shell_command": ToolRule(
            op.RUN, ("command",), "shell", ignored=("description",), folder="dir_path"
        ),
        "list_directory": ToolRule(op.LIST, place, paths=place),
        "glob": ToolRule(op.SEARCH, ("pattern",), paths=place),
        "search_file_content": ToolRule(op.SEARCH, ("pattern",), paths=place),
        "grep_search": ToolRule(op.SEARCH, ("pattern",), paths=place),
        "google_web_search": ToolRule(op.WEB, ("query",)),
        "web_fetch": ToolRule(op.WEB, ("prompt", "url")),
        "write_todos": ToolRule(op.PLAN),
        "save_memory": ToolRule(op.OTHER, ("fact",)),
        "ask_user": ToolRule(op.ASK),
    }


GEMINI_CLI = Harness(
    "gemini_cli",
    "0.x",
    _SYSTEM,
    load_stand_in_tools("gemini_cli"),
    (
        "glob",
        "list_directory",
        "read_file",
        "replace",
        "run_shell_command",
        "search_file_content",
        "write_file",
    ),
    _rules(),
    persistent_shell=False,
    prefixes=("gemini",),
)
"""Gemini CLI and its forks."""
