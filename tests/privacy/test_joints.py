"""Secrets that are joined to their names, or given to programs, in ways that no assignment has."""

import random
import string

import pytest

from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.redaction.detectors import Detectors
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor
from tracemill.privacy.redaction.redactor import Redactor

TOKEN = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=40))
WORD = "Kettle" + "-8137"
DETECTORS = Detectors(make_known([]))

HIDDEN = (
    (f"\x1b[32mDEPLOY_SECRET\x1b[0m=\x1b[1m{TOKEN}\x1b[0m\n", TOKEN),
    (f"\x1b[1;36mDB_PASSWORD\x1b[0m: {WORD}\n", WORD),
    (f"api_key = \x1b[33m'{TOKEN}'\x1b[0m", TOKEN),
    (f"ENV['DEPLOY_SECRET'] ||= '{TOKEN}'", TOKEN),
    (f"process.env.DB_PASSWORD ??= '{WORD}'", WORD),
    (f'const API_KEY: &str = "{TOKEN}";', TOKEN),
    (f'static API_KEY: &\'static str = "{TOKEN}";', TOKEN),
    (f"name,value\nDEPLOY_SECRET,{TOKEN},2026-01-03\n", TOKEN),
    (f"DB_PASSWORD\t{WORD}\n", WORD),
    (f"Der neue Wert von DEPLOY_SECRET lautet {TOKEN}.", TOKEN),
    (f'127.0.0.1:6379> GET cfg:deploy_secret\n"{TOKEN}"\n', TOKEN),
    ("+DB_PASSWORD=zQvTrwBkNgLp\n", "zQvTrw"),
    (f"deploy/prod.env:14:DB_PASSWORD={WORD}\n", WORD),
    (f"helm upgrade a ./c --set image.tag=2,dbPassword={WORD} -n prod", WORD),
    (f"loaded db_password={WORD} from the file", WORD),
    (f"bind 0.0.0.0\nrequirepass {WORD}\n", WORD),
    (f"220 ready\nUSER svc\n331 go on\nPASS {WORD}\n230 in\n", WORD),
    ("C: AUTH PLAIN AGtpbQBLZXR0bGU4MTM3\n", "AGtpbQBLZXR0bGU4MTM3"),
    (f'sql.Open("mysql", "svc:{WORD}@tcp(db1:3306)/shop")', WORD),
    (f"Enter passphrase for key '/srv/id_rsa': {TOKEN}\n", TOKEN),
    (f"\u5bc6\u7801\uff1a{WORD}", WORD),
    (f'hmac.new(b"{TOKEN}", body, sha256)', TOKEN),
    (f"createHmac('sha256', '{TOKEN}')", TOKEN),
    (f"GET /data?city=Bern&appid={TOKEN[:32]} 200", TOKEN[:32]),
    ("otpauth://totp/A:svc?secret=SFR447ZTALC77BS6&issuer=A", "SFR447ZTALC77BS6"),
    (f"0.b5c68ddf-cbf5-482c-a680-69d39677fdf0.{TOKEN[:30]}:HVCmQfzQelQggekr6whiEQ==", TOKEN[:30]),
    (f"see jina_{TOKEN}{TOKEN[:20]} there", TOKEN),
    ("SECRET_KEY:  django-insecure-k#%0g-nr+bj5)#wjws5xdey6_!fwmkag@n&h1^gpg80sb_b*xy", "wjws5xdey6_"),
    ("SMTP_PASS=oqma snmv szfv sjbr\n", "snmv szfv"),
    (f"machine a.dev login me password {WORD}\n", WORD),
    (f'dsn = "host=db1 user=svc password={WORD} dbname=x"', WORD),
    (
        "kind: Secret\nmetadata:\n  name: x\ndata:\n  url: cG9zdGdyZXM6Ly9hOmJAYy9k\n",
        "cG9zdGdyZXM6Ly9hOmJAYy9k",
    ),
    (f"DEPLOY_SECRET ?= {TOKEN}\nexport DEPLOY_SECRET\n", TOKEN),
    (f"$ENV{{DEPLOY_SECRET}} = '{TOKEN}';", TOKEN),
    (f'val deploySecret: Option[String] = Some("{TOKEN}")', TOKEN),
    (f"$deploySecret = ConvertTo-SecureString '{TOKEN}' -AsPlainText", TOKEN),
    (f"process.env.DEPLOY_SECRET || '{TOKEN}'", TOKEN),
    (f"${{DEPLOY_SECRET:-{TOKEN}}}", TOKEN),
    (f"\u2502 DEPLOY_SECRET \u2502 {TOKEN} \u2502", TOKEN),
    (f"<key>DEPLOY_SECRET</key>\n<string>{TOKEN}</string>", TOKEN),
    (f'variable "deploy_secret" {{\n  type = string\n  default = "{TOKEN}"\n}}', TOKEN),
    (f'(def deploy-secret "{TOKEN}")', TOKEN),
    (f"user: what is the deploy token?\nassistant: It's {TOKEN}\n", TOKEN),
    (f"DEPLOY_SECRET for staging changed, new one: `{TOKEN}`", TOKEN),
    (f"UPDATE c SET value = '{TOKEN}' WHERE name = 'deploy_secret';", TOKEN),
    ("brunhild     4121  0.0  0.1  12345  678 ?  Ss  10:00  0:00 python x.py\n", "brunhild"),
    ("brunhild pts/0        2026-03-02 10:00 (10.2.3.4)\n", "brunhild"),
    ("User brunhild\nIdentityFile ~/.ssh/id\n", "brunhild"),
    ("   12\tGreta Lindqvist <g.lindqvist@nordpost.de>\n", "Lindqvist"),
    ('{"author": "Greta Lindqvist <g.lindqvist@nordpost.de>"}', "Lindqvist"),
)
PLAIN = (
    "columns = [meta.row_group(2).column(at) for at in range(meta.num_columns)]",
    "\x1b[32mPASSWORD\x1b[0m: \x1b[1mrequired\x1b[0m",
    "options[:token] ||= 'default_token_name'",
    'const TOKEN_KIND: &str = "identifier_token";',
    "id,password,token,created_at\nuser,password_hash,ipv4,token_id\n",
    'GET /login\n"password"\n',
    "USER node\nCOPY . .\nRUN make PASS x\n",
    "the token ist abgelaufen, auth est obligatoire",
    "kind: ConfigMap\ndata:\n  level: ZGVidWdkZWJ1ZzE=\n",
    "password: this that from then",
    "secret = Some(\"identifier_of_it\") or 'default_secret'",
    "use the token? \nno, rather the other_identifier_2",
    "TOKEN ?= $(shell cat token.txt)",
    "UPDATE users SET name = 'administrator' WHERE token = 'x'",
    "hmac.new(key, body, sha256)",
    "PASSWORD=$1 and db_password=settings.password done",
)


@pytest.mark.parametrize(("text", "private"), HIDDEN)
def test_what_is_private_is_found(text: str, private: str) -> None:
    redacted, counts = Redactor(key=b"k").redact_text(text)
    assert private not in redacted
    assert counts.total() >= 1


@pytest.mark.parametrize("text", PLAIN)
def test_what_looks_alike_stays(text: str) -> None:
    assert Redactor(key=b"k").redact_text(text)[0] == text


def test_every_text_gives_the_same_with_and_without_its_probes() -> None:
    texts = [text for text, _ in HIDDEN] + list(PLAIN)
    rng = random.Random(3)
    texts += ["".join(rng.choices(texts, k=3)) for _ in range(300)]
    for text in texts:
        fast, slow = (ScopedTextRedactor(DETECTORS, b"k", "t", thorough=way) for way in (False, True))
        assert (fast.redact(text), fast.findings) == (slow.redact(text), slow.findings)
