"""Classify the results of an action, as far as the session shows them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.records.message import Message

_ABSENT = re.compile(
    r"doesn't exist|does not exist|no such (?:file|table|column|module)|not found|unknown column"
    r"|not recognized",
    re.IGNORECASE,
)
_SYNTAX = re.compile(
    r"syntax error|error in your SQL syntax|SyntaxError|unexpected (?:EOF|end of file)", re.IGNORECASE
)
_FAILED = re.compile(
    r"^(?:\s*(?:OBSERVATION:\s*)?)(?:error\b|fatal:|traceback|exception\b|usage:|\S*bash:|invalid\b)"
    r"|^\S{1,40}: (?:error|cannot|invalid|missing|command)\b|Exit code [1-9]|<returncode>[1-9]",
    re.IGNORECASE,
)
_TESTS_FAILED = re.compile(r"\b[1-9]\d* (?:failed|errors?)\b|FAILED|BUILD FAILURE|Failures: [1-9]")
_NOTHING = frozenset({"", "[]", "()", "{}", "none", "null"})
_LOOKED_AT = 2000


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of an action; `length` is in characters.

    `kind` is `nothing_yet` (no result follows), `empty`, `ok`, `absent` (it names what does not exist),
    `syntax`, `tests_failed` or `failed`.
    """

    kind: str
    length: int = 0

    @property
    def is_error(self) -> bool:
        """Return whether the action failed."""
        return self.kind in ("absent", "syntax", "failed", "tests_failed")


NOTHING_YET = CallResult("nothing_yet")


def read_result_features(results: Sequence[Message]) -> CallResult:
    """Return the result of an action: its first failed result, else the longest."""
    if not results:
        return NOTHING_YET
    found = [_of(result) for result in results]
    length = sum(each.length for each in found)
    worst = next((each for each in found if each.is_error), None)
    kind = worst.kind if worst else "ok" if any(each.kind == "ok" for each in found) else "empty"
    return CallResult(kind, length)


def _of(result: Message) -> CallResult:
    text = result.content
    head = text[:_LOOKED_AT]
    flagged = bool(result.is_error or result.error_kind)
    short = len(text) <= _LOOKED_AT // 4
    if flagged or _FAILED.search(head) or (short and (_ABSENT.search(head) or _SYNTAX.search(head))):
        for kind, pattern in (("syntax", _SYNTAX), ("absent", _ABSENT), ("tests_failed", _TESTS_FAILED)):
            if pattern.search(head):
                return CallResult(kind, len(text))
        return CallResult("failed", len(text))
    if _TESTS_FAILED.search(text[-_LOOKED_AT:]):
        return CallResult("tests_failed", len(text))
    return CallResult("empty" if head.strip().lower() in _NOTHING else "ok", len(text))
