"""Choose the pair that a card shows, and render its sides as text."""

import re
from dataclasses import dataclass

from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.records.message import render_turn
from tracemill.records.pair import DPOPair
from tracemill.records.placeholders import head_with_whole_placeholders
from tracemill.records.printable import printable_lines

_SIDE, _TASK = 700, 400
"""Characters of each side, and of the task."""
_LEAST, _MOST = 40, 900
"""Characters of a side that reads well."""
_FENCES = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class CardExample:
    """A pair as a card shows it, its texts cut."""

    pair_id: str
    label_source: str
    evidence: str
    task: str
    rejected: str
    chosen: str

    @property
    def fence(self) -> str:
        """Return the backticks of a Markdown code block that holds all texts: more than any of them has."""
        ticks = _FENCES.findall("\n".join((self.task, self.rejected, self.chosen)))
        return "`" * max((len(each) + 1 for each in ticks), default=3)


def rank_card_example(pair: DPOPair, chosen_text: str, rejected_text: str) -> tuple[bool, ...]:
    """Return the rank of a pair as the card's example; the pair with the smallest rank is used."""
    return (
        pair.simulated,
        pair.chosen_operation not in DECIDING,
        not all(_LEAST <= len(text) <= _MOST for text in (chosen_text, rejected_text)),
        pair.chosen_operation == pair.rejected_operation,
        pair.verified == "none",
    )


def make_card_example(pair: DPOPair) -> CardExample:
    """Return a pair as the example of a card."""
    task = next((message.content for message in pair.state_messages if message.role == "user"), "")
    return CardExample(
        pair.pair_id,
        pair.label_source,
        pair.evidence,
        _shown(task, _TASK),
        _shown(render_turn(pair.rejected), _SIDE),
        _shown(render_turn(pair.chosen), _SIDE),
    )


def _shown(text: str, most: int) -> str:
    text = text.strip().replace("<!--", "<! --")  # comments mark places of a card
    head = head_with_whole_placeholders(text, most)
    mark = "" if head == text else f"\n[... {len(text) - len(head):,} characters left out ...]"
    return printable_lines(head, 10 * most) + mark
