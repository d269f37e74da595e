"""Teacher pairs: the action that enough teachers agree on as chosen, the agent's as rejected."""

from collections.abc import Sequence
from dataclasses import replace

from tracemill.agreement.equivalence.agreement_level import MEANING
from tracemill.agreement.equivalence.lookahead import look_ahead
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VoteResult, tally_votes
from tracemill.agreement.world.world_state import ContextHistory
from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.step_pair import pair_at
from tracemill.records.pair import DPOPair
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

PAIRS_VERSION = 9
"""Raise it when the same trace and votes give other pairs, of teachers or of hindsight."""


def teacher_pair(
    state: TraceState,
    presentation: Presentation,
    replies: Sequence[TeacherReply],
    policy: VotePolicy,
    record: ContextHistory | None = None,
) -> tuple[DPOPair | None, VoteResult]:
    """Return the pair of the replies at a step (None if they make none) and the result of the vote.

    `presentation` and `record` are those of the state's context; `record` is built if None. The pair costs
    as much as all replies at the step, failed ones included, and is `simulated` if any of them is.

    Later steps are checked. If the agent does the chosen action there, the verdict is `order_only` and
    there is no pair. If its call failed and it then did the action that the teachers agreed on, the pair is
    `verified = lookahead`.
    """
    result = tally_votes(state, presentation.tools, replies, policy, record)
    if result.chosen is None or result.chosen.action is None:
        return None, result
    chosen = result.chosen.action
    seen = look_ahead(state, presentation.tools, chosen, record)
    if seen == "order_only":
        return None, replace(result, verdict="order_only", chosen=None)
    pair = pair_at(state, "teachers", chosen, _evidence(result), policy.name, presentation)
    pair = replace(
        pair,
        n_teachers_agreeing=result.n_agreeing,
        votes=result.votes,
        families=result.families,
        cost_usd=sum(reply.cost_usd for reply in replies),
        simulated=any(reply.simulated for reply in replies),
        verified="lookahead" if seen == "confirmed" else pair.verified,
    )
    return pair, result


def _evidence(result: VoteResult) -> str:
    """Return how many votes agree, of which families, and at which level of equivalence."""
    voted = sum(vote.counted for vote in result.votes)
    votes = f"{result.n_agreeing} of {voted} {'vote' if voted == 1 else 'votes'}"
    families = ", ".join(result.families)
    if result.n_agreeing < 2 or result.level is None:
        return f"{votes} ({families}), and no other action has more"
    return f"{votes} ({families}) agree by {result.level}: {MEANING[result.level]}"
