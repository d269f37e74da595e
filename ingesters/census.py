"""Which kinds of records and which keys session files hold, by format and version, and which no reader knows.

Formats change without notice: what a census finds unknown is what a reader may be passing over. Files are
read record by record, and nothing of their content is told: names that are no plain words are `other`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemill.ingesters.discover import discover, walk_files_below
from tracemill.ingesters.format import Format
from tracemill.ingesters.reading.json_reading import iter_json_lines, read_json
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.ingesters.registry import format_of
from tracemill.ingesters.row_readers import row_reader
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport, record_type

NO_VERSION = "no version"
_LINES = (".jsonl", ".ndjson")
_VERSION_LENGTH = 24


@dataclass(slots=True)
class VersionCensus:
    """What files of one format and version hold. `keys` are by kind; unknown keys are `<kind>: <key>`."""

    files: int = 0
    records: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    keys: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unknown_keys: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, names by falling count."""
        return {
            "files": self.files,
            "records": self.records,
            "kinds": dict(self.kinds.most_common()),
            "unknown_kinds": dict(self.unknown_kinds.most_common()),
            "keys": {kind: dict(keys.most_common()) for kind, keys in sorted(self.keys.items())},
            "unknown_keys": dict(self.unknown_keys.most_common()),
        }


@dataclass(slots=True)
class Census:
    """What is found, by format and version, and files and lines that are not read, by reason."""

    found: dict[tuple[str, str], VersionCensus] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        formats = [
            {"format": name, "version": version, **found.to_json()}
            for (name, version), found in sorted(self.found.items(), key=_place)
        ]
        return {"formats": formats, "unread": dict(self.unread.most_common())}


def _place(item: tuple[tuple[str, str], VersionCensus]) -> tuple[str, list[int], str]:
    """Where a format and version stand in the list: versions by their numbers, 2.1.9 before 2.1.10."""
    (name, version), _ = item
    return name, [int(number) for number in re.findall(r"\d+", version)], version


def take_census(paths: Iterable[Path | str]) -> Census:
    """Count what all sources below the paths hold. Raises SourceError where a path does not exist."""
    census = Census()
    for source in discover(paths):
        form = format_of(source.dialect)
        if form is None:
            census.unread[source.dialect or "of no known format"] += 1
            continue
        report = IngestReport("")
        seen: set[str] = set()
        try:
            version = NO_VERSION
            for record in _records(source.path, form, source.dialect, report):
                version = _version(record) or version
                _count(record, form, census.found.setdefault((form.name, version), VersionCensus()))
                seen.add(version)
        except (SourceError, OSError):
            census.unread["unreadable"] += 1
        for version in seen:
            census.found[form.name, version].files += 1
        census.unread.update(report.skipped)
    return census


def _count(record: dict[str, Any], form: Format, into: VersionCensus) -> None:
    into.records += 1
    for seen in form.kinds(record):
        of, _, inner = seen.kind.partition(" ")
        kind = record_type(of) + (f" {record_type(inner)}" if inner else "")
        into.kinds[kind] += 1
        if seen.known is False:
            into.unknown_kinds[kind] += 1
        for key in seen.keys:
            name = record_type(key)
            into.keys[kind][name] += 1
            if seen.known_keys is not None and key not in seen.known_keys:
                into.unknown_keys[f"{kind}: {name}"] += 1


def _version(record: dict[str, Any]) -> str:
    """The version a record names; one that is no number is `other`."""
    given = record.get("version")
    if not isinstance(given, str) or not given:
        return ""
    return given if given[0].isdigit() and len(given) <= _VERSION_LENGTH and given.isascii() else "other"


def _records(path: Path, form: Format, dialect: str | None, report: IngestReport) -> Iterator[dict[str, Any]]:
    """The objects of a source, one after the other."""
    if path.is_dir():
        for entry in sorted(walk_files_below(str(path)), key=lambda each: each.path):
            if entry.name.endswith((".json", *_LINES)):
                yield from _records(Path(entry.path), form, None, report)
    elif row_reader(dialect):
        yield from (row for row in iter_rows(path, report) if isinstance(row, dict))
    elif any(suffix in path.name for suffix in _LINES) or dialect in form.growing:
        yield from (record for _, record in iter_json_lines(path, report, kind=None))
    else:
        value = read_json(path, report)
        yield from (
            item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)
        )
