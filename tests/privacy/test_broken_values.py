"""Tokens and known secrets that a line end, the prefix of a line or a joined literal interrupts."""

import base64
import random
import string

import pytest
from secret_sessions import echoed_trace
from whole_records import whole_text

from tracemill.privacy.core.line_prefixes import join_broken_lines
from tracemill.privacy.publish_gate.strict_rules import find_strictly
from tracemill.privacy.redaction.redactor import Redactor

REDACTOR = Redactor(key=b"k")
LETTERS = string.ascii_letters + string.digits


def _drawn(size: int, alphabet: str = LETTERS, seed: int = 7) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=size))


TOKENS = {
    "anthropic": "sk-" + "ant-api03-" + _drawn(93) + "AA",
    "openrouter": "sk-" + "or-v1-" + _drawn(64, "0123456789abcdef"),
    "hugging face": "hf" + "_" + _drawn(34, string.ascii_letters),
    "supabase": "sb_" + "secret_" + _drawn(31),
    "google": "AQ." + "Ab8RN6" + _drawn(44),
    "telegram": "8123456789:" + "AA" + _drawn(33),
}
BREAKS = {
    "line": "use {}\n{} now",
    "indented": "key: {}\n    {}\nnext: 1",
    "backslash": 'x = "{}\\\n{}"',
    "numbered": "    11\tkey: {}\n    12\t{}\n    13\tnext: 1",
    "arrow": "    11→key: {}\n    12→  {}\n    13→next: 1",
    "grep": "src/a.ts:21:  k = '{}\nsrc/a.ts:22:{}'\nsrc/a.ts:23:next",
    "diff": "@@ -1 +1,3 @@\n+key {}\n+    {}\n+next",
    "log of a job": "2026-03-04T10:11:12.1234567Z key {}\n2026-03-04T10:11:13.1234567Z {}\n",
    "log of a host": "Mar 04 10:11:12 node7 api[22]: key {}\nMar 04 10:11:13 node7 api[22]: {}\n",
    "container": "api-1  | key {}\napi-1  | {}\n",
    "colours": "\x1b[32mkey {}\x1b[0m\n\x1b[32m  {}\x1b[0m\n",
    "comment": "# key {}\n# {}\n",
    "literals": "k = ('{}'\n     '{}')",
    "joined": "k = '{}' + '{}';",
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("broken", BREAKS)
def test_a_token_is_found_over_a_break(kind: str, broken: str) -> None:
    token = TOKENS[kind]
    cut = len(token) * 3 // 5
    redacted, _ = REDACTOR.redact_text(BREAKS[broken].format(token[:cut], token[cut:]))
    assert token[cut - 8 : cut] not in redacted
    assert token[cut : cut + 8] not in redacted
    assert token[-8:] not in redacted


def test_what_follows_a_whole_token_stays() -> None:
    token = TOKENS["anthropic"]
    for after in ("REPLICAS: 3", "next_step = run_all()", "ConnectionError", "and do not commit it"):
        redacted, _ = REDACTOR.redact_text(f"key: {token}\n    {after}")
        assert redacted.endswith(f"\n    {after}"), redacted


def test_words_over_a_line_end_are_no_token() -> None:
    text = "the API-Reference\nabout2Things says sdk-configuration\nusage12 or pat-na\nrows2"
    assert REDACTOR.redact_text(text)[0] == text


@pytest.mark.parametrize("cut", [5, 9, 16, 25, 34])
@pytest.mark.parametrize("broken", BREAKS)
def test_a_known_secret_is_found_over_a_break_wherever_it_is(broken: str, cut: int) -> None:
    value = _drawn(40, "0123456789abcdef", 3)
    text = BREAKS[broken].format(value[:cut], value[cut:])
    redacted, _ = REDACTOR.redact_trace(echoed_trace(f"export DB_PASSWORD='{value}'", text, "later result"))
    shown = whole_text(redacted)
    assert value[cut : cut + 8] not in shown
    assert max(value[:cut], value[cut:], key=len) not in shown


def test_the_rest_of_a_secret_behind_its_own_placeholder_goes_too() -> None:
    value = _drawn(32, seed=5)
    text = f"send: x-auth={value[:25]}\nsrc/a.py:7:{value[25:]} bytes=231"
    redacted, _ = REDACTOR.redact_trace(echoed_trace(f"export API_TOKEN='{value}'", text, "result"))
    assert value[25:] not in whole_text(redacted)


@pytest.mark.parametrize("name", ["DbPass", "db_pass", "DB_PASS", "AdminSecret"])
def test_a_value_under_a_name_is_found_in_base64(name: str) -> None:
    value = _drawn(16)
    coded = base64.b64encode(f"{name}={value}".encode()).decode()
    assert coded not in REDACTOR.redact_text(f"saved {coded} there")[0]


@pytest.mark.parametrize("kind", TOKENS)
def test_any_token_is_found_in_base64_and_hex(kind: str) -> None:
    for coded in (base64.b64encode(TOKENS[kind].encode()).decode(), TOKENS[kind].encode().hex()):
        assert coded[10:30] not in REDACTOR.redact_text(f"got {coded} back")[0]


def test_encoded_text_without_a_secret_stays() -> None:
    words = base64.b64encode(b"The quick brown fox jumps over the lazy dog, twice a day.").decode()
    digest = _drawn(64, "0123456789abcdef")
    text = f"{words}\n{digest}\n{b'plain text of a test'.hex()}"
    assert REDACTOR.redact_text(text)[0] == text


def test_places_in_joined_lines_are_those_of_the_text() -> None:
    text = "a.py:1:left\na.py:2:right side"
    (joined,) = (each for each in join_broken_lines(text) if "leftright" in each.text)
    at = joined.text.index("leftright")
    start, end = joined.place_whole(at, at + len("leftright"))
    assert text[start:end] == "left\na.py:2:right"
    assert joined.cuts(at, at + len("leftright")) == [at + 4]


STRICT = {
    "followed by its use": ("use {} as the app secret for dev", _drawn(40, "0123456789abcde", 9) + "f1"),
    "alone": ("$ ./issue\n{}\n", _drawn(44, seed=11)),
    "made up": ("driver.find_element(By.ID, 'pass').send_keys(\"{}\")", "Walnut-Tandem417!"),
}


@pytest.mark.parametrize("name", STRICT)
def test_the_strict_rules_find_what_only_a_review_can_judge(name: str) -> None:
    text, value = STRICT[name]
    whole = text.format(value)
    found = [whole[start:end] for start, end, _ in find_strictly(whole)]
    assert any(value in each or each in value for each in found), found


UNANNOUNCED = {
    "code": ("Your Acme verification code is {}. It expires.", "482915"),
    "link": ("https://acme.test/reset-password?t={}&u=2", _drawn(40, "0123456789abcdef", 13)),
}


@pytest.mark.parametrize("name", UNANNOUNCED)
def test_codes_and_links_of_one_use_are_redacted(name: str) -> None:
    text, value = UNANNOUNCED[name]
    assert value not in REDACTOR.redact_text(text.format(value))[0]


def test_persons_that_somebody_deals_with_are_redacted() -> None:
    for text in (
        "I talked to Maren Lindqvist from billing",
        "Cc: Maren Lindqvist; Re: x",
        "ask Maren Lindqvist, she",
    ):
        shown, found = REDACTOR.redact_text(text)
        assert (found, "Maren" in shown, "Lindqvist" in shown) == ({"PERSON": 1}, False, False), text


def test_the_strict_rules_leave_digests_ids_and_blocks() -> None:
    line = _drawn(64, seed=21)
    for text in (
        f"sha256 = {_drawn(64, '0123456789abcdef')}",
        f"id: {_drawn(32, seed=17)}",
        f"-----BEGIN CERTIFICATE-----\n{line}\n{_drawn(64, seed=22)}\n-----END CERTIFICATE-----",
        "auth..Token$GT$17h1f1b44f743ae2197E\n4938b2b35a0ed039 T _ZN",
        "the response code is 4041 and asked Visual",
    ):
        assert list(find_strictly(text)) == [], text
