"""The gate: what it knows of a step, what it believes, what it pays for, and what it says afterwards."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.records.message import Message, ToolCall
from tracemill.records.storage.table_rows import decisions_from_table, decisions_to_table
from tracemill.records.trace import Context, Step, Trace
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.core.price import price_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GateSettings, PriceSettings
from tracemill.teachers.gate.budget_pacing import BudgetPacer, paced_choice_share
from tracemill.teachers.gate.features import GateStepFeatures, build_step_features
from tracemill.teachers.gate.gate_decisions import (
    EXPLORED,
    GATE_VERSION,
    NOT_WORTH,
    STUDENT_FAMILY,
    WORTH,
    GateChoice,
    coin,
    make_gate_decisions,
)
from tracemill.teachers.gate.pair_model import (
    BASE,
    PRIOR,
    PRIOR_FILE,
    PairModel,
    PairPrior,
    learn_pair_model,
)
from tracemill.teachers.gate.pair_value import ValuedStep, score_pair_values
from tracemill.teachers.gate.result_features import read_result_features
from tracemill.teachers.gate.step_costs import PricedTeacher, step_costs_usd
from tracemill.teachers.gate.totals_estimate import LoggedStep, estimate_totals


def bash(command: str) -> tuple[str, str]:
    return "execute_bash", json.dumps({"command": command})


def session(acts: Sequence[tuple[tuple[str, str] | str, str]], outcome: str = "unknown") -> Trace:
    """A session of OpenHands: each act is a call or a closing text, with what came back."""
    messages, steps = [Message("user", "Mend the parser.")], list[Step]()
    for number, (act, result) in enumerate(acts):
        steps.append(Step(number, len(messages), "m"))
        if isinstance(act, str):
            messages.append(Message("assistant", act))
            continue
        call = ToolCall(f"c{number}", *act)
        messages += [Message("assistant", "", (call,)), Message("tool", result, tool_call_id=call.id)]
    context = Context(0, tuple(messages), tuple(steps))
    return Trace("t", "openhands", "d", "openhands", (context,), outcome=outcome, redaction="r1")  # type: ignore[arg-type]


def words(trace: Trace) -> list[dict[str, str]]:
    return [dict(word.split("=", 1) for word in step.words) for step in build_step_features(trace, {})]


EDIT = ("str_replace_editor", json.dumps({"command": "str_replace", "path": "/r/a.py", "old_str": "x = 1"}))


def test_a_step_tells_what_came_of_it_and_whether_the_session_ended() -> None:
    pytest_, status = bash("python -m pytest tests/test_a.py"), bash("git status")
    trace = session(
        [
            (bash("cat /r/missing.py"), "cat: /r/missing.py: No such file or directory"),
            (pytest_, "1 failed, 2 passed"),
            (status, "clean"),
            (pytest_, "3 passed"),
            (status, "clean"),
            (status, ""),
            (EDIT, "The file was edited."),
            ("All done.", ""),
        ],
        "resolved",
    )
    found = words(trace)
    assert [w["own"] for w in found] == [
        *("absent", "tests_failed", "ok", "ok", "ok", "empty", "ok"),
        "nothing_yet",
    ]
    assert [w["ended"] for w in found] == ["no"] * 7 + ["resolved"]


@pytest.mark.parametrize(
    ("text", "flag", "kind"),
    [
        ("Error executing query: Table 'x.y' doesn't exist", None, "absent"),
        ("ERROR: You have an error in your SQL syntax", None, "syntax"),
        ("[]", None, "empty"),
        ("== 2 failed, 1 passed ==", None, "tests_failed"),
        ("anything", True, "failed"),
        ("total 12\nfile not found in cache but fetched\n" + "x" * 600, None, "ok"),
    ],
)
def test_what_came_back_is_told_by_flag_and_text(text: str, flag: bool | None, kind: str) -> None:
    assert read_result_features([Message("tool", text, is_error=flag)]) == kind


def test_belief_is_the_mode_of_prior_and_counts_and_starts_from_the_prior() -> None:
    prior = PairPrior("by hand", -1.7, {"ended=resolved": -2.0})
    assert PairModel(prior=prior).probability(["op=read"]) == pytest.approx(1 / (1 + math.exp(1.7)))
    assert PairModel(prior=prior).probability(["ended=resolved"]) == pytest.approx(1 / (1 + math.exp(3.7)))
    rows = [(("op=edit",), True)] * 30 + [(("op=edit",), False)] * 10 + [(("op=list",), False)] * 40
    belief = learn_pair_model(rows)
    assert (belief.asked, belief.pairs) == (80, 30)
    for word, n, k in (("op=edit", 40, 30), ("op=list", 40, 0)):  # the gradient is zero at the mode
        mean, precision = PRIOR.of(word)
        expected = n * belief.probability([word]) + precision * (belief.weights[word][0] - mean)
        assert expected == pytest.approx(k, abs=1e-3)
    base = belief.weights[BASE][0] - PRIOR.of(BASE)[0]
    assert 80 * 0.375 - sum(
        40 * belief.probability([word]) for word in ("op=edit", "op=list")
    ) == pytest.approx(PRIOR.of(BASE)[1] * base, abs=1e-3)
    assert belief.probability(["op=edit"]) > 0.4 > 0.3 > belief.probability(["op=list"])


def test_belief_finds_its_mode_where_nearly_every_step_gives_a_pair() -> None:
    rows = [(("op=edit", "own=ok", f"length={n % 9}"), 1.0) for n in range(56)]
    rows += [(("op=read", f"length={n % 9}"), 0.0) for n in range(13)]
    belief = learn_pair_model(rows)
    expected = sum(belief.probability(words) for words, _ in rows)
    base = belief.weights[BASE][0] - PRIOR.of(BASE)[0]
    assert 56 - expected == pytest.approx(PRIOR.of(BASE)[1] * base, abs=1e-3)  # the gradient is zero
    assert 45 < expected < 56


ROWS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True).map(tuple), st.booleans()),
    max_size=30,
)


@given(ROWS, st.randoms())
def test_belief_does_not_depend_on_the_order_of_what_was_seen(rows: list, random: object) -> None:
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert learn_pair_model(mixed) == learn_pair_model(rows)
    assert learn_pair_model(mixed).version == learn_pair_model(rows).version


FEATURES = ["op", "own", "op*own", "length", "invalid", "ended", "fits", "items*calls", "sentence", "told"]


def test_the_prior_that_ships_is_of_this_gate_and_its_features() -> None:
    stored = json.loads(PRIOR_FILE.read_text())
    assert (stored["name"], stored["gate"]) == (PRIOR.name, GATE_VERSION)
    assert stored["features"] == sorted({word.partition("=")[0] for word in PRIOR.weights})
    assert set(stored["features"]) <= set(FEATURES)
    words = {
        word
        for step in build_step_features(session([(bash("ls"), "a"), ("Done.", "")]), {})
        for word in step.words
    }
    assert {word.partition("=")[0] for word in words} <= set(FEATURES)
    assert all(abs(weight) < 4 for weight in PRIOR.weights.values())
    assert len(PRIOR.weights) > 100
    assert PRIOR.of("op=nothing like it") == (0.0, 4.0)
    assert PRIOR.of("fits=said*0") == (PRIOR.weights["fits=said*0"], 16.0)
    assert PRIOR.of(BASE) == (stored["base"], 1.0)
    assert set(stored) == {"name", "gate", "tables", "features", "base", "weights"}  # numbers, and no row


@pytest.mark.skipif("TRACEMILL_MULTITEACHER" not in os.environ, reason="TRACEMILL_MULTITEACHER is not set")
def test_the_prior_was_learned_on_the_tables_that_it_names() -> None:
    tables = json.loads(PRIOR_FILE.read_text())["tables"]
    folder = Path(os.environ["TRACEMILL_MULTITEACHER"])
    found = {path.name.partition(".")[0]: path for path in folder.glob("*.jsonl.gz")}
    assert len(found.keys() & tables.keys()) == 4
    for name in found.keys() & tables.keys():
        assert sha256(found[name].read_bytes()).hexdigest() == tables[name]["sha256"]


def test_a_step_is_worth_its_probability_for_its_cost() -> None:
    steps = [GateStepFeatures(f"t:0:{n}", ()) for n in range(3)]
    made = score_pair_values(steps, [0.5, 0.25, 0.25], [1.0, 0.25, 0.0])
    assert [step.score for step in made] == pytest.approx([0.5, 1.0, 0.25 / 1e-9])
    assert (made[0].facts.step_id, made[0].belief) == ("t:0:0", 0.5)


def test_a_step_costs_what_is_new_since_the_step_asked_before() -> None:
    shown = tuple(Message("user", "x" * (4 * 1000 - 32)) for _ in range(3))
    questions = [
        Question(f"t:0:{n}", "t", shown[: n + 1], (), "p", "v", "r1", student_family="x") for n in range(3)
    ]
    price = price_of(PriceSettings.model_validate({"prompt_usd": "1", "cache_read_usd": "0.1"}))
    every = step_costs_usd(questions, [PricedTeacher("a", "anthropic", price)])
    assert every == pytest.approx([1e-3, 1.1e-3, 1.2e-3])
    alone = step_costs_usd(questions, [PricedTeacher("a", "anthropic", price, 0.5)], asked={"t:0:0"})
    assert alone == pytest.approx([0.5e-3, 0.55e-3, 1.05e-3])
    assert step_costs_usd(questions, [PricedTeacher("a", "x", price)]) == [0.0, 0.0, 0.0]


def test_the_budget_goes_to_the_best_of_all_steps_seen_lately() -> None:
    pacer = BudgetPacer()
    assert pacer.threshold([1.0, 4.0, 3.0, 2.0], [1.0] * 4, 0.5) == 3.0
    assert pacer.threshold([1.0, 4.0], [1.0] * 2, 1.0) == -math.inf
    assert pacer.threshold([1.0, 4.0], [1.0] * 2, 0.0) == math.inf
    pacer.remember([9.0, 8.0], [1.0, 1.0])
    assert pacer.threshold([1.0, 4.0], [1.0] * 2, 0.5) == 8.0
    assert paced_choice_share(0.24, 0.05) == pytest.approx(0.2)
    assert paced_choice_share(0.01, 0.05) == 0.0


def step_of(name: str) -> ValuedStep:
    return ValuedStep(GateStepFeatures(name, ()), 0.2, 0.01, 20.0)


QUESTIONS = [Question(f"t:0:{n}", "t", (), (), "p", "v", "r1", student_family="deepseek") for n in range(400)]


def test_decisions_say_by_what_they_were_made_and_chance_is_kept() -> None:
    teachers, settings = SIMULATED.teachers[:2], GateSettings(share=0.5, explore=0.5)
    steps = {q.step_id: step_of(q.step_id) for q in QUESTIONS}
    choices = {
        name: GateChoice(s, number % 4 == 0, "g+w", 0.1) for number, (name, s) in enumerate(steps.items())
    }
    made = make_gate_decisions(QUESTIONS, teachers, 5, settings, choices)
    assert made == make_gate_decisions(QUESTIONS, teachers, 5, settings, choices)
    assert sorted(made, key=lambda d: (d.step_id, d.teacher)) == sorted(
        make_gate_decisions(QUESTIONS[::-1], teachers, 5, settings, choices),
        key=lambda d: (d.step_id, d.teacher),
    )
    own = [d for d in made if d.teacher == teachers[0].name]
    assert {(d.verdict, d.reason, d.probability) for d in own} == {("skip", STUDENT_FAMILY, 0.0)}
    asked = {d.step_id: d for d in made if d.teacher == teachers[1].name}
    for name, decision in asked.items():
        by_chance = coin(5, name) < 0.1
        reason = EXPLORED if by_chance else WORTH if choices[name].taken else NOT_WORTH
        assert (decision.reason, decision.verdict == "ask") == (reason, reason != NOT_WORTH)
        assert decision.probability == (1.0 if choices[name].taken else 0.1)
        by = (decision.gate, decision.belief, decision.expected_usd, decision.explore)
        assert by == ("g+w", 0.2, 0.01, 0.1)
    kept = [replace(d, features=("op=read", "own=ok")) for d in made[:7]]
    assert decisions_from_table(decisions_to_table(kept)) == kept


def test_totals_weigh_chance_by_hand_and_hold_no_more_than_was_drawn() -> None:
    sure = [LoggedStep(1.0, 0.5, 1.0, True), LoggedStep(1.0, 0.5, 0.0, True)]
    rare = [LoggedStep(0.25, 0.1, None, False)] * 13 + [LoggedStep(0.25, 0.1, 1.0, True)]
    found = estimate_totals([*sure, *rare, LoggedStep(0.0, 0.0, None, False)])
    assert (found.steps, found.asked, found.counted, found.never) == (17, 3, 2.0, 1)
    assert found.weighted == 1 + 1 / 0.25
    assert found.estimate == pytest.approx(1 + 14 * 0.1 + 0.9 / 0.25)
    spread = 1.959964 * math.sqrt(0.75) / 0.25 * math.sqrt(0.9**2 + 2 * 0.1 * 0.9)  # one drawn, two more
    assert (found.low, found.high) == pytest.approx((2.0, found.estimate + spread))
    lost = estimate_totals([LoggedStep(1.0, 0.0, 1.0, True), LoggedStep(1.0, 0.0, None, True)])
    assert (lost.estimate, lost.censored) == (2.0, 1)  # the one that is known stands for both


def test_totals_are_no_more_than_what_was_found_and_the_steps_not_known() -> None:
    drawn = [
        LoggedStep(0.05, 0.1, 1.0, True),
        LoggedStep(0.05, 0.1, 0.0, True),
        LoggedStep(1.0, 0.5, 0.0, True),
    ]
    found = estimate_totals([*drawn, *[LoggedStep(0.05, 0.1, None, False)] * 4])
    assert (found.weighted, found.counted) == (20.0, 1.0)
    assert (found.low, found.estimate, found.high) == (1.0, 5.0, 5.0)
    none = estimate_totals([LoggedStep(1.0, 0.5, 0.0, True), LoggedStep(0.5, 0.9, 0.0, True)])
    assert (none.low, none.estimate, none.high) == (0.0, 0.0, 0.0)


def test_totals_are_unbiased_and_the_interval_holds_the_truth() -> None:
    """400 steps of which every fourth gives a pair, asked by 50 coins."""
    truth = [1.0 if number % 4 == 0 else 0.0 for number in range(400)]
    estimates = []
    for seed in range(50):
        drawn = [coin(seed, f"s:0:{number}") < 0.2 for number in range(400)]
        estimates.append(
            estimate_totals(
                LoggedStep(0.2, 0.1, t if d else None, d) for t, d in zip(truth, drawn, strict=True)
            )
        )
    assert sum(each.estimate for each in estimates) / 50 == pytest.approx(100, rel=0.05)
    assert sum(each.low <= 100 <= each.high for each in estimates) >= 44


def test_a_few_drawn_steps_at_which_nothing_came_are_no_certainty() -> None:
    """3 steps of 60 drawn, none with a pair, where the gate expects 6: the interval holds those 6."""
    found = estimate_totals([LoggedStep(0.05, 0.1, 0.0 if n < 3 else None, n < 3) for n in range(60)])
    assert found.estimate == pytest.approx(0.0)
    assert found.high == pytest.approx(1.959964 * math.sqrt(0.95) / 0.05 * math.sqrt(3 * 0.01 + 2 * 0.09))
    assert found.high > 6
