"""How placeholders of redaction are spelled (`<GITHUB_TOKEN_3f2ac91d>`): who writes them and who reads text
that holds them agree here."""

import re

HEX = r"(?:[0-9a-f]{8}|[0-9a-f]{4})"
"""Pattern of the digits at the end."""
KIND = r"(?:[A-Z]{2,12}_){1,4}(?:\d{1,9}_)?"
"""Pattern of what stands before them."""
IN_ANGLES = re.compile(rf"<({KIND}{HEX})>")
"""A placeholder in angles; its first group is what they hold."""


def without_angles(text: str) -> str:
    """The text with the angles of placeholders (`<HOST_3f2ac91d>`) left out: in a command they would be
    redirects."""
    return IN_ANGLES.sub(r"\1", text) if "<" in text else text
