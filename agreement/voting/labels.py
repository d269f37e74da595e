"""Turn the votes at a step into a label."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.harnesses.core.vocabulary import WRITES

Verdict = Literal[
    "pair",
    "agrees_with_student",
    "dead_zone",
    "order_only",
    "no_agreement",
    "too_few_votes",
    "one_family",
    "student_did_nothing",
]
AGREED_VERDICTS: frozenset[Verdict] = frozenset({"pair", "agrees_with_student", "dead_zone", "order_only"})
"""Verdicts at which enough teachers of enough families agree on one action, whether or not it is a pair.

`one_family` is not among them: votes of one family count as one opinion."""


@dataclass(frozen=True, slots=True)
class ValidVote:
    """A valid vote: teacher, vendor family and action.

    `length` is that of the action as written, in characters; of two equal actions the shorter is chosen.
    """

    teacher: str
    family: str
    keys: ActionKeys
    length: int = 0


@dataclass(frozen=True, slots=True)
class VoteLabel:
    """The decision of the votes.

    `backers` are the indices of the votes for the leading action. `chosen` is the index of the vote that
    represents them, set where the verdict is `pair`.
    """

    verdict: Verdict
    backers: tuple[int, ...] = ()
    chosen: int | None = None


@dataclass(frozen=True, slots=True)
class _Lead:
    """The votes for the leading action, and whether it is the student's own."""

    backers: tuple[int, ...]
    same_as_student: bool


def label_of(votes: Sequence[ValidVote], student: ActionKeys, policy: VotePolicy) -> VoteLabel:
    """Return the decision of the votes against the student's action; their order does not matter.

    `votes` are valid and of different teachers. The leading action needs strictly more votes than any
    other. `too_few_votes`: fewer votes than the threshold; `student_did_nothing`: neither text nor call.
    """
    if student.action_class == EMPTY_KEY:
        return VoteLabel("student_did_nothing")
    if len(votes) < policy.threshold:
        return VoteLabel("too_few_votes")
    lead = _leading(votes, student, policy)
    if lead is None:
        return VoteLabel("no_agreement")
    backers = [votes[place].keys for place in lead.backers]
    needs_all = policy.unanimous or any(is_label_half_bare(keys, student, policy) for keys in backers)
    wanted = len(votes) if needs_all else policy.threshold
    if len(lead.backers) < max(wanted, policy.threshold):
        return VoteLabel("no_agreement", lead.backers)
    if lead.same_as_student:
        return VoteLabel("agrees_with_student", lead.backers)
    if len({votes[place].family for place in lead.backers}) < policy.min_families:
        return VoteLabel("one_family", lead.backers)
    chosen = _shortest(votes, lead.backers)
    verdict = _judge(votes[chosen].keys, student, lead, policy)
    return VoteLabel(verdict, lead.backers, chosen if verdict == "pair" else None)


def is_label_half_bare(keys: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    """Return whether all valid votes must agree because one side alone is bare text."""
    return policy.bare_needs_all and keys.bare != student.bare


def _leading(votes: Sequence[ValidVote], student: ActionKeys, policy: VotePolicy) -> _Lead | None:
    """Return the leading action at the policy's level, else by intent where that is enough."""
    own = student.at(policy.level)
    names = [vote.keys.at(policy.level) for vote in votes]
    backers = _most_frequent(names, range(len(votes)))
    if backers and len(backers) >= policy.threshold:
        return _Lead(backers, names[backers[0]] == own)
    by_intent = [
        place for place, vote in enumerate(votes) if label_agrees_by_intent(vote.keys, student, policy)
    ]
    named = _most_frequent([votes[place].keys.intent for place in by_intent], by_intent)
    if named and len(named) >= policy.threshold:
        others = Counter(name for place, name in enumerate(names) if place not in named)
        if len(named) > max(others.values(), default=0):
            return _Lead(named, False)
    return _Lead(backers, names[backers[0]] == own) if backers else None


def label_agrees_by_intent(keys: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    """Return whether two votes agree where their intent is the same."""
    decides = policy.far and policy.level == "effect" and keys.action_class != student.action_class
    return decides and keys.decisive


def _most_frequent(names: Sequence[str], places: Sequence[int]) -> tuple[int, ...] | None:
    """Return the indices of the most frequent name; None if there is no name, or a tie."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    most = max(counts.values(), default=0)
    first = [name for name, count in counts.items() if count == most]
    if len(first) != 1:
        return None
    return tuple([place for place, name in zip(places, names, strict=True) if name == first[0]])


def _judge(chosen: ActionKeys, student: ActionKeys, lead: _Lead, policy: VotePolicy) -> Verdict:
    if len(lead.backers) <= policy.threshold and _needs_extra_vote(chosen, student, policy):
        return "no_agreement"
    if not policy.dead_zone or not (in_ladder_dead_zone(chosen, student) or _does_less(chosen, student)):
        return "pair"
    return "pair" if label_separates_actions(chosen, student, policy) else "dead_zone"


def _does_less(chosen: ActionKeys, student: ActionKeys) -> bool:
    """Return whether an action that does more than read does, by intent, only some of what another does."""
    if chosen.reading or not 0 < len(chosen.effects) < len(student.effects):
        return False
    done, more = (Counter(effect.intent for effect in keys.effects) for keys in (chosen, student))
    return done < more


def label_separates_actions(chosen: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    """Return whether two actions of the same intent still make a pair.

    They do if the student's action cannot be carried out, if only the student guesses names, or if neither
    guesses and both query the same tables for different things.
    """
    if student.broken:
        return True
    if not policy.grounded or chosen.guess:
        return False
    if student.guess:
        return True
    asked, own = (tuple(effect.asks for effect in keys.effects) for keys in (chosen, student))
    return bool(all(asked) and all(own) and asked and own) and asked != own


def _needs_extra_vote(chosen: ActionKeys, student: ActionKeys, policy: VotePolicy) -> bool:
    """Return whether a pair needs one vote more than the threshold.

    It does if the chosen action is a guess and the student's is not, and for two writes of unknown outcome.
    """
    if policy.proven and chosen.action_class in WRITES and student.action_class in WRITES:
        return not (student.broken or (is_proven(chosen) and is_proven(student)))
    return (
        policy.grounded
        and chosen.guess
        and not (student.guess and chosen.action_class == student.action_class)
    )


def is_proven(keys: ActionKeys) -> bool:
    """Return whether the outcome of everything that an action changes is known."""
    return all(effect.proven for effect in keys.effects if effect.mutating)


def _shortest(votes: Sequence[ValidVote], backers: Sequence[int]) -> int:
    """Return the index of the shortest vote that is not a guess."""

    def sort_key(place: int) -> tuple[bool, int, str, str]:
        vote = votes[place]
        return (vote.keys.guess, vote.length, vote.keys.exact, vote.teacher)

    return min(backers, key=sort_key)
