"""Single actions of an agent or its teachers that a release may hold."""

from dataclasses import dataclass

from tracemill.records.message import Message


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action as an assistant message, with its origin.

    `row_id` is unique among the rows that are judged together.
    """

    row_id: str
    message: Message
    source: str
    harness: str
    label_source: str


@dataclass(frozen=True, slots=True)
class DroppedAction:
    """An action that an operator dropped, with the reason.

    `value` is the operator's statistics as JSON, or the type of the error that the operator raised.
    """

    action: ActionRow
    operator: str
    reason: str
    value: str
