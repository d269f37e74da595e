"""The text of a file as far as a context has shown it: pieces by line number, changed as edits change it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tracemill.agreement.files.edits import Change
from tracemill.agreement.files.hunks import apply_hunks, apply_hunks_in_part, has_place
from tracemill.harnesses.shell.patches import Hunk
from tracemill.records.fast_dataclass import quick_init

_GAP = "\x00"
_NUMBERED = re.compile(r"^[ \t]*(\d+)(?:\u2192|\t|:)(.*)$")


@quick_init
@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a file that stand together, from line `first` on (from 1)."""

    first: int
    lines: tuple[str, ...]

    @property
    def last(self) -> int:
        """Number of its last line."""
        return self.first + len(self.lines) - 1


@dataclass(frozen=True, slots=True)
class FileText:
    """What is known of a file: pieces in order, and its number of lines where that is known."""

    pieces: tuple[Piece, ...] = ()
    total: int | None = None
    _done: list[tuple[tuple[Change, ...], "FileText | None"]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @property
    def whole(self) -> bool:
        """True where every line is known."""
        return len(self.pieces) == 1 and self.pieces[0].first == 1 and self.pieces[0].last == self.total

    @property
    def text(self) -> str:
        """The pieces, with a mark where something unknown lies between them."""
        return f"\n{_GAP}\n".join("\n".join(piece.lines) for piece in self.pieces)

    @property
    def lines(self) -> list[str]:
        """The lines of the text."""
        lines: list[str] = []
        for piece in self.pieces:
            lines += (_GAP, *piece.lines) if lines else piece.lines
        return lines

    def count(self, text: str) -> int:
        """How often a text stands in what is known, places that overlap counted once."""
        return sum("\n".join(piece.lines).count(text) for piece in self.pieces) if text else 0

    def seen(self, piece: Piece, total: int | None) -> "FileText":
        """With a piece more, joined with those it touches or covers; newer lines count."""
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
        joined = Piece(first, tuple(map(lines.__getitem__, range(first, first + len(lines)))))
        return FileText(tuple(sorted((*apart, joined), key=lambda p: p.first)), total or self.total)

    def changed(self, changes: tuple[Change, ...]) -> "FileText | None":
        """After the changes, one after the other; None where one cannot be made on what is known."""
        if self._done and self._done[0][0] == changes:  # asked for when it was compared, and again as done
            return self._done[0][1]
        state: FileText | None = self
        hunks = [change.hunk for change in changes if change.hunk is not None]
        if hunks:
            state = _patched(self, hunks) if len(hunks) == len(changes) else None
        else:
            for change in changes:
                state = _changed(state, change) if state is not None else None
        self._done[:] = [(changes, state)]
        return state


def _as_often(state: FileText, change: Change) -> bool:
    """Whether a text may stand in a file as often as a tool wants it to."""
    count = state.count(change.old)
    return count == change.times or (count < change.times and not state.whole)


def _changed(state: FileText, change: Change) -> FileText | None:
    if change.first is not None:
        return _lines_changed(state, change.first, change)
    if change.times and not _as_often(state, change):
        return None
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
            pieces.append(Piece(moved, lines))
        else:
            pieces.append(Piece(moved, piece.lines) if grown else piece)
    total = None if state.total is None else state.total + grown
    return FileText(tuple(pieces), total) if found else None


def _patched(state: FileText, hunks: Sequence[Hunk]) -> FileText | None:
    if state.whole:
        lines = apply_hunks(state.pieces[0].lines, hunks)
        return None if lines is None else FileText((Piece(1, lines),), len(lines))
    given: list[list[Hunk]] = [[] for _ in state.pieces]
    for hunk in hunks:
        fits = [
            place for place, piece in enumerate(state.pieces) if hunk.old and has_place(piece.lines, hunk)
        ]
        if len(fits) != 1:
            return None
        given[fits[0]].append(hunk)
    pieces, grown = [], 0
    for piece, own in zip(state.pieces, given, strict=True):
        lines = apply_hunks_in_part(piece.lines, own) if own else piece.lines
        if lines is None:
            return None
        pieces.append(Piece(piece.first + grown, lines))
        grown += len(lines) - len(piece.lines)
    return FileText(tuple(pieces), None if state.total is None else state.total + grown)


def _lines_changed(state: FileText, first: int, change: Change) -> FileText | None:
    last = change.last if change.last is not None else first
    if last == -1 and state.total is not None:
        last = state.total
    for number, piece in enumerate(state.pieces):
        if piece.first <= first <= piece.last + 1 and first - 1 <= last <= piece.last:
            new = tuple(change.new.split("\n"))
            at = first - piece.first
            lines = (*piece.lines[:at], *new, *piece.lines[last - piece.first + 1 :])
            grown = len(lines) - len(piece.lines)
            later = tuple(Piece(p.first + grown, p.lines) for p in state.pieces[number + 1 :])
            pieces = (*state.pieces[:number], Piece(piece.first, lines), *later)
            return FileText(pieces, None if state.total is None else state.total + grown)
    return None


def parse_numbered_file_text(text: str) -> Piece | None:
    """The lines of a tool result that numbers them, as far as they count up without a gap; None where
    fewer than one does."""
    first, lines = 0, []
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        if found and (not lines or int(found[1]) == first + len(lines)):
            first = first or int(found[1])
            lines.append(found[2].rstrip("\r"))
        elif lines:
            break
    return Piece(first, tuple(lines)) if lines and first else None
