"""Select the pairs that a report shows, cut so that the page stays small.

Every pair has a short text of each side. Evenly spaced pairs have a long one while there is room.
`ExampleRows.statement` says what is left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.report.figures import list_figure_files, read_figure_rows
from tracemill.records.message import render_arguments
from tracemill.records.placeholders import LONGEST, head_with_whole_placeholders, tail_with_whole_placeholders
from tracemill.records.printable import printable, printable_lines

MOST_PAIRS = 5000
ROOM_BYTES = 2_700_000
"""Bytes of JSON that all pairs may take together."""
LONG = (900, 1400)
"""Characters of the context's tail and of each side, of a pair with long texts."""
SHORTEST = (60, 70)
_LENGTHS = (LONG, (500, 700), (280, 360), (160, 200), (90, 110), SHORTEST)
_LINE = 160
"""Characters of a name or reason."""
_TAIL_MESSAGES = 3
_GROUPS = 48
"""Most row groups that are read: a release may hold gigabytes of prompts."""
_COLUMNS_TEXT = """pair_id label_source verified chosen_operation rejected_operation student_model source
    repository instance_id evidence simulated cost_usd chosen_wire rejected_wire"""
_COLUMNS = tuple(_COLUMNS_TEXT.split())
_VOTE_COLUMNS = ("pair_id", "teacher", "counted", "agrees", "reason", "operation")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Rows for the page, and a sentence on what they leave out."""

    rows: list[Row]
    statement: str


def read_example_rows(folder: Path, manifest: Manifest, room_bytes: int = ROOM_BYTES) -> ExampleRows:
    """Return the pairs of a release for the page, in the order of the release."""
    full = list(_full_rows(folder, manifest, _votes(folder)))
    short, rows, size = SHORTEST, [], 0
    for short in _LENGTHS:
        rows = [_cut(row, *short) for row in full]
        if (size := sum(map(_size, rows))) <= room_bytes:
            break
    size -= _drop_last_rows(rows, size - room_bytes)
    long = len(rows) if short == LONG else _lengthen(full, rows, room_bytes - size)
    return ExampleRows(rows, _statement(manifest.rows, rows, long, short))


def _drop_last_rows(rows: list[Row], excess: int) -> int:
    """Drop rows from the end until `excess` bytes are gone; return the bytes."""
    dropped = 0
    while rows and dropped < excess:
        dropped += _size(rows.pop())
    return dropped


def _lengthen(full: Sequence[Row], rows: list[Row], room_bytes: int) -> int:
    """Replace evenly spaced rows by long ones while there is room; return their number."""
    mean = max(1, sum(_size(_cut(row, *LONG)) for row in full[::97]) // max(1, len(full[::97])))
    step = max(1, len(rows) * mean // max(1, room_bytes))
    done = 0
    for at in range(0, len(rows), step):
        longer = _cut(full[at], *LONG)
        room_bytes -= _size(longer) - _size(rows[at])
        if room_bytes < 0:
            break
        rows[at] = longer
        done += 1
    return done


def _statement(of: int, rows: Sequence[Row], long: int, short: tuple[int, int]) -> str:
    shown = len(rows)
    statement = f"All {of:,} pairs" if shown == of else f"{shown:,} of {of:,} pairs, evenly spread,"
    if not any(row["cut"] for row in rows):
        statement += ", their sides in full, with the end of what was shown before"
    elif long == shown:
        statement += f" with up to {LONG[1]:,} characters of a side and {LONG[0]:,} of what was shown before"
    else:
        statement += (
            f": {long:,} with up to {LONG[1]:,} characters of a side, the others with {short[1]:,}"
            f" of a side and {short[0]:,} of what was shown before"
        )
    return f"{statement}. Everything is in the tables `dpo` and `votes`."


def _size(row: Row) -> int:
    return len(embed_example_json(row).encode()) + 1


def embed_example_json(value: object) -> str:
    """Encode a value as JSON that is safe in a script element.

    It has no `<`, so that no text can end the element or begin a comment
    (https://html.spec.whatwg.org/multipage/scripting.html, restrictions).
    """
    return orjson.dumps(value).decode().replace("<", "\\u003c")


def _full_rows(folder: Path, manifest: Manifest, votes: Mapping[str, list[list[Any]]]) -> Iterator[Row]:
    """Yield at most `MOST_PAIRS` rows with long texts, from evenly spaced row groups."""
    share = 1.0
    paths = list_figure_files(folder, "dpo")
    groups = [(path, at) for path in paths for at in range(pq.read_metadata(path).num_row_groups)]
    if manifest.rows > MOST_PAIRS:
        groups = groups[:: -(-len(groups) // _GROUPS)]
        share = min(1.0, MOST_PAIRS / sum(pq.read_metadata(p).row_group(at).num_rows for p, at in groups))
    for path, at in groups:
        with pq.ParquetFile(path) as table:
            rows = table.metadata.row_group(at).num_rows
            indices = sorted({int(k / share) for k in range(round(rows * share))} - {rows})
            yield from _group_rows(table, at, indices, votes)


def find_example_pairs(folder: Path, pair_ids: Sequence[str]) -> dict[str, Row]:
    """Return pairs of a release with long texts, by id."""
    votes, wanted, rows = _votes(folder), set(pair_ids), dict[str, Row]()
    for path in list_figure_files(folder, "dpo"):
        with pq.ParquetFile(path) as table:
            for at in range(table.num_row_groups):
                names = table.read_row_group(at, columns=["pair_id"])["pair_id"].to_pylist()
                indices = [row for row, name in enumerate(names) if name in wanted]
                if indices:
                    rows |= {row["id"]: row for row in _group_rows(table, at, indices, votes)}
    return rows


def _group_rows(
    table: pq.ParquetFile, at: int, indices: Sequence[int], votes: Mapping[str, list[list[Any]]]
) -> Iterator[Row]:
    group = table.read_row_group(at, columns=[*_COLUMNS, "prompt"])
    chosen = group.select(_COLUMNS).take(indices)
    tails = _tails(group["prompt"].combine_chunks(), indices)
    for row, tail in zip(chosen.to_pylist(), tails, strict=True):
        yield _full_row(row, tail, votes.get(row["pair_id"], []))


def _tails(prompts: pa.ListArray, indices: Sequence[int]) -> Iterator[list[Row]]:
    """Yield the last messages of prompts, without building Python objects of the whole prompts."""
    offsets, messages = prompts.offsets, prompts.values
    for at in indices:
        start, end = offsets[at].as_py(), offsets[at + 1].as_py()
        first = max(start, end - _TAIL_MESSAGES)
        yield messages.slice(first, end - first).to_pylist()


def _full_row(row: Row, tail: Sequence[Row], votes: list[list[Any]]) -> Row:
    context = "\n\n".join(f"[{message['role']}] {_turn([message], LONG[0])}" for message in tail)
    return {
        "id": row["pair_id"],
        "s": row["label_source"],
        "v": row["verified"],
        "c": row["chosen_operation"],
        "r": row["rejected_operation"],
        "m": _line(row["student_model"]),
        "p": _line(row["repository"] or row["instance_id"] or row["source"]),
        "why": _line(row["evidence"]),
        "usd": round(row["cost_usd"], 6),
        "sim": row["simulated"],
        "votes": votes,
        "ctx": context,
        "ch": _turn(json.loads(row["chosen_wire"]), LONG[1]),
        "rj": _turn(json.loads(row["rejected_wire"]), LONG[1]),
    }


def _line(text: str | None) -> str:
    line = " ".join((text or "unknown").split())
    return printable(
        line if len(line) <= _LINE else f"{head_with_whole_placeholders(line, _LINE - 3)}...", _LINE
    )


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


def _cut(row: Row, context: int, side: int) -> Row:
    """Return the row with its texts cut; of the context the end is kept.

    `cut` names the sides that were cut, by letter.
    """
    cut = ("c" if len(row["ch"]) > side else "") + ("r" if len(row["rj"]) > side else "")
    tail = (
        row["ctx"]
        if len(row["ctx"]) <= context
        else "\u2026 " + tail_with_whole_placeholders(row["ctx"], context)
    )
    return row | {
        "ctx": tail,
        "ch": head_with_whole_placeholders(row["ch"], side),
        "rj": head_with_whole_placeholders(row["rj"], side),
        "cut": cut,
    }


def _votes(folder: Path) -> dict[str, list[list[Any]]]:
    """Return votes by pair: teacher, `+` for, `-` against or why it does not count, and operation."""
    votes: dict[str, list[list[Any]]] = {}
    for row in read_figure_rows(folder, "votes", _VOTE_COLUMNS):
        if row["pair_id"] is not None:
            mark = ("+" if row["agrees"] else "-") if row["counted"] else _line(row["reason"])
            votes.setdefault(row["pair_id"], []).append([_line(row["teacher"]), mark, row["operation"]])
    return votes
