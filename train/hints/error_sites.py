"""Find the actions of a session that failed by their own fault."""

from collections.abc import Iterator
from dataclasses import dataclass

from tracemill.records.message import ErrorKind, Message
from tracemill.records.trace import Trace, TraceState

OWN_FAULT = frozenset(
    {ErrorKind.EXIT_CODE, ErrorKind.TOOL_ERROR, ErrorKind.TIMEOUT, ErrorKind.HOOK, ErrorKind.UNKNOWN}
)
"""Kinds of errors that the action may have caused. A user's rejection, a call that was never made and a
failure of the model's API are no fault of the action."""


@dataclass(frozen=True, slots=True)
class ErrorSite:
    """A step with at least one failed call, and the results of the calls that failed."""

    state: TraceState
    failed: tuple[Message, ...]

    @property
    def error_kind(self) -> str:
        """Return the kind of the first error."""
        return self.failed[0].error_kind or str(ErrorKind.UNKNOWN)

    @property
    def error_text(self) -> str:
        """Return the results of the failed calls."""
        return "\n".join(result.content.strip() for result in self.failed)


def error_sites(trace: Trace) -> Iterator[ErrorSite]:
    """Yield the steps of a trace with failed calls that may be at fault themselves, in order."""
    for state in trace.states():
        failed = tuple(result for result in state.results if result.error_kind in OWN_FAULT)
        if failed:
            yield ErrorSite(state, failed)
