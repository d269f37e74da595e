"""Spelling of redaction placeholders (`<GITHUB_TOKEN_3f2ac91d>`), shared by their writers and readers."""

import re

HEX = r"(?:[0-9a-f]{8}|[0-9a-f]{4})"
"""Pattern of the hex digits at the end."""
KIND = r"(?:[A-Z]{2,12}_){1,4}(?:\d{1,9}_)?"
"""Pattern of the kind before the digits."""
IN_ANGLES = re.compile(rf"<({KIND}{HEX})>")
"""A placeholder in angle brackets; the first group is what stands between them."""
LONGEST = 80
"""Maximal length of a placeholder, in characters."""
_ANY = re.compile(rf"<{KIND}{HEX}>|REDACTED_{KIND}{HEX}|user_{HEX}")


def strip_placeholder_angles(text: str) -> str:
    """Remove the angle brackets of placeholders (`<HOST_3f2ac91d>`), which a shell reads as redirects."""
    return IN_ANGLES.sub(r"\1", text) if "<" in text and IN_ANGLES.search(text) else text


def head_with_whole_placeholders(text: str, most: int) -> str:
    """Return the first `most` characters, fewer if they would end inside a placeholder.

    Half a placeholder, such as that of `user_3f2ac91d` in a path, reads like somebody's name.
    """
    placeholder = _placeholder_around(text, most)
    return text[: placeholder.start() if placeholder else most]


def tail_with_whole_placeholders(text: str, most: int) -> str:
    """Return the last `most` characters, fewer where they would begin inside a placeholder."""
    if most >= len(text):
        return text
    at = len(text) - most
    placeholder = _placeholder_around(text, at)
    return text[placeholder.end() if placeholder else at :]


def _placeholder_around(text: str, at: int) -> re.Match[str] | None:
    """Return the placeholder that begins before an index and ends after it."""
    nearby = _ANY.finditer(text, max(0, at - LONGEST), at + LONGEST)
    return next((match for match in nearby if match.start() < at < match.end()), None)
