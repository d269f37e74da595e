# ruff: noqa: E501 (rows)
"""Personal data under labels and in columns of tables; passwords by statements, nested names and programs."""

import base64
import json

import pytest

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.personal.conversations import holds_field
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.redaction.detectors import EVERYTHING, Detectors
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message

REDACTOR = Redactor(key=b"k")
DETECTORS = Detectors(make_known((), [""], [""], ()))


def left(text: str, values: tuple[str, ...]) -> list[str]:
    """Return the values that redaction leaves in a text."""
    told, _ = REDACTOR.redact_text(text)
    return [value for value in values if value in told]


# A column, a value in its form with valid check digits, and the type of the value.
COLUMNS = [
    ("cpf", "291.417.776-38", "NATIONAL_ID"),
    ("pesel", "47010208060", "NATIONAL_ID"),
    ("customer_bsn", "241925411", "NATIONAL_ID"),
    ("sin_number", "589 957 901", "NATIONAL_ID"),
    ("codice_fiscale", "RFRNDT79P02G305Q", "NATIONAL_ID"),
    ("hkid", "A059292(A)", "NATIONAL_ID"),
    ("emirates_id", "784-1993-5837146-8", "NATIONAL_ID"),
    ("ssn", "524-72-6845", "SSN"),
    ("passport_number", "A33648048", "PASSPORT"),
    ("mrn", "58495739", "PATIENT_ID"),
    ("imei", "351648455675554", "DEVICE_ID"),
    ("card_number", "4764570870649522", "CARD"),
    ("lat", "45.114892", "LOCATION"),
    ("birth_date", "1967-09-29", "BIRTH_DATE"),
    ("vorname", "Henrike", "PERSON"),
    ("street", "Hinterm Deich 3", "ADDRESS"),
]
TABLES = (
    "row,{n},plan\n1,{v},basic\n",
    "row;{n};plan\n1;{v};basic\n",
    "row\t{n}\tplan\n1\t{v}\tbasic\n",
    " id | {n} | plan\n----+-------+------\n  1 | {v} | pro\n",
    "     1\u2192row,{n}\n     2\u21921,{v}\n",
    "COPY p (id, {n}) FROM stdin;\n1\t{v}\n\\.\n",
    "INSERT INTO p (id, {n}) VALUES (1, '{v}');",
)


@pytest.mark.parametrize(("name", "value", "kind"), COLUMNS)
def test_a_column_is_judged_by_the_label_over_it(name: str, value: str, kind: str) -> None:
    for table in TABLES[:5]:
        told, kinds = REDACTOR.redact_text(table.format(n=name, v=value))
        assert value not in told, table
        assert kinds == {kind: 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [("bsn", "241925412"), ("latency", "45.114892"), ("panel", "PXAPP0499S"), ("plan", "58495739"), ("card_number", "4764570870649523")],
)  # fmt: skip
def test_a_column_of_another_name_or_a_wrong_check_digit_stays(name: str, value: str) -> None:
    for table in TABLES[:4]:
        text = table.format(n=name, v=value)
        assert REDACTOR.redact_text(text)[0] == text


LABELLED = [
    ('{"id": 7, "firstName": "Henrike", "lastName": "Oltmann"}', ("Henrike", "Oltmann")),
    ("- given_name: Henrike\n  family_name: Oltmann\n", ("Henrike", "Oltmann")),
    ("Vorname: Henrike\nNachname: Oltmann\n", ("Henrike", "Oltmann")),
    ("Patient name: Henrike Oltmann\n", ("Henrike", "Oltmann")),
    ("<p><firstName>Henrike</firstName></p>", ("Henrike",)),
    ('{"name": [{"family": "Oltmann", "given": ["Henrike"]}]}', ("Henrike", "Oltmann")),
    ("Reviewed-by: Henrike Oltmann\n", ("Oltmann",)),
    ('"""Lots.\n\n:author: Henrike Oltmann\n"""', ("Oltmann",)),
    ("\\author{Henrike Oltmann}", ("Oltmann",)),
    ('ATTENDEE;CN="Henrike Oltmann":mailto:x', ("Oltmann",)),
    ("<developer>\n  <id>x</id>\n  <name>Henrike Oltmann</name>", ("Oltmann",)),
    ("Kind regards\nHenrike Oltmann", ("Oltmann",)),
    ("\u751f\u5e74\u6708\u65e5: 1959\u5e742\u670817\u65e5", ("1959\u5e742",)),
    ("F\xf6delsedatum: 1960-08-24", ("1960-08-24",)),
    ("Kennzeichen: M-BL 7078", ("M-BL",)),
    ("GPS Latitude                    : 46.375737", ("46.375737",)),
]


