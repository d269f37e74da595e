"""Split off delegations of OpenHands V0: events between a delegation and its result are another agent's.

Follows `StateTracker._init_history` of OpenHands: the agent that delegates is shown the delegation and its
result alone; the delegate starts with the first event behind its delegation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tracemill.ingesters.openhands.v0.events import V0Event

_REBUILT = "CodeAct"
"""Name prefix of the agents whose prompts are made like the main agent's."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """A delegation and the events of its delegate, including those of the delegate's own delegates."""

    action: V0Event
    events: list[V0Event] = field(default_factory=list)

    @property
    def call_id(self) -> str | None:
        """Return the call that delegated, None if it was not a tool call."""
        value: Any = (self.action.call or {}).get("tool_call_id")
        return value if isinstance(value, str) else None

    @property
    def is_rebuilt(self) -> bool:
        """Return whether the prompts of the delegate follow from its events."""
        return self.action.field("agent").startswith(_REBUILT)


def split_off_delegates(events: Iterable[V0Event]) -> tuple[list[V0Event], list[Delegation]]:
    """Return the events of an agent, and its delegations in order.

    A delegation without a recorded result reaches to the end.
    """
    own: list[V0Event] = []
    delegations: list[Delegation] = []
    depth = 0
    for event in events:
        begins = event.name == "delegate" and event.is_action
        ends = event.name == "delegate" and not event.is_action
        depth -= ends and depth > 0
        (delegations[-1].events if depth else own).append(event)
        if begins and not depth:
            delegations.append(Delegation(event))
        depth += begins
    return own, delegations
