"""Caps: no repository and no one kind of choice makes up a dataset; nor a trace, where that is asked for.

The best rows come first: a point for each teacher that agrees, and points for what verified the row. Of
equals a hash decides, so that the first steps of a trace have no advantage.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.identity import StepId, digest
from tracemill.records.pair import DPOPair

Key = Callable[[DPOPair], str | None]

VERIFIED_POINTS = {"none": 0, "outcome": 1, "lookahead": 2, "execution": 3}
EVEN_PARTS = 2
"""A share is never less than that of so many even parts: of four repositories each may have half."""
DECIDING = frozenset(map(str, (Operation.EDIT, Operation.RUN_TEST, Operation.FINISH)))
"""Operations that decide how a session ends: a row is a deciding one with one of them on either side."""
LEFT = 3
"""Of so many rows the cap on those that decide nothing leaves one at least."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many rows there may be: `per_trace` of a trace, `per_operation` of those with the same class of
    chosen action, `repository_share` (0 to 1) of all rows from a repository, or a project where that is not
    known, and `cell_share` with the same classes of chosen and rejected action. `deciding_share` is the least
    share of rows with a side that edits, tests or finishes (`DECIDING`): other rows go until it is reached,
    none where there is no such row, and no more than leave a third of all. 0 is no cap. Caps leave `floor`
    rows where there are as many.

    The two caps of a trace are off unless they are set: they take what was paid for, and a model learns most
    from all pairs. A long trace is held by the share of its repository.
    """

    per_trace: int = 0
    per_operation: int = 0
    repository_share: float = 0.25
    cell_share: float = 0.75
    deciding_share: float = 0.3
    floor: int = 50


@dataclass(frozen=True, slots=True)
class Capped:
    """A row that a cap takes out: its place among the rows, the cap, why, and which row of its kind it is,
    the best being the first."""

    row: int
    cap: str
    reason: str
    rank: int


@dataclass(frozen=True, slots=True)
class CapCount:
    """What one cap was given and took out."""

    cap: str
    rows_in: int
    dropped: int


def apply_caps(
    pairs: Sequence[DPOPair], caps: Caps, pinned: Collection[int] = ()
) -> tuple[list[Capped], list[CapCount]]:
    """The rows that go, by place, and what each cap took, in the order the caps work. The same rows in any
    order give the same outcome. Where caps would leave fewer than the floor, the best rows come back. Rows
    that are `pinned`, by place, count first and never go."""
    left = sorted(range(len(pairs)), key=lambda row: (row not in pinned, rank_of(pairs[row])))
    gone: dict[int, Capped] = {}
    rows_in: list[int] = []
    for name, key, limit in _steps(caps):
        rows_in.append(len(left))
        seen: Counter[str] = Counter()
        most = limit([key(pairs[row]) for row in left])
        for row in left:
            kind = key(pairs[row])
            if most is None or kind is None:
                continue
            seen[kind] += 1
            if seen[kind] > most and row not in pinned:
                gone[row] = Capped(row, name, f"more than {most} {_OF[name]}", seen[kind])
        left = [row for row in left if row not in gone]
    for row in sorted(gone, key=lambda row: rank_of(pairs[row]))[: max(0, caps.floor - len(left))]:
        del gone[row]
    taken = Counter(each.cap for each in gone.values())
    counts = [
        CapCount(name, rows, taken[name]) for (name, *_), rows in zip(_steps(caps), rows_in, strict=True)
    ]
    return sorted(gone.values(), key=lambda each: each.row), counts


def rank_of(pair: DPOPair) -> tuple[int, str]:
    """What rows are ordered by, the best first."""
    points = pair.n_teachers_agreeing + VERIFIED_POINTS[pair.verified]
    return -points, digest("cap", pair.pair_id)


_OF = {
    "operation_cap": "of one class in a trace",
    "trace_cap": "in a trace",
    "repository_cap": "of one repository",
    "cell_cap": "of one kind of choice",
    "deciding_cap": "that neither edit, test nor finish",
}
_Limit = Callable[[Sequence[str | None]], int | None]


def _steps(caps: Caps) -> list[tuple[str, Key, _Limit]]:
    return [
        ("operation_cap", _trace_and_operation, _fixed(caps.per_operation)),
        ("trace_cap", _trace, _fixed(caps.per_trace)),
        ("repository_cap", _repository, _share(caps.repository_share)),
        ("cell_cap", _cell, _share(caps.cell_share)),
        ("deciding_cap", _undecided, _beside(caps.deciding_share)),
    ]


def _fixed(most: int) -> _Limit:
    return lambda kinds: most or None


def _share(share: float) -> _Limit:
    def limit(kinds: Sequence[str | None]) -> int | None:
        different = len({kind for kind in kinds if kind is not None})
        if not share or not different:
            return None
        return max(1, int(len(kinds) * max(share, EVEN_PARTS / different)))

    return limit


def _beside(share: float) -> _Limit:
    """How many rows may stand beside those without a kind, so that these have the share."""

    def limit(kinds: Sequence[str | None]) -> int | None:
        deciding = sum(kind is None for kind in kinds)
        if not share or not deciding:
            return None
        return max(int(deciding * (1 - share) / share + 1e-9), -(-len(kinds) // LEFT) - deciding)

    return limit


def _trace(pair: DPOPair) -> str:
    return StepId.parse(pair.step_id).trace_id


def _trace_and_operation(pair: DPOPair) -> str:
    return f"{_trace(pair)} {pair.chosen_operation}"


def _repository(pair: DPOPair) -> str | None:
    return pair.repository or pair.project


def _cell(pair: DPOPair) -> str:
    return f"{pair.chosen_operation} over {pair.rejected_operation}"


def is_deciding(pair: DPOPair) -> bool:
    """Whether a side of the pair edits files, runs tests or finishes."""
    return bool({pair.chosen_operation, pair.rejected_operation} & DECIDING)


def _undecided(pair: DPOPair) -> str | None:
    return None if is_deciding(pair) else "undecided"
