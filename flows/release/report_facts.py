"""Collect the figures of a run for the report of a release: calls, faults, savings."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tracemill.data_cards.model.release_spec import RunFigures, SavedCost, TeacherFigures
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.vote_policy import ASKED
from tracemill.flows.run_state.run_summary import Summary
from tracemill.records.pair import DPOPair
from tracemill.records.reply import AskDecision, FailureKind
from tracemill.records.storage.table_rows import decisions_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.price import Price
from tracemill.teachers.gate.gate_decisions import NOT_WORTH
from tracemill.teachers.planning.schedule import NOT_NEEDED

_REPLY_COLUMNS = (
    "step_id",
    "teacher",
    "failure",
    "latency_s",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "cost_usd",
)


@dataclass(slots=True)
class _Calls:
    """The replies of one teacher."""

    failures: Counter[str] = field(default_factory=Counter)
    latencies_s: list[float] = field(default_factory=list)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    completion_tokens: int = 0
    paid_usd: float = 0.0
    reading: int = 0
    """Calls that read a prompt cache."""

    def mean_usd(self) -> float:
        """Return the mean cost of an answer."""
        return self.paid_usd / len(self.latencies_s) if self.latencies_s else 0.0

    def cached_usd(self, price: Price) -> float:
        """Return the amount that prompt caches saved at these prices, less the cost of writing them."""
        saved = self.cached_tokens * (price.prompt - price.cache_read)
        if price.cache_write:
            saved -= self.written_tokens * (price.cache_write - price.prompt)
        return float(saved)

    def figures(self, name: str, tries: Mapping[str, int]) -> TeacherFigures:
        """Return the figures of the teacher; `tries` are the ledger's calls by result."""
        ordered = sorted(self.latencies_s)
        faults = Counter({kind: n for kind, n in tries.items() if kind in set(FailureKind)})
        return TeacherFigures(
            name=name,
            calls=len(ordered) + self.failures.total(),
            answered=len(ordered),
            failures=dict(self.failures.most_common()),
            again=dict((faults - self.failures).most_common()),
            p10_s=quantile(ordered, 0.1),
            p50_s=quantile(ordered, 0.5),
            p90_s=quantile(ordered, 0.9),
            slowest_s=ordered[-1] if ordered else 0.0,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            paid_usd=self.paid_usd,
        )


def quantile(ordered: list[float], share: float) -> float:
    """Return the value at `share` of a sorted list, interpolated; 0 for an empty one."""
    return float(np.quantile(ordered, share)) if ordered else 0.0


def run_figures(
    work: Workspace, settings: RunSettings, run_id: str, summary: Summary, pairs: Iterable[DPOPair]
) -> RunFigures:
    """Return the figures of the workspace after the replay; `pairs` are those before the recipe."""
    calls, answered = _calls(work)
    decisions = [d for table in work.current("decisions") for d in decisions_from_table(table)]
    prices = _prices(work, settings)
    asked = {d.step_id for d in decisions if d.outcome == ASKED}
    spared = [d for d in decisions if d.outcome.startswith(NOT_NEEDED) and d.step_id in asked]
    left = [d for d in decisions if d.verdict == "ask" and not d.outcome.startswith((ASKED, NOT_NEEDED))]
    means = {name: one.mean_usd() for name, one in calls.items()}
    tries = _tries(work, settings) if calls else {}
    return RunFigures(
        run_id=run_id,
        asked=len(asked),
        answered=len(answered),
        questions=summary.asked,
        answers=sum(len(one.latencies_s) for one in calls.values()),
        left_over=len(left),
        projected_usd=summary.spent_usd + sum(means.get(d.teacher, 0.0) for d in left) if calls else None,
        pairs_made=dict(sorted(Counter(pair.label_source for pair in pairs).items())),
        caching=SavedCost(
            usd=sum(one.cached_usd(prices[name]) for name, one in calls.items() if name in prices),
            calls=sum(one.reading for one in calls.values()),
        ),
        stopping=_saved(spared, means),
        gate=_saved((d for d in decisions if d.reason == NOT_WORTH), means),
        teachers=tuple(one.figures(name, tries.get(name, {})) for name, one in sorted(calls.items())),
    )


def _tries(work: Workspace, settings: RunSettings) -> dict[str, dict[str, int]]:
    """Count the results of all calls of the workspace's runs, by teacher; empty without their ledger."""
    if settings.ledger_url is None and not work.ledger_path.exists():
        return {}
    from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

    with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
        return ledger.outcomes([path.parent.name for path in (work.root / "runs").glob("*/run.json")])


def _calls(work: Workspace) -> tuple[dict[str, _Calls], set[str]]:
    """Return the replies by teacher, and the steps that have an answer."""
    found: dict[str, _Calls] = {}
    answered: set[str] = set()
    for table in work.current("replies", columns=_REPLY_COLUMNS):
        for row in table.to_pylist():
            one = found.setdefault(row["teacher"], _Calls())
            one.paid_usd += row["cost_usd"]
            one.prompt_tokens += row["prompt_tokens"]
            one.cached_tokens += row["cached_tokens"]
            one.written_tokens += row["cache_write_tokens"]
            one.completion_tokens += row["completion_tokens"]
            one.reading += row["cached_tokens"] > 0
            if row["failure"] is None:
                one.latencies_s.append(row["latency_s"])
                answered.add(row["step_id"])
            else:
                one.failures[row["failure"]] += 1
    return found, answered


def _prices(work: Workspace, settings: RunSettings) -> dict[str, Price]:
    """Return the price of each teacher as last read; no server is contacted."""
    asked = settings.asked_teachers()
    made = build_teachers(asked, os.environ, book=open_book(work), to_ask=False)
    return {teacher.name: teacher.price for teacher in made}


def _saved(spared: Iterable[AskDecision], means: Mapping[str, float]) -> SavedCost:
    """Return the estimated cost of calls that were not made.

    The cost at a step is the one the gate expected, else the mean of each teacher.
    """
    by_step: dict[str, list[AskDecision]] = {}
    for decision in spared:
        by_step.setdefault(decision.step_id, []).append(decision)
    usd = 0.0
    for decisions in by_step.values():
        expected = decisions[0].expected_usd if decisions[0].verdict == "skip" else None
        mean = sum(means.get(decision.teacher, 0.0) for decision in decisions)
        usd += mean if expected is None else expected
    return SavedCost(usd=usd, calls=sum(map(len, by_step.values())), steps=len(by_step))
