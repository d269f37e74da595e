"""Teacher pairs: what is in the row."""

import json
from dataclasses import replace

import pytest

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.harnesses.presentation import present_context
from tracemill.pairs.teacher_pairs import teacher_pair
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace

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
    presentation = present_context(TRACE, CONTEXT)
    replies = [reply("qwen", TEST, 0.25), reply("zai", TEST, 0.5, simulated=True), reply("xai", None, 0.125)]
    state = list(TRACE.states())[1]
    pair, result = teacher_pair(state, presentation, replies, VotePolicy("mine"))
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


def bash(command: str) -> Action:
    return Action("", (ToolCall("x", "Bash", json.dumps({"command": command})),))


@pytest.mark.parametrize(
    ("actions", "threshold", "said"),
    [
        (
            (TEST, TEST),
            2,
            "2 of 2 votes (qwen, zai) agree by exact: the same action, its calls to the letter",
        ),
        (
            (bash("pytest -q"), bash("pytest  -q ")),
            2,
            "2 of 2 votes (qwen, zai) agree by canonical: the same action, spelled otherwise",
        ),
        (
            (bash("pytest -q -x"), bash("pytest -x -q")),
            2,
            "2 of 2 votes (qwen, zai) agree by effect: the same effect by other calls",
        ),
        (
            (bash("git log -n 161"), bash("git log -n 357"), bash("git log -n 370")),
            2,
            "3 of 3 votes (kimi, qwen, zai) agree by intent: the same operation and target, to other effects",
        ),
        ((TEST,), 1, "1 of 1 vote (qwen), and no other action has more"),
    ],
)
def test_a_pair_says_on_what_rung_how_many_agree(
    actions: tuple[Action, ...], threshold: int, said: str
) -> None:
    given = zip(("qwen", "zai", "kimi"), actions, strict=False)
    replies = [reply(teacher, action, 0.1) for teacher, action in given]
    policy = VotePolicy(threshold=threshold, min_families=threshold)
    pair, _ = teacher_pair(list(TRACE.states())[1], present_context(TRACE, CONTEXT), replies, policy)
    assert pair is not None
    assert pair.evidence == said


def test_ends_that_are_worded_otherwise_agree_by_class() -> None:
    """A student that goes on, and two teachers that would have stopped."""
    replies = [reply("qwen", Action("Mended."), 0.1), reply("zai", Action("It is done."), 0.1)]
    replies = [replace(each, step_id="t:0:0") for each in replies]
    pair, _ = teacher_pair(next(TRACE.states()), present_context(TRACE, CONTEXT), replies, VotePolicy())
    assert pair is not None
    assert pair.evidence.startswith("2 of 2 votes (qwen, zai) agree by class: an end of the work")


def test_without_agreement_there_is_no_pair_but_a_count() -> None:
    state = list(TRACE.states())[1]
    pair, result = teacher_pair(
        state, present_context(TRACE, CONTEXT), [reply("qwen", TEST, 0.1)], VotePolicy()
    )
    assert pair is None
    assert (result.verdict, len(result.votes)) == ("too_few_votes", 1)
