"""Find secrets of one place of a trace in all its other places, in every form.

A value that a rule finds by its surroundings (`DB_PASSWORD=...`) also occurs without them: bare in a tool's
result, quoted, escaped, in a URL, in Base64 or hex.
"""

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.line_prefixes import (
    begins_line_after_placeholder,
    ends_line_before_placeholder,
    join_broken_lines,
)
from tracemill.privacy.core.placeholder_keys import (
    find_keyed_placeholders,
    find_placeholder_digits,
    hash_with_placeholder_key,
)
from tracemill.privacy.core.rule import Span, encode_rule_text
from tracemill.privacy.core.spellings import base64_spellings, list_echo_spellings
from tracemill.privacy.core.word_lists import COMMON_WORDS
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.redaction.detectors import NOTHING, DetectorNeeds, Detectors
from tracemill.privacy.redaction.prefilter import Prefilter, Probe, build_prefilter_pattern
from tracemill.privacy.redaction.redact_text import NO_SECRETS
from tracemill.records.message import Message

_FOUND = DetectorNeeds(1)
_HEAD = 12  # characters of a form that are searched first
_LITTLE = 100_000  # a smaller trace is searched form by form, without compiling them
_SHORT = 500  # the same for one text
_MOST_BLANKS = 64  # characters of a value in which blanks are sought
_BROKEN = 8  # least characters of a value that line ends may interrupt
_END = 8  # most characters of its beginning that are searched first
_REST = 6  # the same of its end
_LEAST_FIRST = 4  # a shorter first name is searched only with the last name
_LEAST_JOINED = 8  # a longer name is searched without its blanks too
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+")
_BESIDE = 64  # letters of Base64 beside a value that are replaced with it
_SHELL_ESCAPE = re.compile(r"\\([^\w\s])")
_KEY_LINE = re.compile(r"(?!b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{32,}={0,2}", re.ASCII)
_NAMED = "def|class|import|from|function|const|let|var|new|func|fn|type|struct|enum|interface|return"
_NAME_SETTING = "user|name|login|database|db|schema|project|host|service|image"
_CANDIDATE = re.compile(r"[^\s\"'`\\<>]{8,512}")
_JOINTS = re.compile(r"[=:,;(){}\[\]|&@/]")
_FULL_NAME = re.compile(r"[^\W\d_]{2,}[^\d<>]{0,60} [^\W\d_][\w'\u2019-]{2,}")
_PERSON = re.compile(PERSON)
_TRAILING = ".,;:!?)]}"


