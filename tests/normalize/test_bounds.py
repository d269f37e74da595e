"""The bounds of every operator: the value at the bound, the one below and the one above.

The operators live in one process of their own, as data-juicer does in a run; the tests read what it found.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracemill.normalize.context_length.cut_context import Cutter, Fitted
from tracemill.normalize.context_length.cut_plan import Plan, shorten_for_cut_plan
from tracemill.normalize.context_length.token_counts import count_message_tokens, estimate_token_count
from tracemill.normalize.operators.minhash import (
    MOST_WORDS,
    PERMUTATIONS,
    NearIndex,
    Signature,
    find_minhash_duplicates,
    minhash_signature,
    minhash_signatures,
    minhash_similarity,
    minhash_word_hashes,
    run_hashes,
)
from tracemill.normalize.operators.word_counts import count_words, letters_to_count, words_to_count
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.pair import Length

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, sys
from pathlib import Path
from tracemill.normalize.datajuicer import ray_stub
ray_stub.install_ray_stub()
from data_juicer.utils.constant import Fields
from tracemill.normalize.operators import pair_operators, side_filters

def made(name, arguments):
    return (vars(side_filters) | vars(pair_operators))[name](**arguments)

def filtered(name, arguments, row):
    found = made(name, arguments)
    samples = {key: [value] for key, value in row.items()} | {Fields.stats: [{}]}
    stats = found.compute_stats_batched(samples)[Fields.stats][0]
    return [stats[found.stat], found.verdict(row), found.explain(stats), found.process_batched(samples)]

def firsts(name, arguments, rows):
    found = made(name, arguments)
    return found.firsts(found.keyed(rows))

def refused(name, arguments):
    try:
        made(name, arguments)
    except ValueError as error:
        return str(error)

folder = Path(sys.argv[1])
asked = json.loads((folder / "asked.json").read_text())
made_of = {"filtered": filtered, "firsts": firsts, "refused": refused}
found = {kind: [made_of[kind](*each) for each in asked[kind]] for kind in asked}
(folder / "found.json").write_text(json.dumps(found))
"""
Arguments = dict[str, Any]
Row = dict[str, Any]
LENGTH, WORDS, SPECIAL = "SideLengthFilter", "SideWordsFilter", "SideSpecialCharactersFilter"
REPEATS, TURNS = "SideRepetitionFilter", "SideTurnsFilter"
DIFFER, SIMILAR, RATIO = "SidesDifferFilter", "SidesSimilarFilter", "SidesRatioFilter"
SAME, NEAR = "PairDeduplicator", "PairMinhashDeduplicator"


def text(value: str, **fields: Any) -> Row:
    return {"text": value, **fields}


def sides(chosen: str, rejected: str, **fields: Any) -> Row:
    return {"chosen": chosen, "rejected": rejected, **fields}


