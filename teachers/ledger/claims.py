"""Track who is buying and whether they are alive: nobody buys what a live replay is buying.

A buyer is one replay of one process. It enters itself in the ledger with its first transaction and renews its
heartbeat every `BEAT_S` seconds. On this machine it lives as long as its process, which is identified by its
id and start time, since ids are reused. On another machine or in another container it is dead once a waiting
replay has seen no heartbeat for `LEASE_S` seconds of its own time, so that no two clocks are compared.
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
"""Age of the last heartbeat, in seconds, at which a row is deleted; a live buyer enters itself again."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process.

    `host` is the machine since its boot, with its PID namespace. `started` is empty if the system does not
    report when a process started.
    """

    host: str
    pid: int
    started: str


def this_process() -> Process:
    """Return the current process."""
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
    """Return the start time of a process in clock ticks since boot; "" if it is gone or a zombie.

    See proc_pid_stat(5), fields 3 and 22.
    """
    try:
        state, *rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in "ZX" else rest[18]


def _is_alive_here(process: Process) -> bool | None:
    """Return whether a process is alive; None if this machine cannot find out."""
    if process.host != _host() or not process.started:
        return None
    return _started(process.pid) == process.started


@dataclass(slots=True)
class ClaimHolder:
    """One replay in the ledger, as other replays see it, and the heartbeats it has seen of them.

    A call is held for at most `hold_s` seconds, which is more than one attempt at an answer can take.
    """

    hold_s: float
    process: Process = field(default_factory=this_process)
    elapsed_s: Callable[[], float] = time.monotonic
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    _last_beat_s: float | None = None
    _seen: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    @property
    def entered(self) -> bool:
        """Return whether it is in the ledger."""
        return self._last_beat_s is not None

    def beat(self, connection: Connection, now: float) -> None:
        """Renew the heartbeat where it is due; `now` is the ledger's time."""
        elapsed_s = self.elapsed_s()
        if self._last_beat_s is not None and elapsed_s - self._last_beat_s < BEAT_S:
            return
        if self._last_beat_s is None:
            connection.execute(delete(buyers).where(buyers.c.seen_at < now - FORGOTTEN_S))
        where, pid, started = self.process.host, self.process.pid, self.process.started
        row = {"buyer": self.name, "host": where, "pid": pid, "started": started, "seen_at": now}
        connection.execute(_entry(connection.dialect.name), row)
        self._last_beat_s = elapsed_s

    def leave(self, connection: Connection) -> None:
        """Delete its row from the ledger; open calls it leaves are no longer held for it."""
        connection.execute(delete(buyers).where(buyers.c.buyer == self.name))
        self._last_beat_s = None

    def held(self, rows: Iterable[Row[Any]], now: float) -> set[str]:
        """Return the request keys that live replays are asking, from rows of `open_elsewhere`."""
        return {row.request_key for row in rows if self._holds(row, now)}

    def _holds(self, row: Row[Any], now: float) -> bool:
        if now - row.opened_at >= self.hold_s:
            return False
        here = _is_alive_here(Process(row.host, row.pid, row.started))
        return self._has_lease(row.buyer, row.seen_at) if here is None else here

    def _has_lease(self, buyer: str, seen_at: float) -> bool:
        elapsed_s = self.elapsed_s()
        seen = self._seen.get(buyer)
        if seen is None or seen[0] != seen_at:
            seen = self._seen[buyer] = (seen_at, elapsed_s)
        return elapsed_s - seen[1] < LEASE_S


@cache
def _entry(dialect: str) -> Insert:
    entry = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(buyers)
    return entry.on_conflict_do_update(index_elements=["buyer"], set_={"seen_at": entry.excluded.seen_at})


def open_elsewhere(keys: BindParameter[Any], me: BindParameter[str]) -> Select[Any]:
    """Return the query for open calls of other replays, by request keys and this replay's name."""
    return (
        select(calls.c.request_key, calls.c.opened_at, buyers)
        .join(buyers, buyers.c.buyer == calls.c.buyer)
        .where(IS_OPEN, calls.c.request_key.in_(keys), buyers.c.buyer != me)
    )
