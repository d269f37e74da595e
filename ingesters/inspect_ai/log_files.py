"""Read log files of inspect: an archive with an entry per sample, or one JSON object.

Long texts stand once in `attachments` of a sample, and messages once in a pool; the parts of a log refer to
them. A large sample may lie in several entries, its events, messages and attachments in numbered ones.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.ingesters.reading.json_reading import raise_source_errors, read_json
from tracemill.ingesters.reading.zip_entries import open_zip, read_zip_json
from tracemill.records.ingest_report import IngestReport

BROKEN_SAMPLE = "sample that cannot be read"
_ZIP = b"PK\x03\x04"
_REFERENCE = re.compile(r"(?:attachment|tc)://(\w+)\Z")
_WHOLE = re.compile(r"samples/[^/]+\.json\Z")
_SHELL = re.compile(r"(samples/[^/]+)/sample\.json\Z")
_CHUNK = re.compile(r"(samples/[^/]+)/(events|messages|attachments)/(\d+)\.json\Z")


@dataclass(frozen=True, slots=True)
class InspectLog:
    """A log: the evaluated task (`spec`), and the samples, read one by one."""

    spec: Mapping[str, Any]
    samples: Iterator[Mapping[str, Any]]


def read_log(path: Path, report: IngestReport) -> InspectLog:
    """Return the log of a file. Raises SourceError if it cannot be read."""
    with raise_source_errors(path), open_bytes(path) as stream:
        archived = stream.peek(4).startswith(_ZIP)
    if archived:
        with raise_source_errors(path), open_zip(path) as archive:
            return InspectLog(_archived_spec(archive), _archived_samples(path, report))
    log = as_mapping(read_json(path, report))
    listed = log.get("samples")
    samples = listed if isinstance(listed, list) else []
    report.skipped[BROKEN_SAMPLE] += sum(not isinstance(sample, dict) for sample in samples)
    report.skipped = +report.skipped
    return InspectLog(as_mapping(log.get("eval")), (sample for sample in samples if isinstance(sample, dict)))


def _archived_spec(archive: ZipFile) -> Mapping[str, Any]:
    """Return the evaluated task: from the header, or for an unfinished log from its start entry."""
    for name in ("header.json", "_journal/start.json"):
        with suppress(KeyError, ValueError, BadZipFile):
            if spec := as_mapping(as_mapping(read_zip_json(archive, name)).get("eval")):
                return spec
    return {}


def _archived_samples(path: Path, report: IngestReport) -> Iterator[Mapping[str, Any]]:
    """Yield the samples of an archive; one that cannot be read is counted."""
    with raise_source_errors(path), open_zip(path) as archive:
        names = dict.fromkeys(archive.namelist())
        for name in names:
            shell = _SHELL.match(name)
            if shell is None and not _WHOLE.match(name):
                continue
            try:
                sample = read_zip_json(archive, name)
                if shell is not None and isinstance(sample, dict):
                    sample = sample | _chunked_parts(archive, names, shell[1])
            except (ValueError, BadZipFile, EOFError):
                sample = None
            if isinstance(sample, dict):
                yield sample
            else:
                report.skipped[BROKEN_SAMPLE] += 1


def _chunked_parts(archive: ZipFile, names: Mapping[str, None], prefix: str) -> dict[str, Any]:
    """Return events, messages and attachments of a sample whose entries begin with `prefix`."""
    parts: dict[str, list[Any]] = {"events": [], "messages": [], "attachments": []}
    found = [match for name in names if (match := _CHUNK.match(name)) and match[1] == prefix]
    for match in sorted(found, key=lambda each: int(each[3])):
        listed = read_zip_json(archive, match[0])
        parts[match[2]] += listed if isinstance(listed, list) else []
    return {
        "events": parts["events"],
        "events_data": {"messages": parts["messages"]},
        "attachments": {str(place): text for place, text in enumerate(parts["attachments"])},
    }


@dataclass(slots=True)
class SampleTexts:
    """The attachments and the message pool of a sample; `missing` counts references to absent texts."""

    attachments: Mapping[str, Any]
    pool: Sequence[Any]
    missing: int = field(default=0)

    @classmethod
    def of(cls, sample: Mapping[str, Any]) -> "SampleTexts":
        """Build it from a sample; an early version has the pool at another place."""
        pool = as_mapping(sample.get("events_data")).get("messages", sample.get("message_pool"))
        return cls(as_mapping(sample.get("attachments")), pool if isinstance(pool, list) else [])

    def resolve(self, value: Any) -> Any:
        """Return a value with the attachments it refers to inserted."""
        if isinstance(value, str):
            if not value.startswith(("attachment://", "tc://")) or not (match := _REFERENCE.match(value)):
                return value
            text = self.attachments.get(match[1])
            self.missing += not isinstance(text, str)
            return text if isinstance(text, str) else value
        if isinstance(value, dict):
            return {key: self.resolve(each) for key, each in value.items()}
        return [self.resolve(each) for each in value] if isinstance(value, list) else value

    def prompt(self, event: Mapping[str, Any]) -> list[Any]:
        """Return the messages that a model call was sent, as the log holds them."""
        listed, ranges = event.get("input"), event.get("input_refs")
        if listed or not isinstance(ranges, list):
            return listed if isinstance(listed, list) else []
        found: list[Any] = []
        for each in ranges:
            first, last = each if isinstance(each, list) and len(each) == 2 else (0, -1)
            whole = isinstance(first, int) and isinstance(last, int) and 0 <= first < last <= len(self.pool)
            self.missing += not whole
            found += self.pool[first:last] if whole else []
        return found
