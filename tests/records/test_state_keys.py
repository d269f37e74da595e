"""Which states are the same: what was before a step decides, not where it was met."""

from dataclasses import replace

from tracemill.records.message import Message, ToolCall
from tracemill.records.state_keys import state_keys
from tracemill.records.trace import Context, Step, Trace


def trace(name: str, *said: str, ids: str = "c", arguments: str = '{"a": 1, "b": 2}') -> Trace:
    """A session that acts once after each message of the user's."""
    messages: list[Message] = []
    steps: list[Step] = []
    for index, text in enumerate(said):
        call = ToolCall(f"{ids}{index}", "look", arguments)
        messages.append(Message("user", text))
        steps.append(Step(index, len(messages)))
        messages += [
            Message("assistant", "", (call,)),
            Message("tool", f"seen {text}", tool_call_id=call.id),
        ]
    return Trace(name, "openhands", "d", "openhands", (Context(0, tuple(messages), tuple(steps)),))


def test_copies_and_forks_share_the_keys_of_what_they_share() -> None:
    one, fork = state_keys(trace("one", "x", "y", "z")), state_keys(trace("fork", "x", "y", "other"))
    assert list(one) == ["one:0:0", "one:0:1", "one:0:2"]
    assert [one[f"one:0:{n}"] == fork[f"fork:0:{n}"] for n in range(3)] == [True, True, False]
    assert len({*one.values(), *fork.values()}) == 4
    other = replace(trace("one", "x", "y", "z"), trace_id="copy", harness="swe_agent", source="swe_gym")
    assert list(state_keys(other).values()) == list(one.values())


def test_ids_and_spelling_of_calls_do_not_count_and_what_they_say_does() -> None:
    plain = list(state_keys(trace("one", "x", "y")).values())
    assert list(state_keys(trace("one", "x", "y", ids="toolu_")).values()) == plain
    assert list(state_keys(trace("one", "x", "y", arguments='{"b":2,"a":1}')).values()) == plain
    for arguments in ('{"a": 1, "b": 3}', "no JSON", "[1]"):
        first, second = state_keys(trace("one", "x", "y", arguments=arguments)).values()
        assert (first == plain[0], second == plain[1]) == (True, False)
