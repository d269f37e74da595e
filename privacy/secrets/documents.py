# ruff: noqa: E501 (patterns)
"""Detect secrets by the form of their document: JWK keys, Terraform states, Kubernetes secrets.

Cookie jars, rows of SQL, salts and shares of a vault's key are found here too.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import is_mixed_case, is_password, is_random, is_stand_in
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
)
from tracemill.privacy.core.secret_variables import is_secret_variable_name
from tracemill.privacy.core.table_columns import cell_kind, column_type

_REACH = 20_000  # characters on either side of a mark that are searched for its object
_ROWS = 2_000  # rows of one statement that are read
_STRING = r"(?P<quote>[\"'])(?P<v>(?:(?!(?P=quote))[^\\\n]){4,4096})(?P=quote)"


def _object_around(text: str, at: int) -> tuple[int, int]:
    """Return where the JSON object around a place begins and ends, as far as it is shown."""
    depth = 0
    start = at
    for start in range(at, max(-1, at - _REACH), -1):
        depth += (text[start] == "}") - (text[start] == "{")
        if depth < 0:
            break
    depth = 0
    end = at
    for end in range(at, min(len(text), at + _REACH)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth < 0:
            break
    return start, end + 1


_KEY_TYPE = build_rule_pattern(r"[\"']kty[\"']\s*:\s*[\"'](?:EC|RSA|OKP|oct)[\"']")
_KEY_PART = build_rule_pattern(r"[\"'](?:d|p|q|dp|dq|qi|k)[\"']\s*:\s*[\"'](?P<v>[\w-]{16,4096})[\"']")
_JSON_SECRET = build_rule_pattern(r"[\"']kind[\"']\s*:\s*[\"']Secret[\"']")
_JSON_DATA = build_rule_pattern(r"[\"'](?:data|stringData)[\"']\s*:\s*\{(?P<items>[^{}]*)\}")
_JSON_ITEM = build_rule_pattern(rf":\s*{_STRING}")
_SENSITIVE = build_rule_pattern(r"[\"']sensitive[\"']\s*:\s*(?i:true)")
_JSON_VALUE = build_rule_pattern(rf"[\"']value[\"']\s*:\s*{_STRING}")
_TYPE = build_rule_pattern(r"[\"']type[\"']\s*:")
_DRAWN = build_rule_pattern(r"[\"']type[\"']\s*:\s*[\"'](?:random_password|random_id|tls_private_key)[\"']")
_RESULT = build_rule_pattern(rf"[\"'](?:result|bcrypt_hash|b64_std|b64_url|hex)[\"']\s*:\s*{_STRING}")
_SHARES = build_rule_pattern(
    r"[\"'](?:unseal_keys_(?:b64|hex)|recovery_keys_(?:b64|hex)|keys|keys_base64)[\"']\s*:\s*\[(?P<items>[^\[\]]{20,4000})\]"
)
_SHARE = build_rule_pattern(r"[\"'](?P<v>[A-Za-z0-9+/=]{32,128})[\"']")


def find_json_secrets(view: TextView) -> Iterator[Span]:
    """Find private key parts, Kubernetes secrets, sensitive outputs and key shares.

    They stand in JSON or in literals of Python and JavaScript.
    """
    text = view.text
    for mark, part, kind in ((_KEY_TYPE, _KEY_PART, "PRIVATE_KEY"), (_SENSITIVE, _JSON_VALUE, "SECRET")):
        for found in mark.finditer(text):
            for value in part.finditer(text, *_object_around(text, found.start())):
                yield Span(*value.span("v"), kind)
    for found in _JSON_SECRET.finditer(text):
        for data in _JSON_DATA.finditer(text, *_object_around(text, found.start())):
            for value in _JSON_ITEM.finditer(text, *data.span("items")):
                yield Span(*value.span("v"), "SECRET")
    for found in _DRAWN.finditer(text):
        following = _TYPE.search(text, found.end())
        for value in _RESULT.finditer(text, found.end(), following.start() if following else len(text)):
            yield Span(*value.span("v"), "SECRET")
    for found in _SHARES.finditer(text):
        for value in _SHARE.finditer(text, *found.span("items")):
            if is_random(value["v"]):
                yield Span(*value.span("v"), "VAULT_KEY")


# Values under `data` and `stringData` of a Kubernetes secret are secret, whatever their names.
_MANIFEST = build_rule_pattern(r"(?<![^\n])(?P<in>[ \t]*)kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?=\r?\n|$)")
_DATA = build_rule_pattern(
    r"(?<![^\n])(?P<in>[ \t]*)(?:data|stringData):[ \t]*\r?\n(?P<items>(?:(?P=in)[ \t]+\S[^\n]*(?:\n|$)|[ \t]*\r?\n){1,400})"
)
_ITEM = build_rule_pattern(
    r"(?<![^\n])[ \t]*[\"']?[\w.-]{1,253}[\"']?:[ \t]*(?:!!\w+[ \t]+)?(?P<quote>[\"']?)(?P<v>(?![|>][+-]?[ \t]*$)[^\s\"'][^\n\"']{3,})(?P=quote)[ \t]*(?=\r?\n|$)"
    r"|(?<![^\n])(?P<in>[ \t]*)[\"']?[\w.-]{1,253}[\"']?:[ \t]*[|>][+-]?[ \t]*\r?\n(?P<block>(?:(?P=in)[ \t]+[^\n]+(?:\n|$)|[ \t]*\r?\n){1,200})"
)


def find_manifests(view: TextView) -> Iterator[Span]:
    """Find the values of Kubernetes secrets in YAML."""
    text = view.text
    for kind in _MANIFEST.finditer(text):
        start = max(text.rfind("\n---", 0, kind.start()), kind.start() - _REACH, 0)
        stop = text.find("\n---", kind.end(), kind.end() + _REACH)
        for data in _DATA.finditer(text, start, stop if stop >= 0 else kind.end() + _REACH):
            if data["in"] == kind["in"]:
                yield from _items(text, data.span("items"))


def _items(text: str, where: tuple[int, int]) -> Iterator[Span]:
    for item in _ITEM.finditer(text, *where):
        start, end = item.span("v" if item["v"] else "block")
        start += len(text[start:end]) - len(text[start:end].lstrip())
        end -= len(text[start:end]) - len(text[start:end].rstrip())
        if end - start >= 4 and not re.match(r"\$\{|\{\{|<[a-zA-Z]", text[start:end]):
            yield Span(start, end, "SECRET")


_INSERT = build_rule_pattern(
    r"(?i)\b(?:insert(?:\s+(?:ignore|or\s+\w+))?\s+into|replace\s+into|merge\s+into|copy)\s+[\w.\"`\[\]]{1,130}\s*"
    r"\((?P<columns>[^()]{3,4000})\)\s*(?:overriding\s+\w+\s+value\s+)?values?\s*(?=\()"
)
_CELL = build_rule_pattern(
    r"\s*(?:[NEBX]?'(?P<single>(?:[^'\\]|''|\\.)*)'|\"(?P<double>(?:[^\"\\]|\"\"|\\.)*)\"|(?P<bare>(?:[^(),'\"]|\([^()]*\))*))\s*(?P<end>[,)])"
)
_NEXT_ROW = build_rule_pattern(r"\s*,?\s*\(")


_INSERT_ALL = build_rule_pattern(
    r"(?i)\b(?:insert(?:\s+(?:ignore|or\s+\w+))?\s+into|replace\s+into)\s+(?P<table>[\w.\"`\[\]]{1,130})\s*values?\s*(?=\()"
)
_CREATE = build_rule_pattern(
    r"(?i)\bcreate\s+(?:\w+\s+){0,3}?table\s+(?:if\s+not\s+exists\s+)?(?P<table>[\w.\"`\[\]]{1,130})\s*\("
)
_COLUMN = build_rule_pattern(r"\s*[\"`\[]?(?P<name>\w{1,64})[\"`\]]?")
_NO_COLUMN = frozenset(
    (
        "primary",
        "unique",
        "key",
        "constraint",
        "foreign",
        "check",
        "index",
        "fulltext",
        "exclude",
        "like",
        "spatial",
    )
)


def find_inserted(view: TextView) -> Iterator[Span]:
    """Find values of an SQL statement in columns whose name denotes a secret or a person.

    The columns stand in the statement itself, or in the statement that creates the table.
    """
    text = view.text
    for head in _INSERT.finditer(text):
        columns = [column.strip(" \t\r\n\"`[]'") for column in head["columns"].split(",")]
        yield from _of_rows(text, head.end(), columns)
    heads = list(_INSERT_ALL.finditer(text))
    tables = (
        {_table(each["table"]): list(_columns(text, each.end())) for each in _CREATE.finditer(text)}
        if heads
        else {}
    )
    for head in heads:
        yield from _of_rows(text, head.end(), tables.get(_table(head["table"]), []))


def _table(name: str) -> str:
    return name.rpartition(".")[2].strip('"`[]').lower()


def _columns(text: str, at: int) -> Iterator[str]:
    """Yield the names of the columns in a `CREATE TABLE` statement, from `at` on."""
    depth, fresh = 0, True
    for place in range(at, min(len(text), at + _REACH)):
        if fresh and (column := _COLUMN.match(text, place)):
            if column["name"].lower() not in _NO_COLUMN:
                yield column["name"]
            fresh = False
        sign = text[place]
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return
        fresh = fresh or (sign == "," and not depth)


def _of_rows(text: str, at: int, columns: list[str]) -> Iterator[Span]:
    """Yield the private values of the rows that begin at a place."""
    wanted = {at for at, column in enumerate(columns) if column.lower() == "pw" or column_type(column)}
    row, rows = (_NEXT_ROW.match(text, at), 0) if wanted else (None, 0)
    while row and rows < _ROWS:
        rows, at, end = rows + 1, 0, row.end()
        while cell := _CELL.match(text, end):
            end = cell.end()
            group = "single" if cell["single"] is not None else "double"
            if at in wanted and cell[group] and (kind := _kind_in_column(columns[at], cell[group])):
                yield Span(*cell.span(group), kind)
            at += 1
            if cell["end"] == ")":
                break
        row = _NEXT_ROW.match(text, end) if cell else None


def _kind_in_column(column: str, value: str) -> str | None:
    if column_type(column) is not None:
        return cell_kind(column, value, data=True)
    return "SECRET" if is_password(value) and any(map(str.isdigit, value)) else None


_ENCODED_ATTRIBUTE = build_rule_pattern(
    r"(?<![^\n\"'`])[ \t]*(?P<name>[A-Za-z][\w.-]{1,60})(?:;[\w-]{1,40}){0,3}::[ \t]+(?P<v>[A-Za-z0-9+/]{4,4096}={0,2}(?:\r?\n [A-Za-z0-9+/=]{1,80}){0,200})(?=[\s\"'`]|$)"
)


def find_encoded_attributes(view: TextView) -> Iterator[Span]:
    """Find secrets in attributes of LDIF that are encoded in Base64 (RFC 2849)."""
    for line in _ENCODED_ATTRIBUTE.finditer(view.text):
        value = "".join(line["v"].split())
        encoded = len(value) % 4 == 0 and not value.isalpha()
        if encoded and is_secret_variable_name(line["name"]) and "ublic" not in line["name"]:
            yield Span(*line.span("v"), "PASSWORD")


_JAR_LINE = build_rule_pattern(
    r"(?<![^\n])(?:#HttpOnly_)?[\w.-]{3,253}[ \t]+(?:TRUE|FALSE)[ \t]+/\S{0,200}[ \t]+(?:TRUE|FALSE)[ \t]+\d{1,17}[ \t]+(?P<name>[^\s=;]{1,200})[ \t]+(?P<v>\S{6,4096})(?=\s|$)"
)
_LOGIN_COOKIE = build_rule_pattern(r"(?i)sess|sid|auth|token|csrf|xsrf|login|remember|jwt|user|key|secret")


def find_jars(view: TextView) -> Iterator[Span]:
    """Find values in a cookie jar, as Netscape, curl and wget write it."""
    for line in _JAR_LINE.finditer(view.text):
        if is_random(line["v"]) or (_LOGIN_COOKIE.search(line["name"]) and any(map(str.isdigit, line["v"]))):
            yield Span(*line.span("v"), "COOKIE")


_GIVEN_COOKIES = build_rule_pattern(
    r"(?i)(?:curl\b[^\n]{0,400}?\s(?:-b|--cookie)[ =]?|\bcookies?\s{0,2}[=:]\s{0,2}\{|set_?cookies?\(|cookies?\.set\(|document\.cookie\s?=\s?|wget\b[^\n]{0,200}Cookie: ?)"
    r"(?P<all>[^\n}]{8,2000})"
)
_COOKIE_PAIR = build_rule_pattern(
    r"(?P<name>[\w.-]{1,80})[\"']?\s{0,2}(?:=|:|,)\s{0,2}[\"']?(?P<v>[^\s;,\"'&|}]{12,4096})"
)


def find_given_cookies(view: TextView) -> Iterator[Span]:
    """Find cookies that a command or a call gets."""
    for given in _GIVEN_COOKIES.finditer(view.text):
        for pair in _COOKIE_PAIR.finditer(view.text, *given.span("all")):
            named = _LOGIN_COOKIE.search(pair["name"]) and sum(map(str.isdigit, pair["v"])) >= 2
            if not is_stand_in(pair["v"]) and (is_random(pair["v"]) or named):
                yield Span(*pair.span("v"), "COOKIE")


_KEY_TAIL = build_rule_pattern(
    r"(?P<v>(?:[A-Za-z0-9+/]{40,80}(?:\r?\n|\\n)[ \t]{0,8}){2,200}[A-Za-z0-9+/]{1,80}={0,2}(?:\r?\n|\\n)[ \t]{0,8}-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
)


_CODES = build_rule_pattern(
    r"(?i)\b(?:recovery|backup|scratch|rescue|emergency|one-time|single-use)[ _-](?:\w{1,12}[ _-])?codes?\b"
)
_CODE_LINE = build_rule_pattern(
    r"[ \t]*(?:[-*+\u2022#>|]{1,3}[ \t]*|\[[ x]?\][ \t]*|\d{1,2}[.):][ \t]*)*[\"'`]?(?P<v>(?:(?=[A-Za-z -]*\d)[A-Za-z0-9]{4,12}(?:[- ][A-Za-z0-9]{3,12}){0,4}|\d{3,5}(?: \d{3,5}){1,3}))"
    r"(?:[\"'`]?,?[ \t]+(?:\d{1,2}[.):][ \t]*)?[\"'`]?(?P<w>(?=[A-Za-z -]*\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,4}))?[\"'`]?,?[ \t]*[|]?[ \t]*"
)
_OTHER_LINES = 3  # lines between the words that announce codes and the first code


def find_code_lists(view: TextView) -> Iterator[Span]:
    """Find recovery codes, one or two a line, below words that announce them."""
    text = view.text
    for head in _CODES.finditer(text):
        at, others, found = text.find("\n", head.end()) + 1, 0, 0
        while 0 < at < len(text) and others <= _OTHER_LINES:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            line = _CODE_LINE.fullmatch(text, at, end)
            if line is None or not any(map(str.isdigit, line["v"])):
                others += 1 if not found else _OTHER_LINES + 1 if text[at:end].strip() else 0
            else:
                found += 1
                yield from (Span(*line.span(group), "RECOVERY_CODE") for group in "vw" if line[group])
            at = end + 1


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_json_secrets,
        r"[\"']kty[\"']\s*:",
        r"[\"']kind[\"']\s*:\s*[\"']Secret[\"']",
        r"[\"']sensitive[\"']\s*:\s*(?i:true)",
        r"[\"']type[\"']\s*:\s*[\"'](?:random_password|random_id|tls_private_key)[\"']",
        r"[\"'](?:unseal_keys_|recovery_keys_|keys(?:_base64)?[\"']\s*:\s*\[)",
    ),
    make_probed_detector(find_manifests, r"kind:[ \t]*[\"']?Secret"),
    make_probed_detector(
        find_inserted,
        r"(?i)(?:into|copy)\s+[\w.\"`\[\]]+\s*\([^()]*(?:pass|pwd?|secret|token|key|auth|credential|_pat|name|phone|mobile|birth|dob)[^()]*\)\s*(?:overriding\s+\w+\s+value\s+)?value",
        r"(?i)into\s+[\w.\"`\[\]]+\s*values?\s*\(",
    ),
    make_probed_detector(find_encoded_attributes, r"[a-zA-Z][\w.-]+(?:;[\w-]+)*::[ \t]+[A-Za-z0-9+/]{4}"),
    make_probed_detector(find_jars, r"(?:TRUE|FALSE)[ \t]+/\S*[ \t]+(?:TRUE|FALSE)[ \t]+\d"),
    make_probed_detector(
        find_given_cookies,
        r"(?i)curl\b[^\n]*\s(?:-b|--cookie)",
        r"(?i)cookies?\s*[=:]\s*\{|set_?cookies?\(|cookies?\.set\(|document\.cookie|wget\b[^\n]*Cookie:",
    ),
    make_probed_detector(
        find_code_lists,
        r"(?i)(?:recovery|backup|scratch|rescue|emergency|one-time|single-use)[ _-](?:\w{1,12}[ _-])?codes?[^\n]*\n",
    ),
    make_anywhere_detector("PRIVATE_KEY", _KEY_TAIL.pattern, r"-----END [A-Z0-9 ]*PRIVATE KEY"),
    make_anywhere_detector(
        "SECRET",
        r"(?i:define\(\s{0,4}[\"'](?:secure_auth|logged_in|auth|nonce)_(?:key|salt)[\"']\s{0,4},\s{0,20})(?P<quote>[\"'])(?P<v>(?:(?!(?P=quote))[^\n]){20,200})(?P=quote)\s{0,4}\)",
        r"(?i)define\(\s*[\"'](?:secure_auth|logged_in|auth|nonce)_(?:key|salt)[\"']",
        lambda value: len(set(value)) > 12 and "phrase here" not in value,
    ),
    make_anywhere_detector(
        "VAULT_KEY",
        r"(?<![^\n])Key \d{1,2}:\s{1,4}(?P<v>[A-Za-z0-9+/]{43,66}={0,2})(?=\s|$)",
        r"Key \d{1,2}:\s+[A-Za-z0-9+/]{43}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "VAULT_KEY",
        r"(?i:\b(?:unseal|recovery) key(?: \d{1,2})?(?: \([^()\n]{1,40}\))?:\s{1,4}|\bvault operator (?:unseal|rekey|generate-root)\b[^\n]{0,80}?\s)(?P<v>[A-Za-z0-9+/]{40,88}={0,2})(?![A-Za-z0-9+/=])",
        r"(?i)(?:unseal|recovery) key[^\n:]*:\s|vault operator (?:unseal|rekey|generate-root)\s",
        is_random,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:root token[^\n:]{0,20}:\s{1,4})(?P<v>(?:hv)?s\.[A-Za-z0-9]{16,120})",
        r"(?i)root token[^\n:]*:\s",
    ),
    make_anywhere_detector(
        "BLOB",
        r"(?<![A-Za-z0-9+/_-])(?P<v>H4sI[A-Za-z0-9+/_-]{32,}={0,2})(?![A-Za-z0-9+/_-])",
        r"H4sI[A-Za-z0-9+/_-]{32}",
    ),
)  # fmt: skip
