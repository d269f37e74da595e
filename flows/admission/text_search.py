"""Find a text in columns of tables, JSON and files, and the placeholders that stand for it.

It is found in every spelling JSON gives it, whatever its case and Unicode normal form.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders, hash_with_placeholder_key

_NESTING = 4
"""How deep JSON stands in JSON: arguments in a raw answer in a reply in a ledger."""

_ROWS = 64
GONE = "<forgotten>"
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_DIGITS = re.compile(r"[0-9a-f]{8}(?=>?$)")


def fold_searched_text(text: str) -> str:
    """Return the text for comparison: case-folded, in the normal form NFC."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def unescape_searched_text(text: str) -> str:
    r"""Return the text with JSON escapes such as `\u00e4` decoded, at any depth."""
    if "\\u" not in text:
        return text
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class TextNeedle:
    """A text to look for: its folded spellings inside JSON strings."""

    spellings: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "TextNeedle":
        """Build the search for a text."""
        found = [text]
        for _ in range(_NESTING):
            found.append(json.dumps(found[-1], ensure_ascii=False)[1:-1])
        return cls(tuple(dict.fromkeys(fold_searched_text(each) for each in found)))

    def within(self, text: str) -> bool:
        """Return whether a text contains it."""
        plain = unescape_searched_text(text)
        texts = (
            [fold_searched_text(text)]
            if plain is text
            else [fold_searched_text(text), fold_searched_text(plain)]
        )
        return any(spelling in each for each in texts for spelling in self.spellings)

    def within_bytes(self, data: bytes) -> bool:
        """Return whether bytes contain it in UTF-8."""
        return self.within(data.decode("utf-8", "replace"))

    def without(self, text: str) -> str:
        """Replace the text by a mark; return the mark alone if its position is not known."""
        if not self.within(text):
            return text
        plain = unicodedata.normalize("NFC", text)
        for spelling in sorted(self.spellings, key=len, reverse=True):
            plain = re.sub(re.escape(spelling), GONE, plain, flags=re.IGNORECASE)
        return GONE if self.within(plain) else plain

    def in_table(self, table: pa.Table) -> bool:
        """Return whether any string in any column contains it, however nested."""
        return any(self.within(text) for text in strings_in_value(table))


def strings_in_value(table: pa.Table) -> Iterator[str]:
    """Yield every string of every column, however nested."""
    for column in table.columns:
        for chunk in column.chunks:
            yield from _strings(chunk)


def _strings(array: pa.Array) -> Iterator[str]:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from (text for text in array.to_pylist() if text)
    elif pa.types.is_dictionary(kind):
        yield from _strings(array.dictionary_decode())
    elif pa.types.is_struct(kind) or pa.types.is_map(kind):
        for part in array.flatten() if pa.types.is_struct(kind) else [array.keys, array.items]:
            yield from _strings(part)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _strings(array.flatten())


@dataclass(frozen=True, slots=True)
class PlaceholderSearch:
    """A search for the placeholders of a value, which differ from trace to trace."""

    key: bytes
    value: str

    def within(self, texts: Iterable[str], trace_id: str) -> bool:
        """Return whether the texts contain a placeholder of the value in that trace."""
        wanted: set[str] = set()
        for text in texts:
            for start, end in find_keyed_placeholders(text):
                wanted = wanted or self._digits(trace_id)
                digits = _DIGITS.search(text[start:end])
                if digits is not None and digits[0] in wanted:
                    return True
        return False

    def _digits(self, trace_id: str) -> set[str]:
        """Return the placeholder digits of likely spellings: variants of case and Unicode normal form."""
        cases = (str, str.lower, str.upper, str.casefold, str.title, str.capitalize)
        spelt = {unicodedata.normalize(form, self.value) for form in ("NFC", "NFD")} | {self.value}
        return {hash_with_placeholder_key(self.key, trace_id, case(each)) for each in spelt for case in cases}


def is_inside_placeholder(needle: TextNeedle, texts: Iterable[str]) -> bool:
    """Return whether the text occurs in placeholders themselves, such as `EMAIL`."""
    return any(needle.within(text[s:e]) for text in texts for s, e in find_keyed_placeholders(text))


def searched_batches(path: Path) -> Iterator[pa.Table]:
    """Read a Parquet file in batches of some rows, to bound memory."""
    for batch in pq.ParquetFile(path).iter_batches(batch_size=_ROWS):
        yield pa.Table.from_batches([batch])


def searched_rows(path: Path, ids: Callable[[pa.Table], list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the id and the strings of each row of a Parquet file."""
    for table in searched_batches(path):
        for row, found in enumerate(ids(table)):
            yield found, list(strings_in_value(table.slice(row, 1)))


def scrub_searched_text(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """Replace each string and each key of a JSON value by `change(key, text)`."""
    if isinstance(value, str):
        return change(key, value)
    if isinstance(value, list):
        return [scrub_searched_text(item, change, key) for item in value]
    if isinstance(value, dict):
        return {change("", name): scrub_searched_text(item, change, name) for name, item in value.items()}
    return value
