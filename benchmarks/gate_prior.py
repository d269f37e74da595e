"""Learn the prior of the gate on public tables, or measure such a prior on a table that it has not seen.

A table is fitted by logistic regression over the words of its steps, with an intercept for each draw of a
student and its teachers. The prior has the mean of each weight over kinds of tables, with one more kind at 0,
so that what a single kind says counts half. Tables of one kind begin alike: `bfcl`, `bfcl_exec`. Only these
numbers are written, no row of a table.

    python benchmarks/gate_prior.py TABLE... --write              # teachers/gate/prior.json
    python benchmarks/gate_prior.py TABLE... --measure            # each table with the prior of the others
    python benchmarks/gate_prior.py TABLE... --measure --on NEW   # a table with the prior of all the others
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import mean

import numpy as np

from tracemill.evaluate.gate.gate_pass import StepSelection, run_gate_pass
from tracemill.evaluate.gate.gate_step import GateStep, build_gate_steps, oracle_gate_scores
from tracemill.evaluate.gate.step_facts import read_step_facts
from tracemill.evaluate.table.draw_steps import DrawStepBuilder
from tracemill.evaluate.table.recorded_states import read_table
from tracemill.evaluate.table.rules import VOTERS, product_label_rule
from tracemill.evaluate.table.student_draws import (
    TableVotes,
    draw_students,
    may_be_asked,
    student_draw_prices,
)
from tracemill.records.storage.atomic_files import write_json
from tracemill.teachers.gate.gate_decisions import GATE_VERSION
from tracemill.teachers.gate.pair_model import PRIOR_FILE, PairPrior, laplace_posterior

NAME = "public-1"
DRAWS, MOST = 3000, 20
"""Draws looked at, and those of stronger and of other teachers that are taken of them."""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FEWEST_PAIRS, FEWEST_GOOD = 3, 8
"""Least pairs of a draw that is learned from, and least correct pairs of one that is measured."""
_BASE, _BASE_PRECISION, _PRECISION = -1.7, 0.5, 4.0
_STEPS = 4000
"""Steps that a table counts for at most: those of its draws are the same ones again and again."""


@dataclass(frozen=True)
class LearnedTable:
    """A table as draws of a student and its teachers, strong teachers first."""

    name: str
    path: Path
    rewarded: bool
    draws: Sequence[tuple[bool, Sequence[GateStep]]]

    @property
    def kind(self) -> str:
        """Return the kind of the table, by the first part of its name, InterCode's by language."""
        return self.name if self.name.startswith("intercode") else self.name.partition("_")[0]


def read(path: Path) -> LearnedTable:
    """Read a table at prices that spread from cheap to expensive."""
    table = read_table(path, None, {}, lambda _=1: None)
    table = read_table(path, None, student_draw_prices(table), lambda _=1: None)
    facts, rule = read_step_facts(path, table), product_label_rule(VOTERS[0])
    draws = [d for d in draw_students(table, DRAWS, 0)[0] if may_be_asked(table, d, rule.policy)]
    random.Random(0).shuffle(draws)
    asker = DrawStepBuilder(TableVotes(table), rule)
    taken = [d for side in (True, False) for d in [d for d in draws if d.stronger == side][:MOST]]
    steps = [(draw.stronger, build_gate_steps(asker.steps(draw), facts, table.rewarded)) for draw in taken]
    return LearnedTable(path.name.partition(".")[0], path, table.rewarded, steps)


def fit(table: LearnedTable) -> dict[str, float]:
    """Return the weights of the words of a table."""
    rows: Counter[tuple[int, tuple[str, ...]]] = Counter()
    pairs: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for number, (_, steps) in enumerate(table.draws):
        if sum(step.tiered_pair for step in steps) >= FEWEST_PAIRS:
            for step in steps:
                rows[number, step.facts.words] += 1
                pairs[number, step.facts.words] += step.tiered_pair
    if not rows:
        return {}
    words = sorted({word for _, each in rows for word in each})
    draws = sorted({number for number, _ in rows})
    place = {name: at for at, name in enumerate([*draws, *words])}
    x = np.zeros((len(rows), len(place)))
    for at, (number, each) in enumerate(rows):
        x[at, [place[number], *(place[word] for word in each)]] = 1.0
    scale = min(1.0, _STEPS / sum(rows.values()))
    n = scale * np.array(list(rows.values()), float)
    k = scale * np.array([pairs[row] for row in rows], float)
    prior = [(_BASE, _BASE_PRECISION)] * len(draws) + [(0.0, _PRECISION)] * len(words)
    w, _ = laplace_posterior(x, n, k, prior)
    return {word: float(w[place[word]]) for word in words}


