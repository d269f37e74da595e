# ruff: noqa: E501 (patterns)
"""Detect persons in records of exchange formats, where the place of a field says what it holds.

HL7 v2 and DICOM, X12 and EDIFACT, RIS, MEDLINE and refer, GEDCOM, SWIFT MT, machine-readable zones, names of
passengers, vCard lines and MECARD.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, Span, TextView, make_anywhere_detector, make_probed_detector
from tracemill.privacy.personal.given_names import GIVEN_NAMES
from tracemill.privacy.personal.labelled_data import PERSON, is_person

_UPPER = r"[A-Z\xc0-\xde\u0100-\u017d]"
_WORD = rf"{_UPPER}[^\W\d_]*(?:['\u2019-][^\W\d_]+)*"
_LAST = rf"(?:(?:van|von|de|der|den|da|di|del|la|le|bin|al|El|O) ?(?:der |la )?)?{_WORD}(?: {_WORD}){{0,2}}"
_DATE8 = r"(?:18|19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_SEGMENT = LazyPattern(r"(?<![A-Z0-9])(?P<id>PID|NK1|PV1|GT1|IN1|PD1|ROL|STF)\|(?P<fields>[^\n\r\"]{4,2000})")
_COMPONENTS = LazyPattern(rf"(?<![^|^~&])(?P<v>{_LAST}\^{_WORD})")
_PID = {
    2: "PATIENT_ID",
    3: "PATIENT_ID",
    4: "PATIENT_ID",
    7: "BIRTH_DATE",
    11: "ADDRESS",
    13: "PHONE",
    14: "PHONE",
    18: "BANK_ACCOUNT",
    19: "SSN",
}
"""The type of a field of the segment PID by its number."""
_SAID = {
    "BIRTH_DATE": re.compile(_DATE8),
    "ADDRESS": re.compile(r"[^|^~]{5,80}"),
    "PHONE": re.compile(r"\+?[\d() /-]{7,20}"),
}
_CODE = re.compile(r"[A-Z]{0,4}-?\d{4,14}|\d{3}-\d\d-\d{4}")


def find_segments(view: TextView) -> Iterator[Span]:
    """Find names, dates, addresses and numbers of persons in segments of HL7 v2."""
    text = view.text
    for segment in _SEGMENT.finditer(text):
        for found in _COMPONENTS.finditer(text, *segment.span("fields")):
            yield from _parts(found.start("v"), found["v"], "^")
        at = segment.start("fields")
        for number, value in enumerate(segment["fields"].split("|"), 1):
            kind = _PID.get(number) if segment["id"] == "PID" else None
            found = _SAID.get(kind, _CODE).match(value) if kind else None
            if found and kind:
                yield Span(at, at + found.end(), kind)
            at += len(value) + 1


def _parts(start: int, name: str, sign: str) -> Iterator[Span]:
    """Yield the parts of a name between signs."""
    for part in name.split(sign):
        if len(part) > 1:
            yield Span(start, start + len(part), "PERSON")
        start += len(part) + len(sign)


_CARET = LazyPattern(rf"(?<![\w^])(?P<v>{_LAST}\^(?P<first>[^\W\d_]{{2,24}})(?:\^[^\W\d_]{{1,24}})?)(?!\w)")
_DICOM = LazyPattern(r"(?i:\bPN\b|(?:patient|physician|operator)\w*name)[^\n\w]{1,8}$")


def find_caret_names(view: TextView) -> Iterator[Span]:
    """Find `Last^First` as DICOM and HL7 write names: a given name behind the sign, or a label before."""
    text = view.text
    for found in _CARET.finditer(text):
        start = found.start("v")
        if found["first"].lower() in GIVEN_NAMES or _DICOM.search(text, max(0, start - 40), start):
            yield from _parts(start, found["v"], "^")


_LINES = LazyPattern(
    rf"(?<![^\n\r'~])(?:(?:NM1\*\w{{2}}\*1\*(?P<x>{_LAST}\*{_WORD}))"
    rf"|(?:N1\*\w{{2}}\*|PER\*\w{{2}}\*|NAD\+\w{{2}}\+[^'+\n]{{0,40}}\+[^'+\n]{{0,40}}\+|CTA\+\w{{2}}\+[^':\n]{{0,20}}:)(?P<n>{PERSON})(?=[*~+':\n\r]|$)"
    rf"|DMG\*D8\*(?P<d>{_DATE8}))"
)


def find_interchanged(view: TextView) -> Iterator[Span]:
    """Find names and birth dates in segments of X12 and EDIFACT."""
    for found in _LINES.finditer(view.text):
        if found["x"]:
            yield from _parts(found.start("x"), found["x"], "*")
        elif found["d"]:
            yield Span(*found.span("d"), "BIRTH_DATE")
        elif is_person(found["n"]):
            yield Span(*found.span("n"), "PERSON")


_CITED = LazyPattern(
    rf"(?<![^\n])(?:(?:AU|A[1-4]|ED|FAU|FED|FIR) {{1,2}}- |%[AEY] )(?P<v>{_LAST}, {_WORD}(?: (?:{_WORD}|{_UPPER}\.?)){{0,2}}|{PERSON})(?=[ \t,;]*(?:\r?\n|$))"
)
_GEDCOM = LazyPattern(
    r"(?<![^\n])\d (?:NAME|_?MARNM) (?P<v>[^\W\d_][^\n/]{0,60}?)? ?/(?P<w>[^/\n]{2,40})/|(?<![^\n])\d (?:BIRT|CHR)[^\n]*\n\d DATE (?P<d>\d{1,2} [A-Z]{3} \d{4})"
)


def find_genealogy(view: TextView) -> Iterator[Span]:
    """Find names and birth dates in GEDCOM."""
    for found in _GEDCOM.finditer(view.text):
        for group in ("v", "w", "d"):
            if found[group]:
                yield Span(*found.span(group), "BIRTH_DATE" if group == "d" else "PERSON")


_ZONE = LazyPattern(
    r"(?<![A-Z0-9<])(?:[PVIAC][A-Z<][A-Z]{3}(?=[A-Z<]{38,40}(?![A-Z<]))|[PVIAC]<[A-Z]{3})?(?P<v>[A-Z]{2,}(?:<[A-Z]+){0,3}<<[A-Z]{2,}(?:<[A-Z]+){0,3})<{3,}(?![A-Z0-9])"
)
_ZONE_NUMBERS = LazyPattern(
    r"(?<![A-Z0-9<])(?P<v>[A-Z0-9][A-Z0-9<]{8}\d)[A-Z<]{3}(?P<w>\d{7}[MFX<]\d{7}[A-Z0-9<]{2,16})(?![A-Z0-9])"
)


def find_zone_numbers(view: TextView) -> Iterator[Span]:
    """Find the number and the dates in a machine-readable zone of a passport."""
    for found in _ZONE_NUMBERS.finditer(view.text):
        yield Span(*found.span("v"), "PASSPORT")
        yield Span(*found.span("w"), "BIRTH_DATE")


_PASSENGER = (
    r"(?<![A-Z/])(?P<v>[A-Z]{2,20}/[A-Z]{2,20})(?: (?:[A-Z]{2,20} )?|)(?:MR|MRS|MS|MSTR|MISS|DR|CHD|INF)\b"
)
_CARD_LINE = LazyPattern(
    rf"(?<![^\n])(?:N(?:;[^:\n]{{0,40}})?:(?P<v>{_LAST};{_WORD}(?:;[^;\n]*){{0,3}})|(?:MECARD:|;)N:(?P<w>{_LAST},{_WORD});|NICKNAME(?:;[^:\n]{{0,40}})?:(?P<x>{_WORD})(?=\r?\n|$))|MECARD:(?:[^\n]{{0,80}}?;)?N:(?P<y>{_LAST},{_WORD});"
)
_MECARD_PHONE = r"MECARD:[^\n]{0,200}?TEL:(?P<v>\+?\d{7,15});"


def find_card_lines(view: TextView) -> Iterator[Span]:
    """Find the names in single lines of a vCard and in MECARD."""
    for found in _CARD_LINE.finditer(view.text):
        group = found.lastgroup or "v"
        yield from _parts(found.start(group), found[group], ";" if group == "v" else ",")


_BANK_LINES = LazyPattern(
    rf":(?:50[KFH]|59[AF]?):/[A-Z0-9]{{6,34}}\r?\n(?:1/)?(?P<v>{PERSON})(?=\r?\n|$)|\?3[23](?P<w>{PERSON})(?=\?|\r?\n|$)"
)


def find_payers(view: TextView) -> Iterator[Span]:
    """Find names in payments and statements of SWIFT (MT103, MT940)."""
    for found in _BANK_LINES.finditer(view.text):
        group = found.lastgroup or "v"
        if is_person(found[group]):
            yield Span(*found.span(group), "PERSON")


_BIRTH_TIME = rf"(?i:birth_?time)\b[^\n<>]{{0,12}}?[\"':=]\s?[\"']?(?P<v>{_DATE8})(?!\d{{7}})"
_PATIENT_ROLE = r"<(?:patientRole|patient)>\s*<id\b[^<>\n]{0,80}?extension=\"(?P<v>[\w.-]{4,24})\""
_NAME_PARTS = LazyPattern(
    rf"<(?:\w{{1,8}}:)?(?:given|family|surname|given-names|sn|forename)(?: [^<>\n]{{0,60}})?>\s*(?P<v>{_LAST})\s*</"
)


def find_name_elements(view: TextView) -> Iterator[Span]:
    """Find `<given>` and `<family>`, and their like, in CDA, JATS and other XML."""
    for found in _NAME_PARTS.finditer(view.text):
        yield Span(*found.span("v"), "PERSON")


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_segments, r"(?:PID|NK1|PV1|GT1|IN1|PD1|ROL|STF)\|[^\n]*\|"),
    make_probed_detector(find_caret_names, r"[A-Za-z?\xc0-\xff]\^[A-Za-z?\xc0-\xff]{2}"),
    make_probed_detector(find_interchanged, r"(?:NM1|N1|PER|DMG)\*[0-9A-Z]{2}\*", r"(?:NAD|CTA)\+[A-Z]{2}\+"),
    make_anywhere_detector("PERSON", _CITED, r"(?:^|\n)(?:[AF]?(?:AU|ED|A[1-4]|IR) {1,2}- |%[AEY] )[A-Za-z?\xc0-\xde]", is_person),
    make_probed_detector(find_genealogy, r"[0-9] (?:NAME|_?MARNM) [^\n]*/[^/\n]{2}", r"[0-9] (?:BIRT|CHR)[^\n]*\n[0-9] DATE "),
    make_anywhere_detector("PERSON", _ZONE, r"[A-Z]<<[A-Z]{2}[A-Z<]*<<<"),
    make_probed_detector(find_zone_numbers, r"[0-9][A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}"),
    make_anywhere_detector("PERSON", _PASSENGER, r"[A-Z]{2}/[A-Z]{2,} ?(?:[A-Z]+ )?(?:MR|MS|MISS|DR|CHD|INF)"),
    make_probed_detector(find_card_lines, r"(?:^|[\n;:])N(?:;[^:\n]*)?:[^\n]*[;,][A-Z?\xc0-\xde]", r"(?:^|\n)NICKNAME(?:;[^:\n]*)?:"),
    make_anywhere_detector("PHONE", _MECARD_PHONE, r"MECARD:[^\n]*TEL:\+?[0-9]"),
    make_probed_detector(find_payers, r":(?:50[KFH]|59[AF]?):/", r"\?3[23][A-Z?\xc0-\xde][^\n]* "),
    make_anywhere_detector("BIRTH_DATE", _BIRTH_TIME, r"(?i)birth_?time[^\n<>]*[0-9]{8}"),
    make_anywhere_detector("PATIENT_ID", _PATIENT_ROLE, r"<(?:patientRole|patient)>\s*<id "),
    make_probed_detector(find_name_elements, r"(?:given|family|surname|given-names|sn|forename)(?: [^<>\n]*)?>\s*[A-Za-z?\xc0-\xde]"),
)  # fmt: skip
