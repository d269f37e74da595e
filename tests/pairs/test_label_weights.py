"""What labels of scripted teachers are worth, in a world where it is known which of them are right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from benchmarks.teaching.formats import call_arguments, write_sessions
from benchmarks.teaching.policies import REGIMES, Session, replay, weak_session
from benchmarks.teaching.worlds.registry import WORLDS
from benchmarks.teaching.worlds.world import Action
from tracemill.flows.release.label_rows import ReleaseLabels, settle_labels
from tracemill.ingesters.ingester_classes import SWEGymIngester
from tracemill.pairs.action_labels import steps_past_departure
from tracemill.pairs.label_weights import LEAST_SESSIONS, LabelWeight, LabelWeights
from tracemill.pairs.other_views import origin_of
from tracemill.pairs.step_features import ContextFeatures
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Outcome, Step, Trace, TraceState
from tracemill.records.views import ActionLabel

REPAIR = WORLDS["repair"]
Played = list[tuple[Session, Trace]]


@dataclass(frozen=True)
class Agreed:
    """An action that at least two of three teachers agree on, and whether it is right."""

    state: TraceState
    message: Message
    agreement: float
    right: bool


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """150 sessions of the weak student in the world `repair`, as their files are read."""
    sessions = [weak_session(REPAIR, task) for task in range(150)]
    folder = write_sessions(REPAIR, sessions, tmp_path_factory.mktemp("repair") / "sessions")
    traces = {trace.instance_id: trace for trace in SWEGymIngester().ingest(folder)}
    found = [(session, traces[f"repair__repair-{session.task}"]) for session in sessions]
    assert all(trace.step_count == len(session.turns) for session, trace in found)
    assert Counter(trace.outcome for _, trace in found) == {"not_resolved": 77, "resolved": 73}
    return found


@pytest.fixture(scope="module")
def labels(played: Played) -> dict[str, list[Agreed]]:
    """The labels of every regime of teachers at every step."""
    return {regime: [each for pair in played for each in _agreed(regime, *pair)] for regime in REGIMES}


def _agreed(regime: str, session: Session, trace: Trace) -> list[Agreed]:
    actions = [turn.action for turn in session.turns]
    found: list[Agreed] = []
    for place, state in enumerate(trace.states()):
        env = replay(REPAIR, session.task, actions[:place])
        key = (REPAIR.name, session.task, place)
        votes = Counter(teacher.action(REPAIR, env, key) for teacher in REGIMES[regime])
        [(action, count)] = votes.most_common(1)
        if count >= 2:
            own = action == actions[place]
            said = state.context.messages[state.step.cut] if own else message(action)
            found.append(Agreed(state, said, count / 3, action in REPAIR.right(env)))
    return found


def message(action: Action) -> Message:
    """An action as a teacher's message."""
    return Message("assistant", action.text, (ToolCall("t", action.tool, call_arguments(action)),))


def weigh(weights: LabelWeights, labels: Sequence[Agreed]) -> list[LabelWeight]:
    return [weights.weigh(each.state, each.message, each.agreement) for each in labels]


@pytest.fixture(scope="module")
def weights(played: Played) -> LabelWeights:
    return LabelWeights.fit(trace for _, trace in played)


def precision_and_recall(
    labels: Sequence[Agreed], weights: Sequence[LabelWeight]
) -> tuple[float, float, float]:
    """Precision by agreement alone and by weight, and the share of its agreement that what is right keeps."""
    pairs = list(zip(labels, weights, strict=True))
    agreed = sum(label.agreement for label in labels)
    agreed_right = sum(label.agreement for label in labels if label.right)
    weight = sum(each.weight for each in weights)
    weight_right = sum(each.weight for label, each in pairs if label.right)
    return agreed_right / agreed, weight_right / weight, weight_right / agreed_right


