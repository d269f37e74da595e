"""A source of sessions: a file, a folder, a remote file or a part of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tracemill.ingesters.reading.remote_files import printable_url
from tracemill.ingesters.reading.row_files import Part


class SourceStamp(NamedTuple):
    """Size of a source in bytes (of a folder the sum), and a text that changes with its content.

    The text is the time of the last change, or the Hub's tag of the content.
    """

    bytes: int
    text: str = ""


UNSEEN = SourceStamp(0)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One source: a file, a conversation folder of OpenHands, a remote file, or a part of a file of rows.

    `dialect` is None if no format recognises the content and `unreadable` if it cannot be opened; the
    report on the source says so. A remote file that is not a table has the dialect `fetched when it is read`.
    `bytes` is the size, of a folder the sum, of a part its share. `only` names the wanted traces, with their
    subagents; None for all.
    """

    path: Path
    dialect: str | None
    bytes: int
    stamp: SourceStamp = UNSEEN
    url: str = ""
    part: Part | None = None
    licence: str | None = None
    only: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """Return the path, or the URL without anything secret."""
        return printable_url(self.url) if self.url else str(self.path)
