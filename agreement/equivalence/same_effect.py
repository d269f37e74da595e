"""Compare effects beyond equal keys: reads that overlap.

Overlap is not transitive, so the actions at one step are put into groups in which every two are alike
(complete linkage), in an order that does not depend on who did them.
"""

from collections.abc import Sequence

from tracemill.agreement.calls.effect import LineRange
from tracemill.agreement.equivalence.ladder import ActionKeys

OVERLAP = 0.8
"""Lowest intersection over union at which two reads of a file are the same."""
CONTAINED = 0.9
"""Or lowest share of the smaller read inside the larger, which is at most twice as long."""


def name_same_effects(actions: Sequence[ActionKeys]) -> list[str]:
    """Return a name for each action's effect; equal names are one effect among these."""
    names = {keys.effect: keys for keys in actions}
    groups: list[list[ActionKeys]] = []
    for effect in sorted(names):
        keys = names[effect]
        group = next((g for g in groups if all(is_same_effect(keys, member) for member in g)), None)
        if group is None:
            groups.append([keys])
        else:
            group.append(keys)
    leader = {member.effect: group[0].effect for group in groups for member in group}
    return [leader[keys.effect] for keys in actions]


def is_same_effect(one: ActionKeys, other: ActionKeys) -> bool:
    """Return whether two actions have the same effect, by their keys or by a closer look."""
    if one.effect == other.effect:
        return True
    if one.intent != other.intent or len(one.effects) != 1 or len(other.effects) != 1:
        return False
    first, second = one.effects[0], other.effects[0]
    return first.span is not None and second.span is not None and is_same_read_effect(first.span, second.span)


def is_same_read_effect(one: LineRange, other: LineRange) -> bool:
    """Return whether two reads show mostly the same lines of a file.

    With an end that is not known, only equal reads do.
    """
    if one.path != other.path:
        return False
    if one.last is None or other.last is None:
        return one == other
    first, second = (one.first, one.last), (other.first, other.last)
    common = min(first[1], second[1]) - max(first[0], second[0]) + 1
    lengths = sorted((first[1] - first[0] + 1, second[1] - second[0] + 1))
    if common <= 0 or lengths[0] <= 0:
        return False
    if common / (sum(lengths) - common) >= OVERLAP:
        return True
    return common / lengths[0] >= CONTAINED and lengths[1] <= 2 * lengths[0]
