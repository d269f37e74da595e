"""Rules on whether a later call fixes a failed one, and whether it was possible at the failed step."""

import posixpath
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tracemill.agreement.files.edits import TextChange, parse_edit_changes
from tracemill.harnesses.core.vocabulary import Operation, ToolRule
from tracemill.harnesses.operations import action_command_line, find_call_operation, unwrap_script_call
from tracemill.harnesses.shell.operations import CommandEffect
from tracemill.harnesses.shell.parse_line import parse_command
from tracemill.harnesses.shell.patches import Hunk, read_patch
from tracemill.pairs.failure_causes import FailureCause
from tracemill.pairs.shown_text import ShownText
from tracemill.records.message import ToolCall

_WORD = re.compile(r"[A-Za-z0-9_]+")
_PATH_WORD = re.compile(r"^[\w.@~+/${}-]*(?:/|\.\w{1,8}$)[\w.@~+/${}-]*$")
_NEW_TEXT = ("new_string", "new_str", "newText", "newString", "content", "file_text", "replacement_text")
_PATH_ARGUMENTS = (
    *("file_path", "path", "notebook_path", "filePath", "absolute_path", "dir_path"),
    *("target_file", "relative_workspace_path"),
)
_OLD_TEXT = ("old_string", "old_str", "oldText", "oldString")
_SHOWN_PART = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:head|tail|cat|less|more)(?:\s+-\S+|\s+\d+)*)+$|\s*2>&1$")
_SHELL = ToolRule(Operation.RUN, ("command", "cmd"), "shell")
_RELATED = 0.5
_SAME_WORDS = 0.4
_SAME_PART = 0.3
"""Least share of the words in which a command differs that its fix keeps."""


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """A call with its arguments and its operation."""

    call: ToolCall
    arguments: dict[str, Any]
    effect: CommandEffect

    @classmethod
    def of(cls, call: ToolCall, harness: str) -> "CallAttempt":
        """Build the attempt of a call; arguments that are not a JSON object count as none."""
        arguments = unwrap_script_call(call, harness).parsed() or {}
        return cls(call, arguments, find_call_operation(call, harness))

    @property
    def command(self) -> str:
        """Return the command line, "" if the call has none."""
        if "path" in self.arguments:
            return ""
        return action_command_line(self.arguments, _SHELL) or ""

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Return the changes of a call that applies a patch."""
        patch = self.arguments.get("input")
        if not isinstance(patch, str) or not patch.lstrip().startswith("*** Begin Patch"):
            return ()
        return tuple(hunk for each in read_patch(patch) for hunk in each.hunks)

    @property
    def diff_changes(self) -> tuple[TextChange, ...]:
        """Return the changes of a call that gives them as blocks of a diff."""
        diff = self.arguments.get("diff")
        return (parse_edit_changes({"diff": diff}) or ()) if isinstance(diff, str) else ()


def is_fix(cause: FailureCause, failed: CallAttempt, later: CallAttempt) -> bool:
    """Return whether `later` does what `failed` attempted, without its mistake."""
    one, other = failed.effect, later.effect
    same_target = one.target is not None and one.target == other.target
    if cause == FailureCause.UNREAD:
        return other.operation == Operation.READ and same_target and not later.command
    if cause == FailureCause.DIRECTORY:
        same = same_target or _same_folder(one.target, other.target)
        return same and other.operation in (Operation.LIST, Operation.READ)
    if cause == FailureCause.TOO_LARGE:
        return _reads_range(failed, later)
    if cause in (FailureCause.TEXT_ABSENT, FailureCause.ARGUMENTS, FailureCause.SYNTAX):
        return same_target and _same_tool(failed, later) and _same_new_text(failed, later)
    if cause == FailureCause.PATH:
        return one.operation == other.operation and _fixes_path(failed, later)
    if cause == FailureCause.PATTERN:
        return _fixes_pattern(failed, later)
    if not failed.command or not later.command or _differ_in_shown_output(failed.command, later.command):
        return False
    return _names_program(failed.command, later.command) or _fixes_command(failed, later)


def was_fix_possible(failed: CallAttempt, later: CallAttempt, shown: ShownText, cut: int) -> bool:
    """Return whether everything that `later` uses was known after the first `cut` messages.

    An edit uses the text it replaces, or lines, which must overlap those of the failed edit. Other calls
    use the paths that the failed call does not name.
    """
    if (lines := _line_range(later)) is not None:
        failed_lines = _line_range(failed)
        return failed_lines is not None and lines[0] <= failed_lines[1] and failed_lines[0] <= lines[1]
    if later.effect.operation == Operation.EDIT and not later.command:
        old_texts = _old_texts(later)
        return bool(old_texts) and all(shown.holds(text, cut) for text in old_texts)
    failed_words = " ".join(_words(failed))
    new_paths = [word for word in _words(later) if _PATH_WORD.match(word) and word not in failed_words]
    return all(shown.mentions(path, cut) for path in new_paths if len(path) > 1)


def _same_tool(failed: CallAttempt, later: CallAttempt) -> bool:
    edits = {"Edit", "MultiEdit"}
    names = {failed.call.name, later.call.name}
    if len(names) > 1 and not names <= edits:
        return False
    return failed.arguments.get("command") == later.arguments.get("command")


def _same_new_text(failed: CallAttempt, later: CallAttempt) -> bool:
    one, other = _new_text(failed), _new_text(later)
    if not one or not other:
        return not one
    return _overlap(one, other) >= _RELATED


def _new_text(attempt: CallAttempt) -> str:
    changed = [change.new for change in attempt.diff_changes if change.new]
    written = ["\n".join(hunk.new) for hunk in attempt.hunks]
    return "\n".join([*_texts_of(attempt, _NEW_TEXT), *written, *changed])


def _line_range(attempt: CallAttempt) -> tuple[int, int] | None:
    """Return the first and last line that an edit replaces, None if it replaces a text."""
    first, last = attempt.arguments.get("start_line"), attempt.arguments.get("end_line")
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _old_texts(attempt: CallAttempt) -> list[str]:
    changed = [change.old for change in attempt.diff_changes if change.old]
    return [
        *_texts_of(attempt, _OLD_TEXT),
        *("\n".join(hunk.old) for hunk in attempt.hunks if hunk.old),
        *changed,
    ]


def _texts_of(attempt: CallAttempt, names: tuple[str, ...]) -> list[str]:
    """Return the texts of some arguments of a call, and of each of its `edits`."""
    edits = attempt.arguments.get("edits")
    listed = edits if isinstance(edits, list) else []
    given = [attempt.arguments, *(edit for edit in listed if isinstance(edit, dict))]
    return [str(each[name]) for each in given for name in names if each.get(name)]


def _same_folder(one: str | None, other: str | None) -> bool:
    return bool(one and other) and posixpath.normpath(str(one)) == posixpath.normpath(str(other))


def _reads_range(failed: CallAttempt, later: CallAttempt) -> bool:
    path = failed.effect.target
    if path is None or later.call == failed.call:
        return False
    if later.effect.operation == Operation.READ and later.effect.target == path:
        return bool(later.command or later.arguments.get("limit") or later.arguments.get("offset"))
    return later.effect.operation == Operation.SEARCH and later.arguments.get("path") == path


def _fixes_path(failed: CallAttempt, later: CallAttempt) -> bool:
    one, other = _path_of(failed), _path_of(later)
    if not one or not other or one == other:
        return False
    if failed.effect.operation == Operation.SEARCH:
        patterns = str(failed.arguments.get("pattern")), str(later.arguments.get("pattern"))
        return later.call.name == failed.call.name and _overlap(*patterns) >= _RELATED
    names = posixpath.basename(one), posixpath.basename(other)
    return names[0] == names[1] or SequenceMatcher(None, *names).ratio() >= 0.8


def _path_of(attempt: CallAttempt) -> str:
    for name in _PATH_ARGUMENTS:
        value = attempt.arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return attempt.effect.target or "" if attempt.effect.operation == Operation.READ else ""


def _fixes_pattern(failed: CallAttempt, later: CallAttempt) -> bool:
    """Return whether a search was repeated with a pattern that differs only in punctuation."""
    if failed.call.name != later.call.name or failed.call.arguments == later.call.arguments:
        return False
    if failed.command or later.command:
        return "".join(_WORD.findall(failed.command)) == "".join(_WORD.findall(later.command))
    if failed.arguments.get("path") != later.arguments.get("path"):
        return False
    one, other = str(failed.arguments.get("pattern")), str(later.arguments.get("pattern"))
    return one != other and _WORD.findall(one) == _WORD.findall(other)


def _fixes_command(failed: CallAttempt, later: CallAttempt) -> bool:
    """Return whether two command lines do the same operation on the same target with similar words."""
    one, other = failed.effect, later.effect
    if one.operation != other.operation or one.target is None or other.target is None:
        return False
    if other.mutating and not one.mutating:
        return False
    same = one.target == other.target
    if not same and one.operation in (Operation.READ, Operation.LIST, Operation.CREATE, Operation.EDIT):
        same = posixpath.basename(one.target) == posixpath.basename(other.target)
        same = same or (one.operation == Operation.LIST and posixpath.dirname(one.target) == other.target)
    return (
        same
        and _kept(failed.command, later.command) >= _RELATED
        and _overlap(failed.command, later.command) >= _SAME_WORDS
        and _kept(*_different_parts(failed.command, later.command)) >= _SAME_PART
    )


def _names_program(one: str, other: str) -> bool:
    """Return whether two command lines differ only in the version of programs: `pip` and `pip3`."""
    lines = [[command.argv for command in parse_command(line) or ()] for line in (one, other)]
    if len(lines[0]) != len(lines[1]) or lines[0] == lines[1]:
        return False
    return all(
        first == second
        or (first and second and first[1:] == second[1:] and _stem(first[0]) == _stem(second[0]) != "")
        for first, second in zip(*lines, strict=True)
    )


def _differ_in_shown_output(one: str, other: str) -> bool:
    """Return whether two command lines differ only in how much of the output is shown: `| head -80`."""
    first, second = (_SHOWN_PART.sub("", line.strip()).split() for line in (one, other))
    return first == second


def _stem(program: str) -> str:
    """Return a program's name without its version."""
    return program.rstrip(".0123456789")


def _different_parts(one: str, other: str) -> tuple[str, str]:
    """Return two command lines without the simple commands they share; whole if one has no other."""
    lines = [
        [" ".join(command.argv) for command in parse_command(line) or () if command.argv]
        for line in (one, other)
    ]
    first, second = ([each for each in line if each not in rest] for line, rest in (lines, lines[::-1]))
    return ("\n".join(first), "\n".join(second)) if first and second else (one, other)


def _kept(one: str, other: str) -> float:
    """Return the share of a text's words that the other text has too, 1 if it has no words."""
    first, second = set(_WORD.findall(one)), set(_WORD.findall(other))
    return len(first & second) / len(first) if first else 1.0


def _words(attempt: CallAttempt) -> list[str]:
    if not attempt.command:
        return [value for value in (_path_of(attempt),) if value]
    words = [word for command in parse_command(attempt.command) or () for word in command.argv]
    return words or attempt.command.split()


def _overlap(one: str, other: str) -> float:
    """Return the Jaccard index of the words of two texts, 1 if both have none."""
    first, second = set(_WORD.findall(one)), set(_WORD.findall(other))
    return len(first & second) / len(first | second) if first | second else 1.0
