"""Count which kinds of records and which keys session files hold, and which of them no reader knows.

Formats change without notice: unknown kinds and keys may be content that a reader skips. Counts are by format
and version. No content is shown: a name that is not a plain word becomes `other`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tracemill.ingesters.discover import NO_FORMAT, discover, walk_files_below, why_unread
from tracemill.ingesters.format import Record, SessionFormat
from tracemill.ingesters.looks_like import looks_like
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.ingesters.registry import format_of
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport, record_type

NO_VERSION = "no version"
_MAX_VERSION_CHARS = 24
_LOOKED_AT = 20
"""Number of files of no known format of which a census tells what they look like."""


@dataclass(slots=True)
class VersionCensus:
    """Counts of files of one format and version; `keys` are by kind, unknown keys are `<kind>: <key>`."""

    files: int = 0
    records: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    keys: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unknown_keys: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, names by descending count."""
        return {
            "files": self.files,
            "records": self.records,
            "kinds": dict(self.kinds.most_common()),
            "unknown_kinds": dict(self.unknown_kinds.most_common()),
            "keys": {kind: dict(keys.most_common()) for kind, keys in sorted(self.keys.items())},
            "unknown_keys": dict(self.unknown_keys.most_common()),
        }


@dataclass(frozen=True, slots=True)
class NotRead:
    """A path that is not read, or `count` lines of it, with the reason.

    `looks_like` describes the content of a file of no known format, as far as it was looked at.
    """

    path: str
    reason: str
    count: int = 1
    looks_like: str = ""


@dataclass(slots=True)
class Census:
    """Counts by format and version, and the unread files and lines."""

    found: dict[tuple[str, str], VersionCensus] = field(default_factory=dict)
    not_read: list[NotRead] = field(default_factory=list)

    @property
    def unread(self) -> Counter[str]:
        """Return the number of files and lines that are not read, by reason."""
        counts: Counter[str] = Counter()
        for each in self.not_read:
            counts[each.reason] += each.count
        return counts

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        formats = [
            {"format": name, "version": version, **census.to_json()}
            for (name, version), census in sorted(self.found.items(), key=_sort_key)
        ]
        files = [{key: value for key, value in asdict(each).items() if value != ""} for each in self.not_read]
        return {"formats": formats, "unread": dict(self.unread.most_common()), "unread_files": files}


def _sort_key(item: tuple[tuple[str, str], VersionCensus]) -> tuple[str, list[int], str]:
    """Sort by format and by the numbers of the version: 2.1.9 before 2.1.10."""
    (name, version), _ = item
    return name, [int(number) for number in re.findall(r"\d+", version)], version


def take_census(paths: Iterable[Path | str]) -> Census:
    """Count records of all sources below the paths. Raises SourceError if a path does not exist."""
    census, looked_at = Census(), 0
    for source in discover(paths):
        form = format_of(source.dialect)
        if form is None:
            reason = why_unread(source)
            like = looks_like(source.path) if reason == NO_FORMAT and looked_at < _LOOKED_AT else ""
            looked_at += bool(like)
            census.not_read.append(NotRead(source.name, reason, looks_like=like))
            continue
        report = IngestReport("")
        seen: set[str] = set()
        try:
            version = NO_VERSION
            for record in (form.records or _records)(source.path, report):
                version = _version(record) or version
                _count(record, form, census.found.setdefault((form.name, version), VersionCensus()))
                seen.add(version)
        except (SourceError, OSError, EOFError):
            census.not_read.append(NotRead(source.name, "damaged: the rest cannot be read"))
        for version in seen:
            census.found[form.name, version].files += 1
        census.not_read += [NotRead(source.name, why, count) for why, count in report.skipped.items()]
    return census


def _count(record: Record, form: SessionFormat, census: VersionCensus) -> None:
    census.records += 1
    for seen in form.kinds(record):
        outer, _, inner = seen.kind.partition(" ")
        kind = record_type(outer) + (f" {record_type(inner)}" if inner else "")
        census.kinds[kind] += 1
        if seen.known is False:
            census.unknown_kinds[kind] += 1
        for key in seen.keys:
            name = record_type(key)
            census.keys[kind][name] += 1
            if seen.known_keys is not None and key not in seen.known_keys:
                census.unknown_keys[f"{kind}: {name}"] += 1


def _version(record: Record) -> str:
    """Return the version a record names, "" for none, `other` for one that is not a number."""
    version = record.get("version")
    if not isinstance(version, str) or not version:
        return ""
    return (
        version
        if version[0].isdigit() and len(version) <= _MAX_VERSION_CHARS and version.isascii()
        else "other"
    )


def _records(path: Path, report: IngestReport) -> Iterator[dict[str, Any]]:
    """Yield the objects of a source, whether its files hold lines, a value or a table."""
    if path.is_dir():
        for entry in sorted(walk_files_below(str(path)), key=lambda each: each.path):
            if entry.name.endswith((".json", ".jsonl", ".ndjson")):
                yield from _records(Path(entry.path), report)
    else:
        yield from (record for record in iter_rows(path, report) if isinstance(record, dict))
