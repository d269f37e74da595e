"""Same effect beyond equal keys: reads that overlap, and Python files that differ in layout alone.

These are no equalities of keys: overlap is not transitive. So the actions at one step are put into groups
in which every two are alike (complete linkage), in an order that does not depend on who did them, and the
group stands for the effect.
"""

from collections.abc import Sequence

from tracemill.agreement.calls.effect import Outcome, Span
from tracemill.agreement.equivalence.ladder import Keys
from tracemill.agreement.files.python_layout import digest_without_layout

OVERLAP = 0.8
"""Least intersection over union at which two reads of a file are the same."""
CONTAINED = 0.9
"""Or least share of the smaller read that lies in the larger, where that is no more than twice as long."""
_OPEN_END = 1000


def name_same_effects(actions: Sequence[Keys]) -> list[str]:
    """For each action the name of its effect among these: equal where the effects are the same."""
    names = {keys.effect: keys for keys in actions}
    if len({keys.intent for keys in names.values()}) == len(names):  # what is alike has one intent
        return [keys.effect for keys in actions]
    groups: list[list[Keys]] = []
    for effect in sorted(names):
        keys = names[effect]
        group = next((g for g in groups if all(is_same_effect(keys, member) for member in g)), None)
        if group is None:
            groups.append([keys])
        else:
            group.append(keys)
    leader = {member.effect: group[0].effect for group in groups for member in group}
    return [leader[keys.effect] for keys in actions]


def is_same_effect(one: Keys, other: Keys) -> bool:
    """True where two actions have the same effect, by their keys or by a closer look."""
    if one.effect == other.effect:
        return True
    if one.intent != other.intent or len(one.deeds) != 1 or len(other.deeds) != 1:
        return False
    first, second = one.deeds[0], other.deeds[0]
    if first.span is not None and second.span is not None:
        return is_same_read_effect(first.span, second.span)
    return (
        first.outcome is not None and second.outcome is not None and _same_tree(first.outcome, second.outcome)
    )


def is_same_read_effect(one: Span, other: Span) -> bool:
    """True where two reads show much the same lines of a file."""
    if one.path != other.path:
        return False
    end = max(one.last or 0, other.last or 0, one.first, other.first) + _OPEN_END
    first, second = (one.first, one.last or end), (other.first, other.last or end)
    common = min(first[1], second[1]) - max(first[0], second[0]) + 1
    lengths = sorted((first[1] - first[0] + 1, second[1] - second[0] + 1))
    if common <= 0 or lengths[0] <= 0:
        return False
    if common / (sum(lengths) - common) >= OVERLAP:
        return True
    return common / lengths[0] >= CONTAINED and lengths[1] <= 2 * lengths[0]


def _same_tree(one: Outcome, other: Outcome) -> bool:
    if one.path != other.path or not one.path.endswith(".py"):
        return False
    tree = digest_without_layout(one.text)
    return tree is not None and tree == digest_without_layout(other.text)
