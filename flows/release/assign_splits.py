"""Assign the sessions of a workspace to splits, one session in memory at a time."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tracemill.flows.release.split_rule import SplitUnit, apply_split_rule
from tracemill.flows.release.split_store import SplitState
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.normalize.minhash import LSHIndex, Signature, minhash_signature, split_words
from tracemill.records.identity import StepId
from tracemill.records.pair import DroppedPair, NormalizedDPOPair
from tracemill.records.storage.workspace import Workspace, workspace_trace_ids
from tracemill.records.trace import Trace
from tracemill.records.views import ActionLabel

ALIKE = 0.8
"""Tasks at least so alike (Jaccard index of their runs of five words) stand on one side."""
_LEAST_WORDS = 10
_COMMON_IN = 3
_TASK = re.compile(
    r"<(issue_description|pr_description|problem_statement|task_description)>(.*?)</\1>", re.DOTALL
)
OPERATOR = "split"
_BETWEEN = "its repository, instance or task is on two sides"

OverlapOf = Callable[[Trace], str]
"""Why a session is made of a benchmark for evaluation, empty if it is not."""


@dataclass(frozen=True, slots=True)
class ReleaseSplit:
    """The split of each session of a release, and the dataset's state with it.

    `overlaps` counts sessions made from benchmarks, by reason.
    """

    grown: SplitState
    sides: dict[str, str | None]
    overlaps: Counter[str]

    def of(self, trace_id: str) -> str | None:
        """Return the split of a session, None if it belongs to two splits."""
        return self.sides.get(trace_id)


def split_sessions(
    work: Workspace,
    grown: SplitState,
    kept: Sequence[NormalizedDPOPair],
    shares: Mapping[str, float],
    overlap_of: OverlapOf,
    labels: Sequence[ActionLabel] = (),
) -> ReleaseSplit:
    """Assign every session with pairs, votes or labels to a split; `shares` are of pairs and labels."""
    rows = Counter(StepId.parse(item.pair.step_id).trace_id for item in kept)
    rows.update(label.origin.trace_id for label in labels)
    named = {StepId.parse(item.pair.step_id).trace_id: item.pair for item in kept}
    renamed = {label.origin.trace_id: label.origin.repository for label in labels}
    with_votes = (name for table in work.current("votes") for name in workspace_trace_ids("votes", table))
    wanted = frozenset(rows).union(with_votes)
    overlaps: Counter[str] = Counter()
    units: list[SplitUnit] = []
    tasks: dict[str, str] = {}
    for trace in read_traces(work, wanted):
        why = overlap_of(trace)
        overlaps.update([why] if why else [])
        pair = named.get(trace.trace_id)
        repository = pair.repository if pair else renamed.get(trace.trace_id, trace.repository)
        keys = _keys(grown, trace, repository or (pair.project if pair else trace.project))
        units.append(SplitUnit(trace.trace_id, keys, rows=rows[trace.trace_id], overlap=bool(why)))
        if keys[-1] not in grown.tasks and keys[-1] not in tasks:
            tasks[keys[-1]] = task_for_assigned_split(trace)
    fresh = dict(_signatures(tasks, {unit.keys[-1]: unit.keys[0] for unit in units}, grown))
    near = _near(grown.tasks, fresh)
    units = [replace(unit, near=near.get(unit.keys[-1], ())) for unit in units]
    assigned = apply_split_rule(units, grown.sides, shares)
    after = replace(grown, sides=assigned.by_key, tasks={**grown.tasks, **fresh})
    return ReleaseSplit(after, assigned.sides, overlaps)


def drop_unassigned_pairs(
    kept: Sequence[NormalizedDPOPair], split: ReleaseSplit
) -> tuple[list[NormalizedDPOPair], list[DroppedPair]]:
    """Return the pairs with a split, and as dropped those that belong to two."""
    stay: list[NormalizedDPOPair] = []
    gone: list[DroppedPair] = []
    for item in kept:
        if split.of(StepId.parse(item.pair.step_id).trace_id) is not None:
            stay.append(item)
        else:
            gone.append(DroppedPair(item.pair, item.chosen_text, item.rejected_text, OPERATOR, _BETWEEN, ""))
    return stay, gone


def _keys(grown: SplitState, trace: Trace, repository: str | None) -> tuple[str, ...]:
    """Return the known ones of repository (or project), instance and session."""
    named = (
        ("repository", (repository or "").lower()),
        ("instance", trace.instance_id or ""),
        ("session", trace.parent_trace_id or trace.trace_id),
    )
    return tuple(grown.hashed(kind, name) for kind, name in named if name)


def task_for_assigned_split(trace: Trace) -> str:
    """Return the agent's task: the first user turn, or the issue inside a benchmark's template."""
    for context in trace.contexts[:1]:
        for message in context.messages:
            if message.role == "user":
                found = _TASK.search(message.content)
                return found[2] if found else message.content
    return ""


def _signatures(
    tasks: Mapping[str, str], groups: Mapping[str, str], grown: SplitState
) -> Iterator[tuple[str, Signature]]:
    """Yield MinHash signatures of tasks, without lines that tasks of several repositories share.

    Such lines are those of a template. A task of a few words has no signature.
    """
    common = _common_lines(tasks, groups)
    seed = int.from_bytes(grown.key[:4], "big")
    for name, task in tasks.items():
        own = " ".join(line for line in task.splitlines() if line.strip() not in common)
        words = split_words(own)
        if len(words) >= _LEAST_WORDS:
            yield name, minhash_signature(words, seed=seed)


def _common_lines(tasks: Mapping[str, str], groups: Mapping[str, str]) -> frozenset[str]:
    met: dict[str, set[str]] = {}
    for name, task in tasks.items():
        for line in {line.strip() for line in task.splitlines()}:
            met.setdefault(line, set()).add(groups[name])
    return frozenset(line for line, where in met.items() if len(where) >= _COMMON_IN)


def _near(known: Mapping[str, Signature], fresh: Mapping[str, Signature]) -> dict[str, tuple[str, ...]]:
    """Return the sessions with nearly the same task, by new task."""
    index: LSHIndex[str] = LSHIndex(ALIKE, bands=32, rows=4)
    for name, value in (*known.items(), *fresh.items()):
        index.add(name, value)
    near = (
        (name, tuple(each for each in index.query(value) if each != name)) for name, value in fresh.items()
    )
    return {name: others for name, others in near if others}
