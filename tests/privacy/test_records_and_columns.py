"""Persons in columns and records of exchange formats, and passwords after commands and further words."""

import pytest

from tracemill.privacy.core.chosen_passwords import is_chosen_password
from tracemill.privacy.publish_gate.strict_personal import find_personal_strictly
from tracemill.privacy.publish_gate.strict_rules import find_strictly
from tracemill.privacy.redaction.redactor import Redactor

_REDACTOR = Redactor(key=b"records")
PERSONAL = (
    ("id,name,dept\n1,Saoirse Delacroix,Sales\n2,Aoife Brannigan,IT\n", "Saoirse Delacroix"),
    ("Mitarbeiter;Abteilung\nFatima Ashworth;IT\nAyumi Lombardi;HR\n", "Fatima Ashworth"),
    ("| Owner | Area |\n|---|---|\n| Ingrid Halvorsen | Billing |\n", "Ingrid Halvorsen"),
    ("name;city;age\nXyra Steinmetz;Graz;44\n", "Xyra Steinmetz"),
    ("Jméno;Příjmení\nDesmond;Horváthová\n", "Horváthová"),
    ("PID|1||883321^^^A||MBEKI^BEATRICE||19700101|F\n", "BEATRICE"),
    ("PID|1||883321^^^A||MBEKI^BEATRICE||19700101|F\n", "19700101"),
    ("(0010,0010) PN [Halvorsen^Xyra]", "Halvorsen"),
    ("NM1*IL*1*Okonkwo*Xyra****MI*1~", "Okonkwo"),
    ("NAD+BY+++Xyra Okonkwo+Lane 4+X'", "Xyra Okonkwo"),
    ("TY  - JOUR\nAU  - Carvalho, Amina\nER  -\n", "Carvalho, Amina"),
    ("1 NAME Xyra /Lombardi/\n", "Lombardi"),
    ("P<UTOLOMBARDI<<XYRA<<<<<<<<<<<<<<<<<<<<<<<<<<\n", "LOMBARDI<<XYRA"),
    ("NAME: LOMBARDI/XYRA MR", "LOMBARDI/XYRA"),
    (":50K:/DE89370400440532013000\nXyra Lombardi\n", "Xyra Lombardi"),
    ("<Dbtr><Nm>Xyra Lombardi</Nm></Dbtr>", "Xyra Lombardi"),
    ("<person>\n  <name>Xyra Lombardi</name>\n</person>", "Xyra Lombardi"),
    ('<birthTime value="19670311"/>', "19670311"),
    ("DisplayName       : Beatriz Oberhuber\n", "Beatriz Oberhuber"),
    ("Foto: Xyra Lombardi\n", "Xyra Lombardi"),
    ("Frequent flyer: 888845770", "888845770"),
    ("CVV: 941", "941"),
    ("Nr;Name;Strasse\n7;Xyra Lombardi;Krummgasse 3\n", "Xyra Lombardi"),
    ("Datum;Empfaenger;IBAN\n1.2.;Xyra Lombardi;DE89370400440532013000\n", "Xyra Lombardi"),
    ("Xyra Lombardi,524-72-6845,hourly\n", "Xyra Lombardi"),
    ("9|Xyra Lombardi|+49 7251 448201|open\n", "Xyra Lombardi"),
    ('{"sku": "T-1", "name": "Xyra Lombardi", "tel": "07841 330 926"}', "Xyra Lombardi"),
    ("<salarie><nom>Xyra Lombardi</nom><nir>-</nir></salarie>", "Xyra Lombardi"),
    ("- name: Xyra Lombardi\n  role: press\n  tel: 0251 / 48 77 190\n", "Xyra Lombardi"),
    ("tel: 0251 / 48 77 190\n", "0251 / 48 77 190"),
    ("ping me under 0151-67720943", "0151-67720943"),
    ("Artist                          : Xyra Lombardi\n", "Xyra Lombardi"),
    ("Xyra Lombardi, geb. 12.05.2015\n", "Xyra Lombardi"),
    ("Xyra Lombardi\nZandpad 112, 3601 NA Maarssen\n", "Xyra Lombardi"),
    ("send it to Xyra Lombardi, Lindenkamp 14a, 48231 Warendorf, please", "Lindenkamp 14a, 48231 Warendorf"),
    ("Present: Frau Dr. Hildebrandt-Mosch, Herr Kasulke", "Kasulke"),
    ("**Xyra Lombardi** wrote:\n> yes\n", "Xyra Lombardi"),
    ('signup ok user="Xyra Lombardi" ip=10.0.0.1', "Xyra Lombardi"),
    ("Owner UID: 1004 (mnyqvist)", "mnyqvist"),
    ("C-0088,Mrs,Xyra,Aldersey,14 Row\n", "Aldersey"),
    ("(881,'Xyra Lombardi','4716946706494391','2027-05'),\n", "Xyra Lombardi"),
    ("Xyra Lombardi;14.09.2012;2;04651/88 30 12\n", "Xyra Lombardi"),
    ("se javlja Xyra Lombardi (OIB 23467063115)", "Xyra Lombardi"),
    ("nr,cell\nSH2,310104198809178760,x\n", "310104198809178760"),
    ("ewan.mac : TTY=pts/4 ; PWD=/srv ; USER=root", "ewan.mac"),
    ('To: "Bruder Egon" <e.siebenhaar46@gmx.net>', "Bruder Egon"),
    ("Call Xyra Lombardi at the plant, 0171 / 553 90 41", "0171 / 553 90 41"),
    ("take me: born March 3rd, 1979, shoe size 40", "March 3rd, 1979"),
    ("/* TODO(henning.s): free the buffer */", "henning.s"),
    ("find me as @quirin.wolf:matrix-sued.example", "quirin.wolf"),
    ("[Service]\nType=simple\nUser=lschmidbauer\n", "lschmidbauer"),
    ("192.168.1.23 iPhone-von-Kathinka *", "Kathinka"),
    ("Invoice for Aoife Gallagher\n", "Aoife Gallagher"),
    ("The text was translated by Ravi Lombardi.", "Ravi Lombardi"),
)
SECRETS = (
    ("spring.datasource.password=papillon-purple-fromage", "papillon-purple-fromage"),
    ("htpasswd -nbB admin 'K8IuSZ-8rXmNF'", "K8IuSZ-8rXmNF"),
    ("net user administrator eZcI9Uk4FYIh /add", "eZcI9Uk4FYIh"),
    ("set passwd ENC aB3dE9fGh2Jk", "aB3dE9fGh2Jk"),
    ("логин jo пароль hCZAKBdj0FZxrg", "hCZAKBdj0FZxrg"),
    ("كلمة المرور: dVGKapPhsK4fjAUw", "dVGKapPhsK4fjAUw"),
    ("<dt>Password</dt><dd>ETblg113CSVOwBv</dd>", "ETblg113CSVOwBv"),
    ("Türcode: 6041", "6041"),
    ("Gutscheincode: KS0U-FQGT-0DSA-USTB", "KS0U-FQGT-0DSA-USTB"),
    ('XRPL_SEED = "saE3Bt4Kimhx1hhrt61V8vqszyo2M"', "saE3Bt4Kimhx1hhrt61V8vqszyo2M"),
    ("SUMO_ACCESS_ID=suYJ3G9zDwjInI", "suYJ3G9zDwjInI"),
    ("d=xoxd-iQkiDImWdkMAsmnNMaqT8%2BPHwuf8CYowuxYVr9", "PHwuf8CYowuxYVr9"),
    ("jp_zj7q5prhxe06y0djmnorux3i3v", "zj7q5prhxe06y0djmnorux3i3v"),
    ("G-406052 is your Google verification code.", "406052"),
)
HARMLESS = (
    "name,size\nVisual Studio,524-72\nGreen Tea,250\n",
    '{"name": "Visual Studio", "version": "17.4", "path": "C"}',
    "Version 12, 10000 Rows and Section 4, 20000 Columns",
    "(?:Mr|Mrs|Ms|Miss|Dr|Prof)",
    "TODO(perf): reuse the buffer; TODO(#12): drop it",
    "Ms Office and Mr. Team, Frau Service",
    "Visual Studio, since 12.05.2015",
    "image: registry@latest:stable.tar",
    "name,version,license\nrequests,2.31.0,Apache\nVisual Studio,17.4,MIT\n",
    "| Owner | Area |\n|---|---|\n| Data Platform | Billing |\n",
    "| Client | Support |\n|---|---|\n| Visual Studio Code | full |\n",
    "password: reset-form-field",
    "def f(name, value):\n    return Name, Value\n",
    "x^y and A^B are powers; Foo^Bar too",
    "<name>Visual Studio</name>",
    "Configured by Max Pooling and read by Default Value",
)


@pytest.mark.parametrize(("text", "value"), PERSONAL + SECRETS)
def test_a_value_is_redacted_where_its_place_tells(text: str, value: str) -> None:
    assert value not in _REDACTOR.redact_text(text)[0]


@pytest.mark.parametrize("text", HARMLESS)
def test_a_text_of_the_same_form_stays(text: str) -> None:
    assert _REDACTOR.redact_text(text)[0] == text


def test_a_long_run_of_letters_is_judged_without_backtracking() -> None:
    """A pattern of exponential time does not return on 56 letters."""
    assert not is_chosen_password("abcdefgh" * 7 + "12/")


def test_the_gate_shows_phrases_that_nothing_labels() -> None:
    phrase = "my old wifi password there used to be papillon-purple-fromage I think"

    assert [phrase[s.start : s.end] for s in find_strictly(phrase)] == ["papillon-purple-fromage"]
    assert not list(find_personal_strictly("Add Max Pooling to Visual Studio"))
    assert not list(find_strictly("the secret-free password reset-form-field is shown"))
