"""Statements of SQL, read as far as comparing and sorting them needs.

Parsed by sqlglot (MIT) in the dialect of MySQL, which reads what SQLite and PostgreSQL share with it.
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
class Statement:
    """A statement in normal form: its `text`, the `tables` it names, and all `names` of tables and columns,
    both in lower case. `asks` is what it asks of them: statements that ask the same give the same rows, with
    columns more or less. `effect` is equal where the columns are the same too, in whatever order.
    `double_quoted` is what stands in double quotes and may be a text (MySQL) or a name (PostgreSQL)."""

    text: str
    tables: frozenset[str]
    names: frozenset[str]
    asks: tuple[str, ...] = ()
    effect: tuple[str, ...] = ()
    double_quoted: tuple[str, ...] = ()


def sql_operation(text: str) -> Operation:
    """LIST for a look at the catalogue, READ for a query, EDIT for anything that writes."""
    if _LOOKS.match(text) or (_QUERIES.match(text) and _CATALOGUE.search(text)):
        return Operation.LIST
    return Operation.READ if _QUERIES.match(text) else Operation.EDIT


@lru_cache(maxsize=4096)
def sql_form(text: str) -> Statement | None:
    """One statement in normal form; None where it cannot be read or is not one.

    From its text spelling goes: case of keywords and names, quotes, aliases of tables and of columns nobody
    refers to, `ASC`, comments; the order of columns, conditions and tables stays.
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
    return Statement(written, frozenset(tables), names, asks, effect, _names_in_double_quotes(text))


def fold_sql(text: str) -> str:
    """A statement with runs of blanks as one, but for those in quotes; as it is where it holds comments."""
    if _COMMENT.search(text):
        return text.strip()
    return _QUOTED.sub(lambda found: " " if found[0].isspace() else found[0], text.strip())


def _names_in_double_quotes(text: str) -> tuple[str, ...]:
    """What stands in double quotes, unless all of it is compared with something: that is a text, since who
    puts names in quotes does so with columns and tables too."""
    found = [each for each in _QUOTED.finditer(text) if each[0][0] == '"'] if '"' in text else []
    if all(_COMPARED.search(text, 0, each.start()) and text[each.end() :][:1] != "." for each in found):
        return ()
    return tuple(sorted({each[0] for each in found}))


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


def _asked(tree: "exp.Expr") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a query asks, and its effect: of each of its selects where it reads, its functions, conditions,
    groups, order and limit, and for the effect its columns. Schemas of tables count for nothing, nor for what
    is asked the case of literals; `IN (a, b)` is `= a OR = b`, and the row with the largest value is one
    whatever finds it."""
    from sqlglot import exp

    tree = _one_spelling(tree.copy())
    combined = tuple(_combination(each) for each in tree.find_all(exp.SetOperation))
    selects = [(_parts_of(select), _columns_of(select)) for select in tree.find_all(exp.Select)]
    effect = combined + tuple("; ".join(sorted(parts | columns)) for parts, columns in selects)
    for literal in tree.find_all(exp.Literal):
        literal.set("this", str(literal.this).lower())
    asks = tuple("; ".join(sorted(_parts_of(select))) for select in tree.find_all(exp.Select))
    return combined + asks, effect


def _one_spelling(tree: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        table.set("db", None)
    for listed in list(tree.find_all(exp.In)):
        if len(listed.expressions) > 1 and listed.parent is not None:
            equal = (exp.EQ(this=listed.this.copy(), expression=each) for each in listed.expressions)
            listed.replace(exp.or_(*equal))
    for equal in list(tree.find_all(exp.EQ)):
        if (found := _extreme(equal)) is not None:
            equal.replace(exp.var(found))
    return tree


def _combination(combined: "exp.SetOperation") -> str:
    return type(combined).__name__ + ("" if combined.args.get("distinct") else " all")


def _columns_of(select: "exp.Select") -> set[str]:
    return {f"column {_text(each)}" for each in select.expressions if _is_plain(each)}


def _is_plain(selected: "exp.Expr") -> bool:
    from sqlglot import exp

    return isinstance(selected.unalias(), exp.Column | exp.Star)


def _parts_of(select: "exp.Select") -> set[str]:
    """The parts of one select that change which rows it gives, each as text."""
    from sqlglot import exp

    told = {"distinct"} if select.args.get("distinct") else set()
    told |= {_text(each.unalias()) for each in select.expressions if not _is_plain(each)}
    where = select.args.get("where")
    conditions: list[exp.Expr] = []
    if where is not None:
        conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    told |= {f"where {_alternatives(condition)}" for condition in conditions}
    order, limit = select.args.get("order"), select.args.get("limit")
    if order and limit and _text(limit).lower() == "limit 1" and len(order.expressions) == 1:
        first = order.expressions[0]
        told.add(f"where {'max' if first.args.get('desc') else 'min'} {_text(first.this)}")
    else:
        told |= {_text(each) for each in (order, limit) if each}
    named = ("from_", "from", "group", "having", "joins", "offset", "qualify", "windows")
    return told | {_text(each) for name in named for each in _listed(select.args.get(name))}


def _alternatives(condition: "exp.Expr") -> str:
    from sqlglot import exp

    bare = condition.unnest()
    return " OR ".join(sorted(map(_text, bare.flatten()))) if isinstance(bare, exp.Or) else _text(bare)


def _extreme(condition: "exp.Expr") -> str | None:
    """`x = (SELECT MAX(x) FROM ...)` as the largest x."""
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

    quiet = ErrorLevel.IGNORE  # what the dialect lacks is written all the same, and not warned of
    return tree.sql(dialect=_DIALECT, normalize=True, comments=False, unsupported_level=quiet)
