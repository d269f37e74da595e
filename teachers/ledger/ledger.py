"""The one book of what was reserved, spent and bought; safe across processes and crashes.

A call is written as an intent, its worst case reserved against the caps of run, day and trace, before
it goes out; it is settled at its real cost in the same transaction that stores its answer. For every
scope, `settled + reserved + amount <= cap` held when an amount was granted. An intent whose process
died stays reserved in the run and the day that made it, until `write_off_stale` books it as spent
there. Nothing secret is stored: keys, ids, amounts, and redacted replies.

Writers follow one another, on SQLite and on PostgreSQL, and what is committed outlives the process and a
power cut.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import SQLAlchemyError

from tracemill.records.errors import LedgerError
from tracemill.records.reply import TeacherReply
from tracemill.teachers.ledger.bulk_rows import KEEP
from tracemill.teachers.ledger.claims import Buyer
from tracemill.teachers.ledger.database_errors import database_error_reason
from tracemill.teachers.ledger.entries import BeingBought, Close, Grant, Intent, Reservation, Spent
from tracemill.teachers.ledger.forget import compact_ledger, forget_rows
from tracemill.teachers.ledger.reconcile import (
    Doubt,
    calls_in_doubt,
    note_usage,
    reconciling_closes,
)
from tracemill.teachers.ledger.reply_json import dump_reply_json
from tracemill.teachers.ledger.schema import (
    IDENTITY,
    IS_OPEN,
    PAID_IN_VAIN,
    accounts,
    answers,
    budgets,
    calls,
    insert_or_ignore,
    meta,
    open_database,
    runs,
)
from tracemill.teachers.ledger.transaction import Batch

_LOOKUP_KEYS = 500

_RUN = select(runs).where(runs.c.run_id == bindparam("key"))


def sqlite_url(path: Path) -> str:
    """The URL of a ledger in a SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path)).render_as_string()