@pytest.mark.parametrize(("text", "values"), LABELLED)
def test_names_dates_and_numbers_go_under_their_labels(text: str, values: tuple[str, ...]) -> None:
    assert left(text, values) == []


@pytest.mark.parametrize(
    "text",
    [
        "first_name: String\nlastName: Required\n",
        '{"firstName": "First name", "lastName": "Nachname"}',
        "first_name = models.CharField(max_length=30)",
        'label(customerName="Customer")',
    ],
)
def test_names_of_fields_and_types_are_no_persons(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text


SECRETS = [
    ("export DB_PASSWORD='/kPdyspmZWpBASjY40SaM4VX'", "kPdyspmZWpBASjY40SaM4VX"),
    ("# root pw: esTWVXR9qGO8ciFJBDw\nssh root@x reboot", "esTWVXR9qGO8ciFJBDw"),
    ("OPTIONS (user 'ro', password 'Tundra#Lantern2817+');", "Tundra#Lantern2817+"),
    ("CREATE LOGIN o WITH PASSWORD = N'NE83xc_aP0mJKz3';", "NE83xc_aP0mJKz3"),
    ("ALTER USER scott IDENTIFIED BY iBiIzfeYUFaYNlq5;", "iBiIzfeYUFaYNlq5"),
    ('{:db {:user "ci" :password "5wK9xNAI+L%w9itey"}}', "5wK9xNAI+L%w9itey"),
    ('#define kApiSecret @"TWDVNAUAXhPzirdJ1eqYKiTmZSGJHtYADsh"', "TWDVNAUAXhPzirdJ1eqYKiTmZSGJHtYADsh"),
    ("lang en_US\nrootpw --plaintext TVV3JXKyBShuoop\n", "TVV3JXKyBShuoop"),
    ("account o\nuser barn\npassword 9FmDQXkO36rbu\n", "9FmDQXkO36rbu"),
    ("  user etl insecure-password 4rsGv2gkWJi6\n", "4rsGv2gkWJi6"),
    ("stats auth etl:YvcmWUHaMS91bJoAu6\n", "YvcmWUHaMS91bJoAu6"),
    ("[mill.example.net]:587 etl:mXUIzvvVwX9rwnm14yM3S\n", "mXUIzvvVwX9rwnm14yM3S"),
    ("<String>\n  <Key>Password</Key>\n  <Value ProtectInMemory=\"True\">GHkvEqhsZv8usilKNs9Mwc</Value>", "GHkvEqhsZv8usilKNs9Mwc"),
    ("<AdministratorPassword>\n  <Value>iHomv1dYmahffNocyMbFEu</Value>", "iHomv1dYmahffNocyMbFEu"),
    ('{"parameters": {"adminPassword": {"value": "7BYDHCgBEvaP70K"}}}', "7BYDHCgBEvaP70K"),
    ("  MasterUserPassword:\n    Type: String\n    Default: L3TTyHdUp1oxbQzvQR635\n", "L3TTyHdUp1oxbQzvQR635"),
    ('  ["password"]=>\n  string(16) "xnHNLaB1YVy4exC1xWEGE"\n', "xnHNLaB1YVy4exC1xWEGE"),
    ("p.add_argument('--password', default='Nect4r!1986GpV')", "Nect4r!1986GpV"),
    ("printf 'deploy:%s\\n' 'QUg114_Bp43AfPx' | chpasswd", "QUg114_Bp43AfPx"),
    ("sudo -S apt-get update <<< 3FJeZsKJMcRQQ63tfwMXBdc", "3FJeZsKJMcRQQ63tfwMXBdc"),
    ("openssl enc -aes-256-cbc -k 'EWkccz3RJb0z!V01' -in a", "EWkccz3RJb0z!V01"),
    ("exp loader/gp5yTIQrbMudQk9NQ file=o.dmp", "gp5yTIQrbMudQk9NQ"),
    ("secretsdump.py 'BARN/svc:YoS5shn9o9Rv5yzHsqM@mill5'", "YoS5shn9o9Rv5yzHsqM"),
    ('1732.22 [0 10.0.0.7:51312] "AUTH" "pAR4eGArCw8i"\n', "pAR4eGArCw8i"),
    ('write(3, "PASS AE99giiA6EuZdJo\\r\\n", 22) = 22', "AE99giiA6EuZdJo"),
    ("cipher = AES.new(b'wmrOuKrNF8Zi6S7J', AES.MODE_GCM)", "wmrOuKrNF8Zi6S7J"),
    ("La password \xe8: Velvet.Kettle4314#", "Velvet.Kettle4314#"),
    ("\u041f\u0430\u0440\u043e\u043b\u044c \u0434\u043b\u044f \u0432\u0445\u043e\u0434\u0443: H4rb0r#2024yAQ", "H4rb0r#2024yAQ"),
    ("Use the following password to proceed to installation:\n\n204a5acdc61096964a03db392b376804\n", "204a5acdc61096964a03db392b376804"),
    ("A temporary password is generated for root@localhost: FAmuqe!2Z4i9yug", "FAmuqe!2Z4i9yug"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SECRETS)
def test_passwords_go_by_the_words_around_them(text: str, value: str) -> None:
    assert left(text, (value,)) == []
    needed, all_of_them = DETECTORS.spans(text, DETECTORS.needs(text)), DETECTORS.spans(text, EVERYTHING)
    assert set(needed) == set(all_of_them)


@pytest.mark.parametrize(
    "text",
    [
        "Enter password: \n2026-11-24T03:05:39.468Z INFO  [phone-4] done in 1363 ms",
        "Enter password: \nexport,433103164,20.157636,49.754921,1d3ff44d\n",
        'Enter password: \nETag: "a79023c39c200661fccd268a29a0d347"\n',
        "Adding debian:GTS_Root_R1.pem\n",
        "they can then be identified by checking the owner\n",
        "GET /api/v1/phones/82988756?page=15 HTTP/1.1",
    ],
)
def test_lines_behind_a_prompt_and_words_of_sentences_stay(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text


@pytest.mark.parametrize("value", ["1QsYsr/2inDg01U", "/kPdyspmZWpBASjY40SaM4VX", "cGidurRDjX7obub"])
def test_a_random_value_with_a_slash_is_found_elsewhere_too(value: str) -> None:
    assert judge_distinctiveness(value) is Distinctiveness.ANYWHERE


@pytest.mark.parametrize(
    "value", ["apps/v1/Deployment", "refs/pull/120/Head", "/opt/App2/Bin", "src/Foo2/bar9"]
)
def test_a_path_is_not_distinctive(value: str) -> None:
    assert judge_distinctiveness(value) is Distinctiveness.NOT


def test_a_secret_goes_in_more_spellings() -> None:
    value = "Wn7%tR-2xKq#9b"
    forms = (
        "".join(each if each.isalnum() else f"\\u{ord(each):04x}" for each in value),
        "".join(each if each.isalnum() else f"\\{each}" for each in value),
        base64.b64encode(value.encode("utf-16-le")).decode(),
    )
    text = f"DB_PASSWORD='{value}'\n" + "\n".join(f"seen {form}" for form in forms)
    told, _ = REDACTOR.redact_message(Message("user", text))
    assert [form for form in (value, *forms) if form in told.content] == []


def test_a_first_name_goes_where_it_is_nothing_but_a_name() -> None:
    log = "Author: Ximena Halvorsen <ximena.h@barn.io>\n"
    told, _ = REDACTOR.redact_message(Message("user", f"{log}See what Ximena committed last"))
    assert "Ximena" not in told.content
    log = log.replace("Ximena", "Julia")
    told, _ = REDACTOR.redact_message(Message("user", f"{log}Julia is a language: run julia main.jl"))
    assert told.content.count("Julia") == 1


def test_numbers_of_geojson_and_keys_of_ciphers_are_documents_too() -> None:
    text = json.dumps({"imei": "351648455675554", "account_number": "8874263628"})
    assert left(text, ("351648455675554", "8874263628")) == []


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("Name: {}\nSTRASSE UND ORT: Kiel", True),
        ("Name: {}\nStra\xdfe: Am Deich 4", True),
        ("Name: {}\nSTRA\xdfE: Am Deich 4", True),
        ("Name: {}\nPR\xc9NOM: x", True),
        ("Name: {}\n\u0130BAN: x", True),
        ("Name: {}\nPho\u0274e: x, A\u0261e: 3", False),
        ("xAge: 3\nName: {}\nmeaning: none", False),
        ("Age = 3 \u0130\u0130\u0130\nName: {}\n", True),
    ],
)
def test_a_name_on_a_form_is_told_by_the_labels_around_it_in_any_case(form: str, found: bool) -> None:
    assert bool(left(form.format("Orsola Tamm"), ("Orsola Tamm",))) is not found


def test_the_label_of_a_field_is_whole_and_inside_its_part_of_the_text() -> None:
    assert holds_field("xage: 3, Age: 4", 0, 15)
    assert not holds_field("xage: 3, Age: 4", 1, 8)
    assert not holds_field("xage: 3, Age: 4", 9, 12)
    assert holds_field("\u0130\u0130 AGE: 3", 3, 7)