def learn(fits: Iterable[tuple[str, Mapping[str, float]]]) -> PairPrior:
    """Return the prior of fitted tables, given with their kinds."""
    by_kind: dict[str, list[Mapping[str, float]]] = {}
    for kind, weights in fits:
        by_kind.setdefault(kind, []).append(weights)
    kinds = [
        {word: mean(each.get(word, 0.0) for each in some) for word in {w for each in some for w in each}}
        for some in by_kind.values()
    ]
    words = sorted({word for kind in kinds for word in kind})
    weights = {
        word: round(sum(kind.get(word, 0.0) for kind in kinds) / (1 + sum(word in kind for kind in kinds)), 3)
        for word in words
    }
    return PairPrior(NAME, _BASE, weights)


def usd_at(recalls: Sequence[float], wanted: float = 0.9) -> float:
    """Return the share of the USD at which a curve reaches a recall, by linear interpolation."""
    points = [(0.0, 0.0), *zip(SHARES, recalls, strict=True), (1.0, 1.0)]
    for (a, low), (b, high) in pairwise(points):
        if low < wanted <= high:
            return a + (b - a) * (wanted - low) / (high - low)
    return 1.0


def measured(draws: Sequence[Sequence[GateStep]], way: StepSelection | None) -> float:
    """Return the share of the tiered USD at which 90 % of the correct pairs are found, by the mean curve."""
    curves = [
        oracle_gate_scores(steps, SHARES)
        if way is None
        else [run_gate_pass(steps, way, share, number).good for share in SHARES]
        for number, steps in enumerate(draws)
    ]
    return usd_at([mean(each) for each in zip(*curves, strict=True)])


def main() -> None:
    """Learn or measure."""
    ask = argparse.ArgumentParser(description="Learn or measure the prior of the gate.")
    ask.add_argument("tables", type=Path, nargs="+")
    ask.add_argument("--write", action="store_true")
    ask.add_argument("--measure", action="store_true")
    ask.add_argument("--on", type=Path, action="append", default=[])
    given = ask.parse_args()
    tables = [read(path) for path in given.tables]
    new = [read(path) for path in given.on]
    fits = {table.name: (table.kind, fit(table)) for table in tables}
    if given.write:
        write_prior(tables, learn(fits.values()))
    if given.measure:
        print("| table, teachers | draws | random | no prior | prior of other tables | oracle |")
        print("|---|---|---|---|---|---|")
        for table in new or tables:
            prior = learn(found for name, found in fits.items() if name != table.name)
            for strong in (True, False) if table.rewarded else (False,):
                print(row(table, strong, prior), flush=True)


def row(table: LearnedTable, strong: bool, prior: PairPrior) -> str:
    """Return the figures of a table as a row of Markdown."""
    some = [steps for side, steps in table.draws if side == strong]
    some = [steps for steps in some if sum(step.good for step in steps) >= FEWEST_GOOD]
    if not some:
        return f"| {table.name} | 0 | | | | |"
    ways = (
        StepSelection("random"),
        StepSelection(prior=PairPrior("none", _BASE)),
        StepSelection(prior=prior),
        None,
    )
    figures = " | ".join(f"{measured(some, way):.2f}" for way in ways)
    return f"| {table.name}, {'stronger' if strong else 'weaker'} | {len(some)} | {figures} |"


def write_prior(tables: Sequence[LearnedTable], prior: PairPrior) -> None:
    """Write the prior that ships, with what it was learned from."""
    of = {
        table.name: {
            "sha256": sha256(table.path.read_bytes()).hexdigest(),
            "draws": len(table.draws),
            "steps": sum(len(steps) for _, steps in table.draws),
            "pairs": sum(step.tiered_pair for _, steps in table.draws for step in steps),
        }
        for table in tables
    }
    features = sorted({word.partition("=")[0] for word in prior.weights})
    stored = {"name": prior.name, "gate": GATE_VERSION, "tables": of, "features": features}
    write_json(PRIOR_FILE, stored | {"base": prior.base, "weights": prior.weights})
    print(json.dumps(stored, indent=2))


if __name__ == "__main__":
    main()
