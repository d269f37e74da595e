"""Early stopping against all that could still have come: it stops where nothing that is out matters."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tracemill.agreement.calls.effect import ActionEffect
from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.agreement.voting.early_stop import (
    AGREED,
    CERTAIN,
    HOPELESS,
    EarlyStopper,
    Stop,
    early_stop_batch_size,
    why_stop_early,
)
from tracemill.agreement.voting.labels import ValidVote, VoteLabel, label_agrees_by_intent, label_of
from tracemill.agreement.voting.policy import STRICT, VotePolicy
from tracemill.agreement.voting.vote import tally_votes
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState


def plain(name: str, intent: str = "") -> ActionKeys:
    return ActionKeys(name, name, name, intent or name, intent or name)


def known(
    cls: str, *deeds: ActionEffect, exact: str = "", decisive: bool = True, guess: bool = False
) -> ActionKeys:
    effects = [repr(deed.effect) for deed in deeds]
    effect, intent = f"{cls}:{effects}", f"{cls}:{[deed.intent for deed in deeds if not deed.setup]}"
    reading = not any(deed.mutating for deed in deeds)
    return ActionKeys(
        exact or effect,
        effect,
        effect,
        intent,
        cls,
        deeds,
        frozenset(effects),
        reading,
        decisive=decisive,
        guess=guess,
    )


def edit(text: str, proven: bool) -> ActionEffect:
    return ActionEffect(Operation.EDIT, ("edit", text), ("edit", "/a.py"), True, proven=proven)


def search(scope: str) -> ActionEffect:
    return ActionEffect(Operation.SEARCH, ("search", scope), ("search", "word"))


def read_effect(path: str, first: int, last: int | None) -> ActionEffect:
    return ActionEffect(Operation.READ, ("read", path, first, last), ("read", path))


OWN, NEAR, A, B = plain("student"), plain("near", "student"), plain("a"), plain("b")
FAMILIES = ("f1", "f2", "f3")
LINES = [read_effect("/a", first, last) for first, last in ((1, 100), (10, 109), (20, 119), (1, 30))]
OTHER = read_effect("/b", 1, None)
CD = ActionEffect(Operation.RUN, ("cd", "/x"), ("cd", "/x"), setup=True)
MAKE = ActionEffect(Operation.RUN, ("run", "make"), ("run", "make"), mutating=True, decisive=False)
UNIVERSE = [
    plain("finish"),
    *(known("read", deed) for deed in LINES),
    known("read", LINES[0], exact="said otherwise"),
    known("read", LINES[0], guess=True),
    known("read", LINES[2], guess=True),
    known("read", OTHER),
    known("read", LINES[1], OTHER),
    known("read", CD, LINES[3]),
    known("edit", edit("x = 1", proven=True)),
    known("edit", edit("x  =  1", proven=True)),
    known("edit", edit("x = 2", proven=False)),
    known("edit", edit("x = 2", proven=False), guess=True),
    known("create", replace(edit("y", proven=False), operation=Operation.CREATE)),
    known("search", search("/")),
    known("search", search("/src")),
    known("search", search("/lib"), guess=True),
    known("run", MAKE, decisive=False),
]
STUDENTS = [*UNIVERSE, *(replace(keys, broken=True) for keys in UNIVERSE)]

plain_votes = st.lists(
    st.builds(ValidVote, st.just("t"), st.sampled_from(FAMILIES), st.sampled_from([OWN, NEAR, A, B])),
    max_size=4,
)
waiting_families = st.lists(st.sampled_from(FAMILIES), max_size=3)
plain_policies = st.builds(
    VotePolicy,
    threshold=st.integers(1, 4),
    min_families=st.integers(1, 3),
    level=st.sampled_from(["canonical", "effect"]),
    unanimous=st.booleans(),
)
any_policies = st.builds(
    VotePolicy,
    threshold=st.integers(1, 3),
    min_families=st.integers(1, 2),
    level=st.sampled_from(["exact", "canonical", "effect", "effect", "effect", "intent"]),
    far=st.booleans(),
    unanimous=st.sampled_from([False, False, False, True]),
    bare_needs_all=st.booleans(),
    dead_zone=st.booleans(),
    grounded=st.booleans(),
    proven=st.booleans(),
) | st.sampled_from([VotePolicy(), VotePolicy(), STRICT])
any_votes = st.lists(
    st.tuples(st.sampled_from(FAMILIES), st.sampled_from(UNIVERSE), st.integers(0, 1)), max_size=5
)


def voices(cast: Sequence[tuple[str, ActionKeys, int]]) -> list[ValidVote]:
    return [ValidVote(f"t{n}", family, known, length) for n, (family, known, length) in enumerate(cast)]


def completions(
    votes: list[ValidVote], waiting: Sequence[str], universe: Sequence[ActionKeys]
) -> list[list[ValidVote]]:
    """Everything those waiting may vote of a universe, abstaining among it."""
    return [
        [*votes, *(ValidVote("u", family, vote) for family, vote in zip(waiting, cast, strict=True) if vote)]
        for cast in product([None, *universe], repeat=len(waiting))
    ]


def plain_universe(waiting: Sequence[str]) -> list[ActionKeys]:
    return [OWN, NEAR, A, B, *(plain(f"new{number}") for number in range(len(waiting)))]


def same_label(
    votes: list[ValidVote],
    part: VoteLabel,
    whole: list[ValidVote],
    full: VoteLabel,
    own: ActionKeys,
    by: VotePolicy,
) -> bool:
    """Both none; or both a pair, of the same votes and more, or of the one intent that was agreed on."""
    if (part.verdict == "pair") != (full.verdict == "pair"):
        return False
    if part.chosen is None or full.chosen is None or set(part.backers) <= set(full.backers):
        return True
    chosen = whole[full.chosen].keys
    backers = [votes[place].keys for place in part.backers]
    return all(label_agrees_by_intent(keys, own, by) and keys.intent == chosen.intent for keys in backers)


@settings(max_examples=300, deadline=None)
@given(plain_votes, waiting_families, plain_policies)
def test_lossless_stops_exactly_where_no_completion_changes_the_label(
    votes: list[ValidVote], waiting: list[str], policy: VotePolicy
) -> None:
    """Of actions that are the same, near in intent, or nothing to each other."""
    labels: set[str] = set()
    for whole in completions(votes, waiting, plain_universe(waiting)):
        label = label_of(whole, OWN, policy)
        labels.add("" if label.chosen is None else whole[label.chosen].keys.effect)
    assert bool(why_stop_early(votes, OWN, waiting, policy, "lossless")) == (len(labels) == 1)


@settings(max_examples=600, deadline=None)
@given(any_votes, any_votes, st.sampled_from(STUDENTS), any_policies)
def test_lossless_never_changes_a_label_whatever_comes(
    cast: list[tuple[str, ActionKeys, int]],
    more: list[tuple[str, ActionKeys, int]],
    own: ActionKeys,
    policy: VotePolicy,
) -> None:
    """Overlapping reads, files alike in layout, guesses, outcomes not known, intents that may do."""
    whole = voices([*cast, *more])
    votes = whole[: len(cast)]
    assume(why_stop_early(votes, own, [family for family, _, _ in more], policy, "lossless"))
    part = label_of(votes, own, policy)
    for size in range(len(more) + 1):
        some = whole[: len(cast) + size]
        assert same_label(votes, part, some, label_of(some, own, policy), own, policy)


@settings(max_examples=150, deadline=None)
@given(any_votes, st.lists(st.sampled_from(FAMILIES), max_size=2), st.sampled_from(STUDENTS), any_policies)
def test_lossless_holds_against_every_completion(
    cast: list[tuple[str, ActionKeys, int]], waiting: list[str], own: ActionKeys, policy: VotePolicy
) -> None:
    votes = voices(cast)
    why = why_stop_early(votes, own, waiting, policy, "lossless")
    if why:
        part = label_of(votes, own, policy)
        assert (why == CERTAIN) == (part.verdict == "pair")
        for whole in completions(votes, waiting, UNIVERSE):
            assert same_label(votes, part, whole, label_of(whole, own, policy), own, policy)
    tiered = why_stop_early(votes, own, waiting, policy, "tiered")
    assert tiered == (why or tiered) or tiered == AGREED
    if tiered == AGREED:
        alone = replace(policy, threshold=1, min_families=1)
        assert {label_of([vote], own, alone).verdict for vote in votes} <= {
            "agrees_with_student",
            "dead_zone",
        }


@settings(max_examples=100, deadline=None)
@given(plain_votes, waiting_families, plain_policies, st.sampled_from(["lossless", "tiered"]))
def test_teachers_asked_together_are_all_needed_whatever_the_others_answer(
    votes: list[ValidVote], waiting: list[str], policy: VotePolicy, stop: Stop
) -> None:
    wide = early_stop_batch_size(votes, OWN, waiting, policy, stop)
    assert wide == len(waiting) if len(waiting) < 2 else 1 <= wide <= len(waiting)
    for first in range(1, wide):
        for whole in completions(votes, waiting[:first], plain_universe(waiting)):
            assert not why_stop_early(whole, OWN, waiting[first:], policy, stop)


def votes_of(*cast: tuple[ActionKeys, str]) -> list[ValidVote]:
    return [ValidVote(f"t{number}", family, known) for number, (known, family) in enumerate(cast)]


@pytest.mark.parametrize(
    ("votes", "waiting", "lossless", "tiered", "wide"),
    [
        (votes_of(), ["f1", "f2", "f3"], "", "", (2, 1)),
        (votes_of((OWN, "f1")), ["f2", "f3"], "", AGREED, (1, 0)),
        (votes_of((OWN, "f1"), (OWN, "f2")), ["f3"], HOPELESS, AGREED, (0, 0)),
        (votes_of((A, "f1"), (A, "f2")), ["f3"], CERTAIN, CERTAIN, (0, 0)),
        (votes_of((A, "f1"), (A, "f1")), ["f3"], "", "", (1, 1)),  # one family so far
        (votes_of((A, "f1"), (A, "f1")), ["f1"], HOPELESS, HOPELESS, (0, 0)),
        (votes_of((A, "f1"), (B, "f2")), ["f3"], "", "", (1, 1)),
        (votes_of((A, "f1"), (A, "f2")), ["f3", "f1"], "", "", (1, 1)),  # two more might draw level
        (votes_of((NEAR, "f1"), (OWN, "f2")), ["f3"], HOPELESS, HOPELESS, (0, 0)),
        (votes_of(), ["f1", "f1", "f1"], HOPELESS, HOPELESS, (0, 0)),
        (votes_of(), [], HOPELESS, HOPELESS, (0, 0)),
    ],
)
def test_two_of_three_of_two_families(
    votes: list[ValidVote], waiting: list[str], lossless: str, tiered: str, wide: tuple[int, int]
) -> None:
    policy = VotePolicy()
    assert why_stop_early(votes, OWN, waiting, policy, "lossless") == lossless
    assert why_stop_early(votes, OWN, waiting, policy, "tiered") == tiered
    assert why_stop_early(votes, OWN, waiting, policy, "off") == ""
    if not lossless:
        assert early_stop_batch_size(votes, OWN, waiting, policy, "lossless") == wide[0]
    if not tiered:
        assert early_stop_batch_size(votes, OWN, waiting, policy, "tiered") == wide[1]


READS = [known("read", deed) for deed in LINES]
EDITS = [known("edit", edit("x = 2", proven=False)), known("edit", edit("x = 3", proven=True))]
SEARCHES = [known("search", search(scope)) for scope in ("/", "/src")]
FAR, GUESS = known("read", OTHER), known("search", search("/"), guess=True)


@pytest.mark.parametrize(
    ("votes", "student", "waiting", "lossless"),
    [
        (votes_of((READS[0], "f1"), (READS[0], "f2")), FAR, ["f3"], CERTAIN),
        (votes_of((READS[0], "f1"), (READS[1], "f2")), FAR, ["f3"], ""),
        # where the student is far the intent holds them together, from whatever family the third is
        (votes_of((READS[0], "f1"), (READS[1], "f2")), SEARCHES[0], ["f3"], CERTAIN),
        (votes_of((SEARCHES[0], "f1"), (SEARCHES[1], "f2")), FAR, ["f3"], CERTAIN),
        (votes_of((SEARCHES[0], "f1"), (SEARCHES[1], "f2")), FAR, ["f2"], ""),  # /src twice by one family
        (votes_of((GUESS, "f1"), (GUESS, "f2")), FAR, ["f3"], ""),  # a guess wants three
        (votes_of((GUESS, "f1"), (GUESS, "f2"), (GUESS, "f3")), FAR, ["f1"], CERTAIN),
        # the student's edit has an unknown outcome: three are wanted, and cannot be had
        (votes_of((EDITS[1], "f1"), (READS[0], "f2")), EDITS[0], ["f3"], ""),
        (votes_of((EDITS[1], "f1"), (EDITS[0], "f2")), EDITS[0], ["f3"], HOPELESS),
        (votes_of((READS[3], "f1"), (READS[0], "f2")), READS[2], ["f3"], HOPELESS),  # all of one intent
        (votes_of((FAR, "f1"), (READS[0], "f2")), READS[2], ["f3"], ""),
    ],
)
def test_two_of_three_by_the_whole_ladder(
    votes: list[ValidVote], student: ActionKeys, waiting: list[str], lossless: str
) -> None:
    assert why_stop_early(votes, student, waiting, VotePolicy(), "lossless") == lossless


def edits(*texts: str, path: str = "/a.py", proven: bool = False) -> list[ActionKeys]:
    return [known("edit", replace(edit(text, proven), intent=("edit", path))) for text in texts]


L0, L1, L2, L3 = READS
WITH_CD = known("read", CD, LINES[3])
ROOT, SRC = SEARCHES
LIB, RUN = known("search", search("/lib")), known("run", MAKE, decisive=False)
FINISH = plain("finish")
RUNS = [ActionEffect(Operation.RUN_TEST, ("test", n), ("test", "/a.py"), True) for n in range(3)]


@pytest.mark.parametrize(
    ("votes", "student", "then", "policy"),
    [
        # two votes and one more draw level
        ([FAR, FAR, FAR, L0, L0], FINISH, L0, VotePolicy(far=False)),
        ([L0, L0, L2], FAR, L2, VotePolicy(level="exact", far=False)),
        # a third tells them apart
        ([FAR, FAR], FINISH, L0, STRICT),
        (  # the third does what the student does, and more
            [known("search", search("/"), each) for each in RUNS[1:]],
            known("run_test", RUNS[0]),
            known("search", search("/"), RUNS[0]),
            VotePolicy(),
        ),
        (
            [replace(L2, exact="!")] * 2 + [WITH_CD] * 2,
            known("read", CD),
            WITH_CD,
            VotePolicy(level="intent"),
        ),
        # held together by their intent, outrun by two of one effect
        (
            edits("x = 2", "x = 3", "x = 4"),
            known("create", edit("y", proven=False)),
            edits("x = 2")[0],
            VotePolicy(),
        ),
        (
            [known("search", search("/lib"), guess=True), ROOT, SRC],
            FAR,
            known("search", search("/lib"), guess=True),
            VotePolicy(),
        ),
        ([ROOT, SRC, RUN], FAR, RUN, VotePolicy()),
        ([ROOT, SRC, LIB, L0, L2], FINISH, L3, VotePolicy(threshold=3)),
        # what looked hopeless comes to be a pair
        ([known("read", LINES[3], guess=True)], known("read", LINES[0], guess=True), L3, VotePolicy()),
        ([ROOT, SRC], FAR, LIB, VotePolicy(threshold=3)),
        (
            edits("x = 2", path="/b.py", proven=True),
            known("edit", edit("y", proven=True)),
            None,
            VotePolicy(),
        ),
    ],
)
def test_one_vote_more_may_change_what_looks_certain(
    votes: list[ActionKeys], student: ActionKeys, then: ActionKeys | None, policy: VotePolicy
) -> None:
    """`then` is that vote, None for one more like the first; of two that say the same it is the shorter."""
    cast = [ValidVote(f"t{n}", f"f{n}", keys, 9) for n, keys in enumerate(votes)]
    more = ValidVote("u", "another", then or votes[0], 0)
    part, full = label_of(cast, student, policy), label_of([*cast, more], student, policy)
    assert not same_label(cast, part, [*cast, more], full, student, policy)
    assert why_stop_early(cast, student, [more.family], policy, "lossless") == ""


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
    policy = VotePolicy(threshold=threshold, min_families=min_families)
    state = state_of(act("Bash", command="pytest -x"))
    referee = EarlyStopper({"t:0:0": (state, TOOLS)}, policy, "lossless")
    replies = [reply(number, what, family) for number, (what, family) in enumerate(panel)]
    asked = 0
    while not referee.decide("t:0:0", replies[:asked], [f for _, f in panel[asked:]]).reason:
        asked += 1
    assert asked <= len(panel)
    labels = []
    for heard in (replies[:asked], replies):
        told = tally_votes(state, TOOLS, heard, policy)
        paired = told.verdict == "pair"
        labels.append(next((vote.key for vote in told.votes if paired and vote.agrees), None))
    assert labels[0] == labels[1]


def test_a_vote_is_the_first_valid_sample_and_a_student_that_did_nothing_settles_at_once() -> None:
    referee = EarlyStopper(
        {"t:0:0": (state_of(ACTIONS["student"] or Action()), TOOLS)}, VotePolicy(), "tiered"
    )
    heard = [reply(0, "failed", "f1"), reply(0, "student", "f1", sample=1)]
    assert referee.decide("t:0:0", heard, ["f2", "f3"]).reason == AGREED
    assert referee.decide("t:0:0", heard[:1], ["f2", "f3"]).reason == ""
    assert referee.decide("u:0:0", heard, ["f2", "f3"]) == referee.decide("u:0:0", [], ["f2", "f3"])
    idle = EarlyStopper({"t:0:0": (state_of(Action(" ")), TOOLS)}, VotePolicy(), "lossless")
    assert idle.decide("t:0:0", [], ["f2", "f3"]).reason == HOPELESS
