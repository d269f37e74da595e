"""Write decoded texts to plain files of a private folder, and find the text of a line."""

from bisect import bisect_right
from pathlib import Path
from typing import IO, NamedTuple

from tracemill.privacy.publish_gate.decoded_texts import DecodedText, TextLocation, Trail
from tracemill.privacy.publish_gate.kingfisher import KingfisherMatch

_FILE_BYTES = 16_000_000
_BETWEEN = b"\n\n#\n\n"  # keeps a rule from reading two texts as one


class WrittenText(NamedTuple):
    """A text as it was written; `raw` is the digest of the stored string it came from."""

    leaf: DecodedText
    place: TextLocation
    raw: bytes


class _Entry(NamedTuple):
    line: int
    start: int
    size: int
    name: str
    trail: Trail
    opened: bool
    place: TextLocation
    raw: bytes


class WrittenTexts:
    """Texts one after the other in files of some megabytes; the folder is readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self._entries: list[list[_Entry]] = []
        self._handle: IO[bytes] | None = None
        self._line, self._at = 1, 0
        self.texts = 0
        """How many texts were added."""

    def add(self, leaf: DecodedText, place: TextLocation, raw: bytes) -> None:
        """Append one text."""
        if self._handle is None or self._at >= _FILE_BYTES:
            self._next_file()
        assert self._handle is not None
        data = leaf.text.encode("utf-8", "replace")
        self._handle.write(data)
        self._handle.write(_BETWEEN)
        entry = _Entry(self._line, self._at, len(data), leaf.name, leaf.trail, leaf.opened, place, raw)
        self._entries[-1].append(entry)
        self.texts += 1
        self._line += data.count(b"\n") + _BETWEEN.count(b"\n")
        self._at += len(data) + len(_BETWEEN)

    def close(self) -> None:
        """Close the file that is being written."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def read(self, match: KingfisherMatch) -> WrittenText:
        """Return the text that holds a match."""
        number = int(Path(match.file).stem)
        entries = self._entries[number]
        entry = entries[max(0, bisect_right(entries, match.line, key=lambda e: e.line) - 1)]
        with self._path(number).open("rb") as handle:
            handle.seek(entry.start)
            text = handle.read(entry.size).decode("utf-8", "replace")
        return WrittenText(DecodedText(text, entry.name, entry.trail, entry.opened), entry.place, entry.raw)

    def _next_file(self) -> None:
        self.close()
        self._handle = self._path(len(self._entries)).open("wb")
        self._entries.append([])
        self._line, self._at = 1, 0

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.txt"
