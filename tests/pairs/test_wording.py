"""Whose words a side holds, for agents that call tools and for those that write their commands."""

from typing import Any

import pytest

from tracemill.harnesses.text_calls import calls_in_text, find_text_call
from tracemill.pairs.side_text import NO_CALL, choose_side_text
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair

LS = (ToolCall("a", "Bash", '{"command": "ls"}'),)
CAT = (ToolCall("b", "Bash", '{"command": "cat x"}'),)


def pair(chosen: Message, rejected: Message, harness: str = "claude_code") -> DPOPair:
    values: dict[str, Any] = {"state_messages": (), "tools": (), "presentation": "", "student_model": None}
    return DPOPair(
        step_id="t:0:0",
        label_source="teachers",
        chosen=(chosen,),
        rejected=(rejected,),
        chosen_operation="run",
        rejected_operation="run",
        source="claude_code",
        harness=harness,
        student_family="x",
        **values,
    )


def said(text: str, calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("assistant", text, calls)


CALLS = pair(said("Sure! Let me look.", LS), said("hm", CAT))


def test_full_leaves_a_pair_as_it_is() -> None:
    assert choose_side_text(CALLS, "full") is CALLS


def test_calls_only_leaves_no_free_text_on_either_side() -> None:
    made = choose_side_text(CALLS, "calls_only")
    assert isinstance(made, DPOPair)
    assert (made.chosen, made.rejected) == ((said("", LS),), (said("", CAT),))
    for other in (pair(said("All done."), said("x", LS)), pair(said("x", LS), said("All done."))):
        assert choose_side_text(other, "calls_only") == NO_CALL


def test_student_thought_puts_the_students_words_before_the_teachers_call() -> None:
    made = choose_side_text(CALLS, "student_thought")
    assert isinstance(made, DPOPair)
    assert (made.chosen, made.rejected) == ((said("hm", LS),), CALLS.rejected)
    finished = choose_side_text(pair(said("Sure! I look.", LS), said("All done.")), "student_thought")
    assert isinstance(finished, DPOPair)
    assert finished.chosen == (said("", LS),)
    ends = pair(said("All done."), said("hm", CAT))
    assert choose_side_text(ends, "student_thought") == ends


WRITTEN = [
    ("swe_agent", "DISCUSSION\nI look.\n```\nls -a\n```\n", "```\nls -a\n```"),
    ("swe_agent", "I look. <command>\nls -a\n</command> Now.", "<command>\nls -a\n</command>"),
    ("mini_swe_agent", "THOUGHT: I look.\n\n```bash\nls -a\n```", "```bash\nls -a\n```"),
    (
        "mini_swe_agent",
        "I look. <mswea_bash_command>ls</mswea_bash_command>",
        "<mswea_bash_command>ls</mswea_bash_command>",
    ),
    (
        "openhands",
        "I look. <function=run><parameter=command>ls</parameter></function> So.",
        "<function=run><parameter=command>ls</parameter></function>",
    ),
    ("openhands", "I look.", None),
    ("swe_agent", "```\nno end", None),
]


@pytest.mark.parametrize(("harness", "text", "call"), WRITTEN)
def test_a_written_call_stands_alone_and_reads_the_same(harness: str, text: str, call: str | None) -> None:
    assert find_text_call(text, harness) == call
    made = choose_side_text(pair(said(text), said(text), harness), "calls_only")
    if call is None:
        assert made == NO_CALL
    else:
        assert calls_in_text(call, harness) == calls_in_text(text, harness)
        assert isinstance(made, DPOPair)
        assert made.chosen == made.rejected == (said(call),)


def test_a_written_call_of_a_teacher_comes_into_the_words_of_the_student() -> None:
    both = pair(said("Sure!\n```\nls\n```"), said("hm\n```\ncat x\n```"), "swe_agent")
    made = choose_side_text(both, "student_thought")
    assert isinstance(made, DPOPair)
    assert made.chosen[0].content == "hm\n```\nls\n```"
