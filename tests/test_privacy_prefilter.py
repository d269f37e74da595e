"""The fast path finds exactly what every detector put to every text finds."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.detectors import EVERYTHING, Detectors
from privacy.identity import make_known
from privacy.leaf import LeafRedactor, redact_arguments
from privacy.prefilter import CHUNK, AnchorIndex
from privacy.rules import View

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
)  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map("".join)
NAMES = ["password", "name", "value", "api_key"]
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(0, 10**9), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), TEXTS), inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def _leaf(thorough: bool) -> LeafRedactor:
    return LeafRedactor(DETECTORS, b"k", "t", thorough=thorough)


@given(st.lists(TEXTS, min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_texts_looked_at_together_give_what_each_gives_alone(texts: list[str]) -> None:
    needs = DETECTORS.needs(texts)
    for text, need in zip(texts, needs, strict=True):
        plain = DETECTORS.spans(text, EVERYTHING)
        assert sorted(DETECTORS.spans(text, need)) == sorted(plain)
        assert sorted(DETECTORS.spans(text, DETECTORS.needs_of(View(text)))) == sorted(plain)
        assert need.bits or not plain


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
def test_arguments_come_out_the_same_with_and_without_shortcuts(
    value: object, plain: bool, indent: int | None
) -> None:
    text = json.dumps({"input": value}, ensure_ascii=plain, indent=indent)
    fast, slow = _leaf(thorough=False), _leaf(thorough=True)
    fast.prepare([text])
    assert redact_arguments(fast, text) == redact_arguments(slow, text)
    assert fast.findings == slow.findings


@given(
    st.lists(
        st.sampled_from([b"key", b"user=", b"@", b"-u", b"000-0000", b".00.", b"x", b" ", b"\n"]), max_size=40
    )
)
@settings(max_examples=200, deadline=None)
def test_the_index_finds_every_literal_whatever_the_length_of_the_text(parts: list[bytes]) -> None:
    literals = [b"key", b"user=", b"@", b"-u", b"000-0000", b".00."]
    index = AnchorIndex(literals)
    short = b"".join(parts)
    for text in (short, short + b" " * 4000, b"y" * 4001 + short):
        wanted = [(at, one) for one in literals for at in range(len(text)) if text.startswith(one, at)]
        assert sorted(index.find(text)) == sorted(wanted)


def test_a_large_text_gives_the_same_as_its_detectors_one_by_one() -> None:
    rng = random.Random(4)
    text = "".join(
        rng.choice((*PIECES, "def f(x):\n    return x\n", "commit 9fceb02d0ae598e9 ")) for _ in range(20_000)
    )
    assert len(text) > CHUNK
    assert sorted(DETECTORS.spans(text, DETECTORS.needs([text])[0])) == sorted(
        DETECTORS.spans(text, EVERYTHING)
    )
