"""Operators over both sides of a row: near-identical sides, their lengths, and rows said before.

Importing this module imports data-juicer, which takes seconds: only the worker does.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from data_juicer.ops.base_op import OPERATORS, Deduplicator
from rapidfuzz.distance import Indel

from tracemill.normalize.operators.minhash import (
    MOST_WORDS,
    PERMUTATIONS,
    find_minhash_duplicates,
    minhash_signatures,
)
from tracemill.normalize.operators.side_filters import Reason, RowFilter
from tracemill.normalize.operators.word_counts import letters_to_count, words_to_count

T = TypeVar("T")
Keyed = tuple[bytes, str]  # the key of a row, and the type of the error where it has none


@OPERATORS.register_module("sides_differ_filter")
class SidesDifferFilter(RowFilter):
    """Keeps rows whose two sides differ as text, blanks at the ends aside."""

    def __init__(self, text_keys: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text_keys = _two_fields(text_keys)
        self.stat = "sides__differ"

    def measure(self, row: Mapping[str, Any]) -> float:
        """1 where the sides differ, 0 where not."""
        first, second = (row[key].strip() for key in self.text_keys)
        return first != second

    def judge(self, value: float) -> Reason | None:
        return None if value else ("both sides read the same", "")


@OPERATORS.register_module("sides_similar_filter")
class SidesSimilarFilter(RowFilter):
    """Keeps rows whose sides are at most `max_similarity` alike, as the share of characters that an insertion
    and deletion distance leaves in place: of sides that are nearly the same DPO lowers both (Smaug,
    arXiv 2402.13228)."""

    def __init__(
        self, text_keys: list[str] | None = None, max_similarity: float = 0.95, **kwargs: Any
    ) -> None:
        if not 0 <= max_similarity <= 1:
            raise ValueError(f"the share {max_similarity} is not between 0 and 1")
        super().__init__(**kwargs)
        self.text_keys = _two_fields(text_keys)
        self.max_similarity = max_similarity
        self.stat = "sides__similarity"

    def measure(self, row: Mapping[str, Any]) -> float:
        """How alike the sides are, 0 to 1; 0 where that is below the bound for certain."""
        first, second = (row[key] for key in self.text_keys)
        return Indel.normalized_similarity(first, second, score_cutoff=self.max_similarity)

    def judge(self, value: float) -> Reason | None:
        if value <= self.max_similarity:
            return None
        return f"sides more than {self.max_similarity:.0%} alike", f"{value:.4f}"


@OPERATORS.register_module("sides_ratio_filter")
class SidesRatioFilter(RowFilter):
    """Keeps rows whose longer side has at most `max_ratio` times the characters of the shorter, each taken
    for `least` at the least. Rows with a side that calls (`calls_keys`) stay: what a call takes is no
    style."""

    def __init__(
        self,
        text_keys: list[str] | None = None,
        calls_keys: list[str] | None = None,
        max_ratio: float = 3.0,
        least: int = 200,
        **kwargs: Any,
    ) -> None:
        if max_ratio < 1 or least < 1:
            raise ValueError(f"the ratio {max_ratio} or the length {least} is below 1")
        super().__init__(**kwargs)
        self.text_keys = _two_fields(text_keys)
        self.calls_keys = calls_keys or []
        self.max_ratio, self.least = max_ratio, least
        self.stat = "sides__ratio"

    def measure(self, row: Mapping[str, Any]) -> float:
        """The longer side over the shorter, 1 where one of them calls."""
        if any(row[key] > 0 for key in self.calls_keys):
            return 1.0
        short, long = sorted(max(self.least, len(row[key])) for key in self.text_keys)
        return long / short

    def judge(self, value: float) -> Reason | None:
        if value <= self.max_ratio:
            return None
        return f"one side more than {self.max_ratio:g} times as long", f"{value:.2f}"


class FirstOfPairs(Deduplicator):
    """Keeps the first of the rows that are the same by a key. Subclasses give `key_of` and may say in
    `earlier` which keys count as the same."""

    reason: ClassVar[str] = "repeats an earlier row"

    def __init__(self, text_keys: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text_keys = _two_fields(text_keys)

    def key_of(self, row: Mapping[str, Any]) -> bytes:
        """The key of a row."""
        raise NotImplementedError

    def earlier(self, keys: Sequence[bytes]) -> list[int | None]:
        """For each key the place of the first that is the same, None where it is the first itself."""
        return find_repeated_pair_keys(keys)

    def keyed(self, rows: Sequence[Mapping[str, Any]]) -> list[Keyed]:
        """The keys of rows."""
        return [_tried(self.key_of, row) for row in rows]

    def firsts(self, keyed: Sequence[Keyed]) -> list[int | None]:
        """For each row the place of the first that is the same; rows that raised are like no other."""
        whole = [place for place, (_, error) in enumerate(keyed) if not error]
        found = self.earlier([keyed[place][0] for place in whole])
        firsts: list[int | None] = [None] * len(keyed)
        for place, first in zip(whole, found, strict=True):
            firsts[place] = None if first is None else whole[first]
        return firsts

    def compute_hash(self, sample: dict[str, Any]) -> dict[str, Any]:
        """data-juicer's first pass."""
        [(sample["pair_key"], sample["pair_key_error"])] = self.keyed([sample])
        return sample

    def process(self, dataset: Any, show_num: int = 0) -> tuple[Any, dict[str, list[Any]]]:
        """data-juicer's second pass: the rows that stay; examples of duplicates are not collected."""
        keyed = list(zip(dataset["pair_key"], dataset["pair_key_error"], strict=True))
        firsts = self.firsts(keyed)
        kept = [place for place, first in enumerate(firsts) if first is None and not keyed[place][1]]
        return dataset.select(kept).remove_columns(["pair_key", "pair_key_error"]), {}


