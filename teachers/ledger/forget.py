"""Delete text from the ledger while the money stays booked."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import orjson
from sqlalchemy import delete, func, select, update
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.schema import answers, budgets, calls

_AT_ONCE = 500


def forget_rows(
    connection: Connection, aliases: Mapping[str, str], holds: Callable[[str], bool], keep: frozenset[str]
) -> int:
    """Delete the answers of the traces in `aliases` and those for which `holds`; return how many.

    The cost of the traces is booked on their aliases. Answers in `keep` are deleted only if `holds` is true
    for them.
    """
    doomed = set(_keys_of(connection, list(aliases))) - keep
    renamed: dict[str, str] = {}
    for row in connection.execute(select(answers.c.request_key, answers.c.reply)).yield_per(_AT_ONCE):
        if holds(row.reply):
            doomed.add(row.request_key)
        elif trace_of_forgotten_answer(row.reply) in aliases:
            renamed[row.request_key] = row.reply
    for key in renamed.keys() - keep:
        doomed.add(key)
    for start in range(0, len(doomed), _AT_ONCE):
        keys = sorted(doomed)[start : start + _AT_ONCE]
        connection.execute(delete(answers).where(answers.c.request_key.in_(keys)))
    for key in renamed.keys() & keep:
        text = _with_aliases(renamed[key], aliases)
        connection.execute(update(answers).where(answers.c.request_key == key).values(reply=text))
    for trace_id, alias in aliases.items():
        _rename(connection, trace_id, alias)
    return len(doomed)


def trace_of_forgotten_answer(text: str) -> str:
    """Return the trace an answer was bought for, from its JSON; "" if it names none."""
    try:
        return str(orjson.loads(text)["step_id"]).rsplit(":", 2)[0]
    except (ValueError, KeyError, TypeError):
        return ""


def _keys_of(connection: Connection, trace_ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(trace_ids), _AT_ONCE):
        some = trace_ids[start : start + _AT_ONCE]
        bought = select(calls.c.request_key).join(answers, answers.c.request_key == calls.c.request_key)
        yield from connection.execute(bought.where(calls.c.trace_id.in_(some))).scalars()


def _with_aliases(text: str, aliases: Mapping[str, str]) -> str:
    for trace_id, alias in aliases.items():
        text = text.replace(trace_id, alias)
    return text


def _rename(connection: Connection, trace_id: str, alias: str) -> None:
    """Rename a trace in its calls and budget together, so that an open call can still be settled."""
    step = func.replace(calls.c.step_id, trace_id, alias)
    connection.execute(update(calls).where(calls.c.trace_id == trace_id).values(trace_id=alias, step_id=step))
    scope = f"trace:{trace_id}"
    connection.execute(update(budgets).where(budgets.c.scope == scope).values(scope=f"trace:{alias}"))


def compact_ledger(engine: Engine) -> None:
    """Rewrite a SQLite file and truncate its log, so that deleted bytes are gone from both.

    Other databases are left alone. Raises LedgerError where another process keeps the file busy.
    """
    if engine.dialect.name != "sqlite":
        return
    connection = None
    try:
        connection = engine.raw_connection()
        cursor = connection.cursor()
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.execute("VACUUM")
        busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        cursor.close()
    except (SQLAlchemyError, OSError, engine.dialect.loaded_dbapi.Error) as error:
        raise LedgerError(
            f"the ledger could not be compacted ({type(error).__name__})",
            "no other process on it, and room for a copy",
            "run the command again",
        ) from error
    finally:
        if connection is not None:
            connection.close()
    if busy and busy[0]:
        raise LedgerError(
            "the ledger's log could not be emptied", "no other process on it", "run the command again"
        )
