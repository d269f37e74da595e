"""What a person at the terminal is told and asked."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console

from tracemill.records.printable import printable

if TYPE_CHECKING:
    pass


def say_lines(lines: Iterable[str]) -> None:
    """Print these on stderr, a line each."""
    console = _console()
    for line in lines:
        console.print(printable(line))


def confirm_on_terminal(question: str) -> bool:
    """Whether a person on the terminal says yes; anything else, also the end of input, is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
