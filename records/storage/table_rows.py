"""Convert decisions, replies, votes and pairs to tables and back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.pair import DPOPair, StepVotes, Vote
from tracemill.records.reply import AskDecision, TeacherReply, TeacherUsage
from tracemill.records.storage.table_schemas import DECISIONS, PAIR_TEXT_FIELDS, PAIRS, REPLIES, VOTES
from tracemill.records.storage.trace_rows import calls_from_rows, message_from_row

_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
Resolve = Callable[[str], tuple[Sequence[Message], tuple[ToolSpec, ...]]]


def decisions_to_table(decisions: Iterable[AskDecision]) -> pa.Table:
    """Return decisions as a table of schema `DECISIONS`."""
    return pa.Table.from_pylist([asdict(d) for d in decisions], schema=DECISIONS)


def decisions_from_table(table: pa.Table) -> list[AskDecision]:
    """Return the decisions of a table (inverse of `decisions_to_table`)."""
    return [AskDecision(**{**row, "features": tuple(row["features"])}) for row in table.to_pylist()]


def reply_to_row(reply: TeacherReply) -> dict[str, Any]:
    """Return a reply as a row of `REPLIES`; a failed call has no text and no calls."""
    row: dict[str, Any] = {
        name: getattr(reply, name)
        for name in REPLIES.names
        if name not in ("text", "tool_calls") and name not in _USAGE
    }
    row |= {name: getattr(reply.usage, name) for name in _USAGE}
    row["text"] = reply.action.text if reply.action else None
    row["tool_calls"] = [asdict(call) for call in reply.action.tool_calls] if reply.action else None
    return row


def reply_from_row(row: dict[str, Any]) -> TeacherReply:
    """Return the reply of a row (inverse of `reply_to_row`)."""
    rest = {k: v for k, v in row.items() if k not in _USAGE and k not in ("text", "tool_calls")}
    action = None
    if row["text"] is not None:
        action = Action(row["text"], calls_from_rows(row["tool_calls"]))
    return TeacherReply(**rest, action=action, usage=TeacherUsage(*(row[name] for name in _USAGE)))


def replies_to_table(replies: Iterable[TeacherReply]) -> pa.Table:
    """Return replies as a table of schema `REPLIES`."""
    return pa.Table.from_pylist([reply_to_row(r) for r in replies], schema=REPLIES)


def replies_from_table(table: pa.Table) -> list[TeacherReply]:
    """Return the replies of a table (inverse of `replies_to_table`)."""
    return [reply_from_row(row) for row in table.to_pylist()]


def votes_to_table(steps: Iterable[StepVotes]) -> pa.Table:
    """Return votes by step as a table of schema `VOTES`."""
    return pa.Table.from_pylist([asdict(step) for step in steps], schema=VOTES)


def votes_from_table(table: pa.Table) -> list[StepVotes]:
    """Return the votes of a table (inverse of `votes_to_table`)."""
    return [
        StepVotes(
            row["step_id"],
            row["verdict"],
            tuple(Vote(**vote) for vote in row["votes"]),
            row["simulated"],
        )
        for row in table.to_pylist()
    ]


def pairs_to_table(pairs: Iterable[DPOPair]) -> pa.Table:
    """Return pairs as a table of schema `PAIRS`, without the states, which the traces hold."""
    rows = []
    for pair in pairs:
        row: dict[str, Any] = {name: getattr(pair, name) for name in PAIR_TEXT_FIELDS}
        row |= {
            "chosen": [asdict(m) for m in pair.chosen],
            "rejected": [asdict(m) for m in pair.rejected],
            "n_teachers_agreeing": pair.n_teachers_agreeing,
            "votes": [asdict(vote) for vote in pair.votes],
            "families": list(pair.families),
            "cost_usd": pair.cost_usd,
            "simulated": pair.simulated,
            "weight": pair.weight,
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=PAIRS)


def pairs_from_table(table: pa.Table, resolve: Resolve) -> list[DPOPair]:
    """Return the pairs of a table; `resolve` returns messages and tools shown at a step."""
    pairs = []
    for row in table.to_pylist():
        state_messages, tools = resolve(row["step_id"])
        row["chosen"] = tuple(message_from_row(m) for m in row["chosen"])
        row["rejected"] = tuple(message_from_row(m) for m in row["rejected"])
        row["votes"] = tuple(Vote(**vote) for vote in row["votes"])
        row["families"] = tuple(row["families"])
        pairs.append(DPOPair(**row, state_messages=state_messages, tools=tools))
    return pairs
