# ruff: noqa: E501 (rows)
"""Passwords of any characters under telling names, in columns of tables, and in files of secrets."""

import base64
import json
import random
import string
from collections.abc import Callable

import pytest
from secret_sessions import trace_of

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message, ToolCall

REDACTOR = Redactor(key=b"k")
ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "rds": ALNUM + "".join(set(string.punctuation) - set("/@\"'")),
    "keepass": ALNUM + string.punctuation,
    "bitwarden": ALNUM + "!@#$%^&*",
}
SETTINGS: dict[str, Callable[[str], str]] = {
    "json": lambda v: json.dumps({"host": "db", "password": v}, indent=2),
    "yaml": lambda v: "db:\n  host: db\n  password: '{}'\n".format(v.replace("'", "''")),
    "env": lambda v: f"A=1\nDB_PASSWORD={json.dumps(v)}\nB=2\n",
    "properties": lambda v: f"spring.url=jdbc\nspring.datasource.password={v}\nspring.x=1\n",
    "ini": lambda v: f"[client]\nuser = app\npassword = {v}\nhost = db\n",
    "toml": lambda v: f"[db]\npassword = {json.dumps(v)}\n",
    "shell": lambda v: "export DB_PASSWORD='{}'\n".format(v.replace("'", "'\\''")),
    "python": lambda v: f"password = {v!r}\n",
    "javascript": lambda v: f"const password = {json.dumps(v)};\n",
}
ORDINARY = (
    'password: "${DB_PASSWORD}"', 'password = os.environ["DB_PASSWORD"]', 'password: "<your password>"', "password = get_password()",
    "password: str = Field(...)", 'password: "Must be at least 8 characters!"', "password=$(cat /run/secrets/db)", '"password": "{{ .Values.db.password }}"',
    "signingkey = $KEYDIR/id.pub", "api_secret = ${HOME}/.config/app/key",
    "password = self._config['db']['password2']", "passwordField = new JPasswordField(20);", "token = tokens[i + 1]", "password: z.string().min(8).max(64),",
    "| Name | Type | Token |\n|---|---|---|\n| access_2 | String | The Token2 |\n", "id,password,token\n1,string,number\n",
)  # fmt: skip


def _draw(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choices(alphabet, k=size))


def _call(tool: str, arguments: dict[str, str], output: str) -> str:
    """Return what is left of a call and its result."""
    call = Message("assistant", "", (ToolCall("c1", tool, json.dumps(arguments)),))
    trace, _ = REDACTOR.redact_trace(trace_of(call, Message("tool", output, tool_call_id="c1")))
    messages = trace.contexts[0].messages
    return messages[0].tool_calls[0].arguments + messages[1].content


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_drawn_passwords_go_in_every_setting(alphabet: str) -> None:
    rng = random.Random(9)
    left, made = [], 0
    for name, setting in SETTINGS.items():
        for _ in range(40):
            value = "K" + _draw(rng, ALPHABETS[alphabet], 18) + "7"
            text, _ = REDACTOR.redact_text(setting(value))
            made += 1
            if any(value[at : at + 8] in text for at in range(13)):
                left.append((name, value))
    assert len(left) <= 0.02 * made, left


@pytest.mark.parametrize("text", ORDINARY)
def test_code_templates_and_words_stay(text: str) -> None:
    assert REDACTOR.redact_text(f"x = 1\n{text}\ny = 2\n")[0] == f"x = 1\n{text}\ny = 2\n"


