"""Exports of opencode sessions as a format of the registry."""

import re

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function

PRINTED = re.compile(rb"\s*Exporting session: ses_\w+\r?\n")
"""The line that opencode prints to the terminal; `2>&1` writes it before the export."""
_HEAD = re.compile(rb'\{\s*"info":\s*\{\s*"id":\s*"ses_')


def _detect(record: Record) -> str | None:
    """Detect an export by its `info`, and messages that each have an `info` and `parts`."""
    info, messages = record.get("info"), record.get("messages")
    if not isinstance(info, dict) or not isinstance(info.get("id"), str) or not isinstance(messages, list):
        return None
    first = messages[0] if messages else {"info": None, "parts": None}
    return "opencode" if isinstance(first, dict) and {"info", "parts"} <= first.keys() else None


def _detect_head(head: bytes) -> str | None:
    return "opencode" if _HEAD.match(head) else None


def _detect_text(head: bytes) -> str | None:
    printed = PRINTED.match(head.removeprefix(b"\xef\xbb\xbf"))
    return _detect_head(head[printed.end() :].lstrip()) if printed else None


FORMAT = SessionFormat(
    name="opencode",
    version=2,
    dialects=("opencode",),
    detect=_detect,
    detect_head=_detect_head,
    detect_text=_detect_text,
    read=lazy_function("tracemill.ingesters.opencode.ingest_session:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.opencode.vocabulary:kinds_of_export"),
    facts=FormatInfo(
        of="opencode: a session as `opencode export` writes it, one object",
        recognised="an object with info and messages, each with info and parts",
        prompt="messages; system prompt in versions of 2025; tools are not recorded",
        page="docs/formats/opencode.md",
        keys=frozenset(("info", "messages", "todos", "parts")),
    ),
)
