"""Bound what outstanding votes can do to a label.

An outstanding vote may be for any action, or not come at all. No completion is enumerated. The bounds use
what holds in all of them: votes with equal keys stay together, other votes join only where every two of them
are alike or share an intent that is enough, and a leading action has more votes than any other. The bounds
are conservative: a label called fixed is fixed; one that is not called so may be fixed too.
"""

from collections import Counter
from collections.abc import Sequence

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import ENDING_CLASSES, ActionKeys, in_ladder_dead_zone
from tracemill.agreement.voting.labels import (
    ValidVote,
    VoteLabel,
    is_label_half_bare,
    is_proven,
    label_agrees_by_intent,
    label_of,
    label_separates_actions,
)
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.harnesses.core.vocabulary import WRITES


def bounds_exclude_pair(
    votes: Sequence[ValidVote], student: ActionKeys, waiting: Sequence[str], policy: VotePolicy
) -> bool:
    """Return whether no outcome of the outstanding votes makes a pair.

    `waiting` has the families of the teachers that have not voted yet.
    """
    if student.action_class == EMPTY_KEY:
        return True
    if not waiting:
        return label_of(votes, student, policy).verdict != "pair"
    open_to = [place for place, vote in enumerate(votes) if not _never_in_pair(vote.keys, student, policy)]
    groups = [
        [place for place in open_to if _may_share_group(votes[place].keys, votes[at].keys, student, policy)]
        for at in open_to
    ]
    return not any(_may_win(votes, group, student, waiting, policy) for group in ([], *groups))


def bounds_ensure_pair(
    votes: Sequence[ValidVote], student: ActionKeys, waiting: Sequence[str], policy: VotePolicy
) -> bool:
    """Return whether the votes make a pair, and the same one whatever the outstanding votes are.

    It is the same pair if its key is the same, or its intent if the votes agree by intent.
    """
    label = label_of(votes, student, policy)
    if label.verdict != "pair" or not waiting:
        return label.verdict == "pair"
    if policy.unanimous or _may_be_half_bare(votes, label, student, policy):
        return False
    return _fixed_by_key(votes, label, student, len(waiting), policy) or _fixed_by_intent(
        votes, votes[label.backers[0]].keys, student, waiting, policy
    )


def _may_be_half_bare(
    votes: Sequence[ValidVote], label: VoteLabel, student: ActionKeys, policy: VotePolicy
) -> bool:
    """Return whether all votes must agree, or must as soon as a text joins votes for a finishing call."""
    backers = [votes[place].keys for place in label.backers]
    return policy.bare_needs_all and any(
        keys.bare != student.bare or keys.action_class in ENDING_CLASSES for keys in backers
    )


def _never_in_pair(keys: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    """Return whether no group that contains this vote can make a pair, whatever votes join it."""
    by_intent = label_agrees_by_intent(keys, student, policy)
    if keys.at(policy.level) == student.at(policy.level) and not by_intent:
        return True
    if not policy.dead_zone or student.broken or (policy.grounded and student.guess):
        return False
    asks = policy.grounded and any(effect.asks for effect in (*keys.effects, *student.effects))
    if keys.intent == student.intent:
        return not asks or not (by_intent or label_separates_actions(keys, student, policy))
    return policy.level != "intent" and not by_intent and in_ladder_dead_zone(keys, student)


def _may_share_group(one: ActionKeys, other: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    if one.at(policy.level) == other.at(policy.level):
        return True
    agree = label_agrees_by_intent(one, student, policy) and label_agrees_by_intent(other, student, policy)
    return agree and one.intent == other.intent


def _may_win(
    votes: Sequence[ValidVote],
    group: Sequence[int],
    student: ActionKeys,
    waiting: Sequence[str],
    policy: VotePolicy,
) -> bool:
    """Return whether a group can lead if every outstanding vote joins it."""
    most = len(group) + len(waiting)
    others = Counter(v.keys.at(policy.level) for place, v in enumerate(votes) if place not in group)
    families = {votes[place].family for place in group} | set(waiting)
    wanted = policy.threshold
    if (
        group
        and policy.proven
        and votes[group[0]].keys.action_class in WRITES
        and student.action_class in WRITES
    ):
        wanted += not (student.broken or is_proven(student))
    half_bare = group and all(is_label_half_bare(votes[at].keys, student, policy) for at in group)
    if others and (policy.unanimous or half_bare):
        return False
    return most >= wanted and most > max(others.values(), default=0) and len(families) >= policy.min_families


def _fixed_by_key(
    votes: Sequence[ValidVote], label: VoteLabel, student: ActionKeys, waiting: int, policy: VotePolicy
) -> bool:
    """Return whether the backers share one key and no other action can reach as many votes."""
    if len({votes[place].keys.at(policy.level) for place in label.backers}) > 1:
        return False
    if policy.dead_zone and policy.level == "intent" and student.parts:
        return False  # a part of the student's action may represent the group
    rest = [vote.keys for place, vote in enumerate(votes) if place not in label.backers]
    return _largest(rest, policy) + waiting < len(label.backers)


def _largest(rest: Sequence[ActionKeys], policy: VotePolicy) -> int:
    """Return the largest number of these votes that share one key."""
    return max(Counter(keys.at(policy.level) for keys in rest).values(), default=0)


def _fixed_by_intent(
    votes: Sequence[ValidVote],
    lead: ActionKeys,
    student: ActionKeys,
    waiting: Sequence[str],
    policy: VotePolicy,
) -> bool:
    """Return whether every action that can still lead has the leading intent and makes a pair."""
    same_intent = [vote for vote in votes if vote.keys.intent == lead.intent]
    rest = [vote.keys for vote in votes if vote.keys.intent != lead.intent]
    if lead.intent == student.intent or not all(
        label_agrees_by_intent(v.keys, student, policy) for v in same_intent
    ):
        return False
    if policy.proven and lead.action_class in WRITES and student.action_class in WRITES:
        return False
    if policy.grounded and any(vote.keys.guess for vote in same_intent):
        return False
    if policy.dead_zone and student.parts and not (_single(student) and _single(lead)):
        return False
    intents = Counter(keys.intent for keys in rest if label_agrees_by_intent(keys, student, policy))
    return (
        _largest(rest, policy) + len(waiting) < policy.threshold
        and max(intents.values(), default=0) + len(waiting) < len(same_intent)
        and _fewest_families([*(vote.family for vote in same_intent), *waiting], policy)
        >= policy.min_families
    )


def _single(keys: ActionKeys) -> bool:
    """Return whether an action has one effect that is more than preparation."""
    return len(keys.effects) == 1 and not keys.effects[0].setup


def _fewest_families(families: Sequence[str], policy: VotePolicy) -> int:
    """Return the smallest number of families that a threshold of votes can come from."""
    found, missing = 0, policy.threshold
    for _, count in Counter(families).most_common():
        if missing <= 0:
            break
        found, missing = found + 1, missing - count
    return found
