"""Teacher pairs: what is in the row."""

import json

import pytest

from agreement.policy import Policy
from harnesses.present import present
from pairs.from_votes import teacher_pair
from records.message import Action, Message, ToolCall
from records.reply import TeacherReply
from records.state import Context, Step, Trace

TEST = Action("I test first.", (ToolCall("x", "Bash", json.dumps({"command": "pytest"})),))
STUDENT = Message("assistant", "Done.", reasoning="enough")
MESSAGES = (
    Message("user", "fix"),
    Message("assistant", "", (ToolCall("a", "Read", '{"file_path": "/a"}'),)),
    Message("tool", "x = 1", tool_call_id="a"),
    STUDENT,
)
STEPS = (Step(0, 1, "claude-x", "anthropic"), Step(1, 3, "claude-x", "anthropic"))
CONTEXT = Context(0, MESSAGES, STEPS)
TRACE = Trace(
    "t",
    "claude_code",
    "d",
    "claude_code",
    (CONTEXT,),
    project="p",
    repository="o/r",
    instance_id="i",
    licence="MIT",
    outcome="resolved",
)


def reply(teacher: str, action: Action | None, cost_usd: float, *, simulated: bool = False) -> TeacherReply:
    failure = None if action else "timeout"
    return TeacherReply(
        "t:0:1",
        f"k-{teacher}",
        teacher,
        teacher,
        0,
        0,
        action=action,
        failure=failure,
        cost_usd=cost_usd,
        simulated=simulated,
    )


def test_a_pair_holds_state_sides_votes_and_what_it_cost() -> None:
    presentation = present(TRACE, CONTEXT)
    replies = [reply("qwen", TEST, 0.25), reply("zai", TEST, 0.5, simulated=True), reply("xai", None, 0.125)]
    state = list(TRACE.states())[1]
    pair, result = teacher_pair(state, presentation, replies, Policy("mine"))
    assert pair is not None
    assert (result.verdict, pair.policy, pair.label_source) == ("pair", "mine", "teachers")
    assert (pair.step_id, pair.pair_id) == ("t:0:1", "t:0:1:teachers")
    assert list(pair.state_messages) == list(presentation.messages[:4])
    assert [m.role for m in pair.state_messages] == ["system", "user", "assistant", "tool"]
    assert pair.chosen == (Message("assistant", "I test first.", TEST.tool_calls),)
    assert pair.rejected == (Message("assistant", "Done."),)
    assert (pair.chosen_operation, pair.rejected_operation) == ("run_test", "finish")
    assert (pair.n_teachers_agreeing, pair.families, len(pair.votes)) == (2, ("qwen", "zai"), 3)
    assert pair.cost_usd == pytest.approx(0.875)
    assert pair.simulated
    assert (pair.student_model, pair.student_family, pair.presentation) == (
        "claude-x",
        "anthropic",
        presentation.label,
    )
    assert (pair.project, pair.repository, pair.instance_id) == ("p", "o/r", "i")
    assert (pair.licence, pair.outcome) == ("MIT", "resolved")
    assert pair.tools == presentation.tools


def test_without_agreement_there_is_no_pair_but_a_count() -> None:
    state = list(TRACE.states())[1]
    pair, result = teacher_pair(state, present(TRACE, CONTEXT), [reply("qwen", TEST, 0.1)], Policy())
    assert pair is None
    assert (result.verdict, len(result.votes)) == ("too_few_votes", 1)
