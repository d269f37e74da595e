"""Calls that a text writes out, and texts that only speak of a tool."""

import pytest

from tracemill.agreement.calls.text_written_calls import has_text_written_call
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import tally_votes
from tracemill.harnesses.agents.registry import harness_for
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

WEATHER = ToolSpec("weather_get_now", "", {"properties": {"city": {"type": "string"}}, "required": ["city"]})
LAMPS = ToolSpec("lamps", "", {"properties": {"room": {"type": "string"}, "on": {"type": "boolean"}}})
TOOLS = (WEATHER, LAMPS)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[weather_get_now(city='Oslo')]", True),
        ('weather.get_now(city="Oslo")', True),
        ("[weather\\_get\\_now(city='Oslo')]", True),
        ("```python\n[lamps(room='hall'), lamps(room='attic')]\n```", True),
        ("lamps({'room': 'hall'})", True),
        ("I call it now:\n\n    lamps(\n  room='hall')", True),
        ('{"name": "weather.get_now", "arguments": {"city": "Oslo"}}', True),
        ("[{'name': 'lamps', 'parameters': {}}]", True),
        ("The tool lamps() tells which are lit.", False),
        ("It is lamps (room = hall) that are lit.", False),
        ("lamps(colour='red') is no such call.", False),
        ("my_lamps(room='hall')", False),
        ("if lamps(room == 3):", False),
        ('The package.json has {"name": "lamps", "version": "1"}.', False),
        ("Oslo has rain.", False),
        ("", False),
    ],
)
def test_a_call_written_out_is_told_from_a_mention(text: str, written: bool) -> None:
    assert has_text_written_call(text, TOOLS) is written
    expected = "call written as text" if written else None if text else "empty"
    assert why_reply_invalid(said("x", Action(text)), TOOLS) == expected


def test_beside_a_call_that_is_made_a_text_may_write_it() -> None:
    assert why_reply_invalid(said("x", lamp("hall", "I do lamps(room='hall').")), TOOLS) is None


def test_without_tools_nothing_is_a_call() -> None:
    assert not has_text_written_call("[lamps(room='hall')]", ())


def test_code_that_uses_names_of_an_agents_tools_is_an_answer() -> None:
    told = 'Done. `read(path="x")` is now:\n```python\nwith open("a.txt") as file:\n    edit(file, 3)\n```'
    for harness in ("claude_code", "swe_agent", "openhands"):
        tools = tuple(harness_for(harness).tools.values())
        assert not has_text_written_call(told, tools), harness


def test_teachers_that_write_a_call_out_do_not_agree_to_finish() -> None:
    """Two answers in text are no vote for ending, where each is a call that was not made."""
    student = lamp("hall")
    written = [said("qwen", Action("[lamps(room='attic')]")), said("zai", Action('lamps({"room": "attic"})'))]
    ended = [said("qwen", Action("Nothing is lit.")), said("zai", Action("No lamp is on."))]
    assert decided(student, written) == ("too_few_votes", ["call written as text"] * 2)
    assert decided(student, ended) == ("pair", ["", ""])


def test_of_a_tool_that_is_not_known_the_name_alone_is_no_decision() -> None:
    """Far from the student teachers may agree on what they are about: the name of a tool tells it not."""
    done = Action("Nothing to do.")
    apart = [said("qwen", lamp("hall")), said("zai", lamp("attic"))]
    same = [said("qwen", lamp("hall")), said("zai", lamp("hall", "I look."))]
    assert decided(done, apart)[0] == "no_agreement"
    assert decided(done, same)[0] == "pair"


def lamp(room: str, text: str = "") -> Action:
    return Action(text, (ToolCall("c", "lamps", f'{{"room": "{room}"}}'),))


def said(teacher: str, action: Action) -> TeacherReply:
    return TeacherReply("t:0:0", f"k-{teacher}", teacher, teacher, 0, 0, action=action)


def decided(student: Action, replies: list[TeacherReply]) -> tuple[str, list[str]]:
    messages = (Message("user", "Which lamps are lit?"), student.to_message())
    context = Context(0, messages, (Step(0, 1, "claude-x", "anthropic"),), tools=TOOLS)
    trace = Trace("t", "table", "d", "generic", (context,))
    told = tally_votes(TraceState(trace, context, context.steps[0]), TOOLS, replies, VotePolicy())
    return told.verdict, [vote.reason for vote in told.votes]
