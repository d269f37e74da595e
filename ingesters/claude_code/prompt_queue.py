"""Prompts typed while the agent worked, as the queue-operation records tell of them.

A prompt is put into a queue (`enqueue`). It leaves it at the end of a turn (`dequeue`, a user record
follows), into the turn that runs (`remove`), or back to the user (`popAll`). What went into a running
turn is recorded as a `queued_command` attachment by 2.1.91 and later. Before, and again since 2.1.247,
no other record holds it: the queue alone tells what the user said. 2.1.45 to 2.1.50 also queue an event for
every task that starts in the background, as the JSON of it: no model was shown that.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import orjson

from tracemill.ingesters.claude_code.record_fields import field_text
from tracemill.ingesters.claude_code.session import Entry, Session

_INTO_THE_TURN = ("", "absorbed_mid_turn")
_REMINDER = "<system-reminder>"
_TASK_EVENT = frozenset(("task_type", "tool_use_id"))
_NOTICES = ("<task-notification>", "<agent-notification>")


class _Waiting(NamedTuple):
    """A prompt in the queue: the line it was put there, and its text."""

    order: int
    text: str


class Absorbed(NamedTuple):
    """A prompt that went into a running turn: the lines where it was typed and where it left the queue,
    and its text."""

    typed: int
    order: int
    text: str


class PromptQueue:
    """Takes the queue's records in file order; `absorbed` is what went into running turns."""

    def __init__(self) -> None:
        self.absorbed: list[Absorbed] = []
        self._waiting: list[_Waiting] = []

    def take(self, order: int, record: dict[str, Any]) -> None:
        """One record."""
        operation = field_text(record, "operation")
        if operation == "enqueue":
            self._waiting.append(_Waiting(order, field_text(record, "content").strip()))
        elif operation == "popAll":
            self._waiting.clear()
        elif operation == "dequeue" and self._waiting:
            self._waiting.remove(min(self._waiting, key=_turn_to_run))
        elif operation == "remove":
            found = self._removed(order, field_text(record, "content").strip())
            if (
                _fits_a_turn(found.text)
                and not _starts_a_task(found.text)
                and field_text(record, "reason") in _INTO_THE_TURN
            ):
                self.absorbed.append(Absorbed(found.order, order, found.text))

    def _removed(self, order: int, text: str) -> _Waiting:
        """The prompt that left: the one named, else the first that a turn would take."""
        fitting = [prompt for prompt in self._waiting if prompt.text == text] if text else self._waiting
        if not fitting:
            return _Waiting(order, text)
        found = min(fitting, key=_turn_to_join)
        self._waiting.remove(found)
        return found


def restore_absorbed(session: Session, absorbed: Iterable[Absorbed]) -> int:
    """Puts the prompts that no other record holds among the entries, where they left the queue; gives
    their number."""
    restored = 0
    taken: set[int] = set()
    holders: list[Entry] | None = None
    for prompt in absorbed:
        if holders is None:
            holders = [entry for entry in session.entries if _may_hold(entry)]
        found = _recorded(holders, prompt, taken)
        if found is not None:
            taken.add(found)
        else:
            entry = Entry(prompt.order, f"queue-{prompt.order}", None, "queued", text=prompt.text)
            insort(session.entries, entry, key=lambda other: other.order)
            restored += 1
    return restored


def _recorded(holders: list[Entry], prompt: Absorbed, taken: set[int]) -> int | None:
    """The line of the entry that holds the prompt: one after it was typed, not taken for another."""
    after = bisect_right(holders, prompt.typed, key=lambda entry: entry.order)
    for entry in islice(holders, after, None):
        if entry.order not in taken and _holds(entry, prompt.text):
            return entry.order
    return None


def _may_hold(entry: Entry) -> bool:
    return entry.kind == "reminder" or any(_REMINDER in result.content for result in entry.results)


def _holds(entry: Entry, text: str) -> bool:
    if entry.kind == "reminder":
        return entry.text.strip() == text or (_REMINDER in entry.text and text in entry.text)
    return any(_REMINDER in result.content and text in result.content for result in entry.results)


def _fits_a_turn(text: str) -> bool:
    """Whether a running turn takes it; slash commands wait for its end."""
    return bool(text) and not text.startswith("/")


def _starts_a_task(text: str) -> bool:
    """Whether it is the event of a task that starts, and no text of anybody."""
    if not text.startswith("{") or '"task_id"' not in text:
        return False
    try:
        event = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(event, dict) and "task_id" in event and not _TASK_EVENT.isdisjoint(event)


def _turn_to_run(prompt: _Waiting) -> tuple[bool, int]:
    """What goes first at the end of a turn: what the user typed, then notices of tasks."""
    return prompt.text.startswith(_NOTICES) or _starts_a_task(prompt.text), prompt.order


def _turn_to_join(prompt: _Waiting) -> tuple[bool, bool, int]:
    """What goes first into a running turn."""
    return not _fits_a_turn(prompt.text), *_turn_to_run(prompt)
