# ruff: noqa: E501 (texts)
"""Passwords without a shape are found by the place they stand in: files, commands, forms, prints."""

import random
import string

import pytest
from secret_sessions import HARNESS_NAMES, output_trace, trace_of

from tracemill.privacy.core.letter_pairs import is_drawn_letters
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message

REDACTOR = Redactor(key=b"k")
WORDS = "tattoo grow general what border expire prefer deal mansion talent".split()  # noqa: SIM905


def _letters(rng: random.Random) -> str:
    while not is_drawn_letters(value := "".join(rng.choices(string.ascii_lowercase, k=12))):
        pass
    return value


def _mixed(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_letters + string.digits, k=11)) + "7aQ"


def _chain(rng: random.Random) -> str:
    return "-".join(rng.sample(WORDS, 4))


PLACES = [
    ("realm=Corp Repository\nhost=nexus.corp.lan\nuser=airflow\npassword={}", (_letters, _mixed)),
    ("APP_NAME = Team\nPASSWD = {}\nRUN_MODE = prod", (_letters, _mixed, _chain)),
    ("val df = spark.read\n  .option(\"user\", \"ci_bot\")\n  .option(\"password\", \"{}\")", (_letters, _mixed)),
    ("  release {{\n    storeFile file('a.jks')\n    storePassword '{}'\n  }}", (_letters, _mixed)),
    ("[database]\npassword = \"\"\"{}\"\"\"\nhost = db", (_letters, _mixed)),
    ("helm upgrade pg x/postgresql --set auth.postgresPassword={} -n data", (_mixed, _chain)),
    ("docker login registry.corp.eu -u bob -p {}\ndocker build .", (_letters, _mixed, _chain)),
    ("await page.getByLabel('Password').fill('{}');", (_letters, _mixed, _chain)),
    ("driver.find_element(By.ID, \"password\").send_keys(\"{}\")", (_letters, _mixed, _chain)),
    ("    edit \"to-branch\"\n        set psksecret {}\n        set dpd on-idle", (_letters, _mixed, _chain)),
    ("1) \"requirepass\"\n2) \"{}\"\n3) \"masterauth\"", (_letters, _mixed, _chain)),
    ("K 8\npassword\nV 12\n{}\nK 8\nusername", (_letters, _mixed)),
    ("a1 LOGIN bob \"{}\"\na1 OK Logged in", (_letters, _mixed, _chain)),
    ("${{USER}}          bob\n${{PASSWORD}}      {}", (_letters, _mixed, _chain)),
    ("<Attribute Name=\"sessionToken\">\n  <AttributeValue>{}</AttributeValue>", (_letters, _mixed)),
    ("OLDPW=\"{}\"\nfor h in a b; do", (_mixed, _chain)),
    ("    SetEnv DB_USER app\n    SetEnv DB_PASSWORD {}", (_letters, _mixed, _chain)),
    ("val c = Credentials.basic(\"nightly\", \"{}\")", (_letters, _mixed, _chain)),
    ("ldapsearch -x -H ldaps://a.lan \\\n  -D \"cn=b\" -w '{}' \\\n  -b \"dc=lan\"", (_letters, _mixed)),
    ("mosquitto_pub -h mq -u bob -P '{}' -t a/b", (_letters, _mixed, _chain)),
    ("\u043b\u043e\u0433\u0438\u043d: bob\n\u043f\u0430\u0440\u043e\u043b\u044c: {}\n", (_letters, _mixed, _chain)),
    ("\u7528\u6237\u540d:bob\n\u5bc6\u7801:{}\n", (_letters, _mixed, _chain)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "makes"), PLACES)
def test_a_password_goes_by_its_place(text: str, makes: tuple) -> None:
    rng = random.Random(7)
    for make in makes:
        value = make(rng)
        message = Message("user", text.format(value))
        content = REDACTOR.redact_trace(trace_of(message))[0].contexts[0].messages[0].content
        assert value not in content
        assert content.startswith(text.format("\0").partition("\0")[0].rpartition(" ")[0])


