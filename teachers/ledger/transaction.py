"""Settle many calls and grant many intents in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, insert, select
from sqlalchemy.engine import Connection, Row

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.bulk_rows import BOOK, CLOSE, KEEP, OPEN_BUDGETS
from tracemill.teachers.ledger.claims import ClaimHolder, open_elsewhere
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    DeniedReservation,
    Grant,
    InFlightElsewhere,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.schema import answers, budgets, calls, runs

_NO_CAP = 2**62
_IN = 500

ANSWERS = select(answers.c.request_key, answers.c.reply).where(
    answers.c.request_key.in_(bindparam("keys", expanding=True))
)
_RUNS = select(runs).where(runs.c.run_id.in_(bindparam("keys", expanding=True)))
_CALLS = select(calls).where(calls.c.id.in_(bindparam("keys", expanding=True)))
_BUDGETS = select(budgets).where(budgets.c.scope.in_(bindparam("keys", expanding=True)))
_ELSEWHERE = open_elsewhere(bindparam("keys", expanding=True), bindparam("me"))
_OPEN = insert(calls).returning(calls.c.id, sort_by_parameter_order=True)


def budget_scopes(day: str, run_id: str, trace_id: str) -> dict[str, str]:
    """Return the budget rows of a call by kind of cap."""
    return {"day": f"day:{day}", "run": f"run:{run_id}", "trace": f"trace:{trace_id}"}


@dataclass(slots=True)
class _Scope:
    """One budget row, and what this transaction adds to it."""

    settled: int = 0
    reserved: int = 0
    more_settled: int = 0
    more_reserved: int = 0

    def move(self, freed: int, spent: int) -> None:
        """Move an amount out of `reserved` and another into `settled`."""
        self.more_reserved -= freed
        self.more_settled += spent

    @property
    def taken(self) -> tuple[int, int]:
        """Return settled and reserved with this transaction's changes, in nano-USD."""
        return self.settled + self.more_settled, self.reserved + self.more_reserved


