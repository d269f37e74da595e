"""Load the pairs of a workspace, and what was shown at their steps."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tracemill.flows.admission.reredaction import ReredactedTrace, Reredactor
from tracemill.flows.config.pair_settings import PairSettings
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.harnesses.presentation import Presentation, present_context
from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs, OperatorCount
from tracemill.pairs.caps import apply_caps
from tracemill.pairs.siblings import may_have_siblings, sibling_pairs
from tracemill.pairs.side_text import choose_side_text
from tracemill.privacy.core.placeholder_keys import strip_placeholder_digits
from tracemill.records.identity import StepId
from tracemill.records.message import render_turn
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair, StepVotes
from tracemill.records.state_keys import state_keys
from tracemill.records.storage.table_rows import pairs_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import MessageView, Trace, TraceState

_RUN_COLUMNS = ("trace_id", "kind", "instance_id", "outcome", "harness")


def load_pairs(work: Workspace, reredactor: Reredactor | None = None) -> list[DPOPair]:
    """Load every stored pair without its prompt, sorted by step: a pair is small, its prompt is not.

    With a `reredactor` pairs are redacted for release, else they are as stored.
    """
    by_trace: dict[str, list[DPOPair]] = {}
    for table in work.current("pairs"):
        for pair in pairs_from_table(table, lambda _: ((), ())):
            by_trace.setdefault(StepId.parse(pair.step_id).trace_id, []).append(pair)
    found = [pair for pairs in by_trace.values() for pair in pairs]
    if reredactor is not None:
        renewing = (reredactor.redact_again(trace) for trace in read_traces(work, frozenset(by_trace)))
        found = [pair for by in renewing for pair in _renewed(by_trace[by.trace.trace_id], by)]
    return sorted(found, key=lambda pair: pair.pair_id)


def _renewed(pairs: Sequence[DPOPair], by: ReredactedTrace) -> list[DPOPair]:
    trace, keys = by.trace, state_keys(by.trace)
    return [
        replace(
            pair,
            chosen=tuple(map(by.message, pair.chosen)),
            rejected=tuple(map(by.message, pair.rejected)),
            project=trace.project,
            repository=trace.repository,
            instance_id=trace.instance_id,
            state_key=keys.get(pair.step_id, ""),
        )
        for pair in pairs
    ]


def find_siblings(
    work: Workspace, reredactor: Reredactor | None = None
) -> tuple[list[DPOPair], Counter[str]]:
    """Find the sibling pairs of the workspace, without their prompts, and why there are no more.

    They compare traces, so they are made from the current traces and never stored. Only traces of tasks
    with runs of both outcomes are read, one at a time.
    """

    def read(trace_ids: frozenset[str]) -> Iterator[Trace]:
        for stored in read_traces(work, trace_ids):
            trace = stored if reredactor is None else reredactor.redact_again(stored).trace
            if may_have_siblings(trace):
                yield trace

    wanted = _with_both_outcomes(work)
    pairs, reasons = sibling_pairs(wanted, read, strip_placeholder_digits)
    keys: dict[str, str] = {}
    for trace in read(frozenset(StepId.parse(pair.step_id).trace_id for pair in pairs)):
        keys |= state_keys(trace)
    return [replace(pair, state_key=keys.get(pair.step_id, "")) for pair in pairs], reasons


def _with_both_outcomes(work: Workspace) -> frozenset[str]:
    runs: dict[tuple[str, str], dict[str, str]] = {}
    for table in work.current("traces", columns=_RUN_COLUMNS):
        for row in table.to_pylist():
            if row["kind"] == "main" and row["instance_id"] and row["outcome"] != "unknown":
                runs.setdefault((row["harness"], row["instance_id"]), {})[row["trace_id"]] = row["outcome"]
    return frozenset(name for run in runs.values() if len(set(run.values())) > 1 for name in run)


@dataclass(frozen=True, slots=True)
class LoadedPairs:
    """Pairs of a workspace that are released.

    `pairs` are all pairs of the workspace; each of them is in `normalized`, kept or dropped, and each step
    of the reduction has its count there. `no_sibling`: why there are no more sibling pairs.
    """

    pairs: list[DPOPair]
    siblings: list[DPOPair]
    normalized: NormalizedPairs
    no_sibling: Counter[str]


def _nobody(pair_id: str) -> bool:
    return False


def load_reduced_pairs(
    work: Workspace,
    settings: PairSettings,
    normalizer: DJNormalizer,
    reredactor: Reredactor,
    is_in: Callable[[str], bool] = _nobody,
) -> LoadedPairs:
    """Load all pairs, find those across traces, and apply wording, recipe and caps.

    `is_in` returns whether a pair's id is in the dataset already: such pairs come first, so that no new
    pair displaces them as a duplicate or under a cap.
    """
    stored = load_pairs(work, reredactor)
    siblings, reasons = find_siblings(work, reredactor) if settings.siblings else ([], Counter[str]())
    pairs = sorted([*stored, *siblings], key=lambda pair: (not is_in(pair.pair_id), pair.pair_id))
    said = [(pair, choose_side_text(pair, settings.wording)) for pair in pairs]
    refused = [_refused(pair, reason, settings.wording) for pair, reason in said if isinstance(reason, str)]
    normalized = normalizer.normalize([pair for _, pair in said if isinstance(pair, DPOPair)])
    if settings.wording != "full":
        count = OperatorCount(f"wording({settings.wording})", len(said), len(refused), 0)
        normalized = replace(
            normalized,
            dropped=[*refused, *normalized.dropped],
            counts=(count, *normalized.counts),
        )
    return LoadedPairs(pairs, siblings, _capped(normalized, settings, is_in), reasons)


def _refused(pair: DPOPair, reason: str, wording: str) -> DroppedPair:
    return DroppedPair(
        pair, render_turn(pair.chosen), render_turn(pair.rejected), f"wording({wording})", reason, ""
    )


def _capped(
    normalized: NormalizedPairs, settings: PairSettings, is_in: Callable[[str], bool]
) -> NormalizedPairs:
    """Apply the caps.

    A row over a cap is dropped with its reason, and its rank as the value.
    """
    pinned = frozenset(row for row, item in enumerate(normalized.kept) if is_in(item.pair.pair_id))
    gone, counts = apply_caps([item.pair for item in normalized.kept], settings.caps(), pinned)
    taken = {each.row: each for each in gone}
    dropped = [
        DroppedPair(item.pair, item.chosen_text, item.rejected_text, by.cap, by.reason, str(by.rank))
        for row, item in enumerate(normalized.kept)
        if (by := taken.get(row)) is not None
    ]
    return replace(
        normalized,
        kept=sorted(
            (item for row, item in enumerate(normalized.kept) if row not in taken),
            key=lambda item: item.pair.pair_id,  # whichever were in the dataset before
        ),
        dropped=[*normalized.dropped, *dropped],
        counts=(*normalized.counts, *(OperatorCount(c.cap, c.rows_in, c.dropped, 0) for c in counts)),
    )


def load_votes_without_pair(work: Workspace, pairs: Sequence[DPOPair]) -> Iterator[StepVotes]:
    """Yield the votes at steps without a teachers' pair, in a deterministic order."""
    paired = {pair.step_id for pair in pairs if pair.label_source == "teachers"}
    for table in work.current("votes", by_trace=True):
        yield from (step for step in votes_from_table(table) if step.step_id not in paired)


