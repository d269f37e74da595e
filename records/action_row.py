"""A single action that a release may hold: what an agent or its teachers did at a step."""

from dataclasses import dataclass

from tracemill.records.message import Message


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action, an assistant message, and where it is from. `row_id` is unique among the rows that are
    judged together."""

    row_id: str
    message: Message
    source: str
    harness: str
    label_source: str


@dataclass(frozen=True, slots=True)
class DroppedAction:
    """An action that did not pass: the operator that dropped it, why, and its statistics as JSON, or the type
    of the error where it made the operator raise."""

    action: ActionRow
    operator: str
    reason: str
    value: str
