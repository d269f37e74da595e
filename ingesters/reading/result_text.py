"""Read from the text of a tool result why the call failed, and replace images by placeholders.

One classifier serves all formats. It reads markers that harnesses write themselves, at the start or the end
of the text, never words in between.
"""

import base64
import binascii
import hashlib
import re

from tracemill.records.message import ErrorKind

_USER_START = (
    "The user doesn't want to",
    "The user rejected",
    "User rejected",
    "[Request interrupted by user",
)
_USER_END = "[Last action has been rejected by the user]"
_TOOL_START = ("<tool_use_error>", "ERROR:", "ERROR\n")
_TOOL_END = "[Error occurred in processing last action]"
_CANCELLED = re.compile(r"(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)")
_EXIT_START = re.compile(r"(?:Exit code |<returncode>)(-?\d+)\b")
_EXIT_END = re.compile(r"\[(?:The command completed|Command finished) with exit code (-?\d+)")
_TIMEOUT_START = re.compile(r"(?:Exit code \d+\s+)?(?:The command|Command) timed out|EXECUTION TIMED OUT")
_TIMEOUT_END = re.compile(r"\[(?:The|Your) command .{0,200}?(?:timed out|has no new output) after", re.DOTALL)
_API = re.compile(r"API Error\b")
_HOOK = re.compile(
    r"(?:Pre|Post)ToolUse:|[^\n]{0,80}\bhook (?:error|blocked|returned)|[Pp]re-commit "
    r"|Permission (?:to use|for this action)|[^\n]{0,60}requested permissions"
)
_TOOL_PHRASE = re.compile(
    r"E[A-Z]{3,9}: |Error: |InputValidationError|No such tool|(?:File|Path|Directory) does not exist"
    r"|File content \([^)]{1,40}\) exceeds|Working directory [^\n]+ was del"
)
# Every marker at the start begins with one of these; every marker at the end begins with a bracket.
_STARTS = (
    *(*_USER_START, *_TOOL_START),
    *("Sibling tool call errored", "Cancelled: parallel tool call"),
    *("Exit code ", "<returncode>", "The command timed out", "Command timed out", "EXECUTION TIMED OUT"),
)
_EXECUTED = "EXECUTION RESULT of ["
_EXECUTION = re.compile(r"\AEXECUTION RESULT of \[[\w.-]{1,80}\]:\n")
"""What OpenHands puts in front of a result where it sends results as the user's."""
_HEAD = 400
_TAIL = 800
_STILL_RUNNING = -1


def error_kind_of(text: str, is_error: bool | None) -> ErrorKind | None:
    """Return why a tool result failed, None if it did not.

    `is_error` is the source's own flag. True means a failure whose kind is read from the text (UNKNOWN where
    that says nothing). None means a source without flags: only markers that harnesses write count.
    """
    if is_error is False:
        return None
    head = text[: _HEAD + 20].removeprefix("OBSERVATION:\n")
    if head.startswith(_EXECUTED):
        head = _EXECUTION.sub("", head)
    head = head.lstrip()
    kind = _kind_by_marker(head, text[-_TAIL:].rstrip())
    if kind is None and is_error:
        return _kind_by_phrase(head)
    return kind


def image_placeholder(media_type: str, data: str) -> str:
    """Return the placeholder of a base64 image or document: media type, size in bytes, digest."""
    try:
        raw = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        raw = data.encode("utf-8", "surrogatepass")
    kind = media_type.partition("/")[0]
    noun = kind if kind in ("image", "audio", "video") else "document"
    return f"[{noun}: {media_type}, {len(raw)} bytes, blake2b {_short_digest(raw)}]"


def image_url_placeholder(url: str) -> str:
    """Return the placeholder of an image given by address; a `data:` address counts as its bytes."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return image_placeholder(head[5:-7] or "image/unknown", data)
    return f"[image: by address, blake2b {_short_digest(url.encode('utf-8', 'surrogatepass'))}]"


def _kind_by_marker(head: str, tail: str) -> ErrorKind | None:
    """Return the kind that a harness's own marker names."""
    marked = head.startswith(_STARTS)
    if not marked and "[" not in tail:
        return None
    if tail.endswith(_USER_END) or (marked and head.startswith(_USER_START)):
        return ErrorKind.USER_REJECTION
    if marked and _CANCELLED.match(head):
        return ErrorKind.CANCELLED
    code = _exit_code(head if marked else "", tail)
    if (
        code == _STILL_RUNNING
        or (marked and _TIMEOUT_START.match(head))
        or (not code and " after" in tail and _TIMEOUT_END.search(tail))
    ):
        return ErrorKind.TIMEOUT
    if code:
        return ErrorKind.EXIT_CODE
    if code is None and ((marked and head.startswith(_TOOL_START)) or tail.endswith(_TOOL_END)):
        return ErrorKind.TOOL_ERROR
    return None


def _kind_by_phrase(head: str) -> ErrorKind:
    """Return the kind of a failed result without a marker, by its first words."""
    if _API.match(head):
        return ErrorKind.API_ERROR
    if _HOOK.match(head):
        return ErrorKind.HOOK
    if _TOOL_PHRASE.match(head):
        return ErrorKind.TOOL_ERROR
    return ErrorKind.UNKNOWN


def _exit_code(head: str, tail: str) -> int | None:
    """Return the exit code that a harness wrote at the start, else the last one at the end."""
    match = _EXIT_START.match(head) if head else None
    if match:
        return int(match.group(1))
    codes = _EXIT_END.findall(tail) if " with exit code " in tail else None
    return int(codes[-1]) if codes else None


def _short_digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
