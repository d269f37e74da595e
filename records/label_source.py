"""Sources of labels, and the registry of them.

A package adds a source by an entry point of the group `tracemill.label_sources`. Its pairs are made beside
those of the teachers, from one trace at a time.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tracemill.records.errors import ConfigError
from tracemill.records.identity import StepId
from tracemill.records.pair import DPOPair
from tracemill.records.registry import Registry
from tracemill.records.trace import Trace

PairsOfTrace = Callable[[Trace], tuple[Sequence[DPOPair], Mapping[str, int]]]
"""Redacted trace → its pairs, and counted reasons why other candidate steps gave none."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class LabelSource:
    """One source of labels, a value of the registry.

    `name` is the value of the column `label_source`, `title` the name of its pairs in texts (by default
    `name`), `means` the card's description of them. `better` introduces the chosen action in a hint to a
    model; `{n}` in it is the number of teachers that agree. `pairs_of_trace` makes the pairs of one trace,
    at most one a step; it is None if they are made from votes or across traces. Raise `version` when the
    same trace gives other pairs, so that they are made again. Import large modules inside of
    `pairs_of_trace`.
    """

    name: str
    means: str = ""
    title: str = ""
    better: str = "This is the better action here:"
    pairs_of_trace: PairsOfTrace | None = None
    version: int = 1

    def pairs_of(self, trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
        """Return the pairs of a trace, and counted reasons why there are no more.

        Raises ConfigError if a pair has another source's name, is of another trace, or is the second of a
        step.
        """
        if self.pairs_of_trace is None:
            return [], Counter()
        pairs, reasons = self.pairs_of_trace(trace)
        own = [pair for pair in pairs if pair.label_source == self.name]
        steps = {pair.step_id for pair in own if StepId.parse(pair.step_id).trace_id == trace.trace_id}
        if len(steps) != len(pairs):
            raise ConfigError(
                f"the label source {self.name!r} makes pairs that are not its own",
                "pairs of its name and of the trace it is given, one a step",
                "update or remove the package that gives it",
            )
        return own, Counter(reasons)


ACTION_SOURCES = {
    source.name: source
    for source in (
        LabelSource(
            "agreed",
            means="enough teacher models agreed on this action at the step; it may be the agent's own",
        ),
        LabelSource(
            "solved",
            means="the agent did this in a session that solved its task, and no pair prefers another action",
        ),
    )
}
"""The sources of single actions (`records.views.ActionLabel`), which are not pairs."""

LABEL_SOURCES: Registry[LabelSource] = Registry(
    "label source",
    "tracemill.label_sources",
    {
        "teachers": "tracemill.pairs.sources:TEACHERS",
        "hindsight": "tracemill.pairs.sources:HINDSIGHT",
        "user": "tracemill.pairs.sources:USER",
        "revised_edit": "tracemill.pairs.sources:REVISED_EDIT",
        "repeated_read": "tracemill.pairs.sources:REPEATED_READ",
        "judge": "tracemill.pairs.sources:JUDGE",
        "verified": "tracemill.pairs.sources:VERIFIED",
        "siblings": "tracemill.pairs.sources:SIBLINGS",
    },
    fits=lambda name, source: (
        isinstance(source, LabelSource)
        and source.name == name
        and bool(_NAME.fullmatch(name))
        and name not in ACTION_SOURCES
    ),
    expected="a LabelSource of that name, in lower-case letters, digits and _",
)


def source_in_words(name: str) -> LabelSource:
    """Return the label source of a stored name; without a description if its package was removed."""
    if name in ACTION_SOURCES:
        return ACTION_SOURCES[name]
    try:
        return LABEL_SOURCES.get(name)
    except ConfigError:
        return LabelSource(name)


def source_title(name: str) -> str:
    """Return the title of a label source's pairs, for texts."""
    return source_in_words(name).title or name


def sources_of_traces() -> tuple[LabelSource, ...]:
    """Return the sources whose pairs are made from one trace at a time."""
    return tuple(source for source in LABEL_SOURCES if source.pairs_of_trace)
