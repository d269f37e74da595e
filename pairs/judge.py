"""Pairs of a judge: a model that is shown the agent's and a teacher's action where the votes make no pair.

It is asked in both orders, and counts only if both answers say the same. What it says is weighed by its
precision on recorded tables; without one it makes no pair.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.disagreements import Proposal
from tracemill.pairs.step_pair import pair_at
from tracemill.records.families import UNKNOWN
from tracemill.records.identity import extend_prompt
from tracemill.records.message import Action, Message
from tracemill.records.pair import DPOPair
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

JUDGE_VERSION = "judge-1"
"""Raise it when a judge is asked otherwise; its precision is measured anew then."""
ORDERS = ("proposal first", "agent first")
AGENTS, NEITHER = "the judge prefers the agent's action", "the judge prefers neither"
UNMEASURED, OWN_FAMILY = "the judge's precision is not measured", "the judge has the agent's model family"
BY_CHANCE = "the judge is not known to be better than chance"
ALL_PARTS = "each proposal does some of the agent's action, or the agent some of it"
BY_ORDER, NO_ANSWER = "the judge's answer depends on the order", "no answer of the judge"
_CHANCE = 0.5
_LETTER = re.compile(r"\W*([ABN])\b")


@dataclass(frozen=True, slots=True)
class JudgePrecision:
    """The share of recorded disagreements that a judge decided rightly, with a 95 % interval.

    `right` and `wrong` count pairs of known rewards that it would have made; `ties` those with equal
    rewards. `asked` is the number of disagreements that it was asked about.
    """

    tables: tuple[str, ...]
    asked: int
    right: int
    wrong: int
    ties: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Return the precision."""
        return self.right / max(self.right + self.wrong, 1)

    @property
    def may_vote(self) -> bool:
        """Return whether the precision is better than chance."""
        return self.low > _CHANCE

    def __str__(self) -> str:
        """Return the precision in words."""
        known = self.right + self.wrong
        return f"right in {self.share:.2f} ({self.low:.2f} to {self.high:.2f}) of {known} known cases"


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge that makes pairs: its model, vendor family, and measured precision."""

    model: str
    family: str
    precision: JudgePrecision | None = None

    def teacher(self, order: str) -> str:
        """Return the teacher name under which its answers in one order are stored."""
        return f"{self.model} (judge, {order})"


def may_judge(judge: Judge, student_family: str) -> bool:
    """Return whether a judge is asked about a student; not if both are of one vendor family."""
    return judge.family != student_family or judge.family == UNKNOWN


def judge_message(proposal: Action, own: Action, order: str) -> Message:
    """Return the question that compares two actions, which follows the messages of the step."""
    sides = (proposal, own) if order == ORDERS[0] else (own, proposal)
    first, second = (_text_of(side) for side in sides)
    return Message(
        "user",
        "Two next actions are proposed for this point of the session.\n\n"
        f"A:\n{first}\n\nB:\n{second}\n\n"
        "Which of them is the better next action? Do not act and do not call a tool. Answer with one letter: "
        "A, B, or N if neither is better.",
    )


def judge_prompt_id(prompt_id: str, message: Message) -> str:
    """Return the id of a step's prompt extended by the question."""
    return extend_prompt(prompt_id, message)


def prefers_proposal(answer: Action | None, order: str) -> bool | None:
    """Return whether an answer prefers the proposal; None for neither, or where it is no letter."""
    letter = None if answer is None or answer.tool_calls else _LETTER.match(answer.text)
    if letter is None or letter[1] == "N":
        return None
    return (letter[1] == "A") == (order == ORDERS[0])


def judge_verdict(answers: Sequence[Action | None]) -> str:
    """Return "" if the answers in both orders prefer the proposal, else why they make no pair.

    There is a second answer only if the first prefers the proposal.
    """
    said = [prefers_proposal(answer, order) for answer, order in zip(answers, ORDERS, strict=False)]
    if answers[-1] is None:
        return NO_ANSWER
    if said[0] is not True:
        return NEITHER if said[0] is None else AGENTS
    return "" if said[1] is True else BY_ORDER


def judge_pair(
    state: TraceState,
    presentation: Presentation,
    proposal: Proposal,
    replies: Sequence[TeacherReply],
    judge: Judge,
) -> tuple[DPOPair | None, str]:
    """Return the pair of a judge's answers among the replies of a step, or why there is none.

    The second order is asked only if the first answer prefers the proposal.
    """
    if judge.precision is None:
        return None, UNMEASURED
    if not judge.precision.may_vote:
        return None, BY_CHANCE
    if not may_judge(judge, state.step.family):
        return None, OWN_FAMILY
    answers = {(reply.teacher, reply.prompt_id): reply for reply in replies}
    heard: list[TeacherReply | None] = []
    for order in ORDERS:
        message = judge_message(proposal.action, state.student_action, order)
        prompt_id = judge_prompt_id(presentation.prompt_ids[state.step.index], message)
        reply = answers.get((judge.teacher(order), prompt_id))
        heard.append(reply)
        if reply is None or prefers_proposal(reply.action, order) is not True:
            break
    why = judge_verdict([None if reply is None else reply.action for reply in heard])
    if why:
        return None, why
    pair = pair_at(state, "judge", proposal.action, _evidence(judge, proposal), "judge", presentation)
    said = [reply for reply in heard if reply is not None]
    return replace(
        pair,
        n_teachers_agreeing=len(proposal.teachers),
        cost_usd=sum(reply.cost_usd for reply in said),
        simulated=any(reply.simulated for reply in replies),
        weight=round(judge.precision.low, 4),
    ), ""


def _evidence(judge: Judge, proposal: Proposal) -> str:
    count = len(proposal.teachers)
    votes = "one teacher proposes it" if count == 1 else f"{count} teachers propose it"
    return f"{votes}, and a judge ({judge.model}) prefers it in both orders; the judge was {judge.precision}"


def _text_of(action: Action) -> str:
    calls = [f"{call.name} {call.arguments}" for call in action.tool_calls]
    return "\n".join(part for part in (action.text.strip(), *calls) if part)