@dataclass(slots=True)
class LedgerTransaction:
    """The work of one transaction.

    `closed` has for every settlement whether its cost was within the reservation, or its error; `grants`
    has the decision on every intent. Without a `buyer` no replay waits for another.
    """

    now: float
    day: str
    buyer: ClaimHolder | None = None
    closed: list[bool | LedgerError] = field(default_factory=list)
    grants: list[Grant | InFlightElsewhere] = field(default_factory=list)
    _held: set[str] = field(default_factory=set)
    _scopes: dict[str, _Scope] = field(default_factory=dict)
    _answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    _full: set[tuple[str, str]] = field(default_factory=set)

    def run(
        self, connection: Connection, closes: Sequence[Settlement], intents: Sequence[PlannedCall]
    ) -> None:
        """Book the settlements, then decide the intents in order; write everything that changed.

        Raises LedgerError if an intent names a run that was never opened.
        """
        of_calls = {
            row.id: row for row in rows_of(connection, _CALLS, [c.reservation.call_id for c in closes])
        }
        opened = {row.run_id: row for row in rows_of(connection, _RUNS, [i.run_id for i in intents])}
        bought = rows_of(connection, ANSWERS, [intent.request_key for intent in intents])
        replies = {row.request_key: row.reply for row in bought}
        for intent in intents:
            if intent.run_id not in opened:
                raise LedgerError(
                    f"run {intent.run_id!r} is not in the ledger", "a run that was opened in this ledger"
                )
        self._load(connection, of_calls.values(), intents)
        self._look_elsewhere(connection, intents)
        closing = [row for close in closes if (row := self._close(of_calls, close)) is not None]
        here = {key: str(row["reply"]) for key, row in self._answers.items()}
        replies = here | replies  # of two answers the one that was booked first stays
        opening = [row for intent in intents if (row := self._grant(opened, replies, intent)) is not None]
        self._write(connection, closing, opening)

    def _look_elsewhere(self, connection: Connection, intents: Sequence[PlannedCall]) -> None:
        """Find requests in flight in other replays, and renew this replay's heartbeat."""
        if self.buyer is not None:
            keys = [intent.request_key for intent in intents]
            self._held = self.buyer.held(rows_of(connection, _ELSEWHERE, keys, me=self.buyer.name), self.now)
            self.buyer.beat(connection, self.now)

    def _load(
        self, connection: Connection, of_calls: Iterable[Row[Any]], intents: Sequence[PlannedCall]
    ) -> None:
        """Read every affected budget row and create missing ones."""
        names = {name for c in of_calls for name in budget_scopes(c.day, c.run_id, c.trace_id).values()}
        names |= {name for i in intents for name in budget_scopes(self.day, i.run_id, i.trace_id).values()}
        for row in rows_of(connection, _BUDGETS, sorted(names)):
            self._scopes[row.scope] = _Scope(row.settled_nusd, row.reserved_nusd)
        missing = sorted(names - self._scopes.keys())
        OPEN_BUDGETS.run(connection, [{"scope": name} for name in missing])
        self._scopes |= {name: _Scope() for name in missing}

    def _close(self, of_calls: dict[int, Any], close: Settlement) -> dict[str, Any] | None:
        """Move a call's amount from reserved to settled; correct one that was written off."""
        call = of_calls.pop(close.reservation.call_id, None)
        if call is None or not _may_close(call.state, close.state):
            what = "not in the ledger" if call is None else "closed already"
            self.closed.append(LedgerError(f"call {close.reservation.call_id} is {what}", "an open call"))
            return None
        cost = close.reservation.amount_nanousd if close.cost_nanousd is None else close.cost_nanousd
        was_open = call.state == "open"
        freed, spent = (call.amount_nusd, cost) if was_open else (0, cost - call.cost_nusd)
        for name in budget_scopes(call.day, call.run_id, call.trace_id).values():
            self._scopes[name].move(freed, spent)
        if close.reply is not None:
            row = {"reply": close.reply, "cost_nusd": cost, "created_at": self.now}
            self._answers.setdefault(call.request_key, {"request_key": call.request_key, **row})
        self.closed.append(cost <= close.reservation.amount_nanousd)
        in_doubt = close.cost_nanousd is None and close.state == "settled"
        return {
            "of_id": call.id,
            "state": "unproven" if in_doubt else close.state,
            "cost_nusd": cost,
            "stated_nusd": close.stated_nanousd,
            "bill_id": close.bill_id,
            "outcome": close.outcome,
            "closed_at": self.now,
        }

    def _grant(
        self, opened: Mapping[str, Any], replies: Mapping[str, str], intent: PlannedCall
    ) -> dict[str, Any] | None:
        """Reserve an intent in its scopes and return the row of its call, or record a denial.

        After a denial by run or day no other intent of that run is granted, so that cheap calls do not
        overtake.
        """
        if intent.request_key in replies:
            self.grants.append(CachedAnswer(replies[intent.request_key]))
            return None
        if intent.request_key in self._held:
            self.grants.append(InFlightElsewhere())
            return None
        run = opened[intent.run_id]
        caps = {"day": run.max_day_nusd, "run": run.max_total_nusd, "trace": run.max_trace_nusd}
        names = budget_scopes(self.day, intent.run_id, intent.trace_id)
        for kind, name in names.items():
            cap = _NO_CAP if caps[kind] is None else caps[kind]
            settled, reserved = self._scopes[name].taken
            full = (kind, intent.run_id) in self._full
            kept = 0 if kind == "trace" else intent.leave_nanousd
            wanted = intent.amount_nanousd + kept
            if full or settled + reserved + wanted > cap:
                self.grants.append(DeniedReservation(kind, cap, settled, reserved, wanted, kept))
                if kind != "trace":
                    self._full.add((kind, intent.run_id))
                return None
        for name in names.values():
            self._scopes[name].move(-intent.amount_nanousd, 0)
        self.grants.append(Reservation(0, intent.amount_nanousd))
        return {
            "run_id": intent.run_id,
            "trace_id": intent.trace_id,
            "step_id": intent.step_id,
            "teacher": intent.teacher,
            "request_key": intent.request_key,
            "buyer": "" if self.buyer is None else self.buyer.name,
            "account": intent.account,
            "day": self.day,
            "amount_nusd": intent.amount_nanousd,
            "state": "open",
            "opened_at": self.now,
        }

    def _write(
        self, connection: Connection, closing: Sequence[dict[str, Any]], opening: Sequence[dict[str, Any]]
    ) -> None:
        moves = [
            {"of_scope": name, "settled": scope.more_settled, "reserved": scope.more_reserved}
            for name, scope in sorted(self._scopes.items())
            if scope.more_settled or scope.more_reserved
        ]
        BOOK.run(connection, moves)
        CLOSE.run(connection, closing)
        KEEP.run(connection, list(self._answers.values()))
        if opening:
            ids = iter(connection.execute(_OPEN, opening).scalars().all())
            self.grants = [
                Reservation(next(ids), grant.amount_nanousd) if isinstance(grant, Reservation) else grant
                for grant in self.grants
            ]


def _may_close(state: str, wanted: str) -> bool:
    """Return whether a call may be booked.

    It may be open, booked without an answer, or in doubt with a figure from the account.
    """
    return state in ("open", "written_off", "reconciled") or (state, wanted) == ("unproven", "reconciled")


def rows_of(connection: Connection, query: Any, keys: Sequence[Any], **given: str) -> list[Row[Any]]:
    """Return the rows of an `IN` query, read in blocks of keys."""
    unique = list(dict.fromkeys(keys))
    found: list[Row[Any]] = []
    for start in range(0, len(unique), _IN):
        found += connection.execute(query, {"keys": unique[start : start + _IN], **given}).all()
    return found
