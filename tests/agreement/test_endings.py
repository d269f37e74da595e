"""Texts that end the work: which of them vote, and what a student's own comes to."""

import json

import pytest

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VoteResult, tally_votes
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

TOOLS = tuple(harness_for("claude_code").tools.values())
EDITOR = ToolSpec("str_replace_editor", "", {"properties": {}})
READ = Action("", (ToolCall("c", "Read", json.dumps({"file_path": "/repo/b.py"})),))
DONE, SAID, REFUSED, FAULT = map(
    Action, ("The fix is in.", "Let me run the tests.", "I cannot help with that.", "Error: rate limited")
)


def said(teacher: str, action: Action) -> TeacherReply:
    return TeacherReply("t:0:0", f"k-{teacher}", teacher, teacher, 0, 0, action=action)


def count(student: Action, *teachers: Action) -> VoteResult:
    messages = (Message("user", "mend b.py"), student.to_message())
    context = Context(0, messages, (Step(0, 1, "claude-x", "anthropic", cwd="/repo"),))
    trace = Trace("t", "claude_code", "d", "claude_code", (context,))
    replies = [said(f"t{number}", action) for number, action in enumerate(teachers)]
    return tally_votes(TraceState(trace, context, context.steps[0]), TOOLS, replies, VotePolicy())


@pytest.mark.parametrize(
    ("text", "harness", "tools", "reason"),
    [
        ("Let me run the tests.", "claude_code", TOOLS, "only announces an act"),
        ("Let me run the tests.", "generic", (EDITOR,), "only announces an act"),
        ("Let me run the tests.", "openhands", (), "only announces an act"),
        ("Let me run the tests.", "mini_swe_agent", TOOLS, "no command"),
        ("Let me think about it.", "generic", (), None),
        (
            "I see it. Let me fix it.\n<function=f><parameter=a>b</parameter></function>",
            "openhands",
            (),
            None,
        ),
        ("Error: rate limited", "claude_code", TOOLS, "error as text"),
        ("Error: rate limited", "generic", (), "error as text"),
        ("```bash\npytest\n```", "claude_code", TOOLS, "call written as text"),
        ("```bash\npytest\n```", "generic", (EDITOR,), None),
        ("```bash\npytest\n```", "mini_swe_agent", (), None),
        ("I cannot help with that.", "claude_code", TOOLS, None),
        ("Shall I run the tests?", "claude_code", TOOLS, None),
        ("I have fixed it. Let me summarise what changed.", "claude_code", TOOLS, None),
    ],
)
def test_which_texts_vote(text: str, harness: str, tools: tuple[ToolSpec, ...], reason: str | None) -> None:
    assert why_reply_invalid(said("x", Action(text)), tools, harness) == reason


def test_teachers_that_only_announce_do_not_agree_to_finish() -> None:
    told = count(READ, SAID, Action("I'll look at the tests next."), Action("Now let me open b.py:"))
    assert (told.verdict, told.n_agreeing) == ("too_few_votes", 0)
    assert [vote.reason for vote in told.votes] == ["only announces an act"] * 3
    assert count(READ, SAID, DONE, DONE).verdict == "pair"


def test_a_refusal_is_neither_an_answer_nor_an_error() -> None:
    assert count(READ, REFUSED, DONE, FAULT).verdict == "no_agreement"
    assert count(READ, REFUSED, DONE).verdict == "no_agreement"
    assert count(READ, REFUSED, REFUSED, DONE).verdict == "no_agreement"
    assert count(READ, REFUSED, REFUSED).verdict == "pair"
    assert count(REFUSED, DONE, DONE).verdict == count(DONE, REFUSED, REFUSED).verdict == "dead_zone"
    given_up = Action("", (ToolCall("c", "exit_forfeit", "{}"),))
    ends = {
        ladder_keys(action, EnvironmentState("generic", "/repo")).effect
        for action in (REFUSED, DONE, SAID, given_up)
    }
    assert len(ends) == 4


def test_a_student_that_only_announced_is_told_from_one_that_finished() -> None:
    """Acting is preferred over announcing it; whether finishing is, nobody knows."""
    acted = count(SAID, READ, READ)
    assert (acted.verdict, acted.chosen and acted.chosen.action) == ("pair", READ)
    assert count(SAID, DONE, DONE).verdict == "dead_zone"
    assert count(DONE, DONE, DONE).verdict == "agrees_with_student"
    assert count(SAID, Action("Which tests?"), Action("What tests?")).verdict == "pair"


def test_a_student_whose_text_is_an_error_of_the_provider_did_nothing() -> None:
    assert count(FAULT, READ, READ).verdict == "student_did_nothing"