class TakenValues:
    """A finder of secrets and persons that were found elsewhere in the same trace; replaces `Detectors`.

    `values` has each secret and each name with its type. `texts` are those of the trace: a value in the shape
    of a name that they use as a name in code is left out.
    """

    def __init__(self, values: Mapping[str, str], base: Detectors, texts: Collection[str]) -> None:
        self._base = base
        names = [value for value, kind in values.items() if kind == "PERSON" and _FULL_NAME.fullmatch(value)]
        self._persons = {value: _person_pattern(value, _is_only_a_name(value, texts)) for value in names}
        values = {value: kind for value, kind in values.items() if kind not in NO_SECRETS}
        self.kinds: dict[str, str] = {}
        """The values that are searched for, each with its type."""
        self.same: dict[str, str] = {}
        """Texts that were found, each with the value that it is a form of."""
        self._forms: dict[str, str] = {}
        self._pieces: dict[str, str] = {}
        self._broken: list[str] = []
        self._alone: dict[str, re.Pattern[str]] = {}
        for value, kind in _with_parts(values):
            level = judge_distinctiveness(value, kind)
            if level is Distinctiveness.NOT or (level is Distinctiveness.ALONE and _is_name(value, texts)):
                continue
            self.kinds.setdefault(value, kind)
            self._add_forms(value, level)
        heads = {form[:_HEAD] for form in (*self._forms, *self._pieces, *self._alone)}
        heads |= {end for value in self._broken for end in _ends(value)}
        self._heads = sorted(heads | {part for name in self._persons for part in _person_heads(name)})
        large = sum(map(len, texts)) > _LITTLE
        self._prefilter = Prefilter(map(_probe, self._heads)) if large else None

    def __bool__(self) -> bool:
        return bool(self.kinds or self._persons)

    def _add_forms(self, value: str, level: Distinctiveness) -> None:
        data = value.encode("utf-8", "surrogatepass")
        if level is Distinctiveness.ALONE:
            self._alone[value] = re.compile(
                rf"(?:(?<![\w.$@/-])|(?<= -p)){re.escape(value)}(?![\w(\[/-]|\.\w)"
            )
            self._forms |= dict.fromkeys((data.hex(), data.hex().upper()), value)
        else:
            self._forms |= dict.fromkeys(list_echo_spellings(value), value)
        if len(value) >= _BROKEN:
            self._broken.append(value)
        self._pieces |= dict.fromkeys(base64_spellings(data), value)
        self._pieces |= dict.fromkeys(base64_spellings(base64.b64encode(data)), value)
        self._pieces |= dict.fromkeys(base64_spellings(value.encode("utf-16-le", "surrogatepass")), value)

    def needs(self, text: str) -> DetectorNeeds:
        """Tell whether a text can hold one of the values."""
        if self._prefilter is None or len(text) < _SHORT:
            return _FOUND if any(head in text for head in self._heads) else NOTHING
        return _FOUND if self._prefilter.bits(encode_rule_text(text), []) else NOTHING

    def find_holders(self, messages: Collection[Message], others: Iterable[str]) -> frozenset[Message] | None:
        """Return the messages that can hold one of the values.

        Returns None where neither they nor the other strings do, which one scan shows.
        """
        texts = [text for message in messages for text in message.texts()]
        if not self.needs("\n".join((*others, *texts))).bits:
            return None
        return frozenset(each for each in messages if any(self.needs(text).bits for text in each.texts()))

    def declared(self, text: str, needs: DetectorNeeds) -> dict[str, str]:
        """Return nothing: values are searched for in any kind of text."""
        return {}

    def is_allowed(self, text: str) -> bool:
        """Tell whether the user allows this whole text."""
        return self._base.is_allowed(text)

    def spans(self, text: str, needs: DetectorNeeds) -> list[Span]:
        """Return all forms of the values in a text."""
        found = [
            self._span(at, at + len(form), text, value)
            for form, value in self._forms.items()
            for at in _places(text, form)
        ]
        for value, pattern in self._alone.items():
            if value in text:
                found += [self._span(*match.span(), text, value) for match in pattern.finditer(text)]
        broken = [value for value in self._broken if any(end in text for end in _ends(value))]
        forms = [(value, form) for value in broken for form in _broken_forms(value)]
        for joined in join_broken_lines(text) if broken else ():
            for value, form in forms:
                for at in _places(joined.text, form):
                    start, end = joined.place_whole(at, at + len(form))
                    if end - start > len(form):
                        whole = Span(at, at + len(form), self.kinds[value])
                        held = find_keyed_placeholders(text[start:end])
                        pieces = joined.place_spans([whole]) if held else [Span(start, end, whole.kind)]
                        found += [self._span(piece.start, piece.end, text, value) for piece in pieces]
        for value in broken:
            found += [self._span(start, end, text, value) for start, end in _rests_of(value, text)]
            found += [self._span(start, end, text, value) for start, end in _starts_of(value, text)]
        for piece, value in self._pieces.items():
            for at in _places(text, piece):
                found.append(self._span(*_around_base64(text, at, at + len(piece)), text, value))
        for name, pattern in self._persons.items():
            if any(part in text for part in _person_heads(name)):
                found += [self._person(match, name) for match in pattern.finditer(text)]
        return self._base.without_allowed(text, found)

    def _person(self, match: re.Match[str], name: str) -> Span:
        self.same[match[0]] = name
        return Span(*match.span(), "PERSON")

    def _span(self, start: int, end: int, text: str, value: str) -> Span:
        self.same[text[start:end]] = value
        return Span(start, end, self.kinds[value])


def _person_heads(name: str) -> tuple[str, str, str, str]:
    first = name.split(" ")[0]
    last = name.split(" ")[-1]
    return first, first.lower(), first.upper(), last


def _is_only_a_name(name: str, texts: Iterable[str]) -> bool:
    """Tell whether no text has a first name in small letters or joined to other words."""
    first = name.split(" ")[0]
    if len(first) < _LEAST_FIRST or first.lower() in COMMON_WORDS:
        return False
    other = re.compile(
        rf"(?<![\w.@-]){re.escape(first.lower())}(?![\w.@-])|[\w.]{re.escape(first)}|{re.escape(first)}[\w(.]\w"
    )
    small = first.lower()
    return not any(other.search(text) for text in texts if small in text or first in text)


@lru_cache(maxsize=256)
def _person_pattern(name: str, first_too: bool = False) -> re.Pattern[str]:
    """Build a pattern of a name: as it is, in capitals, last name first, or joined.

    `first_too`: its first word alone too.
    """
    words = [re.escape(word) for word in name.split(" ")]
    forms = [r"\s+".join(words), r"\s+".join(map(str.upper, words)), f"{words[-1]}, {words[0]}"]
    if len(name) > _LEAST_JOINED:
        forms.append(f"(?i:{'[._-]?'.join(words)})")
    if first_too:
        forms.append(words[0])
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(forms)})(?![^\W_])")


def _probe(head: str) -> Probe:
    return Probe(build_prefilter_pattern(encode_rule_text(head), any_case=False), 1)


