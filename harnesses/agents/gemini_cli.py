"""Gemini CLI: a stand-in system prompt, tool schemas, and what each tool does.

In our own words, after recorded sessions and the public documentation
(https://google-gemini.github.io/gemini-cli/docs/tools/).
"""

from tracemill.harnesses.core.schema_builders import (
    build_flag_schema,
    build_integer_schema,
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Gemini CLI, on the project in the current folder.

How you work:
- Read the code that matters before you change it; give paths of files as the tools ask for them.
- Change files with replace and write_file, run builds and tests with run_shell_command.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""

_FILE = {"file_path": build_text_schema("Path of the file.")}
_TOOLS = tool_schemas_by_name(
    build_tool_schema(
        "read_file",
        "Gives the text of a file.",
        {
            **_FILE,
            "offset": build_integer_schema("First line, from 0."),
            "limit": build_integer_schema("Number of lines."),
        },
        ("file_path",),
    ),
    build_tool_schema(
        "write_file",
        "Writes a whole file.",
        {**_FILE, "content": build_text_schema("Its text.")},
        ("file_path", "content"),
    ),
    build_tool_schema(
        "replace",
        "Replaces a text in a file.",
        {
            **_FILE,
            "old_string": build_text_schema("The text to replace."),
            "new_string": build_text_schema("The new text."),
            "instruction": build_text_schema("What the change is for."),
            "expected_replacements": {
                **build_integer_schema("How often the text stands; all are replaced."),
                "default": 1,
            },
            "allow_multiple": build_flag_schema("Replace every occurrence."),
        },
        ("file_path", "old_string", "new_string"),
    ),
    build_tool_schema(
        "run_shell_command",
        "Runs a command and gives its output.",
        {"command": build_text_schema("The command."), "description": build_text_schema("What it is for.")},
        ("command",),
    ),
    build_tool_schema(
        "list_directory", "Lists a folder.", {"dir_path": build_text_schema("The folder.")}, ("dir_path",)
    ),
    build_tool_schema(
        "glob", "Finds files by name.", {"pattern": build_text_schema("Pattern of names.")}, ("pattern",)
    ),
    build_tool_schema(
        "search_file_content",
        "Finds text in files.",
        {
            "pattern": build_text_schema("Regular expression."),
            "dir_path": build_text_schema("Where."),
            "include": build_text_schema("Which files."),
        },
        ("pattern",),
    ),
)


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
    _TOOLS,
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
    shell_stays=False,
    prefixes=("gemini",),
)
"""Gemini CLI and its forks."""
