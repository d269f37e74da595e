"""Where an exact text stands: in columns of tables, JSON and files, in every spelling JSON gives it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_NESTING = 4
"""How deep JSON stands in JSON: arguments in a raw answer in a reply in a ledger."""

_ROWS = 64
GONE = "<forgotten>"


@dataclass(frozen=True, slots=True)
class Needle:
    """An exact text with its spellings inside JSON strings."""

    spellings: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Needle":
        """The needle of a text."""
        found, latest = [text], [text]
        for _ in range(_NESTING):
            latest = [json.dumps(t, ensure_ascii=a)[1:-1] for t in latest for a in (False, True)]
            found += latest
        return cls(tuple(dict.fromkeys(found)))

    def within(self, text: str) -> bool:
        """Whether the text holds it."""
        return any(spelling in text for spelling in self.spellings)

    def within_bytes(self, data: bytes) -> bool:
        """Whether the bytes hold it in UTF-8."""
        return any(spelling.encode("utf-8", "surrogatepass") in data for spelling in self.spellings)

    def without(self, text: str) -> str:
        """The text with a mark in its place."""
        for spelling in sorted(self.spellings, key=len, reverse=True):
            text = text.replace(spelling, GONE)
        return text

    def in_table(self, table: pa.Table) -> bool:
        """Whether any string in any column holds it, however nested."""
        return any(self._in_array(chunk) for column in table.columns for chunk in column.chunks)

    def _in_array(self, array: pa.Array) -> bool:
        kind = array.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return any(_array_holds(array, spelling) for spelling in self.spellings)
        if pa.types.is_dictionary(kind):
            return self._in_array(array.dictionary)
        if pa.types.is_struct(kind) or pa.types.is_map(kind):
            parts = array.flatten() if pa.types.is_struct(kind) else [array.keys, array.items]
            return any(self._in_array(part) for part in parts)
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._in_array(array.flatten())
        return False


def _array_holds(strings: pa.Array, text: str) -> bool:
    found = pc.call_function("match_substring", [strings], pc.MatchSubstringOptions(text))
    return bool(pc.call_function("any", [found]).as_py())


def batches(path: Path) -> Iterator[pa.Table]:
    """A Parquet file in tables of some rows, so that none is large in memory."""
    for batch in pq.ParquetFile(path).iter_batches(batch_size=_ROWS):
        yield pa.Table.from_batches([batch])


def rows_with(needle: Needle, path: Path, ids: Callable[[pa.Table], list[str]]) -> Iterator[str]:
    """The id of each row of a Parquet file that holds the text."""
    for table in batches(path):
        if not needle.in_table(table):
            continue
        for row, found in enumerate(ids(table)):
            if needle.in_table(table.slice(row, 1)):
                yield found


def scrubbed(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """A JSON value with each string, and each key, put through `change(key, text)`."""
    if isinstance(value, str):
        return change(key, value)
    if isinstance(value, list):
        return [scrubbed(item, change, key) for item in value]
    if isinstance(value, dict):
        return {change("", name): scrubbed(item, change, name) for name, item in value.items()}
    return value
