"""What executes an action from a recorded state: the protocol that environments of all kinds satisfy."""

from typing import Protocol, runtime_checkable

from tracemill.records.message import Action
from tracemill.records.trace import TraceState


class NotExecuted(Exception):
    """An environment could not execute an action; this says nothing about the action's quality."""


@runtime_checkable
class StepEnvironment(Protocol):
    """An environment that restores a recorded state and executes actions in it.

    `name` is that of the entry point. `version` is part of the fingerprint of labels: raise it when the
    same action may end in another way.
    """

    name: str
    version: int

    def restores(self, state: TraceState) -> bool:
        """Return whether the state can be restored."""
        ...

    def succeeds(self, state: TraceState, action: Action, run: int) -> bool:
        """Restore the state, execute the action, continue by a fixed policy, and return whether it succeeds.

        `run` counts from 0 and seeds all random draws, so that both sides get the same draws. Raises
        NotExecuted if the state or the action could not be run.
        """
        ...
