# ruff: noqa: E501, RUF001 (texts)
"""Persons, addresses, handles and numbers behind labels of any language are found; things of the same look stay."""

import pytest

from tracemill.privacy.redaction.redactor import Redactor

FOUND = (
    ("Rechnungsempfänger: Sanjay Vandenberg\n", "Vandenberg"),
    ("Kläger: Sanjay Vandenberg\n", "Vandenberg"),
    ("Élève : Luisa Castellano\n", "Castellano"),
    ("Personne à contacter : Luisa Castellano\n", "Castellano"),
    ("Contactpersoon: Luisa Castellano\n", "Castellano"),
    ("İlgili kişi: Luisa Castellano\n", "Castellano"),
    ("Gast: Luisa Castellano, Zimmer 9\n", "Castellano"),
    ("Student: Luisa Castellano, grade 7\n", "Castellano"),
    ("Attendees: Sanjay Vandenberg, Luisa Castellano and Ingrid Rousseau\n", "Rousseau"),
    ("Patient: Castellano, Luisa\n", "Castellano"),
    ("Passenger: Luisa CASTELLANO\n", "CASTELLANO"),
    ("Name: Luisa Castellano\n", "Castellano"),
    ('{"passenger": "Luisa Castellano"}', "Castellano"),
    ('{"emergencyContact": {"name": "Aristide Fontenay"}}', "Fontenay"),
    ('{"resourceType":"Patient","name":[{"family":"Fontenay"}]}', "Fontenay"),
    ("<cp:lastModifiedBy>Luisa Castellano</cp:lastModifiedBy>", "Castellano"),
    ("student = {Luisa Castellano}", "Castellano"),
    ("/Author (Luisa Castellano)", "Castellano"),
    ("UPDATE patients SET name='Luisa Castellano' WHERE id=9;", "Castellano"),
    ("INSERT INTO users (id, name) VALUES (3, 'Luisa Castellano');", "Castellano"),
    ("INSERT INTO users (id, name)\nVALUES\n  (3, 'Luisa Castellano');", "Castellano"),  # on several lines
    ("Bill to: Luisa Castellano\n", "Castellano"),
    ("Next.of.kin = Luisa Castellano\n", "Castellano"),
    ('<meta name="author" content="Luisa Castellano">', "Castellano"),
    ("in der Sache Luisa Castellano gegen Kiln GmbH", "Castellano"),
    ("Reservation for Luisa Castellano, 2 nights", "Castellano"),
    ("Bonjour Luisa Castellano,\n", "Castellano"),
    ("mijn naam is Luisa Castellano", "Castellano"),
    ("ФИО: Сергей Крылов\n", "Крылов"),
    ("ПІБ: Тарас Мельник\n", "Мельник"),
    ("שם מלא: משה פרץ\n", "פרץ"),
    ("Ονοματεπώνυμο: Γιώργος Παπαδόπουλος\n", "Παπαδόπουλος"),
    ("담당자: 정우성\n", "정우성"),
    ("Kotiosoite: Aleksanterinkatu 21 B 4, 00100 Helsinki\n", "Aleksanterinkatu"),
    ("Adres: Gül Sokak No: 7 D: 2, 34000 Fatih/İstanbul\n", "Gül Sokak"),
    ("Адрес: ул. Мира, д. 7, кв. 2, г. Тверь, 170000\n", "Мира"),
    ("주소: 종로구 세종대로 17길 4, 서울특별시 03154\n", "세종대로"),
    ('{"street": "Karl Johans gate 12", "city": "0154 Oslo"}', "Johans"),
    ("Luisa Castellano\nKrátká 11/14\n602 00 Brno 2\n", "Krátká"),
    ("Luisa Castellano\nUnit 4/9 Mill Street\nPerth WA 6000\n", "Mill Street"),
    ("Luisa Castellano\n12 Rosewood Lane\nLeeds LS6 2AB\n", "Rosewood"),
    ("Permanent Account Number ABCPE1234F (x)", "ABCPE1234F"),
    ("Contribuinte n.º 135086787 (x)", "135086787"),
    ("Patienten-Nr.: 40817253\n", "40817253"),
    ("Student ID: 41907352 x\n", "41907352"),
    ("身份證號碼 X869583(6)\n", "X869583"),
    ("Ich bin am 16.08.1959 geboren", "16.08.1959"),
    ("GitHub username: luisacast7\n", "luisacast7"),
    ("ssh rvandenb@10.0.0.5\n", "rvandenb"),
)
STAYS = (
    "Owner: Platform Team\n",
    "Author: Test User\n",
    'name: "Build Docs"\n',
    "name: Integration Tests\n",
    '{"family": "Noto Sans", "size": 12}',
    "Student Version: Visual Studio\n",
    "Client: Http Client\n",
    "Address: Line 12 of the Table\n",
    "Return address: 0x7fff12 in Main\n",
    "Release Notes\nVersion 12\nMarch 2010\n",
    "SELECT name FROM users WHERE role = 'Power User';",
    "GitHub account: required\n",
    "the test 12.08.2019 passed, born again",
    "Клиент: тест\n",
)


def _redacted(text: str) -> str:
    return Redactor(key=b"test").redact_text(text)[0]


@pytest.mark.parametrize(("text", "value"), FOUND)
def test_a_labelled_person_is_found(text: str, value: str) -> None:
    assert value in text
    assert value not in _redacted(text)


@pytest.mark.parametrize("text", STAYS)
def test_a_thing_of_the_same_look_stays(text: str) -> None:
    assert _redacted(text) == text
