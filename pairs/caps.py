"""Caps on the share of a dataset that one repository, one kind of choice or one trace may have.

The best rows are kept: a row has a point for each agreeing teacher and points for how it was verified. A hash
breaks ties, so that early steps of a trace have no advantage.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.records.identity import StepId, digest
from tracemill.records.pair import DPOPair

Key = Callable[[DPOPair], str | None]

VERIFIED_POINTS = {"none": 0, "outcome": 1, "lookahead": 2, "execution": 3}
EVEN_SHARE_FACTOR = 2
"""No cap is below this many times an even share: of four repositories each may have half of the rows."""
PAID_SHARE_DROPPED = 0.15
"""The largest share of teachers' pairs, which were paid for, that the caps on shares drop."""
LEAST_KEPT = 3
"""The cap on other rows keeps at least one row in this many."""


@dataclass(frozen=True, slots=True)
class PairCaps:
    """Limits on the rows of a release; 0 is no limit.

    - `per_trace`: rows of a trace. `per_operation`: rows of a trace with the same chosen operation. Both are
      off by default: a model learns most from all pairs.
    - `repository_share` (0 to 1): share of a repository, or of a project if the repository is unknown.
    - `cell_share` (0 to 1): share of rows with the same chosen and rejected operations.
    - `deciding_share` (0 to 1): least share of deciding rows. Other rows are dropped until it is reached, but
      at most two thirds of all rows, and none if no row is deciding.
    - `floor`: rows that caps leave in any case, if there are as many.
    """

    per_trace: int = 0
    per_operation: int = 0
    repository_share: float = 0.25
    cell_share: float = 0.75
    deciding_share: float = 0.3
    floor: int = 50


@dataclass(frozen=True, slots=True)
class CappedRow:
    """A row that a cap drops: its index, the cap, the reason and its rank in its kind (the best is 1)."""

    row: int
    cap: str
    reason: str
    rank: int


@dataclass(frozen=True, slots=True)
class CapCount:
    """Rows that one cap was given, and how many it dropped."""

    cap: str
    rows_in: int
    dropped: int


def apply_caps(
    pairs: Sequence[DPOPair], caps: PairCaps, pinned: Collection[int] = ()
) -> tuple[list[CappedRow], list[CapCount]]:
    """Return the rows that caps drop, by index, and a count for each cap in the order of application.

    The caps on shares drop at most `PAID_SHARE_DROPPED` of the teachers' pairs, the worst ones; the caps on
    the rows of a trace, which are off unless set, have no such limit. A replay plans for the latter. The
    outcome does not depend on the order of the rows. If fewer than `caps.floor` rows are left, the best
    dropped rows are restored. Rows whose index is in `pinned` count first and are never dropped.
    """
    kept = sorted(range(len(pairs)), key=lambda row: (row not in pinned, rank_of(pairs[row])))
    dropped: dict[int, CappedRow] = {}
    rows_in: dict[str, int] = {}
    may_drop = int(PAID_SHARE_DROPPED * sum(_is_paid(pair) for pair in pairs))
    for name, key, limit in _ordered_caps(caps):
        rows_in[name] = len(kept)
        seen: Counter[str] = Counter()
        most = limit([key(pairs[row]) for row in kept])
        over: list[CappedRow] = []
        for row in kept:
            kind = key(pairs[row])
            if most is None or kind is None:
                continue
            seen[kind] += 1
            if seen[kind] > most and row not in pinned:
                reason = f"over the limit of {most} pairs {_SCOPE[name]}"
                over.append(CappedRow(row, name, reason, seen[kind]))
        for each in reversed(over):
            paid = _is_paid(pairs[each.row])
            if paid and may_drop <= 0 and name in _CAPS_ON_SHARES:
                continue
            may_drop -= paid
            dropped[each.row] = each
        kept = [row for row in kept if row not in dropped]
    for row in sorted(dropped, key=lambda row: rank_of(pairs[row]))[: max(0, caps.floor - len(kept))]:
        del dropped[row]
    n_dropped = Counter(each.cap for each in dropped.values())
    counts = [CapCount(name, rows, n_dropped[name]) for name, rows in rows_in.items()]
    return sorted(dropped.values(), key=lambda each: each.row), counts


def rank_of(pair: DPOPair) -> tuple[int, str]:
    """Return a sort key of a row; the best row sorts first."""
    points = pair.n_teachers_agreeing + VERIFIED_POINTS[pair.verified]
    return -points, digest("cap", pair.pair_id)


_SCOPE = {
    "operation_cap": "of one action type per session",
    "trace_cap": "per session",
    "repository_cap": "per repository",
    "cell_cap": "with the same two action types",
    "deciding_cap": "that neither edit, test nor finish",
}
_CAPS_ON_SHARES = ("repository_cap", "cell_cap", "deciding_cap")
_Limit = Callable[[Sequence[str | None]], int | None]


def _ordered_caps(caps: PairCaps) -> list[tuple[str, Key, _Limit]]:
    return [
        ("operation_cap", _trace_and_operation, lambda kinds: caps.per_operation or None),
        ("trace_cap", _trace, lambda kinds: caps.per_trace or None),
        ("repository_cap", _repository, _limit_share(caps.repository_share)),
        ("cell_cap", _cell, _limit_share(caps.cell_share)),
        ("deciding_cap", _other, _limit_other(caps.deciding_share)),
    ]


def _limit_share(share: float) -> _Limit:
    def limit(kinds: Sequence[str | None]) -> int | None:
        different = len({kind for kind in kinds if kind is not None})
        if not share or not different:
            return None
        return max(1, int(len(kinds) * max(share, EVEN_SHARE_FACTOR / different)))

    return limit


def _limit_other(deciding_share: float) -> _Limit:
    """Limit the rows that have a kind, so that those without one have at least this share."""

    def limit(kinds: Sequence[str | None]) -> int | None:
        deciding = sum(kind is None for kind in kinds)
        if not deciding_share or not deciding:
            return None
        other = int(deciding * (1 - deciding_share) / deciding_share + 1e-9)
        return max(other, -(-len(kinds) // LEAST_KEPT) - deciding)

    return limit


def _is_paid(pair: DPOPair) -> bool:
    return pair.label_source == "teachers"


def _trace(pair: DPOPair) -> str:
    return StepId.parse(pair.step_id).trace_id


def _trace_and_operation(pair: DPOPair) -> str:
    return f"{_trace(pair)} {pair.chosen_operation}"


def _repository(pair: DPOPair) -> str | None:
    return pair.repository or pair.project


def _other(pair: DPOPair) -> str | None:
    return None if is_deciding(pair) else "other"


def _cell(pair: DPOPair) -> str:
    return f"{pair.chosen_operation} over {pair.rejected_operation}"


def is_deciding(pair: DPOPair) -> bool:
    """Return whether a side of the pair edits files, runs tests or finishes."""
    return bool({pair.chosen_operation, pair.rejected_operation} & DECIDING)
