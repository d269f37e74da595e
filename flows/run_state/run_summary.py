"""Counts of a run, as values that are added up."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from tracemill.flows.run_state.run_records import StartedRun

_REPORTS = ("gate", "judge", "outages")


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a shard or of a whole run, money in USD; `+` adds those of a later one."""

    files: int = 0
    traces: int = 0
    contexts: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    """Traces by the name of their source's format."""
    states: int = 0
    records: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """Kinds of records that no reader has heard of, by their names."""
    changes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    matched: Counter[int] = field(default_factory=Counter)
    """How many traces each entry of the selection fits, by its place; for this process alone."""
    unmatched: tuple[str, ...] = ()
    """A line for each entry of the selection that fits none."""
    redactions: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    not_asked: Counter[str] = field(default_factory=Counter)
    explored: int = 0
    """Questions at explored steps; of them `explored_left` were not asked."""
    explored_left: int = 0
    at_cap: int = 0
    """Chains of questions that the cap of the run ended; `at_day_cap` those that the cap of the day did."""
    at_day_cap: int = 0
    left_over: int = 0
    """Questions among those not asked that the next run asks: the cap was reached, a teacher was out."""
    calls: int = 0
    reused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Questions without an answer, by kind; those whose failure is kept like an answer among them."""
    answered_now: int = 0
    """Questions that were sent and answered; `failed_now` those that were sent and not."""
    failed_now: Counter[str] = field(default_factory=Counter)
    failed_first: int = 0
    """Of those that failed, the ones that no earlier run had asked."""
    spent_usd: float = 0.0
    held_usd: float = 0.0
    held_calls: int = 0
    unpriced_usd: float = 0.0
    unpriced_calls: int = 0
    """Calls whose price nobody said: booked as spent at their worst case."""
    verdicts: Counter[str] = field(default_factory=Counter)
    hindsight_skips: Counter[str] = field(default_factory=Counter)
    pair_skips: Counter[str] = field(default_factory=Counter)
    """Why label sources beside teachers and hindsight gave no more pairs, each reason behind its source."""
    pairs: Counter[str] = field(default_factory=Counter)
    gate: dict[str, Any] = field(default_factory=dict)
    """What the gate did, of the whole run (`flows.labeling.gate_report`)."""
    judge: str = ""
    """What is known of the judge, of the whole run (`flows.labeling.judge_setup`)."""
    outages: dict[str, str] = field(default_factory=dict)
    """Teachers given up after failures in a row, of the whole run, and why."""
    stopped: str | None = None

    def __add__(self, later: "Summary") -> "Summary":
        """Add the counts of a later summary."""
        return add_up((self, later))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with counters sorted by count."""
        return {
            item.name: _plain(getattr(self, item.name)) for item in fields(self) if item.name != "matched"
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Summary":
        """Parse a summary that `to_json` returned; a missing count is 0."""
        empty, given = cls(), {name: value.get(name) for name in _NAMES}
        return cls(
            **{
                name: type(getattr(empty, name))(each) if isinstance(each, dict | list) else each
                for name, each in given.items()
                if each is not None
            }
        )


def add_up(summaries: Iterable[Summary]) -> Summary:
    """Add counts in order; the first reason to stop and the latest report on a run are kept."""
    values: dict[str, Any] = {}
    for summary in summaries:
        for name in _NAMES:
            theirs = getattr(summary, name)
            if not theirs or (name == "stopped" and name in values):
                continue
            if name in values and name not in _REPORTS:
                values[name] = values[name] + theirs
            else:
                values[name] = theirs
    return Summary(**values)


_NAMES = tuple(item.name for item in fields(Summary))


def _plain(value: Any) -> Any:
    if isinstance(value, Counter):
        return dict(value.most_common())
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class ReleaseOutcome:
    """Result of the release stage: the place of the release, or the reason for none."""

    path: str | None
    version: str | None
    rows: int
    created: bool
    dropped: dict[str, int]
    kept: dict[str, int]
    note: str = ""
    gate: str = ""
    """What the publish gate said, a line for people each."""
    pushed: str = ""
    """Where on the Hub it is, a line for people each."""
    siblings: dict[str, int] = field(default_factory=dict)
    """Pairs that look across traces, by kind: they are made for the release."""
    no_sibling: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)
    """Rows of each split."""
    labels: dict[str, int] = field(default_factory=dict)
    """Labelled actions that are released, by source."""
    labels_dropped: dict[str, int] = field(default_factory=dict)
    """Steps that gave no label, by source and reason."""
    warnings: list[str] = field(default_factory=list)
    """Signs that labels are wrong together, a sentence each."""
    terms: dict[str, int] = field(default_factory=dict)
    """Rows by the terms of a vendor that restrict training on them, a sentence."""
    newer_answers: int = 0
    """Answers of teachers that the pairs were made without."""

    @property
    def all_rows(self) -> int:
        """Return the number of released pairs and labelled actions."""
        return self.rows + sum(self.labels.values())


def money_figures(run: StartedRun, cap_usd: float | None, total: Summary) -> dict[str, Any]:
    """Return the entries on a run's cap for its record, in USD.

    They are whether the cap stopped it, whether it left questions unanswered for any reason, and whether
    the cap was reached before, so that nothing was asked.
    """
    closed = bool(run.closed(cap_usd)) and total.left_over > 0
    over = total.left_over > 0 and cap_usd is not None and total.spent_usd >= cap_usd
    return {
        "cap_usd": cap_usd,
        "at_cap": closed or over or total.at_cap > 0,
        "unfinished": total.stopped is not None,
        "asked_nothing": closed or (total.at_day_cap > 0 and not total.calls),
    }
