"""Settings of pairs beyond the vote: their wording, caps, and whether siblings are looked for."""

from dataclasses import fields

from pydantic import Field, NonNegativeInt

from tracemill.pairs.caps import PairCaps
from tracemill.pairs.side_text import Wording
from tracemill.records.frozen_model import FrozenModel

_CAPS = PairCaps()


class PairSettings(FrozenModel):
    """Settings of pairs before they are released (`pairs/`)."""

    wording: Wording = "full"
    """Whose words the sides hold: as said, calls alone, or the student's on both."""
    siblings: bool = True
    """Pairs of runs of one task that part, one resolved and one not."""
    per_trace: NonNegativeInt = _CAPS.per_trace
    """Most rows of a trace; 0 for any number, as in the keys below."""
    per_operation: NonNegativeInt = _CAPS.per_operation
    """Most rows of a trace whose chosen actions are of one class."""
    repository_share: float = Field(_CAPS.repository_share, ge=0, le=1)
    """Largest share of the rows that are of one repository."""
    cell_share: float = Field(_CAPS.cell_share, ge=0, le=1)
    """Largest share of the rows with the same classes of chosen and rejected action."""
    deciding_share: float = Field(_CAPS.deciding_share, ge=0, le=1)
    """Least share of the rows in which a side edits files, runs tests or finishes; other rows make room."""
    floor: NonNegativeInt = _CAPS.floor
    """Rows that caps leave, where there are as many."""

    def caps(self) -> PairCaps:
        """Return the caps of these settings."""
        return PairCaps(**{each.name: getattr(self, each.name) for each in fields(PairCaps)})