@pytest.mark.parametrize(
    ("regime", "agreed", "rise"),
    [
        ("independent", 0.98, 0.005),
        ("shared_25", 0.871, 0.08),
        ("shared_50", 0.786, 0.12),
        ("one_good", 0.786, 0.12),
        ("common_20", 0.752, 0.12),
    ],
)
def test_outcomes_find_errors_that_teachers_share(
    weights: LabelWeights, labels: dict[str, list[Agreed]], regime: str, agreed: float, rise: float
) -> None:
    before, after, kept = precision_and_recall(labels[regime], weigh(weights, labels[regime]))
    assert before == pytest.approx(agreed, abs=0.001)
    assert after >= before + rise
    assert kept >= 0.85


def test_signs_of_shared_errors_are_warnings(weights: LabelWeights, labels: dict[str, list[Agreed]]) -> None:
    said: dict[str, list[str]] = {}
    for regime in REGIMES:
        met = LabelWeights(weights.models, weights.n_solved)
        weigh(met, labels[regime])
        said[regime] = [warning.split(":")[0] for warning in met.warnings()]
    agent = "of the sessions that failed the teachers agree with all that the agent did"
    other = "of the sessions that succeeded the teachers agree on another action that outcomes speak against"
    assert said == {
        "independent": [],
        "shared_25": [f"In 24% {agent}", f"In 26% {other}"],
        "shared_50": [f"In 32% {agent}", f"In 42% {other}"],
        "one_good": [f"In 45% {agent}", f"In 51% {other}"],
        "common_20": [f"In 67% {other}"],
    }


def contradicted(models: LabelWeights, labels: Sequence[Agreed]) -> list[tuple[Agreed, float, bool]]:
    """Labels with their weights, and whether the vote is no evidence."""
    met = LabelWeights(models.models, models.n_solved)
    weights = weigh(met, labels)
    test = met.contradicted_by_outcome()
    return [
        (label, each.weight, test(row_of(label, each))) for label, each in zip(labels, weights, strict=True)
    ]


def row_of(label: Agreed, weight: LabelWeight, source: str = "agreed") -> ActionLabel:
    return ActionLabel(
        origin=origin_of(label.state, "", True),
        step_id=str(label.state.step_id),
        label_source=source,
        message=label.message,
        operation="other",
        same_as_student=is_own(label),
        verdict="",
        evidence="",
        weight=weight.weight,
        outcome_support=weight.support,
    )


def is_own(label: Agreed) -> bool:
    return label.message == label.state.context.messages[label.state.step.cut]


def wrong_weight(weighed: Sequence[tuple[Agreed, float, bool]]) -> float:
    return sum(weight for label, weight, _ in weighed if not label.right)


@pytest.mark.parametrize(
    ("regime", "rest"), [("shared_25", 0.6), ("shared_50", 0.6), ("one_good", 0.6), ("common_20", 0.3)]
)
def test_where_teachers_share_errors_a_vote_must_fit_the_outcome(
    weights: LabelWeights, labels: dict[str, list[Agreed]], regime: str, rest: float
) -> None:
    weighed = contradicted(weights, labels[regime])
    kept = [each for each in weighed if not each[2]]
    assert {(label.state.trace.outcome, is_own(label)) for label, _, _ in kept} == {
        ("resolved", True),
        ("not_resolved", False),
    }
    assert wrong_weight(kept) < rest * wrong_weight(weighed)


@pytest.mark.parametrize("regime", ["one_good", "common_20"])
def test_what_most_solved_sessions_do_is_left_to_them_where_teachers_share_errors(
    weights: LabelWeights, labels: dict[str, list[Agreed]], regime: str
) -> None:
    met = LabelWeights(weights.models, weights.n_solved)
    supports = [each.support for each in weigh(met, labels[regime])]
    is_contradicted = met.contradicted_by_outcome()
    count: Counter[bool] = Counter()
    for label, support in zip(labels[regime], supports, strict=True):
        if label.state.trace.outcome != "not_resolved" or is_own(label):
            continue
        common = support >= weights.n_solved / 2
        count[common] += 1
        kept = not is_contradicted(row_of(label, LabelWeight(1.0, 1.0, support)))
        assert kept == (support >= 4 and not common)
    assert count[True] >= 5
    assert count[False] >= 40


