"""Signatures estimate how much two texts share, and the index finds those that share enough."""

import random
import re

import numpy as np
import pytest

from tracemill.normalize.minhash import (
    MOST_WORDS,
    PERMUTATIONS,
    LSHIndex,
    Signature,
    hash_ngrams,
    hash_words,
    minhash_signature,
    minhash_similarity,
    split_words,
)


def words(coin: random.Random, count: int = 400) -> list[bytes]:
    return [b"%d" % coin.randrange(1000) for _ in range(count)]


def changed(text: list[bytes], places: int, coin: random.Random) -> list[bytes]:
    other = list(text)
    for at in coin.sample(range(len(text)), places):
        other[at] = b"changed"
    return other


def jaccard(first: list[bytes], second: list[bytes]) -> float:
    one, two = ({tuple(text[at : at + 5]) for at in range(len(text) - 4)} for text in (first, second))
    return len(one & two) / len(one | two)


def test_the_estimate_is_near_the_jaccard_index() -> None:
    coin = random.Random(1)
    misses = []
    for places in (0, 2, 5, 10, 20, 40) * 100:
        text = words(coin)
        other = changed(text, places, coin)
        misses.append(
            minhash_similarity(minhash_signature(text), minhash_signature(other)) - jaccard(text, other)
        )
    assert max(map(abs, misses)) < 0.15
    assert abs(sum(misses) / len(misses)) < 0.005


def test_the_index_finds_what_is_alike_and_nothing_else() -> None:
    coin = random.Random(2)
    index = LSHIndex[int](0.8)
    texts = [words(coin) for _ in range(200)]
    for number, text in enumerate(texts):
        index.add(number, minhash_signature(text))
    near = [index.query(minhash_signature(changed(text, 3, coin))) for text in texts]
    assert near == [[number] for number in range(200)]
    assert [index.query(minhash_signature(changed(text, 60, coin))) for text in texts] == [[]] * 200


def test_seeds_keep_signatures_apart_and_short_texts_have_one() -> None:
    text = [b"a"] * 3
    assert minhash_similarity(minhash_signature(text), minhash_signature(text)) == 1.0
    assert minhash_similarity(minhash_signature(text), minhash_signature(text, seed=7)) < 0.1
    assert minhash_similarity(minhash_signature([]), minhash_signature([b"b"])) < 0.1


def test_words_are_runs_of_letters_digits_and_underscores() -> None:
    coin = random.Random(20261122)
    characters = [chr(code) for code in range(128)]
    texts = ["".join(coin.choices(characters, k=coin.randrange(60))) for _ in range(2000)]
    for text in [*texts, "".join(characters)]:
        assert split_words(text) == [word.encode() for word in re.findall(r"\w+", text.lower())]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Über 3 Äpfel_x", ["über", "3", "äpfel_x"]),
        ("見る a, !!", ["見る", "a"]),
        ("half \ud83d é", ["half", "é"]),
        ("aZ@[`{09_ _", ["az", "09_", "_"]),
        ("éZ@[`{09_ _", ["éz", "09_", "_"]),
    ],
)
def test_words_are_runs_of_letters_digits_and_underscores_in_lower_case(text: str, words: list[str]) -> None:
    assert split_words(text) == [word.encode() for word in words]


# Signatures.


def plain(*changed: int, base: int = 0) -> Signature:
    """A signature of one row, other than the plain one at these places."""
    row = np.full((1, PERMUTATIONS), base, np.uint32)
    for place in changed:
        row[0, place] = place + 1
    return row


def test_two_signatures_are_as_alike_as_their_minima_are_equal() -> None:
    assert minhash_similarity(plain()[0], plain()[0]) == 1.0
    assert minhash_similarity(plain()[0], plain(5)[0]) == 127 / 128
    assert minhash_similarity(plain()[0], plain(base=1)[0]) == 0.0


@pytest.mark.parametrize(
    ("threshold", "first"), [(120 / 128, 0), (120 / 128 + 1e-9, None), (121 / 128, None)]
)
def test_signatures_are_alike_from_the_threshold_on(threshold: float, first: int | None) -> None:
    index = LSHIndex[str](threshold)
    index.add("one", plain()[0])
    assert index.query(plain(*range(120, 128))[0]) == (["one"] if first == 0 else [])


@pytest.mark.parametrize(
    ("bands", "shared", "first"),
    [(10, range(72, 80), 0), (10, range(80, 88), None), (11, range(80, 88), 0), (10, range(71, 79), None)],
)
def test_compared_are_signatures_that_share_a_whole_band(
    bands: int, shared: range, first: int | None
) -> None:
    other = plain(*(place for place in range(128) if place not in shared))
    for threshold, found in ((8 / 128, [] if first is None else [1]), (9 / 128, [])):
        index = LSHIndex[int](threshold, bands)
        index.add(1, plain()[0])
        assert index.query(other[0]) == found


def test_a_band_of_four_is_shared_by_four_minima() -> None:
    other = plain(*range(4), *range(8, 128))
    for bands, rows, found in ((32, 4, [1]), (16, 8, [])):
        index = LSHIndex[int](4 / 128, bands, rows)
        index.add(1, plain()[0])
        assert index.query(other[0]) == found


def test_the_index_gives_each_name_once_in_the_order_they_were_added() -> None:
    index = LSHIndex[str](0.9)
    for name in ("second", "first"):
        index.add(name, plain()[0])
    index.add("far", plain(base=1)[0])
    assert index.query(plain(3)[0]) == ["second", "first"]


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


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
    assert len(hash_ngrams(hash_words(numbered(words)), length)) == runs


def test_the_numbers_are_the_same_on_every_machine() -> None:
    assert MOST_WORDS == 64
    assert hash_words([b"lantern", b""]).tolist() == [697468183, 0]
    assert hash_words([b"lantern"], seed=7).tolist() == [3962944409]
    runs = hash_ngrams(hash_words(numbered(3)), 2)
    assert runs.tolist() == [18202444081032179962, 8605058340944981282]
    assert minhash_signature(numbered(6))[:3].tolist() == [2707526471, 2811639055, 2153896399]
    assert minhash_signature(numbered(6), seed=7)[:2].tolist() == [1650128748, 673974808]
