"""MinHash over word shingles (Broder 1997): which texts are nearly the same, without comparing all.

Signatures are cut into bands, and texts that share one are compared by their signatures (Leskovec,
Rajaraman, Ullman: Mining of Massive Datasets, 3.4). Importing this imports numpy and nothing of
data-juicer.
"""

import zlib
from collections.abc import Hashable, Sequence
from itertools import chain, repeat
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
_TOGETHER = 32  # texts whose runs are mixed at once: what they take stays in the cache


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
    """The signature of one text, as `minhash_signatures` gives it."""
    return minhash_signatures([words], shingle, seed)[0]


def minhash_signatures(texts: Sequence[Sequence[bytes]], shingle: int = 5, seed: int = 0) -> Signature:
    """The signatures of texts, one a row: 128 minima over hashes of a text's runs of `shingle` words. A text
    of fewer words is one run. `seed` (32 bits) keeps signatures of different keys apart."""
    found = np.empty((len(texts), PERMUTATIONS), np.uint32)
    for start in range(0, len(texts), _TOGETHER):
        some = [_filled(words, shingle) for words in texts[start : start + _TOGETHER]]
        found[start : start + len(some)] = _minima(some, shingle, seed)
    return found


def _filled(words: Sequence[bytes], shingle: int) -> Sequence[bytes]:
    return words if len(words) >= shingle else [*words, *[b"\x00"] * (shingle - len(words))]


def _minima(texts: Sequence[Sequence[bytes]], shingle: int, seed: int) -> Signature:
    sizes = np.array([len(words) for words in texts])
    text_of = np.repeat(np.arange(len(texts)), sizes)
    runs = run_hashes(minhash_word_hashes(list(chain.from_iterable(texts)), seed), shingle)
    within = text_of[: len(runs)] == text_of[shingle - 1 :]
    hashes = (runs[within] >> np.uint64(32)).astype(np.uint32)
    starts = np.concatenate([[0], np.cumsum(sizes - shingle + 1)[:-1]])
    minima = np.empty((PERMUTATIONS, len(texts)), np.uint32)
    mixed = np.empty_like(hashes)
    for each, factor, term in zip(minima, _FACTORS, _TERMS, strict=True):
        np.multiply(hashes, factor, out=mixed)  # a permutation of 32 bits: the factors are odd
        np.add(mixed, term, out=mixed)
        np.minimum.reduceat(mixed, starts, out=each)
    return minima.T


def minhash_similarity(first: Signature, second: Signature) -> float:
    """The share of equal minima: an estimate of the Jaccard index, with a standard error of at most 0.044."""
    return float(np.count_nonzero(first == second)) / PERMUTATIONS


def find_minhash_duplicates(
    values: Signature, threshold: float, bands: int, rows: int = 8
) -> list[int | None]:
    """For each signature the place of the first that is at least `threshold` alike and stays itself, None
    where it stays. Compared are those that share one of the `bands` of `rows` minima."""
    keys = _band_keys(values, bands, rows)
    firsts: list[int | None] = [None] * len(values)
    there: list[dict[int, list[int]]] = [{} for _ in range(bands)]
    for place in np.flatnonzero(_shared(keys)).tolist():
        mine = keys[place].tolist()
        met = sorted({other for band, key in zip(there, mine, strict=True) for other in band.get(key, ())})
        alike = np.count_nonzero(values[met] == values[place], axis=1) / PERMUTATIONS >= threshold
        if alike.any():
            firsts[place] = met[int(alike.argmax())]
            continue
        for band, key in zip(there, mine, strict=True):
            band.setdefault(key, []).append(place)
    return firsts


def _band_keys(values: Signature, bands: int, rows: int) -> npt.NDArray[np.uint64]:
    """A key for each band of each signature, one signature a row; bands that differ seldom have the same."""
    cut = values[:, : bands * rows].reshape(len(values), bands, rows)
    keys = np.zeros((len(values), bands), np.uint64)
    for row in range(rows):
        keys += cut[:, :, row] * _PLACES[row]
    return keys


def _shared(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which rows have a key in common with another one, in the same column."""
    shared = np.zeros(len(keys), np.bool_)
    for band in keys.T:
        order = np.argsort(band, kind="stable")
        same = band[order[1:]] == band[order[:-1]]
        shared[order[1:][same]] = shared[order[:-1][same]] = True
    return shared


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
