"""Secrets that a trace gave away in one place, looked for in all its other places, in every form they take.

What a rule finds by its surroundings (`DB_PASSWORD=...`) also stands where nothing surrounds it: bare in a
tool's result, quoted, escaped, in an address, in Base64 or hex.
"""

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote

from tracemill.privacy.core.distinctive_values import Distinct, judge_distinctiveness
from tracemill.privacy.core.placeholder_keys import find_placeholder_digits, hash_with_placeholder_key
from tracemill.privacy.core.rule import Span, encode_rule_text
from tracemill.privacy.core.spellings import base64_spellings, list_echo_spellings
from tracemill.privacy.redaction.detectors import NOTHING, Detectors, Needs
from tracemill.privacy.redaction.prefilter import Prefilter, Probe, build_prefilter_pattern
from tracemill.privacy.redaction.redact_text import NO_SECRETS
from tracemill.records.message import Message

_FOUND = Needs(1)
_HEAD = 12  # characters of a form that are looked for first
_LITTLE = 100_000  # characters of a trace that is sooner searched for each form than all forms are compiled
_SHORT = 500  # the same of one text
_BROKEN = 24  # characters of a value that lines may break
_BREAK = r"(?:\\?\r?\n[ \t]*(?:\d{1,6}(?:\u2192|\t|\||:))?[ \t]*)?"
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+")
_BESIDE = 64  # letters of Base64 beside a value that are taken with it
_SHELL_ESCAPE = re.compile(r"\\([^\w\s])")
_KEY_LINE = re.compile(r"(?!b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{32,}={0,2}", re.ASCII)
_NAMED = "def|class|import|from|function|const|let|var|new|func|fn|type|struct|enum|interface|return"
_CANDIDATE = re.compile(r"[^\s\"'`\\<>]{8,512}")
_JOINTS = re.compile(r"[=:,;(){}\[\]|&@/]")
_TRAILING = ".,;:!?)]}"


class TakenValues:
    """A finder of values that were secrets elsewhere in the same trace. It takes the place of `Detectors`.

    `values` has each secret with the type it was found as. `texts` are those of the trace: a value of a
    name's shape that they use as a name in code is left out.
    """

    def __init__(self, values: Mapping[str, str], base: Detectors, texts: Collection[str]) -> None:
        self._base = base
        self.kinds: dict[str, str] = {}
        """The values that are looked for, each with the type it was found as."""
        self.same: dict[str, str] = {}
        """Texts that were found, with the value that each is a form of."""
        self._forms: dict[str, str] = {}
        self._pieces: dict[str, str] = {}
        self._broken: list[str] = []
        self._alone: dict[str, re.Pattern[str]] = {}
        for value, kind in _with_parts(values):
            how = judge_distinctiveness(value)
            if how is Distinct.NOT or (how is Distinct.ALONE and _is_name_in_code(value, texts)):
                continue
            self.kinds.setdefault(value, kind)
            self._add_forms(value, how)
        self._heads = sorted({form[:_HEAD] for form in (*self._forms, *self._pieces, *self._alone)})
        large = sum(map(len, texts)) > _LITTLE
        self._prefilter = Prefilter(map(_probe, self._heads)) if large else None

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def _add_forms(self, value: str, how: Distinct) -> None:
        data = value.encode("utf-8", "surrogatepass")
        if how is Distinct.ALONE:
            self._alone[value] = re.compile(rf"(?<![\w.$@/-]){re.escape(value)}(?![\w(\[/-]|\.\w)")
            self._forms |= dict.fromkeys((data.hex(), data.hex().upper()), value)
        else:
            self._forms |= dict.fromkeys(list_echo_spellings(value), value)
            if len(value) >= _BROKEN and value.isascii() and " " not in value:
                self._broken.append(value)
        self._pieces |= dict.fromkeys(base64_spellings(data), value)

    def needs(self, text: str) -> Needs:
        """Tell whether a text can hold one of the values."""
        if self._prefilter is None or len(text) < _SHORT:
            return _FOUND if any(head in text for head in self._heads) else NOTHING
        return _FOUND if self._prefilter.bits(encode_rule_text(text), []) else NOTHING

    def find_holders(self, messages: Collection[Message], others: Iterable[str]) -> frozenset[Message] | None:
        """Find the messages that can hold one of the values; None where neither these nor the other strings
        do. Most often nothing does, and one scan tells it."""
        texts = [text for message in messages for text in message.texts()]
        if not self.needs("\n".join((*others, *texts))).bits:
            return None
        return frozenset(each for each in messages if any(self.needs(text).bits for text in each.texts()))

    def declared(self, text: str, needs: Needs) -> dict[str, str]:
        """Return nothing: values are looked for, whatever the form of a text."""
        return {}

    def is_allowed(self, text: str) -> bool:
        """Tell whether the user lets this whole text stand."""
        return self._base.is_allowed(text)

    def spans(self, text: str, needs: Needs) -> list[Span]:
        """Return everything that is a form of one of the values."""
        found = [
            self._span(at, at + len(form), text, value)
            for form, value in self._forms.items()
            for at in _places(text, form)
        ]
        for value, pattern in self._alone.items():
            if value in text:
                found += [self._span(*match.span(), text, value) for match in pattern.finditer(text)]
        for value in self._broken:
            if value[:_HEAD] in text and value not in text:
                matches = _broken_pattern(value).finditer(text)
                found += [self._span(*match.span(), text, value) for match in matches]
        for piece, value in self._pieces.items():
            for at in _places(text, piece):
                found.append(self._span(*_around_base64(text, at, at + len(piece)), text, value))
        return self._base.without_allowed(text, found)

    def _span(self, start: int, end: int, text: str, value: str) -> Span:
        self.same[text[start:end]] = value
        return Span(start, end, self.kinds[value])


