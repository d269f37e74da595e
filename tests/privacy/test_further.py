"""Secrets and people in unusual spellings are found; labels, examples and code of the same look stay."""

import base64
import random
import string

import pytest

from tracemill.privacy.redaction.redactor import Redactor

_ALNUM = string.ascii_letters + string.digits
TOKEN = "gh" + "p_" + "".join(random.Random(8).choices(_ALNUM, k=35)) + "7"
WORD = "Kelp4HarborE"
HIDDEN = (
    (f"{TOKEN[:20]}\x1b[0m\x1b[31m{TOKEN[20:]}", TOKEN[20:]),
    (f"{TOKEN[:20]}\u200b{TOKEN[20:]}", TOKEN[20:]),
    (f't = "{TOKEN[:20]}" + "{TOKEN[20:]}"', TOKEN[20:]),
    (f"token: {TOKEN[:20]}\n{TOKEN[20:]}", TOKEN[20:]),
    (TOKEN.replace("_", "%5F"), TOKEN[4:]),
    (TOKEN.replace("_", "&#95;"), TOKEN[4:]),
    (base64.b64encode(f"TOKEN={TOKEN}".encode()).decode(), "VE9LRU49"),
    (f"{TOKEN[:24]} [truncated]", TOKEN[4:24]),
    (f"run('mysql', '--password', '{WORD}')", WORD),
    (f"echo {WORD} | docker login -u a --password-stdin", WORD),
    (f"smtp.login('a', '{WORD}')", WORD),
    (f"Das Passwort lautet {WORD}.", WORD),
    (f"Sign in with admin / {WORD} there", WORD),
    ("  password: correcthorsebattery\n", "correcthorsebattery"),
    ("Server=s;Uid=sa;Password=Grape Vine 5!;Encrypt=yes", "Grape Vine"),
    ("app:$6$KjDbSCPNZOTiEmKy$" + "xY8V8wyre519d4WQ51CR" * 4, "xY8V8wyre519"),
    ("lumentra_live_" + TOKEN[4:36], TOKEN[4:36]),
    ("wallet " + ("xprv" + "9uHRZZhk6KAJC1avXpDAp4MDc3sQKNxDiPvvkX8Br" * 3)[:115], "9uHRZZhk6KAJC1av"),
    ("[sudo] password for brunhild:", "brunhild"),
    ("Signed-off-by: Greta Lindqvist <g@nord.post>", "Lindqvist"),
    ("http://ci.intra.nordwerk.de:8080/x", "intra"),
    ("mail günther.höll@nordpost.de now", "günther"),
    ("gudrun@höllmann-post.de", "gudrun"),
    ("ec2-54-93-112-7.compute.amazonaws.com", "54-93-112-7"),
    ("@@ -1 +1 @@\n+PASSWORD=" + WORD[:9] + "\n", WORD[:9]),
    ("FROM base\nENV PASSWORD " + WORD[:9] + "\n", WORD[:9]),
    ("commit by Greta Lindqvist <g@nord.post>", "Lindqvist"),
    ('"author": "Greta Lindqvist <g.l@nordpost.de>",', "Lindqvist"),
    ("(venv) brunhild@MacBook-Pro app % ls", "brunhild"),
    ("drwxr-sr-T 2 root brunhild 64 Nov 21 x", "brunhild"),
    ("USER PID %CPU %MEM VSZ\nroot 1 0.0 0.1 5 6 ? Ss\nbrunhild 7 0.0 0.1 5 6 ? S x", "brunhild"),
)
PLAIN = (
    '{"password": "wachtwoord", "password_hint": "minimum 8 characters"}',
    'HEADERS = ("x-amz-security-token", "x-amz-content-sha256", "x-api-key")',
    "private_key: rsa.RSAPrivateKey | None",
    "image: registry.k8s.io/secret:v1.2.3@sha256:" + "9f86d081884c7d659a2feaa0c55ad015" * 2,
    'ipaddress.IPv4Network("192.0.2.0/24"); IPv6Address("2001:db8::1000")',
    "Co-authored-by: Claude <noreply@anthropic.com>",
    'resolved "https://registry.yarnpkg.com/@login/stream/-/a-7.6.3.tgz#7c286ebfdb51d5bdf71a793d0d75faac7cf5486b"',
    "login with username / password or sign in",
    "ENV PASSWORD changeme",
    "r={pass:1500,key:75,token:!0}",
    "00000010: 0000 0000 6981 0031 2044 0034  ......",
    "def login(self, user=None, password=None, port=1):",
)


@pytest.mark.parametrize(("text", "private"), HIDDEN)
def test_what_is_private_is_found_in_unusual_spellings(text: str, private: str) -> None:
    redacted, counts = Redactor(key=b"k").redact_text(text)
    assert private not in redacted
    assert counts.total() >= 1


@pytest.mark.parametrize("text", PLAIN)
def test_what_looks_alike_and_is_ordinary_stays(text: str) -> None:
    assert Redactor(key=b"k").redact_text(text)[0] == text
