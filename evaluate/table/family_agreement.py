"""Count how often two models do the same in a state, by family and equivalence level."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.evaluate.table.recorded_states import StateTable
from tracemill.records.families import UNKNOWN

NOT_KNOWN = "family not known"
LEVELS: Mapping[str, Callable[[ActionKeys, ActionKeys], bool]] = {
    "exact": lambda one, other: one.exact == other.exact,
    "canonical": lambda one, other: one.canonical == other.canonical,
    "effect": lambda one, other: one.effect == other.effect,
    "intent": lambda one, other: one.intent == other.intent,
    "class": lambda one, other: one.action_class == other.action_class,
}


def count_family_agreement(table: StateTable) -> list[dict[str, Any]]:
    """Return the agreement of valid actions for every two vendor families, by level.

    A family is also paired with itself. Totals over all families come first; unknown families have a row of
    their own.
    """
    count: dict[tuple[str, str], Counter[str]] = {}
    for state in table.states:
        valid = [done for done in state.acted.values() if not done.reason]
        for one, other in combinations(valid, 2):
            first, second = sorted((one.family, other.family))
            seen = count.setdefault((first, second), Counter())
            seen["meetings"] += 1
            for name, same in LEVELS.items():
                if same(one.keys, other.keys):
                    seen[name] += 1
    kinds = {"same family": Counter[str](), "two families": Counter[str](), NOT_KNOWN: Counter[str]()}
    for (one, other), seen in count.items():
        kind = "same family" if one == other else "two families"
        kinds[NOT_KNOWN if UNKNOWN in (one, other) else kind] += seen
    rows = [_row(kind, "", seen) for kind, seen in kinds.items()]
    ordered = sorted(count.items(), key=lambda each: (-each[1]["meetings"], each[0]))
    return [row for row in rows if row["meetings"]] + [_row(*pair, seen) for pair, seen in ordered]


def _row(one: str, other: str, seen: Counter[str]) -> dict[str, Any]:
    total = seen["meetings"]
    shares = {name: round(seen[name] / total, 4) if total else None for name in LEVELS}
    return {"one": one, "other": other, "meetings": total} | shares
