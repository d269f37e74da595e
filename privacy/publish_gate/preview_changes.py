"""Show what redaction would change in files, without changing them."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.personal.known_identity import KnownValues
from tracemill.privacy.publish_gate.decoded_texts import (
    DecodedText,
    TextLocation,
    decoded_text_column,
    open_decoded_text,
)
from tracemill.privacy.publish_gate.documents import SkippedFiles
from tracemill.privacy.publish_gate.file_texts import read_file_texts
from tracemill.privacy.redaction.detectors import Detectors
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor

_STARS = "********"
_AROUND = 40  # characters shown on either side of what changes in a line


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line that would change, before and after; values are masked unless asked for."""

    where: str
    before: str
    after: str


@dataclass(slots=True)
class FileChanges:
    """The changes that redaction would make in a file: counts by type, and each different line once."""

    file: str
    counts: Counter[str] = field(default_factory=Counter)
    excerpts: list[ChangedLine] = field(default_factory=list)

    def to_json(self, excerpts: int) -> dict[str, Any]:
        """Return the fields as plain values, with at most `excerpts` lines."""
        shown = [asdict(each) for each in self.excerpts[:excerpts]]
        return {
            "file": self.file,
            "counts": dict(self.counts),
            "lines": len(self.excerpts),
            "excerpts": shown,
        }


def preview_changes(
    path: Path, shown: str, known: KnownValues, key: bytes, skipped: SkippedFiles
) -> FileChanges:
    """Return the changes of one file, read as one session, with values masked.

    User names found in its folders count. Raises SourceError for a socket, a device, and a pipe without a
    writer.
    """
    return _changes(path, shown, known, key, skipped, values=False)


def preview_changes_with_values(
    path: Path, shown: str, known: KnownValues, key: bytes, skipped: SkippedFiles
) -> FileChanges:
    """Return the same with values unmasked: only for their owner."""
    return _changes(path, shown, known, key, skipped, values=True)


def _changes(
    path: Path, shown: str, known: KnownValues, key: bytes, skipped: SkippedFiles, *, values: bool
) -> FileChanges:
    found = FileChanges(shown)
    stored = list(read_file_texts(path, shown, skipped))
    detectors, _ = Detectors(known).with_names_of(list(dict.fromkeys(text.text for text in stored)), ())
    rules = ScopedTextRedactor(detectors, key, os.fspath(path), thorough=True)
    seen: set[tuple[str, str]] = set()
    for text in stored:
        for leaf in open_decoded_text(text):
            if not leaf.opened:
                _add_leaf(found, leaf, text.place, rules, seen, values)
    found.counts = rules.findings
    return found


def _add_leaf(
    found: FileChanges,
    leaf: DecodedText,
    place: TextLocation,
    rules: ScopedTextRedactor,
    seen: set[tuple[str, str]],
    values: bool,
) -> None:
    new = rules.redact_value(leaf.text, leaf.name)
    if new == leaf.text or (leaf.text, new) in seen:
        return
    seen.add((leaf.text, new))
    old = leaf.text if values else _masked(leaf.text, new)
    for line, before, after in _lines(old, new):
        where = _where(place, decoded_text_column(leaf.trail), line)
        found.excerpts.append(ChangedLine(where, *_cut(before, after)))


def _masked(old: str, new: str) -> str:
    """Return the redacted text with stars for its new placeholders."""
    before = {old[start:end] for start, end in find_keyed_placeholders(old)}
    pieces, done = [], 0
    for start, end in find_keyed_placeholders(new):
        if new[start:end] not in before:
            pieces += (new[done:start], _STARS)
            done = end
    return "".join((*pieces, new[done:]))


def _lines(old: str, new: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines that differ, or blocks of lines where their number differs."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) == len(after):
        yield from ((n, a, b) for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        return
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield i, " ".join(before[i:j]), " ".join(after[k:m])


def _cut(before: str, after: str) -> tuple[str, str]:
    """Return both lines without what they share beyond the next forty characters."""
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    start, spare = max(0, head - _AROUND), max(0, tail - _AROUND)
    left, right = "..." if start else "", "..." if spare else ""
    first, second = (f"{left}{line[start : len(line) - spare]}{right}" for line in (before, after))
    return first, second


def _shared(one: str, other: str) -> int:
    """Count the characters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _where(place: TextLocation, column: str, line: int) -> str:
    parts = [f"row {place.row}"] if place.row is not None else []
    if place.line is not None:
        parts.append(f"line {place.line if column else place.line + line}")
    return " ".join([*parts, column]).strip() or "the text"
