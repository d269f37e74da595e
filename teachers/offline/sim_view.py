"""Extract what a simulated teacher needs of a request: files, last command, last fault, tests."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.teachers.offline.sim_tools import first_sim_tools_string

_RECENT = 8
_SCANNED_CHARS = 4_000
_FILE = re.compile(
    r"(?<![\w/.-])/?(?:[\w.-]+/)*[\w-]+\.(?:py|pyi|js|ts|tsx|go|rs|java|c|h|cpp|md|toml|json|ya?ml|sh|cfg|txt)\b"
)
_TEST = re.compile(r"(?:^|/)(?:tests?/|test_)|_test\.")
_FAULT = re.compile(
    r"traceback \(most recent|\berror\b|exception|no such file|not found|command failed|exit code:? [1-9]"
    r"|\bfailed\b|permission denied|does not exist|no match",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file|not found|does not exist|cannot find", re.IGNORECASE)
_SYMBOL = re.compile(r"\b(?:def|class|function|func|fn)\s+(\w{3,})|\b(\w+Error)\b")


@dataclass(frozen=True, slots=True)
class RequestView:
    """A summary of a request; `files` and `tests` are latest first.

    `fault` is "" if the last results show none, else `missing`, `edit`, `test` or `other`.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    command: str
    symbol: str
    fault: str
    turns: int


def hash_sim_text(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a hash of the messages: role, text and calls, each with its length."""
    state = hashlib.blake2b(digest_size=16)
    for message in messages:
        parts = [str(message.get("role", "")), sim_view_text(message)]
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            parts += [str(function.get("name", "")), str(function.get("arguments", ""))]
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(4, "big") + data)
    return state.digest()


def sim_view_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message in the OpenAI shape; content parts are joined by newlines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def _seen_text(message: Mapping[str, Any]) -> str:
    calls = [
        str((call.get("function") or {}).get("arguments", "")) for call in message.get("tool_calls") or ()
    ]
    return _ends("\n".join([*calls, sim_view_text(message)]))


def _ends(text: str) -> str:
    """Return a long text's beginning and end, where errors are."""
    return text if len(text) <= _SCANNED_CHARS else text[: _SCANNED_CHARS // 2] + text[-_SCANNED_CHARS // 2 :]


def _fault(last_call: str, results: str) -> str:
    if not _FAULT.search(results):
        return ""
    if _MISSING.search(results):
        return "missing"
    if "old_str" in last_call or "replace" in last_call:
        return "edit"
    return "test" if "test" in last_call else "other"


def summarise_request(messages: Sequence[Mapping[str, Any]]) -> RequestView:
    """Summarise the first user message and the last few messages; deterministic."""
    recent = [m for m in messages[-_RECENT:] if m.get("role") != "system"]
    first = next((m for m in messages if m.get("role") == "user"), None)
    texts = [_seen_text(m) for m in reversed(recent)] + ([_seen_text(first)] if first else [])
    mentioned = tuple(dict.fromkeys(match for text in texts for match in reversed(_FILE.findall(text))))
    caller = next((m for m in reversed(recent) if m.get("tool_calls")), None)
    function = (caller["tool_calls"][-1].get("function") or {}) if caller else {}
    last_call = f"{function.get('name', '')} {function.get('arguments', '')}"
    at_end = "\n".join(_ends(sim_view_text(m)) for m in recent[-3:] if m.get("role") == "tool")
    symbols = [a or b for text in texts for a, b in _SYMBOL.findall(text)]
    return RequestView(
        files=tuple(f for f in mentioned if not _TEST.search(f))[:6],
        tests=tuple(f for f in mentioned if _TEST.search(f))[:3],
        command=first_sim_tools_string(str(function.get("arguments", "")), ("command", "cmd")),
        symbol=symbols[0] if symbols else "",
        fault=_fault(last_call, at_end),
        turns=len(messages),
    )