@pytest.mark.parametrize(
    ("path", "text", "left"),
    [
        ("/etc/davfs2/secrets", "https://cloud.corp.com/dav/ nico \"{}\"", "/dav/ nico \""),
        ("/etc/ppp/chap-secrets", "# client server secret\nnico\tl2tpd\t{}\t*", "nico\tl2tpd\t"),
        ("/etc/ipsec.secrets", ": RSA gateway.key \"{}\"", ": RSA gateway.key"),
        ("/etc/dovecot/users", "sven:{{PLAIN}}{}:1001:1001::/home/vmail", ":1001:1001::/home/"),
        ("/etc/postfix/sasl_passwd", "[smtp.corp.co]:587 relay:{}", ":587 relay:"),
        ("/home/a/.bundle/config", "---\nBUNDLE_GEMS__LAN: \"nightly:{}\"\nBUNDLE_JOBS: \"8\"", "BUNDLE_JOBS: \"8\""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [_letters, _mixed])
def test_words_of_a_file_of_secrets_go(path: str, text: str, left: str, make) -> None:
    value = make(random.Random(3))
    for harness in HARNESS_NAMES:
        trace = output_trace(harness, f"sudo cat {path}", text.format(value))
        content = REDACTOR.redact_trace(trace)[0].contexts[0].messages[2].content
        assert value not in content
        assert left in content


@pytest.mark.parametrize(
    "text",
    [
        "password = getpwnam",
        "docker compose -p billing-app-dev-env up",
        "existingPasswordSecret: my-release-postgres-auth",
        "secret: my-app-db-creds",
        "token   kubernetes.io/service-account-token   3",
        "connect(host=host, password=pw1)",
    ],
)
def test_names_and_words_of_code_stay(text: str) -> None:
    assert REDACTOR.redact_trace(trace_of(Message("user", text)))[0].contexts[0].messages[0].content == text


@pytest.mark.parametrize(
    "text",
    [
        "wohnhaft Am M\u00fchlbach 3, 44787 Bochum",
        "Regards\nBo\n4041 Quail Hollow Ct, Tucson, AZ 85718",
        "Zamieszka\u0142y: ul. Ko\u015bciuszki 141, 20-022 Lublin",
        "Corso Vittorio, 159, 41121 Modena",
        "149 Larkspur Close, Bristol BS6 7PD",
    ],
)
def test_an_address_on_one_line_goes(text: str) -> None:
    content = REDACTOR.redact_trace(trace_of(Message("user", text)))[0].contexts[0].messages[0].content
    assert "<ADDRESS_" in content
    assert not any(part in content for part in ("44787", "85718", "20-022", "41121", "BS6"))


@pytest.mark.parametrize(
    "text",
    [
        "Python 3, 20240 Builds ran",
        "Took 12 steps, 30000 Rows",
        "Figure 3, 12345 Points",
        "ran Step 4, 1000 Users",
    ],
)
def test_counts_are_no_address(text: str) -> None:
    assert REDACTOR.redact_trace(trace_of(Message("user", text)))[0].contexts[0].messages[0].content == text


def test_a_key_pair_of_numbers_goes() -> None:
    rng = random.Random(1)
    numbers = ",".join(str(rng.randrange(256)) for _ in range(64))
    zeros = "[" + ",".join(["007"] * 64) + "]"
    text = f"[{numbers}]\n{zeros}\nConfig File: a.yml"
    content = REDACTOR.redact_trace(trace_of(Message("user", text)))[0].contexts[0].messages[0].content
    assert numbers not in content
    assert content.endswith(f"\n{zeros}\nConfig File: a.yml")


JOINED = [
    "raccoon.Walnut",
    "Tortellini-In-Brodo",
    "iris_setosa",
    "creeperAwMan_7",
    "Spaten+Beete",
    "ankerkette.rostig",
]
"""Words that people join; names of code look the same."""
JOINED_PLACES = [
    'db:\n  password: "{}"\n  port: 5432',
    "env:\n  - MARIADB_PASSWORD={}\n  - TZ=UTC",
    "user=nas\npassword={}\ndomain=LAN",
    "web02 ansible_host=srv2 ansible_become_password={}\n",
    'db_user         = "bob"\ndb_password     = "{}"',
    "keytool -list -keystore a.jks -storepass {}",
    './server -name "World" -password "{}" -crossplay',
    "ansible-playbook site.yml -e 'ansible_become_pass={}'",
    'hostname "Retake"\nsv_password "{}"\nmp_roundtime 2',
    "curl -u 'dav:{}' -T a.tgz https://dav.test/",
    "Enter passphrase for /dev/nvme0n1p3: {}\nok",
    'conn = client.login("reports", "{}")',
    'mot_de_passe: "{}"\nhote: a',
]


@pytest.mark.parametrize("text", JOINED_PLACES)
def test_joined_words_go_where_a_password_is_set(text: str) -> None:
    for value in JOINED:
        redacted, counts = REDACTOR.redact_text(text.format(value))
        assert value not in redacted, (value, redacted)
        assert sum(counts.values()) == 1


TOLD = [
    ("the db password is raccoon-party, host is pg-test.lan, run it", "raccoon-party"),
    ("old pw was Rucksack18 and the new one is Wanderstock.19, update both", "Wanderstock.19"),
    ('new password for the nas is "Pinguin auf Scholle" (with blanks)', "Pinguin auf Scholle"),
    ("le mot de passe c'est Escargot-bleu-3, tu peux relancer", "Escargot-bleu-3"),
    ("Das Passwort f\xfcr den FTP lautet Erdbeere=rot, bitte lade es hoch", "Erdbeere=rot"),
    ("the password is actually 9Kartoffeln now", "9Kartoffeln"),
]


@pytest.mark.parametrize(("text", "value"), TOLD)
def test_a_password_that_a_sentence_tells_goes(text: str, value: str) -> None:
    redacted, _ = REDACTOR.redact_text(text)
    assert value not in redacted
    assert redacted.startswith(text.partition(value)[0][:6])


@pytest.mark.parametrize(
    "text",
    [
        "We can pass it to server-side code: pass a media type to get_parameter",
        "you will pass to `hf endpoints deploy`. The password is required.",
        "the password is url-encoded, the passphrase was auto-generated",
        "the password is read from config.auth.value, not from the shell",
        "{password} is the password for connecting to NetBeans.",
        "password: Enter your new value.",
        'password: "Forgot your password?"',
        "  password: config.auth.value,\n  user: config.auth.user,",
        "def read(passfile: pathlib.Path) -> str: ...",
        "pass `authMethod` to `syncer.Probe` and stream.compose",
        "PasswordType: typing.TypeAlias = str | bytes",
        '{{"pwd": "IPython.core.magics.osm:OSMagics"}}',
        'password = "my-app/secrets.yaml"',
        "the password is case-sensitive and auto-generated",
        "    password=user_password,\n    host=host_name,",
        "docker run -u www-data:www-data app",
        "Sign in with `google` and `github`.",
        "password=DB_PASSWORD\nuser=DB_USER",
    ],
)
def test_code_and_prose_about_passwords_stay(text: str) -> None:
    text = text.replace("{{", "{").replace("}}", "}")
    assert REDACTOR.redact_text(text)[0] == text


def test_a_secret_that_is_a_phrase_goes() -> None:
    for text, value in (
        ("app.use(session({ secret: 'keyboard tiger umbrella', resave: false }))", "keyboard tiger umbrella"),
        ('"Jwt": { "SigningKey": "thirty-badgers-ate-my-homework" }', "thirty-badgers-ate-my-homework"),
        ("password=Regal Brett unten\n", "Regal Brett unten"),
        ("sshpass -p 'Wendel treppe 64' ssh web", "Wendel treppe 64"),
        ('client.login("bob", "cat-elk-fox")', "cat-elk-fox"),
        ("Log in as `redaktion` with `editor2editor`.", "editor2editor"),
        (
            "nsupdate -y hmac-sha256:ddns:7jwOMZtzjEZM64uq90lgop0mNbsjgicHvU2D6Rr+yI9= < a",
            "7jwOMZtzjEZM64uq90l",
        ),
        ('key "k" {\n  secret "/BkluRzMIzaCxMIc2NkV8b9WX3RW2lSGltRVOwcjfVy=";', "BkluRzMIzaCxMIc2NkV8b"),
        ("- basicauth.users=dash:$$apr1$$k2Vq9xLs$$52UOWtPP1ydrd8iix6vsoj", "52UOWtPP1ydrd8iix6vsoj"),
        ('ks.load(in, "stein-Schere-Papier".toCharArray());', "stein-Schere-Papier"),
    ):
        assert value not in REDACTOR.redact_text(text)[0]
