"""Teacher pairs: what enough teachers would have done, against what the agent did."""

from collections.abc import Sequence
from dataclasses import replace

from tracemill.agreement.equivalence.agreement_rung import MEANING
from tracemill.agreement.equivalence.lookahead import look_ahead
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.vote import Tally, tally_votes
from tracemill.agreement.world.world_state import Record
from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.step_pair import pair_at
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

PAIRS_VERSION = 1
"""Raise it when the same trace and votes give other pairs, of teachers or of hindsight."""


def teacher_pair(
    state: TraceState,
    presentation: Presentation,
    replies: Sequence[TeacherReply],
    policy: Policy,
    record: Record | None = None,
) -> tuple[DPOPair | None, Tally]:
    """The pair the replies at a step make under a policy, None where they make none; and the count.

    `presentation` is that of the state's context, and so is `record`, made anew where none is given. The
    pair costs what all replies at the step cost, failed ones included, and is `simulated` where any of them
    is. The steps that follow are looked at: what differs in order alone is no pair (`order_only`), and one is
    `verified = lookahead` where the student's call failed and it then did what the teachers agreed on.
    """
    result = tally_votes(state, presentation.tools, replies, policy, record)
    if result.chosen is None or result.chosen.action is None:
        return None, result
    chosen = result.chosen.action
    seen = look_ahead(state, presentation.tools, chosen, record)
    if seen == "order_only":
        return None, replace(result, verdict="order_only", chosen=None)
    pair = _pair(state, presentation, replies, policy, result, chosen)
    return replace(pair, verified="lookahead") if seen == "confirmed" else pair, result


def _pair(
    state: TraceState,
    presentation: Presentation,
    replies: Sequence[TeacherReply],
    policy: Policy,
    result: Tally,
    chosen: Action,
) -> DPOPair:
    made = pair_at(state, "teachers", chosen, _evidence(result), policy.name, presentation)
    return replace(
        made,
        n_teachers_agreeing=result.n_agreeing,
        votes=result.votes,
        families=result.families,
        cost_usd=sum(reply.cost_usd for reply in replies),
        simulated=any(reply.simulated for reply in replies),
    )


def _evidence(result: Tally) -> str:
    """How many of the votes agree, of which families, and on what rung of the ladder."""
    voted = sum(vote.counted for vote in result.votes)
    votes = f"{result.n_agreeing} of {voted} {'vote' if voted == 1 else 'votes'}"
    families = ", ".join(result.families)
    if result.n_agreeing < 2 or result.rung is None:
        return f"{votes} ({families}), and no other action has more"
    return f"{votes} ({families}) agree by {result.rung}: {MEANING[result.rung]}"
