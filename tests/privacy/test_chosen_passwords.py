# ruff: noqa: E501 (texts)
"""Passwords that people choose, told by their shape behind words about logins, and not in code that looks like them."""

import base64
import random
import string

import pytest

from tracemill.privacy.core.chosen_passwords import is_chosen_password, is_mingled, is_scrambled_letters
from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.redaction.redactor import Redactor

REDACTOR = Redactor(key=b"k")
DRAWN = random.Random(20)
WORDS = [
    "maple",
    "granite",
    "pumpkin",
    "velvet",
    "lantern",
    "cactus",
    "meadow",
    "walnut",
    "pigeon",
    "saffron",
]
NAMES = ["Hugo", "Nina", "Oskar", "Felix", "Clara", "Bruno"]


def numbered() -> str:
    return f"{DRAWN.choice(WORDS)}{DRAWN.randrange(1000, 9999)}"


def named() -> str:
    return f"{DRAWN.choice(NAMES)}_{DRAWN.choice(WORDS)}{DRAWN.randrange(100, 999)}"


def phrase(joint: str = "-") -> str:
    return joint.join(DRAWN.sample(WORDS, 4))


def mixed(size: int = 14) -> str:
    return "".join(DRAWN.choices(string.ascii_letters + string.digits, k=size - 4)) + "X4k7"


def encoded(size: int) -> str:
    return base64.b64encode(DRAWN.randbytes(size)).decode()


@pytest.mark.parametrize("draw", [numbered, named, phrase])
def test_chosen_words_are_told_by_their_shape(draw: object) -> None:
    assert all(is_chosen_password(draw()) for _ in range(50))  # type: ignore[operator]


@pytest.mark.parametrize(
    "value",
    [
        "test_user_12",
        "python311",
        "sha256sum",
        "ubuntu2204",
        "my-app-db-main",
        "single-page-code-file",
        "man-in-the-middle",
        "password1234",
        "changeme2024",
        "example-value-12",
        "windows2019",
        "get_user_by_id_12",
        "a1b2c3d4",
        "2024-11-29",
        "item1",
    ],
)
def test_names_of_code_and_platforms_are_none(value: str) -> None:
    assert not is_chosen_password(value)


def test_letters_whose_case_changes_as_in_no_word() -> None:
    assert is_scrambled_letters("QHzluirDCGjwp")
    assert is_mingled("4rs3n4l-69")
    for value in (
        "getUserNameFor",
        "DatabaseConnection",
        "XMLHttpRequest",
        "parseJSONBody",
        "camelCaseNameHere",
    ):
        assert not is_scrambled_letters(value)


