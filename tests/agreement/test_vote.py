"""Who may vote, and what votes decide."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.voting.labels import AGREED_VERDICTS
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VoteResult, tally_votes
from tracemill.harnesses.agents.registry import harness_for
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

TOOLS = (
    *harness_for("claude_code").tools.values(),
    ToolSpec("mcp__x", "", {"properties": {"n": {"type": "integer"}}}, "inferred"),
)


def act(name: str, text: str = "", **arguments: Any) -> Action:
    return Action(text, (ToolCall("c", name, json.dumps(arguments)),))


READ_A, READ_B = act("Read", file_path="/a"), act("Read", file_path="/b")
TEST = act("Bash", command="pytest")
DONE = Action("Done.")


def reply(
    teacher: str, action: Action | None, family: str = "", sample: int = 0, **more: Any
) -> TeacherReply:
    return TeacherReply(
        "t:0:0", f"k-{teacher}-{sample}", teacher, family or teacher, sample, 0, action=action, **more
    )


def state_of(student: Action, family: str = "anthropic") -> TraceState:
    messages = (Message("user", "fix a and b"), student.to_message())
    context = Context(0, messages, (Step(0, 1, "claude-x", family, cwd="/repo"),))
    return TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, context.steps[0])


def count(
    student: Action, *replies: TeacherReply, policy: VotePolicy | None = None, family: str = "anthropic"
) -> VoteResult:
    return tally_votes(state_of(student, family), TOOLS, replies, policy or VotePolicy())


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (TEST, None),
        (Action("I am done. Tests pass."), None),
        (act("Read", file_path="/a", limit="30"), None),
        (act("mcp__x", n="many"), None),
        (Action(" \n"), "empty"),
        (act("Browse", url="x"), "tool not offered"),
        (Action("", (ToolCall("c", "Read", "{"),)), "arguments are no JSON object"),
        (Action("", (ToolCall("c", "Read", "[1]"),)), "arguments are no JSON object"),
        (act("Read", path="/a"), "required argument missing"),
        (act("Read", file_path=["/a"]), "argument of a wrong type"),
        (act("Read", file_path="/a", limit="many"), "argument of a wrong type"),
        (act("Read", file_path="/a", limit=True), "argument of a wrong type"),
        (act("Grep", pattern="x", output_mode="all"), "argument of a wrong type"),
        (Action("I run it.\nObservation: 3 passed\nDone."), "fakes a tool result"),
        (Action("ok\n<function_results>\n3 passed"), "fakes a tool result"),
        (Action("<function=Bash>\n<parameter=command>ls</parameter></function>"), "call written as text"),
        (Action("This prints:\n```\nObservation: x\n```\nDone."), None),
    ],
)
def test_who_may_vote(action: Action, reason: str | None) -> None:
    assert why_reply_invalid(reply("x", action), TOOLS) == reason


def test_failed_and_cut_off_answers_have_no_vote() -> None:
    assert why_reply_invalid(reply("x", None, failure="rate_limited"), TOOLS) == "failed: rate_limited"
    assert why_reply_invalid(reply("x", TEST, finish_reason="length"), TOOLS) == "failed: truncated"


def test_two_of_three_families_make_a_pair_and_every_reply_a_row() -> None:
    result = count(
        READ_B,
        reply("qwen", TEST, cost_usd=0.5),
        reply("deepseek", replace(TEST, text="I run the tests.")),
        reply("zai", READ_A),
    )
    assert result.verdict == "pair"
    assert (result.n_agreeing, result.families) == (2, ("deepseek", "qwen"))
    assert result.chosen is not None
    assert result.chosen.teacher == "qwen"
    rows = [(v.teacher, v.counted, v.agrees, v.operation, v.cost_usd, v.request_key) for v in result.votes]
    assert rows == [
        ("deepseek", True, True, "run_test", 0.0, "k-deepseek-0"),
        ("qwen", True, True, "run_test", 0.5, "k-qwen-0"),
        ("zai", True, False, "read", 0.0, "k-zai-0"),
    ]
    assert result.votes[0].key == result.votes[1].key != result.votes[2].key


def test_votes_that_count_as_one_have_one_key() -> None:
    """What has no vote is named like what has one."""
    part, other = (act("Read", file_path="/a", offset=n, limit=99) for n in (1, 60))
    most = act("Read", file_path="/./a", offset=1, limit=99)
    student = act("Read", file_path="/b")
    named = count(student, reply("m", part), reply("q", most), reply("z", other), reply("anthropic", most))
    keys = {vote.teacher: vote.key for vote in named.votes}
    assert named.verdict == "pair"
    assert keys["m"] == keys["q"] == keys["anthropic"] != keys["z"]
    own = count(part, reply("m", most), reply("q", other), reply("z", student), reply("anthropic", part))
    assert {vote.teacher for vote in own.votes if vote.key == "student"} == {"m", "anthropic"}


def test_agreeing_with_the_student_makes_no_pair() -> None:
    result = count(
        TEST, reply("qwen", TEST), reply("zai", act("Bash", command="cd /repo && pytest")), reply("xai", DONE)
    )
    assert (result.verdict, result.chosen, result.n_agreeing) == ("agrees_with_student", None, 2)
    assert [(v.key, v.agrees) for v in result.votes if v.teacher != "xai"] == [("student", True)] * 2


def test_the_family_of_the_student_does_not_vote() -> None:
    replies = reply("claude", TEST, "anthropic"), reply("qwen", TEST), reply("zai", READ_A)
    result = count(READ_B, *replies)
    assert result.verdict == "no_agreement"
    assert [(v.counted, v.reason) for v in result.votes] == [
        (False, "family of the student"),
        (True, ""),
        (True, ""),
    ]
    assert count(READ_B, *replies, policy=VotePolicy(exclude_student_family=False)).verdict == "pair"


def test_an_unknown_student_excludes_nobody_and_says_so() -> None:
    result = count(DONE, reply("claude", TEST, "anthropic"), reply("odd", TEST, "unknown"), family="unknown")
    assert result.verdict == "pair"
    assert {v.reason for v in result.votes} == {"family of the student unknown"}


def test_one_family_is_not_enough() -> None:
    result = count(
        READ_B,
        reply("q1", TEST, "qwen"),
        reply("q2", TEST, "qwen"),
        reply("zai", READ_A),
    )
    assert (result.verdict, result.families, result.n_agreeing) == ("one_family", ("qwen",), 2)
    assert (
        count(
            act("Read", file_path="/b"),
            reply("q1", TEST, "qwen"),
            reply("q2", TEST, "qwen"),
            policy=VotePolicy(min_families=1),
        ).verdict
        == "pair"
    )


def test_a_tie_is_no_agreement_and_too_few_votes_are_said() -> None:
    tied = reply("a", TEST), reply("b", TEST), reply("c", READ_A), reply("d", READ_A)
    assert count(DONE, *tied).verdict == "no_agreement"
    assert count(DONE, reply("a", TEST), reply("b", None, failure="timeout")).verdict == "too_few_votes"
    assert count(DONE).verdict == "too_few_votes"


def test_a_teacher_has_one_vote_however_often_it_is_sampled() -> None:
    result = count(
        DONE,
        reply("a", TEST, sample=1),
        reply("a", None, sample=0, failure="empty"),
        reply("a", TEST, sample=2),
    )
    assert result.verdict == "too_few_votes"
    assert [v.reason for v in result.votes] == ["failed: empty", "", "another sample votes"]


def test_the_same_target_is_a_dead_zone() -> None:
    partly = act("Read", file_path="/a", limit=40)
    votes = reply("a", partly), reply("b", partly)
    assert count(READ_A, *votes).verdict == "dead_zone"
    assert count(READ_A, *votes, policy=VotePolicy(dead_zone=False)).verdict == "pair"
    assert count(READ_B, *votes).verdict == "pair"


def test_a_student_that_did_nothing_makes_no_pair() -> None:
    assert count(Action(), reply("a", TEST), reply("b", TEST)).verdict == "student_did_nothing"


def test_exact_votes_need_the_same_values() -> None:
    votes = reply("a", TEST), reply("b", act("Bash", command="pytest", description="tests"))
    assert count(DONE, *votes).verdict == "pair"
    assert count(DONE, *votes, policy=VotePolicy(level="exact")).verdict == "no_agreement"


REPLIES = st.lists(
    st.builds(
        reply,
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from([TEST, READ_A, READ_B, DONE, replace(TEST, text="x"), None, Action()]),
        st.sampled_from(["qwen", "zai", "anthropic", "unknown"]),
        st.integers(0, 2),
    ),
    max_size=7,
    unique_by=lambda r: (r.teacher, r.sample),
)


@settings(max_examples=200, deadline=None)
@given(REPLIES, st.randoms(), st.sampled_from([DONE, TEST, READ_A]))
def test_the_order_of_replies_does_not_matter(
    replies: list[TeacherReply], random: Any, student: Action
) -> None:
    shuffled = list(replies)
    random.shuffle(shuffled)
    first = count(student, *replies)
    assert first == count(student, *shuffled)
    assert len(first.votes) == len(replies)
    assert (first.chosen is not None) == (first.verdict == "pair")
    agreed = first.verdict in AGREED_VERDICTS
    assert sum(vote.agrees for vote in first.votes) == (first.n_agreeing if agreed else 0)