FEW, MANY = "fewer than {} {}", "more than {} {}"
SHARE = "more than {} special characters"
SAID = "more than {} of it said before"
ALIKE = "sides more than {} alike"
LONGER = "one side more than {} times as long"
FILTERED: list[tuple[str, Arguments, Row, float, tuple[str, str] | None]] = [
    # characters of a side
    (LENGTH, {}, text("x" * 7), 7, (FEW.format(8, "characters"), "7")),
    (LENGTH, {}, text("x" * 8), 8, None),
    (LENGTH, {}, text("é" * 8), 8, None),
    (LENGTH, {}, text("x" * 32000), 32000, None),
    (LENGTH, {}, text("x" * 32001), 32001, (MANY.format(32000, "characters"), "32001")),
    (LENGTH, {"min_len": 5, "max_len": 5}, text("abcd"), 4, (FEW.format(5, "characters"), "4")),
    (LENGTH, {"min_len": 5, "max_len": 5}, text("abcde"), 5, None),
    (LENGTH, {"min_len": 5, "max_len": 5}, text("abcdef"), 6, (MANY.format(5, "characters"), "6")),
    (LENGTH, {"min_len": 0}, text(""), 0, None),
    (LENGTH, {"text_key": "said"}, text("x", said="x" * 8), 8, None),
    (LENGTH, {}, {"other": "x"}, -1, ("operator raised", "KeyError")),
    # words of a side
    (WORDS, {}, text(""), 0, (FEW.format(2, "words"), "0")),
    (WORDS, {}, text("one - !"), 1, (FEW.format(2, "words"), "1")),
    (WORDS, {}, text("one two"), 2, None),
    (WORDS, {}, text("w " * 4096), 4096, None),
    (WORDS, {}, text("w " * 4097), 4097, (MANY.format(4096, "words"), "4097")),
    (WORDS, {"min_num": 3, "max_num": 3}, text("a b"), 2, (FEW.format(3, "words"), "2")),
    (WORDS, {"min_num": 3, "max_num": 3}, text("a b c"), 3, None),
    (WORDS, {"min_num": 3, "max_num": 3}, text("a b c d"), 4, (MANY.format(3, "words"), "4")),
    (WORDS, {"calls_key": "calls"}, text("one", calls=0), 1, (FEW.format(2, "words"), "1")),
    (WORDS, {"calls_key": "calls"}, text("one", calls=1), -1, None),
    (WORDS, {"calls_key": "calls"}, text("w " * 4097, calls=1), -1, None),
    (WORDS, {}, text("one", calls=1), 1, (FEW.format(2, "words"), "1")),
    (WORDS, {"calls_key": "calls"}, text("one two", calls=None), -1, ("operator raised", "TypeError")),
    # special characters of a side
    (SPECIAL, {}, text(""), 0, None),
    (SPECIAL, {}, text("ab12"), 0.5, None),
    (SPECIAL, {}, text("a b "), 0.5, None),
    (SPECIAL, {}, text("abc" + "." * 5), 0.625, (SHARE.format("50%"), "0.6250")),
    (SPECIAL, {}, text("éé12"), 0.5, None),
    (SPECIAL, {}, text("é123"), 0.75, (SHARE.format("50%"), "0.7500")),
    (SPECIAL, {"max_ratio": 0}, text("abcd"), 0, None),
    (SPECIAL, {"max_ratio": 0}, text("abc."), 0.25, (SHARE.format("0%"), "0.2500")),
    (SPECIAL, {"max_ratio": 0.25}, text("abc."), 0.25, None),
    (SPECIAL, {"max_ratio": 1}, text("...."), 1, None),
    # what was said before on a side
    (REPEATS, {}, text("w " * 10), 0, None),
    (REPEATS, {}, text("w " * 11), 0, None),
    (REPEATS, {}, text("w " * 12), 1 - 1 / 3, (SAID.format("50%"), "0.6667")),
    (REPEATS, {"rep_len": 1}, text(""), 0, None),
    (REPEATS, {"rep_len": 1, "max_ratio": 0.4}, text("a"), 0, None),
    (REPEATS, {"rep_len": 1, "max_ratio": 0.4}, text("a a"), 0.5, (SAID.format("40%"), "0.5000")),
    (REPEATS, {"rep_len": 1}, text("a a b b"), 0.5, None),
    (REPEATS, {"rep_len": 1}, text("a a a b b c c c"), 0.625, (SAID.format("50%"), "0.6250")),
    (REPEATS, {"rep_len": 3}, text("a a a a a b"), 0.5, None),
    (REPEATS, {"rep_len": 3, "max_ratio": 0.49}, text("a a a a a b"), 0.5, (SAID.format("49%"), "0.5000")),
    (REPEATS, {"rep_len": 3, "max_ratio": 0.75}, text("a a a a a b"), 0, None),
    (REPEATS, {"rep_len": 3}, text("a a a a b b"), 0, None),
    (REPEATS, {"rep_len": 3, "max_ratio": 0}, text("a b c a b d"), 0, None),
    (REPEATS, {"rep_len": 3, "max_ratio": 0}, text("a b c a b c"), 0.25, (SAID.format("0%"), "0.2500")),
    (REPEATS, {"rep_len": 2, "max_ratio": 0}, text("a b a b"), 1 - 2 / 3, (SAID.format("0%"), "0.3333")),
    # turns on a side
    (TURNS, {}, text("Done: all of it."), 1, None),
    (TURNS, {}, text("Done.\n\nHuman: go on"), 2, ("several turns in one", "2")),
    (TURNS, {}, text("Done.\nHuman: go on"), 1, None),
    (TURNS, {}, text("<|user|> go <|tool|> on"), 3, ("several turns in one", "3")),
    (TURNS, {"messages_key": "n"}, text("x", n=0), 1, None),
    (TURNS, {"messages_key": "n"}, text("x", n=1), 1, None),
    (TURNS, {"messages_key": "n"}, text("x", n=2), 2, ("several turns in one", "2")),
    (TURNS, {"messages_key": "n"}, text("a\n \n\tUser: b", n=0), 1, None),
    (TURNS, {"messages_key": "n"}, text("a\n \nUser: b", n=0), 2, ("several turns in one", "2")),
    # sides that are the same, alike, or of different length
    (DIFFER, {}, sides("a", " a\n"), 0, ("both sides read the same", "")),
    (DIFFER, {}, sides("a", "A"), 1, None),
    (DIFFER, {}, sides("a b", "a  b"), 1, None),
    (DIFFER, {"text_keys": ["x", "y"]}, sides("a", "a", x="1", y="2"), 1, None),
    (SIMILAR, {}, sides("x" * 20, "x" * 19 + "y"), 0.95, None),
    (SIMILAR, {}, sides("x" * 21, "x" * 20 + "y"), 1 - 2 / 42, (ALIKE.format("95%"), "0.9524")),
    (SIMILAR, {}, sides("x" * 19, "x" * 18 + "y"), 0, None),
    (SIMILAR, {}, sides("x" * 21, "x" * 19), 0.95, None),
    (SIMILAR, {"max_similarity": 0.5}, sides("ab", "ac"), 0.5, None),
    (SIMILAR, {"max_similarity": 0.5}, sides("abc", "abd"), 1 - 2 / 6, (ALIKE.format("50%"), "0.6667")),
    (SIMILAR, {"max_similarity": 0}, sides("ab", "cd"), 0, None),
    (SIMILAR, {"max_similarity": 0}, sides("ab", "bc"), 0.5, (ALIKE.format("0%"), "0.5000")),
    (SIMILAR, {"max_similarity": 1}, sides("ab", "ab"), 1, None),
    (RATIO, {}, sides("x" * 200, "x" * 600), 3, None),
    (RATIO, {}, sides("x" * 601, "x" * 200), 3.005, (LONGER.format(3), "3.00")),
    (RATIO, {}, sides("", "x" * 600), 3, None),
    (RATIO, {}, sides("x" * 199, "x" * 601), 3.005, (LONGER.format(3), "3.00")),
    (RATIO, {}, sides("x" * 201, "x" * 603), 3, None),
    (RATIO, {}, sides("x" * 604, "x" * 201), 604 / 201, (LONGER.format(3), "3.00")),
    (RATIO, {"max_ratio": 1, "least": 1}, sides("ab", "cd"), 1, None),
    (RATIO, {"max_ratio": 1, "least": 1}, sides("", "cd"), 2, (LONGER.format(1), "2.00")),
    (RATIO, {"calls_keys": ["c", "d"]}, sides("x" * 999, "", c=0, d=0), 4.995, (LONGER.format(3), "5.00")),
    (RATIO, {"calls_keys": ["c", "d"]}, sides("x" * 999, "", c=0, d=1), 1, None),
    (RATIO, {"calls_keys": ["c", "d"]}, sides("x" * 999, "", c=1, d=0), 1, None),
]
REFUSED: list[tuple[str, Arguments, str | None]] = [
    (LENGTH, {"min_len": 6, "max_len": 5}, "the minimum 6 is above the maximum 5"),
    (LENGTH, {"min_len": 5, "max_len": 5}, None),
    (WORDS, {"min_num": 3, "max_num": 2}, "the minimum 3 is above the maximum 2"),
    (SPECIAL, {"max_ratio": -0.01}, "the share -0.01 is not between 0 and 1"),
    (SPECIAL, {"max_ratio": 0}, None),
    (SPECIAL, {"max_ratio": 1}, None),
    (SPECIAL, {"max_ratio": 1.01}, "the share 1.01 is not between 0 and 1"),
    (REPEATS, {"max_ratio": -0.01}, "the share -0.01 is not between 0 and 1, or 10 words are none"),
    (REPEATS, {"max_ratio": 1.01}, "the share 1.01 is not between 0 and 1, or 10 words are none"),
    (REPEATS, {"max_ratio": 0, "rep_len": 1}, None),
    (REPEATS, {"max_ratio": 1}, None),
    (REPEATS, {"rep_len": 0}, "the share 0.5 is not between 0 and 1, or 0 words are none"),
    (SIMILAR, {"max_similarity": -0.01}, "the share -0.01 is not between 0 and 1"),
    (SIMILAR, {"max_similarity": 0}, None),
    (SIMILAR, {"max_similarity": 1}, None),
    (SIMILAR, {"max_similarity": 1.01}, "the share 1.01 is not between 0 and 1"),
    (RATIO, {"max_ratio": 0.99}, "the ratio 0.99 or the length 200 is below 1"),
    (RATIO, {"max_ratio": 1, "least": 1}, None),
    (RATIO, {"least": 0}, "the ratio 3.0 or the length 0 is below 1"),
    (DIFFER, {"text_keys": ["a"]}, "text_keys holds 1 fields where it takes 2"),
    (SAME, {"text_keys": ["a", "b", "c"]}, "text_keys holds 3 fields where it takes 2"),
    (NEAR, {"threshold": 0}, "the share 0 is not between 0 and 1, or 5 words not 1 to 64"),
    (NEAR, {"threshold": 0.01, "shingle": 1}, None),
    (NEAR, {"threshold": 1, "shingle": 64}, None),
    (NEAR, {"threshold": 1.01}, "the share 1.01 is not between 0 and 1, or 5 words not 1 to 64"),
    (NEAR, {"shingle": 0}, "the share 0.9 is not between 0 and 1, or 0 words not 1 to 64"),
    (NEAR, {"shingle": 65}, "the share 0.9 is not between 0 and 1, or 65 words not 1 to 64"),
]
SENTENCE = " ".join(f"w{n}" for n in range(60))
BROKEN = sides("\ud800", "x")
FIRSTS: list[tuple[str, Arguments, list[Row], list[int | None]]] = [
    (SAME, {}, [sides("A b!", "c"), sides("ab", "C 9"), sides("ab", "d")], [None, 0, None]),
    (SAME, {}, [sides("a", "b"), sides("b", "a")], [None, None]),
    (SAME, {}, [sides("ab", "c"), sides("a", "bc")], [None, None]),
    (SAME, {}, [sides("1", "2"), sides("1", "3"), sides("1", "2"), sides("1 ", "2")], [None, None, 0, None]),
    (SAME, {}, [sides("1", "a"), sides("2", "a")], [None, 0]),
    (SAME, {"lowercase": False}, [sides("A", "b"), sides("a", "b"), sides("A.", "b")], [None, None, 0]),
    (
        SAME,
        {"ignore_non_character": False},
        [sides("a", "b"), sides(" A ", "b"), sides("a.", "b")],
        [None, 0, None],
    ),
    (SAME, {}, [sides("a", "b"), sides("a", "b"), sides("a", "b")], [None, 0, 0]),
    (SAME, {}, [{"chosen": "a"}, sides("a", "b"), {"chosen": "a"}, sides("a", "b")], [None, None, None, 1]),
    (
        SAME,
        {"ignore_non_character": False},
        [sides("a", "b"), BROKEN, BROKEN, sides("c", "d"), sides("c", "d")],
        [None, None, None, None, 3],
    ),
    (NEAR, {}, [sides(SENTENCE, "x y"), sides(SENTENCE.upper(), "x, y!")], [None, 0]),
    (NEAR, {"threshold": 0.5}, [sides(SENTENCE, "x y"), sides("x y", SENTENCE)], [None, 0]),
    (NEAR, {}, [sides("a b", "c d"), sides("a b c", "d")], [None, None]),
    (NEAR, {}, [sides("a b", "c d"), {"chosen": "a b"}, sides("a b", "c d")], [None, None, 0]),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What the operators find of every case, by its place in its list."""
    folder = tmp_path_factory.mktemp("bounds")
    asked: dict[str, list[Any]] = {
        "filtered": [each[:3] for each in FILTERED],
        "refused": [each[:2] for each in REFUSED],
        "firsts": [each[:3] for each in FIRSTS],
    }
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environment |= {"HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", range(len(FILTERED)))
def test_a_filter_keeps_what_is_at_its_bound_and_nothing_beyond(
    found: dict[str, list[Any]], place: int
) -> None:
    """Bare and in the two passes of data-juicer alike."""
    *_, figure, reason = FILTERED[place]
    verdict = None if reason is None else list(reason)
    assert found["filtered"][place] == [pytest.approx(figure, abs=1e-12), verdict, verdict, [reason is None]]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_an_operator_takes_no_argument_beyond_its_bound(found: dict[str, list[Any]], place: int) -> None:
    assert found["refused"][place] == REFUSED[place][-1]


@pytest.mark.parametrize("place", range(len(FIRSTS)))
def test_the_first_of_the_rows_that_are_the_same_stays(found: dict[str, list[Any]], place: int) -> None:
    assert found["firsts"][place] == FIRSTS[place][-1]


# Words.


@pytest.mark.parametrize(
    "sign", ["\u3040", "\u30ff", "\u3400", "\u4dbf", "\u4e00", "\u9fff", "\uf900", "\ufaff"]
)
def test_a_chinese_or_japanese_character_is_a_word_up_to_the_ends_of_its_blocks(sign: str) -> None:
    assert count_words(f"x{sign}x") == 3


@pytest.mark.parametrize(
    "sign", ["\u303f", "\u3100", "\u33ff", "\u4dc0", "\u4dff", "\ua000", "\uf8ff", "\ufb00"]
)
def test_a_character_beside_those_blocks_is_none(sign: str) -> None:
    assert count_words(f"x{sign}x") == 1


@pytest.mark.parametrize(
    ("said", "count"),
    [("", 0), (" ", 0), ("_", 0), ("a_b", 1), ("_ 1", 1), ("a\u00a0b", 2), ("_ é", 1), ("é", 1), ("—", 0)],
)
def test_a_word_holds_a_letter_or_a_digit(said: str, count: int) -> None:
    assert count_words(said) == count


def test_letters_and_lower_words_take_what_they_are_named_for() -> None:
    assert (letters_to_count("aZ@[`{09_"), letters_to_count("éZ@[`{09_")) == ("aZ", "éZ")
    assert words_to_count("aZ@[`{09_ _") == [b"az", b"09_", b"_"]
    assert words_to_count("éZ@[`{09_ _") == ["éz".encode(), b"09_", b"_"]


# Signatures.


def plain(*changed: int, base: int = 0) -> Signature:
    """A signature of one row, other than the plain one at these places."""
    row = np.full((1, PERMUTATIONS), base, np.uint32)
    for place in changed:
        row[0, place] = place + 1
    return row


def rows(*some: Signature) -> Signature:
    return np.concatenate(some)


def test_two_signatures_are_as_alike_as_their_minima_are_equal() -> None:
    assert minhash_similarity(plain()[0], plain()[0]) == 1.0
    assert minhash_similarity(plain()[0], plain(5)[0]) == 127 / 128
    assert minhash_similarity(plain()[0], plain(base=1)[0]) == 0.0


@pytest.mark.parametrize(
    ("threshold", "first"), [(120 / 128, 0), (120 / 128 + 1e-9, None), (121 / 128, None)]
)
def test_signatures_are_alike_from_the_threshold_on(threshold: float, first: int | None) -> None:
    values = rows(plain(), plain(*range(120, 128)))
    assert find_minhash_duplicates(values, threshold, bands=10) == [None, first]
    index = NearIndex[str](threshold)
    index.add("one", values[0])
    assert index.near(values[1]) == (["one"] if first == 0 else [])


@pytest.mark.parametrize(
    ("bands", "shared", "first"),
    [(10, range(72, 80), 0), (10, range(80, 88), None), (11, range(80, 88), 0), (10, range(71, 79), None)],
)
def test_compared_are_signatures_that_share_a_whole_band(
    bands: int, shared: range, first: int | None
) -> None:
    other = plain(*(place for place in range(128) if place not in shared))
    assert find_minhash_duplicates(rows(plain(), other), 8 / 128, bands) == [None, first]
    assert find_minhash_duplicates(rows(plain(), other), 9 / 128, bands) == [None, None]
    index = NearIndex[int](8 / 128, bands)
    index.add(1, plain()[0])
    assert index.near(other[0]) == ([] if first is None else [1])


def test_a_band_of_four_is_shared_by_four_minima() -> None:
    other = plain(*range(4), *range(8, 128))
    assert find_minhash_duplicates(rows(plain(), other), 4 / 128, bands=32, rows=4) == [None, 0]
    assert find_minhash_duplicates(rows(plain(), other), 4 / 128, bands=16, rows=8) == [None, None]


def test_what_repeats_an_earlier_row_is_no_first_for_a_later_one() -> None:
    """The third is alike to the second, which went, and not to the first; the last is so to all that stay."""
    first, second, third = plain(), plain(*range(120, 128)), plain(*range(112, 128))
    assert find_minhash_duplicates(rows(first, second, third), 120 / 128, 10) == [None, 0, None]
    assert find_minhash_duplicates(rows(first, third, second), 120 / 128, 10) == [None, None, 0]
    assert find_minhash_duplicates(rows(first, third, third), 120 / 128, 10) == [None, None, 1]
    assert find_minhash_duplicates(rows(plain(base=1), first, third, third), 112 / 128, 10) == [
        None,
        None,
        1,
        1,
    ]


def test_the_index_gives_each_name_once_in_the_order_they_were_added() -> None:
    index = NearIndex[str](0.9)
    for name in ("second", "first"):
        index.add(name, plain()[0])
    index.add("far", plain(base=1)[0])
    assert index.near(plain(3)[0]) == ["second", "first"]


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 65])
def test_signatures_of_many_texts_are_those_of_each_alone(count: int) -> None:
    texts = [numbered(1 + n % 9, n) for n in range(count)]
    together = minhash_signatures(texts)
    assert together.shape == (count, 128)
    assert all((one == minhash_signature(each)).all() for one, each in zip(together, texts, strict=True))


def test_a_text_of_fewer_words_is_one_run() -> None:
    four = numbered(4)
    assert minhash_similarity(minhash_signature(four), minhash_signature([*four, b"\x00"])) == 1.0
    assert (
        minhash_similarity(minhash_signature(numbered(5)), minhash_signature([*numbered(5), b"\x00"])) < 1.0
    )
    assert minhash_similarity(minhash_signature([]), minhash_signature([b"\x00"] * 5)) == 1.0
    both = np.minimum(minhash_signature(numbered(5)), minhash_signature(numbered(5, 1)))
    assert minhash_similarity(minhash_signature(numbered(6)), both) == 1.0
    assert (
        minhash_similarity(
            minhash_signature(numbered(5), shingle=5), minhash_signature(numbered(5), shingle=4)
        )
        < 0.1
    )


@pytest.mark.parametrize(
    ("words", "length", "runs"), [(0, 5, 0), (4, 5, 0), (5, 5, 1), (6, 5, 2), (64, 64, 1)]
)
def test_a_text_has_a_run_for_each_word_that_begins_a_whole_one(words: int, length: int, runs: int) -> None:
    assert len(run_hashes(minhash_word_hashes(numbered(words)), length)) == runs


def test_the_numbers_are_the_same_on_every_machine() -> None:
    assert MOST_WORDS == 64
    assert minhash_word_hashes([b"lantern", b""]).tolist() == [697468183, 0]
    assert minhash_word_hashes([b"lantern"], seed=7).tolist() == [3962944409]
    runs = run_hashes(minhash_word_hashes(numbered(3)), 2)
    assert runs.tolist() == [18202444081032179962, 8605058340944981282]
    assert minhash_signature(numbered(6))[:3].tolist() == [2707526471, 2811639055, 2153896399]
    assert minhash_signature(numbered(6), seed=7)[:2].tolist() == [1650128748, 673974808]


# Contexts cut to a length.


def by_character(texts: Sequence[str]) -> list[int]:
    """A token a character, so that a message takes its characters and 5."""
    return [len(each) for each in texts]


SIDE = ((Message("assistant", "a" * 5),), (Message("assistant", ""),))  # the longer one takes 10
TASK = Message("user", "t" * 15)  # 20


def acting(n: int, chars: int) -> list[Message]:
    """One turn: an action of 10 characters that calls, and a result of so many."""
    call = ToolCall(f"c{n}", "ls", "{}")
    return [Message("assistant", "s" * 10, (call,)), Message("tool", "r" * chars, tool_call_id=f"c{n}")]


TURN = 10 + 5 + 12 + 4 + 5  # what it takes beside its result
MARK = len("\n\n[... 9,999 earlier messages left out ...]")


def fit(turns: int, chars: int, most: int) -> tuple[int | Length, list[str]]:
    """What is told of a context of so many turns, and the texts of its messages where it fits."""
    messages = [TASK, *(each for n in range(turns) for each in acting(n, chars))]
    found = Cutter(by_character, most).fit(messages, (), SIDE)
    if isinstance(found, int):
        return found, []
    return found.length, [message.content for message in found.messages]


def test_messages_take_what_stands_around_them() -> None:
    assert count_message_tokens([TASK, *acting(0, 7)], by_character) == [20, TURN - 5, 12]


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (33, 10), (34, 11), (66, 20)])
def test_ten_tokens_are_estimated_for_33_bytes(size: int, tokens: int) -> None:
    assert estimate_token_count("x" * size) == tokens


def test_a_context_that_just_fits_is_left_alone_and_one_token_less_cuts_it() -> None:
    whole = 20 + 10 + TURN + 600
    texts = ["t" * 15, "s" * 10, "r" * 600]
    assert fit(1, 600, whole) == (Length(whole, whole, whole, ""), texts)
    assert fit(1, 600, 0) == (Length(whole, whole, whole, ""), texts)
    cut, found = fit(1, 600, whole - 1)
    mark = "\n[... 100 characters left out ...]\n"
    assert found == [*texts[:2], "r" * 250 + mark + "r" * 250]
    assert cut == Length(whole - 100 + len(mark), whole, whole, "observations")


def test_the_longer_side_and_the_tools_count_against_the_length() -> None:
    tool = ToolSpec("ls", "", {})
    beside = fit(1, 10, 10_000)[0]
    assert isinstance(beside, Length)
    found = Cutter(by_character, 10_000).fit([TASK, *acting(0, 10)], (tool,), SIDE)
    assert isinstance(found, Fitted)
    text = '{"function":{"description":"","name":"ls","parameters":{}},"type":"function"}'
    assert found.length.tokens == beside.tokens + len(text)
    alone = Cutter(by_character, 10_000).fit([TASK, *acting(0, 10)], (), ())
    assert isinstance(alone, Fitted)
    assert alone.length.tokens == beside.tokens - 10


@pytest.mark.parametrize(("most", "next_most"), [(8000, 2000), (2000, 500)])
def test_observations_are_shortened_no_further_than_wanted(most: int, next_most: int) -> None:
    def size(chars: int) -> int:
        left = len(f"\n[... {10_000 - chars:,} characters left out ...]\n")
        return 20 + 10 + TURN + chars + left

    assert fit(1, 10_000, size(most))[0] == Length(size(most), 10_066, size(500), "observations")
    assert fit(1, 10_000, size(most) - 1)[0] == Length(size(next_most), 10_066, size(500), "observations")


def test_the_shortest_form_is_told_where_it_does_not_fit() -> None:
    least = 20 + 10 + TURN + 500 + len("\n[... 9,500 characters left out ...]\n")
    assert fit(1, 10_000, least)[0] == Length(least, 10_066, least, "observations")
    assert fit(1, 10_000, least - 1) == (least, [])
    assert fit(2, 10_000, least + MARK)[0] == Length(least + MARK, 20_102, least + MARK, "turns")
    assert fit(2, 10_000, least + MARK - 1) == (least + MARK, [])


@pytest.mark.parametrize(
    ("chars", "least"),
    [(4030, 4096), (4031, 20 + 10 + TURN + 500 + len("\n[... 3,531 characters left out ...]\n"))],
)
def test_the_shortest_form_of_what_any_trainer_takes_is_the_whole(chars: int, least: int) -> None:
    assert fit(1, chars, 0)[0] == Length(66 + chars, 66 + chars, least, "")


@pytest.mark.parametrize(("room", "kept"), [(0, 3), (-1, 2), (TURN + 400, 4), (TURN + 399, 3)])
def test_as_many_of_the_last_turns_stay_as_there_is_room_for(room: int, kept: int) -> None:
    """Of ten turns whose results nothing shortens; the mark is counted as one of four digits."""
    three = 20 + 10 + MARK + 3 * (TURN + 400)
    length, texts = fit(10, 400, three + room)
    mark = f"\n\n[... {(10 - kept) * 2} earlier messages left out ...]"
    assert texts == ["t" * 15 + mark, *["s" * 10, "r" * 400] * kept]
    assert isinstance(length, Length)
    assert (length.tokens, length.cut) == (20 + 10 + MARK + kept * (TURN + 400), "turns")


@pytest.mark.parametrize(
    ("chars", "found"), [(20, 20), (21, 20 + len("\n[... 1 characters left out ...]\n"))]
)
def test_what_came_back_is_shortened_from_one_character_beyond_on(chars: int, found: int) -> None:
    plan = Plan([TASK, *acting(0, chars)], by_character)
    assert [len(message.content) for message in plan.short(20)] == [15, 10, found]
    assert plan.sizes(20) == [0, 20, 20 + TURN - 5, 20 + TURN + found]


def test_the_two_ends_of_a_shortened_text_are_half_of_it_each() -> None:
    assert shorten_for_cut_plan("abcdefg", 4) == "ab\n[... 3 characters left out ...]\nfg"
    assert shorten_for_cut_plan("abcdefg", 5) == "ab\n[... 3 characters left out ...]\nfg"


def test_nothing_before_the_agent_first_speaks_is_shortened_and_its_words_never() -> None:
    messages = [
        Message("user", "u" * 30),
        Message("assistant", "a" * 30),
        Message("user", "v" * 30),
        Message("tool", "w" * 30),
    ]
    plan = Plan(messages, by_character)
    assert [len(message.content) > 30 for message in plan.short(20)] == [False, False, True, True]
    assert (plan.head, plan.starts) == (1, [1, 2])


@pytest.mark.parametrize(("others", "again"), [(15, False), (16, True)])
def test_what_is_known_of_a_context_is_kept_for_the_last_16(others: int, again: bool) -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return by_character(texts)

    cutter = Cutter(count, 10_000)
    first = (Message("user", "the first"), *acting(0, 10))
    contexts = [(Message("user", f"n {n}"), *acting(0, 10)) for n in range(others)]
    for context in (first, *contexts, first):
        cutter.fit(context, (), ())
    assert counted.count("the first") == 1 + again
    counted.clear()
    cutter.fit(first, (), ())
    assert counted == []


@pytest.mark.parametrize(("others", "again"), [(63, False), (64, True)])
def test_what_tools_take_is_kept_for_the_last_64(others: int, again: bool) -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return by_character(texts)

    cutter = Cutter(count, 10_000)
    tools = [(ToolSpec(f"tool-{n}", "", {}),) for n in range(others + 1)]
    context = (TASK, *acting(0, 10))
    for each in (*tools, tools[0]):
        cutter.fit(context, each, ())
    assert sum("tool-0" in text for text in counted) == 1 + again