@pytest.mark.parametrize(
    ("template", "draw"),
    [
        ("cqlsh 10.0.0.7 -u cassandra -p '{}'", numbered),
        ("racadm -r 10.0.0.9 -u root -p {} getsysinfo", mixed),
        ("psexec \\\\srv1 -u ACME\\admin -p {} cmd", numbered),
        ("kadmin: addprinc -pw {} svc/web", phrase),
        ("lftp -u web,{} ftp.acme.test -e quit", numbered),
        ("net user kiosk {} /add", named),
        ("CONNECT hr/{}@ORCLPDB", numbered),
        ("vrrp 10 authentication text {}", named),
        ("/login kim {}", named),
        ("NickServ: IDENTIFY bot {}", named),
        ("storePassword '{}'", named),
        ('secret_key_base: "{}"', numbered),
        ("win1 ansible_user=admin ansible_password={} ansible_port=5986", named),
        ("SSHPASS={} sshpass -e rsync -a . ops@b1:/x", named),
        ("olcRootPW: {}", named),
        ("API_SECRET={}", lambda: "QHzluirDCGjwpWTb"),
        ("RuntimeError: login('kim', '{}') returned 401", named),
        ("session.auth = ('jonas', '{}')", phrase),
        ("ftp = FTP('ftp.acme.test', 'web', '{}')", named),
        ("UPDATE wp_users SET user_pass = MD5('{}') WHERE ID = 1;", phrase),
        ("la clave del servidor es {}", named),
        ("Le mdp du serveur : {}", named),
        ("passordet er {}", phrase),
        (
            "\u043c\u043e\u0439 \u043f\u0430\u0440\u043e\u043b\u044c {}, \u043f\u043e\u0447\u0435\u043c\u0443?",
            phrase,
        ),
        ('the passphrase for the backup is "{}"', lambda: phrase(" ")),
        ("backup:\n  passphrase: >-\n    {}\n    meadow walnut pigeon velvet\n", lambda: phrase(" ")),
        ("Q: Which password did you set for root?\nA: {}", mixed),
        ('Content-Disposition: form-data; name="password"\n\n{}\n------B--', numbered),
        ("# auth-user-pass file\nvpnuser7\n{}\n", numbered),
        ("# ~/.pgpass\n*:*:*:postgres:{}", numbered),
        ("VPN\nadmin / {}\n10.0.0.1", mixed),
        ("*2\r\n$4\r\nAUTH\r\n$11\r\n{}\r\n", numbered),
        ("WIFI:T:WPA;S:GuestNet;P:{};;", named),
        ("echo '{}' > ~/.ansible_vault_pass", numbered),
        ("Secret Access Key [None]: {}", lambda: encoded(30)),
        ("Authorization: Negotiate {}", lambda: encoded(90)),
        ("Authorization: SharedKey store:{}", lambda: encoded(32)),
        ("keytab_base64: |\n  {}\nrealm: ACME.TEST", lambda: encoded(48)),
        ("$ kubectl exec app-0 -- printenv DB_PASSWORD\n{}\n", numbered),
        ("$ gcloud secrets versions access latest --secret=db-pass\n{}\n", named),
        ("Ihr Einmalcode lautet {} (5 Minuten)", lambda: str(DRAWN.randrange(100000, 999999))),
        ("the door code is {}", lambda: str(DRAWN.randrange(100000, 999999))),
        (
            "Seriennummer: {}",
            lambda: "-".join("".join(DRAWN.choices("ABCDE23456789", k=4)) + "7" for _ in range(5)),
        ),
        ("WP application password for kim: {}", lambda: "FE8b bKrT 0Mrh 2cAZ heDX x3M2"),
    ],
)
def test_a_value_behind_words_about_logins_goes(template: str, draw: object) -> None:
    for _ in range(3):
        value = draw()  # type: ignore[operator]
        redacted = REDACTOR.redact_text(template.format(value))[0]
        assert value not in redacted, redacted
        assert redacted.count("<") >= 1 or "REDACTED" in redacted


@pytest.mark.parametrize(
    "text",
    [
        "what is the default password policy of Keycloak?",
        "def login(user, password_hash12): return check(user)",
        "docker run -u 1000 -p 8080:80 app",
        "sudo -u postgres psql -p 5432",
        "ssh -l deploy -p 2222 host",
        "password reset in docs/auth-flow-2024.md and login.bootstrap.min.js",
        "the login page of release-2024.11 uses auth0 and oauth2-proxy",
        "token = next_token(state12)\nsecret = load_secret(path)",
        "$ ls -la\ntotal 12",
        "00000000: 4449 5243 0000 0002 0000 00e7 6981 3a2b",
        "signing refs/tags/golangci-lint-action-6.0.1",
        "exit code 1234 and error code 500123",
    ],
)
def test_code_commands_and_prose_stay(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text


def test_chosen_words_are_redacted_where_they_are_said_again() -> None:
    assert judge_distinctiveness(named(), "PASSWORD") is Distinctiveness.ALONE  # an identifier
    assert judge_distinctiveness(phrase(), "PASSWORD") is Distinctiveness.ANYWHERE
    assert judge_distinctiveness("pigeon42", "PASSWORD") >= Distinctiveness.ALONE
