# ruff: noqa: E501 (patterns)
"""Detect personal numbers, dates and places by their label, before the value or over a column."""

import re
from collections.abc import Iterable, Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.number_forms import (
    FILLER,
    LABEL_SUFFIX,
    LATIN_LABEL,
    LATIN_LABELS,
    OTHER_LABEL,
    OTHER_LABELS,
    NumberForm,
    is_number_valid,
)
from tracemill.privacy.core.read_table import find_cells_under
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.personal.unannounced_data import is_full_name

_TAGS = r"(?:[ \t]{0,2}</?[a-z]\w{0,10}[^<>\n]{0,40}>){0,3}"  # HTML between a label and its value
_BETWEEN = re.compile(
    rf"(?i)(?:number|nummer(?:et)?|(?-i:No|Nr|Num|Code|Id|ID|Value)|s)?(?![a-z])[\"'`]?(?:[ \t_.:=(/#-]{{1,4}}{FILLER}(?![a-z]))*{_TAGS}"
    r"(?:[ \t]{1,40}(?=:)|[\u662f\u306f\u4e3a\u70ba])?[ \t.:=(#\xba\xb0/)>|\uff1a*-]{0,4}[\"'`]?[ \t]{0,4}[:=*]{0,3}[ \t]{0,4}(?:[A-Za-z][A-Za-z_.]{1,24}(?=\([\"'`]))?[\"'`(\[]{0,2}"
)
_IN_HEADER = re.compile(r"[\w .-]{0,20}[\"'`*\]]{0,2}[ \t]*(?:[|,;\t]|\r?\n)")


def find_national_ids(view: TextView) -> Iterator[Span]:
    """Find personal numbers, dates and places after their labels and in columns below them."""
    text, folded, read = view.text, view.plane("fold"), -1
    for low, high in view.windows():
        for found in LATIN_LABEL.finditer(folded, low, high):
            start, end = found.span()
            edge = not start or not text[start - 1].isalnum()
            if not (edge or (text[start].isupper() and text[start - 1].islower())):
                continue
            if not LABEL_SUFFIX.match(text, end):
                continue
            yield from _behind(text, start, end, LATIN_LABELS.get(text[start:end].lower(), ()))
            if start >= read and _IN_HEADER.match(text, end):
                cells, read = find_cells_under(text, start)
                yield from cells


def find_labelled_in_other_scripts(view: TextView) -> Iterator[Span]:
    """Find the same after labels in Chinese, Japanese, Korean, Arabic, Cyrillic, Greek and Hebrew."""
    read = -1
    for low, high in view.windows():
        for found in OTHER_LABEL.finditer(view.text, low, high):
            yield from _behind(view.text, *found.span(), OTHER_LABELS[found[0]])
            if found.start() >= read and _IN_HEADER.match(view.text, found.end()):
                cells, read = find_cells_under(view.text, found.start())
                yield from cells


def _behind(text: str, start: int, end: int, numbers: Iterable[NumberForm]) -> Iterator[Span]:
    """Yield the number after a label, and the name of a person beside them in the sentence."""
    owner = _OWNER.match(text, end)
    between = owner or _BETWEEN.match(text, end)
    if between is None:
        return
    for number in numbers:
        found = number.form.match(text, between.end())
        if found and is_number_valid(number, found[0]):
            yield Span(*found.span(), number.kind)
            if number.kind in _OF_PERSONS:
                names = (owner, _name_before(text, start), _NAME_AFTER.match(text, found.end()))
                yield from (
                    Span(*name.span("v"), "PERSON") for name in names if name and is_full_name(name["v"])
                )
            return


def _name_before(text: str, start: int) -> re.Match[str] | None:
    """Return the last name before a label in its sentence."""
    low = max(0, start - _BEFORE, text.rfind("\n", 0, start) + 1)
    names = [name for name in _NAME.finditer(text, low, start) if _REST.fullmatch(text, name.end(), start)]
    return names[-1] if names else None


_BEFORE = 60  # characters before a label in which a name begins
_NAME = LazyPattern(rf"(?<![\w.-])(?P<v>{PERSON})(?![\w-])")
_REST = LazyPattern(r"[^\n.:;|={}\"]*[,;:\u2013-]? ?")
_NAME_AFTER = LazyPattern(
    rf",? ?(?:\(|(?<= )(?:de|da|do|di|del|of|van|von|for|f\xfcr|pour|av|af|\u0443|\u0434\u043b\u044f) )(?P<v>{PERSON})(?![\w-])"
)
_OWNER = LazyPattern(
    rf" (?:of|di|de|do|da|del|von|van|f\xfcr|for|pour|para|av|af) (?P<v>{PERSON})(?: (?:is|\xe8|\xe9|est|es|ist|lautet|er|\xe4r))?[ \t]?[:=]?[ \t]"
)
_OF_PERSONS = frozenset(("NATIONAL_ID", "SSN", "PASSPORT", "BIRTH_DATE"))


_SHORT = 6  # shorter labels are part of many words
_TOGETHER = 30  # short labels in a probe; the prefilter takes twice as long for sixty and more
_SUFFIX = r"(?:number|nummer|num|no|nr|id|code|value|s)?"
_BEHIND = rf"{_SUFFIX}[^A-Za-z0-9\n][^\n]{{0,24}}[0-9]"
_EDGE = r"(?:^|[\n,;\t\"'_|] ?)"
_IN_HEAD = rf"[ _.-]?{_SUFFIX}[\"'`*\]]*[ \t]*[|,;\t\r\n]"


def _probes(numbers: dict[str, list[NumberForm]]) -> Iterator[str]:
    """Yield probes for labels of one byte a letter.

    Short labels need a digit after them or a place in a header, those of places a decimal.
    """
    latin = [label for label in numbers if all(ord(c) < 256 for c in label)]
    places = [label for label in latin if numbers[label][0].kind == "LOCATION"]
    short = [label for label in latin if len(label) < _SHORT and label not in places]
    here = "|".join(places)
    for first in range(0, len(short), _TOGETHER):
        few = "|".join(map(re.escape, short[first : first + _TOGETHER]))
        yield rf"(?i)(?:^|[^a-z])(?:{few}){_BEHIND}"
        yield rf"(?i){_EDGE}(?:{few}){_IN_HEAD}"
    yield rf"(?i)(?:^|[^a-z])em\?o{_BEHIND}"
    yield rf"(?i)(?:^|[^a-z])(?:{here}){_BEHIND}\.[0-9]{{4}}"
    yield rf"(?i){_EDGE}(?:{here}){_IN_HEAD}"
    rest = {re.sub("[ _-]", " ", label) for label in latin if label not in (*short, *places)}
    long = "|".join(re.escape(label).replace(r"\ ", "[ _-]") for label in sorted(rest))
    yield rf"(?i)(?:{long}|driver\?s licen[cs]e)"


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_national_ids, *_probes(LATIN_LABELS), located=True),
    make_probed_detector(
        find_labelled_in_other_scripts,
        r"\?{2}[^\n0-9]{0,12}[0-9][0-9A-Z? ./()-]{6}",
        r"\?{2}[\"'`*]?[ \t]*(?:[,;\t|][^\n]*)?\r?\n",
        located=True,
    ),
)
