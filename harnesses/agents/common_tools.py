"""Rules for tool names that many harnesses share, for harnesses that the table does not know.

Names and arguments are those in the public documentation of Cline, Roo Code, Cursor, GitHub Copilot,
opencode, goose, inspect_ai, the reference servers of MCP, and of the harnesses in the table.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from tracemill.harnesses.core.vocabulary import Operation, ToolRule

T = TypeVar("T")
PATHS = (
    *("path", "file_path", "absolute_path", "filePath", "filepath", "file", "filename", "file_name"),
    *("target_file", "relative_workspace_path", "AbsolutePath", "TargetFile"),
)
"""Arguments that name the file or folder of a call."""
COMMANDS = ("command", "cmd", "command_line", "commandLine", "CommandLine", "script")
"""Arguments that hold the command line of a shell."""
_SHELL_FOLDERS = ("directory", "dir_path", "workdir", "cwd", "working_directory", "working_dir", "Cwd")
WORKING_FOLDERS = dict.fromkeys(_SHELL_FOLDERS).keys()
"""Arguments that name the folder a shell runs in, in the order they are looked for."""
_FOLDERS = ("path", "dir_path", "dirPath", "directory", "dir", "folder", "target_directory", *PATHS[1:])
_FOLDERS += ("directory_path", "DirectoryPath", "SearchPath")
_PATTERNS = ("pattern", "regex", "query", "Query", "search_term", "glob_pattern", "file_pattern", "file_name")
_COMMENTS = (
    "description",
    "explanation",
    "reason",
    "justification",
    "purpose",
    "security_risk",
    "summary",
)
_TIMEOUTS = (
    "timeout",
    "timeout_ms",
    "timeout_s",
    "timeout_sec",
    "timeout_seconds",
    "requires_approval",
)
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
_QUESTIONS = "ask_user ask_user_question ask_followup_question ask_question ask_human request_user_input"
_CODE = """python ipython execute_python run_python python_exec python_interpreter execute_ipython_cell
    code_interpreter run_code execute_code"""


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _rules() -> dict[str, ToolRule]:
    op = Operation
    no_effect = (*_COMMENTS, *_TIMEOUTS)
    pattern = tuple(dict.fromkeys(_FOLDERS))
    rules_by_names = {
        _SHELLS: ToolRule(op.RUN, COMMANDS, "shell", ignored=no_effect),
        _READS: ToolRule(op.READ, PATHS, paths=PATHS, ignored=_COMMENTS),
        _WRITES: ToolRule(op.CREATE, PATHS, paths=PATHS, ignored=_COMMENTS),
        _EDITS: ToolRule(op.EDIT, PATHS, paths=PATHS, ignored=_COMMENTS),
        _LISTS: ToolRule(op.LIST, pattern, paths=pattern, ignored=_COMMENTS),
        _EDITORS: ToolRule(op.EDIT, PATHS, "editor", paths=PATHS, ignored=_COMMENTS),
        _REMOVES: ToolRule(op.EDIT, PATHS, paths=PATHS, ignored=_COMMENTS),
        _BY_MEANING: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_COMMENTS),
        _GREPS: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_COMMENTS),
        _NAMES: ToolRule(op.SEARCH, _PATTERNS, paths=pattern, ignored=_COMMENTS),
        _WEB: ToolRule(op.WEB, ("url", "query", "prompt"), ignored=_COMMENTS),
        _PLANS: ToolRule(op.PLAN),
        _ENDS: ToolRule(op.FINISH),
        _QUESTIONS: ToolRule(op.ASK),
        _CODE: ToolRule(op.RUN, ignored=no_effect),
        "apply_patch": ToolRule(op.EDIT, ("input", "patch", "patchText", "patch_text"), "patch"),
        "give_up exit_forfeit": ToolRule(op.FINISH, default_target="forfeit"),
    }
    return {_bare(name): rule for names, rule in rules_by_names.items() for name in names.split()}


_RULES = _rules()
_KINDS = {
    _bare(name): kind
    for kind, names in {"names": _NAMES, "removes": _REMOVES, "meaning": _BY_MEANING}.items()
    for name in names.split()
}


@lru_cache(maxsize=2048)
def common_tool_rule(tool: str) -> ToolRule | None:
    """Return the rule for a tool's name, None for a name that is not common.

    Spelling (`runCommand`, `run-command`) and prefixes (`mcp__files__read_file`, `container.exec`) do not
    matter.
    """
    return _named(_RULES, tool)


def common_tool_kind(tool: str) -> str:
    """Return the special kind of a tool: `names`, `meaning`, `removes`, or "".

    `names` finds files by name, `meaning` searches by meaning, `removes` removes a file.
    """
    return _named(_KINDS, tool) or ""


def _named(table: Mapping[str, T], tool: str) -> T | None:
    return table.get(_bare(tool)) or table.get(_bare(_PARTS.split(tool)[-1]))


def widen_common_rule(rule: ToolRule) -> ToolRule:
    """Return the rule, extended by the other usual arguments for the file or command."""
    usual = COMMANDS if rule.reading == "shell" else PATHS
    by_path = bool(rule.paths) and set(rule.target) <= set(rule.paths)
    if rule.reading != "shell" and not (by_path and rule.reading in ("plain", "editor")):
        return rule
    target = (*rule.target, *(name for name in usual if name not in rule.target))
    paths = (*rule.paths, *(name for name in target if name not in rule.paths)) if by_path else rule.paths
    return replace(rule, target=target, paths=paths)
