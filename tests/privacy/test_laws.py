"""Laws: redaction is idempotent, keeps JSON and Python what they are, and touches nothing needlessly."""

import ast
import json
import random
import string
import warnings

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message, ToolCall

ALNUM = string.ascii_letters + string.digits
REDACTOR = Redactor(secrets=["correct horse battery"], user="klarsen", hosts=["kims-macbook"], key=b"k" * 32)


def _word(seed: int, size: int, alphabet: str = ALNUM) -> str:
    rng = random.Random(seed)
    return "".join(rng.choice(alphabet) for _ in range(size))


def _secrets(seed: int) -> list[str]:
    return [
        "gh" + "p_" + _word(seed, 36),
        "AK" + "IA" + _word(seed, 16, string.ascii_uppercase),
        "sk-" + "ant-api03-" + _word(seed, 90) + "1",
        "password=" + _word(seed, 12) + "1!",
        "TOKEN: " + _word(seed, 40),
        "Authorization: Bearer " + _word(seed, 40),
        "postgres://app:" + _word(seed, 12) + "@db.host.dev/x",
        "correct horse battery",
        "kim.larsen" + "@" + "northwind.io",
        "/home/klarsen/proj/a.py",
        "C:\\Users\\klarsen\\x",
        "-Users-klarsen-proj",
        "klarsen@kims-macbook:~$",
        "192.168." + "7.31",
        "3c:22:fb:" + "9a:01:7e",
        "+1 415 " + "555 2671",
        "415-" + "555-2671",
        "Cookie: sid=" + _word(seed, 40),
        "-----BEGIN PRIVATE" + " KEY-----\n" + _word(seed, 64) + "\n-----END PRIVATE" + " KEY-----",
        _word(seed, 300, ALNUM + "+/"),
        "curl -u app:" + _word(seed, 10) + "7 https://x.dev",
        "user_3f2a <GITHUB_TOKEN_3f2a> REDACTED_SECRET_3f2a",
    ]


SECRETS = st.integers(0, 10**6).flatmap(lambda seed: st.sampled_from(_secrets(seed)))
JOINTS = st.sampled_from(
    ["", " ", "\n", "\\n", '"', "'", ":", "=", "@", "/", "<", ">", ",", "; ", "é", "_", "-"]
)
TEXTS = st.lists(st.one_of(SECRETS, JOINTS, st.text(max_size=12)), max_size=10).map("".join)
LEAVES = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False))
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["password", "path", "name", "value", "TOKEN"]), TEXTS), inner
        ),
    ),
    max_leaves=8,
)


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_redaction_is_idempotent(text: str) -> None:
    once, _ = REDACTOR.redact_text(text, "t")
    twice, counts = REDACTOR.redact_text(once, "t")
    assert twice == once
    assert sum(counts.values()) == 0


def _shape(value: object) -> object:
    """What redaction may not change: structure, and every scalar that is no string; a long number under
    a secret name is one."""
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "text" if isinstance(value, str) or (type(value) is int and value >= 100_000) else value


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]), st.sampled_from([(",", ":"), (", ", ": ")]))
@settings(max_examples=100, deadline=None)
def test_json_stays_json_of_the_same_shape(
    document: object, plain: bool, indent: int | None, sep: tuple
) -> None:
    text = json.dumps({"input": document}, ensure_ascii=plain, indent=indent, separators=sep)
    for redacted in (
        REDACTOR.redact_text(text)[0],
        REDACTOR.redact_message(Message("assistant", "", (ToolCall("c1", "Write", text),)))[0]
        .tool_calls[0]
        .arguments,
    ):
        assert _shape(json.loads(redacted)) == _shape(json.loads(text))
        again = json.dumps(json.loads(redacted), ensure_ascii=plain, indent=indent, separators=sep)
        assert len(json.loads(again)) == 1


LITERALS = TEXTS.map(repr)
BARE_CODE = st.sampled_from(
    [
        "x = a@b.com",
        "x = 415-555-2671",
        "x = +1-415-555-2671",
        "f(password=hunter2hunter99z, token=q8Zt5vB1mK9wX3cR7yL2)",
        "password = x9Kq2LmN8vRt4Wz1",
        "API_KEY=q8Zt5vB1mK9wX3cR7yL2pD6s",
        "m = kim@northwind.io",
        "# klarsen@kims-macbook:~/x mail kim@northwind.io",
        "klarsen = {'klarsen': klarsen}",
    ]
)
LINES = st.one_of(
    BARE_CODE,
    st.tuples(st.sampled_from(["x", "password", "api_key", "url"]), LITERALS).map(" = ".join),
    LITERALS.map(lambda literal: f"call({literal}, password={literal})"),
    TEXTS.map(lambda text: f'def f():\n    """{json.dumps(text)[1:-1]}"""\n    return 1'),
    TEXTS.map(lambda text: "# " + " ".join(text.split())),
)


@given(st.lists(LINES, min_size=1, max_size=5).map("\n".join))
@settings(max_examples=150, deadline=None)
@example("password = x9Kq2LmN8vRt4Wz1\n")
@example("password = 'x9Kq2LmN8vRt4Wz1\"\\','")
def test_python_that_parsed_still_does(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except (SyntaxError, ValueError):
            return
        ast.parse(REDACTOR.redact_text(code)[0])


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_at_all_goes_through(text: str) -> None:
    redacted, counts = REDACTOR.redact_text(text)
    assert (redacted is text) == (sum(counts.values()) == 0)


def test_unchanged_json_keeps_every_byte() -> None:
    arguments = '{ "b" : 1.50,\t"a":"\\u00e9\\/x", "a": [1e3, "klarsen", "\\ud83d\\ude00"]}'
    message = Message("assistant", "", (ToolCall("c1", "Write", arguments),))
    redacted, _ = REDACTOR.redact_message(message)
    changed = redacted.tool_calls[0].arguments
    start = arguments.index("klarsen")
    assert changed[:start] == arguments[:start]
    assert changed.endswith(arguments[start + len("klarsen") :])
    assert changed[start:].startswith("user_")
