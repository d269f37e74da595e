"""Counts of rows for the card and the manifest."""

from collections import Counter
from dataclasses import dataclass, field

from tracemill.data_cards.card.card_example import CardExample, make_card_example, rank_card_example
from tracemill.data_cards.card.style_probe import StyleSample
from tracemill.data_cards.model.vendor_terms import find_vendor_restriction
from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair, Vote
from tracemill.records.views import ActionLabel, StepOrigin


@dataclass(slots=True)
class RowCounts:
    """Counts over one pass of the rows: `rows` are pairs, `labels` are labelled actions.

    `lengths` holds token counts of each pair, whole and at its shortest. The card joins keys of two texts.
    """

    rows: int = 0
    example: CardExample | None = None
    example_rank: tuple[tuple[bool, ...], str] | None = None
    labels: int = 0
    simulated_labels: int = 0
    lengths: list[tuple[int, int]] = field(default_factory=list)
    simulated: int = 0
    stated_cost_usd: float = 0.0
    chosen_chars: int = 0
    rejected_chars: int = 0
    style: StyleSample = field(default_factory=StyleSample)
    label_sources: Counter[str] = field(default_factory=Counter)
    cuts: Counter[str] = field(default_factory=Counter)
    verified: Counter[str] = field(default_factory=Counter)
    presentations: Counter[str] = field(default_factory=Counter)
    harnesses: Counter[str] = field(default_factory=Counter)
    student_models: Counter[str] = field(default_factory=Counter)
    restricted: Counter[str] = field(default_factory=Counter)
    agreeing: Counter[int] = field(default_factory=Counter)
    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    licences: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    votes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def keep(self, kept: NormalizedDPOPair) -> None:
        """Count a kept pair."""
        pair = kept.pair
        self.rows += 1
        rank = (rank_card_example(pair, kept.chosen_text, kept.rejected_text), pair.pair_id)
        if self.example_rank is None or rank < self.example_rank:
            self.example_rank, self.example = rank, make_card_example(pair)
        self.simulated += pair.simulated
        self.stated_cost_usd += pair.cost_usd
        self.chosen_chars += len(kept.chosen_text)
        if kept.length is not None:
            self.lengths.append((kept.length.whole, kept.length.least))
            self.cuts[kept.length.cut or "whole"] += 1
        self.rejected_chars += len(kept.rejected_text)
        self.style.keep(kept)
        self.label_sources[pair.label_source] += 1
        self.verified[pair.verified] += 1
        self._count_origin(pair)
        self.operations[pair.rejected_operation, pair.chosen_operation] += 1
        if pair.label_source == "teachers":
            self.agreeing[pair.n_teachers_agreeing] += 1

    def deciding(self, chosen_only: bool = False) -> int:
        """Return the pairs of which a side, or the chosen side, edits, runs tests or finishes."""
        return sum(
            count
            for (rejected, chosen), count in self.operations.items()
            if chosen in DECIDING or (rejected in DECIDING and not chosen_only)
        )

    def label(self, label: ActionLabel) -> None:
        """Count a labelled action."""
        self.labels += 1
        self.simulated_labels += label.origin.simulated
        self._count_origin(label.origin)

    def _count_origin(self, row: DPOPair | StepOrigin) -> None:
        """Count the origin of a row."""
        self.presentations[row.presentation or "unknown"] += 1
        self.harnesses[row.harness] += 1
        self.student_models[row.student_model or "unknown"] += 1
        if restriction := find_vendor_restriction(row.student_family, row.student_model or ""):
            self.restricted[restriction] += 1
        self.licences[row.source, row.licence or "unknown"] += 1

    def drop(self, dropped: DroppedPair) -> None:
        """Count a dropped pair."""
        self.dropped[dropped.operator, dropped.reason] += 1

    def vote(self, vote: Vote) -> None:
        """Count a vote under its teacher: agreeing, other, or why it does not count."""
        kind = ("agreeing" if vote.agrees else "other") if vote.counted else "not counted"
        self.votes[vote.teacher, kind] += 1
