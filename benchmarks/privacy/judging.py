"""Judging: whether a planted value survived, and what of an ordinary text was changed."""

import difflib
import ipaddress
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_REST = 12
"""Characters of a value that may not survive in one piece, however long it is."""
SHARE_OF_REST = 0.6
"""Of a shorter value, the share that may not survive in one piece."""
_GLUE = 3
"""Equal characters without a blank between two differences that make them one."""
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_OURS = re.compile(
    r"<((?:[A-Z]+_)*[A-Z]+)_(?:\d+_)?[0-9a-f]{4,32}>|REDACTED_((?:[A-Z]+_)*[A-Z]+)_|(user_)[0-9a-f]{4,32}"
)
_MAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_SIGNED = re.compile(r"[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){1,3} *<(?=[\w.+%-]+@)")
_HOLDER = re.compile(
    r"(?:[Cc]opyright|©|\([Cc]\))[\s\d(Cc)©,:-]*(?:(?:by|present)\s+)*"
    r"[A-ZÀ-Þ][\w.'-]*(?: [\w.'-]+){0,2} [A-ZÀ-Þ][\w'-]+"
)
_AUTHORS = re.compile(
    r"(?i:\bauthors?|written by)[: ]\s*(?:[A-ZÀ-Þ][\w.'-]*(?: [\w.'-]+){0,2} [A-ZÀ-Þ][\w'-]+(?:, | and )?)+"
)
_ORGANISATION = re.compile(
    r"(?i)\b(?:academy|authors?|cent(?:er|re|rum)|college|committee|company|consortium|contributors|corp\w*"
    r"|developers|foundation|gmbh|group|inc|institut\w*|labs?|limited|llc|ltd|maintainers|media|networks?"
    r"|project|research|services|society|software|solutions|stichting|systems|team|technolog\w+|university)\b"
)
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+|-Users-|-home-)[\w.-]+")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3})(?![\w.]*\d)|[0-9A-Fa-f:]{6,}(?:%\w+)?")
_BASE64 = re.compile(r"[\w+/=-]{256}")
_VERSION = re.compile(r"(?i)version|release|\bv\d|(?:==|~=|>=|<=) *['\"]?\d")


def survives(part: str, text: str) -> bool:
    """Return whether a piece of a private text is still there: 12 characters, or 60 % of a shorter one."""
    size = max(1, min(LONGEST_REST, math.ceil(len(part) * SHARE_OF_REST)))
    return any(part[start : start + size] in text for start in range(len(part) - size + 1))


def found(parts: tuple[str, ...], redacted: str) -> bool:
    """No private part survived."""
    return not any(survives(part, redacted) for part in parts)


def is_large_base64(change: "Change") -> bool:
    """Return whether the replaced text is 256 or more characters of base64, which nobody reads."""
    return _BASE64.search(re.sub(r"\s", "", change.old)) is not None


class Change(NamedTuple):
    """A redaction: the text before and after it, and the line it stood in."""

    old: str
    new: str
    line: str

    @property
    def type(self) -> str:
        """The type our placeholders name; `?` for another tool's."""
        match = _OURS.search(self.new)
        return ("USER" if match[3] else match[1] or match[2]) if match else "?"


def changes(before: str, after: str) -> list[Change]:
    """Every place where the two texts differ."""
    if before == after:
        return []
    old, new = before.split("\n"), after.split("\n")
    if len(old) == len(new):
        return [c for a, b in zip(old, new, strict=True) if a != b for c in _in_line(a, b)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        change
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
        for change in _in_line("\n".join(old[a:b]), "\n".join(new[c:d]))
    ]


def _in_line(old: str, new: str) -> Iterator[Change]:
    if max(len(old), len(new)) > 20_000:
        yield Change(old[:80], new[:80], old[:200])
        return
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    runs = [
        (tag, "".join(a[i:j]), "".join(b[k:m]))
        for tag, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    ]
    before = after = ""
    for place, (tag, x, y) in enumerate(runs):
        inside = before + after and place + 1 < len(runs) and len(x) <= _GLUE and not re.search(r"\s", x)
        if tag != "equal" or inside:
            before, after = before + x, after + y
        elif before or after:
            yield Change(before, after, old)
            before = after = ""
    if before or after:
        yield Change(before, after, old)


def is_really_there(change: Change) -> bool:
    """Return whether the redacted text is personal data, so that it is no false alarm.

    That is an e-mail address, the name before one, the name of an author or a copyright holder, an IP
    address or a home folder.
    """
    if any(
        _overlap(change, match) and not _ORGANISATION.search(change.old)
        for pattern in (_HOLDER, _AUTHORS)
        for match in pattern.finditer(change.line)
    ):
        return True
    for pattern in (_MAIL, _SIGNED, _HOME):
        if any(
            change.old.strip("<>\"'") and _overlap(change, match) for match in pattern.finditer(change.line)
        ):
            return True
    return any(
        _is_address(match[0]) and not _VERSION.search(change.line)
        for match in _ADDRESS.finditer(change.line)
        if _overlap(change, match)
    )


def _overlap(change: Change, match: re.Match[str]) -> bool:
    core = change.old.strip(" \"'<>()[],;=:")
    return bool(core) and (core in match[0] or match[0] in change.old)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.split("%")[0])
    except ValueError:
        return False
    return True
