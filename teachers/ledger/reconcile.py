"""What nobody said the price of, held against what the account was charged.

Between two looks at an account its usage grew by what it was charged. What its provider stated of calls that
went out after the first look and came home before the second is a part of that; what calls in doubt cost
is at most the rest. A part that others spent with the same key makes the rest larger: never is too little
booked. What came home lately is not counted: the account's figure may lag behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import Connection

from tracemill.teachers.ledger.entries import Close, Reservation
from tracemill.teachers.ledger.schema import IN_DOUBT, accounts, calls

RECONCILED = "reconciled"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call whose price nobody said: what is booked or held for it, and the id of its answer, if known."""

    call_id: int
    booked_nusd: int
    bill_id: str
    opened_at: float

    def close(self, cost_nusd: int, stated_nusd: int = 0) -> Close:
        """Return what books another cost for it."""
        reservation = Reservation(self.call_id, self.booked_nusd)
        return Close(reservation, cost_nusd, None, RECONCILED, RECONCILED, stated_nusd)


def calls_in_doubt(connection: Connection, account: str, before: float) -> list[Doubt]:
    """Return the calls in doubt of an account that went out before a time, oldest first."""
    query = select(calls).where(IN_DOUBT, calls.c.account == account, calls.c.opened_at < before)
    rows = connection.execute(query.order_by(calls.c.id))
    return [Doubt(row.id, row.amount_nusd, row.bill_id, row.opened_at) for row in rows]


def reconciling_closes(
    connection: Connection, account: str, usage_nusd: int, before: float, give_up_before: float
) -> Sequence[Close]:
    """Return what books the calls in doubt that went out before a time at what the account's usage proves.

    Each is booked at all that may have been charged for any of them: they may be of several runs, and no cap
    may be told less than was spent. Those for which that is no less than their worst case stay in doubt until
    they are older than `give_up_before`; then the worst case is their cost.
    """
    look = connection.execute(select(accounts).where(accounts.c.account == account)).one_or_none()
    if look is None:
        return []
    doubts = [each for each in calls_in_doubt(connection, account, before) if each.call_id > look.last_call]
    known = select(func.coalesce(func.sum(calls.c.stated_nusd), 0), func.count()).where(
        calls.c.account == account,
        calls.c.id > look.last_call,
        calls.c.closed_at < before,
        calls.c.stated_nusd > 0,
    )
    stated, rounded_up = connection.execute(known).one()
    rest = usage_nusd - look.usage_nusd - int(stated) + rounded_up
    if rest < 0:  # the account has not heard of all of it yet
        return []
    closes = [each.close(rest) for each in doubts if rest < each.booked_nusd]
    old = [each for each in doubts if rest >= each.booked_nusd and each.opened_at < give_up_before]
    return [*closes, *(each.close(each.booked_nusd) for each in old)]


def note_usage(connection: Connection, account: str, usage_nusd: int) -> None:
    """Keep a look at an account to reckon the calls from that go out from now on; where calls are in doubt
    the earlier look is needed, and stays."""
    doubt = select(calls.c.id).where(IN_DOUBT, calls.c.account == account).limit(1)
    known = connection.execute(select(accounts.c.account).where(accounts.c.account == account)).scalar()
    if known is not None and connection.execute(doubt).first() is not None:
        return
    connection.execute(delete(accounts).where(accounts.c.account == account))
    last_call = connection.execute(select(func.coalesce(func.max(calls.c.id), 0))).scalar_one()
    row = {"account": account, "usage_nusd": usage_nusd, "last_call": last_call}
    connection.execute(insert(accounts), row)
