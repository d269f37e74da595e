"""Texts that tools write, run or look for stay to the letter, whatever tool and argument they come in."""

import json
from typing import Any

import pytest

from tracemill.agreement.calls.canonical import canonical_key, exact_key
from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.common_tools import common_tool_rule
from tracemill.harnesses.agents.registry import HARNESSES, Harness
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import Action, ToolCall

EDITOR = ("file_text", "old_str", "new_str")
BODIES: dict[str, tuple[str, ...]] = {
    "Edit": ("old_string", "new_string"),
    "Write": ("content",),
    "NotebookEdit": ("new_source",),
    "BashOutput": ("filter",),
    "Glob": ("pattern", "path"),
    "Grep": ("pattern", "glob", "type"),
    "LSP": ("query",),
    "str_replace_editor": EDITOR,
    "file_editor": EDITOR,
    "edit_file": ("content", "code_edit"),
    "codebase_search": ("query",),
    "file_search": ("query",),
    "grep_search": ("query", "include_pattern", "exclude_pattern"),
    "search_replace": ("old_string", "new_string"),
    "editor": ("old_text", "new_text"),
    "edit": ("search", "replace", "oldText", "newText", "oldString", "newString"),
    "write": ("content",),
    "grep": ("pattern", "glob", "include"),
    "find": ("pattern",),
    "insert": ("text",),
    "replace": ("old_string", "new_string"),
    "write_file": ("content",),
    "write_stdin": ("chars",),
    "execute_ipython_cell": ("code",),
    "search_dir": ("search_term",),
    "search_file": ("search_term",),
    "find_file": ("file_name",),
    "glob": ("pattern",),
    "search_file_content": ("pattern", "include"),
    "apply_patch": (),
    "apply_diff": ("diff",),
    "replace_in_file": ("diff",),
    "search_files": ("regex", "file_pattern"),
    "write_to_file": ("content",),
}
"""Tool → arguments of its stand-in that are taken to the letter."""
NAMED = {
    "bash_id",
    "shell_id",
    "task_id",
    "session_id",
    "cell_id",
    "command",
    "cmd",
    "description",
    "replace-all",
}
"""Arguments of such tools that name something, are a command line or a choice, or say what it is for."""
UNKNOWN = [
    ("edit_file", "code_edit"),
    ("edit_file", "diff"),
    ("edit", "newString"),
    ("str_replace", "new_str"),
    ("replace_in_file", "diff"),
    ("replace_in_file", "new_text"),
    ("apply_diff", "diff"),
    ("search_replace", "new_string"),
    ("insert_edit_into_file", "code"),
    ("write_to_file", "contents"),
    ("create_file", "file_text"),
    ("write", "text"),
    ("str_replace_based_edit_tool", "insert_text"),
    ("developer__text_editor", "file_text"),
    ("python", "code"),
    ("execute_code", "source"),
    ("grep_search", "query"),
    ("my_own_writer", "content"),
    ("my_own_writer", "replacement_text"),
]
"""Tools of other harnesses, and one that nothing is known of."""
WRITING = frozenset({Operation.EDIT, Operation.CREATE, Operation.RUN, Operation.SEARCH})


def canonical_of(tool: str, harness: str, **arguments: Any) -> str:
    action = Action("", (ToolCall("c", tool, json.dumps(arguments)),))
    return canonical_key(action, (), "/repo", harness)


def texts_of(harness: Harness) -> list[tuple[str, str]]:
    """(tool, argument) of each text in the stand-ins of tools that write, run or search."""
    return [
        (name, argument)
        for name, tool in sorted(harness.tools.items())
        if (rule := harness.rules.get(name)) is not None and rule.operation in WRITING
        for argument, schema in tool.parameters["properties"].items()
        if schema.get("type") == "string"
        and "enum" not in schema
        and argument not in {*rule.paths, *rule.ignored, rule.folder, *NAMED}
    ]


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda each: f"{each.name} {each.versions}")
def test_every_text_of_every_tool_of_a_harness_is_to_the_letter(harness: Harness) -> None:
    for tool, argument in texts_of(harness):
        if harness.rules[tool].reading in ("patch", "shell"):
            continue
        assert argument in BODIES[tool], (tool, argument)
        given = {argument: "    y = x"}
        assert canonical_of(tool, harness.name, **given) != canonical_of(
            tool, harness.name, **{argument: "y = x"}
        )
        given = {argument: "y = x\n"}
        assert canonical_of(tool, harness.name, **given) != canonical_of(
            tool, harness.name, **{argument: "y = x"}
        )


@pytest.mark.parametrize(("tool", "argument"), UNKNOWN)
def test_every_text_of_a_tool_of_another_harness_is_to_the_letter(tool: str, argument: str) -> None:
    one, other = (canonical_of(tool, "generic", **{argument: text}) for text in ("  y", "y"))
    assert one != other


def test_what_a_tool_is_called_with_beside_texts_is_folded() -> None:
    assert canonical_of("Edit", "claude_code", file_path=" /repo/a ") == canonical_of(
        "Edit", "claude_code", file_path="a"
    )
    assert canonical_of("Task", "claude_code", prompt="find it ") == canonical_of(
        "Task", "claude_code", prompt="find it"
    )
    assert canonical_of("book_flight", "generic", to=" Bern") == canonical_of(
        "book_flight", "generic", to="Bern"
    )


def test_lines_put_into_the_open_file_keep_their_indentation() -> None:
    world = EnvironmentState("swe_agent", "/repo")
    lines = [
        ladder_keys(Action("", (ToolCall("c", "edit", json.dumps(given)),)), world)
        for given in (
            {"start_line": 2, "end_line": 2, "replacement_text": "    y = z"},
            {"start_line": 2, "end_line": 2, "replacement_text": "y = z"},
        )
    ]
    assert lines[0].canonical != lines[1].canonical
    assert lines[0].effect != lines[1].effect
    assert lines[0].intent == lines[1].intent


def test_bytes_of_a_file_count_and_spelling_of_what_is_said_does_not() -> None:
    one, other = "caf\u00e9", "cafe\u0301"
    written = [
        Action("", (ToolCall("c", "Write", json.dumps({"file_path": "a", "content": text})),))
        for text in (one, other)
    ]
    assert exact_key(written[0]) != exact_key(written[1])
    assert canonical_of("Write", "claude_code", content=one) != canonical_of(
        "Write", "claude_code", content=other
    )
    assert exact_key(Action(one)) == exact_key(Action(other))


def test_each_editing_tool_of_the_common_table_has_its_rule() -> None:
    assert all(common_tool_rule(tool) is not None for tool, _ in UNKNOWN if not tool.startswith("my_own"))
