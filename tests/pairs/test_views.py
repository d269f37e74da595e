"""Runs of judged steps and distributions over actions, from a trace, its votes and its replies."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tracemill.harnesses.presentation import present_context
from tracemill.pairs.other_views import Judgement, build_soft_step_view, build_step_run_views
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.pair import StepVotes, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace


def turn(number: int) -> tuple[Message, Message]:
    call = ToolCall(f"c{number}", "Bash", json.dumps({"command": f"step {number}"}))
    return Message("assistant", f"I do {number}.", (call,)), Message(
        "tool", f"out {number}", tool_call_id=call.id
    )


MESSAGES = (Message("user", "fix"), *(m for n in range(6) for m in turn(n)), Message("assistant", "Done."))
STEPS = tuple(Step(n, 1 + 2 * n, "model-x", "x") for n in range(7))
CONTEXT = Context(0, MESSAGES, STEPS)
TRACE = Trace("t", "claude_code", "d", "claude_code", (CONTEXT,), repository="o/r", outcome="resolved")
SHOWN = present_context(TRACE, CONTEXT)
STATE = list(TRACE.states())[2]


def judged(**steps: bool) -> dict[str, Judgement]:
    return {f"t:0:{name[1:]}": Judgement(good, "teachers") for name, good in steps.items()}


def test_neighbouring_judged_steps_are_one_run() -> None:
    runs = list(build_step_run_views(TRACE, CONTEXT, SHOWN, judged(s1=True, s2=False, s4=True, s6=False)))
    assert [run.step_ids for run in runs] == [("t:0:1", "t:0:2"), ("t:0:4",), ("t:0:6",)]
    assert [run.labels for run in runs] == [(True, False), (True,), (False,)]
    first = runs[0]
    assert list(first.state_messages) == list(SHOWN.messages[: SHOWN.cuts[1]])
    assert [[m.role for m in turn] for turn in first.turns] == [["assistant"], ["tool", "assistant"]]
    assert [turn[-1].content for turn in first.turns] == ["I do 1.", "I do 2."]
    assert first.turns[1][0].content == "out 1"
    assert (first.origin.repository, first.origin.outcome, first.origin.simulated) == (
        "o/r",
        "resolved",
        False,
    )


def test_a_simulated_judgement_marks_its_run() -> None:
    told = judged(s1=True) | {"t:0:2": Judgement(False, "teachers", True)}
    [run] = build_step_run_views(TRACE, CONTEXT, SHOWN, told)
    assert run.origin.simulated


def test_with_calls_only_a_step_of_words_ends_a_run() -> None:
    told = judged(s5=True, s6=False)
    [run] = build_step_run_views(TRACE, CONTEXT, SHOWN, told, "calls_only")
    assert run.step_ids == ("t:0:5",)
    assert run.turns[0][-1].content == ""
    [whole] = build_step_run_views(TRACE, CONTEXT, SHOWN, told)
    assert whole.step_ids == ("t:0:5", "t:0:6")


def reply(teacher: str, text: str, command: str | None) -> TeacherReply:
    calls = () if command is None else (ToolCall("x", "Bash", json.dumps({"command": command})),)
    return TeacherReply("t:0:2", f"k-{teacher}", teacher, teacher, 0, 0, action=Action(text, calls))


def vote(teacher: str, key: str, counted: bool = True) -> Vote:
    return Vote(teacher, teacher, 0, counted, "", key, "run", False, 0.25, f"k-{teacher}")


REPLIES = [
    reply("qwen", "Certainly, let me test.", "pytest"),
    reply("zai", "test", "pytest"),
    reply("kimi", "as it did", "step 2"),
    reply("odd", "no", "rm"),
]
NAMES = ("qwen", "zai", "kimi")
VOTES = (
    vote("kimi", "student"),
    vote("qwen", "run:1"),
    vote("zai", "run:1"),
    vote("odd", "run:2", counted=False),
)


def soft(replies: list[TeacherReply] = REPLIES, **changes: Any) -> Any:
    step = StepVotes("t:0:2", "no_agreement", changes.pop("votes", VOTES), True)
    return build_soft_step_view(STATE, SHOWN, step, replies, **changes)


def test_votes_become_a_distribution_over_actions() -> None:
    made = soft()
    assert [(c.message.content, c.teachers) for c in made.candidates] == [
        ("test", ("qwen", "zai")),
        ("I do 2.", ("kimi",)),
    ]
    assert (made.student, made.verdict, made.cost_usd) == (1, "no_agreement", pytest.approx(1.0))
    assert made.origin.simulated
    assert list(made.state_messages) == list(SHOWN.messages[: SHOWN.cuts[2]])
    assert soft(list(reversed(REPLIES)), votes=tuple(reversed(VOTES))) == made


def test_a_distribution_holds_the_words_that_are_wanted() -> None:
    assert [c.message.content for c in soft(wording="calls_only").candidates] == ["", ""]
    assert [c.message.content for c in soft(wording="student_thought").candidates] == ["I do 2.", "I do 2."]
    ends = [*REPLIES[1:], reply("qwen", "Done.", None)]
    parted = (vote("kimi", "student"), vote("qwen", "finish"))
    assert soft(ends, votes=parted, wording="calls_only") is None
    assert len(soft(ends, votes=parted).candidates) == 2


def test_actions_that_are_one_to_the_vote_are_marked() -> None:
    """Three actions of one intent: each stands with its own count, and the pair rests on two of them."""
    voted = tuple(replace(vote(*each), agrees=each[0] != "kimi") for each in zip(NAMES, "123", strict=True))
    replies = [reply(name, "", f"git log -n {place}") for place, name in enumerate(NAMES)]
    made = soft(replies, votes=voted, evidence="2 of 3 votes agree by intent")
    assert [(c.teachers, c.agreed) for c in made.candidates] == [
        (("kimi",), False),
        (("qwen",), True),
        (("zai",), True),
    ]
    assert made.evidence == "2 of 3 votes agree by intent"


def test_no_distribution_without_a_counted_vote_or_without_its_reply() -> None:
    assert soft(votes=VOTES[3:]) is None
    assert soft(REPLIES[:1]) is not None
    assert soft([]) is None
    assert soft([], votes=VOTES[:1]).student == 0
