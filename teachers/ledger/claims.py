"""Who buys, and whether they still live: nobody asks what somebody who lives is asking already.

A buyer is one replay of one process. It enters itself in the ledger with the transaction of its first call,
and says every `BEAT_S` that it is there. One on this machine lives as long as its process does: a process is
known by its id together with the time it started, since ids come again. One of another machine, or of another
container, lives as long as it is heard of: it is dead once whoever waits for it has seen no beat for
`LEASE_S` of their own time, so that no two clocks are compared.
"""

import os
import platform
import secrets
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import BindParameter, Insert, Select, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from tracemill.teachers.ledger.schema import IS_OPEN, buyers, calls

BEAT_S = 4.0
LEASE_S = 15.0
FORGOTTEN_S = 7 * 86_400.0
"""After so long without a beat the row of a buyer is taken out; one that lives enters itself again."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process: `host` is the machine since it was started, and the space its ids are of; `started` is empty
    where the system does not say when a process began."""

    host: str
    pid: int
    started: str


def this_process() -> Process:
    """The process that runs this."""
    pid = os.getpid()
    return Process(_host(), pid, _started(pid))


@cache
def _host() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()}/{uuid.getnode():x}"


def _started(pid: int) -> str:
    """When a process began, in clock ticks since the machine was started; empty where it is gone or a zombie.
    proc_pid_stat(5), fields 3 and 22."""
    try:
        state, *rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in "ZX" else rest[18]


def _lives_here(process: Process) -> bool | None:
    """Whether a process lives; None where this machine cannot tell."""
    if process.host != _host() or not process.started:
        return None
    return _started(process.pid) == process.started


@dataclass(slots=True)
class Buyer:
    """One replay as others see it, and what it has seen of others. An intent is held for it for `hold_s` at
    most: what one attempt at an answer may take, and more."""

    hold_s: float
    process: Process = field(default_factory=this_process)
    elapsed_s: Callable[[], float] = time.monotonic
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    _beaten_s: float | None = None
    _heard: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    @property
    def entered(self) -> bool:
        """Whether it is in the ledger."""
        return self._beaten_s is not None

    def beat(self, connection: Connection, now: float) -> None:
        """Says that it is there, where it has not lately; `now` is the ledger's time."""
        elapsed_s = self.elapsed_s()
        if self._beaten_s is not None and elapsed_s - self._beaten_s < BEAT_S:
            return
        if self._beaten_s is None:
            connection.execute(delete(buyers).where(buyers.c.seen_at < now - FORGOTTEN_S))
        where, pid, started = self.process.host, self.process.pid, self.process.started
        row = {"buyer": self.name, "host": where, "pid": pid, "started": started, "seen_at": now}
        connection.execute(_entry(connection.dialect.name), row)
        self._beaten_s = elapsed_s

    def leave(self, connection: Connection) -> None:
        """Takes itself out of the ledger: what it left open is held for it no longer."""
        connection.execute(delete(buyers).where(buyers.c.buyer == self.name))
        self._beaten_s = None

    def held(self, rows: Iterable[Row[Any]], now: float) -> set[str]:
        """The request keys that others who live are asking at the moment, of the rows of `open_elsewhere`."""
        return {row.request_key for row in rows if self._holds(row, now)}

    def _holds(self, row: Row[Any], now: float) -> bool:
        if now - row.opened_at >= self.hold_s:
            return False
        here = _lives_here(Process(row.host, row.pid, row.started))
        return self._is_heard(row.buyer, row.seen_at) if here is None else here

    def _is_heard(self, buyer: str, seen_at: float) -> bool:
        elapsed_s = self.elapsed_s()
        heard = self._heard.get(buyer)
        if heard is None or heard[0] != seen_at:
            heard = self._heard[buyer] = (seen_at, elapsed_s)
        return elapsed_s - heard[1] < LEASE_S


@cache
def _entry(dialect: str) -> Insert:
    entry = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(buyers)
    return entry.on_conflict_do_update(index_elements=["buyer"], set_={"seen_at": entry.excluded.seen_at})


def open_elsewhere(keys: BindParameter[Any], me: BindParameter[str]) -> Select[Any]:
    """The query for the open calls of other buyers; the parameters are request keys and one's own name."""
    return (
        select(calls.c.request_key, calls.c.opened_at, buyers)
        .join(buyers, buyers.c.buyer == calls.c.buyer)
        .where(IS_OPEN, calls.c.request_key.in_(keys), buyers.c.buyer != me)
    )
