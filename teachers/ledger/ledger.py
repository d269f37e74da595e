"""Keep the record of what was reserved, spent and bought, across processes and crashes.

A call is written as an intent before it goes out, with its worst case reserved against the caps of run, day
and trace. It is settled at its cost in the transaction that stores its answer. For every scope, `settled +
reserved + amount <= cap` held when an amount was granted. An intent whose process died stays reserved until
`write_off_stale` books it as spent in its run and day. Only keys, ids, amounts and redacted replies are
stored.

Writers are serialised, on SQLite and on PostgreSQL, and a commit survives a crash and a power cut.
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
from tracemill.teachers.ledger.claims import ClaimHolder
from tracemill.teachers.ledger.database_errors import database_error_reason
from tracemill.teachers.ledger.entries import (
    Grant,
    InFlightElsewhere,
    PlannedCall,
    Reservation,
    RunSpending,
    Settlement,
)
from tracemill.teachers.ledger.forget import compact_ledger, forget_rows
from tracemill.teachers.ledger.reconcile import (
    UnknownCharge,
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
from tracemill.teachers.ledger.transaction import ANSWERS, LedgerTransaction, rows_of

_RUN = select(runs).where(runs.c.run_id == bindparam("key"))
_UNREADABLE = (
    select(calls.c.request_key, func.count().label("calls"))
    .where(PAID_IN_VAIN, calls.c.request_key.in_(bindparam("keys", expanding=True)))
    .group_by(calls.c.request_key)
)


def sqlite_url(path: Path) -> URL:
    """Return the URL of a ledger in a SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path))


