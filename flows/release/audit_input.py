"""Read the answers of an audit: keys of a terminal as they are pressed, or letters of a file."""

import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracemill.records.errors import ConfigError

LETTERS = "aruq"
_STOPS = ("", "\x04")  # the end of the input, Ctrl-D


class AuditAnswers(NamedTuple):
    """Source of the verdicts: a terminal or a file.

    `fresh` discards keys that were typed before a pair is shown. `next` returns one of `aruq`, `q` at the
    end, or "" for another key.
    """

    fresh: Callable[[], None]
    next: Callable[[], str]


def _press(terminal: int) -> str:
    """Read one key; several at once, as from an arrow key or a paste, are ignored."""
    try:
        key = os.read(terminal, 64).decode(errors="replace").lower()
    except OSError:
        return "q"
    if key in _STOPS:
        return "q"
    return key if len(key) == 1 and key in LETTERS else ""


@contextmanager
def open_audit_input(path: Path | None) -> Iterator[AuditAnswers]:
    """Read answers from a file (`-` is stdin), else from the keyboard, key by key and without echo.

    The terminal mode is restored at the end. Raises ConfigError if stdin is no terminal, and if the file
    holds other characters.
    """
    if path is not None:
        yield AuditAnswers(lambda: None, partial(next, iter(_letters(path)), "q"))
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("this is no terminal", "a terminal, or --answers FILE", "- reads stdin")
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield AuditAnswers(partial(termios.tcflush, terminal, termios.TCIFLUSH), partial(_press, terminal))
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _letters(path: Path) -> str:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", f"a file of the letters {LETTERS}") from error
    letters = "".join(text.lower().split())
    if strange := letters.strip(LETTERS)[:1]:
        raise ConfigError(f"{path} holds {strange!r}", f"the letters {', '.join(LETTERS)}")
    return letters
