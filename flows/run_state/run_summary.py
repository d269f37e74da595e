"""What a run counted, and the closing table made of it."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from tracemill.flows.run_state.run_records import StartedRun


@dataclass(slots=True)
class Summary:
    """Counts of a shard or of a whole run; `add` sums them. Money in USD."""

    files: int = 0
    traces: int = 0
    contexts: int = 0
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
    unmatched: list[str] = field(default_factory=list)
    """A line for each entry of the selection that fits none."""
    redactions: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    not_asked: Counter[str] = field(default_factory=Counter)
    explored: int = 0
    """Questions at explored steps; of them `explored_left` were not asked."""
    explored_left: int = 0
    at_cap: int = 0
    """Chains of questions that the cap of the run ended."""
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
    """Why the label sources of packages gave no more pairs, each reason behind the name of its source."""
    pairs: Counter[str] = field(default_factory=Counter)
    gate: dict[str, Any] = field(default_factory=dict)
    """What the gate did, of the whole run (`flows.labeling.gate_report`)."""
    standing: dict[str, Any] = field(default_factory=dict)
    """How the teachers stand against the agents, of the whole run (`flows.labeling.teacher_standing`)."""
    outages: dict[str, str] = field(default_factory=dict)
    """Teachers given up after failures in a row, of the whole run, and why."""
    stopped: str | None = None

    def add(self, other: "Summary") -> None:
        """Add the counts of another shard; the first reason to stop stays."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if item.name == "stopped":
                self.stopped = mine or theirs
            elif item.name in ("gate", "outages"):
                setattr(self, item.name, mine or theirs)
            elif item.name == "standing":
                self.standing = theirs or mine
            else:
                setattr(self, item.name, mine + theirs)

    def to_json(self) -> dict[str, Any]:
        """Plain values, counters by falling count."""
        return {
            item.name: dict(value.most_common()) if isinstance(value, Counter) else value
            for item in fields(self)
            if item.name != "matched"
            for value in [getattr(self, item.name)]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Summary":
        """The inverse of `to_json`."""
        made = cls()
        for item in fields(cls):
            given = value.get(item.name)
            if given is not None:
                old = getattr(made, item.name)
                setattr(made, item.name, Counter(given) if isinstance(old, Counter) else given)
        return made


@dataclass(frozen=True, slots=True)
class ReleaseOutcome:
    """Where the release lies, or why there is none."""

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
    newer_answers: int = 0
    """Answers of teachers that the pairs were made without."""


def money_figures(run: StartedRun, cap_usd: float | None, total: Summary) -> dict[str, Any]:
    """Return what stands in the record of a run about its cap in USD: whether it left questions open, and
    whether the run had stopped at it before, so that nothing was asked."""
    closed = bool(run.closed(cap_usd)) and total.left_over > 0
    return {"cap_usd": cap_usd, "at_cap": closed or total.at_cap > 0, "asked_nothing": closed}
