"""Choose the split of a session: by repository, then instance, then session.

Sides are remembered under keyed hashes and only ever added to, so a repository never changes side
between versions. Tasks that are nearly the same stand on one side. What would belong to two sides belongs
to none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.data_cards.writing.split_writer import TRAIN

OVERLAP = "eval_overlap"
HELD_OUT = ("validation", "test")
_ROOM = 1.5
"""A held-out side may grow to so many times its share by the last group that joins it."""


@dataclass(frozen=True, slots=True)
class SplitUnit:
    """A session with the fields that decide its split.

    `keys` are hashes that keep it together with other sessions, the strongest first: of its repository, its
    instance, itself. `near` are keys of sessions with nearly the same task. `rows` is the number of rows it
    adds, `overlap` whether it is made from an evaluation benchmark.
    """

    trace_id: str
    keys: tuple[str, ...]
    near: tuple[str, ...] = ()
    rows: int = 0
    overlap: bool = False


@dataclass(frozen=True, slots=True)
class AssignedSplits:
    """The split of each session, None if it belongs to two, and the splits to store by key."""

    sides: dict[str, str | None]
    by_key: dict[str, str]


@dataclass(slots=True)
class _Groups:
    """Groups of keys that occur together (union-find)."""

    parent: dict[str, str] = field(default_factory=dict)

    def find(self, key: str) -> str:
        while (above := self.parent.setdefault(key, key)) != key:
            self.parent[key] = self.parent[above]
            key = above
        return key

    def join(self, keys: Iterable[str]) -> None:
        first, *others = map(self.find, keys)
        for other in others:
            self.parent[other] = first


def apply_split_rule(
    units: Sequence[SplitUnit], known: Mapping[str, str], shares: Mapping[str, float]
) -> AssignedSplits:
    """Choose a split for each unit.

    `known` are the stored splits by key, `shares` (0 to 1) the target share of rows of each held-out split.

    A group without a known key goes to the held-out split that lacks most rows, if it fits, else to
    `train`; groups are processed in the order of their hashes. The same units give the same splits in any
    order.
    """
    by_key = dict(known)
    ordered = sorted(units, key=lambda unit: unit.keys)
    sides: dict[str, str | None] = {}
    for unit in _overlapping(ordered, by_key):
        sides[unit.trace_id] = by_key[unit.keys[-1]] = OVERLAP
    rest = [unit for unit in ordered if unit.trace_id not in sides]
    held: Counter[str] = Counter()
    fresh: list[list[SplitUnit]] = []
    for group in _grouped(rest):
        if any(_known(unit, by_key) for unit in group):
            _follow(group, by_key, sides)
            for unit in group:
                held[sides[unit.trace_id] or ""] += unit.rows
        else:
            fresh.append(group)
    total = sum(unit.rows for unit in rest)
    for group in fresh:
        rows = sum(unit.rows for unit in group)
        side = _side_for(rows, total, held, shares)
        held[side] += rows
        for unit in group:
            sides[unit.trace_id] = side
            by_key |= dict.fromkeys(unit.keys, side)
    return AssignedSplits(sides, by_key)


def _overlapping(units: Sequence[SplitUnit], by_key: Mapping[str, str]) -> Iterator[SplitUnit]:
    """Yield units made from a benchmark, and those with nearly the same task.

    Units that an earlier release put into another split are left out.
    """
    free = [unit for unit in units if by_key.get(unit.keys[-1], OVERLAP) == OVERLAP]
    there = [unit for unit in free if unit.overlap or unit.keys[-1] in by_key]
    yield from there
    named = {key for key, side in by_key.items() if side == OVERLAP} | {unit.keys[-1] for unit in there}
    yield from (unit for unit in free if unit not in there and not named.isdisjoint(unit.near))


def _grouped(units: Sequence[SplitUnit]) -> list[list[SplitUnit]]:
    groups, found = _Groups(), dict[str, list[SplitUnit]]()
    for unit in units:
        groups.join((*unit.keys, *unit.near))
    for unit in units:
        found.setdefault(groups.find(unit.keys[0]), []).append(unit)
    return sorted(found.values(), key=lambda group: min(min(unit.keys) for unit in group))


def _known(unit: SplitUnit, by_key: Mapping[str, str]) -> list[str]:
    sides = (by_key[key] for key in (*unit.keys, *unit.near) if key in by_key)
    return [side for side in sides if side != OVERLAP]


def _follow(group: Sequence[SplitUnit], by_key: dict[str, str], sides: dict[str, str | None]) -> None:
    """Assign the units of a group with some known keys.

    They go to the split of their own keys; units without a known key go to the split of the group, if it
    has one.
    """
    of_group = {side for unit in group for side in _known(unit, by_key)}
    for unit in sorted(group, key=lambda unit: not _known(unit, by_key)):
        mine = {by_key[unit.keys[-1]]} if unit.keys[-1] in by_key else set(_known(unit, by_key)) or of_group
        sides[unit.trace_id] = side = mine.pop() if len(mine) == 1 else None
        if side is not None:
            by_key |= {key: side for key in unit.keys if key not in by_key}


def _side_for(rows: int, total: int, held: Mapping[str, int], shares: Mapping[str, float]) -> str:
    lacks = {side: shares.get(side, 0.0) * total - held.get(side, 0) for side in HELD_OUT}
    side = max(HELD_OUT, key=lambda side: lacks[side])
    room = lacks[side] + (_ROOM - 1) * shares.get(side, 0.0) * total
    return side if 0 < rows <= room and lacks[side] > 0 else TRAIN
