"""Print lines on the terminal and ask there."""

import sys
from collections.abc import Iterable

from rich.console import Console

from tracemill.records.printable import printable


def say_lines(lines: Iterable[str]) -> None:
    """Print the lines on stderr."""
    console = stderr_console()
    for line in lines:
        console.print(printable(line))


def confirm_on_terminal(question: str) -> bool:
    """Return whether a person at the terminal answers yes; any other input, or its end, is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def stderr_console() -> Console:
    """Return a console on stderr that prints text without markup."""
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
