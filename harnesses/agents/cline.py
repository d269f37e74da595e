"""Cline and Roo Code: a stand-in system prompt, tool schemas, and what each tool does.

Earlier versions take one call in the text of an answer, written as a tag of the tool's name with a tag for
each parameter; later ones take tool calls. Original wording, based on recorded tasks and the public
documentation (https://docs.cline.bot, https://docs.roocode.com).
"""

import json
import re

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, TextCommands, ToolRule
from tracemill.records.message import ToolCall

_SYSTEM = """\
You are a coding agent that works in an editor, on the project in the current folder.

How you work:
- {acting}
- Read and search before you change. Change files with the editing tools, run builds and tests with \
execute_command.
- Ask with ask_followup_question. When the task is done, call attempt_completion: text alone ends nothing.

(This prompt is a stand-in: what the session was really given was not recorded.)"""
_TAGS = """Every answer holds one call, written as a tag of the tool's name around a tag for each parameter, \
such as <read_file><path>a.py</path></read_file>."""

_NAMES = """read_file write_to_file replace_in_file apply_diff insert_content search_and_replace edit_file
    execute_command list_files search_files list_code_definition_names codebase_search browser_action
    use_mcp_tool access_mcp_resource ask_followup_question attempt_completion plan_mode_respond
    plan_mode_response new_task switch_mode update_todo_list fetch_instructions load_mcp_documentation
    condense summarize_task web_fetch new_rule report_bug run_slash_command generate_image"""
_CALL = re.compile(rf"<({'|'.join(_NAMES.split())})>(.*?)</\1>", re.DOTALL)
_PARAMETER = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_PATH = re.compile(r"<path>\s*(.*?)\s*</path>", re.DOTALL)


def _find_calls(text: str) -> list[slice]:
    """Return the positions of the calls in a text; a tag inside of a call is part of its parameters."""
    return [slice(*match.span()) for match in _CALL.finditer(text)]


def _parse_call(text: str) -> ToolCall:
    """Parse a call in tags as a tool call; of nested arguments the first path is the path."""
    match = _CALL.match(text)
    name, body = (match[1], match[2]) if match else ("", text)
    arguments = dict(_PARAMETER.findall(body))
    if "path" not in arguments and (path := _PATH.search(arguments.get("args", ""))):
        arguments["path"] = path[1]
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))


def _rules() -> dict[str, ToolRule]:
    op = Operation
    file = ("path", "absolutePath", "file_path")
    idle = ("task_progress", "requires_approval", "timeout", "security_risk")
    edit = ToolRule(op.EDIT, file, paths=file, ignored=idle)
    place = ToolRule(op.LIST, file, paths=file, ignored=idle)
    return {
        "read_file": ToolRule(op.READ, file, paths=file, ignored=idle),
        "write_to_file": ToolRule(op.CREATE, file, paths=file, ignored=(*idle, "line_count")),
        "replace_in_file": edit,
        "apply_diff": edit,
        "insert_content": edit,
        "search_and_replace": edit,
        "execute_command": ToolRule(op.RUN, ("command",), "shell", ignored=idle, folder="cwd"),
        "list_files": place,
        "list_code_definition_names": place,
        "search_files": ToolRule(op.SEARCH, ("regex",), paths=("path", "absolutePath"), ignored=idle),
        "codebase_search": ToolRule(op.SEARCH, ("query",), paths=("path",)),
        "browser_action": ToolRule(op.WEB, ("url", "action")),
        "ask_followup_question": ToolRule(op.ASK, ignored=idle),
        "attempt_completion": ToolRule(op.FINISH, ignored=(*idle, "command")),
        "plan_mode_respond": ToolRule(op.ASK, ignored=idle),
        "update_todo_list": ToolRule(op.PLAN),
        "switch_mode": ToolRule(op.OTHER, ("mode_slug",), ignored=("reason",)),
        "new_task": ToolRule(op.OTHER, ("mode",)),
        "use_subagents": ToolRule(op.OTHER, ("prompt_1",)),
        "use_mcp_tool": ToolRule(op.OTHER, ("tool_name",)),
        "access_mcp_resource": ToolRule(op.READ, ("uri",)),
    }


CLINE = Harness(
    "cline",
    "2.x to 3.x",
    _SYSTEM.format(acting="Every answer calls a tool."),
    load_stand_in_tools("cline"),
    (
        "ask_followup_question",
        "attempt_completion",
        "execute_command",
        "list_files",
        "read_file",
        "search_files",
        "write_to_file",
    ),
    _rules(),
    text_actions=True,
    text_system=_SYSTEM.format(acting=_TAGS),
    text_ends_run=False,
    persistent_shell=False,
    text_commands=TextCommands(_find_calls, _parse_call),
    results_as_user=True,
    prefixes=("cline", "roo_", "kilo_code"),
)
"""Cline, Roo Code and forks of it."""


def _sdk_rules() -> dict[str, ToolRule]:
    op = Operation
    return {
        "read_files": ToolRule(op.READ, ("files", "file_paths", "paths")),
        "search_codebase": ToolRule(op.SEARCH, ("queries",)),
        "run_commands": ToolRule(op.RUN, ("commands", "command", "cmd")),
        "editor": ToolRule(op.EDIT, ("path",), paths=("path",)),
        "apply_patch": ToolRule(op.EDIT, ("input",), "patch"),
        "fetch_web_content": ToolRule(op.WEB, ("requests",)),
        "skills": ToolRule(op.OTHER, ("skill",)),
        "ask_question": ToolRule(op.ASK),
        "submit_and_exit": ToolRule(op.FINISH),
    }


CLINE_SDK = Harness(
    "cline",
    "4.x",
    """\
You are a coding agent that works on the project in the current folder.

How you work:
- Read with read_files and search with search_codebase before you change; give absolute paths.
- Change files with editor, run builds and tests with run_commands. Each command runs in a new shell.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)""",
    load_stand_in_tools("cline_sdk"),
    ("ask_question", "editor", "fetch_web_content", "read_files", "run_commands", "search_codebase"),
    _sdk_rules(),
    persistent_shell=False,
    since=(4, 0, 0),
    prefixes=("cline",),
    suffixes=("_sdk",),
)
"""Cline 4, whose command line, editor and app share one runtime."""
