"""The label sources that ship with tracemill."""

from collections import Counter

from tracemill.records.label_source import LabelSource
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace


def _hindsight_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    from tracemill.pairs.hindsight import hindsight_pairs

    return hindsight_pairs(trace)


TEACHERS = LabelSource(
    "teachers",
    means="several teacher models were shown the step and agreed on another action than the agent's",
    better="{n} models agree that this is the better action here:",
)
HINDSIGHT = LabelSource(
    "hindsight",
    means="the action failed, and a later one of the same session fixed it",
    better="This fixed it later:",
    pairs_of_trace=_hindsight_pairs,
)
SIBLINGS = LabelSource(
    "siblings",
    means="two runs of one task share everything before this step, and only one was resolved",
    better="A run that solved the task did this instead:",
)
