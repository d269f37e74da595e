"""How placeholders of redaction are spelled (`<GITHUB_TOKEN_3f2ac91d>`): who writes them and who reads text
that holds them agree here."""

import re

HEX = r"(?:[0-9a-f]{8}|[0-9a-f]{4})"
"""Pattern of the digits at the end."""
KIND = r"(?:[A-Z]{2,12}_){1,4}(?:\d{1,9}_)?"
"""Pattern of what stands before them."""
IN_ANGLES = re.compile(rf"<({KIND}{HEX})>")
"""A placeholder in angles; its first group is what they hold."""
LONGEST = 80
"""Characters of a placeholder at most."""
_ANY = re.compile(rf"<{KIND}{HEX}>|REDACTED_{KIND}{HEX}|user_{HEX}")


def strip_placeholder_angles(text: str) -> str:
    """The text with the angles of placeholders (`<HOST_3f2ac91d>`) left out: in a command they would be
    redirects."""
    return IN_ANGLES.sub(r"\1", text) if "<" in text and IN_ANGLES.search(text) else text


def head_with_whole_placeholders(text: str, most: int) -> str:
    """The first `most` characters, fewer where they would end inside a placeholder: half of one, as of
    `user_3f2ac91d` in a path, reads like somebody's name."""
    found = _across(text, most)
    return text[: found.start() if found else most]


def tail_with_whole_placeholders(text: str, most: int) -> str:
    """The last `most` characters, fewer where they would begin inside a placeholder."""
    if most >= len(text):
        return text
    at = len(text) - most
    found = _across(text, at)
    return text[found.end() if found else at :]


def _across(text: str, at: int) -> re.Match[str] | None:
    """The placeholder that begins before a place and ends behind it."""
    around = _ANY.finditer(text, max(0, at - LONGEST), at + LONGEST)
    return next((each for each in around if each.start() < at < each.end()), None)
