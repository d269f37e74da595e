"""Hold the text of a file as far as it was shown: pieces by line number, and edits of them."""

import re
from dataclasses import dataclass, replace

from tracemill.agreement.files.edits import TextChange

_GAP = "\x00"
_NUMBERED = re.compile(r"^[ \t]*(\d+)(?:\u2192|\t|:)(.*)$")


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Consecutive lines of a file from line `first` on (from 1)."""

    first: int
    lines: tuple[str, ...]

    @property
    def last(self) -> int:
        """Return the number of its last line."""
        return self.first + len(self.lines) - 1


@dataclass(frozen=True, slots=True)
class FileText:
    """The known text of a file: pieces in order, and its number of lines where known."""

    pieces: tuple[FilePiece, ...] = ()
    total: int | None = None

    @property
    def whole(self) -> bool:
        """Return whether every line is known."""
        return len(self.pieces) == 1 and self.pieces[0].first == 1 and self.pieces[0].last == self.total

    @property
    def lines(self) -> list[str]:
        """Return the lines of the pieces, with a marker in place of each unknown part."""
        lines: list[str] = []
        for piece in self.pieces:
            lines += (_GAP, *piece.lines) if lines else piece.lines
        return lines

    def seen(self, piece: FilePiece, total: int | None) -> "FileText":
        """Return the file with one more piece, merged with those it touches; its lines replace older ones."""
        if not piece.lines:
            return replace(self, total=total or self.total)
        apart = [p for p in self.pieces if p.last < piece.first - 1 or p.first > piece.last + 1]
        near = [p for p in self.pieces if p.last >= piece.first - 1 and p.first <= piece.last + 1]
        if all(piece.first <= p.first and p.last <= piece.last for p in near):
            return FileText(tuple(sorted((*apart, piece), key=lambda p: p.first)), total or self.total)
        lines: dict[int, str] = {}
        for p in (*near, piece):
            lines.update(enumerate(p.lines, p.first))
        first = min(lines)
        joined = FilePiece(first, tuple(map(lines.__getitem__, range(first, first + len(lines)))))
        return FileText(tuple(sorted((*apart, joined), key=lambda p: p.first)), total or self.total)

    def changed(self, changes: tuple[TextChange, ...]) -> "FileText | None":
        """Return the file after changes in order; None if a change cannot be applied to the known text."""
        state: FileText | None = self
        for change in changes:
            state = _changed(state, change) if state is not None else None
        return state


def _changed(state: FileText, change: TextChange) -> FileText | None:
    if change.first is not None:
        return _lines_changed(state, change.first, change)
    pieces, grown, found = [], 0, False
    for piece in state.pieces:
        text = "\n".join(piece.lines)
        moved = piece.first + grown
        old = change.old
        if old and old in text and (change.every or not found):
            found = True
            text = text.replace(old, change.new) if change.every else text.replace(old, change.new, 1)
            lines = tuple(text.split("\n"))
            grown += len(lines) - len(piece.lines)
            pieces.append(FilePiece(moved, lines))
        else:
            pieces.append(FilePiece(moved, piece.lines) if grown else piece)
    total = None if state.total is None else state.total + grown
    return FileText(tuple(pieces), total) if found else None


def _lines_changed(state: FileText, first: int, change: TextChange) -> FileText | None:
    last = change.last if change.last is not None else first
    if last == -1 and state.total is not None:
        last = state.total
    for number, piece in enumerate(state.pieces):
        if piece.first <= first <= piece.last + 1 and first - 1 <= last <= piece.last:
            new = tuple(change.new.split("\n"))
            at = first - piece.first
            lines = (*piece.lines[:at], *new, *piece.lines[last - piece.first + 1 :])
            grown = len(lines) - len(piece.lines)
            later = tuple(FilePiece(p.first + grown, p.lines) for p in state.pieces[number + 1 :])
            pieces = (*state.pieces[:number], FilePiece(piece.first, lines), *later)
            return FileText(pieces, None if state.total is None else state.total + grown)
    return None


def parse_numbered_file_text(text: str) -> FilePiece | None:
    """Return the numbered lines of a tool result up to the first gap; None if there are none."""
    first, lines = 0, []
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        if found and (not lines or int(found[1]) == first + len(lines)):
            first = first or int(found[1])
            lines.append(found[2].rstrip("\r"))
        elif lines:
            break
    return FilePiece(first, tuple(lines)) if lines and first else None
