"""Select the pairs that a report shows, cut so that the page stays small.

Sides and contexts are messages. A message that several pairs share is stored once, and a context is ranges of
stored messages: its head, up to the task, and its last messages. Lengths are the largest of `LENGTHS` that
fit. Every cut is marked where it is, and `ExampleRows.statement` sums up what is left out.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.report.figures import list_figure_files, read_figure_rows
from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.records.message import read_arguments
from tracemill.records.packed_json import pack_json
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders
from tracemill.records.printable import printable, printable_lines

MOST_PAIRS = 5000
ROOM_CHARS = 2_700_000
"""Characters that the packed pairs may take together."""
_TEXTS = ("context", "chosen", "rejected")
_LINE = 160
"""Characters of a name or reason."""
_ONE_LINE = 100
"""Characters of a value of JSON that stands on one line."""
_HEAD_MESSAGES = 3
"""The first messages, in which the task is looked for."""
_GROUPS = 48
"""Most row groups that are read: a release may hold gigabytes of prompts."""
_COLUMNS_TEXT = """pair_id trace_id label_source verified chosen_operation rejected_operation student_model
    source repository instance_id evidence simulated cost_usd chosen_wire rejected_wire"""
PAIR_ROW_COLUMNS = tuple(_COLUMNS_TEXT.split())
"""Columns of `dpo` that a shown pair is made of."""
_VOTE_COLUMNS = ("pair_id", "teacher", "counted", "agrees", "reason", "operation")
Row = dict[str, Any]
Votes = Mapping[str, list[list[Any]]]


class ExampleLengths(NamedTuple):
    """The limits of a pair on the page: last messages of the context, characters of these and of sides."""

    messages: int
    context: int
    side: int


LENGTHS = (
    ExampleLengths(400, 6000, 8000),
    ExampleLengths(120, 3000, 6000),
    ExampleLengths(40, 1500, 4000),
    ExampleLengths(24, 900, 3000),
    ExampleLengths(16, 600, 2200),
    ExampleLengths(10, 400, 1600),
    ExampleLengths(8, 280, 1200),
    ExampleLengths(6, 200, 1000),
    ExampleLengths(5, 160, 800),
    ExampleLengths(4, 120, 600),
    ExampleLengths(4, 100, 450),
    ExampleLengths(3, 80, 330),
    ExampleLengths(2, 60, 240),
    ExampleLengths(2, 60, 120),
)
_MANY = (200, 1500)
"""Numbers of pairs above which the first, and the second, lengths are not tried."""


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Pairs for the page, packed, and a sentence on what they leave out."""

    content: Row
    packed: "PackedPairs"
    statement: str


