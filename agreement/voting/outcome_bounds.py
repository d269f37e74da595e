"""What votes that are still out can do to a label: bounds over every way in which they may be cast.

Each vote that is out may be for any action, known or not, or not come at all. No completion is tried. The
bounds use what holds in all of them: votes with equal keys stay together whatever else is voted, other
votes stand together only where any two of them are alike or, where intents may do, have the same intent,
and a leading action has more votes than any other. They err on one side: a label that is said to be fixed
is, and one that is not may be.
"""

from collections import Counter
from collections.abc import Sequence

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import Keys, in_ladder_dead_zone
from tracemill.agreement.equivalence.same_effect import is_same_effect
from tracemill.agreement.voting.labels import (
    Label,
    Voice,
    is_proven,
    label_agrees_by_intent,
    label_of,
    label_tells_apart,
)
from tracemill.agreement.voting.policy import Policy
from tracemill.harnesses.core.vocabulary import WRITES


def bounds_exclude_pair(
    votes: Sequence[Voice], student: Keys, waiting: Sequence[str], policy: Policy
) -> bool:
    """True where no completion makes a pair. `waiting` has the families of those that are out."""
    if student.cls == EMPTY_KEY:
        return True
    if not waiting:
        return label_of(votes, student, policy).verdict != "pair"
    open_to = [place for place, vote in enumerate(votes) if not _spoilt(vote.keys, student, policy)]
    groups = [
        [place for place in open_to if _may_join(votes[place].keys, votes[at].keys, student, policy)]
        for at in open_to
    ]
    return not any(_may_win(votes, group, student, waiting, policy) for group in ([], *groups))


def bounds_ensure_pair(votes: Sequence[Voice], student: Keys, waiting: Sequence[str], policy: Policy) -> bool:
    """True where the votes make a pair and every completion makes one of the same group: those with its
    key, or those of its intent where the intent is what was agreed on."""
    label = label_of(votes, student, policy)
    if label.verdict != "pair" or not waiting:
        return label.verdict == "pair"
    if policy.unanimous or policy.min_chance:
        return False
    return _held_by_key(votes, label, student, len(waiting), policy) or _held_by_intent(
        votes, votes[label.backers[0]].keys, student, waiting, policy
    )


def _spoilt(keys: Keys, student: Keys, policy: Policy) -> bool:
    """True where no group that this vote is in makes a pair, however many and whoever join it."""
    by_intent = label_agrees_by_intent(keys, student, policy)
    if keys.at(policy.level) == student.at(policy.level) and not by_intent:
        return True
    if not policy.dead_zone or student.broken or (policy.grounded and student.guess):
        return False
    asks = policy.grounded and any(deed.asks for deed in (*keys.deeds, *student.deeds))
    if keys.intent == student.intent:
        return not asks or not (by_intent or label_tells_apart(keys, student, policy))
    one_key = policy.level in ("exact", "canonical") or (policy.level == "effect" and not _stretches(keys))
    return one_key and not by_intent and in_ladder_dead_zone(keys, student)


def _stretches(keys: Keys) -> bool:
    """True where actions of another effect may be alike."""
    return len(keys.deeds) == 1 and (keys.deeds[0].span is not None or keys.deeds[0].outcome is not None)


def _may_stand_together(one: Keys, other: Keys, policy: Policy) -> bool:
    return (
        is_same_effect(one, other)
        if policy.level == "effect"
        else one.at(policy.level) == other.at(policy.level)
    )


def _may_join(one: Keys, other: Keys, student: Keys, policy: Policy) -> bool:
    if _may_stand_together(one, other, policy):
        return True
    agree = label_agrees_by_intent(one, student, policy) and label_agrees_by_intent(other, student, policy)
    return agree and one.intent == other.intent


def _may_win(
    votes: Sequence[Voice], group: Sequence[int], student: Keys, waiting: Sequence[str], policy: Policy
) -> bool:
    """Whether votes that may stand together can lead where all that are out join them."""
    most = len(group) + len(waiting)
    others = Counter(v.keys.at(policy.level) for place, v in enumerate(votes) if place not in group)
    families = {votes[place].family for place in group} | set(waiting)
    wanted = policy.threshold
    if group and policy.proven and votes[group[0]].keys.cls in WRITES and student.cls in WRITES:
        wanted += not (student.broken or is_proven(student))
    if policy.unanimous and others:
        return False
    return most >= wanted and most > max(others.values(), default=0) and len(families) >= policy.min_families


def _held_by_key(votes: Sequence[Voice], label: Label, student: Keys, waiting: int, policy: Policy) -> bool:
    """The backers have one key, and nobody can draw level."""
    lead = votes[label.backers[0]].keys
    if len({votes[place].keys.at(policy.level) for place in label.backers}) > 1:
        return False
    if policy.level == "effect" and is_same_effect(lead, student):
        return False
    if policy.dead_zone and _may_read_a_part(lead, student, policy):
        return False
    rest = [vote.keys for place, vote in enumerate(votes) if place not in label.backers]
    return _largest(rest, policy) + waiting < len(label.backers)


def _may_read_a_part(lead: Keys, student: Keys, policy: Policy) -> bool:
    """Whether an action of the group may stand for it that reads a part of what the student reads, or
    more than that, though the ones known do not."""
    if policy.level == "intent":
        return bool(student.reads)
    return policy.level == "effect" and _stretches(lead) and len(student.reads) > 1


def _largest(rest: Sequence[Keys], policy: Policy) -> int:
    """The most of some votes that can ever have one name."""
    return max((sum(_may_stand_together(one, other, policy) for other in rest) for one in rest), default=0)


def _held_by_intent(
    votes: Sequence[Voice], lead: Keys, student: Keys, waiting: Sequence[str], policy: Policy
) -> bool:
    """Whoever leads in the end is of the leading intent, and makes a pair."""
    kin = [vote for vote in votes if vote.keys.intent == lead.intent]
    rest = [vote.keys for vote in votes if vote.keys.intent != lead.intent]
    if lead.intent == student.intent or not all(label_agrees_by_intent(v.keys, student, policy) for v in kin):
        return False
    if policy.proven and lead.cls in WRITES and student.cls in WRITES:
        return False
    if policy.grounded and any(vote.keys.guess for vote in kin):
        return False
    if policy.dead_zone and student.reads and not (_single(student) and _single(lead)):
        return False
    intents = Counter(keys.intent for keys in rest if label_agrees_by_intent(keys, student, policy))
    return (
        _largest(rest, policy) + len(waiting) < policy.threshold
        and max(intents.values(), default=0) + len(waiting) < len(kin)
        and _fewest_families([*(vote.family for vote in kin), *waiting], policy) >= policy.min_families
    )


def _single(keys: Keys) -> bool:
    """True where an action is one deed that is no mere preparation."""
    return len(keys.deeds) == 1 and not keys.deeds[0].setup


def _fewest_families(families: Sequence[str], policy: Policy) -> int:
    """The least number of families that as many votes as the threshold can be of."""
    found, missing = 0, policy.threshold
    for _, count in Counter(families).most_common():
        if missing <= 0:
            break
        found, missing = found + 1, missing - count
    return found
