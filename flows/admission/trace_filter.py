"""Which traces stay out of a workspace, and what the entries of a selection are held against."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.select_settings import SelectSettings

Reason = Callable[[Trace], str | None]
"""Why a session is left out; None where it is taken."""

FORGOTTEN = "forgotten"
"""The reason that a session stays out which was forgotten."""
FORGOTTEN_FILE = "forgotten.json"
"""Where a workspace says what was."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What stays out of a workspace or a run: what was forgotten there, and what is not selected."""

    forgotten: Reason
    select: "SelectSettings | None"

    def reason(self, trace: Trace, matched: Counter[int]) -> str | None:
        """Why the trace is left out, None where it is taken; `matched` learns which entries of the selection
        fit it."""
        if self.select is not None:
            matched.update(self.select.matches(trace))
        return self.forgotten(trace) or (self.select.reason(trace) if self.select else None)
