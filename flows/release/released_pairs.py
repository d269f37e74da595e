"""Count what is in a release and what was dropped, by operator, with examples."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracemill.data_cards.model.release_spec import DropExample, OperatorDrops, VersionGrowth
from tracemill.data_cards.writing.split_writer import SPLITS
from tracemill.flows.labeling.label_shard import name_pair_kind
from tracemill.flows.release.assign_splits import ReleaseSplit
from tracemill.flows.release.fit_context import ContextFitting
from tracemill.normalize.normalizer import NormalizedPairs
from tracemill.records.identity import StepId
from tracemill.records.pair import DroppedPair, NormalizedDPOPair
from tracemill.records.placeholders import head_with_whole_placeholders

EXAMPLES = 3
"""Dropped rows shown of each operator."""
EXCERPT_CHARS = 200


@dataclass(frozen=True, slots=True)
class ReleasedPairs:
    """The pairs of a release, the dropped pairs by operator, and the rows of each split.

    Build it after all pairs went through `ContextFitting.pairs`.
    """

    recipe: str
    fingerprint: str
    kept: list[NormalizedDPOPair]
    dropped: list[DroppedPair]
    losses: tuple[OperatorDrops, ...]
    splits: dict[str, int]

    @classmethod
    def of(cls, normalized: NormalizedPairs, fitting: ContextFitting, split: ReleaseSplit) -> "ReleasedPairs":
        """Combine the results of recipe, caps, splits and context cutting."""
        too_long = {gone.pair.pair_id for gone in fitting.too_long}
        kept = [item for item in normalized.kept if item.pair.pair_id not in too_long]
        rows = Counter(split.of(StepId.parse(item.pair.step_id).trace_id) for item in kept)
        return cls(
            normalized.recipe,
            normalized.fingerprint,
            kept,
            [*normalized.dropped, *fitting.too_long],
            (*_losses_of(normalized), *_with_examples(fitting.losses(), fitting.too_long)),
            {name: rows[name] for name in SPLITS if rows[name]},
        )

    def kinds(self) -> dict[str, int]:
        """Count rows by kind of pair."""
        return dict(Counter(name_pair_kind(item.pair) for item in self.kept))

    def reasons(self) -> dict[str, int]:
        """Count dropped pairs by operator and reason."""
        return dict(Counter(f"{item.operator}: {item.reason}" for item in self.dropped))

    def growth(self, split: ReleaseSplit) -> VersionGrowth:
        """Compare the rows with those of the previous version."""
        grown = split.grown
        stayed = sum(grown.holds(item.pair.pair_id) for item in self.kept)
        return VersionGrowth(
            since=grown.version,
            stayed=stayed,
            new=len(self.kept) - stayed,
            gone=max(0, len(grown.rows) - stayed),
        )

    def account(self) -> dict[str, object]:
        """Count kept and dropped rows, by operator and by split.

        Examples are left out: they are texts of sessions.
        """
        return {
            "recipe": self.recipe,
            "fingerprint": self.fingerprint,
            "operators": [
                {**loss.model_dump(exclude={"examples"}), "share": loss.share} for loss in self.losses
            ],
            "kept": len(self.kept),
            "dropped": len(self.dropped),
            "splits": self.splits,
        }


def _losses_of(normalized: NormalizedPairs) -> tuple[OperatorDrops, ...]:
    """Count the rows of every operator in order, including operators that dropped nothing."""
    counts = (
        OperatorDrops(operator=c.operator, rows_in=c.rows_in, dropped=c.dropped, errors=c.errors)
        for c in normalized.counts
    )
    return _with_examples(counts, normalized.dropped)


def _with_examples(
    losses: Iterable[OperatorDrops], dropped: Sequence[DroppedPair]
) -> tuple[OperatorDrops, ...]:
    """Add to each operator its first dropped rows as examples, with different reasons if possible."""
    by_operator: dict[str, list[DroppedPair]] = {}
    for gone in dropped:
        by_operator.setdefault(gone.operator, []).append(gone)
    return tuple(
        loss.model_copy(update={"examples": _examples(by_operator.get(loss.operator, ()))}) for loss in losses
    )


def _examples(dropped: Sequence[DroppedPair]) -> tuple[DropExample, ...]:
    first = {gone.reason: gone for gone in reversed(dropped)}
    some = [*reversed(first.values()), *(gone for gone in dropped if gone is not first[gone.reason])]
    return tuple(
        DropExample(
            pair_id=gone.pair.pair_id,
            reason=gone.reason,
            value=gone.value,
            chosen=_excerpt(gone.chosen_text),
            rejected=_excerpt(gone.rejected_text),
        )
        for gone in some[:EXAMPLES]
    )


def _excerpt(text: str) -> str:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if len(text) <= EXCERPT_CHARS else f"{head_with_whole_placeholders(text, EXCERPT_CHARS)} ..."