class PackedPairs(NamedTuple):
    """Packed `rows` without their texts, which a page reads first, and `messages` with the texts of rows."""

    rows: str
    texts: str

    @classmethod
    def of(cls, content: Row) -> "PackedPairs":
        """Pack the content that the page holds for the pairs."""
        rows = [{key: value for key, value in row.items() if key not in _TEXTS} for row in content["rows"]]
        texts = [[row[key] for key in _TEXTS] for row in content["rows"]]
        return cls(pack_json({"rows": rows}), pack_json({"messages": content["messages"], "texts": texts}))

    @property
    def chars(self) -> int:
        """Return the number of characters of both."""
        return len(self.rows) + len(self.texts)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, or its head and tail with the number of characters between them."""

    head: str
    tail: str = ""
    left_out: int = 0

    @property
    def chars(self) -> int:
        return len(self.head) + len(self.tail) + self.left_out

    @classmethod
    def of(cls, text: str, most: int) -> "_Text":
        """Return a text with its control characters escaped."""
        return cls(text).cut(most).escaped()

    def cut(self, most: int) -> "_Text":
        """Return at most `most` characters of it, two thirds of them from the start."""
        if len(self.head) + len(self.tail) <= most:
            return self
        whole = self.head if not self.left_out else ""
        head = head_with_whole_placeholders(self.head, most - most // 3)
        tail = tail_with_whole_placeholders(whole or self.tail, most // 3)
        lost = len(self.head) + len(self.tail) - len(head) - len(tail)
        return _Text(head, tail, self.left_out + lost)

    def escaped(self) -> "_Text":
        return _Text(_escaped(self.head), _escaped(self.tail), self.left_out)

    def shown(self, most: int) -> str:
        """Return the text, with a mark where something is left out."""
        cut = self.cut(most)
        mark = f"\n[... {cut.left_out:,} characters left out ...]\n" if cut.left_out else ""
        return f"{cut.head}{mark}{cut.tail}"


def _escaped(text: str) -> str:
    return printable_lines(text, 10 * len(text) + 10)


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: tuple[tuple[str, _Text], ...] | _Text

    def shown(self, most: int) -> list[Any]:
        if isinstance(self.arguments, _Text):
            return [self.name, self.arguments.shown(most)]
        return [self.name, [[key, text.shown(most)] for key, text in self.arguments]]


@dataclass(frozen=True, slots=True)
class _Message:
    role: str
    text: _Text
    calls: tuple[_Call, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, message: Mapping[str, Any], most: int) -> "_Message":
        """Return a message of a release, as a table or a wire column holds it."""
        calls = tuple(_call(call, most) for call in message.get("tool_calls") or ())
        text = _Text.of((message.get("content") or "").strip("\n"), most)
        return cls(message["role"], text, calls, _line(message.get("name") or ""))

    def shown(self, most: int) -> Row:
        row: Row = {"role": self.role}
        if text := self.text.shown(most):
            row["text"] = text
        if self.calls:
            row["calls"] = [call.shown(most) for call in self.calls]
        if self.name:
            row["name"] = self.name
        return row


def _call(call: Any, most: int) -> _Call:
    function = (json.loads(call) if isinstance(call, str) else call)["function"]
    arguments = function["arguments"]
    values = read_arguments(arguments) if isinstance(arguments, str) else arguments
    name = _line(function["name"])
    if not isinstance(values, dict):
        return _Call(name, _Text.of(arguments, most))
    texts = ((key, _value_text(value)) for key, value in values.items())
    return _Call(name, tuple((_line(key), _Text.of(text, most)) for key, text in texts))


def _value_text(value: Any) -> str:
    """Return a value of JSON as text: on one line where it is short."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _ONE_LINE else json.dumps(value, ensure_ascii=False, indent=2)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pair to be shown: its fields, its sides, and places of its context's messages in the pool."""

    fields: Row
    chosen: tuple[_Message, ...]
    rejected: tuple[_Message, ...]
    head: tuple[int, ...]
    tail: tuple[int, ...]
    before: int
    """Messages of the whole context."""


class _Pool:
    """The distinct messages of the page, and their indices."""

    def __init__(self) -> None:
        self.messages: list[_Message] = []
        self._places: dict[Any, int] = {}

    def add(self, message: Row, most: int) -> int:
        """Add a message if it is new, and return its index."""
        calls = tuple(str(call) for call in message["tool_calls"] or ())
        key = (message["role"], message["content"], message["name"], calls)
        if (place := self._places.get(key)) is None:
            place = self._places[key] = len(self.messages)
            self.messages.append(_Message.of(message, most))
        return place


