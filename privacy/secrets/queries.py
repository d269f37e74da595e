"""Judge whether the columns that database queries on command lines return are secrets."""

import re

from tracemill.privacy.secrets.secret_commands import is_name_of_secret

CLIENTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("psql", "pgcli", "usql", "duckdb"), frozenset(("-c", "--command"))),
    **dict.fromkeys(("mysql", "mariadb", "cqlsh", "mycli"), frozenset(("-e", "--execute"))),
    **dict.fromkeys(("sqlite3", "litecli", "libsql"), frozenset()),
    **dict.fromkeys(("sqlcmd", "sqsh"), frozenset(("-Q", "-q"))),
    **dict.fromkeys(("clickhouse-client", "snowsql", "snow"), frozenset(("-q", "--query"))),
    **dict.fromkeys(("mongosh", "mongo"), frozenset(("--eval",))),
    **dict.fromkeys(("cockroach", "bq", "trino", "presto"), frozenset(("-e", "--execute", "query"))),
}
"""Database clients, and the options that precede a query."""
_COLUMNS = re.compile(
    r"(?is)\bselect\s+(?:distinct\s+(?:on\s*\([^()]*\)\s*)?|top\s+\d+\s+|all\s+)?(?P<columns>.+?)(?:\s+(?:from|into|where|limit)\b|;|$)"
)
_RETURNED = re.compile(r"(?is)\breturning\s+(?P<columns>[^;]+)")
_TABLE = re.compile(r"(?is)\bfrom\s+[\"`\[]?(?:\w+[\"`\]]?\.[\"`\[]?)?(?P<table>\w+)")
_TELLS_ONLY = re.compile(
    r"(?i)\b(?:count|length|char_length|octet_length|md5|sha\d*|sum|min|max|avg|exists|bool\w*|digest|hash)\s*\(|\bis\s+(?:not\s+)?null\b|[=<>]"
)
_NAME = re.compile(r"[\"'`\[]?(?P<name>\w+)[\"'`\]]?\W*$")
_CONTENT = re.compile(r"(?i)[\"`\[]?(?:\w*_)?(?:value|val|content|data)[\"`\]]?")
_VALUES = re.compile(r"(?i)\bkey[\"`]?\s*,|,\s*[\"`]?key\b")
_LITERAL = re.compile(r"(?i)(?:=|\blike\b|~\*?)\s*\\?['\"]%?([\w.-]+)")
_FIELD = re.compile(r"\.(?P<name>[A-Za-z_]\w*)\W*$")
_SOUGHT = re.compile(r":\s*[\"']([\w.-]+)[\"']")
_SHOWN = re.compile(r"\b(?P<name>[A-Za-z_]\w*)[\"']?\s*:\s*(?:1|true)\b")


def judge_query(program: str, query: str) -> bool | None:
    """Return True where a query returns only secrets, False where some are secrets, else None."""
    if program in ("mongosh", "mongo"):
        field = _FIELD.search(query.strip())
        if field and is_name_of_secret(field["name"]):
            return True
        if (
            field
            and _CONTENT.fullmatch(field["name"])
            and any(map(is_name_of_secret, _SOUGHT.findall(query)))
        ):
            return True
        return False if any(is_name_of_secret(each["name"]) for each in _SHOWN.finditer(query)) else None
    selected = [each for found in (_COLUMNS, _RETURNED) for each in found.findall(query)]
    judged = [_is_secret_column(column, query) for columns in selected for column in _apart(columns)]
    if not any(judged):
        return None
    return all(judged)


def find_secret_columns(line: str) -> tuple[bool, ...]:
    """Return for each column of the query on a command line whether it is a secret; empty if unknown."""
    selected = _COLUMNS.findall(line)
    judged = tuple(_is_secret_column(column, line) for column in _apart(selected[0])) if selected else ()
    known = len(selected) == 1 and len(judged) > 1 and "*" not in selected[0]
    return judged if known and any(judged) else ()


def _is_secret_column(column: str, query: str) -> bool:
    if _TELLS_ONLY.search(column):
        return False
    if column.strip().endswith("*"):
        table = _TABLE.search(query)
        return table is not None and is_name_of_secret(re.sub(r"s$", "", table["table"]))
    if column.strip().lower() == "key" and _VALUES.search(query):
        return False
    if _CONTENT.fullmatch(column.strip()):
        return any(map(is_name_of_secret, _LITERAL.findall(query)))
    named = _NAME.search(column)
    names = [named["name"]] if named else []
    return any(map(is_name_of_secret, (*names, *re.findall(r"\w+", column))))


def _apart(columns: str) -> list[str]:
    """Return the columns between the commas outside brackets."""
    found, depth = [""], 0
    for character in columns:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found
