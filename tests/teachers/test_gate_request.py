"""What a request asks for and how an action takes it up, and how much of the money goes to exploration."""

import json
from collections.abc import Sequence

import pytest

from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace
from tracemill.teachers.gate.budget_pacing import paced_explored_share
from tracemill.teachers.gate.features import build_step_features
from tracemill.teachers.gate.pair_model import PairModel, learn_pair_model
from tracemill.teachers.gate.request_features import UserRequest, request_feature_words

WEATHER = ToolSpec(
    "get_weather",
    "Report the forecast of a town.",
    {"properties": {"town": {"type": "string"}}, "required": ["town"]},
)
STOCKS = ToolSpec("stockPrice", "Price of shares on an exchange.", {"properties": {}})


def call(name: str = "get_weather", **arguments: object) -> ToolCall:
    return ToolCall("1", name, json.dumps(arguments))


def words(messages: Sequence[Message], tools: tuple[ToolSpec, ...], *cuts: int) -> list[dict[str, str]]:
    steps = tuple(Step(number, cut, "m") for number, cut in enumerate(cuts))
    trace = Trace("t", "swe_agent", "d", "generic", (Context(0, tuple(messages), steps, tools=tools),))
    return [dict(word.split("=", 1) for word in step.words) for step in build_step_features(trace, {})]


@pytest.mark.parametrize(
    ("action", "tools", "found"),
    [
        (Action("It rains."), (STOCKS, WEATHER), ["fits=said*3", "items*calls=2*0"]),
        (Action("It rains."), (STOCKS,), ["fits=said*0", "items*calls=2*0"]),
        (Action("", (call(town="Oslo"),)), (STOCKS, WEATHER), ["fits=called*3", "items*calls=2*1"]),
        (Action("", (call("stockPrice"),)), (STOCKS, WEATHER), ["fits=called*0", "items*calls=2*1"]),
        (Action("", (call("none_such"),)), (STOCKS, WEATHER), ["fits=called*0", "items*calls=2*1"]),
        (Action("", (call(), call(), call())), (WEATHER,), ["fits=called*3", "items*calls=2*2"]),
        (Action("", (call(),)), (ToolSpec("get_weather", "", {}),), []),
        (Action("It rains."), (), []),
    ],
)
def test_an_action_is_held_against_the_request(
    action: Action, tools: tuple[ToolSpec, ...], found: list[str]
) -> None:
    request = UserRequest.of("What is the weather forecast for the towns Oslo, Bergen and Voss?")
    assert request_feature_words(request, action, Operation.OTHER, tools) == found


def test_items_and_calls_are_counted_up_to_a_bound_and_long_texts_to_theirs() -> None:
    many = UserRequest.of("a, b; c and d, then e also f")
    assert many.items == 6
    found = request_feature_words(many, Action("x"), Operation.FINISH, (WEATHER,))
    assert found == ["fits=said*0", "items*calls=4*0"]
    assert UserRequest.of("x" * 4000 + ", weather and more") == UserRequest.of("x" * 4000)


@pytest.mark.parametrize(
    ("asked", "command", "found"),
    [
        ("How many airports are there?", "SELECT count(*) FROM airports", ["sentence=5", "told=1"]),
        ("Count the airports", "count airports", ["sentence=4", "told=4"]),
        ("Count the airports", "show tables", ["sentence=4", "told=0"]),
        ("Go", "", ["sentence=2", "told=0"]),
        ("word " * 31, "ls", ["sentence=10", "told=0"]),
        ("word " * 32, "ls", []),
        ("?", "ls", []),
    ],
)
def test_a_line_of_code_is_held_against_a_request_of_a_sentence(
    asked: str, command: str, found: list[str]
) -> None:
    ran = Action("", (call("run_sql", command=command),))
    assert request_feature_words(UserRequest.of(asked), ran, Operation.READ, ()) == found
    assert request_feature_words(UserRequest.of(asked), ran, Operation.OTHER, ()) == []
    assert request_feature_words(UserRequest.of(asked), Action("It rains."), Operation.FINISH, ()) == []


def test_what_a_call_passes_is_told_and_not_how_its_arguments_are_named() -> None:
    request = UserRequest.of("Read the command table")
    named = Action("", (call("x", command="ls", table=3),))
    unread = Action("", (ToolCall("1", "x", '["command", "table"'),))
    assert request_feature_words(request, named, Operation.RUN, ()) == ["sentence=5", "told=0"]
    assert request_feature_words(request, unread, Operation.RUN, ()) == ["sentence=5", "told=4"]


def test_before_anything_was_asked_a_short_request_that_is_not_taken_up_comes_first() -> None:
    chances = [
        PairModel().probability(words)
        for words in (
            ["sentence=10", "told=4"],
            ["sentence=10", "told=0"],
            ["sentence=7", "told=1"],
            [],
            ["sentence=5", "told=1"],
        )
    ]
    assert chances == sorted(chances)
    assert chances[-1] > 1.7 * chances[0]


def test_a_request_is_told_of_the_first_action_after_it_alone() -> None:
    done = Message("assistant", "", (call(town="Oslo"),))
    messages = [
        Message("user", "The weather in Oslo?"),
        done,
        Message("tool", "rain", tool_call_id="1"),
        Message("assistant", "It rains."),
        Message("user", "And shares, and prices?"),
        Message("assistant", "No."),
    ]
    first, second, third = words(messages, (STOCKS, WEATHER), 1, 3, 5)
    assert (first["fits"], first["items*calls"]) == ("called*1", "0*1")
    assert not {"fits", "items*calls"} & second.keys()
    assert (third["fits"], third["items*calls"]) == ("said*2", "3*0")


def test_a_text_that_writes_a_call_or_fakes_a_result_is_told_as_invalid() -> None:
    said = ['get_weather(town="Oslo")', "Observation: rain", "It rains."]
    found = [
        words([Message("user", "Rain?"), Message("assistant", text)], (WEATHER,), 1)[0]["invalid"]
        for text in said
    ]
    assert found == ["call_written_as_text", "fakes_a_tool_result", "no"]


def test_before_anything_was_asked_a_student_that_misses_a_tool_is_likelier_to_be_outvoted() -> None:
    chances = [
        PairModel().probability([f"invalid={why}", f"fits={fits}"])
        for why, fits in (
            ("no", "said*0"),
            ("no", "called*4"),
            ("no", "said*1"),
            ("no", "said*2"),
            ("required_argument_missing", "called*0"),
        )
    ]
    assert chances == sorted(chances)
    assert chances[-1] > 4 * chances[0]
    assert learn_pair_model([(("fits=said*0",), 1.0)] * 40).probability(["fits=said*0"]) > 0.5


@pytest.mark.parametrize(
    ("explore", "share", "found"),
    [
        (0.05, 1.0, 0.05),
        (0.05, 0.25, 0.05),
        (0.05, 0.1, 0.02),
        (0.05, 0.0, 0.0),
        (0.5, 0.1, 0.05),  # half of the money, where half of the steps is wanted
        (1.0, float("inf"), 1.0),
    ],
)
def test_exploration_takes_a_fifth_of_the_money_at_most(explore: float, share: float, found: float) -> None:
    assert paced_explored_share(explore, share) == pytest.approx(found)
