"""Where the label of a pair comes from, and the one list of such sources.

A source of a package is added by an entry point of the group `tracemill.label_sources`. Its pairs are made
beside those of the teachers, from one trace at a time.
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
"""A trace, redacted → its pairs, and for steps that could have given one the reason why not, counted."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class LabelSource:
    """One source of labels, as the registry holds it.

    `name` stands in the column `label_source`. `means` is what the card says of its pairs. `better` stands
    before the chosen action where a model is told what was better; `{n}` in it is the number of teachers
    that agree. `pairs_of_trace` makes its pairs, at most one a step; None where they are made of votes, or
    across traces. `version` is raised when the same trace gives other pairs: they are made again then. Import
    what is large inside of `pairs_of_trace`.
    """

    name: str
    means: str = ""
    better: str = "This is the better action here:"
    pairs_of_trace: PairsOfTrace | None = None
    version: int = 1

    def pairs_of(self, trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
        """Return the pairs of a trace and why there are no more. Raises ConfigError where one bears another
        name, is of another trace, or is the second of a step."""
        if self.pairs_of_trace is None:
            return [], Counter()
        made, reasons = self.pairs_of_trace(trace)
        theirs = [pair for pair in made if pair.label_source == self.name]
        steps = {pair.step_id for pair in theirs if StepId.parse(pair.step_id).trace_id == trace.trace_id}
        if len(steps) != len(made):
            raise ConfigError(
                f"the label source {self.name!r} makes pairs that are not its own",
                "pairs of its name and of the trace it is given, one a step",
                "update or remove the package that gives it",
            )
        return theirs, Counter(reasons)


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
"""The sources of single actions, which are no pairs (`records.views.ActionLabel`)."""

LABEL_SOURCES: Registry[LabelSource] = Registry(
    "label source",
    "tracemill.label_sources",
    {
        "teachers": "tracemill.pairs.sources:TEACHERS",
        "hindsight": "tracemill.pairs.sources:HINDSIGHT",
        "siblings": "tracemill.pairs.sources:SIBLINGS",
    },
    fits=lambda name, source: (
        isinstance(source, LabelSource)
        and source.name == name
        and bool(_NAME.fullmatch(name))
        and name not in ACTION_SOURCES
    ),
    wanted="a LabelSource of that name, in lower-case letters, digits and _",
)


def source_in_words(name: str) -> LabelSource:
    """Return the source of a name that stands in a row; one without words of its own where nobody gives it
    any more, as where a package was removed."""
    if name in ACTION_SOURCES:
        return ACTION_SOURCES[name]
    try:
        return LABEL_SOURCES.get(name)
    except ConfigError:
        return LabelSource(name)


def sources_of_traces() -> tuple[LabelSource, ...]:
    """Return the sources whose pairs are made from one trace at a time."""
    return tuple(source for source in LABEL_SOURCES if source.pairs_of_trace)
