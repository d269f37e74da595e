"""How much a label counts in training: from the votes for an action, and from what outcomes say of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from tracemill.records.message import Message
from tracemill.records.trace import Trace, TraceState


@dataclass(frozen=True, slots=True)
class LabelWeight:
    """What a label counts. `weight` (0 to 1) is what training uses; `outcome` (0 to 1) what outcomes of
    sessions say of this action here, None where they say nothing; `support` the recorded steps that this
    rests on."""

    weight: float
    outcome: float | None
    support: int


class LabelWeights:
    """Weighs labels: by the share of votes for the action alone."""

    @classmethod
    def fit(cls, traces: Iterable[Trace]) -> "LabelWeights":
        """Return the weights that the agents' own sessions give; `traces` are those of known outcome, read
        once."""
        return cls()

    def weigh(self, state: TraceState, action: Message, agreement: float) -> LabelWeight:
        """Return the weight of an action at a step; `agreement` is the share (0 to 1) of counted votes for
        it."""
        return LabelWeight(weight=agreement, outcome=None, support=0)

    def warnings(self) -> list[str]:
        """Return sentences for the card: signs that teachers share an error."""
        return []
