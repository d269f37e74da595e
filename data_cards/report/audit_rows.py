"""Read pairs of a release as flat texts, for a terminal."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tracemill.data_cards.report.example_rows import (
    PAIR_ROW_COLUMNS,
    Row,
    pair_fields,
    read_messages,
    read_pair_votes,
)
from tracemill.data_cards.report.figures import list_figure_files
from tracemill.records.message import render_arguments
from tracemill.records.placeholders import LONGEST, head_with_whole_placeholders
from tracemill.records.printable import printable_lines

_CONTEXT, _SIDE = 900, 1400
"""Characters of each message of the context, and of each side."""
_TAIL_MESSAGES = 3


def find_audit_rows(folder: Path, pair_ids: Sequence[str]) -> dict[str, Row]:
    """Return pairs of a release by id: `pair_fields`, with `context`, `chosen` and `rejected` as texts."""
    votes, wanted, rows = read_pair_votes(folder), set(pair_ids), dict[str, Row]()
    for path in list_figure_files(folder, "dpo"):
        with pq.ParquetFile(path) as table:
            for at in range(table.num_row_groups):
                names = table.read_row_group(at, columns=["pair_id"])["pair_id"].to_pylist()
                indices = [row for row, name in enumerate(names) if name in wanted]
                if indices:
                    found = _group_rows(table, at, indices, votes)
                    rows |= {row["id"]: row for row in found}
    return rows


def _group_rows(
    table: pq.ParquetFile, at: int, indices: Sequence[int], votes: Mapping[str, list[list[Any]]]
) -> list[Row]:
    group = table.read_row_group(at, columns=[*PAIR_ROW_COLUMNS, "prompt"])
    prompts, rows = group["prompt"].combine_chunks(), list[Row]()
    for index, row in zip(indices, group.select(PAIR_ROW_COLUMNS).take(indices).to_pylist(), strict=True):
        start, end = prompts.offsets[index].as_py(), prompts.offsets[index + 1].as_py()
        tail = read_messages(prompts, max(start, end - _TAIL_MESSAGES), end)
        texts = {
            "context": "\n\n".join(f"[{each['role']}] {_turn([each], _CONTEXT)}" for each in tail),
            "chosen": _turn(json.loads(row["chosen_wire"]), _SIDE),
            "rejected": _turn(json.loads(row["rejected_wire"]), _SIDE),
        }
        rows.append(pair_fields(row, votes.get(row["pair_id"], [])) | texts)
    return rows


def _turn(messages: Sequence[Mapping[str, Any]], most: int) -> str:
    """Render a turn as text, with control characters escaped, cut a little above `most` characters."""
    parts: list[str] = []
    for message in messages:
        if (message.get("content") or "").strip():
            parts.append(message["content"].strip())
        for call in message.get("tool_calls") or ():
            function = (json.loads(call) if isinstance(call, str) else call)["function"]
            arguments = function["arguments"]
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            parts.append(f"{function['name']} {render_arguments(text)}".strip())
    text = "\n".join(parts)
    most += LONGEST
    return printable_lines(head_with_whole_placeholders(text, most), most)
