"""Tell from the text of a result of Codex whether its call failed, and why."""

import json
import re

from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.records.message import ErrorKind

_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_TIMED_OUT = re.compile(r"(?:error: )?command timed out after \d")
_REJECTED = re.compile(
    r"(?:exec command |command |patch )?(?:rejected|denied|aborted) by user\b|user rejected\b"
    r"|This action was rejected due to unacceptable risk|approval policy is Never; reject command"
)
"""Whole results of calls that were not run."""
_FAILED = re.compile(
    r"(?:exec_command|write_stdin|apply_patch verification|collab [a-z ]+) failed\b|failed to parse function"
    r"|failed in sandbox|execution error|unsupported call|unknown process id|patch rejected|Script failed\n"
    r"|sandbox error: |unable to (?:locate|read|process) image|tool call error"
)
_REFUSED = ("rejected by user", "denied by user", "user rejected", "aborted by user")
_BLOCKED = (
    "rejected: blocked by policy",
    "is not permitted by the approval policy",
    "approval policy is Never",
    "rejected due to unacceptable risk",
)
_HEAD = 2000


def codex_error(text: str) -> tuple[bool | None, ErrorKind | None]:
    """Return whether the text of a result says that the call failed, and how; None if it says nothing."""
    start = text[:_HEAD]
    if start.startswith("aborted"):
        return True, ErrorKind.USER_REJECTION
    if _FAILED.match(start) or _REJECTED.match(start):
        return True, _refusal(start)
    head, found, shown = start.partition("\nOutput:\n")
    code = _json_code(text)
    if code is None and found and (match := _CODE.search(head)):
        code = int(match[1])
    if code is None:
        return (True, ErrorKind.TIMEOUT) if _TIMED_OUT.match(start) else (None, None)
    if code and _TIMED_OUT.search(shown[:200] or text[:200]):
        return True, ErrorKind.TIMEOUT
    return (True, ErrorKind.EXIT_CODE) if code else (False, None)


def _refusal(start: str) -> ErrorKind:
    """Return whether the user, a rule of the user's, or the tool itself refused a call."""
    if any(words in start for words in _REFUSED):
        return ErrorKind.USER_REJECTION
    return ErrorKind.HOOK if any(words in start for words in _BLOCKED) else ErrorKind.TOOL_ERROR


def _json_code(text: str) -> int | None:
    """Return the exit code in a result that is a JSON object, or in a script whose output is one."""
    if text.startswith("Script completed\n"):
        text = text.partition("\nOutput:\n")[2].lstrip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    code = as_mapping(value.get("metadata", value)).get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None
