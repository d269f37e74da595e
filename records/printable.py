"""Text from sessions, servers and file names as a terminal may be given it.

What moves the cursor, changes colours, reverses the direction of writing, breaks the line or shows nothing
at all is written as an escape, so that such a text can neither hide nor imitate what tracemill says.
"""

MOST = 200
"""Characters of one name or place that are shown at most."""

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that Unicode counts as printable and that show nothing."""


def printable(text: str, most: int = MOST) -> str:
    r"""The text on one line, `most` characters of it at most.

    Control characters, marks of direction, breaks of lines, blanks other than the space and what has no
    glyph are written as in Python: `\x1b`, `\n`, `\u202e`.
    """
    if not text.isprintable() or not _BLANK.isdisjoint(text):
        text = "".join(map(_shown, text[: most + 1]))
    return text if len(text) <= most else f"{text[: max(0, most - 3)]}..."


def printable_lines(text: str, most: int = 100_000) -> str:
    """The same for a text of several lines, which stay lines; a tab becomes blanks."""
    return "\n".join(printable(line.expandtabs(4), most) for line in text[:most].split("\n"))


def _shown(sign: str) -> str:
    if sign.isprintable() and sign not in _BLANK:
        return sign
    return sign.encode("unicode_escape").decode("ascii")


def printable_count(count: int, noun: str) -> str:
    """`1 session`, `2,000 sessions`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
