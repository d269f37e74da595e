"""Whether a later call does right what a failed one did wrong, and could have been made instead of it."""

import posixpath
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tracemill.agreement.world.seen_text import ShownText
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_call_operation
from tracemill.harnesses.shell.operations import Effect
from tracemill.harnesses.shell.parse_line import parse_command
from tracemill.pairs.failure_causes import Fault
from tracemill.records.message import ToolCall

_WORD = re.compile(r"[A-Za-z0-9_]+")
_PATH_WORD = re.compile(r"^[\w.@~+/${}-]*(?:/|\.\w{1,8}$)[\w.@~+/${}-]*$")
_NEW_TEXT = ("new_string", "new_str", "content", "file_text", "replacement_text")
_OLD_TEXT = ("old_string", "old_str")
_RELATED = 0.5
_SAME_WORDS = 0.4


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call with its arguments and what it does."""

    call: ToolCall
    arguments: dict[str, Any]
    effect: Effect

    @classmethod
    def of(cls, call: ToolCall, harness: str) -> "Attempt":
        """The attempt a call is; arguments that are no object count as none."""
        return cls(call, call.parsed() or {}, find_call_operation(call, harness))

    @property
    def command(self) -> str:
        """The command line, empty where the call is none."""
        value = self.arguments.get("command")
        return value if isinstance(value, str) and "path" not in self.arguments else ""


def is_mend(fault: Fault, failed: Attempt, later: Attempt) -> bool:
    """True where `later` does what `failed` was to do, without its fault."""
    one, other = failed.effect, later.effect
    same_target = one.target is not None and one.target == other.target
    if fault == Fault.UNREAD:
        return other.operation == Operation.READ and same_target and not later.command
    if fault == Fault.DIRECTORY:
        same = same_target or _same_folder(one.target, other.target)
        return same and other.operation in (Operation.LIST, Operation.READ)
    if fault == Fault.TOO_LARGE:
        return _reads_part(failed, later)
    if fault in (Fault.TEXT_ABSENT, Fault.ARGUMENTS, Fault.SYNTAX):
        return same_target and _same_tool(failed, later) and _same_new_text(failed, later)
    if fault == Fault.PATH:
        return one.operation == other.operation and _path_put_right(failed, later)
    if fault == Fault.PATTERN:
        return _pattern_put_right(failed, later)
    return bool(failed.command and later.command) and _command_put_right(failed, later)


def was_fix_possible(failed: Attempt, later: Attempt, shown: ShownText, cut: int) -> bool:
    """True where all that `later` needs to know was shown in the first `cut` messages.

    Of an edit: the text it replaces, or that it replaces lines among those of the failed one. Of any call:
    the paths that the failed call does not name.
    """
    if (lines := _lines_of(later)) is not None:
        failed_lines = _lines_of(failed)
        return failed_lines is not None and lines[0] <= failed_lines[1] and failed_lines[0] <= lines[1]
    if later.effect.operation == Operation.EDIT and not later.command:
        olds = _old_texts(later)
        return bool(olds) and all(shown.holds(old, cut) for old in olds)
    known = " ".join(_words(failed))
    new_paths = [word for word in _words(later) if _PATH_WORD.match(word) and word not in known]
    return all(shown.mentions(path, cut) for path in new_paths if len(path) > 1)


def _same_tool(failed: Attempt, later: Attempt) -> bool:
    edits = {"Edit", "MultiEdit"}
    names = {failed.call.name, later.call.name}
    if len(names) > 1 and not names <= edits:
        return False
    return failed.arguments.get("command") == later.arguments.get("command")


def _same_new_text(failed: Attempt, later: Attempt) -> bool:
    one, other = _new_text(failed), _new_text(later)
    if not one or not other:
        return not one
    return _overlap(one, other) >= _RELATED


def _new_text(attempt: Attempt) -> str:
    parts = [str(attempt.arguments[name]) for name in _NEW_TEXT if attempt.arguments.get(name)]
    parts += [str(edit.get("new_string", "")) for edit in _edits(attempt)]
    return "\n".join(parts)


def _lines_of(attempt: Attempt) -> tuple[int, int] | None:
    """First and last line of an edit that names lines, and no text, to be replaced."""
    first, last = attempt.arguments.get("start_line"), attempt.arguments.get("end_line")
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _old_texts(attempt: Attempt) -> list[str]:
    olds = [str(attempt.arguments[name]) for name in _OLD_TEXT if attempt.arguments.get(name)]
    return olds + [str(edit.get("old_string", "")) for edit in _edits(attempt)]


def _edits(attempt: Attempt) -> list[dict[str, Any]]:
    edits = attempt.arguments.get("edits")
    return [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []


def _same_folder(one: str | None, other: str | None) -> bool:
    return bool(one and other) and posixpath.normpath(str(one)) == posixpath.normpath(str(other))


def _reads_part(failed: Attempt, later: Attempt) -> bool:
    path = failed.effect.target
    if path is None or later.call == failed.call:
        return False
    if later.effect.operation == Operation.READ and later.effect.target == path:
        return bool(later.command or later.arguments.get("limit") or later.arguments.get("offset"))
    return later.effect.operation == Operation.SEARCH and later.arguments.get("path") == path


def _path_put_right(failed: Attempt, later: Attempt) -> bool:
    one, other = _path_of(failed), _path_of(later)
    if not one or not other or one == other:
        return False
    if failed.effect.operation == Operation.SEARCH:
        patterns = str(failed.arguments.get("pattern")), str(later.arguments.get("pattern"))
        return later.call.name == failed.call.name and _overlap(*patterns) >= _RELATED
    names = posixpath.basename(one), posixpath.basename(other)
    return names[0] == names[1] or SequenceMatcher(None, *names).ratio() >= 0.8


def _path_of(attempt: Attempt) -> str:
    for name in ("file_path", "path", "notebook_path"):
        value = attempt.arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return attempt.effect.target or "" if attempt.effect.operation == Operation.READ else ""


def _pattern_put_right(failed: Attempt, later: Attempt) -> bool:
    """The same search by the same tool in the same place, its pattern differing in punctuation alone."""
    if failed.call.name != later.call.name or failed.call.arguments == later.call.arguments:
        return False
    if failed.command or later.command:
        return "".join(_WORD.findall(failed.command)) == "".join(_WORD.findall(later.command))
    if failed.arguments.get("path") != later.arguments.get("path"):
        return False
    one, other = str(failed.arguments.get("pattern")), str(later.arguments.get("pattern"))
    return one != other and _WORD.findall(one) == _WORD.findall(other)


def _command_put_right(failed: Attempt, later: Attempt) -> bool:
    """The same work on much the same words."""
    one, other = failed.effect, later.effect
    if one.operation != other.operation or one.target is None or other.target is None:
        return False
    if other.mutating and not one.mutating:
        return False
    same = one.target == other.target
    if not same and one.operation in (Operation.READ, Operation.LIST, Operation.CREATE, Operation.EDIT):
        same = posixpath.basename(one.target) == posixpath.basename(other.target)
        same = same or (one.operation == Operation.LIST and posixpath.dirname(one.target) == other.target)
    kept = _kept(failed.command, later.command)
    return same and kept >= _RELATED and _overlap(failed.command, later.command) >= _SAME_WORDS


def _words(attempt: Attempt) -> list[str]:
    if not attempt.command:
        return [value for value in (_path_of(attempt),) if value]
    words = [word for command in parse_command(attempt.command) or () for word in command.argv]
    return words or attempt.command.split()


def _kept(one: str, other: str) -> float:
    """Share of the words of the first text that stand in the second."""
    first = set(_WORD.findall(one))
    return len(first & set(_WORD.findall(other))) / len(first) if first else 1.0


def _overlap(one: str, other: str) -> float:
    """Share of the words of both texts that stand in both."""
    first, second = set(_WORD.findall(one)), set(_WORD.findall(other))
    return len(first & second) / len(first | second) if first | second else 1.0
