"""What a list of votes decides: `label_of`, for all votes of a step or any part of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import Keys, in_ladder_dead_zone
from tracemill.agreement.equivalence.same_effect import name_same_effects
from tracemill.agreement.voting.calibration import calibrated_chance
from tracemill.agreement.voting.policy import Policy
from tracemill.harnesses.core.vocabulary import WRITES, Operation

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
"""The verdicts at which enough teachers of enough families agree on one action, a pair or none: on another
one than the student's, on its own, on one of the same intent, on one that it does soon after. `one_family` is
not among them: votes of one family count as one opinion."""
_LENIENT = frozenset({Operation.READ, Operation.SEARCH, Operation.LIST})


@dataclass(frozen=True, slots=True)
class Voice:
    """One valid vote: who gives it, of which family, and for which action. `length` is that of the action
    as written; of two that say the same the shorter is taken."""

    teacher: str
    family: str
    keys: Keys
    length: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """What the votes come to. `backers` are the places of the votes behind the leading action, `chosen` of
    the one that stands for them where the verdict is `pair`. `chance`, that a further teacher
    would do the same, is None unless votes are weighed."""

    verdict: Verdict
    backers: tuple[int, ...] = ()
    chosen: int | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class _Lead:
    """The votes behind the leading action, and whether that is the student's own."""

    backers: tuple[int, ...]
    same_as_student: bool


def label_of(votes: Sequence[Voice], student: Keys, policy: Policy) -> Label:
    """What the votes decide against the student's action; the order of the votes does not matter.

    Votes are valid ones of different teachers. The leading action needs strictly more votes than any
    other. Verdicts: `pair`; `agrees_with_student`; `dead_zone`; `no_agreement`; `too_few_votes` (fewer
    votes than the threshold); `one_family`; `student_did_nothing` (neither text nor call).
    """
    if student.cls == EMPTY_KEY:
        return Label("student_did_nothing")
    if len(votes) < policy.threshold:
        return Label("too_few_votes")
    lead = _leading(votes, student, policy)
    if lead is None:
        return Label("no_agreement")
    wanted = len(votes) if policy.unanimous else policy.threshold
    if len(lead.backers) < max(wanted, policy.threshold):
        return Label("no_agreement", lead.backers)
    if lead.same_as_student:
        return Label("agrees_with_student", lead.backers)
    chance = _chance(votes, lead.backers, policy) if policy.min_chance else None
    if chance is not None and chance < policy.min_chance:
        return Label("no_agreement", lead.backers, chance=chance)
    if len({votes[place].family for place in lead.backers}) < policy.min_families:
        return Label("one_family", lead.backers, chance=chance)
    chosen = _medoid(votes, lead.backers)
    verdict = _judge(votes[chosen].keys, student, lead, policy)
    return Label(verdict, lead.backers, chosen if verdict == "pair" else None, chance)


def _leading(votes: Sequence[Voice], student: Keys, policy: Policy) -> _Lead | None:
    """The leading action on the policy's rung; else, where intents may do, that on the rung of intents."""
    names = name_labelled_actions([*(vote.keys for vote in votes), student], policy)
    backers = _most(names[:-1], range(len(votes)))
    if backers and len(backers) >= policy.threshold:
        return _Lead(backers, names[backers[0]] == names[-1])
    far = [place for place, vote in enumerate(votes) if label_agrees_by_intent(vote.keys, student, policy)]
    named = _most([votes[place].keys.intent for place in far], far)
    if named and len(named) >= policy.threshold:
        others = Counter(name for place, name in enumerate(names[:-1]) if place not in named)
        if len(named) > max(others.values(), default=0):
            return _Lead(named, False)
    return _Lead(backers, names[backers[0]] == names[-1]) if backers else None


def name_labelled_actions(actions: Sequence[Keys], policy: Policy) -> list[str]:
    """For each action what it counts as on the policy's rung, among these; equal where they are one."""
    if policy.level == "effect":
        return name_same_effects(actions)
    return [keys.at(policy.level) for keys in actions]


def label_agrees_by_intent(keys: Keys, student: Keys, policy: Policy) -> bool:
    """True where the same intent is enough for two votes to be for one action."""
    if policy.lenient and keys.cls in _LENIENT:
        return True
    far = policy.far and policy.level == "effect" and keys.cls != student.cls
    return far and keys.decisive


def _most(names: Sequence[str], places: Sequence[int]) -> tuple[int, ...] | None:
    """The places of the most frequent name; None where there are none, or two names as frequent."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    most = max(counts.values(), default=0)
    first = [name for name, count in counts.items() if count == most]
    if len(first) != 1:
        return None
    return tuple([place for place, name in zip(places, names, strict=True) if name == first[0]])


def _judge(chosen: Keys, student: Keys, lead: _Lead, policy: Policy) -> Verdict:
    if len(lead.backers) <= policy.threshold and _wants_more(chosen, student, policy):
        return "no_agreement"
    if not policy.dead_zone or not in_ladder_dead_zone(chosen, student):
        return "pair"
    return "pair" if label_tells_apart(chosen, student, policy) else "dead_zone"


def label_tells_apart(chosen: Keys, student: Keys, policy: Policy) -> bool:
    """True where two actions of the same intent are a pair all the same: what the student does cannot be
    carried out; or it guesses and the teachers do not; or neither does, and they ask other things of the
    same tables."""
    if student.broken:
        return True
    if not policy.grounded or chosen.guess:
        return False
    if student.guess:
        return True
    asked, own = (tuple(deed.asks for deed in keys.deeds) for keys in (chosen, student))
    return bool(all(asked) and all(own) and asked and own) and asked != own


def _wants_more(chosen: Keys, student: Keys, policy: Policy) -> bool:
    """True where the threshold alone is not enough: a guess against an action that is none, and two ways of
    writing files whose outcome is not known."""
    if policy.proven and chosen.cls in WRITES and student.cls in WRITES:
        return not (student.broken or (is_proven(chosen) and is_proven(student)))
    return policy.grounded and chosen.guess and not (student.guess and chosen.cls == student.cls)


def is_proven(keys: Keys) -> bool:
    """True where the outcome of everything that an action changes is known."""
    return all(deed.proven for deed in keys.deeds if deed.mutating)


def _chance(votes: Sequence[Voice], backers: Sequence[int], policy: Policy) -> float:
    """The chance that a further teacher does what those behind an action did; 1 where one more did."""
    if len(backers) > policy.threshold:
        return 1.0
    return calibrated_chance([votes[place].teacher for place in backers], policy)


def _medoid(votes: Sequence[Voice], backers: Sequence[int]) -> int:
    """The place of the vote most like the others behind an action; of equals the shortest."""
    rungs: tuple[Callable[[Keys], str], ...] = (
        lambda keys: keys.effect,
        lambda keys: keys.canonical,
        lambda keys: keys.exact,
    )
    counts = [Counter(rung(votes[place].keys) for place in backers) for rung in rungs]

    def order(place: int) -> tuple[bool, int, int, str, str]:
        vote = votes[place]
        like = sum(count[rung(vote.keys)] for count, rung in zip(counts, rungs, strict=True))
        return (vote.keys.guess, -like, vote.length, vote.keys.exact, vote.teacher)

    return min(backers, key=order)
