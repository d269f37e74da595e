"""Files written whole, edited once or in steps: compared by what is left; comments, and layout of prose."""

import json
from typing import Any

from tracemill.agreement.equivalence.ladder import in_ladder_dead_zone, ladder_keys
from tracemill.agreement.voting.labels import ValidVote, label_of
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.trace import Context, Step, Trace, TraceState

TEXT = ["def f(x):", "    y = x", "    return y"]
NUMBERED = "\n".join(f"     {n}\t{line}" for n, line in enumerate(TEXT, 1))


def act(name: str, **arguments: Any) -> Action:
    return Action("", (ToolCall("c", name, json.dumps(arguments)),))


def both(*actions: Action) -> Action:
    return Action("", tuple(call for action in actions for call in action.tool_calls))


def edit(old: str, new: str, path: str = "/repo/a.py") -> Action:
    return act("Edit", file_path=path, old_string=old, new_string=new)


def multi(*edits: tuple[str, str]) -> Action:
    told = [{"old_string": old, "new_string": new} for old, new in edits]
    return act("MultiEdit", file_path="/repo/a.py", edits=told)


def write(text: str, path: str = "/repo/a.py") -> Action:
    return act("Write", file_path=path, content=text)


def bash(line: str) -> Action:
    return act("Bash", command=line)


def shown(**asked: Any) -> EnvironmentState:
    """A world in which a.py and b.py were read."""
    messages = [Message("user", "mend f in a.py and b.py")]
    for number, path in enumerate(("/repo/a.py", "/repo/b.py")):
        call = ToolCall(f"s{number}", "Read", json.dumps({"file_path": path, **asked}))
        messages += [Message("assistant", "", (call,)), Message("tool", NUMBERED, tool_call_id=call.id)]
    cut = len(messages)
    context = Context(0, (*messages, Message("assistant", "Done.")), (Step(0, cut, cwd="/repo"),))
    trace = Trace("t", "claude_code", "d", "claude_code", (context,))
    return environment_at(
        TraceState(trace, context, context.steps[0]), (), replay_context(context, "claude_code")
    )


BLIND, WHOLE, PART = EnvironmentState("claude_code", "/repo"), shown(), shown(limit=3)
LEFT = "def f(x):\n    y = x\n    return y + 1\n"


def test_writing_a_file_that_was_shown_is_an_edit_of_it() -> None:
    changed, written = ladder_keys(edit("return y", "return y + 1"), WHOLE), ladder_keys(write(LEFT), WHOLE)
    assert changed.effect == written.effect
    assert (written.action_class, written.intent) == ("edit", changed.intent)
    assert ladder_keys(write(LEFT + "z = 1\n"), WHOLE).effect != written.effect
    assert in_ladder_dead_zone(
        ladder_keys(edit("return y", "return y + 1"), PART), ladder_keys(write(LEFT), PART)
    )
    assert ladder_keys(write(LEFT), BLIND).action_class == "create"
    assert ladder_keys(write(LEFT, "/repo/debug_it.py"), WHOLE).action_class == "create"


def test_no_pair_is_made_of_two_ways_of_leaving_the_same_text() -> None:
    one, other = ladder_keys(edit("return y", "return y + 1"), WHOLE), ladder_keys(write(LEFT), WHOLE)
    votes = [ValidVote("q", "qwen", other), ValidVote("z", "zai", other), ValidVote("d", "deepseek", other)]
    assert label_of(votes, one, VotePolicy()).verdict == "agrees_with_student"


def test_a_command_line_that_writes_a_file_is_about_that_file() -> None:
    assert in_ladder_dead_zone(
        ladder_keys(bash("echo z > n.py"), WHOLE), ladder_keys(write("z\n", "/repo/n.py"), WHOLE)
    )


def test_a_file_that_a_line_has_written_is_not_known_any_more() -> None:
    messages = [Message("user", "go")]
    for number, action in enumerate((write(LEFT, "/repo/src/n.py"), bash("echo z > /repo/src/n.py"))):
        call = action.tool_calls[0]
        messages.append(Message("assistant", "", (ToolCall(f"s{number}", call.name, call.arguments),)))
        messages.append(Message("tool", "ok", tool_call_id=f"s{number}"))
    record = replay_context(Context(0, tuple(messages), ()), "claude_code")
    assert EnvironmentState("claude_code", "/repo", (), record, 3).text_of("/repo/src/n.py") is not None
    assert EnvironmentState("claude_code", "/repo", (), record, 5).text_of("/repo/src/n.py") is None
