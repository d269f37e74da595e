"""`tracemill evaluate`: what the labels of a multi-model table are worth, what they cost and what saves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tracemill.evaluate.gate.gate_figures import gate_draws, gate_figures
from tracemill.evaluate.gate.gate_step import gate_steps, trained
from tracemill.evaluate.gate.step_facts import facts_in
from tracemill.evaluate.gate.value_stop import choosers, told_by_other_half
from tracemill.evaluate.table.draw_steps import AskedStep, Asker
from tracemill.evaluate.table.family_agreement import agreement_of
from tracemill.evaluate.table.pair_kinds import kinds_of, teacher_rows
from tracemill.evaluate.table.recorded_states import (
    Table,
    in_half,
    is_tuning,
    read_table,
    reasons_without_vote,
)
from tracemill.evaluate.table.rules import PRODUCT, VOTERS, product_rule, rules_named
from tracemill.evaluate.table.savings import Chooser, Savings
from tracemill.evaluate.table.scores import Tally, by_operation, resampled, rule_figures
from tracemill.evaluate.table.student_draws import (
    Draw,
    Poll,
    draws_of,
    may_be_asked,
    spread_over,
    standing_of,
)
from tracemill.evaluate.table.whole_runs import Runs, read_runs
from tracemill.harnesses.agents.registry import GENERIC, GENERIC_ENDED, HARNESSES
from tracemill.records.errors import ConfigError
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.gate.features import StepFacts

SCHEMA = 4


@dataclass(frozen=True, slots=True)
class EvaluateOrder:
    """What is evaluated. `draws`: the most (student, trio) draws; `samples`: how often tasks are drawn
    anew for intervals; `spread`: prices from cheap to dear, the weakest model the cheapest; `rules`: names
    of the rules compared, empty: all; `gate_seeds`: passes of each gate over a draw, 0 leaves it out;
    `runs`: a file of whole runs, for pairs that need no teacher."""

    table: Path
    half: str = "all"
    harness: str | None = None
    students: Sequence[str] = ()
    teachers: Sequence[str] = ()
    draws: int = 200
    samples: int = 200
    seed: int = 0
    prices: Mapping[str, PriceSettings] = field(default_factory=dict)
    spread: bool = False
    rules: Sequence[str] = ()
    gate_seeds: int = 1
    runs: Path | None = None


class Progress(Protocol):
    """Is told how far an evaluation is."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage of `total` units of work."""

    def advance(self, count: int = 1) -> None:
        """Count `count` more units as done."""


class _Silent:
    def begin(self, stage: str, total: int) -> None: ...

    def advance(self, count: int = 1) -> None: ...


def evaluate(order: EvaluateOrder, meter: Progress | None = None) -> dict[str, Any]:
    """The report on a table, plain values; the same order, the same report. Raises TeacherError where the
    table cannot be read, SourceError where nothing of it is usable, ConfigError for a harness not known.
    Models that the order names and no state has are among what was passed over."""
    told = meter or _Silent()
    names = [GENERIC.name, GENERIC_ENDED.name, *sorted({harness.name for harness in HARNESSES})]
    if order.harness is not None and order.harness not in names:
        raise ConfigError(f"harness {order.harness!r} is not known", ", ".join(names))
    told.begin("states", 0)
    whole = read_table(order.table, order.harness, order.prices, told.advance)
    if order.spread:
        whole = read_table(order.table, order.harness, spread_over(whole), told.advance)
    named = {*order.students, *order.teachers, *order.prices}
    whole.broken.update(f"model {name} that no state has" for name in sorted(named.difference(whole.models)))
    table = whole.half(order.half)
    draws, total = draws_of(table, order.draws, order.seed, order.students, order.teachers)
    poll, compared = Poll(table), rules_named(order.rules)
    weights = resampled(len(table.tasks), order.samples, order.seed)
    told.begin("draws", len(draws))
    tally = Tally(poll, compared, len(draws))
    facts = facts_in(order.table, whole) if order.gate_seeds else {}
    savings = Savings(table.tasks, tuple(_choosers([], facts, whole.rewarded)) if facts else ())
    asker = Asker(Poll(whole), product_rule(VOTERS[0]))
    for draw in draws:
        tally.add(draw)
        steps = asker.steps(draw)
        counting = [step for step in steps if in_half(step.task, order.half)]
        savings.add(counting, _choosers(steps, facts, whole.rewarded) if facts else {})
        told.advance()
    product = {each.rule.voters: each for each in tally.tallied if each.rule.name == PRODUCT}
    return {
        "schema": SCHEMA,
        "table": _table(table, order),
        "draws": {
            "all": total,
            "taken": len(draws),
            "stronger": sum(draw.stronger for draw in draws),
            "two_families": sum(bool(may_be_asked(table, draw, asker.rule.policy)) for draw in draws),
        },
        "rules": rule_figures(poll, draws, tally.tallied, weights),
        "pairs_by_operation": {voters: by_operation(each) for voters, each in product.items()},
        "kinds": _kinds(table, order, poll, draws),
        "savings": savings.rows(weights),
        "gate": _gate(whole, facts, draws, order, told) if facts else {},
        "agreement": agreement_of(table),
    }


