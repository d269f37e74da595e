"""All detectors of one redactor in their order of rank, and which of them a text needs."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from privacy import accounts, commands, contexts, identity, numbered, personal
from privacy.identity import HOMES, Known, distinctive
from privacy.prefilter import AnchorIndex, Chunk, Found, chunks, find_tokens, make_chunk, token_regions
from privacy.rules import Detector, Span, View, fold, on

_TOKENS, _EXACT, _NAMES, _HOMES = 1, 2, 4, 8
_FIXED = 4
_GENERAL = (
    *contexts.DETECTORS,
    *commands.DETECTORS,
    *personal.DETECTORS,
    *numbered.DETECTORS,
    *accounts.DETECTORS,
)
_ESCAPED = re.compile(r"[\"\\\x00-\x1f]+")


@dataclass(frozen=True, slots=True)
class Needs:
    """The detectors that can find something in a text, as bits, and where their anchors stand, or at
    least which anchors may stand there."""

    bits: int
    found: Found | None = field(default=None, repr=False)
    only: Collection[bytes] | None = field(default=None, repr=False)

    def of_part(self) -> "Needs":
        """What a part of the text needs at most."""
        return Needs(self.bits, None, self.only if self.found is None else self.found)


EVERYTHING = Needs(-1)
"""Every detector, and nothing looked up beforehand: slow, with the same result."""


class Detectors:
    """What is looked for: the formats, the surroundings, personal data, and the known values.

    `learned` are user names that the trace itself gave away.
    """

    def __init__(self, known: Known, learned: Iterable[str] = (), base: "Detectors | None" = None) -> None:
        self._known = known
        self._names = distinctive((*known.names, *learned))
        if base:
            self._general, self._rare, self._bits_of = base._general, base._rare, base._bits_of
            self._index, self._always, self._chosen = base._index, base._always, base._chosen
            return
        self._general = (*_of_known(known), *_GENERAL)
        self._chosen: dict[int, Sequence[Detector]] = {}
        every = [(found, 1 << _FIXED + rank) for rank, d in enumerate(self._general) for found in d.anchors]
        every += [(found, _HOMES) for found in HOMES.anchors]
        every += [(("fold", _anchor(value)), _EXACT) for value in known.secrets]
        self._rare = [pair for pair in every if pair[0][0] != "fold"]
        self._always = sum(1 << _FIXED + rank for rank, d in enumerate(self._general) if not d.anchors)
        self._bits_of: dict[bytes, int] = {}
        for (plane, literal), bit in every:
            if plane == "fold":
                self._bits_of[literal] = self._bits_of.get(literal, 0) | bit
        self._index = AnchorIndex(self._bits_of)

    def needs(self, texts: Sequence[str]) -> list[Needs]:
        """For each text the detectors it needs."""
        return [each for chunk in chunks(texts) for each in self._needs(chunk, self._names)]

    def needs_of(self, view: View) -> Needs:
        """What one text needs."""
        return self._needs(make_chunk((view.text,), view), self._names)[0]

    def _needs(self, chunk: Chunk, names: Sequence[str]) -> list[Needs]:
        bits = [self._always] * len(chunk.texts)
        starts, found, bits_of = chunk.starts, chunk.found, self._bits_of
        for at, literal in self._index.find(chunk.view.plane("fold")):
            index = bisect_right(starts, at) - 1
            bits[index] |= bits_of[literal]
            found[index].setdefault(literal, []).append(at - starts[index])
        for (plane, literal), bit in self._rare:
            _mark(chunk, plane, literal, bit, bits)
        for name in names:
            _mark(chunk, "fold", _anchor(name), _NAMES, bits)
        for start, end in token_regions(chunk.view):
            for index in range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)):
                bits[index] |= _TOKENS
        return [Needs(b, f) for b, f in zip(bits, found, strict=True)]

    def with_names_of(
        self, texts: Sequence[str], surely: Iterable[str]
    ) -> tuple["Detectors", dict[str, Needs]]:
        """The detectors with the user names that the texts' home folders give away (those in `surely`
        without counting), and what each text needs."""
        parts = [(chunk, self._needs(chunk, self._names)) for chunk in chunks(texts)]
        homes = (
            t for chunk, each in parts for t, n in zip(chunk.texts, each, strict=True) if n.bits & _HOMES
        )
        learned = Detectors(self._known, identity.names_in_paths(homes, surely), self)
        more = set(learned._names) - set(self._names)
        needs: dict[str, Needs] = {}
        for chunk, each in parts:
            bits = [n.bits for n in each]
            for name in more:
                _mark(chunk, "fold", _anchor(name), _NAMES, bits)
            needs.update(zip(chunk.texts, map(Needs, bits, chunk.found), strict=True))
        return learned, needs

    def spans(self, text: str, needs: Needs) -> list[Span]:
        """Everything that the needed detectors find, the surest kind first."""
        view = View(text, needs.found, needs.only)
        exact = list(identity.find_exact(view, self._known.secrets)) if needs.bits & _EXACT else []
        found = self._others(view, needs)
        if found and self._known.allow:
            found = self._not_allowed(text, found)
        return exact + found

    def _active(self, bits: int) -> Sequence[Detector]:
        if bits not in self._chosen:
            rest = bits >> _FIXED
            self._chosen[bits] = tuple(d for rank, d in enumerate(self._general) if rest >> rank & 1)
        return self._chosen[bits]

    def is_allowed(self, text: str) -> bool:
        """The user lets this whole text stand, and it holds no known secret."""
        if not self._known.allow or any(value in text for value in self._known.secrets):
            return False
        return (0, len(text)) in self._known.allow.places(text)

    def _not_allowed(self, text: str, found: list[Span]) -> list[Span]:
        places = list(self._known.allow.places(text))
        return [each for each in found if not any(s <= each.start and each.end <= e for s, e in places)]

    def _others(self, view: View, needs: Needs) -> list[Span]:
        found: list[Span] = []
        if needs.bits & _TOKENS:
            found += find_tokens(view)
            ids = [span for span in found if span.kind == "AWS_KEY_ID"]
            found += contexts.find_aws_secrets(view, ids)
        for each in self._active(needs.bits):
            found += each.find(view)
        if needs.bits & _HOMES:
            found += identity.find_homes(view, self._names)
        if needs.bits & _NAMES:
            found += identity.find_words(view, self._names, "USER")
        return found


def _mark(chunk: Chunk, plane: str, literal: bytes, bit: int, bits: list[int]) -> None:
    characters, starts = chunk.view.plane(plane), chunk.starts
    at = characters.find(literal)
    while at >= 0:
        index = bisect_right(starts, at) - 1
        bits[index] |= bit
        if index + 1 == len(starts):
            return
        at = characters.find(literal, starts[index + 1])


def _of_known(known: Known) -> list[Detector]:
    found: list[Detector] = []
    if known.homes:
        find = partial(identity.find_odd_homes, homes=known.homes)
        found.append(on(find, *(_anchor(home) for home in known.homes)))
    if known.hosts:
        find = partial(identity.find_words, words=known.hosts, kind="HOST")
        found.append(on(find, *(_anchor(host) for host in known.hosts)))
    if known.redact:
        anchors = () if known.redact.patterns else known.redact.values
        found.append(on(known.redact.find, *map(_anchor, anchors)))
    return found


def _anchor(value: str) -> bytes:
    """The longest part of a value that JSON writes as it is."""
    return fold(max(_ESCAPED.split(value), key=len))
