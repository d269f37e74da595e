"""The one book of what was reserved, spent and bought; safe across processes and crashes.

A call is written as an intent, its worst case reserved against the caps of run, day and trace, before
it goes out; it is settled at its real cost in the same transaction that stores its answer. For every
scope, `settled + reserved + amount <= cap` held when an amount was granted. An intent whose process
died stays reserved in the run and the day that made it, until `write_off_stale` books it as spent
there. Nothing secret is stored: keys, ids, amounts, and redacted replies.

SQLite runs in WAL mode with `synchronous = NORMAL`: what is committed outlives the process; a power cut
may lose the last transactions.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.engine import URL, Connection, Row
from sqlalchemy.exc import SQLAlchemyError

from records.errors import LedgerError
from records.reply import TeacherReply
from teachers.ledger_entries import Bought, Denied, Intent, Reservation, Spent
from teachers.ledger_forget import compact, forget_rows
from teachers.ledger_schema import answers, budgets, calls, insert_or_ignore, open_database, runs
from teachers.reply_json import dump_reply

_NO_CAP = 2**62
_LOOKUP_KEYS = 500

_ANSWER = select(answers.c.reply).where(answers.c.request_key == bindparam("key"))
_RUN = select(runs).where(runs.c.run_id == bindparam("key"))
_CALL = select(calls).where(calls.c.id == bindparam("of_id")).with_for_update()
_CLOSE = update(calls).where(calls.c.id == bindparam("of_id"))
_OPEN = insert(calls)
_TAKE = (
    update(budgets)
    .where(budgets.c.scope == bindparam("of_scope"))
    .where(budgets.c.settled_nusd + budgets.c.reserved_nusd + bindparam("amount") <= bindparam("cap"))
    .values(reserved_nusd=budgets.c.reserved_nusd + bindparam("amount"))
)
_MOVE = (
    update(budgets)
    .where(budgets.c.scope == bindparam("of_scope"))
    .values(
        reserved_nusd=budgets.c.reserved_nusd - bindparam("freed"),
        settled_nusd=budgets.c.settled_nusd + bindparam("spent"),
    )
)


class _Refused(Exception):
    """Carries a denial out of the transaction, which is rolled back."""

    def __init__(self, denied: Denied) -> None:
        super().__init__(denied.scope)
        self.denied = denied


def _scopes(day: str, run_id: str, trace_id: str) -> dict[str, str]:
    """Budget rows of a call, always in one order, so that two writers never wait for each other."""
    return {"day": f"day:{day}", "run": f"run:{run_id}", "trace": f"trace:{trace_id}"}


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

    def close(self) -> None:
        """Gives the connections back."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger could not be written ({type(error).__name__})") from error

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._reader.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger could not be read ({type(error).__name__})") from error

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

    def reserve(self, intent: Intent) -> Reservation | Denied | Bought:
        """Writes the intent and reserves its amount in run, day and trace, or says why not.

        Raises LedgerError where the run was not opened.
        """
        day = datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
        try:
            with self._writing() as connection:
                return self._reserve(connection, intent, day)
        except _Refused as refused:
            return refused.denied

    def _reserve(self, connection: Connection, intent: Intent, day: str) -> Reservation | Bought:
        reply = connection.execute(_ANSWER, {"key": intent.request_key}).scalar_one_or_none()
        if reply is not None:
            return Bought(reply)
        run = connection.execute(_RUN, {"key": intent.run_id}).one_or_none()
        if run is None:
            raise LedgerError(f"the run {intent.run_id!r} was never opened in this ledger")
        caps = {"day": run.max_day_nusd, "run": run.max_total_nusd, "trace": run.max_trace_nusd}
        for kind, scope in _scopes(day, intent.run_id, intent.trace_id).items():
            self._take(
                connection, kind, scope, _NO_CAP if caps[kind] is None else caps[kind], intent.amount_nusd
            )
        result = connection.execute(_OPEN, self._call_row(intent, day))
        key = result.inserted_primary_key
        if key is None:
            raise LedgerError("the ledger gave no id for a call")
        return Reservation(int(key[0]), intent.amount_nusd)

    def _call_row(self, intent: Intent, day: str) -> dict[str, object]:
        return {
            "run_id": intent.run_id,
            "trace_id": intent.trace_id,
            "step_id": intent.step_id,
            "teacher": intent.teacher,
            "request_key": intent.request_key,
            "day": day,
            "amount_nusd": intent.amount_nusd,
            "state": "open",
            "opened_at": self._clock(),
        }

    @staticmethod
    def _take(connection: Connection, kind: str, scope: str, cap: int, amount: int) -> None:
        """Adds `amount` to what is reserved in one scope. Raises _Refused where the cap is in the way."""
        values = {"of_scope": scope, "amount": amount, "cap": cap}
        if connection.execute(_TAKE, values).rowcount:
            return
        insert_or_ignore(connection, budgets, {"scope": scope, "settled_nusd": 0, "reserved_nusd": 0})
        if connection.execute(_TAKE, values).rowcount:
            return
        row = connection.execute(select(budgets).where(budgets.c.scope == scope)).one()
        raise _Refused(Denied(kind, cap, row.settled_nusd, row.reserved_nusd, amount))

    def settle(
        self,
        reservation: Reservation,
        cost_nusd: int | None,
        reply: str | None = None,
        outcome: str = "answer",
    ) -> bool:
        """Books what a call cost, None for "the worst case", and stores its `reply` as an answer.

        Gives False where the cost was above the reservation: it is counted all the same, and the
        bound it broke can no longer be trusted, so the caller stops.
        """
        cost = reservation.amount_nusd if cost_nusd is None else cost_nusd
        with self._writing() as connection:
            call = self._close(connection, reservation.call_id, cost, "settled", outcome)
            if reply is not None:
                insert_or_ignore(connection, answers, self._answer_row(call.request_key, reply, cost))
        return cost <= reservation.amount_nusd

    def _answer_row(self, request_key: str, reply: str, cost_nusd: int) -> dict[str, object]:
        return {
            "request_key": request_key,
            "reply": reply,
            "cost_nusd": cost_nusd,
            "created_at": self._clock(),
        }

    def release(self, reservation: Reservation, outcome: str = "not_billed") -> None:
        """Gives a reservation back; only for a call that cannot have been billed."""
        with self._writing() as connection:
            self._close(connection, reservation.call_id, 0, "released", outcome)

    def _close(self, connection: Connection, call_id: int, cost: int, state: str, outcome: str) -> Row[tuple]:
        """Moves a call's amount from reserved to settled at `cost`; one that was written off meanwhile
        is corrected. Raises LedgerError where it is closed already."""
        call = connection.execute(_CALL, {"of_id": call_id}).one_or_none()
        if call is None or call.state in ("settled", "released"):
            raise LedgerError(f"call {call_id} is {'unknown' if call is None else 'closed already'}")
        was_open = call.state == "open"
        freed, spent = (call.amount_nusd, cost) if was_open else (0, cost - call.amount_nusd)
        scopes = _scopes(call.day, call.run_id, call.trace_id).values()
        connection.execute(_MOVE, [{"of_scope": scope, "freed": freed, "spent": spent} for scope in scopes])
        closed = {"state": state, "cost_nusd": cost, "outcome": outcome, "closed_at": self._clock()}
        connection.execute(_CLOSE, {"of_id": call_id, **closed})
        return call

    def write_off_stale(self, older_than_s: float) -> int:
        """Books intents left open for longer than this as spent, at their worst case, in the run and
        the day that made them; gives how many. A reply that comes later corrects the figure."""
        before = self._clock() - older_than_s
        stale = select(calls.c.id, calls.c.amount_nusd).where(calls.c.state == "open")
        with self._writing() as connection:
            rows = connection.execute(stale.where(calls.c.opened_at < before).order_by(calls.c.id)).all()
            for row in rows:
                self._close(connection, row.id, row.amount_nusd, "written_off", "written_off")
        return len(rows)

    def answer(self, request_key: str) -> str | None:
        """The stored reply of a request as JSON, None where it was never bought."""
        return self.answers_to([request_key]).get(request_key)

    def remember(self, replies: Iterable[TeacherReply]) -> None:
        """Stores answers that were bought before, where it has none: for a ledger that was lost. Costs
        nothing and counts against no cap."""
        rows = [self._answer_row(reply.request_key, dump_reply(reply), 0) for reply in replies]
        with self._writing() as connection:
            for row in rows:
                insert_or_ignore(connection, answers, row)

    def answers_to(self, request_keys: Sequence[str]) -> dict[str, str]:
        """The stored replies of those requests that were bought, by key."""
        found: dict[str, str] = {}
        with self._reading() as connection:
            for start in range(0, len(request_keys), _LOOKUP_KEYS):
                keys = request_keys[start : start + _LOOKUP_KEYS]
                query = select(answers.c.request_key, answers.c.reply).where(answers.c.request_key.in_(keys))
                found.update({row.request_key: row.reply for row in connection.execute(query)})
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
        compact(self._engine)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every stored answer as request key and JSON."""
        with self._reading() as connection:
            for row in connection.execute(select(answers.c.request_key, answers.c.reply)).yield_per(500):
                yield row.request_key, row.reply

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
