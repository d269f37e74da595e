"""The pairs of the workspace, and what was shown at their steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from flows.renewing import Renewed, Renewer
from harnesses.present import Presentation, present
from records.identity import StepId
from records.pair import DPOPair, NormalizedDPOPair, StepVotes
from records.rows import pairs_from_table, votes_from_table
from records.state import MessageView, Trace
from records.trace_rows import traces_from_table
from records.workspace import Workspace


def load_pairs(work: Workspace, renewer: Renewer | None = None) -> list[DPOPair]:
    """Every pair of the workspace without what was shown, sorted by step: a pair is small, its state is
    not. With a `renewer` as it may leave the workspace, without as it is stored."""
    by_trace: dict[str, list[DPOPair]] = {}
    for table in work.current("pairs"):
        for pair in pairs_from_table(table, lambda _: ((), ())):
            by_trace.setdefault(StepId.parse(pair.step_id).trace_id, []).append(pair)
    found = [pair for pairs in by_trace.values() for pair in pairs]
    if renewer is not None:
        renewing = (renewer.renew(trace) for trace in _traces(work, frozenset(by_trace)))
        found = [_renewed(pair, by) for by in renewing for pair in by_trace[by.trace.trace_id]]
    return sorted(found, key=lambda pair: pair.pair_id)


def _renewed(pair: DPOPair, by: Renewed) -> DPOPair:
    trace = by.trace
    return replace(
        pair,
        chosen=tuple(map(by.message, pair.chosen)),
        rejected=tuple(map(by.message, pair.rejected)),
        project=trace.project,
        repository=trace.repository,
        instance_id=trace.instance_id,
    )


def _traces(work: Workspace, trace_ids: frozenset[str]) -> Iterator[Trace]:
    """Stored traces, one in memory at a time."""
    for table in work.current("traces", trace_ids):
        for row in range(table.num_rows):
            yield traces_from_table(table.slice(row, 1))[0]


def votes_without_pair(work: Workspace, pairs: Sequence[DPOPair]) -> Iterator[StepVotes]:
    """The votes at steps that gave no teacher pair."""
    paired = {pair.step_id for pair in pairs if pair.label_source == "teachers"}
    for table in work.current("votes"):
        yield from (step for step in votes_from_table(table) if step.step_id not in paired)


def with_states(
    work: Workspace, kept: Sequence[NormalizedDPOPair], renewer: Renewer
) -> Iterator[NormalizedDPOPair]:
    """The pairs with what is shown at their step, one shard of traces at a time."""
    by_trace: dict[str, list[NormalizedDPOPair]] = {}
    for item in kept:
        by_trace.setdefault(StepId.parse(item.pair.step_id).trace_id, []).append(item)
    for stored in _traces(work, frozenset(by_trace)):
        trace = renewer.renew(stored).trace
        shown: dict[int, Presentation] = {}
        for item in by_trace[trace.trace_id]:
            step = StepId.parse(item.pair.step_id)
            if step.context not in shown:
                context = next(c for c in trace.contexts if c.index == step.context)
                shown[step.context] = present(trace, context)
            yield _with_state(item, shown[step.context], step.step)


def _with_state(item: NormalizedDPOPair, shown: Presentation, step: int) -> NormalizedDPOPair:
    state = MessageView(shown.messages, shown.cuts[step])
    return replace(item, pair=replace(item.pair, state_messages=state, tools=shown.tools))
