"""Cursor: a stand-in system prompt, tool schemas, and what each tool does.

Original wording, based on recorded conversations and the public documentation (https://cursor.com/docs).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works inside the editor Cursor, on the project of the open workspace.

How you work:
- Find code with codebase_search, grep_search, file_search and read_file before you change it.
- Change files with edit_file and search_replace, run builds and tests with run_terminal_cmd.
- The user sees your changes in the editor and may reject them, or a command.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


def _rules() -> dict[str, ToolRule]:
    op = Operation
    file = ("target_file", "file_path", "path", "targetFile", "relativeWorkspacePath")
    place = ("relative_workspace_path", "target_directory", "directoryPath", "targetDirectory", "path")
    told = ("explanation", "instructions", "toolSummary")
    idle = (*told, "is_background", "isBackground", "requireUserApproval", "require_user_approval")
    idle += ("requiresUserApproval", "required_permissions", "timeout")
    read = ToolRule(op.READ, file, paths=file, ignored=told)
    edit = ToolRule(op.EDIT, file, paths=file, ignored=told)
    shell = ToolRule(op.RUN, ("command",), "shell", ignored=idle, folder="cwd")
    listing = ToolRule(op.LIST, place, paths=place, ignored=told)
    search = ToolRule(
        op.SEARCH, ("query", "pattern", "glob_pattern", "globPattern"), paths=("path",), ignored=told
    )
    plan = ToolRule(op.PLAN)
    return {
        "read_file": read,
        "read_file_v2": read,
        "edit_file": edit,
        "edit_file_v2": edit,
        "search_replace": edit,
        "MultiEdit": edit,
        "edit_notebook": ToolRule(op.EDIT, ("target_notebook",), paths=("target_notebook",)),
        "write": ToolRule(op.CREATE, file, paths=file),
        "apply_patch": ToolRule(op.EDIT, ("patch", "input"), "patch"),
        "reapply": edit,
        "delete_file": edit,
        "run_terminal_cmd": shell,
        "run_terminal_command": shell,
        "run_terminal_command_v2": shell,
        "list_dir": listing,
        "list_dir_v2": listing,
        "list_directory": listing,
        "grep": search,
        "grep_search": search,
        "ripgrep": search,
        "ripgrep_raw_search": search,
        "file_search": search,
        "glob_file_search": search,
        "codebase_search": search,
        "semantic_search_full": search,
        "read_lints": ToolRule(op.READ, ("paths",), ignored=told),
        "web_search": ToolRule(op.WEB, ("search_term", "searchTerm"), ignored=told),
        "todo_write": plan,
        "todo_read": plan,
        "create_plan": plan,
        "update_current_step": plan,
        "ask_question": ToolRule(op.ASK),
        "task": ToolRule(op.OTHER, ("subagent_type", "description")),
        "task_v2": ToolRule(op.OTHER, ("subagent_type", "description")),
        "call_mcp_tool": ToolRule(op.OTHER, ("tool", "toolName")),
        "fetch_rules": ToolRule(op.READ, ("rule_names",)),
    }


CURSOR = Harness(
    "cursor",
    "0.4x to 3.x",
    _SYSTEM,
    load_stand_in_tools("cursor"),
    (
        "codebase_search",
        "edit_file",
        "file_search",
        "grep_search",
        "list_dir",
        "read_file",
        "run_terminal_cmd",
        "search_replace",
    ),
    _rules(),
)
"""Cursor, with the tools of its agent."""
