"""Random letters are told from words and from names that are joined without a mark."""

import random
import re
import string
import sysconfig
from pathlib import Path

import pytest

from tracemill.privacy.core.letter_pairs import is_drawn_letters


def _share_found(alphabet: str, size: int) -> float:
    rng = random.Random(size)
    drawn = ["".join(rng.choices(alphabet, k=size)) for _ in range(2000)]
    return sum(map(is_drawn_letters, drawn)) / len(drawn)


@pytest.mark.parametrize(("size", "least"), [(8, 0.6), (10, 0.75), (12, 0.85), (14, 0.9)])
def test_random_letters_are_found(size: int, least: float) -> None:
    assert _share_found(string.ascii_lowercase, size) >= least


def test_capitals_need_twelve_letters() -> None:
    assert _share_found(string.ascii_uppercase, 11) == 0
    assert _share_found(string.ascii_uppercase, 14) >= 0.9


def test_words_and_joined_names_are_not() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    text = "\n".join(path.read_text(errors="ignore") for path in sorted(library.glob("*.py")))
    words = sorted(set(re.findall(r"(?<![A-Za-z])[a-z]{4,12}(?![A-Za-z])", text)))
    assert len(words) > 3000
    assert sum(map(is_drawn_letters, words)) <= 0.003 * len(words)  # `rwxrwxrwx`, and words in ROT13
    rng = random.Random(1)
    joined = ["".join(rng.sample(words, 2)) for _ in range(5000)]
    assert sum(map(is_drawn_letters, joined)) <= 100


@pytest.mark.parametrize(
    "name", ["dbpassword", "mypassword", "getpwuid", "checkfuncname", "utcfromtimestamp"]
)
def test_names_of_code_are_not(name: str) -> None:
    assert not is_drawn_letters(name)
