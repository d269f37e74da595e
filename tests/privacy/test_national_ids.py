# ruff: noqa: E501 (rows)
"""National numbers behind their labels, with check digits; postal addresses under labels and in columns."""

import importlib
import json
import random
import subprocess
import sys

import pytest

from tracemill.privacy.core import number_forms
from tracemill.privacy.redaction.redactor import Redactor

REDACTOR = Redactor(key=b"k")
# A label, the check of its number, and the form that values are drawn from: `0` any digit, `A` any letter.
CHECKED = [
    ("Steuer-ID", "de.idnr", "00 000 000 000"),
    ("AHV-Nummer", "ch.ssn", "756.0000.0000.00"),
    ("BSN", "nl.bsn", "000000000"),
    ("NIR", "fr.nir", "1 85 05 75 000 000 00"),
    ("num\u00e9ro de s\u00e9curit\u00e9 sociale", "fr.nir", "2850575000000 00"),
    ("SIN", "ca.sin", "000-000-000"),
    ("TFN", "au.tfn", "000 000 000"),
    ("NHS number", "gb.nhs", "000 000 0000"),
    ("TC Kimlik No", "tr.tckimlik", "00000000000"),
    ("RUT", "cl.rut", "00.000.000-0"),
    ("My Number", "jp.in_", "0000 0000 0000"),
    ("\u30de\u30a4\u30ca\u30f3\u30d0\u30fc", "jp.in_", "000000000000"),
    ("personnummer", "se.personnummer", "850712-0000"),
    ("henkil\u00f6tunnus", "fi.hetu", "120785-000A"),
    ("f\u00f8dselsnummer", "no.fodselsnummer", "12078500000"),
    ("CPR-nr", "dk.cpr", "120785-0000"),
    ("CNP", "ro.cnp", "1850712400000"),
    ("EGN", "bg.egn", "8507120000"),
    ("\u0415\u0413\u041d", "bg.egn", "8507120000"),
    ("SVNR", "at.vnr", "0000 120785"),
    ("OIB", "hr.oib", "00000000000"),
    ("rijksregisternummer", "be.nn", "85.07.12-000.00"),
    ("\u8eab\u4efd\u8bc1\u53f7", "iso7064.mod_11_2", "110105198507120000"),
]
UNCHECKED = [
    ("RRN", "850712-1234563"),
    ("\uc8fc\ubbfc\ub4f1\ub85d\ubc88\ud638", "850712-1234563"),
    ("CURP", "HEGG560427MVZRRL04"),
    ("Driver's license", "D1234-56789-01234"),
    ("F\u00fchrerscheinnummer", "B072RRE2I55"),
    ("drivingLicenceNumber", "MORGA657054SM9IJ"),
    ("permis de conduire", "850712345678"),
    ("taxId", "12-3456789"),
    ("nationalId", "AB1234567"),
    ("passportNumber", "C01X00T47"),
]
FORMS = (
    "{l}: {v}",
    "{l} {v}",
    "  {l} = {v}",
    "{l} is {v}.",
    '{{"{l}": "{v}"}}',
    '{{"person": {{"{l}": "{v}", "x": 1}}}}',
    "| {l} | {v} |",
    "<td>{l}</td><td>{v}</td>",
    "- **{l}:** {v}",
    "     12\t{l}: {v}",
    "{l}={v}",
)


def _drawn(check: str, form: str, *, valid: bool = True) -> str:
    rng = random.Random(f"{check}{form}")
    is_valid = importlib.import_module(f"stdnum.{check}").is_valid
    while True:
        digits = {"0": "0123456789", "A": "ABCDEFHJKLMNPRSTUVWXY"}
        value = "".join(rng.choice(digits.get(each, each)) for each in form)
        if is_valid(value) is valid:
            return value


@pytest.mark.parametrize(("label", "check", "form"), CHECKED)
def test_a_number_with_check_digits_goes_behind_its_label(label: str, check: str, form: str) -> None:
    value = _drawn(check, form)
    left = [each for each in FORMS if value in REDACTOR.redact_text(each.format(l=label, v=value))[0]]
    assert left == []
    assert REDACTOR.redact_text(f"{label}: {value}")[1] == {"NATIONAL_ID": 1}


