"""Show the progress of long work: a live bar on a terminal, a plain line every 30 seconds elsewhere.

It always says what was spent, the cap, and what the spending comes to at this rate; and, while a provider
is down, who is waited for, why, and until when.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_S = 30.0
OBSERVED_S = 5.0


class ProgressMeter:
    """A counter of finished work and money; every call is cheap and may be made for every reply."""

    def __init__(self, cap_usd: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Show no progress yet; `clock` gives seconds."""
        self.cap_usd = cap_usd
        self.spent_usd = 0.0
        self.done = 0
        self.total = 0
        self.stage = ""
        self.note = ""
        self._clock = clock
        self._paid_usd, self._paid = 0.0, 0
        self._written = ""
        self._waits: dict[str, tuple[str, float]] = {}
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, stage: str, total: int, spent_usd: float = 0.0) -> None:
        """Begin a stage of `total` units of work, 0 if unknown; `spent_usd` was paid before it."""
        self.stage, self.total, self.done, self.spent_usd = stage, total, 0, spent_usd or self.spent_usd
        self._paid_usd, self._paid = 0.0, 0
        self._waits.clear()
        self._show()

    def name_step(self, text: str) -> None:
        """Change the stage's name and keep its count."""
        self.stage = text
        self._show()

    def expect(self, fewer: int) -> None:
        """Lower the expected total."""
        self.total -= fewer
        self._show()

    def advance(self, count: int = 1) -> None:
        """Count `count` more units as done."""
        self.done += count
        self._show()

    def replied(self, teacher: str, cost_usd: float | None, well: bool) -> None:
        """Count a reply of a teacher.

        It cost `cost_usd`, None for a stored reply; `well` is False if the call failed. It ends this
        teacher's wait if that is over, but not the wait of other calls.
        """
        if well and teacher in self._waits and self._waits[teacher][1] < self._clock():
            del self._waits[teacher]
        if cost_usd is not None:
            self.spent_usd += cost_usd
            self._paid_usd, self._paid = self._paid_usd + cost_usd, self._paid + 1
        self.advance(1)

    def waits(self, teacher: str, why: str, seconds: float) -> None:
        """Show that a teacher is asked again in `seconds`; `why` names its fault: `answers 503`."""
        self._waits[teacher] = (why, self._clock() + seconds)

    def line(self) -> str:
        """Return `questions 120/400 $0.12 of $10.00, about $0.40 at this rate; waiting: ...`.

        A stage without a total has no count.
        """
        count = f" {self.done:,}/{self.total:,}" if self.total else ""
        return f"{self.stage}{count} {self.status()}".rstrip()

    def new_line(self) -> str:
        """Return the line if it differs from the one returned last, else ""."""
        line = self.line()
        if line == self._written:
            return ""
        self._written = line
        return line

    def status(self) -> str:
        """Return the cost, the teacher that is waited for, and a note."""
        return "; ".join(part for part in (self.money(), self.waiting(), self.note) if part)

    def money(self) -> str:
        """Return `$0.12 of $10.00, about $0.40 at this rate`; empty if nothing was spent."""
        if not self.spent_usd:
            return ""
        text = f"${self.spent_usd:.4f}"
        if self.cap_usd is not None:
            text += f" of ${self.cap_usd:.2f}"
        if self._paid and self.done < self.total:
            rest = (self.total - self.done) * self._paid_usd / self._paid
            text += f", about ${self.spent_usd + rest:.4f} at this rate"
        return text

    def waiting(self) -> str:
        """Return `waiting: NAME answers 503, next try in 12 s`, for the teacher that is asked next."""
        waits = sorted(self._waits.items(), key=lambda item: item[1][1])
        if not waits:
            return ""
        teacher, (why, until) = waits[0]
        left = until - self._clock()
        when = f"next try in {left:.0f} s" if left >= 1 else "trying again"
        more = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
        return f"waiting: {teacher} {why}, {when}{more}"

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, completed=self.done, total=self.total or None, description=self.stage
            )

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show a progress bar on stderr during the block."""
        with _bar(self.status) as self._bar:
            self._task = self._bar.add_task("starting", total=None)
            yield

    @contextmanager
    def call_periodically(self, tell: Callable[["ProgressMeter"], None], every_s: float) -> Iterator[None]:
        """Call `tell` from a thread every `every_s` seconds during the block, once a stage has begun."""
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(every_s):
                if self.stage:
                    tell(self)

        teller = threading.Thread(target=repeat, name="progress", daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()


_hidden = False


def hide_progress() -> None:
    """Show no progress on stderr from now on."""
    global _hidden
    _hidden = True


def is_progress_hidden() -> bool:
    """Return whether progress output is switched off."""
    return _hidden


def say_start(what: str) -> None:
    """Print the current activity on a terminal while there is nothing to count yet."""
    if not _hidden and sys.stderr.isatty():
        sys.stderr.write(f"{what} ...\n")
        sys.stderr.flush()


_meters: list[ProgressMeter] = []


def show_step(text: str) -> None:
    """Show the new part of a stage on the active meters."""
    for meter in _meters:
        meter.name_step(text)


_observers: list[Callable[[ProgressMeter], None]] = []


@contextmanager
def observe_progress(observer: Callable[[ProgressMeter], None]) -> Iterator[None]:
    """Call `observer` with the active meter every few seconds during the block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


@contextmanager
def progress_meter(cap_usd: float | None, every_s: float = QUIET_S) -> Iterator[ProgressMeter]:
    """Show a meter on stderr during the block.

    On a terminal it is live, elsewhere it is a line every `every_s` seconds if it has changed.
    """
    made = ProgressMeter(cap_usd)
    with ExitStack() as shown:
        if not _hidden:
            shown.enter_context(
                made.live() if sys.stderr.isatty() else made.call_periodically(_write_line, every_s)
            )
        for observer in _observers:
            shown.enter_context(made.call_periodically(observer, OBSERVED_S))
        _meters.append(made)
        shown.callback(_meters.remove, made)
        yield made


def _write_line(meter: ProgressMeter) -> None:
    if line := meter.new_line():
        sys.stderr.write(f"{line}\n")


def _bar(status: Callable[[], str]) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Status(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(status())

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, Status(), console=Console(stderr=True), transient=True)
