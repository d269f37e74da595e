"""Read the Markdown that Cursor exports: the texts of a conversation, without its calls and their results.

A file begins with the title and a line that says when and from which version it was exported, and may hold
several exports. Behind each line of dashes stands who speaks.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.ingesters.reading.json_reading import INVALID_UTF8, raise_source_errors
from tracemill.records.ingest_report import IngestReport

_EXPORT = re.compile(
    r"^# [^\n]*\n_Exported on [^\n]{6,60} from Cursor \([\w.+-]{1,40}\)_[ \t]*$",
    re.MULTILINE,
)
_SPEAKER = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n", re.MULTILINE)


def begins_export(head: bytes) -> bool:
    """Return whether the first bytes of a file hold the head of an export."""
    return _EXPORT.search(head.decode("utf-8", "replace").replace("\r\n", "\n")) is not None


def read_exports(path: Path, report: IngestReport) -> Iterator[tuple[str, str]]:
    """Yield role and text of the messages in the exports of a file. Raises SourceError if unreadable."""
    with raise_source_errors(path), open_bytes(path) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        report.flags[INVALID_UTF8] += 1
        text = data.decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n")
    heads = list(_EXPORT.finditer(text))
    for head, end in zip(heads, [*(each.start() for each in heads[1:]), len(text)], strict=True):
        _, *spoken = _SPEAKER.split(text[head.end() : end])
        for who, said in zip(spoken[::2], spoken[1::2], strict=True):
            yield who, said.strip().removesuffix("\n---").rstrip()
