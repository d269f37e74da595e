"""MinHash over word shingles (Broder 1997): which sessions are nearly the same, without comparing all.

Signatures are cut into bands, and texts that share one are compared by their signatures (Leskovec,
Rajaraman, Ullman: Mining of Massive Datasets, 3.4). It serves splits and decontamination, which look at
whole sessions; rows of pairs are data-juicer's.
"""

import re
import zlib
from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

PERMUTATIONS = 128
Signature = npt.NDArray[np.uint32]
K = TypeVar("K", bound=Hashable)

_COIN = np.random.Generator(np.random.PCG64(20261121))
_FACTORS = _COIN.integers(0, 2**32, PERMUTATIONS, dtype=np.uint32) | np.uint32(1)
_TERMS = _COIN.integers(0, 2**32, PERMUTATIONS, dtype=np.uint32)
MOST_WORDS = 64
_PLACES = _COIN.integers(0, 2**64, MOST_WORDS, dtype=np.uint64) | np.uint64(1)
_WORD = re.compile(r"\w+")
_ASCII = [chr(code) for code in range(128)]
_LOWER_WORDS = "".join(c.lower() if c.isalnum() or c == "_" else " " for c in _ASCII).encode()
_LOWER_WORDS += bytes(range(128, 256))


def words_to_count(text: str) -> list[bytes]:
    """Return the runs of letters, digits and underscores of a text in lower case, as UTF-8."""
    if text.isascii():  # as most are: by a table over the bytes
        return text.encode("ascii").translate(_LOWER_WORDS).split()
    return [word.encode("utf-8", "surrogatepass") for word in _WORD.findall(text.lower())]


def minhash_word_hashes(words: Sequence[bytes], seed: int = 0) -> npt.NDArray[np.uint64]:
    """A hash of 32 bits for each word. `seed` (32 bits) keeps hashes of different keys apart."""
    return np.fromiter(map(zlib.crc32, words, repeat(seed)), np.uint64, len(words))


def run_hashes(hashes: npt.NDArray[np.uint64], length: int) -> npt.NDArray[np.uint64]:
    """Hashes of 64 bits of the runs of `length` words, at most 64, by the hashes of the words: a multilinear
    form modulo 2^64, whose upper half is universal (Dietzfelbinger, STACS 1996)."""
    count = max(0, len(hashes) - length + 1)
    total = np.zeros(count, np.uint64)
    for place in range(length):
        total += hashes[place : place + count] * _PLACES[place]
    return total


def minhash_signature(words: Sequence[bytes], shingle: int = 5, seed: int = 0) -> Signature:
    """Return 128 minima over hashes of a text's runs of `shingle` words. A text of fewer words is one run.
    `seed` (32 bits) keeps signatures of different keys apart."""
    if len(words) < shingle:
        words = [*words, *[b"\x00"] * (shingle - len(words))]
    hashes = (run_hashes(minhash_word_hashes(words, seed), shingle) >> np.uint64(32)).astype(np.uint32)
    minima, mixed = np.empty(PERMUTATIONS, np.uint32), np.empty_like(hashes)
    for place, (factor, term) in enumerate(zip(_FACTORS, _TERMS, strict=True)):
        np.multiply(hashes, factor, out=mixed)  # a permutation of 32 bits: the factors are odd
        np.add(mixed, term, out=mixed)
        minima[place] = mixed.min()
    return minima


def minhash_similarity(first: Signature, second: Signature) -> float:
    """The share of equal minima: an estimate of the Jaccard index, with a standard error of at most 0.044."""
    return float(np.count_nonzero(first == second)) / PERMUTATIONS


class NearIndex(Generic[K]):
    """Signatures by name; finds those that are at least `threshold` alike.

    With 16 bands of 8 minima, of texts 0.9 alike 99.99 % are compared, of texts 0.8 alike 95 %; with 32 of 4
    of these all.
    """

    def __init__(self, threshold: float, bands: int = 16, rows: int = 8) -> None:
        self._threshold = threshold
        self._rows = rows
        self._bands: list[dict[int, list[K]]] = [{} for _ in range(bands)]
        self._signatures: dict[K, Signature] = {}

    def add(self, name: K, value: Signature) -> None:
        """Take a signature in."""
        self._signatures[name] = value
        for band, key in zip(self._bands, self._keys(value), strict=True):
            band.setdefault(key, []).append(name)

    def near(self, value: Signature) -> list[K]:
        """The names of those alike, in the order they were added."""
        met = (
            name
            for band, key in zip(self._bands, self._keys(value), strict=True)
            for name in band.get(key, ())
        )
        return [
            name
            for name in dict.fromkeys(met)
            if minhash_similarity(self._signatures[name], value) >= self._threshold
        ]

    def _keys(self, value: Signature) -> list[int]:
        data = value.tobytes()
        width = self._rows * value.itemsize
        return [hash(data[at * width : (at + 1) * width]) for at in range(len(self._bands))]
