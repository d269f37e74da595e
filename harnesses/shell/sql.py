"""Parse SQL statements, as far as comparing and classifying them needs.

sqlglot (MIT) parses the dialect of MySQL, which covers the syntax shared with SQLite and PostgreSQL.
"""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracemill.harnesses.core.vocabulary import Operation

if TYPE_CHECKING:
    from sqlglot import exp

_DIALECT = "mysql"
_LOOKS = re.compile(r"\s*(?:show|desc|describe|explain|pragma|use)\b", re.IGNORECASE)
_QUERIES = re.compile(r"[\s(]*(?:select|with|values|table)\b", re.IGNORECASE)
_COMMENT = re.compile(r"--|#|/\*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\s+""", re.DOTALL)
_COMPARED = re.compile(r"(?:[=<>]|\b(?:like|ilike|regexp|rlike)|\bin\s*\((?:[^()]*,)?)\s*\Z", re.IGNORECASE)
_CATALOGUE = re.compile(r"\b(?:information_schema|sqlite_master|sqlite_schema|pg_catalog)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A statement in normal form, with the `tables` it names and all `names` of tables and columns.

    Names are in lower case. Statements with equal `asks` give the same rows, with more or fewer columns;
    `effect` is equal where the columns are the same too, in any order. `double_quoted` is the content of
    double quotes, which may be text (MySQL) or a name (PostgreSQL).
    """

    text: str
    tables: frozenset[str]
    names: frozenset[str]
    asks: tuple[str, ...] = ()
    effect: tuple[str, ...] = ()
    double_quoted: tuple[str, ...] = ()


def sql_operation(text: str) -> Operation:
    """Return LIST for a query of the catalogue, READ for other queries, EDIT for statements that write."""
    if _LOOKS.match(text) or (_QUERIES.match(text) and _CATALOGUE.search(text)):
        return Operation.LIST
    return Operation.READ if _QUERIES.match(text) else Operation.EDIT


@lru_cache(maxsize=4096)
def sql_form(text: str) -> SqlStatement | None:
    """Return one statement in normal form, None if it cannot be parsed or is not a single statement.

    Removed are case of keywords and names, quotes, unused aliases, `ASC` and comments; the order of columns,
    conditions and tables stays.
    """
    tree = _parsed(text)
    if tree is None:
        return None
    from sqlglot import exp

    tables = {table.name.lower() for table in tree.find_all(exp.Table) if table.name}
    columns = {column.name.lower() for column in tree.find_all(exp.Column) if column.name}
    _unalias(tree)
    written = _text(tree)
    names = frozenset(tables | columns) - {"*"}
    asks, effect = _asked(tree) if isinstance(tree, exp.Query) else ((written,), (written,))
    return SqlStatement(written, frozenset(tables), names, asks, effect, _names_in_double_quotes(text))


def fold_sql(text: str) -> str:
    """Collapse blanks outside of quotes; a statement with comments is only stripped."""
    if _COMMENT.search(text):
        return text.strip()
    return _QUOTED.sub(lambda match: " " if match[0].isspace() else match[0], text.strip())


def _names_in_double_quotes(text: str) -> tuple[str, ...]:
    """Return the content of double quotes; none if all of it is compared with values and so is text.

    A writer who quotes names does so with columns and tables too.
    """
    quoted = [each for each in _QUOTED.finditer(text) if each[0][0] == '"'] if '"' in text else []
    if all(_COMPARED.search(text, 0, each.start()) and text[each.end() :][:1] != "." for each in quoted):
        return ()
    return tuple(sorted({each[0] for each in quoted}))


def _parsed(text: str) -> "exp.Expr | None":
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    noisy = logging.getLogger("sqlglot")
    level = noisy.level
    noisy.setLevel(logging.CRITICAL)
    try:
        trees = [tree for tree in sqlglot.parse(text.strip().rstrip(";"), dialect=_DIALECT) if tree]
    except (SqlglotError, RecursionError, ValueError):
        return None
    finally:
        noisy.setLevel(level)
    if len(trees) != 1 or isinstance(trees[0], exp.Command | exp.Alias | exp.Column):
        return None
    return trees[0]


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


def _asked(tree: "exp.Expr") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rows that a query selects, in normal form, and its effect.

    For each select these are its tables, functions, conditions, groups, order and limit; for the effect
    also its columns and the schemas of its tables. The case of literals does not count for the rows.
    `IN (a, b)` equals `= a OR = b`, and a query for the row with the largest value is the same in any
    spelling, but for the effect: `LIMIT 1` leaves out rows of equal value.
    """
    from sqlglot import exp

    tree = _canonical_query(tree.copy())
    combined = tuple(
        type(each).__name__ + ("" if each.args.get("distinct") else " all")
        for each in tree.find_all(exp.SetOperation)
    )
    effect = combined
    for select in tree.find_all(exp.Select):
        columns = {f"column {_text(each)}" for each in select.expressions if _is_plain(each)}
        columns |= {_text(each) for each in _listed(select.args.get("limit"))}
        effect += ("; ".join(sorted(_parts_of(select) | columns)),)
    for literal in tree.find_all(exp.Literal):
        literal.set("this", str(literal.this).lower())
    for table in tree.find_all(exp.Table):
        table.set("db", None)
    asks = tuple("; ".join(sorted(_parts_of(select))) for select in tree.find_all(exp.Select))
    return combined + asks, effect


def _canonical_query(tree: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    for listed in list(tree.find_all(exp.In)):
        if len(listed.expressions) > 1 and listed.parent is not None:
            equal = (exp.EQ(this=listed.this.copy(), expression=each) for each in listed.expressions)
            listed.replace(exp.or_(*equal))
    for equal in list(tree.find_all(exp.EQ)):
        if (extreme := _extreme(equal)) is not None:
            equal.replace(exp.var(extreme))
    return tree


def _is_plain(selected: "exp.Expr") -> bool:
    from sqlglot import exp

    return isinstance(selected.unalias(), exp.Column | exp.Star)


def _parts_of(select: "exp.Select") -> set[str]:
    """Return the parts of one select that decide which rows it gives, each as text."""
    from sqlglot import exp

    parts = {"distinct"} if select.args.get("distinct") else set()
    parts |= {_text(each.unalias()) for each in select.expressions if not _is_plain(each)}
    where = select.args.get("where")
    conditions: list[exp.Expr] = []
    if where is not None:
        conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    parts |= {f"where {_alternatives(condition)}" for condition in conditions}
    order, limit = select.args.get("order"), select.args.get("limit")
    if order and limit and _text(limit).lower() == "limit 1" and len(order.expressions) == 1:
        first = order.expressions[0]
        parts.add(f"where {'max' if first.args.get('desc') else 'min'} {_text(first.this)}")
    else:
        parts |= {_text(each) for each in (order, limit) if each}
    clauses = ("from_", "from", "group", "having", "joins", "offset", "qualify", "windows")
    return parts | {_text(each) for name in clauses for each in _listed(select.args.get(name))}


def _alternatives(condition: "exp.Expr") -> str:
    from sqlglot import exp

    bare = condition.unnest()
    return " OR ".join(sorted(map(_text, bare.flatten()))) if isinstance(bare, exp.Or) else _text(bare)


def _extreme(condition: "exp.Expr") -> str | None:
    """Return `max x` for `x = (SELECT MAX(x) FROM ...)`, likewise for MIN, None for other conditions."""
    from sqlglot import exp

    right = condition.args.get("expression") if isinstance(condition, exp.EQ) else None
    inner = right.this if isinstance(right, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or inner.args.get("where") or len(inner.expressions) != 1:
        return None
    value = inner.expressions[0].unalias()
    if not isinstance(value, exp.Max | exp.Min) or _text(value.this) != _text(condition.this):
        return None
    return f"{'max' if isinstance(value, exp.Max) else 'min'} {_text(value.this)}"


def _listed(value: Any) -> list["exp.Expr"]:
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


def _text(tree: "exp.Expr") -> str:
    from sqlglot.errors import ErrorLevel

    quiet = ErrorLevel.IGNORE  # write what the dialect lacks without a warning
    return tree.sql(dialect=_DIALECT, normalize=True, comments=False, unsupported_level=quiet)
