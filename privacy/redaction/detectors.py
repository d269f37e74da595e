"""All detectors of a redactor in order of rank, and which of them a text needs."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from tracemill.privacy.core.line_prefixes import (
    PREFIX_PROBES,
    PlainText,
    plain_texts,
    unnumber_lines,
)
from tracemill.privacy.core.rule import (
    Detector,
    ProbeEnd,
    Span,
    TextView,
    encode_rule_text,
    fold,
    fold_rule_bytes,
    make_probed_detector,
)
from tracemill.privacy.core.secret_names import KEY_PROBES
from tracemill.privacy.personal import (
    accounts,
    addresses,
    conversations,
    coordinates,
    directory_entries,
    emails_and_ips,
    known_identity,
    labelled_addresses,
    labelled_data,
    labelled_people,
    name_columns,
    names_of_addresses,
    national_ids,
    other_scripts,
    people,
    phones_and_accounts,
    postal_addresses,
    record_formats,
    unannounced_data,
)
from tracemill.privacy.personal.known_identity import HOMES, KnownValues, distinctive_known_names
from tracemill.privacy.redaction.prefilter import Prefilter, Probe, build_prefilter_pattern
from tracemill.privacy.redaction.redact_json import is_json, may_redact_json, unescape_json_for_redaction
from tracemill.privacy.secrets import (
    call_arguments,
    command_lines,
    device_configs,
    documents,
    drawn_tokens,
    encoded,
    hashes_and_wallets,
    joined_values,
    key_material,
    login_forms,
    obfuscated,
    program_logins,
    secret_file_texts,
    secret_settings,
    spoken_passwords,
    surroundings,
    tables,
    transcripts,
    unannounced_secrets,
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
    *national_ids.DETECTORS,
    *directory_entries.DETECTORS,
    *postal_addresses.DETECTORS,
    *joined_values.DETECTORS,
    *key_material.DETECTORS,
    *secret_file_texts.DETECTORS,
    *tables.DETECTORS,
    *transcripts.DETECTORS,
    *device_configs.DETECTORS,
    *call_arguments.DETECTORS,
    *secret_settings.DETECTORS,
    *spoken_passwords.DETECTORS,
    *login_forms.DETECTORS,
    *drawn_tokens.DETECTORS,
    *coordinates.DETECTORS,
    *conversations.DETECTORS,
    *labelled_people.DETECTORS,
    *name_columns.DETECTORS,
    *names_of_addresses.DETECTORS,
    *record_formats.DETECTORS,
    *other_scripts.DETECTORS,
    *labelled_addresses.DETECTORS,
    *unannounced_data.DETECTORS,
    *unannounced_secrets.DETECTORS,
)
_EXACT, _NAMES, _HOMES, _KEYS, _NESTED, _PREFIXED, _SPECIAL = 1, 2, 4, 8, 16, 32, 6
_TOKENS = (1 << len(TOKENS)) - 1 << _SPECIAL
_OF_TEXT = ~(_KEYS | _NESTED)
_FIRST = _SPECIAL + len(TOKENS)
_OWN = _FIRST + len(_GENERAL)
_DECLARING = (
    documents.DETECTORS[0],
    key_material.ROLE_LOGINS,
    *labelled_data.DOCUMENTED,
    *national_ids.DETECTORS,
    secret_settings.IN_SECTIONS,
    *conversations.DECLARING,
    *labelled_people.DECLARING,
    *names_of_addresses.DECLARING,
    *other_scripts.DETECTORS,
    labelled_addresses.BEHIND_LABELS,
    coordinates.POINTS,
)
_DECLARED = tuple((1 << _FIRST + _GENERAL.index(each), each) for each in _DECLARING)
_TELLING = sum(
    1 << _FIRST + rank
    for rank, each in enumerate(_GENERAL)
    if any(each is one for one in (*people.TELLING, accounts.ACCOUNTS))
)
_OF_WORDS = 1 << _FIRST + _GENERAL.index(drawn_tokens.PREFIXED)
_MAX_DEPTH = 6
_HEAD = 64  # characters of a known value in its probe


class DetectorNeeds(NamedTuple):
    """The detectors that can find something in a text, as bits.

    `ends` has the ends of the probes of located detectors, None where they are not known. `read` is the text
    without line numbers, or the text itself where it has none; None where that is not known.
    """

    bits: int
    ends: Sequence[ProbeEnd] | None = None
    read: PlainText | None = None
    plain: "Sequence[tuple[PlainText, DetectorNeeds]] | None" = None
    """The text without line prefixes, in each way that needs a detector; None where that is not known."""

    def of_part(self) -> "DetectorNeeds | None":
        """Return what a part of the text needs at most, or None where it must be asked again.

        It is given for a single detector and for the user's names and home folders, which cost less to run
        than to ask for.
        """
        others = self.bits & ~(_NAMES | _HOMES)
        few = self.bits > 0 and not others & others - 1 and not others & (_TOKENS | _KEYS)
        return DetectorNeeds(self.bits) if few else None

    @property
    def of_words(self) -> bool:
        """Return whether each detector judges a word by itself, whatever blanks stand around it."""
        return not self.bits & ~_OF_WORDS


NOTHING = DetectorNeeds(0)
EVERYTHING = DetectorNeeds(-1)
"""Every detector, with nothing known beforehand: slow, with the same result."""


@cache
def _shared() -> Prefilter:
    """Build the prefilter of all probes except those of known values."""
    probes = [Probe(rule.probe, 1 << _SPECIAL + rank) for rank, rule in enumerate(TOKENS)]
    for rank, each in enumerate(_GENERAL):
        probes += [Probe(probe, 1 << _FIRST + rank, each.located) for probe in each.probes]
    probes += [Probe(probe, _HOMES) for probe in HOMES.probes]
    probes += [Probe(probe, _KEYS) for probe in KEY_PROBES]
    probes += [Probe(probe, _PREFIXED) for probe in PREFIX_PROBES]
    return Prefilter([*probes, Probe(r"\"\s*[\[{\"]", _NESTED)], kept_as="rules")


class Detectors:
    """The detectors of formats, surroundings, personal data and known values.

    `learned` are user names found in the trace itself, `more` are detectors beyond those of this program.
    """

    def __init__(
        self,
        known: KnownValues,
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
        self._chosen: dict[int, Sequence[tuple[Detector, int]]] = {}
        ranked = [(each.probes, 1 << _OWN + rank) for rank, each in enumerate(self._own)]
        self._always = sum(bit for probes, bit in ranked if not probes)
        mine = [Probe(probe, bit) for probes, bit in ranked for probe in probes]
        mine += [Probe(_literally(value), _EXACT) for value in known.secrets]
        self._mine = Prefilter(mine) if mine else None

    def needs(self, text: str) -> DetectorNeeds:
        """Return the detectors that a text needs; for JSON, those that its decoded strings need."""
        raw = encode_rule_text(text)
        if may_redact_json(text):
            bits = self._of_json(text, raw) & ~_NESTED
            return DetectorNeeds(bits) if bits & ~_PREFIXED else NOTHING
        read = _read(text)
        if read.text is not text:
            raw = encode_rule_text(read.text)
        ends: list[ProbeEnd] = []
        bits = self._of_raw(raw, ends)
        plain = self._of_plain(read.text) if bits & _PREFIXED else ()
        bits &= _OF_TEXT if plain else _OF_TEXT & ~_PREFIXED
        return DetectorNeeds(bits, ends, read, plain) if bits else NOTHING

    def _of_plain(self, text: str) -> list[tuple[PlainText, DetectorNeeds]]:
        """Return what the text needs without the prefixes of its lines."""
        found: list[tuple[PlainText, DetectorNeeds]] = []
        for plain in plain_texts(text):
            ends: list[ProbeEnd] = []
            bits = self._of_raw(encode_rule_text(plain.text), ends) & _OF_TEXT & ~_PREFIXED
            if bits:
                found.append((plain, DetectorNeeds(bits, ends, plain)))
        return found

    def _of_json(self, text: str, raw: bytes) -> int:
        if b"\\" not in raw:
            return self._of_raw(raw, [])
        whole = is_json(text)
        bits = 0 if whole else self._of_raw(raw, [])
        for depth in range(_MAX_DEPTH):
            before, raw = raw, unescape_json_for_redaction(raw, whole and depth == 0)
            if raw == before:
                break
            found = self._of_raw(raw, [])
            if found & _PREFIXED:
                for plain in plain_texts(raw.decode("latin-1")):
                    found |= self._of_raw(encode_rule_text(plain.text), [])
            bits |= found
            if not found & _NESTED or b"\\" not in raw:
                break
        return bits

    def _of_raw(self, raw: bytes, ends: list[ProbeEnd]) -> int:
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
    ) -> tuple["Detectors", dict[str, DetectorNeeds]]:
        """Return the detectors with the user names found in the texts, and the needs of each text.

        Names come from home folders (those in `surely` count at once) and from lines about who works there.
        """
        needs = {text: self.needs(text) for text in texts}
        named = {
            name
            for text, each in needs.items()
            if each.bits & _TELLING
            for name in people.find_people_named(text)
        }
        homes = (text for text, each in needs.items() if each.bits & _HOMES)
        learned = Detectors(
            self._known, (*known_identity.known_names_in_paths(homes, surely), *sorted(named)), self
        )
        if learned._names != self._names:
            needs = {text: learned._with_names(text, each) for text, each in needs.items()}
        return learned, needs

    def _with_names(self, text: str, needs: DetectorNeeds) -> DetectorNeeds:
        folded = fold(text)
        hidden = "\\u" in text  # JSON can escape any character this way
        found = hidden or any(name in folded for name in self._folded_names)
        return needs._replace(bits=needs.bits | _NAMES, ends=needs.ends or ()) if found else needs

    def spans(self, text: str, needs: DetectorNeeds) -> list[Span]:
        """Return all findings of the needed detectors, the surest kind first.

        A text with numbered lines is read without the numbers. A finding is returned once.
        """
        read = needs.read or _read(text)
        spans = self._spans(read.text, needs)
        return spans if read.text == text else list(read.place_spans(spans))

    def _spans(self, text: str, needs: DetectorNeeds) -> list[Span]:
        view, bits = TextView(text, needs.ends), needs.bits
        exact = list(known_identity.find_exact(view, self._known.secrets)) if bits & _EXACT else []
        found = self._others(view, bits)
        for plain, each in self._plain_needs(text, needs) if bits & _PREFIXED else ():
            found += plain.place_spans(self._others(TextView(plain.text, each.ends), each.bits))
        return exact + self.without_allowed(text, list(dict.fromkeys(found)))

    def _plain_needs(self, text: str, needs: DetectorNeeds) -> Sequence[tuple[PlainText, DetectorNeeds]]:
        if needs.bits == EVERYTHING.bits:
            return [(plain, EVERYTHING) for plain in plain_texts(text)]
        return self._of_plain(text) if needs.plain is None else needs.plain

    def declared(self, text: str, needs: DetectorNeeds) -> dict[str, str]:
        """Return the values that names in a JSON text declare private, each with its type."""
        view = TextView(text)
        found = [span for bit, each in _DECLARED if needs.bits & bit for span in each.find(view)]
        return {text[start:end]: kind for start, end, kind in self.without_allowed(text, found)}

    def _active(self, bits: int) -> Sequence[tuple[Detector, int]]:
        """Return the detectors of the bits, the surest first, each with its own bit."""
        wanted = bits >> _FIRST
        if wanted not in self._chosen:
            ranked = [*enumerate(self._own, len(_GENERAL)), *enumerate(_GENERAL)]
            self._chosen[wanted] = tuple(
                (each, 1 << _FIRST + rank) for rank, each in ranked if wanted >> rank & 1
            )
        return self._chosen[wanted]

    def is_allowed(self, text: str) -> bool:
        """Tell whether the user allows this whole text and it holds no known secret."""
        if not self._known.allow or any(known_identity.find_exact(TextView(text), self._known.secrets)):
            return False
        return (0, len(text)) in self._known.allow.places(text)

    def without_allowed(self, text: str, found: list[Span]) -> list[Span]:
        """Return the spans except those inside text that the user allows."""
        if not found or not self._known.allow:
            return found
        places = list(self._known.allow.places(text))
        return [each for each in found if not any(s <= each.start and each.end <= e for s, e in places)]

    def _others(self, view: TextView, bits: int) -> list[Span]:
        found: list[Span] = []
        if bits & _TOKENS:
            found += find_tokens(view, bits >> _SPECIAL)
            ids = [span for span in found if span.kind == "AWS_KEY_ID"]
            found += surroundings.find_aws_secrets(view, ids)
        for each, bit in self._active(bits):
            found += each.find(view.of_detector(bit) if each.located else view)
        if bits & _HOMES:
            found += known_identity.find_homes(view, self._names)
        if bits & _NAMES:
            found += known_identity.find_words(view, self._names, "USER")
        return found


def _read(text: str) -> PlainText:
    """Return the text without line numbers, or the text itself where it has none."""
    return unnumber_lines(text) or PlainText(text)


def _of_known(known: KnownValues) -> list[Detector]:
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