def load_pair_states(
    work: Workspace, kept: Sequence[NormalizedDPOPair], reredactor: Reredactor
) -> Iterator[NormalizedDPOPair]:
    """Yield the pairs with the prompts of their steps, one shard of traces at a time.

    If the rejected action failed, the pair also gets its result.
    """
    by_trace: dict[str, list[NormalizedDPOPair]] = {}
    for item in kept:
        by_trace.setdefault(StepId.parse(item.pair.step_id).trace_id, []).append(item)
    for stored in read_traces(work, frozenset(by_trace)):
        trace = reredactor.redact_again(stored).trace
        shown: dict[int, Presentation] = {}
        for item in by_trace[trace.trace_id]:
            state = trace.state(StepId.parse(item.pair.step_id))
            if state.context.index not in shown:
                shown[state.context.index] = present_context(trace, state.context)
            yield _with_state(item, shown[state.context.index], state)


def _with_state(item: NormalizedDPOPair, shown: Presentation, state: TraceState) -> NormalizedDPOPair:
    view = MessageView(shown.messages, shown.cuts[state.step.index])
    failed = [result.content for result in state.results if result.is_error or result.error_kind]
    names = {tool.name for tool in shown.tools}
    others = tuple(tool for tool in item.pair.tools if tool.name not in names)
    pair = replace(item.pair, state_messages=view, tools=(*shown.tools, *others) if others else shown.tools)
    return replace(item, pair=pair, error="\n".join(failed))
