"""What the user lists, what `.env` files hold, and what is wrong with either, in one line."""

import json
import os
import pickle
from collections import Counter
from pathlib import Path

import pytest

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import ConfigError

VALUE = "plain-but" + "-private"
MAIL = "kim.larsen" + "@" + "northwind.io"


def _redactor(**options: object) -> Redactor:
    return Redactor.from_environment({}, hostname="x", key=b"k", **options)  # type: ignore[arg-type]


def test_listed_values_and_patterns_are_redacted() -> None:
    redactor = _redactor(redact=["Project Falcon", r"re:CUST-\d{4}"])
    text, counts = redactor.redact_text("Project Falcon bills CUST-1234 and CUST-12")
    assert counts == Counter(LISTED=2)
    assert "Falcon" not in text
    assert "CUST-1234" not in text
    assert text.endswith(" and CUST-12")
    arguments = json.dumps({"note": "Project Falcon\nCUST-9999"})
    inside, counts = redactor.redact_text(arguments)
    assert counts == Counter(LISTED=2)
    assert json.loads(inside)["note"].count("<LISTED_") == 2


def test_what_is_allowed_stands_whatever_rule_finds_it() -> None:
    text = f"mail {MAIL} or other.person@northwind.io, password: hunter2hunter99z, ssh app@203.12.88.140"
    allow = [MAIL, "re:203\\.12\\.88\\.\\d+", "hunter2hunter99z"]
    redacted, counts = _redactor(allow=allow).redact_text(text)
    assert counts == Counter(EMAIL=1)
    assert "other.person" not in redacted
    assert MAIL in redacted
    body = json.dumps({"password": "hunter2hunter99z"})
    assert _redactor(allow=allow).redact_text(body)[0] is body
    assert _redactor(allow=["x"]).redact_text(body)[1] == Counter(PASSWORD=1)


def test_a_known_secret_is_never_allowed() -> None:
    redactor = Redactor.from_environment({"MY_TOKEN": VALUE}, hostname="x", allow=[VALUE, "re:.+"])
    assert redactor.redact_text(f"see {VALUE}")[1] == Counter(SECRET=1)
    assert redactor.redact_text(json.dumps({"token": VALUE}))[1] == Counter(SECRET=1)


def test_secrets_of_env_files_are_known_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(
        "# comment\nexport SERVICE_TOKEN=open sesame now # rotates\nDB_PASSWORD='with space'\n"
        'MULTI_SECRET="first line\\nsecond line"\nPORT=12345678\nSHORT_KEY=abc\n'
        "DATABASE_URL=postgres://app:quite%20hidden@db/x\n"
    )
    redactor = _redactor(env_files=[path])
    for value in ("open sesame now", "with space", "first line\nsecond line", "quite hidden"):
        assert redactor.redact_text(f"a {value} b")[1] == Counter(SECRET=1)
    assert redactor.redact_text("12345678 abc rotates")[1] == Counter()


@pytest.mark.parametrize("entry", ["re:[", "re:(?P<x", "re:*"])
def test_an_invalid_pattern_is_named_in_one_line(entry: str) -> None:
    for purpose in ("redact", "allow"):
        with pytest.raises(ConfigError) as caught:
            _redactor(**{purpose: ["fine", entry]})
        assert f"the {purpose} list holds an invalid pattern {entry!r}" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_pattern_that_matches_nothing_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="matches the empty text"):
        _redactor(redact=["re:x*"])
    with pytest.raises(ConfigError, match="empty entry"):
        _redactor(allow=[" "])


def test_an_env_file_that_is_no_file_is_one_clear_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {tmp_path: "a folder", tmp_path / "none": "No such file", tmp_path / "pipe": "a pipe"}
    for path, reason in cases.items():
        with pytest.raises(ConfigError) as caught:
            _redactor(env_files=[path])
        assert reason in str(caught.value)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_empty_setting_does_not_take_the_next_line_for_its_value() -> None:
    text = "SECRET_KEY=\nBUILD_ID=584381\nAPI_TOKEN=\nRELEASE=20261121\n"
    assert Redactor().redact_text(text) == (text, Counter())


def test_a_redactor_of_another_process_knows_the_same(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("WORD=quite-an-unusual-value-77\n")
    redactor = Redactor.from_environment(
        {"HOME": "/home/kathe", "USER": "kathe", "MY_TOKEN": "plain-token-of-mine"},
        key=b"k" * 32,
        redact=["Nordlicht", "re:Vertrag-[0-9]+"],
        allow=["nobody@example.org"],
        env_files=[tmp_path / ".env"],
    )
    other = pickle.loads(pickle.dumps(redactor))
    text = "kathe plain-token-of-mine quite-an-unusual-value-77 Nordlicht Vertrag-12 nobody@example.org"
    redacted, found = redactor.redact_text(text, "t1")
    assert other.redact_text(text, "t1") == (redacted, found)
    assert found.total() == 5
    assert other.known_from_files == redactor.known_from_files == {".env": 1}
