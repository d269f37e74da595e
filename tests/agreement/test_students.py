"""A student's action that could not be carried out, beside teachers who do the same in a way that can."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.voting.early_stop import HOPELESS, why_stop_early
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import tally_votes, vote_of_reply
from tracemill.agreement.world.replay_context import environment_at
from tracemill.harnesses.agents.registry import harness_for
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

TOOLS = tuple(harness_for("claude_code").tools.values())
READ = ToolCall("r1", "Read", '{"file_path": "/repo/a.py"}')
SHOWN = "     1\tx = 1\n     2\ty = 2"
GOOD = {"file_path": "/repo/a.py", "old_string": "x = 1", "new_string": "x = 3"}
UNTYPED = {"file_path": "/repo/a.py", "old_string": ["x = 1"], "new_string": "x = 3"}
OTHER = {**GOOD, "new_string": "x = 4"}


def state_of(arguments: dict[str, Any], *after: Message) -> TraceState:
    call = ToolCall("e1", "Edit", json.dumps(arguments))
    messages = (
        Message("user", "x is to be 3"),
        Message("assistant", "", (READ,)),
        Message("tool", SHOWN, (), "r1"),
        Message("assistant", "", (call,)),
        *after,
    )
    steps = tuple(Step(at, 2 * at + 1, "claude-x", "anthropic", cwd="/repo") for at in range(2))
    context = Context(0, messages, steps)
    return TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, steps[1])


def said(teacher: str) -> TeacherReply:
    action = Action("", (ToolCall("c", "Edit", json.dumps(GOOD)),))
    return TeacherReply("t:0:1", f"k-{teacher}", teacher, teacher, 0, 0, action=action)


FAILED = Message(
    "tool", "<tool_use_error>String to replace not found</tool_use_error>", (), "e1", is_error=True
)
WORKED = Message("tool", "The file has been updated.", (), "e1", is_error=False)
SILENT = Message("tool", "The file has been updated.", (), "e1")


@pytest.mark.parametrize(
    ("arguments", "after", "verdict"),
    [
        (UNTYPED, (FAILED,), "pair"),
        (UNTYPED, (), "pair"),
        (UNTYPED, (WORKED,), "no_agreement"),
        (UNTYPED, (SILENT,), "no_agreement"),
        (OTHER, (), "dead_zone"),
        (OTHER, (FAILED,), "dead_zone"),
        (GOOD, (FAILED,), "agrees_with_student"),
    ],
)
def test_a_call_that_cannot_work_is_rejected_for_one_that_can(
    arguments: dict[str, Any], after: tuple[Message, ...], verdict: str
) -> None:
    state = state_of(arguments, *after)
    replies = [said("qwen"), said("zai")]
    assert tally_votes(state, TOOLS, replies, VotePolicy()).verdict == verdict
    world = environment_at(state, TOOLS)
    student = student_action_keys(state, world)
    assert student.broken == (verdict == "pair")
    teachers = [vote_of_reply(reply, student_action_keys(state_of(GOOD), world)) for reply in replies]
    stop = why_stop_early(teachers[:1], student, ["zai"], VotePolicy(), "lossless")
    assert stop == ("" if verdict == "pair" else HOPELESS)
