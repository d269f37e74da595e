"""Edits that replace one text of a file by another, or write a whole file."""

import json
from dataclasses import dataclass
from typing import Any

from tracemill.harnesses.core.vocabulary import WRITES
from tracemill.pairs.fix_rules import CallAttempt
from tracemill.pairs.session.calls import SessionCall, SessionCalls
from tracemill.records.message import ToolCall

_OLD = ("old_string", "old_str", "oldText", "oldString")
_NEW = ("new_string", "new_str", "newText", "newString", "content", "file_text")


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The edit of a call: it replaces `old` in a file by `new`, or writes the whole file if `old` is ""."""

    call: ToolCall
    arguments: dict[str, Any]
    argument: str
    path: str
    old: str
    new: str

    def with_new_text(self, text: str) -> ToolCall:
        """Return the call with another new text."""
        arguments = json.dumps(self.arguments | {self.argument: text}, ensure_ascii=False)
        return ToolCall(self.call.id, self.call.name, arguments)

    def added_lines(self) -> frozenset[str]:
        """Return the lines of the new text that are not in the old one, without indentation."""
        return _lines(self.new) - _lines(self.old)

    def removed_lines(self) -> frozenset[str]:
        """Return the lines of the old text that are not in the new one, without indentation."""
        return _lines(self.old) - _lines(self.new)

    def is_same_change(self, other: "TextEdit") -> bool:
        """Return whether two edits add and remove the same lines, whatever they keep around them."""
        if self.removed_lines() != other.removed_lines():
            return False
        return self.added_lines() == other.added_lines()

    def is_undone_by(self, text: str) -> bool:
        """Return whether `text` brings back what the edit removed, and has nothing that it added."""
        removed, lines = self.removed_lines(), _lines(text)
        back = bool(removed) and removed <= lines and self.added_lines().isdisjoint(lines)
        return text == self.old or back

    def changes(self, text: str, added: frozenset[str]) -> bool:
        """Return whether the edit replaces one place of `text` that contains one of the lines `added`."""
        return bool(self.old) and text.count(self.old) == 1 and not added.isdisjoint(_lines(self.old))

    def overlaps(self, other: "TextEdit") -> bool:
        """Return whether two edits replace the same place: one replaced text holds the other."""
        one, two = self.old.strip(), other.old.strip()
        return self.path == other.path and bool(one and two) and (one in two or two in one)


def read_text_edit(attempt: CallAttempt) -> TextEdit | None:
    """Return the edit of a call; None if it is no edit, replaces every occurrence, or uses line numbers."""
    arguments, path = attempt.arguments, attempt.effect.target
    argument = next((name for name in _NEW if isinstance(arguments.get(name), str)), None)
    if attempt.effect.operation not in WRITES or path is None or argument is None:
        return None
    if arguments.get("replace_all") or "insert_line" in arguments:
        return None
    old = next((arguments[name] for name in _OLD if isinstance(arguments.get(name), str)), "")
    return TextEdit(attempt.call, arguments, argument, path, old, arguments[argument])


def edit_lasts(session: SessionCalls, made: SessionCall, edit: TextEdit) -> bool:
    """Return whether no later edit of the session rewrites lines that an edit added, or the whole file."""
    added = edit.added_lines()
    for later in session.after(made.step):
        change = read_text_edit(later.attempt) if later.succeeded else None
        if change is None or change.path != edit.path:
            continue
        if not change.old or not added.isdisjoint(change.removed_lines()):
            return False
    return True


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines() if line.strip())
