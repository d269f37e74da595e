"""Hindsight pairs of agents that write their calls in their text."""

import pytest

from tracemill.harnesses.text_calls import calls_in_text, replace_text_call
from tracemill.pairs.hindsight import NO_FIX, NOT_POSSIBLE, hindsight_pairs
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Step, Trace

REFUSED = "Your proposed edit has introduced new syntax error(s). Please read this error message carefully."
EDITED = "[File: /repo/src/app/main.py (9 lines total)]\n3:    x = 1"


def trace_of(harness: str, *turns: tuple[str, str] | Message) -> Trace:
    """A trace of (what the agent wrote, what came back); a message stands as it is."""
    messages, cuts = [Message("user", "fix src/app/main.py in /repo")], list[int]()
    for turn in turns:
        if isinstance(turn, Message):
            messages.append(turn)
            continue
        wrote, came = turn
        failed = came.startswith((REFUSED, "<returncode>1"))
        cuts.append(len(messages))
        messages += [Message("assistant", wrote), Message("user", came)]
        messages[-1] = Message("user", came, is_error=failed, error_kind="tool_error" if failed else None)
    steps = tuple(Step(i, cut, "m", "qwen", cwd="/repo") for i, cut in enumerate(cuts))
    return Trace("t", "swe_agent", "d", harness, (Context(0, tuple(messages), steps),))


def edits(first: int, text: str, thought: str = "I set x.") -> str:
    return f"{thought}\n```\nedit {first}:{first}\n{text}\nend_of_edit\n```"


def runs(command: str) -> str:
    return f"I look.\n\n```bash\n{command}\n```"


def texts(pairs: list[DPOPair]) -> list[tuple[str, str]]:
    return [(pair.rejected[0].content, pair.chosen[0].content) for pair in pairs]


def test_a_refused_edit_is_mended_by_the_edit_that_was_taken() -> None:
    wrong, right = edits(3, "x = 1"), edits(3, "    x = 1", "Indented, then.")
    pairs, _ = hindsight_pairs(trace_of("swe_agent", (wrong, REFUSED), (right, EDITED)))
    assert texts(pairs) == [(wrong, edits(3, "    x = 1"))]
    (pair,) = pairs
    assert pair.evidence == "edit failed (the edit would break the syntax), fixed 1 step later"
    assert (pair.rejected_operation, pair.chosen_operation) == ("edit", "edit")
    assert not pair.chosen[0].tool_calls
    assert [message.role for message in pair.state_messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("between", "right", "reason"),
    [
        (("```\nopen src/other.py\n```", "[File: src/other.py]"), edits(3, "    x = 1"), NO_FIX),
        ((edits(8, "    y = 2"), EDITED), edits(3, "    x = 1"), NO_FIX),
        (Message("user", "leave it"), edits(3, "    x = 1"), NO_FIX),
        (("```\ngoto 3\n```", EDITED), edits(3, "    z = other()"), NO_FIX),
        (("```\ngoto 3\n```", EDITED), edits(7, "    x = 1"), NOT_POSSIBLE),
    ],
    ids=["another file", "lines moved", "the user spoke", "another text", "other lines"],
)
def test_an_edit_that_may_be_another_one_mends_nothing(
    between: tuple[str, str] | Message, right: str, reason: str
) -> None:
    pairs, reasons = hindsight_pairs(
        trace_of("swe_agent", (edits(3, "x = 1"), REFUSED), between, (right, EDITED))
    )
    assert (pairs, dict(reasons)) == ([], {reason: 1})


def test_a_command_of_mini_swe_agent_is_mended_within_its_block() -> None:
    lost = "<returncode>1</returncode>\n<output>\ncat: app/main.py: No such file or directory\n</output>"
    found = "<returncode>0</returncode>\n<output>\nx = 1\n</output>"
    wrong, right = runs("cat app/main.py"), "There it is:\n```bash\ncat src/app/main.py\n```"
    pairs, _ = hindsight_pairs(trace_of("mini_swe_agent", (wrong, lost), (right, found)))
    assert texts(pairs) == [(wrong, runs("cat src/app/main.py"))]


def test_a_search_without_a_hit_is_told_by_its_frame() -> None:
    nothing = "<returncode>1</returncode>\n<output>\n</output>"
    wrong, right = runs("grep -rn 'def f\\(x' src"), runs("grep -rn 'def f(x' src")
    turns = ((wrong, nothing), (right, "<returncode>0</returncode>\n<output>\nsrc/a.py:1:def f(x\n</output>"))
    assert texts(hindsight_pairs(trace_of("mini_swe_agent", *turns))[0]) == [(wrong, right)]


def test_the_answer_to_a_written_function_is_told_from_what_the_user_says() -> None:
    def call(command: str) -> str:
        return f"<function=execute_bash>\n<parameter=command>{command}</parameter>\n</function>"

    lost, found = "cat: app/main.py: No such file or directory", "x = 1"
    wrong, right = "I look.\n" + call("cat app/main.py"), "Again.\n" + call("cat src/app/main.py")
    head = "EXECUTION RESULT of [execute_bash]:\n"
    pairs, _ = hindsight_pairs(trace_of("openhands", (wrong, head + lost), (right, head + found)))
    assert texts(pairs) == [(wrong, "I look.\n" + call("cat src/app/main.py"))]
    assert hindsight_pairs(trace_of("openhands", (wrong, lost), (right, found))) == ([], {})


def test_a_written_call_and_a_tool_call_do_not_mend_each_other() -> None:
    trace = trace_of("swe_agent", (edits(3, "x = 1"), REFUSED), (edits(3, "    x = 1"), EDITED))
    messages = list(trace.contexts[0].messages)
    arguments = calls_in_text(messages[3].content, "swe_agent")[0].arguments
    messages[3] = Message("assistant", "Indented.", (ToolCall("c", "edit", arguments),))
    messages[4] = Message("tool", EDITED, tool_call_id="c")
    mixed = Trace("t", "swe_agent", "d", "swe_agent", (Context(0, tuple(messages), trace.contexts[0].steps),))
    assert hindsight_pairs(mixed) == ([], {NOT_POSSIBLE: 1})


@pytest.mark.parametrize(
    ("text", "other", "harness", "mixed"),
    [
        ("a\n```\nls\n```\nb", "c ```\n<command>pwd</command>", "swe_agent", "a\n```\npwd```\nb"),
        (
            "a\n```\nls\n```",
            "<function=bash><parameter=command>pwd</parameter></function>",
            "swe_agent",
            None,
        ),
        ("no call", "```\nls\n```", "swe_agent", None),
        ("```bash\nls\n``` or\n```bash\nls a\n```", "```bash\npwd\n```", "mini_swe_agent", None),
        ("<bash_code>ls</bash_code>", "```bash\npwd\n```", "mini_swe_agent", "<bash_code>pwd</bash_code>"),
    ],
)
def test_a_call_is_replaced_where_it_is_written(
    text: str, other: str, harness: str, mixed: str | None
) -> None:
    assert replace_text_call(text, other, harness) == mixed


def test_timeouts_and_complaints_are_no_fault_of_the_call() -> None:
    trace = trace_of("swe_agent", (edits(3, "x = 1"), REFUSED), (edits(3, "    x = 1"), EDITED))
    messages = list(trace.contexts[0].messages)
    messages[2] = Message("user", REFUSED, is_error=True, error_kind=ErrorKind.TIMEOUT)
    late = Trace("t", "swe_agent", "d", "swe_agent", (Context(0, tuple(messages), trace.contexts[0].steps),))
    assert hindsight_pairs(late) == ([], {"timed out": 1})
