"""Filter traces: those that were forgotten or are not selected stay out."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.select_settings import SelectSettings

Reason = Callable[[Trace], str | None]
"""Why a session is left out; None if it is taken."""

FORGOTTEN = "forgotten"
"""The reason that a session stays out which was forgotten."""
FORGOTTEN_FILE = "forgotten.json"
"""Where a workspace says what was."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """A filter of traces that were forgotten in the workspace or are not selected."""

    forgotten: Reason
    select: "SelectSettings | None"

    def reason(self, trace: Trace, matched: Counter[int]) -> str | None:
        """Return why the trace is left out, None if it is taken.

        The indices of matching entries are counted in `matched`.
        """
        if self.select is not None:
            matched.update(self.select.matches(trace))
        return self.forgotten(trace) or (self.select.reason(trace) if self.select else None)
