"""Classify the results of an action, as far as the session shows them."""

import re
from collections.abc import Sequence

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


FAILURES = frozenset(("absent", "syntax", "failed", "tests_failed"))
"""Kinds of results of an action that failed."""


def read_result_features(results: Sequence[Message]) -> str:
    """Return the kind of an action's result: that of its first failed result, else of any nonempty one.

    `nothing_yet` (no result follows), `empty`, `ok`, `absent` (it names something that does not exist),
    `syntax`, `tests_failed` or `failed`.
    """
    if not results:
        return "nothing_yet"
    found = [_of(result) for result in results]
    return next((kind for kind in found if kind in FAILURES), "ok" if "ok" in found else "empty")


def _of(result: Message) -> str:
    text = result.content
    head = text[:_LOOKED_AT]
    flagged = bool(result.is_error or result.error_kind)
    short = len(text) <= _LOOKED_AT // 4
    if flagged or _FAILED.search(head) or (short and (_ABSENT.search(head) or _SYNTAX.search(head))):
        for kind, pattern in (("syntax", _SYNTAX), ("absent", _ABSENT), ("tests_failed", _TESTS_FAILED)):
            if pattern.search(head):
                return kind
        return "failed"
    if _TESTS_FAILED.search(text[-_LOOKED_AT:]):
        return "tests_failed"
    return "empty" if head.strip().lower() in _NOTHING else "ok"
