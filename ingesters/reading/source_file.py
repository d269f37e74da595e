"""A source: a file, a folder, a remote file or a part of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tracemill.ingesters.reading.remote_files import printable_url
from tracemill.ingesters.reading.row_files import Part


class Stamp(NamedTuple):
    """What a source looked like from outside: its size in bytes (of a folder the sum), and a text that
    changes with its content: when it was last written to, or what the Hub calls it by."""

    bytes: int
    text: str = ""


UNSEEN = Stamp(0)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One source: a file, a conversation folder of OpenHands, a file of the Hub or behind a URL, or a
    part of a file of rows.

    `dialect` is None where the content is none that is known, and `unreadable` where it could not be
    looked at; both are read into a report that says so. A remote file that is no table is of the
    dialect `fetched when it is read`. `bytes` is the size, of a folder the sum, of a part its share.
    `only` names the traces that are wanted, with their subagents; None for all.
    """

    path: Path
    dialect: str | None
    bytes: int
    stamp: Stamp = UNSEEN
    url: str = ""
    part: Part | None = None
    licence: str | None = None
    only: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """What it is called: its path, or its URL without anything secret."""
        return printable_url(self.url) if self.url else str(self.path)
