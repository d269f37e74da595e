# ruff: noqa: E501 (texts)
"""A name is found near the e-mail address that is made of it."""

import re

import pytest
from secret_sessions import trace_of

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message

REDACTOR = Redactor(key=b"k")
PLACEHOLDER = re.compile(r"<[A-Z_]+_[0-9a-f]{8}>|user_[0-9a-f]{8}|REDACTED_[A-Z]+_[0-9a-f]{8}")


def _redact(text: str) -> str:
    message = REDACTOR.redact_trace(trace_of(Message("user", text)))[0].contexts[0].messages[0]
    return PLACEHOLDER.sub("*", message.content)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("(2, 'Ornella Zanetti', 7, 'ozanetti@gmail.com')", "(2, '*', 7, '*')"),
        ("- Colleen Gagnon, c.gagnon@tidewater.io", "- *, *"),
        ("{'email': 'bastien_lefebvre97@laposte.net', 'name': 'Bastien Lefebvre'}", "{'email': '*', 'name': '*'}"),
        ('"Femke Zwart" <femke.zwart@xs4all.nl>', '"*" <*>'),
        ("cla.csv:2:Marijke de Bruijn,mdebruijn@kpnmail.nl,signed", "cla.csv:2:*,*,signed"),
        ("\u00d8\u00f8 \u0130\u0131 \u0110\u0111 and Bo Moser: BMoser@web.de", "\u00d8\u00f8 \u0130\u0131 \u0110\u0111 and *: *"),
        ("J\u00f6rg Sch\u00e4fer, joerg.schaefer@web.de", "*, *"),
        ("{ first: 'Tha\u00eds', last: 'Siqueira' }, mail thais_siqueira67@uol.com.br", "{ first: '*', last: '*' }, mail *"),
        ("SamAccountName : mtremblay\nMail : mtremblay@redkite.io\nName : Mathieu Tremblay", "SamAccountName : *\nMail : *\nName : *"),
    ],
)  # fmt: skip
def test_a_name_that_an_address_is_made_of_goes(text: str, left: str) -> None:
    assert _redact(text) == left


def test_a_name_goes_in_another_field_of_json() -> None:
    text = '{"shown": "Lukas Obermaier", "id": 7, "to": "lukas.obermaier@quartzbay.io"}'
    assert _redact(text) == '{"shown": "*", "id": 7, "to": "*"}'


@pytest.mark.parametrize(
    "text",
    [
        "By Open Source: opensource@quartzbay.io",
        "Data Center: datacenter@quartzbay.io",
        "The Zanetti Library is by b.moser@quartzbay.io",
    ],
)
def test_words_that_name_no_person_stay(text: str) -> None:
    assert text.split("@")[0].rpartition(" ")[0] in _redact(text)