def find_values_of_placeholders(texts: Iterable[str], key: bytes, scope: str) -> dict[str, str]:
    """Find values in some text whose placeholder stands in another, each with its type.

    Texts redacted by older rules can hold a placeholder for a value that was replaced in one place only. The
    digits of a placeholder are a keyed hash, so every word of the texts is hashed and compared.
    """
    texts = list(texts)
    kinds = {digits: kind for text in texts for kind, digits in find_placeholder_digits(text)}
    wanted = {digits: kind for digits, kind in kinds.items() if kind not in NO_SECRETS or kind == "PERSON"}
    if not wanted:
        return {}
    words = {part for text in texts for word in _CANDIDATE.findall(text) for part in _parts_of(word)}
    if "PERSON" in wanted.values():
        words |= {part for text in texts for name in _PERSON.findall(text) for part in _names_in(name)}
    hashed = ((word, hash_with_placeholder_key(key, scope, word)) for word in sorted(words))
    return {word: wanted[digits] for word, digits in hashed if digits in wanted}


def _names_in(name: str) -> Iterator[str]:
    """Yield each name of two words or more among capitalised words."""
    words = name.split(" ")
    for start in range(len(words) - 1):
        yield from (" ".join(words[start:end]) for end in range(start + 2, len(words) + 1))


def _parts_of(word: str) -> Iterator[str]:
    for each in (word, *_JOINTS.split(word)):
        if len(each) >= 8:
            yield each
            yield each.rstrip(_TRAILING)


def _rests_of(value: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a line begins with the rest of a value whose first part was replaced on the line before."""
    size_of_end = len(_ends(value)[1])
    for at in _places(text, value[-size_of_end:]):
        end, size = at + size_of_end, size_of_end
        while size < len(value) and at > 0 and text[at - 1] == value[-size - 1]:
            at, size = at - 1, size + 1
        if size < len(value) and begins_line_after_placeholder(text, at):
            yield at, end


def _starts_of(value: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a line ends with the start of a value whose rest was replaced on the next line."""
    size_of_start = len(_ends(value)[0])
    for at in _places(text, value[:size_of_start]):
        end, size = at + size_of_start, size_of_start
        while size < len(value) and text[end : end + 1] == value[size]:
            end, size = end + 1, size + 1
        if size < len(value) and ends_line_before_placeholder(text, end):
            yield at, end


def _broken_forms(value: str) -> Iterator[str]:
    """Yield a value as it reads where lines are joined: a blank at the break may be gone."""
    yield value
    for at, character in enumerate(value[:_MOST_BLANKS]):
        if character == " ":
            yield value[:at] + value[at + 1 :]


def _ends(value: str) -> tuple[str, str]:
    """Return the first and the last characters; a line end leaves one of both whole."""
    half = len(value) // 2
    return value[: min(_END, half)], value[-min(_REST, half) :]


def _with_parts(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each value, and the secrets inside it.

    Those are the lines of a key, the password of a login, and the decoded forms of a URL or Base64 value.
    """
    for value, kind in values.items():
        if kind == "PRIVATE_KEY":
            yield from ((line, kind) for line in _KEY_LINE.findall(value))
            continue
        yield value, kind
        if "%" in value:
            yield unquote(value), kind
        if "\\" in value:
            yield _SHELL_ESCAPE.sub(r"\1", value), kind
        if "'" in value:
            yield value.replace("'\"'\"'", "'").replace("'\\''", "'"), kind
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


def _is_name(value: str, texts: Iterable[str]) -> bool:
    """Tell whether some text uses the value as a name: in code, in a path, or for a user or a database."""
    name = re.escape(value)
    used = re.compile(
        rf"(?:\b(?:{_NAMED})\s+|[.$@&*/\\]|->|::){name}\b|\b{name}(?:[(\[/]|\.[A-Za-z_]|::|->|\s*=[^=])"
        rf"|(?i:{_NAME_SETTING})[\"']?\s*[=:]\s*[\"']?{name}\b"
    )
    return any(value in text and used.search(text) for text in texts)


def _places(text: str, form: str) -> Iterator[int]:
    """Yield the positions of a form in a text, except where its first letter ends an escape (`\\n`)."""
    at = text.find(form)
    while at >= 0:
        if not (form[0].isalpha() and _is_escaped(text, at)):
            yield at
        at = text.find(form, at + 1)


def _is_escaped(text: str, at: int) -> bool:
    """Tell whether an odd number of backslashes stands before a position."""
    before = at
    while before > 0 and text[before - 1] == "\\":
        before -= 1
    return bool((at - before) % 2)


def _around_base64(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a piece of Base64 to all that is encoded with it (`user:value`).

    Where that is long, widen it by one letter on either side: these hold bits of its first and last byte.
    """
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
