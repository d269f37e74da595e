"""Ask about batches of traces: decide, write the decisions, ask, write the replies.

Several batches are asked about together, so that few calls are waited for alone.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tracemill.flows.labeling.ask_judge import ask_judge, count_calls
from tracemill.flows.labeling.label_shard import (
    TraceBatch,
    load_decisions,
    load_replies,
    write_decisions,
    write_replies,
)
from tracemill.flows.labeling.vote_policy import build_stopper, record_vote_outcomes
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.records.reply import AskDecision, TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.planning.schedule import NOT_NEEDED

if TYPE_CHECKING:
    from tracemill.flows.labeling.ask_session import AskSession
    from tracemill.teachers.replay.replay_run import ReplayResult

T = TypeVar("T", bound=Sequence[object])

TRACES_A_CALL = 10
"""Traces of one plan for every call in flight: at its end each trace is still asked step by step, and of so
many the last few make less than a tenth of the time."""
FEWEST_CALLS = 32
"""Calls in flight that a plan is made for at least: what a cap buys is not to depend on fewer."""
MOST_SHARDS = 4
"""Shards of one plan at most: their text is in memory together."""


def group_batches(batches: Iterable[T], concurrency: int) -> Iterator[list[T]]:
    """Group batches until a group has 10 traces for each call in flight; one by one with 0 of them."""
    enough = TRACES_A_CALL * max(concurrency, FEWEST_CALLS) if concurrency else 0
    group: list[T] = []
    for batch in batches:
        group.append(batch)
        if len(group) == MOST_SHARDS or sum(map(len, group)) >= enough:
            yield group
            group = []
    if group:
        yield group


def ask_batches(work: Workspace, batches: Sequence[TraceBatch], asking: "AskSession") -> list[Summary]:
    """Decide, store the decisions, ask, and store the replies; return the counts of each batch.

    Counts that belong to no single batch, such as the calls made, are added to the first. Raises
    KeyboardInterrupt after Ctrl-C, once the paid answers are stored.
    """
    shown = [item for batch in batches for item in batch.shown]
    decided = [_decide(work, batch, asking) for batch in batches]
    every = [decision for decisions in decided for decision in decisions]
    stopper = build_stopper(asking.settings, shown)
    if asking.room is not None:
        asking.room.show(shown, every)
    result = asking.ask(shown, every, stopper)
    first, *others = [
        _write(work, batch, decisions, result) for batch, decisions in zip(batches, decided, strict=True)
    ]
    first += count_calls(result)
    if not any(counts.stopped for counts in (first, *others)):
        first += Summary(stopped=result.stopped)
    raise_if_interrupted()
    judged = ask_judge(work, batches, asking)
    return [made + counts for made, counts in zip((first, *others), judged, strict=True)]


def _decide(work: Workspace, batch: TraceBatch, asking: "AskSession") -> list[AskDecision]:
    """Make the decisions of a batch, and store them before any money is spent on them."""
    questions = [question for item in batch.shown for question in item.questions()]
    decisions = asking.decide(questions, load_decisions(work, batch.trace_ids), batch.shown)
    write_decisions(work, batch.source, batch.trace_ids, decisions)
    asking.remember(load_replies(work, batch.trace_ids))
    return decisions


def _write(
    work: Workspace,
    batch: TraceBatch,
    decisions: Sequence[AskDecision],
    result: "ReplayResult",
) -> Summary:
    """Store and count the replies of a batch and the outcomes of its decisions."""
    steps = {decision.step_id for decision in decisions}
    fresh = [reply for reply in result.replies if reply.step_id in steps]
    failures = _failures(work, batch, fresh, result.sent)
    write_replies(work, batch.source, batch.trace_ids, fresh)
    outcomes = record_vote_outcomes(decisions, result.not_asked)
    write_decisions(work, batch.source, batch.trace_ids, outcomes)
    counts = failures + _decisions(decisions, result.not_asked)
    return counts + Summary(stopped=result.stopped) if counts.left_over else counts


def _failures(
    work: Workspace, batch: TraceBatch, fresh: Sequence[TeacherReply], sent: Container[str]
) -> Summary:
    """Count failures: all, those of requests `sent` in this run, and those of first attempts."""
    now = [reply for reply in fresh if reply.request_key in sent]
    failed = [reply for reply in now if reply.failure is not None]
    known = {reply.request_key for reply in load_replies(work, batch.trace_ids)} if failed else set[str]()
    return Summary(
        failures=Counter(reply.failure for reply in fresh if reply.failure is not None),
        answered_now=len(now) - len(failed),
        failed_now=Counter(reply.failure for reply in failed if reply.failure is not None),
        failed_first=sum(reply.request_key not in known for reply in failed),
    )


def _decisions(decisions: Sequence[AskDecision], not_asked: Mapping[tuple[str, str], str]) -> Summary:
    """Count decisions; `not_asked` has the reason for each one that was not carried out."""
    asks = [decision for decision in decisions if decision.verdict == "ask"]
    left = {(d.step_id, d.teacher): why for d in asks if (why := not_asked.get((d.step_id, d.teacher)))}
    explored = [decision for decision in asks if decision.reason == EXPLORED]
    return Summary(
        asked=len(asks) - len(left),
        not_asked=Counter(d.reason for d in decisions if d.verdict == "skip") + Counter(left.values()),
        explored=len(explored),
        explored_left=sum((d.step_id, d.teacher) in left for d in explored),
        left_over=sum(not why.startswith(NOT_NEEDED) for why in left.values()),
    )