def _kinds(table: Table, order: EvaluateOrder, poll: Poll, draws: Sequence[Draw]) -> dict[str, Any]:
    """The pairs of the table as one dataset, by who votes; with those of its runs, of the same half."""
    harnesses = Counter(state.harness for state in table.states)
    runs = read_runs(order.runs, harnesses.most_common(1)[0][0]) if order.runs is not None else Runs(())
    traces = tuple(trace for trace in runs.traces if in_half(trace.instance_id or "", order.half))
    others, reasons = Runs(traces).pairs()
    found: dict[str, Any] = {
        "runs": len(traces),
        "broken": dict(runs.broken),
        "no_pair": dict(sorted(reasons.items())),
    }
    for voters in VOTERS:
        rule = product_rule(voters)
        teachers = teacher_rows((p for draw in draws for p in poll.pairs(draw, rule)), rule.policy.threshold)
        found[voters] = kinds_of(teachers, others)
    return found


def _choosers(
    steps: Sequence[AskedStep], facts: Mapping[tuple[int, str], StepFacts], rewarded: bool
) -> dict[tuple[str, str], Chooser]:
    """The further ways to ask of a draw with these steps; what is trained is so on the other half of them."""
    met = gate_steps(steps, facts, rewarded)
    known = {side: trained([s for s in met if is_tuning(s.task) == side]) for side in (True, False)}
    return choosers(facts, rewarded, told_by_other_half(known))


def _gate(
    whole: Table,
    facts: Mapping[tuple[int, str], StepFacts],
    draws: Sequence[Draw],
    order: EvaluateOrder,
    told: Progress,
) -> dict[str, Any]:
    """The gate's figures by who votes, over draws with stronger teachers where there are any."""
    strong = [draw for draw in draws if draw.stronger]
    found: dict[str, Any] = {
        "of": "stronger teachers" if strong else "all draws",
        "counted": "correct pairs" if whole.rewarded else "pairs",
    }
    told.begin("gate", len(VOTERS))
    for voters in VOTERS:
        some = gate_draws(whole, facts, strong or draws, voters, order.half)
        found[voters] = gate_figures(some, order.gate_seeds, order.samples)
        told.advance()
    return found


def _table(table: Table, order: EvaluateOrder) -> dict[str, Any]:
    acted = [done for state in table.states for done in state.acted.values()]
    harnesses = sorted({state.harness for state in table.states})
    answers, standing = Counter(done.model for done in acted), standing_of(table)
    return {
        "name": table.name,
        "half": order.half,
        "states": len(table.states),
        "tasks": len(table.tasks),
        "actions": len(acted),
        "rewarded": sum(done.reward is not None for done in acted),
        "tokens_estimated": sum(done.estimated for done in acted),
        "harnesses": harnesses,
        "models": {
            model: {
                "family": table.families[model],
                "prices": table.prices[model][1],
                "answers": answers[model],
                "first_step_reward": standing.get(model),
            }
            for model in table.models
        },
        "no_vote": dict(sorted(reasons_without_vote(table.states).items())),
        "broken": dict(sorted(table.broken.items())),
        "broken_examples": list(table.examples),
    }
