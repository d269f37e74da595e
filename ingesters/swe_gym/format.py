"""Rows of chat messages, as SWE-Gym has them, as a format of the registry."""

from collections.abc import Sequence
from typing import Any

from tracemill.ingesters.common.run_identity import FACT_COLUMNS
from tracemill.ingesters.format import (
    FormatInfo,
    PreviewColumns,
    Record,
    RowReader,
    SessionFormat,
    lazy_function,
)
from tracemill.ingesters.swe_gym.row_signs import LISTS, is_response_row, is_turn

_MAX_CHARS = 100_000
_ROW_KEYS = frozenset(("instance_id", "traj_id", "trajectory_id"))
_BARE_ROW = frozenset(("messages", "tools"))
_ROLES = frozenset(("system", "user", "assistant", "tool", "ai", "developer", "function"))
_LISTS = ("messages", "trajectory")
_SIDES = ("chosen", "rejected")


def _detect(record: Record) -> str | None:
    """Detect rows with `messages`, `trajectory` or `conversations`, or a request and its response."""
    if not _ROW_KEYS.isdisjoint(record) and any(name in record for name in LISTS):
        return "swe_gym"
    return "swe_gym" if _holds_chat(record) or _holds_turns(record) or is_response_row(record) else None


def _holds_chat(record: Record) -> bool:
    """Return whether `messages` is a conversation; of a table only the name of the column is known."""
    value = record.get("messages")
    if "response" in record or "prompt" in record:
        return False
    if value is None:
        return "messages" in record
    if isinstance(value, str):
        return value[:1] == "[" and '"role"' in value[:_MAX_CHARS]
    first = value[0] if isinstance(value, list) and value else None
    return record.keys() <= _BARE_ROW or _is_message(first)


def _holds_turns(record: Record) -> bool:
    """Return whether `conversations` is one, of turns of ShareGPT or of chat messages, and no comparison."""
    value = record.get("conversations")
    if any(side in record for side in _SIDES):
        return False
    if value is None:
        return "conversations" in record
    if isinstance(value, str):
        return value[:1] == "[" and any(key in value[:_MAX_CHARS] for key in ('"from"', '"role"'))
    first = value[0] if isinstance(value, list) and value else None
    return _is_message(first)


def _is_message(first: Any) -> bool:
    return isinstance(first, dict) and (first.get("role") in _ROLES or is_turn(first))


def _row_reader(dialect: str) -> RowReader:
    from tracemill.ingesters.swe_gym.rows import trace_of_gym_row

    return lambda row, origin, report, _: (trace_of_gym_row(row, origin, report),)


def _preview_columns(leaves: Sequence[str]) -> PreviewColumns:
    """Return the small columns and the roles of the messages.

    One agent message replaces the roles where the table keeps messages as one text, or where messages and
    answers do not correspond one to one.
    """
    roles = () if any(map(_is_call_column, leaves)) else tuple(leaf for leaf in leaves if _is_role(leaf))
    rest = {} if roles else {"messages": [{"role": "assistant"}]}
    return PreviewColumns((*filter(_is_small, leaves), *roles), rest, bool(roles))


def _is_role(leaf: str) -> bool:
    parts = leaf.split(".")
    return len(parts) == 4 and parts[0] in _LISTS and parts[3] == "role"


def _is_call_column(leaf: str) -> bool:
    """Return whether a column belongs to items of the Responses API, or to parts of a UIMessage."""
    parts = leaf.split(".")
    return parts[0] in _LISTS and len(parts) > 3 and parts[3] in ("call_id", "parts")


def _is_small(leaf: str) -> bool:
    column, _, rest = leaf.partition(".")
    if column == "test_result":
        return rest.rpartition(".")[2] == "resolved"
    return column in FACT_COLUMNS and not rest


FORMAT = SessionFormat(
    name="swe_gym",
    version=15,
    dialects=("swe_gym",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.swe_gym.ingest_rows:iter_traces"),
    row_reader=_row_reader,
    preview_columns=_preview_columns,
    kinds=lazy_function("tracemill.ingesters.swe_gym.vocabulary:kinds_of_row"),
    facts=FormatInfo(
        of="chat rows of SWE-Gym, nebius, SWE-smith, OpenAI, Anthropic, Vercel AI SDK, DataClaw, ShareGPT",
        recognised="messages, trajectory or conversations of chat messages or turns; input with output items",
        prompt="messages; system prompt and tools where a row has them",
        page="docs/formats/swe_gym.md",
        keys=frozenset(
            ("messages", "trajectory", "conversations", "tools", "system", "instance_id", "model", "resolved")
        ),
    ),
)
