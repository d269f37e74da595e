"""Restore prompts typed while the agent worked from the queue-operation records.

A prompt is put into a queue (`enqueue`). It leaves it at the end of a turn (`dequeue`, a user record
follows), into the running turn (`remove`), or back to the user (`popAll`). Versions from 2.1.91 on record a
prompt that went into a running turn as a `queued_command` attachment. Before, and again since 2.1.247, only
the queue holds it. Versions 2.1.45 to 2.1.50 also queue the JSON of an event for every background task that
starts; no model was shown that.

An interrupt sends the waiting prompts without a queue record: the text of a user record has left the queue.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from tracemill.ingesters.claude_code.record_fields import field_text
from tracemill.ingesters.claude_code.session import SessionEntry, SessionFile

MISPLACED = "prompt that was sent elsewhere than the queue says"
GUESSED = "prompt of which the queue does not say when it was sent"
_INTO_THE_TURN = ("", "absorbed_mid_turn")
_REMINDER = "<system-reminder>"
_TASK_EVENT = frozenset(("task_type", "tool_use_id"))
_NOTICES = ("<task-notification>", "<agent-notification>")


class _QueuedPrompt(NamedTuple):
    """A prompt in the queue: the line where it was added, and its text."""

    order: int
    text: str


@dataclass(slots=True)
class _UncertainRemoval:
    """A `remove` without content while prompts of the user and task notices or events waited.

    `first` is its line, `last` the line at which the last of the others had left as well, None if unknown.
    """

    first: int
    last: int | None = None
    confirmed: bool = False

    def matters(self, answers: list[int]) -> bool:
        """Return whether the model answered before all of them had left; `answers` are lines in order."""
        if self.confirmed:
            return False
        at = bisect_right(answers, self.first)
        return at < len(answers) and (self.last is None or answers[at] < self.last)


class AbsorbedPrompt(NamedTuple):
    """A prompt that was sent into a running turn: the lines where it was typed and left, and its text.

    `misplaced` is True if it was sent at the end of a turn after all, so that another one left. `guess` is
    set if another one may have left in its place.
    """

    typed: int
    order: int
    text: str
    misplaced: bool = False
    guess: _UncertainRemoval | None = None


class PromptQueue:
    """The prompt queue of a session, updated by its records in file order.

    `absorbed` lists the prompts that were sent into running turns.
    """

    def __init__(self) -> None:
        self.absorbed: list[AbsorbedPrompt] = []
        self._waiting: list[_QueuedPrompt] = []
        self._sent: _QueuedPrompt | None = None
        self._guess: _UncertainRemoval | None = None

    def take(self, order: int, record: dict[str, Any]) -> None:
        """Apply one record of the queue."""
        operation = field_text(record, "operation")
        if operation == "enqueue":
            self._waiting.append(_QueuedPrompt(order, field_text(record, "content").strip()))
        elif operation == "popAll":
            self._waiting.clear()
            self._guess = None
        elif operation == "dequeue":
            self._sent = min(self._waiting, key=_dequeue_order, default=_QueuedPrompt(order, ""))
            if self._sent.text:
                self._waiting.remove(self._sent)
                self._confirm(self._sent.text)
        elif operation == "remove":
            text = field_text(record, "content").strip()
            removed = self._removed(order, text)
            guess = self._confirm(removed.text) if text else self._open_guess(order, removed)
            if (
                _fits_a_turn(removed.text)
                and not _starts_a_task(removed.text)
                and field_text(record, "reason") in _INTO_THE_TURN
            ):
                self.absorbed.append(AbsorbedPrompt(removed.order, order, removed.text, guess=guess))

    def match_user_text(self, text: str) -> None:
        """Match the text of a user record: this prompt was sent, whatever a `dequeue` seemed to take."""
        sent, self._sent = self._sent, None
        if sent is not None and sent.text == text:
            return
        for prompt in self._waiting:
            if prompt.text == text:
                self._waiting.remove(prompt)
                self._confirm(text)
                if sent is not None and sent.text:
                    insort(self._waiting, sent)
                return
        if sent is not None:
            for at, prompt in enumerate(self.absorbed):
                if prompt.text == text and not prompt.misplaced:
                    self.absorbed[at] = prompt._replace(misplaced=True)
                    return

    def _open_guess(self, order: int, removed: _QueuedPrompt) -> _UncertainRemoval | None:
        """Return the uncertain removal of a `remove` without content, None if only one kind waited."""
        kind = _is_of_task(removed.text)
        others = [p for p in self._waiting if _fits_a_turn(p.text) and _is_of_task(p.text) != kind]
        guess = self._guess or (_UncertainRemoval(order) if others else None)
        if guess is not None and not others:
            guess.last = order
        self._guess = guess if others else None
        return guess

    def _confirm(self, text: str) -> None:
        """Confirm an uncertain removal if a notice or event still waited: the user's prompt had left."""
        if self._guess is not None and _is_of_task(text):
            self._guess.confirmed, self._guess = True, None

    def _removed(self, order: int, text: str) -> _QueuedPrompt:
        """Return the prompt that left: the named one, else the first that a turn would take."""
        fitting = [prompt for prompt in self._waiting if prompt.text == text] if text else self._waiting
        if not fitting:
            return _QueuedPrompt(order, text)
        removed = min(fitting, key=_absorb_order)
        self._waiting.remove(removed)
        return removed