@OPERATORS.register_module("pair_deduplicator")
class PairDeduplicator(FirstOfPairs):
    """Keeps the first of the rows whose two sides are the same.

    `lowercase` ignores case, `ignore_non_character` everything that is no letter. A row without any
    letter is compared as it is, so that such rows are not all one.
    """

    def __init__(
        self,
        text_keys: list[str] | None = None,
        lowercase: bool = True,
        ignore_non_character: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(text_keys, **kwargs)
        self.lowercase = lowercase
        self.ignore_non_character = ignore_non_character

    def key_of(self, row: Mapping[str, Any]) -> bytes:
        """BLAKE2b over both sides, each preceded by its length."""
        sides = [self._folded(row[key]) for key in self.text_keys]
        if not any(sides):
            sides = [row[key] for key in self.text_keys]
        state = hashlib.blake2b(digest_size=16)
        for side in sides:
            data = side.encode("utf-8")
            state.update(len(data).to_bytes(8, "big") + data)
        return state.digest()

    def _folded(self, text: str) -> str:
        text = text.lower() if self.lowercase else text
        return letters_to_count(text) if self.ignore_non_character else text.strip()


@OPERATORS.register_module("pair_minhash_deduplicator")
class PairMinhashDeduplicator(FirstOfPairs):
    """Keeps the first of the rows whose two sides together are nearly the same: an estimated Jaccard index of
    their runs of `shingle` words of at least `threshold`."""

    reason: ClassVar[str] = "nearly repeats an earlier row"

    def __init__(
        self, text_keys: list[str] | None = None, threshold: float = 0.9, shingle: int = 5, **kwargs: Any
    ) -> None:
        if not 0 < threshold <= 1 or not 1 <= shingle <= MOST_WORDS:
            raise ValueError(
                f"the share {threshold} is not between 0 and 1, or {shingle} words not 1 to {MOST_WORDS}"
            )
        super().__init__(text_keys, **kwargs)
        self.threshold, self.shingle = threshold, shingle

    def keyed(self, rows: Sequence[Mapping[str, Any]]) -> list[Keyed]:
        """The signatures of both sides as bytes."""
        words = [_tried(self._words, row) for row in rows]
        values = iter(minhash_signatures([said for said, error in words if not error], self.shingle))
        return [(b"" if error else next(values).tobytes(), error) for _, error in words]

    def earlier(self, keys: Sequence[bytes]) -> list[int | None]:
        """As in `FirstOfPairs`; keys are the same where their signatures are alike enough."""
        values = np.frombuffer(b"".join(keys), np.uint32).reshape(len(keys), PERMUTATIONS)
        return find_minhash_duplicates(values, self.threshold, bands=10)

    def _words(self, row: Mapping[str, Any]) -> list[bytes]:
        first, second = (words_to_count(row[key]) for key in self.text_keys)
        return [*first, b"\x00", *second]


def _tried(make: Callable[[Mapping[str, Any]], T], row: Mapping[str, Any]) -> tuple[T, str]:
    """What is made of a row, or the type of the error: whatever a row does to an operator costs that row
    alone."""
    try:
        return make(row), ""
    except Exception as error:
        return cast(T, b""), type(error).__name__


def find_repeated_pair_keys(keys: Iterable[bytes]) -> list[int | None]:
    """For each key the place of the first one equal to it, None where it is the first itself."""
    seen: dict[bytes, int] = {}
    places = [seen.setdefault(key, index) for index, key in enumerate(keys)]
    return [None if place == index else place for index, place in enumerate(places)]


def _two_fields(fields: Sequence[str] | None) -> tuple[str, str]:
    if fields is None:
        return "chosen", "rejected"
    if len(fields) != 2:
        raise ValueError(f"text_keys holds {len(fields)} fields where it takes 2")
    return fields[0], fields[1]
