"""Delegations of OpenHands V0: what lies between a delegation and its result is another agent's work.

Follows `StateTracker._init_history` of OpenHands: the agent that delegates is shown the delegation and
its result alone; the delegate starts with the first event behind its delegation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tracemill.ingesters.openhands.v0.events import V0Event

_REBUILT = "CodeAct"
"""How the agents are named whose prompts are made as the main agent's are; others make their own."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """A delegation and the events of its delegate, those of the delegate's own delegates among them."""

    action: V0Event
    events: list[V0Event] = field(default_factory=list)

    @property
    def call_id(self) -> str | None:
        """The call that delegated; None where it was no tool call."""
        value: Any = (self.action.call or {}).get("tool_call_id")
        return value if isinstance(value, str) else None

    @property
    def is_rebuilt(self) -> bool:
        """Whether what the delegate saw follows from its events."""
        return self.action.field("agent").startswith(_REBUILT)


def split_off_delegates(events: Iterable[V0Event]) -> tuple[list[V0Event], list[Delegation]]:
    """The events of an agent, and its delegations in order. One whose result is not recorded reaches to
    the end."""
    own: list[V0Event] = []
    found: list[Delegation] = []
    depth = 0
    for event in events:
        begins = event.name == "delegate" and event.is_action
        ends = event.name == "delegate" and not event.is_action
        depth -= ends and depth > 0
        (found[-1].events if depth else own).append(event)
        if begins and not depth:
            found.append(Delegation(event))
        depth += begins
    return own, found
