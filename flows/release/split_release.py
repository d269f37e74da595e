"""Reduce the pairs of a workspace to those a release would hold, and split them."""

from dataclasses import replace

from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.release.assign_splits import (
    OPERATOR,
    ReleaseSplit,
    drop_unassigned_pairs,
    split_sessions,
)
from tracemill.flows.release.label_rows import ReleaseLabels, load_labels
from tracemill.flows.release.load_pairs import LoadedPairs, load_reduced_pairs
from tracemill.flows.release.split_store import SplitState
from tracemill.flows.runtime.progress import show_step
from tracemill.normalize.contamination import load_benchmarks
from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs, OperatorCount
from tracemill.records.storage.workspace import Workspace


def split_release(
    work: Workspace, settings: RunSettings, normalizer: DJNormalizer, reredactor: Reredactor
) -> tuple[LoadedPairs, ReleaseLabels, ReleaseSplit]:
    """Return the pairs and labels that a release would have, and the split of each session.

    Nothing is written: splits and rows are stored only when they are released.
    """
    benchmarks = load_benchmarks(settings.normalize.benchmarks)
    release = settings.release
    grown = SplitState.of(work, release.name)
    grown = grown.rebuilt() if release.rebuild else grown
    with normalizer.process():
        show_step("normalise pairs")
        reduced = load_reduced_pairs(work, settings.pairs, normalizer, reredactor, grown.holds)
        show_step("normalise labels")
        labels = load_labels(work, reduced.pairs, reredactor, settings, normalizer)
    shares = {"validation": release.validation, "test": release.test}
    show_step("split sessions")
    kept = reduced.normalized.kept
    split = split_sessions(work, grown, kept, shares, benchmarks.overlap, labels.kept)
    reduced = replace(reduced, normalized=_with_side(reduced.normalized, split))
    return reduced, labels.with_side(split.of), split


def _with_side(normalized: NormalizedPairs, split: ReleaseSplit) -> NormalizedPairs:
    stay, gone = drop_unassigned_pairs(normalized.kept, split)
    count = OperatorCount(OPERATOR, len(normalized.kept), len(gone), 0)
    return replace(
        normalized, kept=stay, dropped=[*normalized.dropped, *gone], counts=(*normalized.counts, count)
    )
