"""Early stopping against all that could still have come: it stops where, and only where, nothing matters."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agreement.settling import AGREED, CERTAIN, HOPELESS, Cast, Referee, Stop, label_of, settled, together
from agreement.vote import Policy, tally
from records.message import Action, Message, ToolCall, ToolSpec
from records.reply import TeacherReply
from records.state import Context, Step, Trace, TraceState

OWN = Cast("student", "", pairs=False, own=True)
NEAR = Cast("near", "", pairs=False)
A, B = Cast("a", ""), Cast("b", "")
FAMILIES = ("f1", "f2", "f3")


def cast(kind: Cast, family: str) -> Cast:
    return Cast(kind.key, family, kind.pairs, kind.own)


def completions(casts: list[Cast], waiting: list[str]) -> list[list[Cast]]:
    """Everything those waiting may vote, abstaining and actions nobody took yet among it."""
    options = [None, OWN, NEAR, A, B, *(Cast(f"new{n}", "") for n in range(len(waiting)))]
    return [
        [*casts, *(cast(vote, family) for vote, family in zip(votes, waiting, strict=True) if vote)]
        for votes in product(options, repeat=len(waiting))
    ]


votes = st.lists(st.builds(cast, st.sampled_from([OWN, NEAR, A, B]), st.sampled_from(FAMILIES)), max_size=4)
families = st.lists(st.sampled_from(FAMILIES), max_size=3)
policies = st.builds(
    Policy, threshold=st.integers(1, 4), min_families=st.integers(1, 3), level=st.just("canonical")
)


@settings(max_examples=300, deadline=None)
@given(votes, families, policies)
def test_lossless_stops_exactly_where_no_completion_changes_the_label(
    casts: list[Cast], waiting: list[str], policy: Policy
) -> None:
    labels = {label_of(whole, policy) for whole in completions(casts, waiting)}
    assert bool(settled(casts, waiting, policy, "lossless")) == (len(labels) == 1)


@settings(max_examples=150, deadline=None)
@given(votes, families, policies, st.sampled_from(["lossless", "tiered"]))
def test_teachers_asked_together_are_all_needed_whatever_the_others_answer(
    casts: list[Cast], waiting: list[str], policy: Policy, stop: Stop
) -> None:
    wide = together(casts, waiting, policy, stop)
    assert wide == len(waiting) if len(waiting) < 2 else 1 <= wide <= len(waiting)
    for first in range(1, wide):
        for whole in completions(casts, waiting[:first]):
            assert not settled(whole, waiting[first:], policy, stop)


@pytest.mark.parametrize(
    ("casts", "waiting", "lossless", "tiered", "wide"),
    [
        ([], ["f1", "f2", "f3"], "", "", (2, 1)),
        ([cast(OWN, "f1")], ["f2", "f3"], "", AGREED, (1, 0)),
        ([cast(OWN, "f1"), cast(OWN, "f2")], ["f3"], HOPELESS, AGREED, (0, 0)),
        ([cast(A, "f1"), cast(A, "f2")], ["f3"], CERTAIN, CERTAIN, (0, 0)),
        ([cast(A, "f1"), cast(A, "f1")], ["f3"], "", "", (1, 1)),  # one family so far
        ([cast(A, "f1"), cast(A, "f1")], ["f1"], HOPELESS, HOPELESS, (0, 0)),
        ([cast(A, "f1"), cast(B, "f2")], ["f3"], "", "", (1, 1)),
        ([cast(A, "f1"), cast(A, "f2")], ["f3", "f1"], "", "", (1, 1)),  # two more might draw level
        ([cast(NEAR, "f1"), cast(OWN, "f2")], ["f3"], HOPELESS, HOPELESS, (0, 0)),
        ([], ["f1", "f1", "f1"], HOPELESS, HOPELESS, (0, 0)),
        ([], [], HOPELESS, HOPELESS, (0, 0)),
    ],
)
def test_two_of_three_of_two_families(
    casts: list[Cast], waiting: list[str], lossless: str, tiered: str, wide: tuple[int, int]
) -> None:
    policy = Policy()
    assert settled(casts, waiting, policy, "lossless") == lossless
    assert settled(casts, waiting, policy, "tiered") == tiered
    assert settled(casts, waiting, policy, "off") == ""
    if not lossless:
        assert together(casts, waiting, policy, "lossless") == wide[0]
    if not tiered:
        assert together(casts, waiting, policy, "tiered") == wide[1]


TOOL = ToolSpec("Read", "", {"type": "object", "properties": {"file_path": {"type": "string"}}})
TEST_TOOL = ToolSpec("Bash", "", {"type": "object", "properties": {"command": {"type": "string"}}})
TOOLS = (TOOL, TEST_TOOL)


def act(name: str, **arguments: str) -> Action:
    return Action("", (ToolCall("c", name, json.dumps(arguments)),))


ACTIONS = {
    "student": act("Bash", command="pytest -x"),
    "read": act("Read", file_path="/a"),
    "done": Action("Done."),
    "unknown tool": act("Browse", url="x"),
    "failed": None,
}


def state_of(student: Action) -> TraceState:
    context = Context(0, (Message("user", "fix"), student.to_message()), (Step(0, 1, "m", "meta", cwd="/r"),))
    return TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, context.steps[0])


def reply(teacher: int, what: str, family: str, sample: int = 0) -> TeacherReply:
    action = ACTIONS[what]
    failure = "timeout" if action is None else None
    return TeacherReply(
        "t:0:0", f"k{teacher}{sample}", f"t{teacher}", family, sample, 0, action=action, failure=failure
    )


panels = st.lists(st.tuples(st.sampled_from(list(ACTIONS)), st.sampled_from((*FAMILIES, "meta"))), min_size=1)


@settings(max_examples=150, deadline=None)
@given(panels.filter(lambda panel: len(panel) <= 5), st.integers(1, 3), st.integers(1, 2))
def test_a_lossless_stop_gives_the_label_of_the_full_vote(
    panel: list[tuple[str, str]], threshold: int, min_families: int
) -> None:
    """Asked one after the other until settled, against all asked; the student's family has no vote."""
    policy = Policy(threshold=threshold, min_families=min_families)
    state = state_of(act("Bash", command="pytest -x"))
    referee = Referee({"t:0:0": (state, TOOLS)}, policy, "lossless")
    replies = [reply(number, what, family) for number, (what, family) in enumerate(panel)]
    asked = 0
    while not referee.stand("t:0:0", replies[:asked], [f for _, f in panel[asked:]]).settled:
        asked += 1
    assert asked <= len(panel)
    labels = []
    for heard in (replies[:asked], replies):
        told = tally(state, TOOLS, heard, policy)
        labels.append(next((vote.key for vote in told.votes if vote.agrees), None))
    assert labels[0] == labels[1]


def test_a_vote_is_the_first_valid_sample_and_a_student_that_did_nothing_settles_at_once() -> None:
    referee = Referee({"t:0:0": (state_of(ACTIONS["student"] or Action()), TOOLS)}, Policy(), "tiered")
    heard = [reply(0, "failed", "f1"), reply(0, "student", "f1", sample=1)]
    assert referee.stand("t:0:0", heard, ["f2", "f3"]).settled == AGREED
    assert referee.stand("t:0:0", heard[:1], ["f2", "f3"]).settled == ""
    assert referee.stand("u:0:0", heard, ["f2", "f3"]) == referee.stand("u:0:0", [], ["f2", "f3"])
    idle = Referee({"t:0:0": (state_of(Action(" ")), TOOLS)}, Policy(), "lossless")
    assert idle.stand("t:0:0", [], ["f2", "f3"]).settled == HOPELESS
