"""Tools by the names that many harnesses give them: what they do, in a harness that the table does not know.

Names and arguments as in the public documentation of Cline, Roo Code, Cursor, GitHub Copilot, opencode,
goose, inspect_ai, the reference servers of MCP, and of the harnesses in the table.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from tracemill.harnesses.core.vocabulary import Operation, ToolRule

T = TypeVar("T")
__all__ = [
    "COMMANDS",
    "PATHS",
    "WORKING_FOLDERS",
    "common_tool_kind",
    "common_tool_rule",
    "widen_common_rule",
]

PATHS = (
    *("path", "file_path", "absolute_path", "filePath", "filepath", "file", "filename", "file_name"),
    *("target_file", "relative_workspace_path", "AbsolutePath", "TargetFile"),
)
"""Arguments that name the one file or folder that a tool is about."""
COMMANDS = ("command", "cmd", "command_line", "commandLine", "CommandLine", "script")
"""Arguments that hold the command line of a shell."""
_RUN_IN = ("directory", "dir_path", "workdir", "cwd", "working_directory", "working_dir", "Cwd")
WORKING_FOLDERS = dict.fromkeys(_RUN_IN).keys()
"""Arguments that name the folder a shell runs in, in the order they are looked for."""
_FOLDERS = ("path", "dir_path", "dirPath", "directory", "dir", "folder", "target_directory", *PATHS[1:])
_FOLDERS += ("directory_path", "DirectoryPath", "SearchPath")
_PATTERNS = ("pattern", "regex", "query", "Query", "search_term", "glob_pattern", "file_pattern", "file_name")
_SAID = ("description", "explanation", "reason", "justification", "purpose", "security_risk", "summary")
_WAITS = ("timeout", "timeout_ms", "timeout_s", "timeout_sec", "timeout_seconds", "requires_approval")
_PARTS = re.compile(r"__|[./:]")

_SHELLS = """bash shell sh zsh terminal run_command execute_command exec_command run_terminal_command
    run_terminal_cmd run_in_terminal run_shell run_shell_command execute_shell execute_shell_command
    shell_exec exec_shell shell_command run_bash run_bash_command execute_bash execute_bash_command
    bash_command bash_tool shell_tool run_cmd execute_cmd cmd local_shell exec execute"""
_READS = """read view read_file read_files read_many read_many_files read_multiple_files read_text_file
    view_file file_read cat_file get_file_contents show_file"""
_WRITES = """write write_file write_to_file file_write create_file create_new_file save_file new_file
    write_text_file write_many write_files create_files create"""
_EDITS = """edit edit_file edit_files file_edit replace_in_file str_replace string_replace search_replace
    search_and_replace replace_string_in_file multi_edit insert_edit_into_file apply_diff
    replace_text_in_file"""
_EDITORS = "text_editor str_replace_editor str_replace_based_edit_tool file_editor"
_REMOVES = "delete_file remove_file"
_BY_MEANING = "codebase_search semantic_search search_codebase code_semantic_search"
_LISTS = "ls list_dir list_directory list_files list_folder read_dir view_directory list_directory_contents"
_GREPS = """grep grep_search search_files search_file_content search_code code_search search_text ripgrep
    search_in_files text_search"""
_NAMES = "glob glob_files glob_search find_file find_files file_search find_by_name search_files_by_name"
_WEB = """web_search web_fetch search_web search_internet internet_search google_search fetch_url
    fetch_webpage open_web_page read_url browse_url visit_webpage"""
_PLANS = """think todo_write todo_read write_todos update_todo update_todos get_todos clear_todos update_plan
    create_plan manage_todo_list update_todo_list sequential_thinking"""
_ENDS = (
    "finish submit done task_done task_complete complete_task finish_task attempt_completion mark_complete"
)
_ASKS = "ask_user ask_user_question ask_followup_question ask_question ask_human request_user_input"
_CODE = """python ipython execute_python run_python python_exec python_interpreter execute_ipython_cell
    code_interpreter run_code execute_code"""


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _rules() -> dict[str, ToolRule]:
    op = Operation
    idle = (*_SAID, *_WAITS)
    pattern = tuple(dict.fromkeys(_FOLDERS))
    told = {
        _SHELLS: ToolRule(op.RUN, COMMANDS, "shell", ignored=idle),
        _READS: ToolRule(op.READ, PATHS, paths=PATHS, ignored=_SAID),
        _WRITES: ToolRule(op.CREATE, PATHS, paths=PATHS, ignored=_SAID),
        _EDITS: ToolRule(op.EDIT, PATHS, paths=PATHS, ignored=_SAID),
        _LISTS: ToolRule(op.LIST, pattern, paths=pattern, ignored=_SAID),
        _EDITORS: ToolRule(op.EDIT, PATHS, "editor", paths=PATHS, ignored=_SAID),
        _REMOVES: ToolRule(op.EDIT, PATHS, paths=PATHS, ignored=_SAID),
        _BY_MEANING: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_SAID),
        _GREPS: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_SAID),
        _NAMES: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_SAID),
        _WEB: ToolRule(op.WEB, ("url", "query", "prompt"), ignored=_SAID),
        _PLANS: ToolRule(op.PLAN),
        _ENDS: ToolRule(op.FINISH),
        _ASKS: ToolRule(op.ASK),
        _CODE: ToolRule(op.RUN, ignored=idle),
        "apply_patch": ToolRule(op.EDIT, ("input", "patch", "patchText", "patch_text"), "patch"),
        "give_up exit_forfeit": ToolRule(op.FINISH, standing="forfeit"),
    }
    return {_bare(name): rule for names, rule in told.items() for name in names.split()}


_RULES = _rules()
_KINDS = {
    _bare(name): kind
    for kind, names in {"names": _NAMES, "removes": _REMOVES, "meaning": _BY_MEANING}.items()
    for name in names.split()
}


@lru_cache(maxsize=2048)
def common_tool_rule(tool: str) -> ToolRule | None:
    """What a tool of such a name does, its spelling (`runCommand`, `run-command`) and what stands before it
    (`mcp__files__read_file`, `container.exec`) apart; None for a name that many tools do not share."""
    return _named(_RULES, tool)


def common_tool_kind(tool: str) -> str:
    """What a tool of its operation does in particular: `names` where it finds files by their names, `meaning`
    where it searches by what a text means, `removes` where it removes a file, else nothing."""
    return _named(_KINDS, tool) or ""


def _named(table: Mapping[str, T], tool: str) -> T | None:
    return table.get(_bare(tool)) or table.get(_bare(_PARTS.split(tool)[-1]))


def widen_common_rule(rule: ToolRule) -> ToolRule:
    """The rule, where a call names the file or command by another of the usual arguments too."""
    usual = COMMANDS if rule.reading == "shell" else PATHS
    by_path = bool(rule.paths) and set(rule.target) <= set(rule.paths)
    if rule.reading != "shell" and not (by_path and rule.reading in ("plain", "editor")):
        return rule
    target = (*rule.target, *(name for name in usual if name not in rule.target))
    paths = (*rule.paths, *(name for name in target if name not in rule.paths)) if by_path else rule.paths
    return replace(rule, target=target, paths=paths)
