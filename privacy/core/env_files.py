"""Read `.env` files: every value is known, whatever its name, except ordinary ones."""

import codecs
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tracemill.privacy.core.ordinary_values import MIN_SECRET, is_ordinary
from tracemill.privacy.core.secret_variables import is_secret_variable, variable_url_password
from tracemill.records.errors import ConfigError

MAX_MB = 16
"""Largest size of a `.env` file, in MB."""

_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_END = r"(?=[ \t,;#\r\n]|$)"
_LINE = re.compile(
    r"^[ \t]*(?P<off>(?:[#;]|//|rem\b|REM\b)[ \t#]*)?"
    r"(?:(?:export|setx?|SETX?|ENV|declare -x|env)[ \t]+|\$env:)?[\"']?"
    r"(?P<name>[^\W\d][\w.-]*)[\"']?"
    r"(?P<sign>[ \t]*=|[ \t]*:(?=[ \t\r\n]))[ \t]*"
    rf"(?:'(?P<single>[^']*)'{_END}|\"(?P<double>(?:\\.|[^\"\\])*)\"{_END}|(?P<bare>[^\r\n]*))",
    re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


class EnvFile(NamedTuple):
    """A `.env` file: its path, the values to look for, and how many of its variables have such values."""

    path: Path
    values: tuple[str, ...]
    known: int


def read_env_file(path: Path) -> EnvFile:
    """Return the values of a `.env` file that are searched for.

    Those are values of 8 characters or more that are not ordinary (`privacy.core.ordinary_values`), each line
    of a value of several lines, and the password of a URL. Assignments in comments count. Lines are `K=v`,
    `K: v`, `export K=v`, `set K=v`, `$env:K="v"`, with or without quotes or a `;`. Raises ConfigError where
    the path is no regular file, is larger than `MAX_MB` or cannot be read.
    """
    known: dict[str, None] = {}
    count = 0
    for name, value in _variables(_text_of(path)):
        found = list(dict.fromkeys(_values(name, value)))
        known.update(dict.fromkeys(found))
        count += bool(found)
    return EnvFile(path, tuple(known), count)


def _values(name: str, value: str) -> Iterator[str]:
    lines = [line.strip() for line in value.splitlines()]
    for each in (value.strip(), *(lines if len(lines) > 1 else ())):
        if len(each) >= MIN_SECRET and (not is_ordinary(each) or is_secret_variable(name, each)):
            yield each
    if "://" in value and len(password := variable_url_password(value)) >= MIN_SECRET:
        yield password


def _text_of(path: Path) -> str:
    try:
        place = path.expanduser()
        found = place.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(
                f"{path} is {_kind_of(place)}",
                "a readable .env file",
                "give the file itself, or leave it out",
            )
        if found.st_size > MAX_MB * 1_000_000:
            raise ConfigError(
                f"{path} has {found.st_size / 1e6:,.0f} MB",
                f"a .env file of {MAX_MB} MB at most",
                "give the file itself, or leave it out",
            )
        return _decoded(place.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror or type(error).__name__})",
            "a readable .env file",
            "give the file itself, or leave it out",
        ) from None


def _kind_of(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "a pipe" if path.is_fifo() else "a socket" if path.is_socket() else "a device"


def _decoded(data: bytes) -> str:
    """Decode bytes by byte order mark, UTF-16 without one, UTF-8, or else Latin-1."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        return data.decode(
            "utf-16-le" if data[1::2].count(0) > data[::2].count(0) else "utf-16-be", "replace"
        )
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _variables(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while match := _LINE.search(text, at):
        at = max(match.end(), at + 1)
        value = _value(match)
        if match["off"]:
            at = text.find("\n", match.start("name")) + 1 or len(text)  # a comment ends with its line
            if "=" not in match["sign"] or (match["bare"] and " " in value) or "\n" in value:
                continue  # prose
        yield match["name"], value


def _value(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"]
    if match["double"] is not None:
        return _ESCAPE.sub(lambda escape: _LETTERS.get(escape[1], escape[1]), match["double"])
    value = re.split(r"\s#", match["bare"], maxsplit=1)[0].strip()
    return value.rstrip(";,").strip().strip("\"'")
