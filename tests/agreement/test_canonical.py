"""Keys of actions: equal where only spelling differs, different where anything else does."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.calls.arguments import canonical_arguments, fold_text
from tracemill.agreement.calls.canonical import EMPTY_KEY, canonical_key, exact_key
from tracemill.harnesses.agents.registry import HARNESSES, harness_for
from tracemill.records.message import Action, ToolCall, ToolSpec

TOOLS = tuple(harness_for("claude_code").tools.values())


def act(*calls: tuple[str, Any], text: str = "") -> Action:
    return Action(text, tuple(ToolCall(f"c{i}", n, json.dumps(a)) for i, (n, a) in enumerate(calls)))


def bash(command: str) -> Action:
    return act(("Bash", {"command": command}))


def key(action: Action, cwd: str | None = "/repo") -> str:
    return canonical_key(action, TOOLS, cwd, "claude_code")


SAME = [
    (
        act(("Read", {"file_path": "/repo/a.py"})),
        act(("Read", {"file_path": "/repo/./b/../a.py", "limit": None})),
    ),
    (
        act(("Edit", {"file_path": "/repo/a", "old_string": "x", "new_string": "", "replace_all": False})),
        act(("Edit", {"new_string": "", "old_string": "x", "file_path": "/repo/a"})),
    ),
    (act(("Bash", {"command": "pytest", "description": "Run tests", "timeout": 5})), bash("pytest")),
    (Action("All done."), Action("I finished the work; tests pass.")),
]

DIFFERENT = [
    (Action("Shall I?"), act(("AskUserQuestion", {"questions": []}))),
    (bash("make | cat > log"), bash("make")),
    (act(("Read", {"file_path": "/repo/a.py"})), act(("Read", {"file_path": "/repo/b.py"}))),
    (act(("Read", {"file_path": "/repo/a.py", "offset": 3})), act(("Read", {"file_path": "/repo/a.py"}))),
    (
        act(("Edit", {"file_path": "/a", "old_string": "x", "new_string": ""})),
        act(("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"})),
    ),
    (
        act(("Edit", {"file_path": "/a", "old_string": "x\n", "new_string": "y"})),
        act(("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"})),
    ),
    (act(("Grep", {"pattern": "x"})), act(("Grep", {"pattern": "x "}))),
    (bash("cp a b"), bash("cp b a")),
    (bash("a && b"), bash("a; b")),
    (bash("(cd sub; a); b"), bash("cd sub; a; b")),
    (bash("for f in x; do a; done; b"), bash("for f in x; do a; b; done")),
    (bash("echo '$HOME'"), bash("echo $HOME")),
    (bash("ls > out"), bash("ls")),
    (bash("echo 'open"), bash("echo open")),
    (act(("Bash", {"command": "ls"})), Action("", (ToolCall("c", "Bash", '{"command": "ls"'),))),
    (
        act(("Edit", {"file_path": "/a"}), ("Bash", {"command": "pytest"})),
        act(("Bash", {"command": "pytest"}), ("Edit", {"file_path": "/a"})),
    ),
    (Action("Done."), Action("Done?")),
    (Action("Done."), Action("")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_apart_the_same(one: Action, other: Action) -> None:
    assert key(one) == key(other)
    assert exact_key(one) != exact_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_anything_else_is_different(one: Action, other: Action) -> None:
    assert key(one) != key(other)
    assert exact_key(one) != exact_key(other)


def test_keys_name_the_operation_and_survive_a_change_of_text_or_ids() -> None:
    action = Action("first", (ToolCall("x", "Read", '{"file_path": "/a"}'),))
    again = Action("other words", (ToolCall("y", "Read", '{ "file_path":"/a" }'),))
    assert key(action).startswith("read:")
    assert (key(action), exact_key(action)) == (key(again), exact_key(again))
    assert (key(Action("Done.")), key(Action("")), key(Action("Why?"))) == ("finish", EMPTY_KEY, "ask")


def test_a_call_that_cannot_be_read_equals_only_the_same_text() -> None:
    def broken(arguments: str) -> Action:
        return Action("", (ToolCall("c", "Read", arguments),))

    assert key(broken('{"file_path":  "/a"')) == key(broken('{"file_path": "/a"'))
    assert key(broken('{"file_path": "/a"')) != key(broken('{"file_path": "/a"}'))


def test_finishing_by_text_and_by_tool_is_one_class() -> None:
    tool = Action("Solved.", (ToolCall("c", "finish", '{"message": "done"}'),))
    assert canonical_key(tool, (), None, "openhands") == canonical_key(
        Action("It is done."), (), None, "openhands"
    )


def test_the_default_of_a_schema_counts_as_left_out() -> None:
    tool = ToolSpec(
        "f", "", {"properties": {"n": {"type": "integer", "default": 1}, "b": {"type": "boolean"}}}
    )
    arguments = '{"n": 1, "b": true, "x": 2, "empty": ""}'
    assert canonical_arguments(ToolCall("c", "f", arguments), tool, None, "x") == {"b": True, "x": 2}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from(
    sorted({name for harness in HARNESSES for name in harness.rules} | {"mcp__x", "Re ad"})
)
ARGUMENTS = st.one_of(
    st.dictionaries(
        st.sampled_from(["command", "path", "file_path", "pattern", "limit", "x"]), VALUES, max_size=4
    ).map(json.dumps),
    st.text(max_size=12),
)
ACTIONS = st.builds(
    Action,
    st.text(max_size=20),
    st.lists(st.builds(ToolCall, st.just("c"), NAMES, ARGUMENTS), max_size=3).map(tuple),
)
HARNESS = st.sampled_from(["claude_code", "openhands", "swe_agent", "new"])


@settings(max_examples=300, deadline=None)
@given(ACTIONS, HARNESS, st.sampled_from([None, "/repo"]))
def test_exact_implies_canonical_and_nothing_raises(action: Action, harness: str, cwd: str | None) -> None:
    other = Action(
        action.text + "\n",
        tuple(
            ToolCall(
                "d",
                call.name,
                call.arguments if call.parsed() is None else json.dumps(call.parsed(), indent=1),
            )
            for call in action.tool_calls
        ),
    )
    assert exact_key(action) == exact_key(other)
    assert canonical_key(action, TOOLS, cwd, harness) == canonical_key(other, TOOLS, cwd, harness)


@settings(max_examples=200, deadline=None)
@given(
    NAMES,
    st.dictionaries(st.sampled_from(["path", "file_path", "pattern", "limit", "x"]), VALUES, max_size=4),
)
def test_the_normal_form_of_arguments_is_its_own(name: str, arguments: dict[str, Any]) -> None:
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    once = canonical_arguments(ToolCall("c", name, json.dumps(arguments)), tool, "/repo", "claude_code")
    assert once is not None
    assert canonical_arguments(ToolCall("c", name, json.dumps(once)), tool, "/repo", "claude_code") == once


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)


@given(st.lists(st.sampled_from(["/a", "/b", "/c"]), min_size=1, max_size=4), st.randoms())
def test_the_order_of_reads_does_not_matter(paths: list[str], random: Any) -> None:
    shuffled = list(paths)
    random.shuffle(shuffled)
    one, other = ([("Read", {"file_path": path}) for path in each] for each in (paths, shuffled))
    assert key(act(*one)) == key(act(*other))
