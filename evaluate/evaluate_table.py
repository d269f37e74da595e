"""Evaluate a multi-model table: the quality of labels, their cost, and what saves money."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tracemill.evaluate.gate.gate_figures import gate_figure_draws, gate_figures
from tracemill.evaluate.gate.gate_pass import StepSelection, run_gate_pass
from tracemill.evaluate.gate.gate_step import build_gate_steps
from tracemill.evaluate.gate.step_facts import read_step_facts
from tracemill.evaluate.table.draw_steps import AskedStep, DrawStepBuilder
from tracemill.evaluate.table.family_agreement import count_family_agreement
from tracemill.evaluate.table.pair_kinds import count_pair_kinds, pair_kinds_from_teachers
from tracemill.evaluate.table.recorded_states import (
    StateTable,
    is_recorded_in_half,
    read_table,
    recorded_states_without_vote,
)
from tracemill.evaluate.table.rules import PRODUCT, VOTERS, label_rules_named, product_label_rule
from tracemill.evaluate.table.savings import Savings, StepChooser
from tracemill.evaluate.table.scores import PairTally, build_rule_scores, by_operation, resample_rule_tasks
from tracemill.evaluate.table.student_draws import (
    StudentDraw,
    TableVotes,
    draw_students,
    may_be_asked,
    student_draw_prices,
    student_draw_rewards,
)
from tracemill.evaluate.table.whole_runs import WholeRuns, read_runs
from tracemill.harnesses.agents.registry import GENERIC, GENERIC_ENDED, HARNESSES
from tracemill.records.errors import ConfigError
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.gate.features import GateStepFeatures

SCHEMA = 5
GATE, GATE_SHARE = "voi, half", 0.5
"""Name of the gate that may spend this share of what tiered asking costs."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Options of an evaluation.

    `draws`: most (student, three teachers) draws. `samples`: bootstrap samples of tasks for intervals.
    `spread`: assign prices from cheap to expensive, the weakest model the cheapest. `rules`: names of the
    rules compared, empty for all. `gate_seeds`: passes of each gate over a draw, 0 for none. `runs`: a file
    of whole runs, for pairs that need no teacher.
    """

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
    """A receiver of the progress of an evaluation."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage of `total` units of work."""

    def advance(self, count: int = 1) -> None:
        """Count `count` more units as done."""


class _Silent:
    def begin(self, stage: str, total: int) -> None: ...

    def advance(self, count: int = 1) -> None: ...


def evaluate_table(order: EvaluateOptions, meter: Progress | None = None) -> dict[str, Any]:
    """Return the report on a table as plain values; deterministic.

    Models that `order` names and no state has are counted as broken. Raises TeacherError if the table
    cannot be read, SourceError if it has no usable state, ConfigError for an unknown harness.
    """
    progress = meter or _Silent()
    names = [GENERIC.name, GENERIC_ENDED.name, *sorted({harness.name for harness in HARNESSES})]
    if order.harness is not None and order.harness not in names:
        raise ConfigError(f"harness {order.harness!r} is not known", ", ".join(names))
    progress.begin("states", 0)
    whole = read_table(order.table, order.harness, order.prices, progress.advance)
    if order.spread:
        whole = read_table(order.table, order.harness, student_draw_prices(whole), progress.advance)
    named = {*order.students, *order.teachers, *order.prices}
    whole.broken.update(f"model {name} that no state has" for name in sorted(named.difference(whole.models)))
    table = whole.half(order.half)
    draws, total = draw_students(table, order.draws, order.seed, order.students, order.teachers)
    poll, compared = TableVotes(table), label_rules_named(order.rules)
    weights = resample_rule_tasks(len(table.tasks), order.samples, order.seed)
    progress.begin("draws", len(draws))
    tally = PairTally(poll, compared, len(draws))
    facts = read_step_facts(order.table, whole) if order.gate_seeds else {}
    savings = Savings(table.tasks, {GATE: _gate_chooser(facts, whole.rewarded)} if facts else {})
    asker = DrawStepBuilder(TableVotes(whole), product_label_rule(VOTERS[0]))
    for draw in draws:
        tally.add(draw)
        counting = [step for step in asker.steps(draw) if is_recorded_in_half(step.task, order.half)]
        savings.add(counting)
        progress.advance()
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
        "rules": build_rule_scores(poll, draws, tally.tallied, weights),
        "pairs_by_operation": {voters: by_operation(each) for voters, each in product.items()},
        "kinds": _kinds(table, order, poll, draws),
        "savings": savings.rows(weights),
        "gate": _gate(whole, facts, draws, order, progress) if facts else {},
        "agreement": count_family_agreement(table),
    }


def _kinds(
    table: StateTable, order: EvaluateOptions, poll: TableVotes, draws: Sequence[StudentDraw]
) -> dict[str, Any]:
    """Return the pairs of the table counted as one dataset, by kind of voters, with those of `--runs`."""
    harnesses = Counter(state.harness for state in table.states)
    runs = read_runs(order.runs, harnesses.most_common(1)[0][0]) if order.runs is not None else WholeRuns(())
    traces = tuple(trace for trace in runs.traces if is_recorded_in_half(trace.instance_id or "", order.half))
    others, reasons = WholeRuns(traces).pairs()
    found: dict[str, Any] = {
        "runs": len(traces),
        "broken": dict(runs.broken),
        "no_pair": dict(sorted(reasons.items())),
    }
    for voters in VOTERS:
        rule = product_label_rule(voters)
        teachers = pair_kinds_from_teachers(
            (p for draw in draws for p in poll.pairs(draw, rule)), rule.policy.threshold
        )
        found[voters] = count_pair_kinds(teachers, others)
    return found


def _gate_chooser(facts: Mapping[tuple[int, str], GateStepFeatures], rewarded: bool) -> StepChooser:
    """Return a step chooser that starts an untrained gate at each draw."""

    def choose(steps: Sequence[AskedStep]) -> Sequence[bool]:
        candidates = build_gate_steps(steps, facts, rewarded)
        asked = run_gate_pass(candidates, StepSelection(), GATE_SHARE, 0).asked
        return [step.facts.step_id in asked for step in candidates]

    return choose


def _gate(
    whole: StateTable,
    facts: Mapping[tuple[int, str], GateStepFeatures],
    draws: Sequence[StudentDraw],
    order: EvaluateOptions,
    progress: Progress,
) -> dict[str, Any]:
    """Return the gate's figures by kind of voters, over draws with stronger teachers if there are any."""
    strong = [draw for draw in draws if draw.stronger]
    found: dict[str, Any] = {
        "of": "stronger teachers" if strong else "all draws",
        "counted": "correct pairs" if whole.rewarded else "pairs",
    }
    progress.begin("gate", len(VOTERS))
    for voters in VOTERS:
        some = gate_figure_draws(whole, facts, strong or draws, voters, order.half)
        found[voters] = gate_figures(some, order.gate_seeds, order.samples)
        progress.advance()
    return found


def _table(table: StateTable, order: EvaluateOptions) -> dict[str, Any]:
    acted = [done for state in table.states for done in state.acted.values()]
    harnesses = sorted({state.harness for state in table.states})
    answers, rewards = Counter(done.model for done in acted), student_draw_rewards(table)
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
                "first_step_reward": rewards.get(model),
            }
            for model in table.models
        },
        "no_vote": dict(sorted(recorded_states_without_vote(table.states).items())),
        "broken": dict(sorted(table.broken.items())),
        "broken_examples": list(table.examples),
    }