def _probe(head: str) -> Probe:
    return Probe(build_prefilter_pattern(encode_rule_text(head), any_case=False), 1)


def find_values_of_placeholders(texts: Iterable[str], key: bytes, scope: str) -> dict[str, str]:
    """Find values that stand in a text although a placeholder of theirs stands in another: each with the
    type that the placeholder says.

    Texts that older rules redacted hold placeholders for values that they took in one place alone. The digits
    of a placeholder are a keyed hash, so every word of the texts is hashed and compared.
    """
    texts = list(texts)
    kinds = {digits: kind for text in texts for kind, digits in find_placeholder_digits(text)}
    wanted = {digits: kind for digits, kind in kinds.items() if kind not in NO_SECRETS}
    if not wanted:
        return {}
    words = {part for text in texts for word in _CANDIDATE.findall(text) for part in _parts_of(word)}
    hashed = ((word, hash_with_placeholder_key(key, scope, word)) for word in sorted(words))
    return {word: wanted[digits] for word, digits in hashed if digits in wanted}


def _parts_of(word: str) -> Iterator[str]:
    for each in (word, *_JOINTS.split(word)):
        if len(each) >= 8:
            yield each
            yield each.rstrip(_TRAILING)


@lru_cache(maxsize=64)
def _broken_pattern(value: str) -> re.Pattern[str]:
    """A pattern of a value that ends of lines, with the numbers of the next ones, may stand in."""
    return re.compile(_BREAK.join(map(re.escape, value)))


def _with_parts(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give each value, and what is a secret inside of it: the lines of a key, the password of a login, what a
    value of an address or of Base64 means."""
    for value, kind in values.items():
        if kind == "PRIVATE_KEY":
            yield from ((line, kind) for line in _KEY_LINE.findall(value))
            continue
        yield value, kind
        if "%" in value:
            yield unquote(value), kind
        if "\\" in value:
            yield _SHELL_ESCAPE.sub(r"\1", value), kind
        plain = _from_base64(value)
        if plain:
            yield plain, kind
            name, colon, password = plain.partition(":")
            if colon and name and ":" not in password:
                yield password, kind


def _from_base64(value: str) -> str:
    if len(value) < 12 or len(value) > 2048:
        return ""
    try:
        data = base64.b64decode(
            value + "=" * (-len(value) % 4),
            altchars=b"-_" if "-" in value or "_" in value else None,
            validate=True,
        )
        plain = data.decode("utf-8").strip()
    except (binascii.Error, ValueError):
        return ""
    return plain if plain.isprintable() else ""


def _is_name_in_code(value: str, texts: Iterable[str]) -> bool:
    """Tell whether some text uses the value as the name of something in code."""
    name = re.escape(value)
    used = re.compile(
        rf"(?:\b(?:{_NAMED})\s+|[.$@&*]|->|::){name}\b|\b{name}(?:[(\[]|\.[A-Za-z_]|::|->|\s*=[^=])"
    )
    return any(value in text and used.search(text) for text in texts)


def _places(text: str, form: str) -> Iterator[int]:
    """Give the places of a form in a text, but for those whose first letter ends an escape (`\\n`)."""
    at = text.find(form)
    while at >= 0:
        if not (form[0].isalpha() and _is_escaped(text, at)):
            yield at
        at = text.find(form, at + 1)


def _is_escaped(text: str, at: int) -> bool:
    """Tell whether an odd number of backslashes stands before a place whose letter they can escape."""
    before = at
    while before > 0 and text[before - 1] == "\\":
        before -= 1
    return bool((at - before) % 2)


def _around_base64(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a piece of Base64 to all that is encoded with it (`user:value`), or by a letter on either side
    where that is long: these hold bits of its first and last byte."""
    first, last = start, end
    while first > max(0, start - _BESIDE) and text[first - 1] in _BASE64:
        first -= 1
    while last < min(len(text), end + _BESIDE) and text[last] in _BASE64:
        last += 1
    first = start - 1 if start - first == _BESIDE else first
    last = end + 1 if last - end == _BESIDE else last
    while text[last : last + 1] == "=":
        last += 1
    return first, last
