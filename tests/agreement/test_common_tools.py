"""Tools of harnesses that the table does not know: by the names and arguments that many give them."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import unknown_harness
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.records.message import Action, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply

Call = tuple[str, dict[str, Any]]


def act(*calls: Call) -> Action:
    return Action(
        "", tuple(ToolCall(f"c{n}", name, json.dumps(told)) for n, (name, told) in enumerate(calls))
    )


def known(*calls: Call, harness: str = "generic", cwd: str | None = "/repo") -> ActionKeys:
    return ladder_keys(act(*calls), EnvironmentState(harness, cwd))


@pytest.mark.parametrize(
    ("name", "arguments", "operation", "target"),
    [
        ("run_command", {"command": "ls src"}, "list", "src"),
        ("bash", {"cmd": "pytest tests"}, "run_test", "pytest tests"),
        ("container.exec", {"cmd": ["bash", "-lc", "cat a.py"]}, "read", "a.py"),
        ("run_terminal_cmd", {"command": "git status", "is_background": False}, "vcs", "git status"),
        ("developer__shell", {"command": "rm a.py"}, "edit", "a.py"),
        ("mcp__files__read_text_file", {"path": "/r/a.py"}, "read", "/r/a.py"),
        ("readFile", {"filePath": "/r/a.py"}, "read", "/r/a.py"),
        ("createfile", {"path": "/r/a.py", "contents": "x"}, "create", "/r/a.py"),
        ("write_to_file", {"path": "/r/a.py", "content": "x"}, "create", "/r/a.py"),
        ("replace_in_file", {"path": "/r/a.py", "old_text": "x", "new_text": "y"}, "edit", "/r/a.py"),
        ("edit", {"filePath": "/r/a.py", "oldString": "x", "newString": "y"}, "edit", "/r/a.py"),
        ("list_files", {"path": "src"}, "list", "src"),
        ("search_files", {"path": "src", "regex": "lamp"}, "search", "lamp"),
        ("search_internet", {"query": "lamps"}, "web", "lamps"),
        ("update_todo", {"todo_id": "1"}, "plan", None),
        ("attempt_completion", {"result": "done"}, "finish", None),
        ("give_up", {"confirm": True}, "finish", "forfeit"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/r/a.py"}, "read", "/r/a.py"),
        ("developer__text_editor", {"command": "create", "path": "/r/a.py"}, "create", "/r/a.py"),
        ("grep_search", {"query": "lamp"}, "search", "lamp"),
        ("codebase_search", {"query": "lamp"}, "search", "lamp"),
        ("delete_file", {"target_file": "/r/a.py"}, "edit", "/r/a.py"),
        ("view_file", {"AbsolutePath": "/r/a.py"}, "read", "/r/a.py"),
        ("ApplyPatch", {"input": "*** Update File: a.py\n"}, "edit", "a.py"),
        ("create_issue", {"title": "x"}, "other", None),
        ("book_flight", {"path": "x"}, "other", None),
    ],
)
def test_tools_do_what_their_names_say(
    name: str, arguments: dict[str, Any], operation: str, target: str | None
) -> None:
    assert find_operation_and_target(act((name, arguments)), "generic") == (operation, target)


SHELL_READ: Call = ("run_command", {"command": "cat lamp.py"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("list_files", {})], [("list_files", {"path": "."})]),
        ([("list_files", {"depth": 3})], [("list_files", {"path": "/repo", "depth": 3})]),
        ([("run_command", {"command": "cd ~/files && ls"})], [("run_command", {"command": "ls ~/files"})]),
        ([("get_watchlist", {"": {}})], [("get_watchlist", {})]),
        ([("delete_file", {"path": "a b"})], [("run_command", {"command": "rm 'a b'"})]),
        (
            [("run_command", {"command": "make", "timeout": 30})],
            [("run_command", {"command": "make", "explanation": "Build it."})],
        ),
        (
            [("createfile", {"path": "a.py", "contents": "x = 1\n"})],
            [("write_to_file", {"path": "/repo/a.py", "content": "x = 1\n"})],
        ),
    ],
)
def test_they_do_the_same_as_others(one: list[Call], other: list[Call]) -> None:
    assert known(*one).effect == known(*other).effect


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("read_file", {"path": "a.py"}), ("read_file", {"path": "a.py", "repo": "lamps"})),
        (("read_file", {"path": "a.py"}), ("read_file", {"path": "b.py"})),
        (
            ("write_file", {"path": "a", "content": "x"}),
            ("write_file", {"path": "a", "content": "x", "mode": "a"}),
        ),
        (("list_files", {"path": "."}), ("list_files", {"path": ".", "recursive": True})),
        (("codebase_search", {"query": "lamp"}), ("grep_search", {"query": "lamp"})),
        (("delete_file", {"path": "a.py"}), ("edit_file", {"path": "a.py"})),
        (("glob", {"pattern": "src/*.py"}), ("glob", {"pattern": "*.py"})),
    ],
)
def test_what_is_told_besides_counts(one: Call, other: Call) -> None:
    assert known(one).effect != known(other).effect


def test_an_option_of_a_search_that_says_little_leaves_what_it_is_about() -> None:
    plain, hidden = {"pattern": "**/etl.py"}, {"pattern": "**/etl.py", "path": ".", "include_hidden": False}
    assert in_ladder_dead_zone(known(("glob", plain)), known(("glob", hidden)))


def test_a_known_harness_with_other_arguments_names_its_files() -> None:
    one, other = {"path": "a.py"}, {"path": "b.py"}
    assert (
        known(("Read", one), harness="claude_code").intent
        != known(("Read", other), harness="claude_code").intent
    )
    shown = known(("Bash", {"command": "cat a.py"}), harness="claude_code")
    assert known(("Read", one), harness="claude_code").intent == shown.intent


def test_a_text_alone_ends_nothing_where_a_tool_ends_the_work() -> None:
    told = Action("The server is a Flask application.", ())
    tools = [ToolSpec(name, "", {"properties": {}}, "inferred") for name in ("run_command", "give_up")]
    ended = unknown_harness([tool.name for tool in tools])
    assert not ended.text_ends_run
    assert (
        why_reply_invalid(TeacherReply("t:0:0", "key", "a", "a", 0, 0, action=told), tools, ended.name)
        == "no command"
    )
    assert ladder_keys(told, EnvironmentState(ended.name)).action_class != "finish"
    assert unknown_harness(["run_command", "read_file"]).text_ends_run
    assert (
        why_reply_invalid(TeacherReply("t:0:0", "key", "a", "a", 0, 0, action=told), tools, "generic") is None
    )


def test_arguments_that_fit_no_rule_never_raise() -> None:
    for told in (
        {},
        {"path": 3},
        {"command": None},
        {"paths": ["", 1]},
        {"pattern": ["a"]},
        {"paths": ["*.py"]},
    ):
        for name in (
            "read_file",
            "read_many",
            "run_command",
            "glob",
            "search_files",
            "list_files",
            "write",
            "edit",
        ):
            assert known((name, told), cwd=None).effect


def test_another_answer_handed_in_is_no_other_decision_and_not_the_same() -> None:
    one, other, bare = (known(("submit", told)) for told in ({"answer": "a1"}, {"answer": "b2"}, {}))
    assert one.effect == known(("submit", {"answer": " a1 "})).effect
    assert one.effect != other.effect != bare.effect
    assert one.intent == other.intent == bare.intent
    assert (one.decisive, bare.decisive) == (False, True)
    said = [known(("finish", {"message": text})).effect for text in ("Mended.", "All is done.")]
    assert said[0] == said[1] == bare.effect
    world = EnvironmentState("swe_agent", "/repo")
    lines = [
        ladder_keys(Action("", (parse_swe_agent_command(f"submit '{flag}'"),)), world)
        for flag in ("a{1}", "b{2}")
    ]
    assert lines[0].effect != lines[1].effect
