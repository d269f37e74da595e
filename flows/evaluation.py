"""`tracemill evaluate`: what the labels of a multi-model table are worth, what they cost and what saves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.evaluation_draws import Poll, draws_of, standing_of
from flows.evaluation_families import agreement_of
from flows.evaluation_rules import PRODUCT, VOTERS, rules
from flows.evaluation_savings import Savings
from flows.evaluation_scores import Tally, by_operation, resampled, rule_figures
from flows.evaluation_steps import Asker
from flows.evaluation_table import Table, read_table, reasons_without_vote
from flows.progress import Meter
from teachers.settings import PriceSettings

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class EvaluateOrder:
    """What is evaluated. `draws`: the most (student, trio) draws; `samples`: how often tasks are drawn
    anew for intervals."""

    table: Path
    half: str = "all"
    harness: str | None = None
    students: Sequence[str] = ()
    teachers: Sequence[str] = ()
    draws: int = 200
    samples: int = 200
    seed: int = 0
    prices: Mapping[str, PriceSettings] = field(default_factory=dict)


def evaluate(order: EvaluateOrder, meter: Meter | None = None) -> dict[str, Any]:
    """The report on a table, plain values; the same order, the same report. Raises TeacherError where the
    table cannot be read and SourceError where nothing of it is usable."""
    told = meter or Meter()
    told.begin("states", 0)
    table = read_table(order.table, order.harness, order.prices, order.half, told.advance)
    draws, total = draws_of(table, order.draws, order.seed, order.students, order.teachers)
    poll, compared = Poll(table), rules()
    weights = resampled(len(table.tasks), order.samples, order.seed)
    told.begin("draws", len(draws))
    tally, savings = Tally(poll, compared, len(draws)), Savings(table.tasks)
    asker = Asker(poll, next(rule for rule in compared if (rule.name, rule.voters) == (PRODUCT, VOTERS[0])))
    for draw in draws:
        tally.add(draw)
        savings.add(asker.steps(draw))
        told.advance()
    product = {each.rule.voters: each for each in tally.tallied if each.rule.name == PRODUCT}
    return {
        "schema": SCHEMA,
        "table": _table(table, order),
        "draws": {"all": total, "taken": len(draws), "stronger": sum(draw.stronger for draw in draws)},
        "rules": rule_figures(poll, draws, tally.tallied, weights),
        "pairs_by_operation": {voters: by_operation(product[voters]) for voters in VOTERS},
        "savings": savings.rows(weights),
        "agreement": agreement_of(table),
    }


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