@pytest.mark.parametrize(("label", "value"), UNCHECKED)
def test_a_number_without_check_digits_goes_behind_its_label(label: str, value: str) -> None:
    left = [each for each in FORMS if value in REDACTOR.redact_text(each.format(l=label, v=value))[0]]
    assert left == []


@pytest.mark.parametrize(
    ("label", "check", "form"),
    [each for each in CHECKED if each[1] in ("de.idnr", "nl.bsn", "hr.oib", "au.tfn")],
)
def test_a_number_that_fails_its_check_stays(label: str, check: str, form: str) -> None:
    told = f"{label}: {_drawn(check, form, valid=False)}"
    assert REDACTOR.redact_text(told)[0] == told


def test_every_check_answers_for_every_number() -> None:
    rng = random.Random(3)
    numbers = {
        each
        for table in (number_forms.LATIN_LABELS, number_forms.OTHER_LABELS)
        for row in table.values()
        for each in row
    }
    for number in numbers:
        for size in range(6, 20):
            value = "".join(rng.choices("0123456789X", k=size))
            assert number_forms.is_number_valid(number, value) in (True, False)
    assert len({number.check for number in numbers}) == 50


def test_checks_are_loaded_where_a_label_stands_before_a_number() -> None:
    code = (
        "import sys; from tracemill.privacy.redaction.redactor import Redactor; r = Redactor();"
        "r.redact_text('a = sin(x) + 5; BSN unknown');"
        "print(sum(name.startswith('stdnum') for name in sys.modules), end=' ');"
        "r.redact_text('BSN: 123456782'); print('stdnum.nl.bsn' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["0", "True"]


@pytest.mark.parametrize(
    "text",
    [
        "y = sin(123456789)\n",
        "the id is 4217983, rut 12",
        "RFC 7231 and rfc2616",
        "nhs-app v1234567890123",
        "taxId: null",
        "port to:\nfoo 12\n",
    ],
)
def test_text_without_numbers_of_persons_stays(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text


@pytest.mark.parametrize(
    ("text", "private", "found"),
    [
        ("Ship to:\nHenrike Oltmann\nLindenstr. 17\n10969 Berlin\nGermany\n", ("Oltmann", "Lindenstr", "10969"), {"PERSON": 1, "ADDRESS": 2}),
        ("Bill To:\n  Henrike Oltmann\n  12 Harbour Street\n  Springfield, IL 62704\n", ("Oltmann", "Harbour", "62704"), {"PERSON": 1, "ADDRESS": 2}),
        ("Lieferanschrift:\nAm Lindenplatz 4\n10969 Berlin\n\nPosten: 3\n", ("Lindenplatz", "10969"), {"ADDRESS": 2}),
        (json.dumps({"line1": "Lindenstr. 17", "line2": None}), ("Lindenstr",), {"ADDRESS": 1}),
        (json.dumps({"shipping": {"addressLine1": "12 Harbour Street"}}), ("Harbour",), {"ADDRESS": 1}),
        ("id,street,city\n1,Lindenstr. 17,Berlin\n2,\"12 Harbour St, Apt 4\",Rome\n", ("Lindenstr", "Harbour"), {"ADDRESS": 2}),
        ("id;Stra\u00dfe;PLZ\n1;Hinterm Deich 3;10969\n", ("Hinterm",), {"ADDRESS": 1}),
        ("     1\tid,street\n     2\t1,Hinterm Deich 3\n", ("Hinterm",), {"ADDRESS": 1}),
    ],
)  # fmt: skip
def test_addresses_go_under_labels_and_in_columns(
    text: str, private: tuple[str, ...], found: dict[str, int]
) -> None:
    told, kinds = REDACTOR.redact_text(text)
    assert [each for each in private if each in told] == []
    assert kinds == found
