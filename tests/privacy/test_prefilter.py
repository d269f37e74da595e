# ruff: noqa: E501 (texts)
"""The fast path finds exactly what every detector put to every text finds."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracemill.privacy.core.line_prefixes import PREFIX_PROBES
from tracemill.privacy.core.rule import ProbeEnd, TextView
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.redaction.detectors import EVERYTHING, Detectors
from tracemill.privacy.redaction.prefilter import Prefilter, Probe
from tracemill.privacy.redaction.redact_json import unescape_json_for_redaction
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor, redact_arguments
from tracemill.privacy.secrets.assignments import find_assignment_starts

DETECTORS = Detectors(
    make_known(['say "hi"\nthere', "plain-value"], ["klarsen"], ["/data/people/kim"], ["box"])
)
PIECES = (
    "password = Zx81kTq0 ", "api_key: 9f86d081884c7d659a2feaa0c55ad015", "token is a8Kd72LqZz91a8Kd72Lq",
    "://u:p4ssw0rd@h", "klarsen", "/home/jdoe/x", "-Users-jdoe-x", "C:\\Users\\jdoe\\a", "~jdoe/x",
    "uid=1000(jdoe)", "jdoe@box:~$ ", "kim.larsen@northwind.io", "203.12.88.140", "fe80::1c2:3ff:fe4:5",
    "3c:22:fb:9a:01:7e", "+1 415 555 2671", 'say "hi"\nthere', "plain-value", "/data/people/kim/x",
    "gh" + "p_" + "a8Kd72Lq" * 4 + "Zz91", "\n", " ", "\\n", '"', "curl -u app:Zx81kTq0 h",
    "DE87474729419808328063", "x" * 90, "Cookie: a=" + "a1b2" * 8, "é", "☃", "\x00", "key",
    "Authorization: Basic dXNlcjpwYXNzd29yZA", "--password hunter22 ", "DB_PASSWORD=quiet_meadow\n",
    "<password>Zx81kTq0</password>", "name: API_KEY\n  value: a8Kd72LqZz91\n", "'", "`", ":", "=", "\\",
    "net use x \\\\srv\\s Zx81kTq0 /user:kim", "root:Zx81kTq0 | chpasswd", "login me password Zx81kTq0",
    "-rw-r--r-- 1 jdoe staff 3 a", "chown jdoe:staff x", "jdoe:x:1001:", "4539 1488 0343 6467",
    "536-22-8712", "tel: 030 1234567", "0161 496 0000", "abcd.ef01.2345", "Linux meadow 6.1.0 x",
    "AKIA" + "ABCDEFGHIJKLMNOP", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc-def_ghi", "%40northwind.io",
    "app:$6$saltsalt$" + "aB3./" * 12, "echo Zx81kTq0 | docker login -u a --password-stdin",
    "keytool -storepass Zx81kTq0 -alias a", "nmcli d w c Attic password Zx81kTq0", "Server=a;Uid=sa;Pwd=Zx 81!;B=1",
    "Das Passwort lautet Zx81kTq0", "login with admin / Zx81kTq0", "smtp.login('a', 'Zx81kTq0')",
    "https://h.dev/reset-password/a8Kd72LqZz91a8Kd72Lq", "?key=a8Kd72LqZz91a8Kd72Lq", "%5F", "&#95;", "\\x67",
    "gh" + "p_" + "a8Kd72LqZz91", "\x1b[0m", "\u200b", '" + "', "\\\n", "k@h\xf6he.de", "kim [at] north [dot] de",
    "172.19.88.0/24", "ec2-54-93-112-7.compute.x.com", "ether a483e72c913f", "[sudo] password for jdoe:",
    "sudo: jdoe : TTY=pts/0", "Author: Kim Larsen <kim@x.y>", "git config user.name 'Kim Larsen'",
    "Nov 21 10:00:01 meadow sshd[1]: x", "ssh falcon-db2", "My-MacBook.local", "http://ci.intra.north.de:80",
    "ACME\\klaus", '"login": "jdoe"', "uid=1000(jdoe)", "/tmp/pytest-of-jdoe/x", "PID %CPU\njdoe 1 0.0 0.1 5 6 ? S\n",
    "VE9LRU49Z2hwX3J4RW1yZGp6ZjZiMW1Vb2p2QWVoUmxtY1h3emhrNTZMMFYxWAo=", 'psk="blue house 42 lane"',
    "\n+PASSWORD=Zx81kTq0", "\nENV PASSWORD Zx81kTq0\n", "by Kim Larsen <kim@x.dev>", "Author: Kim Larsen <k@users.north.io>",
    "aB3/" * 17 + "\n", "drwxr-x--T 2 root jdoe 64 ", "root 1 0.0 0.1 5 6 ? S\n",
    "lumen_live_" + "a8Kd72LqZz91" * 2, "API_SECRET=\"first\nsecond\"\n", "s." + "aB3" * 8, "Ab1" * 100, "\u0663", "\u017f",
)  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map("".join)
NAMES = ["password", "name", "value", "api_key", "key", "--token", "Authorization", "token_type", "tokens"]
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(0, 10**9), st.none(), TEXTS.map(json.dumps)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), TEXTS), inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=2).map(json.dumps),
    ),
    max_leaves=6,
)  # fmt: skip


def _leaf(thorough: bool) -> ScopedTextRedactor:
    return ScopedTextRedactor(DETECTORS, b"k", "t", thorough=thorough)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
@example('"\\u0070assword": "Zx81kTq0"')
@example("password passwords::tests::Zx81kTq0 password=Zx81kTq0")
@example("secret" * 60 + " = a8Kd72LqZz91a8Kd72Lq")
@example("SPDX-FileCopyrightText: Kim Larsen")
@example("Author__ = 'Kim Larsen'")
@example("    12  Kim Larsen\n     3  Ada van Dyk\n")
@example('["7\\tKim Larsen\\n9\\tAda Dyk"]')
@example("   1\tmachine h\n   2\t login a\n   3\t password Zx81kTq0\n")
@example("> 12: PASSWORD=\n> 13: Zx81kTq0\n")
@example("plain-value" + "ghp_a8Kd72LqZz91" * 2)
@example("kim.larsen@northwind.iolumen_live_a8Kd72LqZz91a8Kd72LqZz91")
@example("lumen__a8Kd72LqZz91b8Kd72LqXz91")
@example("lumen_live_a8Kd7_2LqZz_91b8K_d72Lq_Xz91Bc")
def test_a_text_gives_the_same_with_and_without_its_probes(text: str) -> None:
    needs = DETECTORS.needs(text)
    plain = DETECTORS.spans(text, EVERYTHING)
    assert needs.bits or not plain
    fast, slow = _leaf(thorough=False), _leaf(thorough=True)
    assert fast.redact(text) == slow.redact(text)
    assert fast.findings == slow.findings


def test_needs_hold_for_an_equal_text() -> None:
    text = "x = " + "gh" + "p_" + "a8Kd72Lq" * 4 + "Zz91\n"
    needs, again = DETECTORS.needs(text), "".join([text[:9], text[9:]])
    assert again is not text
    assert DETECTORS.spans(again, needs) == DETECTORS.spans(text, needs) != []


# What an assignment and a joint are made of: mark before it, name, quote behind it, sign, scheme, quote of the
# value, value, what follows.
BEFORE = ["", "\n", "ENV ", '"', '("', "['", "> get ", "> hget a ", "(def ", "#define ", "-e ", "+", "x&"]
SECRET_NAMES = [
    "password", "PASS", "pwd", "PSK", "wifi_psk", "kennwort", "Kennwort",
    "KENNWORT", "secret", "TOKEN", "credential", "apiKey", "API_KEY", "auth",
    "GH_PAT", "connection_string", "connectionString", "passphrase", "passcode", "PASS_2", "--password",
    "--kennwort", "--api-key", "licenseKey", "db.pass", "my-pass", "DB_credential", "KennwortValue",
]  # fmt: skip
SIGNS = [
    ":", ": ", "=", " = ", "=>", ":=", ", ", " is ", " | ", ">", " ", " as ", ": str = ", " --body ", ":\n ", ":\n  - ",
    ": [\"a\", ", "\x1b[0m=", "=\x1b[32m", ' ||= "', ' ?? "', ': &str = "', " ist ", "\t", " ?= ", '}="', '  "',
    ' = Some("', ': Foo = SecretStr("', ' or "', ":-", " \u2502 ", "</key><string>", '" {\n default = "', "?\n its ",
    ' is old, use "', "?\nit is ", '"\n"',
]  # fmt: skip
SCHEMES = ["", "", "", "Bearer ", "key ", "f", "rb"]
QUOTES = ["", '"', "'", "`", '\\"', "\\'", '\\\\"']
AROUND_QUOTES = st.sampled_from([*"abcXYZ0178!", '"', "'", "`", "\\", '\\"', "\\n"])
SET_VALUES = st.one_of(
    st.lists(st.text("abdestu", min_size=2, max_size=4), min_size=3, max_size=6).map("-".join),
    st.text("0123456789", min_size=5, max_size=7),
    st.text("abcdXYZ017", min_size=6, max_size=24),
    st.lists(AROUND_QUOTES, min_size=8, max_size=36).map("".join),
    st.sampled_from(["Abcde1fghi", "\\'Zx81k'Tq0a8Kd7", "XXR0\\'8`b\\\"", "blue-horse-red-cat"]),
)
ENDS = ["", "\n", '"', "'", "`", ")", "</x>", ";", " ", "\x1b[0m", "}", "\u2502", "</string>", '"\n']


@given(
    *map(st.sampled_from, (BEFORE, SECRET_NAMES, QUOTES, SIGNS, SCHEMES, QUOTES)),
    SET_VALUES,
    st.sampled_from(ENDS),
)
@settings(max_examples=500, deadline=None)
@example("\n", "kennwort", '"', " --body ", "", '"', "Abcde1fghi", "")
@example("", "Kennwort", '"', ": ", "", '\\"', "XXR0\\'8`b", "")
@example("", "kennwort", "", ":\n ", "", "", "30596a7b1", "\n")
@example("", "connectionString", "", ' ?? "', "", "", "383M4ajdd161M4bi7g4", '"')
@example("(def ", "db.pass", "", '  "', "", "", "dfh3dZfg1x", '"')
@example("", "API_KEY", '"', ": ", "", '"', "blue-horse-red-cat", "")
@example("", "PASS", "", ":", "", "", "blue-horse-red", "")
@example("", "PW", "", ": ", "", "", "BLaZer-Bird", "")
@example("", "password", "", "?\nit is ", "", '"', "00017X", "")
def test_every_way_to_set_a_secret_has_a_probe(
    before: str, name: str, close: str, sign: str, scheme: str, quote: str, value: str, end: str
) -> None:
    text = f"x {before}{name}{close}{sign}{scheme}{quote}{value}{quote}{end}"
    needs = DETECTORS.needs(text)
    found = DETECTORS.spans(text, needs) if needs.bits else []
    assert sorted(found) == sorted(DETECTORS.spans(text, EVERYTHING))


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=300, deadline=None)
@example({"api_key": "'My-MacBook.local203.12.88.140"}, False, None, False)
@example({"api_key": "'My-MacBook.local203.12.88.140"}, False, 1, False)
@example("{\x1b[0mecho Zx81kTq0 | docker login -u a --password-stdin", False, None, False)
@example("x\n+PASSWORD=Zx81kTq0\\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc-def_ghi", False, None, False)
def test_arguments_come_out_the_same_with_and_without_shortcuts(
    value: object, plain: bool, indent: int | None, slashed: bool
) -> None:
    text = json.dumps({"input": value}, ensure_ascii=plain, indent=indent)
    text = text.replace("/", "\\/") if slashed else text
    for given_text in (text, json.dumps(text), f"{text}\nplain {text}"):
        fast, slow = _leaf(thorough=False), _leaf(thorough=True)
        assert redact_arguments(fast, given_text) == redact_arguments(slow, given_text)
        assert fast.findings == slow.findings


@given(VALUES, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_string_of_json_stands_in_its_unescaped_text(value: object, plain: bool, slashed: bool) -> None:
    text = json.dumps([value], ensure_ascii=plain)
    text = text.replace("/", "\\/") if slashed else text
    for whole in (False, True):
        flat = unescape_json_for_redaction(TextView(text).raw, whole)
        for string in _strings(value):
            if "\0" not in string and not any(ord(c) >= 0xD800 for c in string):
                assert TextView(string).raw in flat


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [s for pair in value.items() for each in pair for s in _strings(each)]
    if isinstance(value, list):
        return [s for each in value for s in _strings(each)]
    return [value] if isinstance(value, str) else []


def test_a_large_text_gives_the_same_as_its_detectors_one_by_one() -> None:
    rng = random.Random(4)
    text = "".join(
        rng.choice((*PIECES, "def f(x):\n    return x\n", "commit 9fceb02d0ae598e9 ")) for _ in range(8_000)
    )
    assert sorted(DETECTORS.spans(text, DETECTORS.needs(text))) == sorted(DETECTORS.spans(text, EVERYTHING))


@pytest.mark.parametrize(
    "text",
    [
        "def parse(tokens, key=None):\n    for token in tokens:\n        yield token.key\n",
        "3 passed, 1 failed in 0.41s\nsha256:" + "9f86d081884c7d659a2feaa0c55ad015" * 2,
        '{"file_path": "src/auth/token.py", "limit": 200, "input_tokens": 1200, "next_token": null}',
        "2026-11-21 10:02:33 INFO request 7f3e took 12ms, 3.11.4 -> 3.12.0",
    ],
)
def test_ordinary_text_needs_no_detector_at_all(text: str) -> None:
    assert DETECTORS.needs(text).bits == 0


def test_probes_tell_which_matched_and_where_the_located_ones_ended() -> None:
    prefilter = Prefilter([Probe("(?i)ab+c", 1), Probe("x[0-9]", 2, located=True), Probe("q", 4)])
    ends: list[ProbeEnd] = []
    assert prefilter.bits(b"..aBBc..x1..x2", ends) == 3
    assert ends == [(10, 2), (14, 2)]
    assert prefilter.bits(b"nothing", ends) == 0


def test_a_pattern_that_detectors_share_is_matched_once_for_all_of_them() -> None:
    prefilter = Prefilter([Probe("x[0-9]", 1, located=True), Probe("q", 8), Probe("x[0-9]", 2, located=True)])
    ends: list[ProbeEnd] = []
    assert prefilter.bits(b"..x1..x2", ends) == 3
    assert ends == [(4, 3), (8, 3)]
    apart = Prefilter([Probe("x[0-9]", 1, located=True), Probe("x[0-9]", 4)])
    assert apart.bits(b"x1", ends) == 5


def test_a_detector_reads_only_near_its_own_probes() -> None:
    view = TextView("." * 3000, [ProbeEnd(400, 1), ProbeEnd(1000, 2), ProbeEnd(1100, 3)])
    assert view.of_detector(1).windows() == [(144, 400), (844, 1100)]
    assert view.of_detector(2).windows() == [(744, 1100)]
    assert view.windows() == [(144, 400), (744, 1100)]
    assert view.of_detector(1).once(TextView.windows) is view.windows()
    assert TextView("." * 3000).of_detector(1).windows() == [(0, 3000)]


def test_runs_of_a_plane_are_those_of_the_least_size_and_more() -> None:
    view = TextView("abc_defghi+k " + "A1" * 12 + "/" + "b" * 9)
    assert list(view.long_runs("runs", 10)) == [(0, 10), (13, 37)]
    assert list(view.long_runs("runs", 9)) == [(0, 10), (13, 37), (38, 47)]
    assert list(view.long_runs("data", 12)) == [(0, 12), (13, 47)]
    assert list(TextView("").long_runs("data", 12)) == []


def test_words_of_names_are_looked_up_once_for_all_detectors_of_a_text() -> None:
    view = TextView("api_keys: [first, second]\nnext_token = 12\n")
    starts = find_assignment_starts(view)
    assert starts == [(4, 7), (31, 36)]
    assert find_assignment_starts(view) is starts
    assert find_assignment_starts(TextView("no name")) == []


@pytest.mark.parametrize(
    "text",
    [
        "api_key:\n  - a8Kd72LqZz91a8Kd72Lq\n",
        "api_keys: ['a8Kd72LqZz91a8Kd72Lq', 'b8Kd72LqZz91a8Kd72Lq']",
        'variable "db_password" {\n  type = string\n  default = "Zx81-kTq0-Mw"\n}\n',
        "authorization: |\n  a8Kd72LqZz91a8Kd72Lq\n",
        "auth ||= 'a8Kd72LqZz91a8Kd72Lq'",
        "github_pat => [a8Kd72LqZz91a8Kd72Lq]",
        '(defvar my-api-key "a8Kd72LqZz91a8Kd72Lq")',
    ],
)
def test_values_below_in_lists_and_joined_otherwise_have_a_probe(text: str) -> None:
    found = DETECTORS.spans(text, DETECTORS.needs(text))
    assert found
    assert sorted(found) == sorted(DETECTORS.spans(text, EVERYTHING))


@pytest.mark.parametrize(
    ("text", "prefixed"),
    [
        ("\n- run: make\n- run: test\n", 1),
        ("@@ -1,2 +1,2 @@\n-old\n+new\n", 1),
        ("\n 12\tone\n 13\ttwo\n", 1),
        ("steps:\n  - run: make\n  - run: test\n", 0),  # an indented list is no diff
        ("a = (b\n     + c\n     - d)\n", 0),
    ],
)
def test_lines_of_a_diff_begin_with_their_sign(text: str, prefixed: int) -> None:
    prefilter = Prefilter([Probe(probe, 1) for probe in PREFIX_PROBES])
    assert prefilter.bits(text.encode("latin-1"), []) == prefixed


def test_threads_scan_at_once_without_mixing_up_what_they_find() -> None:
    texts = [f"{PIECES[n % len(PIECES)]} " * 50 for n in range(400)]
    alone = [DETECTORS.needs(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(DETECTORS.needs, texts)) == alone


def test_windows_reach_as_far_as_a_detector_asks() -> None:
    view = TextView("x" * 1000, [ProbeEnd(40, 1), ProbeEnd(500, 1), ProbeEnd(560, 2), ProbeEnd(900, 1)])
    assert view.windows() == [(0, 40), (244, 560), (644, 900)]
    assert view.windows(64) == [(0, 40), (436, 560), (836, 900)]
    assert view.of_detector(2).windows(64) == [(496, 560)]
