"""Edits that a tool refuses or that change nothing, and lines that a shell does not run, have no vote."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.equivalence.validity import why_action_impossible
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.vote import VoteResult, tally_votes
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.shell.quotes import ends_in_quote
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

LINES = ["def f(x):", "    y = x", "    return y", "", "def g(x):", "    y = x", "    return y"]
NUMBERED = "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(LINES, 1))
WINDOW = "[File: /repo/a.py (7 lines total)]\n" + "\n".join(f"{n}:{line}" for n, line in enumerate(LINES, 1))
SHOWN = {
    "claude_code": ("Read", {"file_path": "/repo/a.py"}, NUMBERED),
    "gemini_cli": ("run_shell_command", {"command": "cat -n a.py"}, NUMBERED),
    "openhands": ("str_replace_editor", {"command": "view", "path": "/repo/a.py"}, NUMBERED),
    "codex": ("exec_command", {"cmd": "cat -n a.py"}, NUMBERED),
    "generic": ("view", {"path": "/repo/a.py"}, NUMBERED),
    "swe_agent": ("open", {"path": "a.py"}, WINDOW),
}
TWICE, ONCE = "    y = x", "def f(x):\n    y = x"
UNIQUE, NOTHING, BEYOND = "edit text not unique", "edit changes nothing", "lines beyond the file"


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


def edit(old: str, new: str, **more: Any) -> ToolCall:
    return call("Edit", file_path="/repo/a.py", old_string=old, new_string=new, **more)


def several(*edits: tuple[str, str]) -> ToolCall:
    told = [{"old_string": old, "new_string": new} for old, new in edits]
    return call("MultiEdit", file_path="/repo/a.py", edits=told)


def replaces(old: str, new: str, **more: Any) -> ToolCall:
    return call("replace", file_path="/repo/a.py", old_string=old, new_string=new, **more)


def editor(command: str, **more: Any) -> ToolCall:
    return call("str_replace_editor", command=command, path="/repo/a.py", **more)


def patch(*lines: str, head: str = "*** Update File: a.py") -> ToolCall:
    return call("apply_patch", input="\n".join(["*** Begin Patch", head, *lines, "*** End Patch"]))


def world_of(harness: str, complete: bool = True) -> EnvironmentState:
    name, asked, text = SHOWN[harness]
    messages = (
        Message("user", "mend a.py"),
        Message("assistant", "", (ToolCall("c0", name, json.dumps(asked)),)),
        Message("tool", text, (), "c0"),
    )
    record = replay_context(Context(0, messages, (Step(0, 1, "m", "f", cwd="/repo"),)), harness)
    return EnvironmentState(harness, "/repo", (), record, 3, complete)


def why(harness: str, *calls: ToolCall, complete: bool = True) -> str | None:
    world, action = world_of(harness, complete), Action("", calls)
    return why_action_impossible(action, ladder_keys(action, world), world)


@pytest.mark.parametrize(
    ("harness", "calls", "expected"),
    [
        ("claude_code", [edit(TWICE, "    y = z")], UNIQUE),
        ("claude_code", [edit(TWICE, "    y = z", replace_all=True)], None),
        ("claude_code", [edit(TWICE, "    y = z", replace_all="true")], None),
        ("claude_code", [edit(ONCE, "def f(x):\n    y = z")], None),
        ("claude_code", [edit(ONCE, ONCE)], NOTHING),
        ("claude_code", [edit(TWICE, TWICE, replace_all=True)], NOTHING),
        ("claude_code", [edit("def f(x):\n    y", "def f(x):\n    z"), edit("    y = x", "    y = 1")], None),
        ("claude_code", [edit("def g", "def y = x; g"), edit("    y = x", "    y = 1")], UNIQUE),
        ("claude_code", [several((ONCE, "def f(x):\n    z = x"), (TWICE, "    y = 2"))], None),
        ("claude_code", [several((TWICE, "    y = 2"), ("def f", "def h"))], UNIQUE),
        ("claude_code", [several(("def f", "def h"), ("def g", "def g"))], NOTHING),
        ("gemini_cli", [replaces(TWICE, "    y = z")], UNIQUE),
        ("gemini_cli", [replaces(TWICE, "    y = z", expected_replacements=2)], None),
        (
            "gemini_cli",
            [replaces(TWICE, "    y = z", expected_replacements=3)],
            "edit text not as often as said",
        ),
        ("gemini_cli", [replaces(TWICE, "    y = z", allow_multiple=True)], None),
        ("gemini_cli", [replaces(ONCE, "def f(x):\n    y = z", expected_replacements=1)], None),
        ("openhands", [editor("str_replace", old_str=TWICE, new_str="    y = z")], UNIQUE),
        ("openhands", [editor("str_replace", old_str=ONCE, new_str=ONCE)], NOTHING),
        ("openhands", [editor("str_replace", old_str="def g(x):\n")], None),
        ("openhands", [editor("insert", insert_line=8, new_str="z = 1")], None),
        ("openhands", [editor("insert", insert_line=9, new_str="z = 1")], BEYOND),
        ("generic", [call("edit", path="/repo/a.py", oldText=TWICE, newText="z")], UNIQUE),
        ("generic", [call("edit_file", path="/repo/a.py", edits=[{"oldText": TWICE, "newText": "z"}])], None),
        ("generic", [call("edit", filePath="a.py", oldString=TWICE, newString="z", replaceAll=True)], None),
        ("swe_agent", [call("edit", search=TWICE, replace="    y = z")], None),
        ("swe_agent", [call("edit", search=ONCE, replace=ONCE)], NOTHING),
        ("swe_agent", [call("edit", start_line=8, end_line=8, replacement_text="z = 1")], None),
        ("swe_agent", [call("edit", start_line=20, end_line=30, replacement_text="z = 1")], BEYOND),
        ("swe_agent", [call("edit", start_line=2, end_line=2, replacement_text="    y = x")], NOTHING),
        ("codex", [patch("@@ def g(x):", "-    y = x", "+    y = z")], None),
        ("codex", [patch("@@", " def f(x):", "     y = x")], NOTHING),
        ("codex", [patch("*** Move to: b.py", "@@", " def f(x):")], None),
        ("codex", [patch("+x = 1", head="*** Add File: n.py")], None),
    ],
)
def test_an_edit_that_its_tool_refuses_or_that_changes_nothing(
    harness: str, calls: list[ToolCall], expected: str | None
) -> None:
    assert why(harness, *calls) == expected


def test_where_messages_were_lost_only_what_needs_no_file_is_told() -> None:
    assert why("claude_code", edit(TWICE, "    y = z"), complete=False) is None
    assert why("claude_code", edit(TWICE, TWICE), complete=False) == NOTHING
    assert (
        why("claude_code", call("Bash", command="echo 'a"), complete=False) == "shell line with an open quote"
    )


def test_commands_of_swe_agent_in_a_text_are_held_to_the_file_too() -> None:
    world = world_of("swe_agent")
    action = Action("I add it.\n```\nedit 20:30\nz = 1\nend_of_edit\n```")
    assert why_action_impossible(action, ladder_keys(action, world), world) == BEYOND


def test_an_edit_that_is_refused_is_none_that_works() -> None:
    world = world_of("claude_code")
    refused, made = (Action("", (edit(old, "z"),)) for old in (TWICE, ONCE))
    assert ladder_keys(refused, world).effect != ladder_keys(made, world).effect
    assert not ladder_keys(refused, world).effects[0].proven


def voted(student: Action, *teachers: Action) -> tuple[VoteResult, bool]:
    name, asked, text = SHOWN["claude_code"]
    messages = (
        Message("user", "mend a.py"),
        Message("assistant", "", (ToolCall("c0", name, json.dumps(asked)),)),
        Message("tool", text, (), "c0"),
        student.to_message(),
    )
    steps = tuple(Step(at, 2 * at + 1, "claude-x", "anthropic", cwd="/repo") for at in range(2))
    context = Context(0, messages, steps)
    state = TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, steps[1])
    replies = [
        TeacherReply("t:0:1", f"k{n}", f"t{n}", f"f{n}", 0, 0, action=action)
        for n, action in enumerate(teachers)
    ]
    tools = tuple(harness_for("claude_code").tools.values())
    world = EnvironmentState("claude_code", "/repo", tools, replay_context(context, "claude_code"), 3)
    return tally_votes(state, tools, replies, Policy()), student_action_keys(state, world).broken


def test_the_edit_that_works_is_chosen_over_the_one_that_is_refused() -> None:
    """It fails in the session, and is the shorter of two that say the same."""
    refused, made = Action("", (edit(TWICE, "    y = z"),)), Action("", (edit(ONCE, "def f(x):\n    y = z"),))
    told, broken = voted(refused, made, made)
    assert (told.verdict, told.chosen and told.chosen.action, broken) == ("pair", made, True)
    told, broken = voted(made, refused, made)
    assert ([vote.reason for vote in told.votes], broken) == ([UNIQUE, ""], False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("echo 'a", True),
        ('grep "def f a.py', True),
        ("git commit -m 'it's done'", True),
        ("cat <<'EOF' > a\nit's\nEOF\necho \"x", True),
        ('echo "$(ls "a")', True),
        ("git commit -m 'it'\\''s done'", False),
        ("cat <<'EOF' > a\nit's\nEOF", False),
        ("cat <<EOF\nit's", False),
        ("ls # it's here", False),
        ("# don't\nls", False),
        ('echo "it\'s"', False),
        ('echo "$(echo "a")"', False),
        ('echo "${x:-\'}"', False),
        ("echo \"`echo 'a'`\"", False),
        ("echo it\\'s", False),
        ("echo $'a\\'b'", False),
        ("sed -i 's/a/\"/' a.py", False),
        ("", False),
    ],
)
def test_lines_that_end_inside_a_quote(line: str, expected: bool) -> None:
    assert ends_in_quote(line) is expected
    told = why("claude_code", call("Bash", command=line or "ls"))
    assert (told == "shell line with an open quote") is expected


def test_input_for_what_runs_in_a_shell_is_no_line() -> None:
    assert why("openhands", call("execute_bash", command="it's", is_input="true")) is None
    assert why("openhands", call("execute_bash", command="it's")) == "shell line with an open quote"
    assert why("codex", call("shell", command=["echo", "it's"])) is None
