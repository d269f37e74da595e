"""All detectors of one redactor in their order of rank, and which of them a text needs."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from tracemill.privacy.core.line_prefixes import PREFIX_PROBES, PlainText, plain_texts
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    View,
    encode_rule_text,
    fold,
    fold_rule_bytes,
    make_probed_detector,
)
from tracemill.privacy.core.secret_names import KEY_PROBES
from tracemill.privacy.personal import (
    accounts,
    addresses,
    emails_and_ips,
    known_identity,
    labelled_data,
    people,
    phones_and_accounts,
)
from tracemill.privacy.personal.known_identity import HOMES, Known, distinctive_known_names
from tracemill.privacy.redaction.prefilter import Prefilter, Probe, build_prefilter_pattern
from tracemill.privacy.redaction.redact_json import is_json, may_redact_json, unescape_json_for_redaction
from tracemill.privacy.secrets import (
    command_lines,
    documents,
    encoded,
    hashes_and_wallets,
    joined_values,
    obfuscated,
    program_logins,
    surroundings,
)
from tracemill.privacy.secrets.formats.all_formats import TOKENS
from tracemill.privacy.secrets.token_scan import find_tokens

_GENERAL = (
    *documents.DETECTORS,
    *surroundings.DETECTORS,
    *command_lines.DETECTORS,
    *program_logins.DETECTORS,
    *hashes_and_wallets.DETECTORS,
    *obfuscated.DETECTORS,
    *encoded.DETECTORS,
    *emails_and_ips.DETECTORS,
    *addresses.DETECTORS,
    *phones_and_accounts.DETECTORS,
    *accounts.DETECTORS,
    *people.DETECTORS,
    *labelled_data.DETECTORS,
    *joined_values.DETECTORS,
)
_EXACT, _NAMES, _HOMES, _KEYS, _NESTED, _PREFIXED, _SPECIAL = 1, 2, 4, 8, 16, 32, 6
_TOKENS = (1 << len(TOKENS)) - 1 << _SPECIAL
_OF_TEXT = ~(_KEYS | _NESTED)
_FIRST = _SPECIAL + len(TOKENS)
_OWN = _FIRST + len(_GENERAL)
_DECLARING = (documents.DETECTORS[0], *labelled_data.DOCUMENTED)
_DECLARED = tuple((1 << _FIRST + _GENERAL.index(each), each) for each in _DECLARING)
_TELLING = sum(
    1 << _FIRST + rank
    for rank, each in enumerate(_GENERAL)
    if any(each is one for one in (*people.TELLING, accounts.ACCOUNTS))
)
_MAX_DEPTH = 6
_HEAD = 64  # characters of a known value that are looked for


class Needs(NamedTuple):
    """The detectors that can find something in a text, as bits; and where the probes of located ones ended
    in it, None where that is not known."""

    bits: int
    ends: Sequence[int] | None = None
    plain: "Sequence[tuple[PlainText, Needs]] | None" = None
    """The text without the prefixes of its lines, in each way that needs anything; None where that is not
    known."""

    def of_part(self) -> "Needs | None":
        """What a part of the text needs at most, where that says enough: one detector, which costs less to
        run than it costs to ask again."""
        single = self.bits > 0 and not self.bits & self.bits - 1 and not self.bits & (_TOKENS | _KEYS)
        return Needs(self.bits) if single else None


NOTHING = Needs(0)
EVERYTHING = Needs(-1)
"""Every detector, and nothing looked up beforehand: slow, with the same result."""


@cache
def _shared() -> Prefilter:
    """The prefilter of everything that is no known value."""
    probes = [Probe(rule.probe, 1 << _SPECIAL + rank) for rank, rule in enumerate(TOKENS)]
    for rank, each in enumerate(_GENERAL):
        probes += [Probe(probe, 1 << _FIRST + rank, each.located) for probe in each.probes]
    probes += [Probe(probe, _HOMES) for probe in HOMES.probes]
    probes += [Probe(probe, _KEYS) for probe in KEY_PROBES]
    probes += [Probe(probe, _PREFIXED) for probe in PREFIX_PROBES]
    return Prefilter([*probes, Probe(r"\"\s*[\[{\"]", _NESTED)], kept_as="rules")


class Detectors:
    """What is looked for: the formats, the surroundings, personal data, and the known values.

    `learned` are user names that the trace itself gave away, `more` are detectors beyond those of this
    program.
    """

    def __init__(
        self,
        known: Known,
        learned: Iterable[str] = (),
        base: "Detectors | None" = None,
        more: Sequence[Detector] = (),
    ) -> None:
        self._known = known
        self._names = distinctive_known_names((*known.names, *learned))
        self._folded_names = tuple(fold(name) for name in self._names)
        self._shared = _shared()
        if base:
            self._own, self._mine, self._always = base._own, base._mine, base._always
            self._chosen = base._chosen
            return
        self._own = [*_of_known(known), *more]
        self._chosen: dict[int, Sequence[Detector]] = {}
        ranked = [(each.probes, 1 << _OWN + rank) for rank, each in enumerate(self._own)]
        self._always = sum(bit for probes, bit in ranked if not probes)
        mine = [Probe(probe, bit) for probes, bit in ranked for probe in probes]
        mine += [Probe(_literally(value), _EXACT) for value in known.secrets]
        self._mine = Prefilter(mine) if mine else None

    def needs(self, text: str) -> Needs:
        """What a text needs; where it is JSON, what it holds."""
        raw = encode_rule_text(text)
        if may_redact_json(text):
            bits = self._of_json(text, raw) & ~_NESTED
            return Needs(bits) if bits & ~_PREFIXED else NOTHING
        ends: list[int] = []
        bits = self._of_raw(raw, ends)
        plain = self._of_plain(text) if bits & _PREFIXED else ()
        bits &= _OF_TEXT if plain else _OF_TEXT & ~_PREFIXED
        return Needs(bits, ends, plain) if bits else NOTHING

    def _of_plain(self, text: str) -> list[tuple[PlainText, Needs]]:
        """What the text needs where its lines lack their prefixes."""
        found: list[tuple[PlainText, Needs]] = []
        for plain in plain_texts(text):
            ends: list[int] = []
            bits = self._of_raw(encode_rule_text(plain.text), ends) & _OF_TEXT & ~_PREFIXED
            if bits:
                found.append((plain, Needs(bits, ends)))
        return found

    def _of_json(self, text: str, raw: bytes) -> int:
        if b"\\" not in raw:
            return self._of_raw(raw, [])
        whole = is_json(text)
        bits = 0 if whole else self._of_raw(raw, [])
        for depth in range(_MAX_DEPTH):
            raw = unescape_json_for_redaction(raw, whole and depth == 0)
            found = self._of_raw(raw, [])
            if found & _PREFIXED:
                for plain in plain_texts(raw.decode("latin-1")):
                    found |= self._of_raw(encode_rule_text(plain.text), [])
            bits |= found
            if not found & _NESTED or b"\\" not in raw:
                break
        return bits

    def _of_raw(self, raw: bytes, ends: list[int]) -> int:
        bits = self._shared.bits(raw, ends) | self._always
        if self._mine:
            bits |= self._mine.bits(raw, ends)
        if self._folded_names:
            folded = fold_rule_bytes(raw)
            if any(name in folded for name in self._folded_names):
                bits |= _NAMES
        return bits

    def with_names_of(
        self, texts: Sequence[str], surely: Iterable[str]
    ) -> tuple["Detectors", dict[str, Needs]]:
        """The detectors with the user names that the texts give away, by home folders (those in `surely`
        without counting) and by lines about who works there; and what each text needs."""
        needs = {text: self.needs(text) for text in texts}
        told = {
            name
            for text, each in needs.items()
            if each.bits & _TELLING
            for name in people.find_people_named(text)
        }
        homes = (text for text, each in needs.items() if each.bits & _HOMES)
        learned = Detectors(
            self._known, (*known_identity.known_names_in_paths(homes, surely), *sorted(told)), self
        )
        if learned._names != self._names:
            needs = {text: learned._with_names(text, each) for text, each in needs.items()}
        return learned, needs

    def _with_names(self, text: str, needs: Needs) -> Needs:
        folded = fold(text)
        hidden = "\\u" in text  # JSON can write any character so
        found = hidden or any(name in folded for name in self._folded_names)
        return needs._replace(bits=needs.bits | _NAMES, ends=needs.ends or ()) if found else needs

    def spans(self, text: str, needs: Needs) -> list[Span]:
        """Everything that the needed detectors find, the surest kind first."""
        view, bits = View(text, needs.ends), needs.bits
        exact = list(known_identity.find_exact(view, self._known.secrets)) if bits & _EXACT else []
        found = self._others(view, bits)
        for plain, each in self._plain_needs(text, needs) if bits & _PREFIXED else ():
            found += plain.place_spans(self._others(View(plain.text, each.ends), each.bits))
        return exact + self.without_allowed(text, found)

    def _plain_needs(self, text: str, needs: Needs) -> Sequence[tuple[PlainText, Needs]]:
        if needs.bits == EVERYTHING.bits:
            return [(plain, EVERYTHING) for plain in plain_texts(text)]
        return self._of_plain(text) if needs.plain is None else needs.plain

    def declared(self, text: str, needs: Needs) -> dict[str, str]:
        """Return what its names say is private in a JSON text, each value with its type."""
        view = View(text)
        found = [span for bit, each in _DECLARED if needs.bits & bit for span in each.find(view)]
        return {text[start:end]: kind for start, end, kind in self.without_allowed(text, found)}

    def _active(self, bits: int) -> Sequence[Detector]:
        wanted = bits >> _FIRST
        if wanted not in self._chosen:
            ranked = [*enumerate(self._own, len(_GENERAL)), *enumerate(_GENERAL)]
            self._chosen[wanted] = tuple(each for rank, each in ranked if wanted >> rank & 1)
        return self._chosen[wanted]

    def is_allowed(self, text: str) -> bool:
        """The user lets this whole text stand, and it holds no known secret."""
        if not self._known.allow or any(known_identity.find_exact(View(text), self._known.secrets)):
            return False
        return (0, len(text)) in self._known.allow.places(text)

    def without_allowed(self, text: str, found: list[Span]) -> list[Span]:
        """Return the spans but for those inside of what the user lets stand."""
        if not found or not self._known.allow:
            return found
        places = list(self._known.allow.places(text))
        return [each for each in found if not any(s <= each.start and each.end <= e for s, e in places)]

    def _others(self, view: View, bits: int) -> list[Span]:
        found: list[Span] = []
        if bits & _TOKENS:
            found += find_tokens(view, bits >> _SPECIAL)
            ids = [span for span in found if span.kind == "AWS_KEY_ID"]
            found += surroundings.find_aws_secrets(view, ids)
        for each in self._active(bits):
            found += each.find(view)
        if bits & _HOMES:
            found += known_identity.find_homes(view, self._names)
        if bits & _NAMES:
            found += known_identity.find_words(view, self._names, "USER")
        return found


def _of_known(known: Known) -> list[Detector]:
    found: list[Detector] = []
    if known.homes:
        find = partial(known_identity.find_odd_homes, homes=known.homes)
        found.append(make_probed_detector(find, *map(_literally, known.homes)))
    if known.hosts:
        find = partial(known_identity.find_words, words=known.hosts, kind="HOST")
        found.append(make_probed_detector(find, *map(_literally, known.hosts)))
    if known.redact:
        probes = () if known.redact.patterns else known.redact.values
        found.append(make_probed_detector(known.redact.find, *map(_literally, probes)))
    return found


def _literally(value: str) -> str:
    return build_prefilter_pattern(encode_rule_text(value[:_HEAD]))