class Ledger:
    """A ledger on a database URL, such as `sqlite:////data/ledger.db`. Threads may share it."""

    def __init__(self, url: str | URL, clock: Callable[[], float] = time.time) -> None:
        """Open the database; `clock` returns seconds since 1970.

        Raises LedgerError if it cannot be opened.
        """
        self._engine = open_database(url)
        self._reader = self._engine.execution_options(ledger_read=True)
        self._clock = clock

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def backend(self) -> str:
        """Return the kind of database: `sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def identity(self) -> str:
        """Return an id of this ledger, which only copies of it share."""
        with self._reading() as connection:
            return str(connection.execute(select(meta.c.value).where(meta.c.key == IDENTITY)).scalar_one())

    def has_run(self, run_id: str) -> bool:
        """Return whether the run was opened in this ledger."""
        with self._reading() as connection:
            return connection.execute(_RUN, {"key": run_id}).one_or_none() is not None

    def is_empty(self) -> bool:
        """Return whether it has no answer."""
        with self._reading() as connection:
            return connection.execute(select(answers.c.request_key).limit(1)).first() is None

    def server_time(self) -> datetime | None:
        """Return the time of the database server, None if the database is a file."""
        if self.backend == "sqlite":
            return None
        with self._reading() as connection:
            return connection.execute(select(func.clock_timestamp())).scalar_one()

    def close(self) -> None:
        """Close the connections."""
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
        max_total_nanousd: int,
        max_day_nanousd: int | None = None,
        max_trace_nanousd: int | None = None,
    ) -> None:
        """Set the caps of a new or resumed run; earlier spending still counts."""
        caps = {
            "max_total_nusd": max_total_nanousd,
            "max_day_nusd": max_day_nanousd,
            "max_trace_nusd": max_trace_nanousd,
        }
        with self._writing() as connection:
            insert_or_ignore(connection, runs, {"run_id": run_id, "opened_at": self._clock(), **caps})
            connection.execute(update(runs).where(runs.c.run_id == run_id).values(caps))

    def apply(
        self,
        closes: Sequence[Settlement] = (),
        intents: Sequence[PlannedCall] = (),
        buyer: ClaimHolder | None = None,
    ) -> tuple[list[bool | LedgerError], list[Grant | InFlightElsewhere]]:
        """Settle calls, then grant or deny intents, in one transaction.

        Return for every settlement True, False if the cost was above the reservation (it is booked all the
        same), or the error of a call that is unknown or closed; and for every intent the decision. A
        request that another live replay is asking is not granted to this `buyer`; without a `buyer` no
        replay waits for another.

        Raises LedgerError if a run was not opened; nothing is booked then.
        """
        now = self._clock()
        batch = LedgerTransaction(now, datetime.fromtimestamp(now, UTC).date().isoformat(), buyer)
        with self._writing() as connection:
            batch.run(connection, closes, intents)
        return batch.closed, batch.grants

    def leave(self, buyer: ClaimHolder) -> None:
        """Remove a replay: its open calls stay reserved, and others may ask the same requests."""
        if buyer.entered:
            with self._writing() as connection:
                buyer.leave(connection)

    def reserve(self, intent: PlannedCall) -> Grant | InFlightElsewhere:
        """Reserve an intent's amount in run, day and trace, or return why not.

        Raises LedgerError if the run was not opened.
        """
        return self.apply(intents=[intent])[1][0]

    def settle(
        self,
        reservation: Reservation,
        cost_nanousd: int | None,
        reply: str | None = None,
        outcome: str = "answer",
        stated_nanousd: int = 0,
    ) -> bool:
        """Book the cost of a call, None for the worst case, and store its `reply` as an answer.

        Return False if the cost was above the reservation. Raises LedgerError if the call is unknown or
        closed.
        """
        return self._close(
            Settlement(reservation, cost_nanousd, reply, outcome, stated_nanousd=stated_nanousd)
        )

    def release(self, reservation: Reservation, outcome: str = "not_billed") -> None:
        """Cancel a reservation; only for a call that cannot have been billed."""
        self._close(Settlement(reservation, 0, None, outcome, "released"))

    def _close(self, close: Settlement) -> bool:
        done = self.apply(closes=[close])[0][0]
        if isinstance(done, LedgerError):
            raise done
        return done

    def write_off_stale(self, older_than_s: float) -> int:
        """Book intents open for longer than this as spent at their worst case; return how many.

        They are booked in the run and the day that made them. A later reply corrects the figure.
        """
        now = self._clock()
        stale = select(calls.c.id, calls.c.amount_nusd).where(IS_OPEN)
        batch = LedgerTransaction(now, "")
        with self._writing() as connection:
            late = stale.where(calls.c.opened_at < now - older_than_s).order_by(calls.c.id)
            found = [Reservation(row.id, row.amount_nusd) for row in connection.execute(late)]
            lost = [Settlement(each, None, None, "written_off", "written_off") for each in found]
            batch.run(connection, lost, ())
        return len(found)

    def has_usage(self, account: str) -> bool:
        """Return whether a reading of the account's usage is stored."""
        with self._reading() as connection:
            query = select(accounts.c.account).where(accounts.c.account == account)
            return connection.execute(query).first() is not None

    def calls_in_doubt(self, account: str, older_than_s: float) -> list[UnknownCharge]:
        """Return the calls of an account that are older than `older_than_s` and have no known price."""
        with self._reading() as connection:
            return calls_in_doubt(connection, account, self._clock() - older_than_s)

    def note_usage(self, account: str, usage_nanousd: int) -> None:
        """Store the total charge of an account, as the base of later reconciliation."""
        with self._writing() as connection:
            note_usage(connection, account, usage_nanousd)

    def reconcile(
        self,
        account: str,
        usage_nanousd: int | None,
        older_than_s: float,
        give_up_s: float = math.inf,
        billed: Mapping[UnknownCharge, int] | None = None,
    ) -> tuple[int, int]:
        """Book calls of unknown price at the most that the account's figures allow.

        Return how many, and by how much less they are booked, in nano-USD. `usage_nanousd` is the account's
        total charge, None if unknown; `billed` has prices looked up for single calls. Only calls older than
        `older_than_s` count; after `give_up_s` their worst case is their cost.
        """
        now = self._clock()
        proven: Sequence[Settlement] = ()
        paid = [doubt.close(nanousd, nanousd) for doubt, nanousd in (billed or {}).items()]
        with self._writing() as connection:
            LedgerTransaction(now, "").run(connection, paid, ())
            if usage_nanousd is not None:
                since = now - older_than_s, now - give_up_s
                proven = reconciling_closes(connection, account, usage_nanousd, *since)
                LedgerTransaction(now, "").run(connection, proven, ())
                note_usage(connection, account, usage_nanousd)
        done = [close for close in (*paid, *proven) if close.cost_nanousd != close.reservation.amount_nanousd]
        return len(done), sum(close.reservation.amount_nanousd - (close.cost_nanousd or 0) for close in done)

    def answer(self, request_key: str) -> str | None:
        """Return the stored reply of a request as JSON, None if it was never bought."""
        return self.answers_to([request_key]).get(request_key)

    def remember(self, replies: Iterable[TeacherReply]) -> None:
        """Store answers that were bought before, if the ledger lacks them; no cap is charged."""
        now = self._clock()
        rows = [
            {"request_key": r.request_key, "reply": dump_reply_json(r), "cost_nusd": 0, "created_at": now}
            for r in replies
        ]
        with self._writing() as connection:
            KEEP.run(connection, rows)

    def answers_to(self, request_keys: Sequence[str]) -> dict[str, str]:
        """Return the stored replies of these requests as JSON, by request key."""
        with self._reading() as connection:
            return {row.request_key: row.reply for row in rows_of(connection, ANSWERS, request_keys)}

    def paid_unreadable(self, request_keys: Sequence[str]) -> dict[str, int]:
        """Return the number of paid but unreadable answers by request key, over all runs."""
        with self._reading() as connection:
            found = rows_of(connection, _UNREADABLE, request_keys)
            return {row.request_key: row.calls for row in found}

    def forget(
        self, aliases: Mapping[str, str], holds: Callable[[str], bool], keep: Collection[str] = ()
    ) -> int:
        """Delete traces and texts; return how many answers were deleted.

        These are the answers bought for a trace in `aliases`, and any answer for whose JSON `holds` is
        true. Answers in `keep` belong to other traces too and stay unless `holds`. The cost stays booked,
        on the alias of the trace. Raises LedgerError.
        """
        with self._writing() as connection:
            deleted = forget_rows(connection, aliases, holds, frozenset(keep))
        self.compact()
        return deleted

    def compact(self) -> None:
        """Erase deleted bytes from a SQLite file and its log. Raises LedgerError."""
        compact_ledger(self._engine)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield every stored answer as request key and JSON."""
        with self._reading() as connection:
            for row in connection.execute(select(answers.c.request_key, answers.c.reply)).yield_per(500):
                yield row.request_key, row.reply

    def outcomes(self, run_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """Return the results of these runs' calls: number by teacher and outcome.

        An outcome is `answer` or a kind of failure. Every attempt counts.
        """
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

    def spent(self, run_id: str) -> RunSpending:
        """Return a run's spending over all its restarts. Raises LedgerError for an unknown run."""
        with self._reading() as connection:
            run = connection.execute(_RUN, {"key": run_id}).one_or_none()
            if run is None:
                raise LedgerError(
                    f"run {run_id!r} is not in the ledger", "a run that was opened in this ledger"
                )
            row = connection.execute(select(budgets).where(budgets.c.scope == f"run:{run_id}")).one_or_none()
            grouped = (
                select(calls.c.state, func.count().label("calls"))
                .where(calls.c.run_id == run_id)
                .group_by(calls.c.state)
            )
            states = {row.state: row.calls for row in connection.execute(grouped)}
        return RunSpending(
            settled_nanousd=row.settled_nusd if row else 0,
            reserved_nanousd=row.reserved_nusd if row else 0,
            cap_nanousd=run.max_total_nusd,
            calls=sum(states.values()),
            open_calls=states.get("open", 0),
            written_off=states.get("written_off", 0),
        )
