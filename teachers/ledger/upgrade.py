"""Upgrade a ledger of an earlier version in the transaction that opens it.

A step leads from one schema to the next and is never changed afterwards: plain SQL for SQLite and PostgreSQL
alike. To change the schema, change the tables in `schema.py`, raise `SCHEMA_VERSION` and add a step. New
columns need a default, since an earlier tracemill may still write without them.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import inspect
from sqlalchemy.engine import Connection

from tracemill.records.errors import LedgerError

_STEPS: Mapping[int, Sequence[str]] = {
    1: (
        "CREATE TABLE IF NOT EXISTS buyers (buyer TEXT NOT NULL PRIMARY KEY, host TEXT NOT NULL,"
        " pid BIGINT NOT NULL, started TEXT NOT NULL, seen_at DOUBLE PRECISION NOT NULL)",
        "ALTER TABLE calls ADD COLUMN buyer TEXT NOT NULL DEFAULT ''",
        "DROP INDEX IF EXISTS calls_by_state_time",
        "CREATE INDEX IF NOT EXISTS calls_open_by_key ON calls (request_key) WHERE state = 'open'",
        "CREATE INDEX IF NOT EXISTS calls_open_by_time ON calls (opened_at) WHERE state = 'open'",
    ),
    2: (
        "ALTER TABLE calls ADD COLUMN account TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE calls ADD COLUMN stated_nusd BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE calls ADD COLUMN bill_id TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX calls_in_doubt ON calls (account)"
        " WHERE state IN ('open', 'unproven', 'written_off') AND account <> ''",
        "CREATE INDEX calls_paid_in_vain ON calls (request_key)"
        " WHERE cost_nusd > 0 AND outcome IN ('empty', 'malformed')",
    ),
}
"""The statements that lead from a version to the next."""


def upgrade_ledger(connection: Connection, wanted: int) -> None:
    """Upgrade the ledger's tables to the schema `wanted`; leave an empty database alone.

    Raises LedgerError for a ledger of a later or unreadable version.
    """
    if not inspect(connection).has_table("meta"):
        return
    found = connection.exec_driver_sql("SELECT value FROM meta WHERE key = 'schema'").scalar()
    if found is None:
        return
    version = int(found) if str(found).isdecimal() else 0
    if version not in (*_STEPS, wanted):
        raise LedgerError(
            f"the ledger has schema version {found}",
            f"version {wanted}",
            "use the version of tracemill that wrote it",
        )
    for step in range(version, wanted):
        for statement in _STEPS[step]:
            connection.exec_driver_sql(statement)
    if version != wanted:
        connection.exec_driver_sql(f"UPDATE meta SET value = '{wanted}' WHERE key = 'schema'")
