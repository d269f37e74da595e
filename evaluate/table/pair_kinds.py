"""Count the pairs of a table as one dataset, by source and operation, before and after caps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracemill.evaluate.table.student_draws import DecidedPair
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.pairs.caps import PairCaps, apply_caps, is_deciding
from tracemill.records.identity import make_trace_id
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair

SHOWN = tuple(map(str, Operation))
"""Classes of chosen actions that have a share in the report."""
NAVIGATION = frozenset(map(str, (Operation.READ, Operation.SEARCH, Operation.LIST)))


def pair_kinds_from_teachers(decided: Iterable[DecidedPair], votes: int) -> list[DPOPair]:
    """Return the teachers' pairs over all draws, one per step of a student, without texts.

    `votes` is how many teachers agree on each.
    """
    found: dict[str, DPOPair] = {}
    for pair in decided:
        state = pair.state
        step_id = f"{make_trace_id('run', state.task, pair.student)}:0:{state.number}"
        if step_id not in found:
            found[step_id] = _row(step_id, pair, votes)
    return list(found.values())


def _row(step_id: str, pair: DecidedPair, votes: int) -> DPOPair:
    chosen, rejected = pair.operations
    repository, dash, _ = pair.state.task.rpartition("-")
    return DPOPair(
        step_id,
        "teachers",
        (),
        (),
        (Message("assistant", ""),),
        (Message("assistant", ""),),
        chosen,
        rejected,
        "table",
        pair.state.harness,
        "",
        pair.student,
        "",
        n_teachers_agreeing=votes,
        repository=repository if dash else None,
        instance_id=pair.state.task,
    )


def count_pair_kinds(teachers: Sequence[DPOPair], others: Sequence[DPOPair]) -> dict[str, Any]:
    """Return the pairs by label source, before and after a release's default caps.

    `caps` has what each cap drops.
    """
    pairs = [*teachers, *others]
    gone, counts = apply_caps(pairs, PairCaps())
    lost = {each.row for each in gone}
    kept = [pair for row, pair in enumerate(pairs) if row not in lost]
    return {
        "before": _by_source(pairs),
        "after": _by_source(kept),
        "caps": {count.cap: count.dropped for count in counts},
    }


def _by_source(pairs: Sequence[DPOPair]) -> dict[str, Any]:
    sources: dict[str, list[DPOPair]] = {}
    for pair in pairs:
        sources.setdefault(pair.label_source, []).append(pair)
    return {name: pair_kind_shares(some) for name, some in sorted(sources.items())} | {
        "all": pair_kind_shares(pairs)
    }


def pair_kind_shares(pairs: Sequence[DPOPair]) -> dict[str, Any]:
    """Return the number of pairs, and the share of each kind.

    `deciding`: a side edits, tests or finishes. `navigation`: both sides only read or search. Other kinds
    are classes of chosen actions.
    """
    chosen = Counter(pair.chosen_operation for pair in pairs)
    looking = sum({pair.chosen_operation, pair.rejected_operation} <= NAVIGATION for pair in pairs)
    counts: Mapping[str, int] = {
        "deciding": sum(map(is_deciding, pairs)),
        "navigation": looking,
        **{name: chosen[name] for name in SHOWN if chosen[name]},
    }
    return {"pairs": len(pairs)} | {
        name: round(count / len(pairs), 4) if pairs else None for name, count in counts.items()
    }