class Ledger:
    """A ledger on a database URL, such as `sqlite:////data/ledger.db`. Threads may share it."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        """Raises LedgerError where the database cannot be opened. `clock` gives seconds since 1970."""
        self._engine = open_database(url)
        self._reader = self._engine.execution_options(ledger_read=True)
        self._clock = clock

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def backend(self) -> str:
        """The kind of database: `sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def identity(self) -> str:
        """What this ledger and its copies have and no other, wherever its database moves."""
        with self._reading() as connection:
            return str(connection.execute(select(meta.c.value).where(meta.c.key == IDENTITY)).scalar_one())

    def knows(self, run_id: str) -> bool:
        """Whether the run was opened in this ledger."""
        with self._reading() as connection:
            return connection.execute(_RUN, {"key": run_id}).one_or_none() is not None

    def is_empty(self) -> bool:
        """Whether it has no answer yet."""
        with self._reading() as connection:
            return connection.execute(select(answers.c.request_key).limit(1)).first() is None

    def close(self) -> None:
        """Gives the connections back."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger could not be written: {database_error_reason(error)}") from error

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._reader.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger could not be read: {database_error_reason(error)}") from error

    def open_run(
        self,
        run_id: str,
        max_total_nusd: int,
        max_day_nusd: int | None = None,
        max_trace_nusd: int | None = None,
    ) -> None:
        """Sets the caps of a run, new or resumed; what it spent before counts on."""
        caps = {
            "max_total_nusd": max_total_nusd,
            "max_day_nusd": max_day_nusd,
            "max_trace_nusd": max_trace_nusd,
        }
        with self._writing() as connection:
            insert_or_ignore(connection, runs, {"run_id": run_id, "opened_at": self._clock(), **caps})
            connection.execute(update(runs).where(runs.c.run_id == run_id).values(caps))

    def apply(
        self, closes: Sequence[Close] = (), intents: Sequence[Intent] = (), buyer: Buyer | None = None
    ) -> tuple[list[bool | LedgerError], list[Grant | BeingBought]]:
        """Books calls that came home, then grants or denies intents, all in one transaction.

        Gives for every close True, False where the cost was above the reservation (it is counted all the
        same, and the bound it broke can no longer be trusted), or the error of a call that is unknown or
        closed already; and for every intent what became of it. What another buyer who lives is asking at the
        moment is not granted to this `buyer`; without one the intents wait for nobody, and nobody for them.
        Raises LedgerError where a run was not opened; nothing is booked then.
        """
        now = self._clock()
        batch = Batch(now, datetime.fromtimestamp(now, UTC).date().isoformat(), buyer)
        with self._writing() as connection:
            batch.run(connection, closes, intents)
        return batch.closed, batch.grants

    def leave(self, buyer: Buyer) -> None:
        """A buyer is gone: what it left open stays reserved, and may be asked by others."""
        if buyer.entered:
            with self._writing() as connection:
                buyer.leave(connection)

    def reserve(self, intent: Intent) -> Grant | BeingBought:
        """Writes the intent, nobody's, and reserves its amount in run, day and trace, or says why not.

        Raises LedgerError where the run was not opened.
        """
        return self.apply(intents=[intent])[1][0]

    def settle(
        self,
        reservation: Reservation,
        cost_nusd: int | None,
        reply: str | None = None,
        outcome: str = "answer",
        stated_nusd: int = 0,
    ) -> bool:
        """Books what a call cost, None for "the worst case", and stores its `reply` as an answer.

        Gives False where the cost was above the reservation. Raises LedgerError where the call is
        unknown or closed already.
        """
        return self._close(Close(reservation, cost_nusd, reply, outcome, stated_nusd=stated_nusd))

    def release(self, reservation: Reservation, outcome: str = "not_billed") -> None:
        """Gives a reservation back; only for a call that cannot have been billed."""
        self._close(Close(reservation, 0, None, outcome, "released"))

    def _close(self, close: Close) -> bool:
        done = self.apply(closes=[close])[0][0]
        if isinstance(done, LedgerError):
            raise done
        return done

    def write_off_stale(self, older_than_s: float) -> int:
        """Books intents left open for longer than this as spent, at their worst case, in the run and
        the day that made them; gives how many. A reply that comes later corrects the figure."""
        now = self._clock()
        stale = select(calls.c.id, calls.c.amount_nusd).where(IS_OPEN)
        batch = Batch(now, "")
        with self._writing() as connection:
            late = stale.where(calls.c.opened_at < now - older_than_s).order_by(calls.c.id)
            found = [Reservation(row.id, row.amount_nusd) for row in connection.execute(late)]
            lost = [Close(each, None, None, "written_off", "written_off") for each in found]
            batch.run(connection, lost, ())
        return len(found)

    def looked_at(self, account: str) -> bool:
        """Whether a look at the account is kept, to reckon later ones from."""
        with self._reading() as connection:
            query = select(accounts.c.account).where(accounts.c.account == account)
            return connection.execute(query).first() is not None

    def calls_in_doubt(self, account: str, older_than_s: float) -> list[Doubt]:
        """Return the calls of an account whose price nobody said, that went out so long ago."""
        with self._reading() as connection:
            return calls_in_doubt(connection, account, self._clock() - older_than_s)

    def note_usage(self, account: str, usage_nusd: int) -> None:
        """Keep what an account was charged, to reckon later calls from."""
        with self._writing() as connection:
            note_usage(connection, account, usage_nusd)

    def reconcile(
        self,
        account: str,
        usage_nusd: int | None,
        older_than_s: float,
        give_up_s: float = math.inf,
        billed: Mapping[Doubt, int] | None = None,
    ) -> tuple[int, int]:
        """Book calls in doubt at what the account says that they cost at most; give how many, and by how much
        less they are booked.

        `usage_nusd` is all that the account was ever charged, None where nobody says; `billed` what pages on
        single answers say. Looked at are calls that went out `older_than_s` ago; after `give_up_s` their
        worst case is their cost.
        """
        now = self._clock()
        proven: Sequence[Close] = ()
        paid = [doubt.close(nusd, nusd) for doubt, nusd in (billed or {}).items()]
        with self._writing() as connection:
            Batch(now, "").run(connection, paid, ())
            if usage_nusd is not None:
                since = now - older_than_s, now - give_up_s
                proven = reconciling_closes(connection, account, usage_nusd, *since)
                Batch(now, "").run(connection, proven, ())
                note_usage(connection, account, usage_nusd)
        done = [close for close in (*paid, *proven) if close.cost_nusd != close.reservation.amount_nusd]
        return len(done), sum(close.reservation.amount_nusd - (close.cost_nusd or 0) for close in done)

    def answer(self, request_key: str) -> str | None:
        """The stored reply of a request as JSON, None where it was never bought."""
        return self.answers_to([request_key]).get(request_key)

    def remember(self, replies: Iterable[TeacherReply]) -> None:
        """Stores answers that were bought before, where it has none: for a ledger that was lost. Costs
        nothing and counts against no cap."""
        now = self._clock()
        rows = [
            {"request_key": r.request_key, "reply": dump_reply_json(r), "cost_nusd": 0, "created_at": now}
            for r in replies
        ]
        with self._writing() as connection:
            KEEP.run(connection, rows)

    def answers_to(self, request_keys: Sequence[str]) -> dict[str, str]:
        """The stored replies of those requests that were bought, by key."""
        found: dict[str, str] = {}
        with self._reading() as connection:
            for start in range(0, len(request_keys), _LOOKUP_KEYS):
                keys = request_keys[start : start + _LOOKUP_KEYS]
                query = select(answers.c.request_key, answers.c.reply).where(answers.c.request_key.in_(keys))
                found.update({row.request_key: row.reply for row in connection.execute(query)})
        return found

    def paid_in_vain(self, request_keys: Sequence[str]) -> dict[str, int]:
        """How many answers to each request were paid, over all runs, that nothing could be read of; without
        those that have none."""
        found: dict[str, int] = {}
        with self._reading() as connection:
            for start in range(0, len(request_keys), _LOOKUP_KEYS):
                keys = request_keys[start : start + _LOOKUP_KEYS]
                query = (
                    select(calls.c.request_key, func.count().label("calls"))
                    .where(PAID_IN_VAIN, calls.c.request_key.in_(keys))
                    .group_by(calls.c.request_key)
                )
                found.update({row.request_key: row.calls for row in connection.execute(query)})
        return found

    def forget(
        self, aliases: Mapping[str, str], holds: Callable[[str], bool], keep: Collection[str] = ()
    ) -> int:
        """Takes traces and texts out of the book; gives how many answers were deleted.

        Deleted are the answers that were bought for a trace in `aliases`, and any answer whose JSON
        `holds`. Answers in `keep` are of other traces too: they stay unless they hold. The money stays,
        booked on the alias of the trace. Raises LedgerError.
        """
        with self._writing() as connection:
            deleted = forget_rows(connection, aliases, holds, frozenset(keep))
        self.compact()
        return deleted

    def compact(self) -> None:
        """Makes deleted bytes go from a SQLite file and its log. Raises LedgerError."""
        compact_ledger(self._engine)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every stored answer as request key and JSON."""
        with self._reading() as connection:
            for row in connection.execute(select(answers.c.request_key, answers.c.reply)).yield_per(500):
                yield row.request_key, row.reply

    def outcomes(self, run_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How the calls of these runs ended, by teacher and outcome (`answer`, or a kind of failure): every
        try counts, also where a later one brought the answer."""
        found: dict[str, dict[str, int]] = {}
        ended = (
            select(calls.c.teacher, calls.c.outcome, func.count().label("calls"))
            .where(calls.c.run_id.in_(run_ids), calls.c.outcome.is_not(None))
            .group_by(calls.c.teacher, calls.c.outcome)
        )
        with self._reading() as connection:
            for row in connection.execute(ended):
                found.setdefault(row.teacher, {})[row.outcome] = row.calls
        return found

    def spent(self, run_id: str) -> Spent:
        """What a run settled and holds reserved, over all its restarts. LedgerError: no such run."""
        with self._reading() as connection:
            run = connection.execute(_RUN, {"key": run_id}).one_or_none()
            if run is None:
                raise LedgerError(f"the run {run_id!r} was never opened in this ledger")
            row = connection.execute(select(budgets).where(budgets.c.scope == f"run:{run_id}")).one_or_none()
            grouped = (
                select(calls.c.state, func.count().label("calls"))
                .where(calls.c.run_id == run_id)
                .group_by(calls.c.state)
            )
            states = {row.state: row.calls for row in connection.execute(grouped)}
        return Spent(
            settled_nusd=row.settled_nusd if row else 0,
            reserved_nusd=row.reserved_nusd if row else 0,
            cap_nusd=run.max_total_nusd,
            calls=sum(states.values()),
            open_calls=states.get("open", 0),
            written_off=states.get("written_off", 0),
        )
