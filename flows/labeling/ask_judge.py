"""Ask a judge at the steps where the teachers' votes make no pair, in both orders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracemill.flows.labeling.label_shard import (
    TraceBatch,
    group_replies,
    load_replies,
    voted_steps,
    write_replies,
)
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.pairs.disagreements import judged_proposal, proposals_of
from tracemill.pairs.judge import (
    JUDGE_VERSION,
    ORDERS,
    Judge,
    judge_message,
    judge_prompt_id,
    may_judge,
    prefers_proposal,
)
from tracemill.records.message import Action
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question
from tracemill.teachers.planning.schedule import AT_CAP, AT_DAY_CAP

if TYPE_CHECKING:
    from tracemill.flows.labeling.ask_session import AskSession
    from tracemill.teachers.replay.replay_run import ReplayResult


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A step with an action that a teacher proposes and the agent's own, and the question about it."""

    question: Question
    proposal: Action
    own: Action

    def asked(self, order: str) -> Question:
        """Return the question to the judge with the two actions in one order."""
        message = judge_message(self.proposal, self.own, order)
        return replace(
            self.question,
            messages=(*self.question.messages, message),
            prompt_id=judge_prompt_id(self.question.prompt_id, message),
            presentation=f"{self.question.presentation}+{JUDGE_VERSION}",
            former_prompt_id="",
        )


def ask_judge(work: Workspace, batches: Sequence[TraceBatch], asking: "AskSession") -> list[Summary]:
    """Ask the judge about disputed steps, and store its answers; return the counts of each batch.

    The second order is asked only if the first answer prefers the proposal. Without a measured precision
    above chance nothing is asked. Raises KeyboardInterrupt after Ctrl-C, once the paid answers are stored.
    """
    judge = asking.judge
    if judge is None or judge.precision is None or not judge.precision.may_vote:
        return [Summary() for _ in batches]
    steps = [list(_disputed(work, batch, asking, judge)) for batch in batches]
    counts = [Summary() for _ in batches]
    waiting = [step for some in steps for step in some]
    for order in ORDERS:
        result = asking.ask_judge([step.asked(order) for step in waiting], order)
        preferred: set[str] = set()
        for place, batch in enumerate(batches):
            here = {step.question.step_id for step in steps[place]}
            replies = [reply for reply in result.replies if reply.step_id in here]
            if replies:
                write_replies(work, batch.source, batch.trace_ids, replies)
            preferred |= {r.step_id for r in replies if prefers_proposal(r.action, order)}
            left = sum(step_id in here for step_id, _ in result.not_asked)
            counts[place] += _counts(replies, left, result.sent)
        counts[0] += count_calls(result) + Summary(stopped=result.stopped)
        waiting = [step for step in waiting if step.question.step_id in preferred]
        raise_if_interrupted()
    return counts


def count_calls(result: "ReplayResult") -> Summary:
    """Count the calls of a replay."""
    counters = result.counters
    return Summary(
        calls=counters["attempts"],
        reused=counters["cached"],
        at_cap=counters[AT_CAP],
        at_day_cap=counters[AT_DAY_CAP],
        unpriced_calls=counters["unpriced"],
        unpriced_usd=nanousd_to_usd(counters["unpriced_nanousd"]),
    )


def _counts(replies: Sequence[TeacherReply], left: int, sent: frozenset[str]) -> Summary:
    failed = [reply for reply in replies if reply.failure is not None]
    now = [reply for reply in replies if reply.request_key in sent]
    summary = Summary(left_over=left, answered_now=sum(reply.failure is None for reply in now))
    for reply in failed:
        summary.failures[str(reply.failure)] += 1
    for reply in now:
        if reply.failure is not None:
            summary.failed_now[str(reply.failure)] += 1
    return summary


def _disputed(work: Workspace, batch: TraceBatch, asking: "AskSession", judge: Judge) -> Iterator[JudgedStep]:
    by_step = group_replies(load_replies(work, batch.trace_ids))
    policy = build_vote_policy(asking.settings)
    for item in batch.shown:
        questions = {question.step_id: question for question in item.questions()}
        for step in voted_steps(item, by_step, policy):
            if not may_judge(judge, step.state.step.family):
                continue
            proposal = judged_proposal(proposals_of(step.result, step.answers))
            if proposal is not None:
                question = questions[str(step.state.step_id)]
                yield JudgedStep(question, proposal.action, step.state.student_action)
