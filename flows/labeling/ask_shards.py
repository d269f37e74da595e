"""Shards through decide → ask → replies: several in one plan, so that few calls are waited for alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tracemill.flows.labeling.gate_run import build_value_stop
from tracemill.flows.labeling.label_shard import (
    Shown,
    load_decisions,
    load_replies,
    write_decisions,
    write_replies,
)
from tracemill.flows.labeling.vote_policy import build_stopper, record_vote_outcomes
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.records.reply import Decision, TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.price import nusd_to_usd
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.planning.schedule import AT_CAP, NOT_NEEDED

if TYPE_CHECKING:
    from tracemill.flows.labeling.ask_session import Asking
    from tracemill.teachers.gate.value_stop import ValueStop
    from tracemill.teachers.replay.replay_run import ReplayResult

T = TypeVar("T", bound=Sequence[object])

TRACES_A_CALL = 10
"""Traces of one plan for every call in flight: at its end each trace is still asked step by step, and of so
many the last few make less than a tenth of the time."""
FEWEST_CALLS = 32
"""Calls in flight that a plan is made for at least: what a cap buys is not to depend on fewer."""
MOST_SHARDS = 4
"""Shards of one plan at most: their text is in memory together."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The traces of one source that are written together, as they are shown."""

    source: str
    shown: Sequence[Shown]

    @property
    def trace_ids(self) -> list[str]:
        """Their ids."""
        return [item.trace.trace_id for item in self.shown]


def plan_ask_shards(shards: Iterable[T], asking: "Asking | None") -> Iterator[list[T]]:
    """The shards in the groups that are asked together: as many as make a plan that keeps all calls in
    flight, one by one where nobody is asked."""
    enough = 0 if asking is None else TRACES_A_CALL * max(asking.settings.replay.concurrency, FEWEST_CALLS)
    group: list[T] = []
    for shard in shards:
        group.append(shard)
        if len(group) == MOST_SHARDS or sum(map(len, group)) >= enough:
            yield group
            group = []
    if group:
        yield group


def ask_shards(
    work: Workspace, shards: Sequence[Shard], asking: "Asking | None"
) -> list[tuple[list[TeacherReply], Summary]]:
    """Decide, write the decisions, ask, write the replies; gives all replies the traces of each shard have.
    What belongs to no single shard, such as the calls made, is in the summary of the first. Raises
    KeyboardInterrupt where Ctrl-C was pressed, once what was bought is written."""
    if asking is None:
        return [(load_replies(work, shard.trace_ids), Summary()) for shard in shards]
    shown = [item for shard in shards for item in shard.shown]
    decided = [_decide(work, shard, asking) for shard in shards]
    every = [decision for decisions in decided for decision in decisions]
    referee = build_stopper(asking.settings, shown)
    value = build_value_stop(referee, every, asking.settings, asking.gate)
    if asking.room is not None:
        asking.room.show(shown, every)
    result = asking.ask(
        [question for item in shown for question in item.questions()],
        every,
        sum(item.trace.step_count for item in shown),
        referee,
        {item.trace.trace_id: item.reply for item in shown},
        value,
    )
    done = [_write(work, *pair, result, value) for pair in zip(shards, decided, strict=True)]
    _count_calls(done[0][1], result)
    if result.stopped and not any(summary.stopped for _, summary in done):
        done[0][1].stopped = result.stopped
    raise_if_interrupted()
    return done


def _decide(work: Workspace, shard: Shard, asking: "Asking") -> list[Decision]:
    """The decisions of a shard, written before any money is spent on them."""
    questions = [question for item in shard.shown for question in item.questions()]
    decisions = asking.decide(questions, load_decisions(work, shard.trace_ids), shard.shown)
    write_decisions(work, shard.source, shard.trace_ids, decisions)
    asking.remember(load_replies(work, shard.trace_ids))
    return decisions


def _write(
    work: Workspace,
    shard: Shard,
    decisions: Sequence[Decision],
    result: "ReplayResult",
    value: "ValueStop | None",
) -> tuple[list[TeacherReply], Summary]:
    """The replies of a shard and what came of its decisions, written and counted."""
    steps = {decision.step_id for decision in decisions}
    fresh = [reply for reply in result.replies if reply.step_id in steps]
    summary = _failures(work, shard, fresh, result)
    replies = write_replies(work, shard.source, shard.trace_ids, fresh)
    outcomes = record_vote_outcomes(decisions, result.not_asked)
    if value is not None:
        outcomes = value.with_looks(outcomes, fresh)
    write_decisions(work, shard.source, shard.trace_ids, outcomes)
    for decision in decisions:
        _count(summary, decision, result.not_asked.get((decision.step_id, decision.teacher)))
    summary.stopped = result.stopped if summary.left_over else None
    return replies, summary


def _failures(
    work: Workspace, shard: Shard, fresh: Sequence[TeacherReply], result: "ReplayResult"
) -> Summary:
    """The failures of a shard; of what was sent now the answers and the failures, and those of questions
    that no reply in the workspace is to yet."""
    summary = Summary(failures=Counter(reply.failure for reply in fresh if reply.failure is not None))
    sent = [reply for reply in fresh if reply.request_key in result.sent]
    failed = [reply for reply in sent if reply.failure is not None]
    summary.answered_now = len(sent) - len(failed)
    summary.failed_now = Counter(reply.failure for reply in failed if reply.failure is not None)
    if failed:
        known = {reply.request_key for reply in load_replies(work, shard.trace_ids)}
        summary.failed_first = sum(reply.request_key not in known for reply in failed)
    return summary


def _count(summary: Summary, decision: Decision, why_not: str | None) -> None:
    """One decision; `why_not` is why it was not carried out, None where it was."""
    if decision.verdict == "skip":
        summary.not_asked[decision.reason] += 1
        return
    summary.explored += decision.reason == EXPLORED
    if why_not is None:
        summary.asked += 1
        return
    summary.not_asked[why_not] += 1
    summary.left_over += not why_not.startswith(NOT_NEEDED)
    summary.explored_left += decision.reason == EXPLORED


def _count_calls(summary: Summary, result: "ReplayResult") -> None:
    counters = result.counters
    summary.calls, summary.reused = counters["attempts"], counters["cached"]
    summary.at_cap = counters[AT_CAP]
    summary.unpriced_calls = counters["unpriced"]
    summary.unpriced_usd = nusd_to_usd(counters["unpriced_nusd"])
