"""Where the anchors of all detectors stand in a text, or in many texts joined: one pass for all of them.

Four bytes at a time are hashed into a table that knows the anchors, for all positions at once; only where
the table says yes is the text compared. That costs as much as searching three literals one by one. The
answer is exact for the anchors, so a detector none of whose anchors occurs finds nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from privacy.formats import TOKENS
from privacy.rules import Span, View, any_literal, rules_by_literal

CHUNK = 200_000  # characters searched at a time, which fit a core's cache
_ANY_TOKEN = any_literal(TOKENS)
_RULES_OF = rules_by_literal(TOKENS)
_SMALL = 700  # characters up to which searching one by one is faster
_TABLE_BITS = 18
_FACTORS = (0x9E3779B1, 0x85EBCA6B)  # two hashes: frequent words that collide in one do not in both
_FREQUENT = b"0 etaoinsrhldcumfpgwybvkxjqz"
Found = dict[bytes, list[int]]
"""Anchors of the folded plane, and where they stand; those that do not are left out."""


class AnchorIndex:
    """Finds all of a set of folded literals at once."""

    def __init__(self, literals: Iterable[bytes]) -> None:
        self._literals = tuple(sorted(set(literals)))
        self._short = tuple(literal for literal in self._literals if len(literal) < 3)
        self._by_gram: dict[bytes, list[tuple[bytes, int]]] = {}
        for literal in self._literals:
            for gram, shift in _grams(literal):
                self._by_gram.setdefault(gram, []).append((literal, shift))

    @cached_property
    def _tables(self) -> Any:
        import numpy as np

        tables = np.zeros((2, 1 << _TABLE_BITS), dtype=bool)
        for table, factor in zip(tables, _FACTORS, strict=True):
            table[[_slot(gram, factor) for gram in self._by_gram]] = True
        return tables

    def find(self, folded: bytes) -> Iterator[tuple[int, bytes]]:
        """Every occurrence of every literal, in no order between literals."""
        small = len(folded) < _SMALL
        for literal in self._literals if small else self._short:
            at = folded.find(literal)
            while at >= 0:
                yield at, literal
                at = folded.find(literal, at + 1)
        if small:
            return
        by_gram = self._by_gram
        for at in self._candidates(folded):
            for literal, shift in by_gram.get(folded[at : at + 4], ()):
                if folded.startswith(literal, at - shift) and at >= shift:
                    yield at - shift, literal

    def _candidates(self, folded: bytes) -> list[int]:
        import numpy as np

        first, second = self._tables
        padded = folded + b"\0" * (8 - len(folded) % 4)
        found = []
        for offset in range(4):
            grams = np.frombuffer(padded, dtype="<u4", offset=offset, count=len(folded) // 4 + 1)
            at = np.flatnonzero(first[_slots(np, grams, _FACTORS[0])])
            at = at[second[_slots(np, grams[at], _FACTORS[1])]]
            found.append(at * 4 + offset)
        return np.sort(np.concatenate(found)).tolist()


def _slots(np: Any, grams: Any, factor: int) -> Any:
    return (grams * np.uint32(factor)) >> np.uint32(32 - _TABLE_BITS)


def _grams(literal: bytes) -> Iterator[tuple[bytes, int]]:
    """The four bytes by which a literal is recognised and where in it they are: the rarest; after three of
    them anything, and also the end of the text."""
    if len(literal) >= 4:
        shift = max(range(len(literal) - 3), key=lambda at: _rarity(literal[at : at + 4]))
        yield literal[shift : shift + 4], shift
    elif len(literal) == 3:
        yield from ((literal + bytes((last,)), 0) for last in range(256))
        yield literal, 0


def _rarity(gram: bytes) -> int:
    return sum(_FREQUENT.find(byte) if byte in _FREQUENT else 20 for byte in gram)


def _slot(gram: bytes, factor: int) -> int:
    return (int.from_bytes(gram, "little") * factor & 0xFFFFFFFF) >> (32 - _TABLE_BITS)


@dataclass(slots=True)
class Chunk:
    """Texts joined by newlines, where each begins, and what was found in each."""

    texts: tuple[str, ...] = field(repr=False)
    starts: tuple[int, ...]
    view: View = field(repr=False)
    found: list[Found] = field(repr=False)


def chunks(texts: Iterable[str]) -> Iterator[Chunk]:
    """The texts in order, joined up to `CHUNK` characters; nothing is found yet."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > CHUNK:
            yield make_chunk(batch)
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield make_chunk(batch)


def make_chunk(texts: Sequence[str], view: View | None = None) -> Chunk:
    """A chunk of these texts; `view` is that of the only one."""
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    return Chunk(tuple(texts), tuple(starts), view or View("\n".join(texts)), [{} for _ in texts])


def find_tokens(view: View) -> Iterator[Span]:
    """Tokens of known formats, looked for around the long runs of the text."""
    for start, end in view.regions():
        ranks: set[int] = set()
        hit = _ANY_TOKEN.search(view.raw, start, end)
        while hit:
            ranks.update(_RULES_OF[hit[0]])
            hit = _ANY_TOKEN.search(view.raw, hit.start() + 1, end)
        for rank in sorted(ranks):
            yield from TOKENS[rank].find(view.text, start, end)


def token_regions(view: View) -> Iterator[tuple[int, int]]:
    """Surroundings of long runs that hold a literal of some token format."""
    return (region for region in view.regions() if _ANY_TOKEN.search(view.raw, *region))