TABLES: dict[str, Callable[[list[list[str]]], str]] = {
    "psql": lambda rows: " " + " | ".join(rows[0]) + "\n----+----+----\n" + "".join(f" {' | '.join(row)}\n" for row in rows[1:]),
    "csv": lambda rows: "".join(",".join(row) + "\n" for row in rows),
    "tsv": lambda rows: "".join("\t".join(row) + "\n" for row in rows),
    "quoted": lambda rows: "".join(",".join(f'"{each}"' for each in row) + "\n" for row in rows),
    "markdown": lambda rows: "".join(f"| {' | '.join(row)} |\n" for row in (rows[0], ["---"] * 4, *rows[1:])),
    "html": lambda rows: "<tr>" + "".join(f"<th>{each}</th>" for each in rows[0]) + "</tr>\n" + "".join("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>\n" for row in rows[1:]),
    "copy": lambda rows: f"COPY users ({', '.join(rows[0])}) FROM stdin;\n" + "".join("\t".join(row) + "\n" for row in rows[1:]) + "\\.\n",
    "insert": lambda rows: "CREATE TABLE users (" + ", ".join(f"{each} text" for each in rows[0]) + ");\nINSERT INTO users VALUES " + ",".join("(" + ",".join(f"'{each}'" for each in row) + ")" for row in rows[1:]) + ";\n",
}  # fmt: skip


@pytest.mark.parametrize("form", TABLES)
def test_columns_say_what_their_cells_are(form: str) -> None:
    rng = random.Random(7)
    rows = [["id", "password", "api_token", "full_name"]]
    for at in range(20):
        rows.append(
            [
                str(at),
                f"Tundra#{_draw(rng, ALNUM, 7)}4",
                _draw(rng, ALNUM, 23) + "5",
                f"Quirin Lohs{'abcdefghij'[at % 10]}",
            ]
        )
    text, _ = REDACTOR.redact_text(TABLES[form](rows))
    assert [cell for row in rows[1:] for cell in row[1:] if cell in text] == []


PREFIXES = {
    "number": "{n:6}\u2192{line}",
    "tab": "{n:6}\t{line}",
    "grep": ".env:{n}:{line}",
    "diff": "< {line}",
    "plain": "{line}",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_file_of_secrets_is_told_by_the_call_whatever_its_prefixes(prefix: str) -> None:
    rng = random.Random(5)
    values = [_draw(rng, ALNUM, 23) + "7", _draw(rng, "0123456789abcdef", 30) + "7a"]
    lines = ["DEBUG=1", f"STRIPE_WEBHOOK={values[0]}", f"ACME_LICENSE={values[1]}"]
    shown = "".join(PREFIXES[prefix].format(n=n, line=line) + "\n" for n, line in enumerate(lines, 1))
    for text in (
        _call("Read", {"file_path": "/srv/app/.env"}, shown),
        _call("Bash", {"command": "diff .env .env.bak"}, shown),
    ):
        assert "DEBUG=1" in text
        assert [value for value in values if value in text] == []


def test_what_is_written_into_a_file_of_secrets_is_taken() -> None:
    value = _draw(random.Random(3), "0123456789abcdef", 30) + "7a"
    body = f"DEBUG=1\nACME_LICENSE={value}\n"
    assert value not in _call("Write", {"file_path": "/srv/app/.env", "content": body}, "ok")
    assert value not in _call(
        "Edit", {"file_path": "/srv/app/.env", "old_string": "A=1", "new_string": body}, "ok"
    )
    assert value not in _call("Write", {"file_path": "/srv/app/config/master.key", "content": value}, "ok")
    assert value not in _call("Bash", {"command": f"cat > .env <<'EOF'\n{body}EOF"}, "")
    assert value not in _call(
        "Bash",
        {"command": "git diff"},
        f"diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n+ACME_LICENSE={value}\n",
    )


FORMS: dict[str, Callable[[bytes], str]] = {
    "octal": lambda data: "".join(f"\\{byte:03o}" for byte in data),
    "escapes": lambda data: "".join(f"\\x{byte:02x}" for byte in data),
    "percent": lambda data: "".join(f"%{byte:02X}" for byte in data),
    "base64 twice": lambda data: base64.b64encode(base64.b64encode(data)).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_recognised_value_goes_in_every_form(form: str) -> None:
    value = "Tund/ra#9412Xq7"
    coded = FORMS[form](value.encode())
    text = _call(
        "Bash", {"command": "cat a.yml"}, f'db_password: "{value}"\nseen: {coded}\nagain {value} there\n'
    )
    assert value not in text
    assert coded not in text
