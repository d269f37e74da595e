"""When a step's label can no longer change, so that no further teacher needs to be asked there.

Curtailed plurality: votes are counted as they come, cheapest teacher first, and counting ends once no
vote that is still out can matter. The label of a step is the action that is chosen there, or that none
is. `lossless` never changes it; `tiered` also ends a step whose first vote is the student's own action,
which a later majority might have outvoted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Literal

from agreement.vote import Policy, tally
from records.families import UNKNOWN
from records.message import ToolSpec
from records.reply import TeacherReply
from records.state import TraceState

Stop = Literal["off", "lossless", "tiered"]
CERTAIN = "the pair is certain"
HOPELESS = "no pair can come of it"
AGREED = "the first teacher agrees with the student"
_OWN = "student"
_MOST_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Cast:
    """One vote: for which action, of which vendor family. `pairs` is False where that action makes no
    pair, being the student's own (`own`) or too near to it."""

    key: str
    family: str
    pairs: bool = True
    own: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a step stands: why it is settled, "" where it is not; and how many of the next teachers may be
    asked together because no answer of the others among them could make one superfluous."""

    settled: str
    together: int


def label_of(casts: Sequence[Cast], policy: Policy) -> str | None:
    """The key of the chosen action, None where there is none: `agreement.vote.tally` on keys alone."""
    backers = _backers(casts)
    ranked = sorted(backers, key=lambda key: -len(backers[key]))
    if not ranked or (len(ranked) > 1 and len(backers[ranked[1]]) == len(backers[ranked[0]])):
        return None
    leading = backers[ranked[0]]
    families = {cast.family for cast in leading}
    enough = len(leading) >= policy.threshold and len(families) >= policy.min_families
    return ranked[0] if enough and leading[0].pairs else None


def settled(casts: Sequence[Cast], waiting: Sequence[str], policy: Policy, stop: Stop) -> str:
    """Why nothing that is still out can change the label, "" where something can.

    `waiting` holds the families of the teachers not heard yet; each may vote for anything, or not at all.
    """
    if stop == "off":
        return ""
    if stop == "tiered" and casts and all(cast.own for cast in casts):
        return AGREED
    backers = _backers(casts)
    label = label_of(casts, policy)
    if label is not None:
        others = max((len(votes) for key, votes in backers.items() if key != label), default=0)
        return CERTAIN if others + len(waiting) < len(backers[label]) else ""
    most = max((len(votes) for votes in backers.values()), default=0)
    chances = [votes for votes in backers.values() if votes[0].pairs]
    wins = any(_may_win(votes, _second(backers, votes), waiting, policy) for votes in chances)
    return "" if wins or _may_win([], most, waiting, policy) else HOPELESS


def _backers(casts: Sequence[Cast]) -> dict[str, list[Cast]]:
    found: dict[str, list[Cast]] = {}
    for cast in casts:
        found.setdefault(cast.key, []).append(cast)
    return found


def _second(backers: Mapping[str, list[Cast]], besides: list[Cast]) -> int:
    return max((len(votes) for votes in backers.values() if votes is not besides), default=0)


def _may_win(votes: Sequence[Cast], others: int, waiting: Sequence[str], policy: Policy) -> bool:
    """Whether an action is chosen where all that are waiting vote for it; `others` is the most votes any
    other action has."""
    most = len(votes) + len(waiting)
    families = {vote.family for vote in votes} | set(waiting)
    return most >= policy.threshold and most > others and len(families) >= policy.min_families


def together(casts: Sequence[Cast], waiting: Sequence[str], policy: Policy, stop: Stop) -> int:
    """How many of the next teachers may be asked at once without any of them becoming superfluous by
    what the ones before it answer; at least 1 where any is waiting."""
    if stop == "off" or len(waiting) < 2:
        return len(waiting)
    named: dict[str, str] = {}
    plain = [Cast(named.setdefault(c.key, f"k{len(named)}"), c.family, c.pairs, c.own) for c in casts]
    return _together(tuple(plain), tuple(waiting), replace(policy, name=""), stop)


@lru_cache(maxsize=4096)
def _together(casts: tuple[Cast, ...], waiting: tuple[str, ...], policy: Policy, stop: Stop) -> int:
    wide = 1
    while wide < min(len(waiting), _MOST_TOGETHER) and not _may_settle(casts, waiting, wide, policy, stop):
        wide += 1
    return wide


def _may_settle(
    casts: tuple[Cast, ...], waiting: tuple[str, ...], first: int, policy: Policy, stop: Stop
) -> bool:
    """Whether any answers of the first of those waiting would settle the step without the rest."""
    known = {cast.key: cast for cast in casts}
    own = next((cast for cast in casts if cast.own), Cast(_OWN, "", pairs=False, own=True))
    fresh = [Cast(f"new{number}", "") for number in range(first)]
    options = [None, *{**known, own.key: own}.values(), *fresh]
    return any(
        settled(
            (*casts, *(replace(c, family=f) for c, f in zip(votes, waiting, strict=False) if c)),
            waiting[first:],
            policy,
            stop,
        )
        for votes in product(options, repeat=first)
    )


class Referee:
    """Says of the steps of a replay whether they are settled. Each reply is looked at once."""

    def __init__(
        self, states: Mapping[str, tuple[TraceState, tuple[ToolSpec, ...]]], policy: Policy, stop: Stop
    ) -> None:
        """`states` has the state of each step, and the tools shown there, by step id."""
        self._states = states
        self._policy = policy
        self._single = replace(policy, threshold=1, min_families=1)
        self._stop: Stop = stop
        self._seen: dict[tuple[str, str, int], Cast | None] = {}

    def stand(self, step_id: str, replies: Sequence[TeacherReply], waiting: Sequence[str]) -> Standing:
        """How a step stands after these replies, all those of each teacher heard, while teachers of the
        families in `waiting` may still be asked. A step nobody knows is never settled."""
        found = self._states.get(step_id)
        if found is None or self._stop == "off":
            return Standing("", len(waiting))
        state = found[0]
        if not state.student_action.tool_calls and not state.student_action.text.strip():
            return Standing(HOPELESS, 0)
        casts = self._casts(step_id, replies)
        voters = [family for family in waiting if self._may_vote(family, state)]
        why = settled(casts, voters, self._policy, self._stop)
        idle = len(waiting) - len(voters)
        return Standing(why, 0 if why else idle + together(casts, voters, self._policy, self._stop))

    def _may_vote(self, family: str, state: TraceState) -> bool:
        kin = family == state.step.family != UNKNOWN
        return not (kin and self._policy.exclude_student_family)

    def _casts(self, step_id: str, replies: Sequence[TeacherReply]) -> list[Cast]:
        """The votes: of each teacher its first valid sample."""
        voted: dict[str, Cast] = {}
        for reply in sorted(replies, key=lambda r: (r.teacher, r.sample)):
            if reply.teacher not in voted and (cast := self._cast(step_id, reply)) is not None:
                voted[reply.teacher] = cast
        return list(voted.values())

    def _cast(self, step_id: str, reply: TeacherReply) -> Cast | None:
        """What a reply votes for, None where it has no vote."""
        place = (step_id, reply.teacher, reply.sample)
        if place not in self._seen:
            state, tools = self._states[step_id]
            alone = tally(state, tools, [reply], self._single)
            (vote,) = alone.votes
            own = vote.key == _OWN
            cast = Cast(vote.key, vote.family, alone.verdict == "pair", own) if vote.counted else None
            self._seen[place] = cast
        return self._seen[place]
