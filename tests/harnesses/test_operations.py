"""Actions → operations and targets, for the tools of each harness."""

import json
from typing import Any

import pytest

from tracemill.harnesses.agents.registry import GENERIC, HARNESSES, harness_for
from tracemill.harnesses.operations import (
    Operation,
    find_action_operation,
    find_action_target,
    find_call_operation,
)
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.records.message import Action, ToolCall


def act(*calls: tuple[str, Any], text: str = "") -> Action:
    return Action(text, tuple(ToolCall(f"c{i}", n, json.dumps(a)) for i, (n, a) in enumerate(calls)))


@pytest.mark.parametrize(
    ("harness", "name", "arguments", "operation", "target"),
    [
        ("claude_code", "Read", {"file_path": "/r/./a.py"}, "read", "/r/a.py"),
        ("claude_code", "Edit", {"file_path": "/r/a.py", "old_string": "a"}, "edit", "/r/a.py"),
        ("claude_code", "Write", {"file_path": "/r/a.py", "content": "a"}, "create", "/r/a.py"),
        ("claude_code", "Grep", {"pattern": "foo", "path": "/r"}, "search", "foo"),
        ("claude_code", "Bash", {"command": "go test ./a"}, "run_test", "go test ./a"),
        ("claude_code", "TodoWrite", {"todos": []}, "plan", None),
        ("claude_code", "AskUserQuestion", {"questions": []}, "ask", None),
        (
            "claude_code",
            "WebFetch",
            {"url": "https://example.org", "prompt": "x"},
            "web",
            "https://example.org",
        ),
        ("claude_code", "mcp__tracker__create_issue", {"title": "x"}, "other", None),
        ("openhands", "execute_bash", {"command": "ls src"}, "list", "src"),
        ("openhands", "terminal", {"command": "git status"}, "vcs", "git status"),
        ("openhands", "str_replace_editor", {"command": "view", "path": "/r/a.py"}, "read", "/r/a.py"),
        ("openhands", "str_replace_editor", {"command": "view", "path": "/r/src"}, "list", "/r/src"),
        ("openhands", "str_replace_editor", {"command": "create", "path": "/r/a.py"}, "create", "/r/a.py"),
        ("openhands", "file_editor", {"command": "str_replace", "path": "/r/a.py"}, "edit", "/r/a.py"),
        ("openhands", "think", {"thought": "hm"}, "plan", None),
        ("openhands", "finish", {"message": "done"}, "finish", None),
        ("swe_agent", "submit", {}, "finish", None),
        ("swe_agent", "search_dir", {"search_term": "foo"}, "search", "foo"),
        ("swe_agent", "bash", {"command": "python reproduce.py"}, "run", "python reproduce.py"),
    ],
)
def test_a_tool_does_what_its_rule_says(
    harness: str, name: str, arguments: dict[str, Any], operation: str, target: str | None
) -> None:
    action = act((name, arguments))
    assert find_action_operation(action, harness) == operation
    assert find_action_target(action, harness) == target


def test_the_first_mutating_call_decides_then_the_first_that_is_no_planning() -> None:
    read, edit = ("Read", {"file_path": "/r/a"}), ("Edit", {"file_path": "/r/b"})
    assert find_action_operation(act(read, edit), "claude_code") == Operation.EDIT
    assert find_action_target(act(read, edit), "claude_code") == "/r/b"
    assert find_action_operation(act(("TodoWrite", {"todos": []}), read), "claude_code") == Operation.READ


@pytest.mark.parametrize(
    ("text", "operation"),
    [("All tests pass.", "finish"), ("Shall I push it?", "ask"), ("**Push now?**", "ask"), (" \n", "other")],
)
def test_text_alone_finishes_or_asks(text: str, operation: str) -> None:
    assert find_action_operation(Action(text), "claude_code") == operation


def test_swe_agent_acts_in_the_last_block_of_its_text() -> None:
    text = "I look.\n```\nls\n```\nNo:\n```\nsearch_dir foo src\n```"
    assert find_action_operation(Action(text), "swe_agent") == Operation.SEARCH
    assert find_action_operation(Action("Done.\n```\nsubmit\n```"), "swe_agent") == Operation.FINISH
    assert find_action_operation(Action(text), "claude_code") == Operation.FINISH


def test_openhands_calls_written_as_text_are_calls() -> None:
    text = "<function=execute_bash>\n<parameter=command>\npytest -q\n</parameter>\n</function>"
    (call,) = calls_in_text(text, "openhands")
    assert (call.name, call.parsed()) == ("execute_bash", {"command": "pytest -q"})
    assert find_action_operation(Action(text), "openhands") == Operation.RUN_TEST


def test_arguments_that_cannot_be_read_never_raise() -> None:
    for arguments in ("", "{", "[1]", '{"command": 3}', '{"path": null, "command": "view"}'):
        for name in ("Bash", "Edit", "str_replace_editor", "unknown"):
            action = Action("", (ToolCall("c", name, arguments),))
            assert find_action_operation(action, "openhands") in Operation
            assert find_action_target(action, "openhands") in (None, "3", "view")


def test_reading_is_not_mutating() -> None:
    assert not find_call_operation(ToolCall("c", "Read", '{"file_path": "/a"}'), "claude_code").mutating
    assert not find_call_operation(
        ToolCall("c", "Bash", '{"command": "git diff | head"}'), "claude_code"
    ).mutating
    assert find_call_operation(ToolCall("c", "Bash", '{"command": "git checkout x"}'), "claude_code").mutating
    assert find_call_operation(ToolCall("c", "mcp__x", "{}"), "claude_code").mutating


def test_a_harness_is_found_by_name_and_version() -> None:
    assert harness_for("claude_code", "1.0.98").versions == "1.x to 2.1.90"
    assert harness_for("Claude-Code", "2.1.91").versions == "2.1.91 and later"
    assert harness_for("claude_code").versions == "1.x to 2.1.90"
    assert harness_for("openhands", "0.35.0").versions == "0.x"
    assert harness_for("openhands", "1.2.0").versions == "1.x"
    assert harness_for("SWE-agent").name == "swe_agent"
    assert harness_for("something new") is GENERIC


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda h: f"{h.name} {h.versions}")
def test_every_stand_in_says_that_it_is_one_and_every_schema_is_whole(harness: Any) -> None:
    assert "stand-in" in harness.system
    assert set(harness.core) <= set(harness.tools)
    for name, tool in harness.tools.items():
        assert tool.name == name
        assert tool.origin == "stand_in"
        assert tool.description
        assert name in harness.rules, f"{name} has no rule"
        assert set(tool.parameters.get("required", ())) <= set(tool.parameters["properties"])
        for schema in tool.parameters["properties"].values():
            assert schema["type"]
            assert schema["type"] != "array" or "items" in schema
