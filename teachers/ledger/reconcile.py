"""Reconcile calls of unknown price with what their account was charged.

Between two readings an account's usage grew by what it was charged. Subtract what its provider stated for
calls in between; the calls in doubt cost at most the rest. Spending by others with the same key makes the
rest larger, so never too little is booked. Recent calls are left out: the account's figure may lag behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import Connection

from tracemill.teachers.ledger.entries import Reservation, Settlement
from tracemill.teachers.ledger.schema import IN_DOUBT, accounts, calls

RECONCILED = "reconciled"


@dataclass(frozen=True, slots=True)
class UnknownCharge:
    """A call of unknown price: its booked or reserved amount, and the id of its answer."""

    call_id: int
    booked_nanousd: int
    bill_id: str
    opened_at: float

    def close(self, cost_nanousd: int, stated_nanousd: int = 0) -> Settlement:
        """Return the settlement that books another cost for it."""
        reservation = Reservation(self.call_id, self.booked_nanousd)
        return Settlement(reservation, cost_nanousd, None, RECONCILED, RECONCILED, stated_nanousd)


def calls_in_doubt(connection: Connection, account: str, before: float) -> list[UnknownCharge]:
    """Return the calls of unknown price of an account that went out before a time, oldest first."""
    query = select(calls).where(IN_DOUBT, calls.c.account == account, calls.c.opened_at < before)
    rows = connection.execute(query.order_by(calls.c.id))
    return [UnknownCharge(row.id, row.amount_nusd, row.bill_id, row.opened_at) for row in rows]


def reconciling_closes(
    connection: Connection, account: str, usage_nanousd: int, before: float, give_up_before: float
) -> Sequence[Settlement]:
    """Return settlements of the calls in doubt, at the most that the account's usage proves.

    Each is booked at the highest charge possible for any of them, since they may belong to several runs.
    Calls for which this is no less than their worst case stay in doubt until they are older than
    `give_up_before`; then the worst case is their cost.
    """
    reading = connection.execute(select(accounts).where(accounts.c.account == account)).one_or_none()
    if reading is None:
        return []
    doubts = [
        each for each in calls_in_doubt(connection, account, before) if each.call_id > reading.last_call
    ]
    known = select(func.coalesce(func.sum(calls.c.stated_nusd), 0), func.count()).where(
        calls.c.account == account,
        calls.c.id > reading.last_call,
        calls.c.closed_at < before,
        calls.c.stated_nusd > 0,
    )
    stated, rounded_up = connection.execute(known).one()
    rest = usage_nanousd - reading.usage_nusd - int(stated) + rounded_up
    if rest < 0:  # the account's figure lags behind
        return []
    closes = [each.close(rest) for each in doubts if rest < each.booked_nanousd]
    old = [each for each in doubts if rest >= each.booked_nanousd and each.opened_at < give_up_before]
    return [*closes, *(each.close(each.booked_nanousd) for each in old)]


def note_usage(connection: Connection, account: str, usage_nanousd: int) -> None:
    """Store an account's usage, the base for pricing later calls.

    While calls are in doubt the earlier reading is kept, since it is needed for them.
    """
    doubt = select(calls.c.id).where(IN_DOUBT, calls.c.account == account).limit(1)
    known = connection.execute(select(accounts.c.account).where(accounts.c.account == account)).scalar()
    if known is not None and connection.execute(doubt).first() is not None:
        return
    connection.execute(delete(accounts).where(accounts.c.account == account))
    last_call = connection.execute(select(func.coalesce(func.max(calls.c.id), 0))).scalar_one()
    row = {"account": account, "usage_nusd": usage_nanousd, "last_call": last_call}
    connection.execute(insert(accounts), row)