def read_example_rows(folder: Path, manifest: Manifest, room_chars: int = ROOM_CHARS) -> ExampleRows:
    """Return the pairs of a release for the page, in the order of the release."""
    pool = _Pool()
    possible = LENGTHS[sum(min(manifest.rows, MOST_PAIRS) > many for many in _MANY) :]
    pairs = list(_read_pairs(folder, manifest, pool, possible[0]))

    def fits(lengths: ExampleLengths) -> bool:
        return PackedPairs.of(_content(pool, pairs, lengths)).chars <= room_chars

    lengths = possible[bisect_left(possible[:-1], True, key=fits)]
    content = _content(pool, pairs, lengths)
    packed = PackedPairs.of(content)
    while packed.chars > room_chars and pairs:
        fewer = min(len(pairs) - 1, int(len(pairs) * room_chars / packed.chars * 0.97))
        pairs = [pairs[at * len(pairs) // fewer] for at in range(fewer)]
        content = _content(pool, pairs, lengths)
        packed = PackedPairs.of(content)
    tables = [name for name in ("dpo", "votes") if name in manifest.tables]
    return ExampleRows(content, packed, _statement(manifest.rows, pairs, lengths, pool, tables))


def _statement(
    of: int, pairs: Sequence[_Pair], lengths: ExampleLengths, pool: _Pool, tables: Sequence[str]
) -> str:
    shown = len(pairs)
    statement = f"All {of:,} pairs" if shown == of else f"{shown:,} of {of:,} pairs, evenly spread"
    cuts = []
    if any(pair.before > len(pair.head) + min(len(pair.tail), lengths.messages) for pair in pairs):
        cuts.append(f"of a context the task and the last {lengths.messages} messages")
    shown_of = (pool.messages[at] for pair in pairs for at in (*pair.head, *pair.tail[-lengths.messages :]))
    if any(text.chars > lengths.context for text in _texts(shown_of)):
        cuts.append(f"of a message {lengths.context:,} characters")
    sides = (message for pair in pairs for side in (pair.chosen, pair.rejected) for message in side)
    if any(text.chars > lengths.side for text in _texts(sides)):
        cuts.append(f"of a text of a side {lengths.side:,}")
    if cuts:
        statement += f", shown in part: {', '.join(cuts)}; each cut is marked"
    named = " and ".join(f"`{name}`" for name in tables)
    return f"{statement}. Everything is in the table{'s' * (len(tables) > 1)} {named}."


def _texts(messages: Iterator[_Message]) -> Iterator[_Text]:
    for message in messages:
        yield message.text
        for call in message.calls:
            if isinstance(call.arguments, _Text):
                yield call.arguments
            else:
                yield from (text for _, text in call.arguments)


def _content(pool: _Pool, pairs: Sequence[_Pair], lengths: ExampleLengths) -> Row:
    """Return the content that the page holds for the pairs: `messages`, and `rows` with ranges of them."""
    places: dict[int, int] = {}
    rows = [_row(pair, lengths, places) for pair in pairs]
    messages = [pool.messages[old].shown(lengths.context) for old in places]
    return {"messages": messages, "rows": rows}


def _row(pair: _Pair, lengths: ExampleLengths, places: dict[int, int]) -> Row:
    tail = pair.tail[max(0, len(pair.tail) - lengths.messages) :]
    ranges: list[list[int]] = []
    for part in (pair.head, tail):
        for old in part:
            at = places.setdefault(old, len(places))
            if ranges and ranges[-1][0] >= 0 and sum(ranges[-1]) == at:
                ranges[-1][1] += 1
            else:
                ranges.append([at, 1])
        if part is pair.head and (missing := pair.before - len(pair.head) - len(tail)):
            ranges.append([-1, missing])
    return pair.fields | {
        "context": ranges,
        "chosen": [message.shown(lengths.side) for message in pair.chosen],
        "rejected": [message.shown(lengths.side) for message in pair.rejected],
    }


def _read_pairs(folder: Path, manifest: Manifest, pool: _Pool, lengths: ExampleLengths) -> Iterator[_Pair]:
    """Yield at most `MOST_PAIRS` pairs, from evenly spaced row groups."""
    share, votes = 1.0, read_pair_votes(folder)
    paths = list_figure_files(folder, "dpo")
    groups = [(path, at) for path in paths for at in range(pq.read_metadata(path).num_row_groups)]
    if manifest.rows > MOST_PAIRS:
        groups = groups[:: -(-len(groups) // _GROUPS)]
        share = min(1.0, MOST_PAIRS / sum(pq.read_metadata(p).row_group(at).num_rows for p, at in groups))
    for path, at in groups:
        with pq.ParquetFile(path) as table:
            rows = table.metadata.row_group(at).num_rows
            indices = sorted({int(k / share) for k in range(round(rows * share))} - {rows})
            group = table.read_row_group(at, columns=[*PAIR_ROW_COLUMNS, "prompt"])
        columns = group.select(PAIR_ROW_COLUMNS).take(indices).to_pylist()
        prompts = group["prompt"].combine_chunks()
        for index, row in zip(indices, columns, strict=True):
            yield _pair(row, prompts, index, pool, lengths, votes.get(row["pair_id"], []))


def _pair(
    row: Row, prompts: pa.ListArray, index: int, pool: _Pool, lengths: ExampleLengths, votes: list[list[Any]]
) -> _Pair:
    start, end = prompts.offsets[index].as_py(), prompts.offsets[index + 1].as_py()
    first = read_messages(prompts, start, min(end, start + _HEAD_MESSAGES))
    task = next((at for at, message in enumerate(first) if message["role"] == "user"), 0)
    head = first[: task + 1]
    begin = max(start + len(head), end - lengths.messages)
    tail = read_messages(prompts, begin, end)
    return _Pair(
        pair_fields(row, votes),
        _side(row["chosen_wire"], lengths.side),
        _side(row["rejected_wire"], lengths.side),
        tuple(pool.add(message, lengths.context) for message in head),
        tuple(pool.add(message, lengths.context) for message in tail),
        end - start,
    )


def read_messages(prompts: pa.ListArray, start: int, end: int) -> list[Row]:
    """Return some messages of prompts, without building Python objects of the others."""
    return prompts.values.slice(start, end - start).to_pylist()


def _side(wire: str, most: int) -> tuple[_Message, ...]:
    return tuple(_Message.of(message, most) for message in json.loads(wire))


def pair_fields(row: Row, votes: list[list[Any]]) -> Row:
    """Return the fields of a pair that the page shows beside its texts."""
    marks = [mark for _, mark, _ in votes]
    counted = marks.count("+") + marks.count("-")
    decides = 2 if row["chosen_operation"] in DECIDING else int(row["rejected_operation"] in DECIDING)
    return {
        "id": row["pair_id"],
        "trace": _line(row["trace_id"]),
        "source": row["label_source"],
        "verified": _line(row["verified"]),
        "chose": _line(row["chosen_operation"]),
        "did": _line(row["rejected_operation"]),
        "decides": decides,
        "agent": _line(row["student_model"] or "unknown"),
        "place": _line(row["repository"] or row["instance_id"] or row["source"] or "unknown"),
        "why": _line(row["evidence"] or ""),
        "usd": round(row["cost_usd"], 6),
        "simulated": row["simulated"],
        "agreement": f"{marks.count('+')} of {counted} votes" if counted else "no votes",
        "votes": votes,
    }


def _line(text: str) -> str:
    line = " ".join(text.split())
    return printable(
        line if len(line) <= _LINE else f"{head_with_whole_placeholders(line, _LINE - 3)}...", _LINE
    )


def read_pair_votes(folder: Path) -> dict[str, list[list[Any]]]:
    """Return votes by pair: teacher, `+` for, `-` against or a reason to ignore it, and operation."""
    votes: dict[str, list[list[Any]]] = {}
    for row in read_figure_rows(folder, "votes", _VOTE_COLUMNS):
        if row["pair_id"] is not None:
            mark = ("+" if row["agrees"] else "-") if row["counted"] else _line(row["reason"] or "unknown")
            votes.setdefault(row["pair_id"], []).append(
                [_line(row["teacher"]), mark, _line(row["operation"])]
            )
    return votes
