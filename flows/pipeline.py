"""Stages, the shards they go over, and the loop that runs them.

Stages that follow each other over the same shards make a pass: a shard goes through all of them before the
next one begins. So the labels of one batch of traces are there when the next batch is asked about.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Generic, TypeVar

from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.records.identity import canonical_json, digest
from tracemill.records.ingest_report import IngestReport


@dataclass(frozen=True, slots=True)
class ShardResult:
    """Result of a stage for a shard: counts, paths, ids and names of projects, never text of a session."""

    summary: Summary = field(default_factory=Summary)
    traces: Mapping[str, TraceEntry] = field(default_factory=dict[str, TraceEntry])
    """The traces that were taken in, by id."""
    files: Sequence[IngestReport] = ()
    """A report of each source that was read, or was read before and is unchanged."""
    accepted: frozenset[str] = frozenset()
    """Ids of the traces that may be sent to the teachers."""
    batches: Mapping[str, Summary] = field(default_factory=dict[str, Summary])
    """The counts of each batch of traces that was asked about and labelled, by its first trace."""
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """What each teacher cost, as its catalogue says."""
    release: ReleaseOutcome | None = None
    training: Mapping[str, Any] | None = None

    def __add__(self, later: "ShardResult") -> "ShardResult":
        """Merge with a later result; its release and training replace earlier ones."""
        merged = ResultMerger(self)
        merged.add(later)
        return merged.result


class ResultMerger:
    """A merger of results that works in place, so that merging costs no more than the new result."""

    def __init__(self, first: ShardResult) -> None:
        self._traces = dict(first.traces)
        self._files = list(first.files)
        self._batches = dict(first.batches)
        self.result = replace(first, traces=self._traces, files=self._files, batches=self._batches)
        """Everything so far. Its traces, files and batches grow with each result that is added."""

    def add(self, later: ShardResult) -> None:
        """Merge a later result."""
        self._traces.update(later.traces)
        self._files.extend(later.files)
        for name, counts in later.batches.items():
            self._batches[name] = self._batches.get(name, Summary()) + counts
        before = self.result
        self.result = replace(
            before,
            summary=before.summary + later.summary,
            accepted=before.accepted | later.accepted,
            prices={**before.prices, **later.prices},
            release=later.release or before.release,
            training=later.training or before.training,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """Context that stages share; it is immutable, but its parts may change files."""

    so_far: ShardResult = field(default_factory=ShardResult)
    """What the stages gave up to now."""


C = TypeVar("C", bound=StageContext)


def _nothing_done(shard: Any, result: ShardResult) -> None:
    pass


def _nothing_left(total: ShardResult) -> ShardResult:
    return ShardResult()


@dataclass(frozen=True, slots=True)
class StagePass(Generic[C]):
    """One pass of stages over shards, with the result that is known without them."""

    context: C
    shards: Iterable[Any]
    known: ShardResult = field(default_factory=ShardResult)
    """What earlier runs gave and is not done again."""
    done: Callable[[Any, ShardResult], None] = _nothing_done
    """Called with each shard and what all stages of the pass gave for it."""
    finish: Callable[[ShardResult], ShardResult] = _nothing_left
    """Called once, with everything the run gave; gives what can only be counted at the end."""


@dataclass(frozen=True, slots=True)
class Stage(Generic[C]):
    """One step of the pipeline.

    `versions` returns the versions of the code that makes its results, `settings` the part of a
    configuration that affects them; `over` opens the pass whose shards it processes, `run` processes one of
    them.
    """

    name: str
    versions: Callable[[], Mapping[str, int | str]]
    settings: Callable[[Any], object]
    over: Callable[[C], AbstractContextManager[StagePass[C]]]
    run: Callable[[Any, C], ShardResult]
    writes: bool = True
    """Whether it writes the workspace, which one process at a time may."""

    @property
    def version(self) -> str:
        """Return the versions of its code as canonical JSON."""
        return canonical_json(dict(self.versions()))

    def fingerprint(self, settings: Any) -> str:
        """Return a digest of the versions and settings that affect a result."""
        return digest(self.version, canonical_json(self.settings(settings)), size=8)


def execute_here(stage: Stage[C], shard: Any, context: C) -> ShardResult:
    """Run a stage in this process."""
    return stage.run(shard, context)


def run_stages(
    stages: Sequence[Stage[C]], context: C, execute: Callable[[Stage[C], Any, C], ShardResult] = execute_here
) -> ShardResult:
    """Run the shards of each pass through its stages, one at a time; return all results merged."""
    total = ResultMerger(context.so_far)
    for over, group in groupby(stages, key=lambda stage: stage.over):
        together = tuple(group)
        with over(replace(context, so_far=total.result)) as this:
            total.add(this.known)
            for shard in this.shards:
                raise_if_interrupted()
                of_shard = ResultMerger(ShardResult())
                for stage in together:
                    result = execute(stage, shard, replace(this.context, so_far=total.result))
                    of_shard.add(result)
                    total.add(result)
                this.done(shard, of_shard.result)
                del shard  # it may hold sessions, and the next one may be as large
            total.add(this.finish(total.result))
    return total.result