def test_independent_teachers_count_whatever_the_outcome(
    weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    weighed = contradicted(weights, labels["independent"])
    assert sum(gone for *_, gone in weighed) <= 0.01 * len(weighed)  # of sessions whose failure nobody saw
    kept = Counter((label.state.trace.outcome, is_own(label)) for label, _, gone in weighed if not gone)
    assert min(kept["resolved", False], kept["not_resolved", True]) > 40


@pytest.mark.parametrize(("regime", "stays"), [("independent", False), ("common_20", True)])
def test_a_vote_without_weight_takes_no_step_out_of_solved(
    weights: LabelWeights, labels: dict[str, list[Agreed]], regime: str, stays: bool
) -> None:
    contested = [
        each for each in labels[regime] if each.state.trace.outcome == "resolved" and not is_own(each)
    ]
    met = LabelWeights(weights.models, weights.n_solved)
    by_vote = [row_of(*each) for each in zip(labels[regime], weigh(met, labels[regime]), strict=True)]
    own = [replace(each, message=each.state.context.messages[each.state.step.cut]) for each in contested]
    solved = [row_of(each, LabelWeight(0.9), "solved") for each in own]
    made = settle_labels(ReleaseLabels(kept=[*by_vote, *solved]), met, [solved[0].step_id])
    assert len(solved) > 50
    if stays:
        assert made.kept[len(by_vote) :] == solved
        assert made.dropped == {}
    else:
        assert len(made.kept) == len(by_vote)
        dropped = {"a pair prefers another action": 1, "teachers agree on another action": len(solved) - 1}
        assert made.dropped == {"solved": dropped}


def test_labels_past_a_departure_of_a_failed_session_have_no_weight(
    weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    met = LabelWeights(weights.models, weights.n_solved)
    weighed = weigh(met, labels["independent"])
    rows = [row_of(*each) for each in zip(labels["independent"], weighed, strict=True)]
    made = settle_labels(ReleaseLabels(kept=rows), met, ())
    count, departed = Counter[str](), set[str]()
    for given, kept in zip(rows, made.kept, strict=True):
        trace_id, failed = given.origin.trace_id, given.origin.outcome == "not_resolved"
        where = "past" if trace_id in departed else "failed" if failed else "solved"
        count[where] += 1
        if where == "past":
            assert kept == replace(given, weight=0.0)
        elif kept.weight:
            assert kept == given
            departed |= {trace_id} if failed and not given.same_as_student else set()
    assert count["solved"] > 300
    assert count["failed"] > 100
    assert count["past"] > 40


def test_where_teachers_share_errors_no_departure_takes_weight(
    weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    met = LabelWeights(weights.models, weights.n_solved)
    rows = [row_of(*each) for each in zip(labels["common_20"], weigh(met, labels["common_20"]), strict=True)]
    is_contradicted, past = met.contradicted_by_outcome(), steps_past_departure(rows)
    made = settle_labels(ReleaseLabels(kept=rows), met, ())
    kept = [row for row in made.kept if row.step_id in past and row.weight]
    assert len(kept) > 10
    assert all(row.weight == 0 or not is_contradicted(row) for row in made.kept)


def test_what_the_agent_does_soon_and_what_has_no_weight_is_no_departure(
    labels: dict[str, list[Agreed]],
) -> None:
    failed = [each for each in labels["independent"] if each.state.trace.outcome == "not_resolved"]
    first, second = next(
        pair
        for pair in pairwise(failed)
        if pair[0].state.trace.trace_id == pair[1].state.trace.trace_id and not is_own(pair[0])
    )
    departure, later = (row_of(each, LabelWeight(0.7)) for each in (first, second))
    assert steps_past_departure([departure, later]) == {later.step_id}
    assert steps_past_departure([later, departure]) == {later.step_id}
    unknown = [replace(row, origin=replace(row.origin, outcome="unknown")) for row in (departure, later)]
    assert steps_past_departure(unknown) == set()
    for changed in ({"weight": 0.0}, {"verdict": "order_only"}, {"same_as_student": True}):
        assert steps_past_departure([replace(departure, **changed), later]) == set()


def test_what_no_solved_session_did_has_no_support(played: Played, weights: LabelWeights) -> None:
    for _, trace in played[:20]:
        for state in trace.states():
            odd = message(Action.call("execute_bash", command="conjure --everything"))
            assert weights.weigh(state, odd, 1.0).support == 0


def test_a_failure_that_nobody_saw_holds_a_wrong_label(
    weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    own = [each for each in labels["shared_50"] if is_own(each)]
    sessions = {each.state.trace.trace_id for each in labels["shared_50"] if not is_own(each)}
    unseen = [each for each in own if each.state.trace.trace_id not in sessions]
    failed = [each for each in unseen if each.state.trace.outcome == "not_resolved"]
    gone = {label.state.trace.trace_id for label, _, gone in contradicted(weights, failed) if gone}
    assert len(gone) > 15
    wrong = {each.state.trace.trace_id for each in failed if not each.right}
    assert len(wrong & gone) >= 0.9 * len(gone)


def test_too_few_sessions_of_an_outcome_say_nothing(played: Played, labels: dict[str, list[Agreed]]) -> None:
    by_outcome: dict[Outcome, list[Trace]] = {"resolved": [], "not_resolved": []}
    for _, trace in played:
        by_outcome[trace.outcome].append(trace)
    few = [*by_outcome["resolved"][: LEAST_SESSIONS - 1], *by_outcome["not_resolved"]]
    unknown = [replace(trace, outcome="unknown") for trace in by_outcome["resolved"][LEAST_SESSIONS - 1 :]]
    assert weigh(LabelWeights.fit(few + unknown), labels["shared_50"]) == [
        LabelWeight(each.agreement, None, 0) for each in labels["shared_50"]
    ]
    enough = LabelWeights.fit([*few, by_outcome["resolved"][LEAST_SESSIONS - 1]])
    assert None not in {each.outcome for each in weigh(enough, labels["shared_50"])}


def test_a_session_is_not_judged_by_its_own_outcome(
    played: Played, weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    own = played[7][1]
    other: Outcome = "not_resolved" if own.outcome == "resolved" else "resolved"
    flipped = [replace(trace, outcome=other) if trace is own else trace for _, trace in played]
    of_own = [each for each in labels["shared_50"] if each.state.trace is own]
    rest = [each for each in labels["shared_50"] if each.state.trace is not own]
    after = LabelWeights.fit(flipped)
    assert len(of_own) >= 3
    assert weigh(weights, of_own) == weigh(after, of_own)
    assert weigh(weights, rest) != weigh(after, rest)


def test_runs_of_one_task_are_not_judged_by_each_other(played: Played) -> None:
    first, second = played[7][1], replace(played[8][1], instance_id=played[7][1].instance_id)
    traces = [second if trace is played[8][1] else trace for _, trace in played]
    other: Outcome = "not_resolved" if second.outcome == "resolved" else "resolved"
    flipped = [replace(trace, outcome=other) if trace is second else trace for trace in traces]
    own = [(state, state.context.messages[state.step.cut]) for state in first.states()]
    before, after = LabelWeights.fit(traces), LabelWeights.fit(flipped)
    assert [before.weigh(*each, 1.0) for each in own] == [after.weigh(*each, 1.0) for each in own]


def test_weights_lie_between_nothing_and_the_agreement(
    played: Played, weights: LabelWeights, labels: dict[str, list[Agreed]]
) -> None:
    made = weigh(weights, labels["shared_50"])
    for label, each in zip(labels["shared_50"], made, strict=True):
        assert each.outcome is not None
        assert 0 <= each.outcome <= 1
        assert each.weight == pytest.approx(label.agreement * each.outcome, abs=1e-4)
    assert made == weigh(LabelWeights.fit(trace for _, trace in played), labels["shared_50"])
    ends = Counter(each.outcome for each in made)
    assert ends[1.0] > 300  # nothing is said against most labels
    assert min(each.support for each in made) == 0
    assert max(each.support for each in made) > 30


def test_features_of_a_step_do_not_look_ahead(played: Played) -> None:
    compared = 0
    for _, trace in played[:30]:
        [context] = trace.contexts
        whole = ContextFeatures.of(context, trace.harness)
        for step in context.steps:
            begun = replace(
                context, messages=context.messages[: step.cut + 1], steps=context.steps[: step.index + 1]
            )
            facts = ContextFeatures.of(begun, trace.harness)
            assert facts.state_features(step.index) == whole.state_features(step.index)
            for later in context.steps:  # what is done later too, which must not count as met before
                action = context.messages[later.cut]
                assert facts.action_features(step.index, action) == whole.action_features(step.index, action)
                compared += 1
    assert compared > 600


def test_features_say_what_was_met_and_done_before() -> None:
    test, edit = (
        message(Action.call("execute_bash", command="pytest")),
        message(Action.call("execute_bash", command="sed -i s/41/42/ lexer.py")),
    )
    messages = (
        Message("user", "Repair lexer.py"),
        test,
        Message("tool", "FAILED lexer.py should return 42", tool_call_id="t", is_error=True),
        edit,
        Message("tool", "ok", tool_call_id="t"),
        test,
    )
    steps = tuple(Step(index, cut) for index, cut in enumerate((1, 3, 5)))
    facts = ContextFeatures.of(Context(0, messages, steps), "openhands")
    assert facts.steps[0].kind == ("", "False", "start", "False", "False", "none")
    assert facts.steps[1].kind == ("start", "False", "run_test", "True", "False", "failed")
    assert facts.steps[2].kind[0:2] == ("run_test", "True")
    assert facts.steps[2].kind[4:] == ("True", "failed")
    repeated = [f"repeated|run_test|{step > 0}" for step in range(3)]
    assert [repeated[step] in facts.action_features(step, test) for step in range(3)] == [True] * 3
    said = facts.action_features(1, edit)
    assert [each for each in said if each.startswith("new numbers|")] == ["new numbers|edit|1"]
    assert "result|FAILED" in facts.state_features(1)
    assert "task|Repair" in facts.state_features(1)


@pytest.mark.parametrize(
    "said",
    [
        Message("assistant", "Done ."),
        Message("assistant", ""),
        Message("assistant", "", (ToolCall("t", "execute_bash", '{"command": "py'),)),
        Message("assistant", "", (ToolCall("t", "execute_bash", ""),)),
        Message("assistant", "", (ToolCall("t", "", "[1]"),)),
    ],
    ids=["text", "nothing", "broken arguments", "no arguments", "no name"],
)
def test_odd_actions_are_weighed(played: Played, weights: LabelWeights, said: Message) -> None:
    alone = Context(0, (said,), (Step(0, 0),))
    trace = replace(played[0][1], trace_id="swe_gym-odd", contexts=(alone,), instance_id=None)
    [state] = trace.states()
    own = weights.weigh(state, said, 0.5)
    assert own.outcome is not None
    assert 0 <= own.weight <= 0.5
    for met in played[0][1].states():
        assert 0 <= weights.weigh(met, said, 1.0).weight <= 1


def test_an_empty_context_has_no_features() -> None:
    facts = ContextFeatures.of(Context(0, (), ()), "claude_code")
    assert facts.steps == {}
    trace = Trace("swe_gym-empty", "swe_gym", "d", "openhands", (Context(0, (), ()),), outcome="resolved")
    assert LabelWeights.fit([trace] * 60).models == []
