# ruff: noqa: E501 (tables)
"""Detect secrets by their place among the arguments of a call: `jwt.sign(payload, "...")`."""

from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import (
    is_capital_word,
    is_chosen_password,
    is_joined_words,
    is_scrambled_letters,
)
from tracemill.privacy.core.entropy import is_given, is_noise, is_password, is_random
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
)
from tracemill.privacy.core.set_passwords import is_set_password

# The place of an argument, from 0, and the functions of which it is a secret.
_FUNCTIONS = (
    (
        0,
        r"cookieParser|cookieSession|SignedString|HMAC(?:256|384|512)|setSigningKey|SymmetricSecurityKey|hmacShaKeyFor|SecretKeySpec|URLSafe(?:Timed)?Serializer|TimestampSigner"
        r"|Fernet|PASSWORD|setApiKey|set_api_key|[sS]etPassword|[sS]etSecret|set_password|AESGCM|SecretBox|createSecretKey|CookieStore|withPassword|with_password|setMasterKey",
    ),
    (
        1,
        r"[jJ][wW][tT](?:\.|::|->)(?:sign|verify|encode|decode|generate)|[jJ]sonwebtoken\.(?:sign|verify)|signWith|verifyWith|simple_bind(?:_s)?|ldap_bind|S3Connection|HTTPBasicAuth"
        r"|HTTPDigestAuth|[Bb]asicAuth|basic_auth|[sS]etBasicAuth|NetworkCredential|PlainCredentials|UsernamePasswordCredentials|UsernamePasswordToken|UserPassword|create(?:Hmac|Cipheriv|Decipheriv)"
        r"|BasicAWSCredentials|AwsBasicCredentials\.create|PasswordCredential|Twilio|[lL]ogin|[lL]ogon|[sS]ign_?[iI]n|[aA]uthenticate|auth\s?=\s?|WiFi\.begin",
    ),
    (2, r"FTP(?:_TLS)?|getConnection|DBI->connect|hash_hmac|mysqli(?:_connect)?|mysql_connect|PDO|MySQLdb\.connect|pymysql\.connect|PlainAuth|S3(?:Queue)?"),
    (3, r"Credentials"),
    (4, r"PostgreSQL|MySQL|MongoDB|postgresql|mysql"),  # engines and functions of ClickHouse
)  # fmt: skip
_OPENED = r"[ ]?(?:\(|[ ](?=[a-z_]\w*,))"
_CALL = tuple(
    (place, build_rule_pattern(rf"(?:(?<!\w)|(?<=[a-z])(?=[A-Z]))(?:{names}){_OPENED}"))
    for place, names in _FUNCTIONS
)
_LITERAL = build_rule_pattern(
    r"(?P<quote>\\*[\"'`])(?P<v>(?:(?!(?P=quote))(?:\\.|[^\n\\])){6,512})(?P=quote)"
)
_LONGEST = 600  # characters of a call that are read
_FUNCTION = 64  # characters of a function with its bracket
_NAME = 128  # characters of the name that can follow a function without a bracket
_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "\"'`"


def find_call_arguments(view: TextView) -> Iterator[Span]:
    """Find a literal where a function takes a password or key."""
    text = view.text
    for place, pattern in _CALL:
        for call in (
            call
            for low, high in view.windows(_FUNCTION)
            for call in pattern.finditer(text, low, high + _NAME)
        ):
            start, end = _argument(text, call.end(), place)
            literals = list(_LITERAL.finditer(text, start, end))
            if len(literals) == 1 and _is_secret(literals[0]["v"]):
                yield Span(*literals[0].span("v"), "SECRET")


def _argument(text: str, at: int, place: int) -> tuple[int, int]:
    """Return where the argument at a place begins and ends, in a list that begins at `at`."""
    depth, number, start, quote = 0, 0, at, ""
    last = min(len(text), at + _LONGEST)
    while at < last:
        sign = text[at]
        if quote:
            if sign == "\\":
                at += 1
            quote = "" if sign == quote or sign == "\n" else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign in _OPEN:
            depth += 1
        elif sign in _CLOSE or (sign in ",\n" and not depth):
            if sign in _CLOSE and depth:
                depth -= 1
            elif sign == "\n" and text[start:at].strip() == "":
                pass
            elif number == place:
                return start, at
            elif sign == ",":
                number, start = number + 1, at + 1
            else:
                return at, at
        at += 1
    return (start, at) if number == place else (at, at)


def _is_secret(value: str) -> bool:
    if not is_given(value) or (" " in value.strip() and not is_noise(value)):
        return False
    return (
        is_password(value)
        or is_random(value)
        or is_set_password(value)
        or is_chosen_password(value)
        or is_scrambled_letters(value)
        or is_joined_words(value)
        or is_capital_word(value)
    )


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_call_arguments, *(rf"(?:{names}) ?(?:\(| [a-z_])" for _, names in _FUNCTIONS), located=True
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"\"(?P<v>[^\"\n\\]{6,128})\"\s?\.(?:toCharArray\(\)|ToSecureString\(\))",
        r"\"\s?\.(?:toCharArray|ToSecureString)\(",
        _is_secret,
    ),
)