def restore_absorbed(session: SessionFile, absorbed: Iterable[AbsorbedPrompt]) -> int:
    """Insert the prompts that only the queue holds among the entries, and return their number."""
    restored = 0
    answers = [entry.order for entry in session.entries if entry.kind == "assistant" and not entry.side]
    matched: set[int] = set()
    holders: list[SessionEntry] | None = None
    for prompt in absorbed:
        if holders is None:
            holders = [
                entry
                for entry in session.entries
                if entry.kind == "reminder" or any(_REMINDER in result.content for result in entry.results)
            ]
        order = _recorded(holders, prompt, matched)
        if order is not None:
            matched.add(order)
        else:
            entry = SessionEntry(prompt.order, f"queue-{prompt.order}", None, "queued", text=prompt.text)
            entry.typed, entry.doubt = prompt.typed, _doubt(prompt, answers)
            insort(session.entries, entry, key=lambda other: other.order)
            restored += 1
    return restored


def _doubt(prompt: AbsorbedPrompt, answers: list[int]) -> str:
    """Return why the place of a prompt is uncertain, "" if it is certain."""
    if prompt.misplaced:
        return MISPLACED
    return GUESSED if prompt.guess is not None and prompt.guess.matters(answers) else ""


def _recorded(holders: list[SessionEntry], prompt: AbsorbedPrompt, matched: set[int]) -> int | None:
    """Return the line of the entry with the prompt: one after it was typed, not matched by another prompt."""
    after = bisect_right(holders, prompt.typed, key=lambda entry: entry.order)
    for entry in islice(holders, after, None):
        if entry.order not in matched and _holds(entry, prompt.text):
            return entry.order
    return None


def _holds(entry: SessionEntry, text: str) -> bool:
    if entry.kind == "reminder":
        return entry.text.strip() == text or (_REMINDER in entry.text and text in entry.text)
    return any(_REMINDER in result.content and text in result.content for result in entry.results)


def _fits_a_turn(text: str) -> bool:
    """Return whether a running turn takes the prompt; slash commands wait for its end."""
    return bool(text) and not text.startswith("/")


def _starts_a_task(text: str) -> bool:
    """Return whether the text is the event of a background task that starts."""
    if not text.startswith("{") or '"task_id"' not in text:
        return False
    try:
        event = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(event, dict) and "task_id" in event and not _TASK_EVENT.isdisjoint(event)


def _is_of_task(text: str) -> bool:
    """Return whether the text is about a task and not from the user: a notice, or the event of its start."""
    return text.startswith(_NOTICES) or _starts_a_task(text)


def _dequeue_order(prompt: _QueuedPrompt) -> tuple[bool, int]:
    """Return the sort key for the end of a turn: prompts of the user first, then notices of tasks."""
    return _is_of_task(prompt.text), prompt.order


def _absorb_order(prompt: _QueuedPrompt) -> tuple[bool, bool, int]:
    """Return the sort key of prompts that a running turn takes: those that fit come first."""
    return not _fits_a_turn(prompt.text), *_dequeue_order(prompt)
