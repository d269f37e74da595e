"""Make text from sessions, servers and file names safe for a terminal.

Characters that move the cursor, change colours, reverse the writing direction, break the line or are
invisible are escaped, so that such text can neither hide nor imitate output of tracemill.
"""

MOST = 200
"""Default limit for one name or path, in characters."""

_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that Unicode counts as printable and that show nothing."""


def printable(text: str, most: int = MOST) -> str:
    r"""Return the text on one line, at most `most` characters long.

    Control characters, direction marks, line breaks, blanks other than the space and characters without a
    glyph are escaped as in Python: `\x1b`, `\n`, `\u202e`.
    """
    if not text.isprintable() or not _INVISIBLE.isdisjoint(text):
        text = "".join(map(_escape, text[: most + 1]))
    return text if len(text) <= most else f"{text[: max(0, most - 3)]}..."


def printable_lines(text: str, most: int = 100_000) -> str:
    """Return the text with each line made printable and tabs expanded."""
    return "\n".join(printable(line.expandtabs(4), most) for line in text[:most].split("\n"))


def _escape(char: str) -> str:
    if char.isprintable() and char not in _INVISIBLE:
        return char
    return char.encode("unicode_escape").decode("ascii")


def printable_count(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 session` or `2,000 sessions`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
