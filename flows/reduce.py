"""The pairs of the workspace, and what was shown at their steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harnesses.present import Presentation, present
from records.identity import StepId
from records.pair import DPOPair, NormalizedDPOPair, StepVotes
from records.rows import pairs_from_table, votes_from_table
from records.state import MessageView
from records.trace_rows import traces_from_table
from records.workspace import Workspace


def load_pairs(work: Workspace) -> list[DPOPair]:
    """Every pair of the workspace without what was shown, sorted by step; a pair is small, its state is
    not."""
    found = [pair for table in work.current("pairs") for pair in pairs_from_table(table, lambda _: ((), ()))]
    return sorted(found, key=lambda pair: pair.pair_id)


def votes_without_pair(work: Workspace, pairs: Sequence[DPOPair]) -> Iterator[StepVotes]:
    """The votes at steps that gave no teacher pair."""
    paired = {pair.step_id for pair in pairs if pair.label_source == "teachers"}
    for table in work.current("votes"):
        yield from (step for step in votes_from_table(table) if step.step_id not in paired)


def with_states(work: Workspace, kept: Sequence[NormalizedDPOPair]) -> Iterator[NormalizedDPOPair]:
    """The pairs with what was shown at their step, one shard of traces at a time."""
    by_trace: dict[str, list[NormalizedDPOPair]] = {}
    for item in kept:
        by_trace.setdefault(StepId.parse(item.pair.step_id).trace_id, []).append(item)
    for table in work.current("traces", frozenset(by_trace)):
        for row in range(table.num_rows):
            trace = traces_from_table(table.slice(row, 1))[0]
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
