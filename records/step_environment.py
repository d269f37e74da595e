"""What executes an action from a recorded state: the protocol that environments of all kinds satisfy."""

from typing import Protocol, runtime_checkable

from tracemill.records.message import Action
from tracemill.records.trace import TraceState


class NotExecuted(Exception):
    """An environment could not execute an action from a state: it says nothing of the action."""


@runtime_checkable
class StepEnvironment(Protocol):
    """An environment that restores a recorded state and executes actions in it.

    `name` is that of the entry point. `version` is in the fingerprint of labels: raise it when the same
    action may end otherwise.
    """

    name: str
    version: int

    def restores(self, state: TraceState) -> bool:
        """Return whether the state can be restored."""
        ...

    def succeeds(self, state: TraceState, action: Action, run: int) -> bool:
        """Restore the state, execute the action, go on by a fixed policy, and return whether it ends well.

        `run` counts from 0 and seeds whatever is drawn, so that both sides meet the same draws. Raises
        NotExecuted where the state or the action could not be run.
        """
        ...
