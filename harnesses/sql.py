"""Statements of SQL, read as far as comparing and sorting them needs.

Parsed by sqlglot (MIT) in the dialect of MySQL, which reads what SQLite and PostgreSQL share with it.
"""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from harnesses.vocabulary import Operation

if TYPE_CHECKING:
    from sqlglot import exp

_DIALECT = "mysql"
_LOOKS = re.compile(r"\s*(?:show|desc|describe|explain|pragma|use)\b", re.IGNORECASE)
_QUERIES = re.compile(r"[\s(]*(?:select|with|values|table)\b", re.IGNORECASE)
_CATALOGUE = re.compile(r"\b(?:information_schema|sqlite_master|sqlite_schema|pg_catalog)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in normal form: its `text`, the `tables` it names, and all `names` of tables and columns,
    both in lower case."""

    text: str
    tables: frozenset[str]
    names: frozenset[str]


def sql_operation(text: str) -> Operation:
    """LIST for a look at the catalogue, READ for a query, EDIT for anything that writes."""
    if _LOOKS.match(text) or (_QUERIES.match(text) and _CATALOGUE.search(text)):
        return Operation.LIST
    return Operation.READ if _QUERIES.match(text) else Operation.EDIT


@lru_cache(maxsize=4096)
def sql_form(text: str) -> Statement | None:
    """One statement in normal form; None where it cannot be read or is not one.

    Spelling goes: case of keywords and names, quotes, aliases of tables and of columns nobody refers to,
    `ASC`, comments. The order of columns, conditions and tables stays.
    """
    tree = _parsed(text)
    if tree is None:
        return None
    from sqlglot import exp

    tables = {table.name.lower() for table in tree.find_all(exp.Table) if table.name}
    columns = {column.name.lower() for column in tree.find_all(exp.Column) if column.name}
    _unalias(tree)
    written = tree.sql(dialect=_DIALECT, normalize=True, comments=False)
    return Statement(" ".join(written.split()), frozenset(tables), frozenset(tables | columns) - {"*"})


def _parsed(text: str) -> "exp.Expr | None":
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    noisy = logging.getLogger("sqlglot")
    level = noisy.level
    noisy.setLevel(logging.CRITICAL)
    try:
        found = [tree for tree in sqlglot.parse(text.strip().rstrip(";"), dialect=_DIALECT) if tree]
    except (SqlglotError, RecursionError, ValueError):
        return None
    finally:
        noisy.setLevel(level)
    if len(found) != 1 or isinstance(found[0], exp.Command | exp.Alias | exp.Column):
        return None
    return found[0]


def _unalias(tree: "exp.Expr") -> None:
    from sqlglot import exp

    tables = list(tree.find_all(exp.Table))
    real = {table.alias_or_name.lower(): table.name for table in tables}
    columns = list(tree.find_all(exp.Column))
    referred = {column.name.lower() for column in columns}
    for column in columns:
        if column.table:
            name = real.get(column.table.lower(), column.table)
            column.set("table", None if len(tables) == 1 else exp.to_identifier(name))
    if len({table.name.lower() for table in tables}) == len(tables):
        for table in tables:
            table.set("alias", None)
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_bare(each, referred) for each in select.expressions])
    for ordered in tree.find_all(exp.Ordered):
        if not ordered.args.get("desc"):
            ordered.set("desc", None)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", False)


def _bare(selected: "exp.Expr", referred: set[str]) -> "exp.Expr":
    from sqlglot import exp

    if isinstance(selected, exp.Alias) and selected.alias.lower() not in referred:
        return selected.this
    return selected
