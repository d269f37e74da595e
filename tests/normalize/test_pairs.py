"""The default recipe over pairs made by hand: which rows stay, which go, and what is said of them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from plain_pairs import plain_pair

from tracemill.normalize.normalizer import DJNormalizer, Normalized, OperatorCount
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair


class Untouchable(list[Message]):
    """A state that must not be read: a context belongs to the release writer alone."""

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("the state was read")

    def __getitem__(self, key: object) -> Message:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise AssertionError("the state was read")


def said(text: str) -> tuple[Message, ...]:
    return (Message("assistant", text),)


def called(name: str, arguments: str) -> tuple[Message, ...]:
    return (Message("assistant", "", (ToolCall("call-1", name, arguments),)),)


def pair(number: int, chosen: tuple[Message, ...], rejected: tuple[Message, ...]) -> DPOPair:
    return plain_pair(
        number,
        state_messages=Untouchable(),
        chosen=chosen,
        rejected=rejected,
        rejected_operation="run",
        source="claude_code",
        harness="claude_code",
    )


FINE = "I read the file first."
OTHER = "I guess and edit at once."
LENGTH = "side_length_filter"
SPECIAL = "side_special_characters_filter"
TOO_SPECIAL = "more than 50% special characters"
REPEATED = "i READ... the file, first!"
MANY, OTHERS = (
    ["".join(signs) for signs in product(letters, repeat=3)]
    for letters in ("abcdefghijklmnop", "qrstuvwxyzABCDEF")
)
TURNS, SIMILAR, RATIO = "side_turns_filter", "sides_similar_filter", "sides_ratio_filter"
GREP = '{"command": "grep -rn lantern src/glow/brightness/slider.py --include all"}'
LS = called("Bash", '{"command": "ls"}')
CASES: tuple[tuple[tuple[Message, ...], tuple[Message, ...], str, str, str], ...] = (
    (said(FINE), said(OTHER), "", "", ""),
    (said("1234567"), said(OTHER), f"{LENGTH}(chosen)", "fewer than 8 characters", "7"),
    (said(FINE), said("abc"), f"{LENGTH}(rejected)", "fewer than 8 characters", "3"),
    (said("abc defg"), said(OTHER), "", "", ""),
    (said("ab" * 8000 + " " + "c" * 15999), said("de" * 8000 + " " + "f" * 15999), "", "", ""),
    (said(" ".join(MANY)), said(" ".join(OTHERS)), "", "", ""),
    (said("ab" * 16000 + " c"), said(OTHER), f"{LENGTH}(chosen)", "more than 32000 characters", "32002"),
    (said("onewordonly"), said(OTHER), "side_words_filter(chosen)", "fewer than 2 words", "1"),
    (said(FINE), said("w " * 4097), "side_words_filter(rejected)", "more than 4096 words", "4097"),
    (said("先に全部のファイルを読む"), said(OTHER), "", "", ""),
    (called("finish", "{}"), said("finished it"), f"{LENGTH}(chosen)", "fewer than 8 characters", "6"),
    (called("submit_it", "{}"), said("It is finished"), "", "", ""),
    (LS, called("Bash", '{"command": "ls -la"}'), "", "", ""),
    (said("ab ! cd ? =="), said(OTHER), f"{SPECIAL}(chosen)",
     TOO_SPECIAL, "0.6667"),
    (said("abcd efgh 1234 5"), said(FINE), "", "", ""),
    (said(FINE), said("??? !!! a b c"), f"{SPECIAL}(rejected)",
     TOO_SPECIAL, "0.7692"),
    (LS, LS, "sides_differ_filter(chosen, rejected)", "both sides read the same", ""),
    (said(REPEATED), said("I guess\nand edit at once 12."), "pair_deduplicator(chosen, rejected)",
     "repeats an earlier row", "trace-0:0:0:hindsight"),
    (said(OTHER), said(FINE), "", "", ""),
    (said("again and again it loops. " * 30), said(OTHER), "side_repetition_filter(chosen)",
     "more than 50% of it said before", "0.9645"),
    (said("I look.\n\nHuman: go on\n"), said(OTHER), f"{TURNS}(chosen_said)", "several turns in one", "2"),
    (said(FINE), (*said(OTHER), *said("And again.")), f"{TURNS}(rejected_said)", "several turns in one", "2"),
    (said("Done: nothing is left."), said("Done.\n<|im_start|>user go"), f"{TURNS}(rejected_said)",
     "several turns in one", "2"),
    (called("Bash", GREP), called("Bash", GREP.replace("lantern", "lanterns")),
     f"{SIMILAR}(chosen, rejected)", "sides more than 95% alike", "0.9933"),
    (said(" ".join(MANY[:300])), said(OTHER), f"{RATIO}(chosen, rejected)",
     "one side more than 3 times as long", "6.00"),
    (called("Bash", " ".join(MANY[300:600])), said(OTHER), "", "", ""),
    (said(" ".join(MANY[:150])), said(" ".join(OTHERS[:150])), "", "", ""),
    (said(" ".join([*MANY[:99], "else", *MANY[100:150]])), said(" ".join(OTHERS[:150])),
     "pair_minhash_deduplicator(chosen, rejected)", "nearly repeats an earlier row",
     "trace-26:0:0:hindsight"),
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs() -> list[DPOPair]:
    return [pair(number, chosen, rejected) for number, (chosen, rejected, *_) in enumerate(CASES)]


@pytest.fixture(scope="module")
def normalized(pairs: list[DPOPair], tmp_path_factory: pytest.TempPathFactory) -> Normalized:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        result = DJNormalizer().normalize(pairs)
    assert list(home.iterdir()) == []
    return result


def test_every_case_is_judged_as_written(pairs: list[DPOPair], normalized: Normalized) -> None:
    verdicts = {d.pair.step_id: (d.operator, d.reason, d.value) for d in normalized.dropped}
    expected = {p.step_id: case[2:] for p, case in zip(pairs, CASES, strict=True) if case[2]}
    assert verdicts == expected
    assert [k.pair.step_id for k in normalized.kept] == [
        p.step_id for p in pairs if p.step_id not in expected
    ]


def test_the_counts_are_those_of_the_rows(normalized: Normalized) -> None:
    assert [(c.operator, c.rows_in, c.dropped, c.errors) for c in normalized.counts] == [
        ("side_length_filter(chosen)", 28, 3, 0),
        ("side_length_filter(rejected)", 25, 1, 0),
        ("side_words_filter(chosen)", 24, 1, 0),
        ("side_words_filter(rejected)", 23, 1, 0),
        ("side_special_characters_filter(chosen)", 22, 1, 0),
        ("side_special_characters_filter(rejected)", 21, 1, 0),
        ("side_repetition_filter(chosen)", 20, 1, 0),
        ("side_repetition_filter(rejected)", 19, 0, 0),
        ("side_turns_filter(chosen_said)", 19, 1, 0),
        ("side_turns_filter(rejected_said)", 18, 2, 0),
        ("sides_differ_filter(chosen, rejected)", 16, 1, 0),
        ("sides_similar_filter(chosen, rejected)", 15, 1, 0),
        ("sides_ratio_filter(chosen, rejected)", 14, 1, 0),
        ("pair_deduplicator(chosen, rejected)", 13, 1, 0),
        ("pair_minhash_deduplicator(chosen, rejected)", 12, 1, 0),
    ]
    assert len(normalized.kept) == 11


def test_a_kept_pair_carries_both_shapes(pairs: list[DPOPair], normalized: Normalized) -> None:
    kept = {k.pair.step_id: k for k in normalized.kept}["trace-12:0:0"]
    assert kept.chosen_text == "Bash command: ls"
    assert kept.rejected_text == "Bash command: ls -la"
    assert kept.pair is pairs[12]
    assert kept.recipe == normalized.recipe == f"default-{normalized.fingerprint[:12]}"


def test_no_pairs_start_no_process() -> None:
    result = DJNormalizer(timeout_s=0.0).normalize([])  # a process would be too slow for that
    assert (result.kept, result.dropped) == ([], [])
    assert result.counts[0] == OperatorCount("side_length_filter(chosen)", 0, 0, 0)
    assert len(result.counts) == 15


TEXTS = (
    FINE,
    OTHER,
    FINE.upper(),
    "two words",
    "\ud800 half a pair",
    "\x00\x01 control",
    "",
    "é" * 9,
    "先に",
)


def test_every_pair_comes_out_once() -> None:
    coin = random.Random(20261121)
    signs = [*map(chr, range(0x250)), "\ud800", "\u2028", "\U0001f600"]
    texts = [*TEXTS, *("".join(coin.choices(signs, k=coin.randrange(40))) for _ in range(200))]
    rows = [(coin.choice(texts), coin.choice(texts), coin.random() < 0.5) for _ in range(600)]
    pairs = [
        pair(n, called("Bash", chosen) if call else said(chosen), said(rejected))
        for n, (chosen, rejected, call) in enumerate(rows)
    ]
    result = DJNormalizer().normalize(pairs)
    out = [k.pair.step_id for k in result.kept] + [d.pair.step_id for d in result.dropped]
    assert sorted(out) == sorted(p.step_id for p in pairs)
    assert sum(c.dropped for c in result.counts) == len(result.dropped)
    assert result.counts[0].rows_in == len(pairs)
    for before, after in zip(result.counts, result.counts[1:], strict=False):
        assert after.rows_in == before.rows_in - before.dropped


def test_the_order_of_pairs_decides_which_of_two_equals_stays(tmp_path: Path) -> None:
    teachers = replace(pair(1, said(FINE), said(OTHER)), label_source="teachers")
    hindsight = pair(1, said(FINE), said(OTHER))
    result = DJNormalizer(cache_dir=tmp_path / "cache").normalize([teachers, hindsight])
    assert [k.pair.label_source for k in result.kept] == ["teachers"]
    assert result.dropped[0].value == "trace-1:0:0:teachers"
    assert (tmp_path / "cache").is_dir()
