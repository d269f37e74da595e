"""Write many rows at once: row by row on SQLite, in one statement on PostgreSQL.

On PostgreSQL each statement would be a round trip while every other writer waits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Insert, TextClause, Update, bindparam, text, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection

from tracemill.teachers.ledger.schema import answers, budgets, calls


@dataclass(frozen=True, slots=True)
class BulkStatement:
    """A statement that takes many rows, for SQLite and for PostgreSQL."""

    row_by_row: Insert | Update
    at_once: TextClause

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows, which all have the same keys; do nothing without rows."""
        if not rows:
            return
        if connection.dialect.name == "postgresql":
            connection.execute(self.at_once, {"rows": orjson.dumps(rows).decode()})
        else:
            connection.execute(self.row_by_row, rows)


def _at_once(statement: str, columns: str) -> TextClause:
    """Return PostgreSQL's statement over `v`, the table of all rows with typed columns."""
    return text(statement.format(v=f"json_to_recordset(CAST(:rows AS json)) AS v({columns})"))


OPEN_BUDGETS = BulkStatement(
    sqlite.insert(budgets).values(settled_nusd=0, reserved_nusd=0).on_conflict_do_nothing(),
    _at_once("INSERT INTO budgets SELECT scope, 0, 0 FROM {v} ON CONFLICT DO NOTHING", "scope text"),
)
"""Inserts missing budgets, by `scope`."""

BOOK = BulkStatement(
    update(budgets)
    .where(budgets.c.scope == bindparam("of_scope"))
    .values(
        settled_nusd=budgets.c.settled_nusd + bindparam("settled"),
        reserved_nusd=budgets.c.reserved_nusd + bindparam("reserved"),
    ),
    _at_once(
        "UPDATE budgets SET settled_nusd = settled_nusd + settled, reserved_nusd = reserved_nusd + reserved"
        " FROM {v} WHERE scope = of_scope",
        "of_scope text, settled bigint, reserved bigint",
    ),
)
"""Adds `settled` and `reserved` to the budget `of_scope`."""

CLOSE = BulkStatement(
    update(calls).where(calls.c.id == bindparam("of_id")),
    _at_once(
        "UPDATE calls SET state = v.state, cost_nusd = v.cost_nusd, outcome = v.outcome,"
        " stated_nusd = v.stated_nusd, bill_id = v.bill_id, closed_at = v.closed_at"
        " FROM {v} WHERE id = of_id",
        "of_id bigint, state text, cost_nusd bigint, stated_nusd bigint, bill_id text, outcome text,"
        " closed_at float8",
    ),
)
"""Closes the call `of_id`."""

KEEP = BulkStatement(
    sqlite.insert(answers).on_conflict_do_nothing(),
    _at_once(
        "INSERT INTO answers (request_key, reply, cost_nusd, created_at)"
        " SELECT request_key, reply, cost_nusd, created_at FROM {v} ON CONFLICT DO NOTHING",
        "request_key text, reply text, cost_nusd bigint, created_at float8",
    ),
)
"""Inserts bought answers; the first one of a request stays."""
