"""What is in a release in the end: behind recipe, caps, sides and the cut to a trainer's length."""

from collections import Counter
from dataclasses import dataclass

from tracemill.data_cards.model.release_spec import Growth, Loss
from tracemill.data_cards.writing.split_writer import SPLITS
from tracemill.flows.labeling.label_shard import name_pair_kind
from tracemill.flows.release.assign_splits import Split
from tracemill.flows.release.drop_report import add_drop_examples, build_drop_report
from tracemill.flows.release.fit_context import Fitting
from tracemill.normalize.normalizer import Normalized
from tracemill.records.identity import StepId
from tracemill.records.pair import DroppedPair, NormalizedDPOPair


@dataclass(frozen=True, slots=True)
class Released:
    """The pairs of a release and what was dropped on the way, with the account of it and the rows of each
    split. To be made once all pairs went through `Fitting.pairs`."""

    recipe: str
    fingerprint: str
    kept: list[NormalizedDPOPair]
    dropped: list[DroppedPair]
    losses: tuple[Loss, ...]
    splits: dict[str, int]

    @classmethod
    def of(cls, normalized: Normalized, fitting: Fitting, split: Split) -> "Released":
        """What the cut left of the pairs that recipe, caps and sides left."""
        too_long = {gone.pair.pair_id for gone in fitting.too_long}
        kept = [item for item in normalized.kept if item.pair.pair_id not in too_long]
        rows = Counter(split.of(StepId.parse(item.pair.step_id).trace_id) for item in kept)
        return cls(
            normalized.recipe,
            normalized.fingerprint,
            kept,
            [*normalized.dropped, *fitting.too_long],
            (*build_drop_report(normalized), *add_drop_examples(fitting.losses(), fitting.too_long)),
            {name: rows[name] for name in SPLITS if rows[name]},
        )

    def kinds(self) -> dict[str, int]:
        """Rows by kind of pair."""
        return dict(Counter(name_pair_kind(item.pair) for item in self.kept))

    def reasons(self) -> dict[str, int]:
        """Dropped pairs by operator and reason."""
        return dict(Counter(f"{item.operator}: {item.reason}" for item in self.dropped))

    def growth(self, split: Split) -> Growth:
        """How the rows follow those of the version before."""
        grown = split.grown
        stayed = sum(grown.holds(item.pair.pair_id) for item in self.kept)
        return Growth(
            since=grown.version,
            stayed=stayed,
            new=len(self.kept) - stayed,
            gone=max(0, len(grown.rows) - stayed),
        )

    def account(self) -> dict[str, object]:
        """What was kept and dropped, by operator and by split; without examples, which are texts of
        sessions."""
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
