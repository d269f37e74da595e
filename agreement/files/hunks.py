"""Apply hunks of a patch to lines of a file, at the place where Codex applies them.

Anchors are found one after the other, then the old lines after the last: verbatim, else without trailing
blanks, else without surrounding blanks, else with typographic characters as plain ones
(https://github.com/openai/codex, apply-patch, `seek_sequence`).
"""

from collections.abc import Callable, Sequence

from tracemill.harnesses.shell.patches import Hunk

_DASHES, _SINGLE, _DOUBLE = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "\u2018\u2019\u201a\u201b",
    "\u201c\u201d\u201e\u201f",
)
_BLANKS = "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN = str.maketrans(
    {**dict.fromkeys(_DASHES, "-"), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DOUBLE, '"')}
    | dict.fromkeys(_BLANKS, " ")
)
_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(_PLAIN),
)
Place = tuple[int, int, tuple[str, ...]]
"""First line (from 0), number of old lines, new lines."""


def apply_hunks(lines: Sequence[str], hunks: Sequence[Hunk]) -> tuple[str, ...] | None:
    """Return the lines of a whole file after the hunks; None where one has no place.

    A hunk with an anchor and no old line has none either: Codex appends it to the file, others insert it
    after the anchor.
    """
    kept = lines[:-1] if lines and not lines[-1] else lines
    places: list[Place] = []
    at = 0
    for hunk in hunks:
        found = _place(kept, hunk, at)
        if found is None:
            return None
        places.append(found)
        at = max(at, found[0] + found[1]) if hunk.old else at
    return _replaced(kept, places)


def apply_hunks_in_part(lines: Sequence[str], hunks: Sequence[Hunk]) -> tuple[str, ...] | None:
    """Return a part of a file after the hunks; None where old lines do not occur exactly once."""
    places: list[Place] = []
    for hunk in hunks:
        start = _after_anchors(lines, hunk.anchors, 0)
        found = find_hunk_places(lines, hunk.old, start) if hunk.old and start is not None else []
        if len(found) != 1 or hunk.at_end or (places and found[0] < sum(places[-1][:2])):
            return None
        places.append((found[0], len(hunk.old), hunk.new))
    return _replaced(lines, places)


def has_place(lines: Sequence[str], hunk: Hunk) -> bool:
    """Return whether the hunk may be applied to these lines."""
    start = _after_anchors(lines, hunk.anchors, 0)
    return start is not None and bool(find_hunk_places(lines, hunk.old, start))


def find_hunk_places(lines: Sequence[str], wanted: Sequence[str], start: int) -> list[int]:
    """Return where the wanted lines begin, from `start` on, in the strictest form that matches."""
    count = len(wanted)
    for form in _FORMS:
        formed = lines if form is str else [form(line) for line in lines]
        first, rest = form(wanted[0]), [form(line) for line in wanted]
        found = [
            at
            for at in range(start, len(formed) - count + 1)
            if formed[at] == first and list(formed[at : at + count]) == rest
        ]
        if found:
            return found
    return []


def _place(lines: Sequence[str], hunk: Hunk, start: int) -> Place | None:
    begin = _after_anchors(lines, hunk.anchors, start)
    if begin is None or (hunk.anchors and not hunk.old):
        return None
    if not hunk.old:
        end = len(lines) - (1 if lines and not lines[-1] else 0)
        return end, 0, hunk.new
    for old, new in _with_and_without_last(hunk):
        at = max(0, len(lines) - len(old)) if hunk.at_end else begin
        if old and (found := find_hunk_places(lines, old, at)):
            return found[0], len(old), new
    return None


def _with_and_without_last(hunk: Hunk) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return old and new lines, also without a last empty line.

    It may stand for the end of the file's last line.
    """
    forms = [(hunk.old, hunk.new)]
    if not hunk.old[-1]:
        forms.append((hunk.old[:-1], hunk.new[:-1] if hunk.new and not hunk.new[-1] else hunk.new))
    return forms


def _after_anchors(lines: Sequence[str], anchors: Sequence[str], start: int) -> int | None:
    for anchor in anchors:
        found = find_hunk_places(lines, (anchor,), start)
        if not found:
            return None
        start = found[0] + 1
    return start


def _replaced(lines: Sequence[str], places: Sequence[Place]) -> tuple[str, ...]:
    changed = list(lines)
    in_order = sorted(places, key=lambda place: place[0])
    for start, count, new in in_order[::-1]:  # backwards, so that earlier indices stay valid
        changed[start : start + count] = new
    return tuple(changed)
