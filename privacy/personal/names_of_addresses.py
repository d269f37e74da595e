"""Detect names and accounts that an e-mail address near them is made of: `Bo Zanetti`, `bzanetti@...`."""

import re
import unicodedata
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.core.word_lists import COMMON_WORDS, TRANSCRIBED
from tracemill.privacy.personal.emails_and_ips import DOMAIN_PROBE, iter_addresses
from tracemill.privacy.personal.labelled_data import is_person

_REACH = 240  # characters before and after an address
_WORD = LazyPattern(
    r"(?<![^\W\d_])(?:[A-Z\xc0-\xd6\xd8-\xde\u0100-\u017d](?:[^\W\d_]|['\u2019](?=[^\W\d_])){1,23}"
    r"|(?:van|von|de|der|den|da|di|dos|la|le|bin|al)(?= ))(?![^\W\d_])"
)
_LEAST = 6  # letters of a local part
_MOST_WORDS = 6  # of a name, joined by a blank or a hyphen
_JOINTS = frozenset((" ", "-"))
_ACCOUNT = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")


def find_names_of_addresses(view: TextView) -> Iterator[Span]:
    """Find names whose letters are the local part of an address near them.

    A name is a first and a last name, either of which the address may shorten to its initial. Its parts may
    stand under labels of their own.
    """
    for local, low, high in _local_parts(view):
        yield from (Span(*name, "PERSON") for name in _names_of(view.text, low, high, _fold(local)))


def find_accounts_of_addresses(view: TextView) -> Iterator[Span]:
    """Find the local part of an address where it stands by itself, if it is made of a name."""
    text = view.text
    for local, low, high in _local_parts(view):
        if not _ACCOUNT.fullmatch(local):
            continue
        if "." in local or "_" in local or any(_names_of(text, low, high, _fold(local))):
            alone = re.compile(rf"(?<![\w.@/-]){re.escape(local)}(?![\w@/-]|\.\w)")
            yield from (Span(*found.span(), "USER") for found in alone.finditer(text, low, high))


def _local_parts(view: TextView) -> Iterator[tuple[str, int, int]]:
    """Yield the local part of each address in small letters, and the part of the text around it."""
    for start, sign, _ in iter_addresses(view):
        local = view.text[start:sign].lower()
        if len(_fold(local)) >= _LEAST:
            yield local, max(0, start - _REACH), min(len(view.text), sign + _REACH)


def _names_of(text: str, low: int, high: int, letters: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each name, or part of one, that gives the letters of a local part."""
    found = _candidates(text, low, high, letters)
    return (each for each in found if _is_name(text[each[0] : each[1]]))


def _is_name(name: str) -> bool:
    """Tell whether a name is a person's and not made of common words."""
    return is_person(name) and not COMMON_WORDS.issuperset(name.lower().split())


def _candidates(text: str, low: int, high: int, letters: str) -> Iterator[tuple[int, int]]:
    words = [(*word.span(), _spellings(word[0])) for word in _WORD.finditer(text, low, high)]
    for first in range(len(words)):
        last = first
        while (
            last + 1 < len(words)
            and last - first < _MOST_WORDS
            and words[last + 1][0] == words[last][1] + 1
            and text[words[last][1]] in _JOINTS
        ):
            last += 1
            if _gives(words[first][2], _joined(words[first + 1 : last + 1]), letters):
                yield words[first][0], words[last][1]
    by_spelling = {spelling: (start, end) for start, end, spellings in words for spelling in spellings}
    for start, end, spellings in words:
        for spelling in spellings:
            rest = letters.removeprefix(spelling)
            if min(len(spelling), len(rest)) > 2 and rest != letters and rest in by_spelling:
                yield start, end
                yield by_spelling[rest]


_Word = tuple[int, int, frozenset[str]]


def _joined(words: list[_Word]) -> frozenset[str]:
    """Return the spellings of several words as one, with and without words such as `van`."""
    spelt = {""}
    for _, _, spellings in words:
        spelt = {done + each for done in spelt for each in spellings}
    return frozenset((*spelt, *words[-1][2]))


def _gives(first: frozenset[str], last: frozenset[str], letters: str) -> bool:
    """Tell whether a first and a last name give the letters, whole or one of them by its initial."""
    return any(
        letters in (a + b, b + a, a[0] + b, b + a[0], a + b[0]) for a in first for b in last if len(b) > 2
    )


def _spellings(word: str) -> frozenset[str]:
    """Return a word in plain small letters, with accents left out and as `ae`, `oe`, `ue`."""
    small = word.lower()
    spelt = _fold(small), _fold("".join(TRANSCRIBED.get(each, each) for each in small))
    return frozenset(each for each in spelt if each)


def _fold(text: str) -> str:
    """Return the letters of a text without accents, digits and signs."""
    plain = unicodedata.normalize("NFKD", text)
    return "".join(each for each in plain if "a" <= each <= "z")


_PROBE = rf"(?i:[a-z])[\w.+-]*@{DOMAIN_PROBE}"
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_names_of_addresses, _PROBE),
    make_probed_detector(find_accounts_of_addresses, _PROBE),
)
DECLARING: tuple[Detector, ...] = DETECTORS[:1]
"""The detectors that also read JSON as a whole."""
