"""Traces put into a workspace, and a normalizer that keeps every pair."""

from collections.abc import Sequence

from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs, OperatorCount
from tracemill.records.message import render_turn
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.storage.trace_rows import traces_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace


def put(work: Workspace, traces: Sequence[Trace]) -> None:
    ids = [trace.trace_id for trace in traces]
    work.write("traces", traces_to_table(traces), ids, "openhands", "2026-11-21")


class Kept(DJNormalizer):
    """Keeps every pair, without a process of data-juicer."""

    def normalize(self, pairs: Sequence[DPOPair]) -> NormalizedPairs:
        kept = [NormalizedDPOPair(p, render_turn(p.chosen), render_turn(p.rejected), "all") for p in pairs]
        return NormalizedPairs(kept, [], (OperatorCount("nothing", len(kept), 0, 0),), "all", "f")
