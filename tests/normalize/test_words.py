"""Words and letters: the tables for ASCII say what the patterns for all of Unicode say."""

import random
import re

import pytest

from tracemill.normalize.operators.word_counts import count_words, letters_to_count, words_to_count

CHARACTERS = [chr(code) for code in range(128)]


def texts() -> list[str]:
    coin = random.Random(20261122)
    return ["".join(coin.choices(CHARACTERS, k=coin.randrange(60))) for _ in range(2000)] + [
        "".join(CHARACTERS)
    ]


def test_ascii_is_read_as_all_of_unicode_is() -> None:
    for text in texts():
        assert words_to_count(text) == [word.encode() for word in re.findall(r"\w+", text.lower())]
        assert letters_to_count(text) == re.sub(r"[\W\d_]+", "", text)
        assert count_words(text) == sum(1 for word in text.split() if re.search(r"[^\W_]", word))


@pytest.mark.parametrize(
    ("text", "words", "kept", "count"),
    [
        ("Über 3 Äpfel_x", ["über", "3", "äpfel_x"], "ÜberÄpfelx", 3),
        ("見る a, !!", ["見る", "a"], "見るa", 3),
        ("half \ud83d é", ["half", "é"], "halfé", 2),
    ],
)
def test_beyond_ascii(text: str, words: list[str], kept: str, count: int) -> None:
    assert words_to_count(text) == [word.encode() for word in words]
    assert letters_to_count(text) == kept
    assert count_words(text) == count
