"""Find the actions that teachers propose at a step where their votes make no pair."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.agreement.voting.vote import VoteResult
from tracemill.records.message import Action
from tracemill.records.pair import Vote
from tracemill.records.reply import TeacherReply

DISPUTED = frozenset(("no_agreement", "dead_zone"))
"""Verdicts at which teachers do not agree, or agree on an action near the agent's."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another action than the agent's that `teachers` voted for.

    `is_part` is True if one of the two does only some of what the other does.
    """

    key: str
    action: Action
    teachers: tuple[str, ...]
    is_part: bool = False


def proposals_of(result: VoteResult, replies: Sequence[TeacherReply]) -> list[Proposal]:
    """Return the actions that teachers propose at a disputed step, by falling number of votes.

    Ties are broken by the length in characters, shortest first. A step with another verdict has none.
    """
    if result.verdict not in DISPUTED:
        return []
    acted = {reply.request_key: reply.action for reply in replies if reply.action is not None}
    by_key: dict[str, list[Vote]] = {}
    for vote in result.votes:
        if vote.counted and vote.key != "student" and vote.request_key in acted:
            by_key.setdefault(vote.key, []).append(vote)
    found = [
        Proposal(
            key,
            min((acted[vote.request_key] for vote in votes), key=_size),
            _names(votes),
            key in result.parts,
        )
        for key, votes in by_key.items()
    ]
    return sorted(found, key=lambda each: rank_proposal(len(each.teachers), each.action, each.key))


def judged_proposal(proposals: Sequence[Proposal]) -> Proposal | None:
    """Return the proposal that a judge compares with the agent's action; None if all are parts of one."""
    return next((each for each in proposals if not each.is_part), None)


def rank_proposal(votes: int, action: Action, key: str) -> tuple[int, int, str]:
    """Return the sort key of a proposal: most votes, then the shortest action."""
    return -votes, _size(action), key


def _names(votes: Sequence[Vote]) -> tuple[str, ...]:
    return tuple(sorted(vote.teacher for vote in votes))


def _size(action: Action) -> int:
    return len(action.text) + sum(len(call.arguments) for call in action.tool_calls)
