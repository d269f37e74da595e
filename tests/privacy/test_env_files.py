"""Values of `.env` files and of the environment: which are known, and in which forms they are found."""

import base64
import json
import unicodedata
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest

from tracemill.flows.admission.redaction_setup import count_known_values
from tracemill.privacy.core.env_files import MAX_MB, read_env_file
from tracemill.privacy.core.ordinary_values import is_ordinary
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import ConfigError

CAKE = "blue" + "cheesecake"


def _write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def _redactor(*files: Path, environ: dict[str, str] | None = None) -> Redactor:
    return Redactor.from_environment(environ or {}, hostname="x", key=b"k", env_files=files)


@pytest.mark.parametrize(
    "line",
    [
        "A={}", "a-b.c={}", "A={};", "A: {}", '"A": "{}",', "set A={}", 'set "A={}"', "export A='{}'",
        '$env:A="{}"', "$env:A = '{}'", "# A={}", "#export A='{}'", "; A={}", "A={}  # why", "\tA = {}\r",
        'A="{}', "ENV A={}", "größe={}",
    ],
)  # fmt: skip
def test_every_way_to_assign_is_read(tmp_path: Path, line: str) -> None:
    path = _write(tmp_path / ".env", f"FIRST=1\n{line.format(CAKE)}\nLAST=2\n")
    assert read_env_file(path).values == (CAKE,)
    assert _redactor(path).redact_text(f"a {CAKE} b")[1] == Counter(SECRET=1)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]
)
def test_every_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path / ".env", f"A={CAKE}\nB=käsekuchen blau\n", encoding)
    assert read_env_file(path).values == (CAKE, "käsekuchen blau")


def test_latin_1_behind_a_mark_of_utf_8_is_read(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(b"\xef\xbb\xbfA=caf\xe9-noir-9\n")
    assert read_env_file(path).values == ("café-noir-9",)


def test_values_over_several_lines_are_known_line_by_line(tmp_path: Path) -> None:
    path = _write(tmp_path / ".env", 'A="first part of it\nx\nsecond part of it"\nB=plum & pear\n')
    found = read_env_file(path)
    assert found.values == (
        "first part of it\nx\nsecond part of it", "first part of it", "second part of it", "plum & pear",
    )  # fmt: skip
    assert found.known == 2
    assert _redactor(path).redact_text("only second part of it here")[1] == Counter(SECRET=1)


@pytest.mark.parametrize(
    "value",
    [
        "development", "Production", "true,false", "12345678", "2026-11-21", "3.11.7.2", "/usr/bin/python3",
        "./data/cache", "C:\\Program Files\\x", "localhost:8000", "postgres:5432", "http://localhost:8000/v1",
        "https://api.example.com/v1", "Europe/Berlin", "en_US.UTF-8", "us-east-1", "${OTHER_NAME}",
        "src/app/main.py",
    ],
)  # fmt: skip
def test_what_is_ordinary_is_not_known(tmp_path: Path, value: str) -> None:
    assert is_ordinary(value)
    assert read_env_file(_write(tmp_path / ".env", f"A={value}\n")).values == ()


@pytest.mark.parametrize(
    "value",
    [
        CAKE, "kim@northwind", "https://hooks.x.dev/T0AB/xYz", "/q8Zt5vB1mK9wX3cR7yL2pD6s", "two words",
        "https://x.dev/?key=ab", "clear water wave", "postgres://a:b@db/x",
    ],
)  # fmt: skip
def test_what_is_not_ordinary_is_known(tmp_path: Path, value: str) -> None:
    assert value in read_env_file(_write(tmp_path / ".env", f"A={value}\n")).values


def test_prose_in_comments_is_no_value(tmp_path: Path) -> None:
    text = "# Note: this is the staging file\n# see A=b for more words here\n// Copy it: then edit\n"
    assert read_env_file(_write(tmp_path / ".env", text)).values == ()


def test_the_count_of_each_file_is_told(tmp_path: Path) -> None:
    one = _write(tmp_path / "one.env", f"A={CAKE}\nB=another-cake\nC=true\n")
    two = _write(tmp_path / "two.env", "C=true\n")
    counts = count_known_values(_redactor(one, two))
    assert counts == {"values known from one.env": 2, "no value known from two.env": 1}


@pytest.mark.parametrize("value", ['say "gouda" \\ brie', "käse-größe-9", "plum/pear & fig", "a\tb c d e f"])
def test_a_known_value_is_found_in_every_form(value: str) -> None:
    redactor = Redactor(secrets=[value], key=b"k")
    plain, wide = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    forms = [value, plain, wide, json.dumps(plain)[1:-1], quote(value, safe=""), quote(value)]
    forms += [unicodedata.normalize("NFD", value), unicodedata.normalize("NFC", value)]
    forms += [value.upper()] if len(value) >= 12 else []
    for form in forms:
        assert redactor.redact_text(f"12:01 log said {form}; done")[1] == Counter(SECRET=1), form
    for lead in ("", "u", "us", "use"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(f"{lead}{value}:tail".encode()).decode()
            assert redactor.redact_text(f"got {text} back")[1] == Counter(SECRET=1), lead


def test_case_is_kept_apart_for_short_values() -> None:
    assert Redactor(secrets=["PlumPear"]).redact_text("plumpear")[1] == Counter()
    assert Redactor(secrets=["PlumPearFigs"]).redact_text("see plumpearFIGS")[1] == Counter(SECRET=1)


@pytest.mark.parametrize(
    "name",
    [
        "JWT", "BEARER", "MY_SESSION", "SESSION_COOKIE", "STRIPE_SK", "MYSQL_ROOT_PW", "APP_CREDS",
        "SLACK_HOOK", "SEED", "WALLET_MNEMONIC", "ENCRYPTION_SALT", "PEPPER", "HMAC", "KUBECONFIG_DATA",
        "kennwort", "MOT_DE_PASSE", "DB_CONTRASENA", "SENHA_DB", "db-passwort",
    ],
)  # fmt: skip
def test_names_of_secret_variables(name: str) -> None:
    assert _redactor(environ={name: CAKE}).redact_text(CAKE)[1] == Counter(SECRET=1)


def test_what_secret_named_variables_hold_that_is_none() -> None:
    environ = {
        "ADMIN_PIN": "48151623", "RANDOM_SEED": "48151699", "WEBHOOK_URL": "https://h.x.dev/T0/aB9",
        "XDG_SESSION_DESKTOP": "ubuntu-desk", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1",
        "SPIN_TIMES": "many-many", "POSTGRES_PASSWORD": "postgres",
    }  # fmt: skip
    redactor = _redactor(environ=environ)
    for name, value in environ.items():
        expected = Counter(SECRET=1) if name in ("ADMIN_PIN", "WEBHOOK_URL") else Counter()
        assert redactor.redact_text(f"a {value} b")[1] == expected, name


def test_a_file_that_is_far_too_large_is_one_line_and_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.env").open("wb") as handle:
        handle.truncate(MAX_MB * 1_000_000 + 1)
    with pytest.raises(ConfigError, match=r"big\.env has 16 MB; expected a \.env file of 16 MB at most"):
        read_env_file(tmp_path / "big.env")
