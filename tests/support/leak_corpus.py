# ruff: noqa: E501, SIM905 (templates, lists of words)
"""A corpus of private values in the places they leak from, drawn from a seed; nothing in it is real.

Every form belongs to one of two halves by a hash of its name. Rules are written against `seen`; `held` is only
counted.
"""

import base64
import gzip
import hashlib
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
B64 = ALNUM + "+/"
CAPITALS = string.ascii_uppercase + string.digits
WORDS = tuple(
    "amber basil cedar delta ember falcon garnet harbor indigo juniper kestrel lagoon maple nectar orchid pebble quartz"
    " raven saffron timber umber velvet willow yarrow zephyr anchor beacon copper drifter fjord glacier hollow".split()
)
FIRST = tuple(
    "Kim Ana Lars Mira Jonas Priya Tomasz Beatriz Yuki Ines Oskar Leila Marek Sofia Ravi Helga".split()
)
LAST = tuple(
    "Larsen Novak Ferreira Kowalski Iyer Tanaka Brandt Moreau Lindgren Okafor Castellano Petrov Hughes Weissmann".split()
)


class Planted(NamedTuple):
    """A text, and the parts of it that must not survive."""

    text: str
    parts: tuple[str, ...]


class Case(NamedTuple):
    """A planted text with the names of its group, its form and its half."""

    group: str
    form: str
    half: str
    planted: Planted


Maker = Callable[[random.Random], Planted]


def of(rng: random.Random, alphabet: str, size: int) -> str:
    """Random characters with a digit among them, letters or digits at both ends."""
    while True:
        text = "".join(rng.choice(alphabet) for _ in range(size))
        if any(c.isdigit() for c in text) and text[0].isalnum() and text[-1].isalnum():
            return text


def password(rng: random.Random) -> str:
    """What somebody, or a generator, sets as a password."""
    word, other = rng.sample(WORDS, 2)
    return rng.choice(
        (
            lambda: of(rng, ALNUM, rng.randrange(10, 25)),
            lambda: f"{word.title()}-{other.title()}-{rng.randrange(10, 9999)}",
            lambda: of(rng, ALNUM, 8) + rng.choice("!#%*+=") + of(rng, ALNUM, 4),
            lambda: f"{word}{rng.randrange(100, 99999)}{rng.choice('!?+*')}",
        )
    )()


def person(rng: random.Random) -> str:
    """A first and a last name."""
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def host(rng: random.Random) -> str:
    """A machine's name on some network."""
    return f"{rng.choice(WORDS)}.{rng.choice(WORDS)}.{rng.choice(('dev', 'io', 'net'))}"


def wrapped(text: str, width: int) -> list[str]:
    """A long value as lines."""
    return [text[at : at + width] for at in range(0, len(text), width)]


def filled(template: str, **parts: Callable[[random.Random], str]) -> Maker:
    """Fill a template's `{name}` fields: `{w}`, `{w2}` words, `{h}` a host, `{n}` a number; those of `parts` are secret."""

    def make(rng: random.Random) -> Planted:
        word, other = rng.sample(WORDS, 2)
        values = {name: draw(rng) for name, draw in parts.items()}
        plain = {
            "w": word,
            "w2": other,
            "h": host(rng),
            "n": rng.randrange(1000, 9999),
            "d": rng.randrange(10, 28),
        }
        text = template
        for name, value in {**plain, **values}.items():
            text = text.replace("{" + name + "}", str(value))
        return Planted(text, tuple(values.values()))

    return make


def _hex(size: int) -> Callable[[random.Random], str]:
    return lambda rng: of(rng, HEX, size)


def _alnum(size: int) -> Callable[[random.Random], str]:
    return lambda rng: of(rng, ALNUM, size)


def _b64(size: int) -> Callable[[random.Random], str]:
    return lambda rng: of(rng, B64, size)


def _safe(size: int) -> Callable[[random.Random], str]:
    return lambda rng: of(rng, URLSAFE, size)


def _code(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "aws id": lambda r: "AK" + "IA" + of(r, string.ascii_uppercase + "234567", 16),
    "github": lambda r: "gh" + r.choice("pousr") + "_" + of(r, ALNUM, 36),
    "github fine": lambda r: "github" + "_pat_" + of(r, ALNUM, 22) + "_" + of(r, ALNUM, 59),
    "gitlab": lambda r: "gl" + "pat-" + of(r, URLSAFE, 20),
    "slack": lambda r: (
        "xo" + f"xb-{r.randrange(10**11, 10**12)}-{r.randrange(10**12, 10**13)}-" + of(r, ALNUM, 24)
    ),
    "stripe": lambda r: "sk" + "_live_" + of(r, ALNUM, 24),
    "google key": lambda r: "AI" + "za" + of(r, URLSAFE, 35),
    "google access": lambda r: "ya" + "29." + of(r, URLSAFE, 80),
    "google service": lambda r: "ya" + "29.c." + of(r, URLSAFE, 120),
    "openai": lambda r: "sk-" + "proj-" + of(r, URLSAFE, 74),
    "anthropic": lambda r: "sk-" + "ant-api03-" + of(r, URLSAFE, 93) + "AA",
    "hugging face": lambda r: "h" + "f_" + of(r, ALNUM, 34),
    "npm": lambda r: "np" + "m_" + of(r, ALNUM, 36),
    "docker": lambda r: "dckr" + "_pat_" + of(r, URLSAFE, 27),
    "sendgrid": lambda r: "S" + "G." + of(r, URLSAFE, 22) + "." + of(r, URLSAFE, 43),
    "shopify": lambda r: "shp" + "at_" + of(r, HEX, 32),
    "digitalocean": lambda r: "dop" + "_v1_" + of(r, HEX, 64),
    "databricks": lambda r: "da" + "pi" + of(r, HEX, 32),
    "grafana": lambda r: "gl" + "sa_" + of(r, ALNUM, 32) + "_" + of(r, HEX, 8),
    "vault": lambda r: "hv" + "s." + of(r, URLSAFE, 24),
    "supabase": lambda r: "sb" + "p_" + of(r, HEX, 40),
    "linear": lambda r: "lin" + "_api_" + of(r, ALNUM, 40),
    "google client": lambda r: "GOC" + "SPX-" + of(r, URLSAFE, 28),
    "azure storage": lambda r: "Account" + "Key=" + of(r, ALNUM, 86) + "==",
    "bitbucket": lambda r: "AT" + "BB" + of(r, ALNUM, 32),
    "openai legacy": lambda r: "sk" + "-" + of(r, ALNUM, 48),
    "openrouter": lambda r: "sk-" + "or-v1-" + of(r, HEX, 64),
    "deepseek": lambda r: "sk" + "-" + of(r, HEX, 32),
    "groq": lambda r: "gs" + "k_" + of(r, ALNUM, 52),
    "xai": lambda r: "xa" + "i-" + of(r, ALNUM, 80),
    "perplexity": lambda r: "pp" + "lx-" + of(r, ALNUM, 48),
    "replicate": lambda r: "r" + "8_" + of(r, ALNUM, 37),
    "pypi": lambda r: "py" + "pi-AgEIcHlwaS5vcmc" + of(r, URLSAFE, 120),
    "slack hook": lambda r: (
        f"https://hooks.slack{'.com'}/services/T{of(r, CAPITALS, 10)}/B{of(r, CAPITALS, 10)}/{of(r, ALNUM, 24)}"
    ),
    "discord": lambda r: (
        f"{_code(str(r.randrange(10**17, 10**18)))}.{of(r, URLSAFE, 6)}.{of(r, URLSAFE, 38)}"
    ),
    "discord hook": lambda r: (
        f"https://discord{'.com'}/api/webhooks/{r.randrange(10**17, 10**18)}/{of(r, URLSAFE, 68)}"
    ),
    "telegram": lambda r: f"{r.randrange(10**8, 10**10)}:{'AA'}{of(r, URLSAFE, 33)}",
    "twilio": lambda r: "S" + "K" + of(r, HEX, 32),
    "mailgun": lambda r: "ke" + "y-" + of(r, HEX, 32),
    "stripe restricted": lambda r: "rk" + "_live_" + of(r, ALNUM, 24),
    "notion": lambda r: "nt" + "n_" + of(r, ALNUM, 46),
    "figma": lambda r: "fig" + "d_" + of(r, URLSAFE, 40),
    "airtable": lambda r: "pa" + "t" + of(r, ALNUM, 14) + "." + of(r, HEX, 64),
    "new relic": lambda r: "NR" + "AK-" + of(r, CAPITALS, 27),
    "sentry": lambda r: "sntr" + "ys_" + of(r, ALNUM, 90),
    "jwt": lambda r: ".".join(
        (_code(json.dumps({"alg": "HS256"})), _code(json.dumps({"sub": of(r, HEX, 12)})), of(r, URLSAFE, 43))
    ),
}
SETTINGS = (
    "export {w}_X={v} && make",
    "I tried {v} and it works",
    '{"{w}": {"out": "ok\\n{v}\\nbye"}}',
    "{w}({v!}, retries={d})",
    "  - {v}\n  - {w}",
    "2026-05-{d} INFO {w}: using {v}.",
    "<{w}>{v}</{w}>",
    "https://{h}/v1/{w}?x={v}&page=2",
    "| {w} | {v} | {n} |",
    "\x1b[32m{v}\x1b[0m {w}",
    "first\n{v}\nlast",
    'result: {"output": "ok\\n{v}\\tbye"} (exit 0)',
    '{"log": "{\\"line\\": \\"ok\\\\n{v}\\"}"}',
    "-    x: old\n+    x: {v}\n",
    "    12→value = '{v}'\n    13→\n",
)


def _shape(make: Callable[[random.Random], str], setting: str) -> Maker:
    def made(rng: random.Random) -> Planted:
        value = make(rng)
        text = setting.replace("{v!}", f'"{value}"').replace("{v}", value)
        return Planted(filled(text)(rng).text, (value.rsplit("/", 1)[-1].split("Key=")[-1],))

    return made


def _pem(rng: random.Random) -> list[str]:
    return [*(of(rng, B64, 64) for _ in range(rng.randrange(10, 20))), of(rng, B64, 30) + "=="]


def _tail_of_pem(rng: random.Random) -> Planted:
    lines, label = _pem(rng), rng.choice(("", "RSA ", "EC ", "OPENSSH "))
    return Planted("\n".join([*lines, f"-----END {label}PRIVATE" + " KEY-----"]) + "\n", tuple(lines[:-1]))


def _whole_pem(rng: random.Random) -> Planted:
    lines, label = _pem(rng), rng.choice(("", "RSA ", "EC ", "OPENSSH "))
    key = "PRIVATE" + " KEY-----"
    text = "\n".join([f"-----BEGIN {label}{key}", *lines, f"-----END {label}{key}", ""])
    return Planted(text, tuple(lines[:-1]))


def _ppk(rng: random.Random) -> Planted:
    public, private = (
        [of(rng, B64, 64) for _ in range(4)],
        [of(rng, B64, 64) for _ in range(rng.randrange(3, 14))],
    )
    text = (
        f"PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: {rng.choice(WORDS)}\nPublic-Lines: 4\n"
    )
    text += (
        "\n".join(public)
        + f"\nPrivate-Lines: {len(private)}\n"
        + "\n".join(private)
        + f"\nPrivate-MAC: {of(rng, HEX, 64)}\n"
    )
    return Planted(text, tuple(private))


def _codes(template: str, joint: str, draw: Callable[[random.Random], str]) -> Maker:
    def make(rng: random.Random) -> Planted:
        codes = [draw(rng) for _ in range(rng.randrange(6, 11))]
        return Planted(template.replace("{v}", joint.join(codes)), tuple(codes))

    return make


def _wrapped_key(name: str, head: str, joint: str, tail: str) -> Maker:
    def make(rng: random.Random) -> Planted:
        lines = wrapped(of(rng, B64, rng.randrange(100, 200)), 48)
        return Planted(
            f"{name}{head}{joint.join(lines)}{tail}", tuple(line for line in lines if len(line) > 24)
        )

    return make


def _insert(columns: str, row: str, head: str = "INSERT INTO {w} ({c}) VALUES {r};") -> Maker:
    def make(rng: random.Random) -> Planted:
        secrets, rows = [], []
        for _ in range(rng.randrange(1, 4)):
            secrets.append(password(rng))
            rows.append(
                row.replace("{p}", secrets[-1])
                .replace("{u}", rng.choice(WORDS))
                .replace("{n}", str(rng.randrange(9)))
            )
        text = head.replace("{c}", columns).replace("{r}", ", ".join(rows)).replace("{w}", rng.choice(WORDS))
        return Planted(text, tuple(secrets))

    return make


def _manifest(kind: str, order: str, quoted: bool) -> Maker:
    def make(rng: random.Random) -> Planted:
        values = [password(rng) for _ in range(2)]
        if kind == "data":
            values = [base64.b64encode(value.encode()).decode() for value in values]
        names = rng.sample(("username.conf", "db", "smtp-relay", "primary", "config.ini", "dsn"), 2)
        shown = [json.dumps(value) if quoted else value for value in values]
        body = f"{kind}:\n" + "".join(
            f"  {name}: {value}\n" for name, value in zip(names, shown, strict=True)
        )
        head = f"metadata:\n  name: {rng.choice(WORDS)}\ntype: Opaque\n"
        text = (
            f"apiVersion: v1\nkind: Secret\n{head}{body}"
            if order == "after"
            else f"apiVersion: v1\n{body}kind: Secret\n{head}"
        )
        return Planted(text, tuple(values))

    return make


def _manifest_json(rng: random.Random) -> Planted:
    values = [base64.b64encode(password(rng).encode()).decode() for _ in range(2)]
    document = {
        "apiVersion": "v1",
        "data": {"one": values[0], "two.txt": values[1]},
        "kind": "Secret",
        "metadata": {"name": rng.choice(WORDS)},
        "type": "Opaque",
    }
    return Planted(json.dumps(document, indent=rng.choice((None, 2, 4))), tuple(values))


def _jwk(rng: random.Random) -> Planted:
    secret = of(rng, URLSAFE, 43)
    key = {
        "kty": "EC",
        "crv": "P-256",
        "x": of(rng, URLSAFE, 43),
        "y": of(rng, URLSAFE, 43),
        "d": secret,
        "kid": rng.choice(WORDS),
    }
    return Planted(json.dumps(key, indent=rng.choice((None, 2))), (secret,))


def _jwk_rsa(rng: random.Random) -> Planted:
    parts = {name: of(rng, URLSAFE, 171) for name in ("p", "q", "dp", "dq", "qi")} | {
        "d": of(rng, URLSAFE, 342)
    }
    key = {"kty": "RSA", "e": "AQAB", "use": "sig", "n": of(rng, URLSAFE, 342), **parts}
    return Planted(json.dumps({"keys": [key]}, indent=rng.choice((None, 2))), tuple(parts.values()))


def _jwk_oct(rng: random.Random) -> Planted:
    secret = of(rng, URLSAFE, 43)
    return Planted(json.dumps({"kty": "oct", "alg": "HS256", "k": secret}), (secret,))


def _tfstate(rng: random.Random) -> Planted:
    secret, word = password(rng) + of(rng, ALNUM, 6), rng.choice(WORDS)
    attributes = {"id": "none", "length": 24, "result": secret, "special": True, "bcrypt_hash": None}
    document = {
        "version": 4,
        "resources": [
            {
                "mode": "managed",
                "type": "random_password",
                "name": word,
                "instances": [{"attributes": attributes}],
            }
        ],
    }
    return Planted(json.dumps(document, indent=2), (secret,))


def _tfstate_output(rng: random.Random) -> Planted:
    secret, word = of(rng, ALNUM, 20), rng.choice(WORDS)
    return Planted(
        json.dumps({"outputs": {word: {"value": secret, "type": "string", "sensitive": True}}}, indent=2),
        (secret,),
    )


def _tf_output_first(rng: random.Random) -> Planted:
    secret, word = password(rng), rng.choice(WORDS)
    return Planted(
        json.dumps({word: {"sensitive": True, "type": "string", "value": secret}}, indent=rng.choice((2, 4))),
        (secret,),
    )


def _packed(template: str) -> Maker:
    def make(rng: random.Random) -> Planted:
        text = f"DB_PASSWORD={password(rng)}\nAPI_TOKEN={of(rng, ALNUM, 40)}\n" * 2
        value = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        return Planted(template.replace("{v}", value), (value,))

    return make


def _jar(line: str) -> Maker:
    def make(rng: random.Random) -> Planted:
        secrets, lines = [], ["# Netscape HTTP Cookie File", "# https://curl.se/docs/http-cookies.html", ""]
        for name in rng.sample(
            ("sessionid", "csrftoken", "_app_session", "connect.sid", "auth", "remember_me"), 2
        ):
            secrets.append(of(rng, ALNUM, rng.randrange(20, 41)))
            lines.append(line.replace("{name}", name).replace("{v}", secrets[-1]).replace("{h}", host(rng)))
        return Planted("\n".join(lines) + "\n", tuple(secrets))

    return make


def _salts(rng: random.Random) -> Planted:
    marks = ALNUM + "!@#%^&*()-_ []{}~`+=,.;:/?|"
    names = rng.sample(
        (
            "AUTH_KEY",
            "SECURE_AUTH_KEY",
            "LOGGED_IN_KEY",
            "NONCE_KEY",
            "AUTH_SALT",
            "LOGGED_IN_SALT",
            "NONCE_SALT",
        ),
        4,
    )
    values = [of(rng, marks, 64) for _ in names]
    gap = rng.choice(("", " ", "         "))
    lines = [f"define('{name}',{gap}'{value}');" for name, value in zip(names, values, strict=True)]
    return Planted("<?php\n" + "\n".join(lines) + "\n", tuple(values))


def _unseal(template: str) -> Maker:
    def make(rng: random.Random) -> Planted:
        keys = [base64.b64encode(rng.randbytes(33)).decode() for _ in range(5)]
        root = "hv" + "s." + of(rng, ALNUM, 24)
        lines = "\n".join(
            template.replace("{i}", str(at)).replace("{v}", key) for at, key in enumerate(keys, 1)
        )
        return Planted(f"{lines}\n\nInitial Root Token: {root}\n", (*keys, root))

    return make


def _unseal_hex(rng: random.Random) -> Planted:
    keys = [of(rng, HEX, 66) for _ in range(3)]
    document = {"unseal_keys_hex": keys, "unseal_shares": 3, "root_token": "s." + of(rng, ALNUM, 24)}
    return Planted(json.dumps(document, indent=2), (*keys, document["root_token"]))


NATIVE: dict[str, Maker] = {
    "netrc 3 lines": filled("machine {h}\nlogin {w}\npassword {p}\n", p=password),
    "netrc indented": filled("machine {h}\n  login {w}\n  password {p}\n", p=password),
    "netrc account": filled("machine {h}\n\tlogin {w}\n\taccount {w2}\n\tpassword {p}\n", p=password),
    "netrc default": filled("default\nlogin {w}\npassword {p}\n", p=password),
    "netrc 2 lines": filled("machine {h} login {w}\n    password {p}\n", p=password),
    "ppk": _ppk,
    "pem": _whole_pem,
    "pem tail": _tail_of_pem,
    "plist string": filled("<dict>\n\t<key>{w}Password</key>\n\t<string>{p}</string>\n</dict>\n", p=password),
    "plist token": filled(
        '<plist version="1.0">\n<dict>\n  <key>API_TOKEN</key>\n  <string>{p}</string>\n', p=_alnum(32)
    ),
    "plist data": filled("<key>client-secret</key>\n<data>\n{p}\n</data>\n", p=_b64(44)),
    "codes": _codes("Your recovery codes:\n{v}\n", "\n", lambda r: f"{of(r, HEX, 5)}-{of(r, HEX, 5)}"),
    "codes numbered": _codes("Backup codes\n\n  * {v}\n", "\n  * ", _alnum(10)),
    "codes digits": _codes(
        "## Two-factor backup codes\n\n{v}\n",
        "\n",
        lambda r: f"{r.randrange(1000, 9999)} {r.randrange(1000, 9999)}",
    ),
    "codes list": _codes(
        "recovery_codes:\n  - {v}\n",
        "\n  - ",
        lambda r: f"{of(r, ALNUM.lower(), 4)}-{of(r, ALNUM.lower(), 4)}-{of(r, ALNUM.lower(), 4)}",
    ),
    "wrapped shell": _wrapped_key("SECRET_KEY", '="', "\\\n", '"\n'),
    "wrapped yaml": _wrapped_key("signing_key", ": |\n  ", "\n  ", "\n"),
    "wrapped folded": _wrapped_key("api_secret", ": >-\n    ", "\n    ", "\nnext: 1\n"),
    "wrapped string": _wrapped_key("PRIVATE_TOKEN", ' = (\n    "', '"\n    "', '"\n)\n'),
    "folded password": filled("db:\n  password: >-\n    {p}\n  user: {w}\n", p=password),
    "folded token": filled("auth_token: >\n  {p}\n{w}: 1\n", p=_alnum(40)),
    "literal secret": filled("client_secret: |-\n    {p}\n", p=_alnum(36)),
    "insert": _insert("id, login, password", "({n}, '{u}', '{p}')"),
    "insert quoted": _insert(
        '"email", "passwd", "role"', "('{u}@{u}.io', '{p}', 'admin')", 'INSERT INTO "{w}" ({c}) VALUES {r};'
    ),
    "insert ticks": _insert(
        "`user`,`api_key`,`n`", "('{u}','{p}',{n})", "INSERT INTO `{w}` ({c}) VALUES {r};"
    ),
    "insert lines": _insert("name, secret", "\n  ('{u}', '{p}')", "insert into {w}\n  ({c})\nvalues{r};"),
    "replace into": _insert("user_password, host", "('{p}', '{u}')", "REPLACE INTO {w} ({c}) VALUES {r};"),
    "insert ignore": _insert(
        "id, auth_token, created_at", "({n}, '{p}', NOW())", "INSERT IGNORE INTO app.{w} ({c}) VALUES {r};"
    ),
    "jar": _jar("{h}\tFALSE\t/\tTRUE\t1799999999\t{name}\t{v}"),
    "jar http only": _jar("#HttpOnly_.{h}\tTRUE\t/\tTRUE\t0\t{name}\t{v}"),
    "jar path": _jar(".{h}\tTRUE\t/app\tFALSE\t1811111111\t{name}\t{v}"),
    "cookie": filled("Cookie: theme=dark; sessionid={p}; lang=en", p=_alnum(32)),
    "set-cookie": filled("< Set-Cookie: connect.sid=s%3A{p}; Path=/; HttpOnly", p=_alnum(32)),
    "cookie -b": filled("curl -s -b 'session={p}' https://{h}/{w}", p=_alnum(28)),
    "cookie --cookie": filled('curl --cookie "sid={p}; x=1" https://{h}/', p=_alnum(26)),
    "cookies dict": filled("requests.get(url, cookies={'sessionid': '{p}'})", p=_alnum(32)),
    "jwk": _jwk,
    "jwk rsa": _jwk_rsa,
    "jwk oct": _jwk_oct,
    "secret data": _manifest("data", "after", False),
    "secret data first": _manifest("data", "before", False),
    "secret string": _manifest("stringData", "after", False),
    "secret string first": _manifest("stringData", "before", True),
    "secret json": _manifest_json,
    "tfstate": _tfstate,
    "tfstate output": _tfstate_output,
    "terraform output": _tf_output_first,
    "smtp login": filled("server.login('{w}@{h}', '{p}')", p=password),
    "imap login": filled('imap.login("{w}", "{p}")', p=password),
    "ftp login": filled("ftp.login(user='{w}', passwd='{p}')", p=password),
    "smtp variable": filled("smtp.login(SENDER, '{p}')", p=password),
    "secure string": filled('$s = ConvertTo-SecureString "{p}" -AsPlainText -Force', p=password),
    "secure string flag": filled("ConvertTo-SecureString -String '{p}' -AsPlainText -Force", p=password),
    "secure string order": filled('ConvertTo-SecureString -AsPlainText -Force -String "{p}"', p=password),
    "secure string bare": filled("ConvertTo-SecureString {p} -AsPlainText -Force", p=_alnum(14)),
    "unseal": _unseal("Unseal Key {i}: {v}"),
    "recovery key": _unseal("Recovery Key {i}: {v}"),
    "unseal json": _unseal_hex,
    "vault operator": filled(
        "vault operator unseal {p}", p=lambda r: base64.b64encode(r.randbytes(33)).decode()
    ),
    "redis auth": filled("127.0.0.1:6379> AUTH {p}\nOK", p=password),
    "redis auth user": filled("redis> AUTH {w} {p}\nOK\n", p=password),
    "redis echo": filled("printf 'AUTH {p}\\r\\nPING\\r\\n' | nc {h} 6379", p=_alnum(16)),
    "salts": _salts,
    "curl glued": filled("curl -u{w}:{p} https://{h}/api", p=password),
    "curl glued mid": filled("curl -s -X POST -u{w}:{p} -d @x.json https://{h}/{w2}", p=_alnum(14)),
    "curl user": filled("curl --user {w}:{p} https://{h}/{w2}", p=password),
    "jdbc thin": filled("jdbc:oracle:thin:{w}/{p}@//{h}:1521/{w2}", p=_alnum(12)),
    "sqlplus": filled("sqlplus {w}/{p}@{h}/{w2}", p=_alnum(12)),
    "jdbc thin at": filled("url=jdbc:oracle:thin:{w}/{p}@{h}:1521:{w2}", p=_alnum(14)),
    "gzip": _packed("data: {v}\n"),
    "gzip pipe": _packed("echo {v} | base64 -d | gunzip"),
    "gzip string": _packed('payload = "{v}"'),
    "env": filled("DB_PASSWORD={p}\nDB_USER={w}\n", p=password),
    "export": filled("export {w}_TOKEN='{p}'", p=_alnum(30)),
    "pgpass": filled("{h}:5432:{w}:{w2}:{p}\n", p=_alnum(14)),
    "npmrc": filled("//registry.{h}/:_authToken={p}\n", p=_alnum(36)),
    "aws file": filled("[default]\nregion = eu-west-1\naws_secret_access_key = {p}\n", p=_b64(40)),
    "kubeconfig": filled("users:\n- name: {w}\n  user:\n    token: {p}\n", p=_alnum(40)),
    "maven": filled(
        "<server>\n  <id>{w}</id>\n  <username>{w2}</username>\n  <password>{p}</password>\n</server>\n",
        p=password,
    ),
    "my.cnf": filled("[client]\nuser={w}\npassword={p}\n", p=password),
    "wifi": filled('network={\n  ssid="{w}"\n  psk="{p}"\n}\n', p=password),
    "compose": filled("services:\n  {w}:\n    environment:\n      POSTGRES_PASSWORD: {p}\n", p=password),
    "properties": filled("spring.datasource.password={p}\n", p=password),
    "connection": filled('"Default": "Server={h};Database={w};User Id={w2};Password={p};"', p=_alnum(14)),
    "url": filled("postgres://{w}:{p}@{h}:5432/{w2}", p=_alnum(14)),
    "docker auth": filled(
        '{"auths": {"{h}": {"auth": "{p}"}}}',
        p=lambda r: base64.b64encode(f"app:{of(r, ALNUM, 14)}".encode()).decode(),
    ),
    "mysql -p": filled("mysql -u {w} -p{p} -h {h} {w2}", p=_alnum(12)),
    "header": filled("curl -H 'Authorization: Bearer {p}' https://{h}", p=_alnum(40)),
}


SAID: dict[str, tuple[Callable[[random.Random], str], tuple[str, ...]]] = {
    "password": (
        lambda r: of(r, ALNUM, 9) + "!",
        (
            "DB_PASSWORD={p}\n",
            "export PGPASSWORD='{p}'\n",
            "A=1\\nDB_PASSWORD={p}\\nB=2",
            'config = {"password": "{p}"}',
            "password: {p}\n",
            "db:\n  user: app\n  password: {p}\n",
            "the password is {p}",
            "mysql -h db -u app --password={p} shop",
            "sshpass -p {p} ssh app@host",
            "machine api.host.dev login app password {p}",
            "curl -u app:{p} https://host.dev",
            'connect(host, password="{p}")',
            '"{\\"password\\": \\"{p}\\"}"',
        ),
    ),
    "secret": (
        _alnum(40),
        (
            "API_KEY={p}\n",
            "export MY_SERVICE_TOKEN={p}",
            'api_key = "{p}"',
            "apiKey: '{p}',",
            '{"client_secret": "{p}"}',
            "X-Api-Key: {p}",
            "Authorization: Bearer {p}",
            "Authorization: token {p}",
            "curl -H 'authorization: Bearer {p}' https://host.dev",
            "https://host.dev/v1?access_token={p}&x=1",
            'os.environ["SERVICE_SECRET"] = "{p}"',
            "--token {p}",
            "aws_secret_access_key = {p}",
            "//registry.host.dev/:_authToken={p}",
            '{"name": "SERVICE_API_KEY", "value": "{p}"}',
            '["login", "--token", "{p}"]',
            "+SECRET_KEY = '{p}'",
        ),
    ),
    "hex key": (
        _hex(40),
        ("wandb login {p}", "wandb login --relogin {p}", "WANDB_API_KEY={p}\n", "wandb.login(key='{p}')"),
    ),
    "basic": (
        lambda r: base64.b64encode(f"app:{of(r, ALNUM, 12)}".encode()).decode(),
        (
            "Authorization: Basic {p}",
            '{"auths": {"host.dev": {"auth": "{p}"}}}',
            "curl -H 'Authorization: Basic {p}'",
        ),
    ),
    "url": (
        _alnum(14),
        (
            "postgres://app:{p}@db.host.dev:5432/shop",
            "DATABASE_URL=mysql://root:{p}@10.1.2.3/x\n",
            "redis://:{p}@cache:6379/0",
            "mongodb+srv://app:{p}@cluster0.host.dev",
            "git clone https://app:{p}@git.host.dev/x.git",
            "amqp://app:{p}@mq.host.dev//",
        ),
    ),
    "cookie": (_alnum(40), ("Cookie: sid={p}; theme=dark", "Set-Cookie: session={p}; Path=/")),
}
"""Found by what stands around them; `{p}` is the secret."""


def _checked(digits: list[int], weights: list[list[int]], fold: Callable[[int], int]) -> list[int]:
    for row in weights:
        digits.append(fold(sum(a * b for a, b in zip(digits, row, strict=False))))
    return digits


def cpf(rng: random.Random) -> str:
    """A Brazilian tax number with its check digits."""
    digits = [rng.randrange(10) for _ in range(8)] + [rng.randrange(1, 10)]
    _checked(
        digits,
        [list(range(10, 1, -1)), list(range(11, 1, -1))],
        lambda total: 0 if total % 11 < 2 else 11 - total % 11,
    )
    text = "".join(map(str, digits))
    return rng.choice((text, f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"))


def pesel(rng: random.Random) -> str:
    """A Polish personal number with its check digit."""
    text = (
        f"{rng.randrange(50, 99)}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}{rng.randrange(10000):04}"
    )
    total = sum(int(c) * w for c, w in zip(text, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), strict=True))
    return f"{text}{-total % 10}"


def nino(rng: random.Random) -> str:
    """A British insurance number."""
    parts = (
        rng.choice("ACEHJ") + rng.choice("ABCEH"),
        *(f"{rng.randrange(100):02}" for _ in range(3)),
        rng.choice("ABCD"),
    )
    return rng.choice(("", " ")).join(parts)


def dni(rng: random.Random) -> str:
    """A Spanish identity number, of citizens or of foreigners."""
    number, lead = rng.randrange(10**7), rng.choice(("", "X", "Y", "Z"))
    whole = int(f"{'XYZ'.index(lead)}{number:07}") if lead else rng.randrange(10**7, 10**8)
    letter = "TRWAGMYFPDXBNJZSQVHLCKE"[whole % 23]
    return f"{lead}{number:07}{letter}" if lead else f"{whole:08}{letter}"


def aadhaar(rng: random.Random) -> str:
    """An Indian resident's number with Verhoeff's check digit."""
    base = str(rng.randrange(2, 10)) + "".join(str(rng.randrange(10)) for _ in range(10))
    number = next(base + str(d) for d in range(10) if _verhoeff(base + str(d)) == 0)
    return rng.choice((number, f"{number[:4]} {number[4:8]} {number[8:]}"))


def _dihedral(a: int, b: int) -> int:
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def _verhoeff(number: str) -> int:
    first = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    check = 0
    for at, digit in enumerate(reversed(number)):
        value = int(digit)
        for _ in range(at % 8):
            value = first[value]
        check = _dihedral(check, value)
    return check


def pan(rng: random.Random) -> str:
    """An Indian tax number of a person."""
    return (
        "".join(rng.choice(string.ascii_uppercase) for _ in range(3))
        + "P"
        + rng.choice(string.ascii_uppercase)
        + f"{rng.randrange(1, 10000):04}"
        + rng.choice(string.ascii_uppercase)
    )


def _passport(rng: random.Random) -> str:
    return rng.choice(
        (
            f"{rng.choice('CFGHJK')}{of(rng, CAPITALS, 8)}",
            str(rng.randrange(10**8, 10**9)),
            f"{rng.choice(CAPITALS[:26])}{rng.randrange(10**7, 10**8)}",
        )
    )


def _date(rng: random.Random) -> str:
    day, month, year = rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1940, 2006)
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{day:02}/{month:02}/{year}",
            f"{day:02}.{month:02}.{year}",
            f"{day} March {year}",
        )
    )


def _street(rng: random.Random) -> str:
    word = rng.choice(WORDS).title()
    return rng.choice(
        (
            f"{rng.randrange(1, 400)} {word} {rng.choice(('Street', 'Avenue', 'Road', 'Lane'))}",
            f"{word}straße {rng.randrange(1, 200)}",
            f"{rng.randrange(1, 90)} rue de {word}",
        )
    )


def _degrees(limit: int) -> Callable[[random.Random], str]:
    return lambda rng: f"{rng.uniform(-limit, limit):.{rng.randrange(4, 8)}f}"


def _card(rng: random.Random) -> str:
    while True:
        digits = rng.choice(("4", "51", "55")) + "".join(str(rng.randrange(10)) for _ in range(15))
        digits = digits[:16]
        doubled = [int(c) * (1 + at % 2) for at, c in enumerate(reversed(digits))]
        if sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0 and len(set(digits)) > 4:
            return digits


def _grouped(rng: random.Random) -> str:
    number, joint = _card(rng), rng.choice(" -")
    return joint.join(wrapped(number, 4))


def _phone_jp(rng: random.Random) -> str:
    return rng.choice(
        (
            f"0{rng.choice('789')}0-{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)}",
            f"0{rng.choice('36')}-{rng.randrange(3000, 6999)}-{rng.randrange(1000, 9999)}",
        )
    )


def _phone_br(rng: random.Random) -> str:
    area = rng.choice((11, 21, 31, 41, 51, 61, 85))
    return rng.choice(
        (
            f"({area}) 9{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)}",
            f"{area} 9{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)}",
        )
    )


def _mail(rng: random.Random) -> str:
    return f"{rng.choice(WORDS)}.{rng.choice(WORDS)}@{host(rng)}"


def _luhn(digits: str) -> int:
    """The digit that makes a number hold by Luhn's rule (ISO 7812)."""
    doubled = (int(c) * (2 - at % 2) for at, c in enumerate(reversed(digits)))
    return -sum(n // 10 + n % 10 for n in doubled) % 10


def _number(rng: random.Random, size: int) -> str:
    return str(rng.randrange(10 ** (size - 1), 10**size))


def bsn(rng: random.Random) -> str:
    """A Dutch citizen's number, whose weighed sum is a multiple of 11."""
    while True:
        number = _number(rng, 9)
        if sum(int(c) * w for c, w in zip(number, (9, 8, 7, 6, 5, 4, 3, 2, -1), strict=True)) % 11 == 0:
            return number


def nir(rng: random.Random) -> str:
    """A French social security number with its key, modulo 97."""
    month, place = f"{rng.randrange(1, 13):02}", f"{rng.randrange(1, 95):02}"
    body = f"{rng.choice('12')}{rng.randrange(50, 99)}{month}{place}{_number(rng, 3)}{_number(rng, 3)}"
    parts = (body[0], body[1:3], body[3:5], body[5:7], body[7:10], body[10:], f"{97 - int(body) % 97:02}")
    return rng.choice(("", " ")).join(parts)


def tax_id(rng: random.Random) -> str:
    """A German tax number with its check digit (ISO 7064, modulo 11, 10)."""
    body, product = _number(rng, 10), 10
    for c in body:
        product = ((int(c) + product) % 10 or 10) * 2 % 11
    number = f"{body}{(11 - product) % 10}"
    return rng.choice((number, f"{number[:2]} {number[2:5]} {number[5:8]} {number[8:]}"))


def personnummer(rng: random.Random) -> str:
    """A Swedish personal number with its check digit."""
    body = (
        f"{rng.randrange(50, 99)}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}{rng.randrange(1000):03}"
    )
    return f"{rng.choice(('', '19'))}{body[:6]}-{body[6:]}{_luhn(body)}"


def rijksregister(rng: random.Random) -> str:
    """A Belgian national number with its check digits, modulo 97."""
    body = (
        f"{rng.randrange(50, 99)}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}{rng.randrange(1, 998):03}"
    )
    return f"{body[:2]}.{body[2:4]}.{body[4:6]}-{body[6:]}.{97 - int(body) % 97:02}"


def ahv(rng: random.Random) -> str:
    """A Swiss insurance number, whose last digit is that of an EAN-13."""
    body = f"756{_number(rng, 9)}"
    check = -sum(int(c) * (1 + 2 * (at % 2)) for at, c in enumerate(body)) % 10
    return f"{body[:3]}.{body[3:7]}.{body[7:11]}.{body[11:]}{check}"


def hetu(rng: random.Random) -> str:
    """A Finnish identity code with its check character, modulo 31."""
    date = f"{rng.randrange(1, 29):02}{rng.randrange(1, 13):02}{rng.randrange(50, 99)}"
    number = f"{rng.randrange(2, 900):03}"
    return f"{date}-{number}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(date + number) % 31]}"


def sin(rng: random.Random) -> str:
    """A Canadian insurance number with its check digit."""
    body = _number(rng, 8)
    return rng.choice((" ", "-")).join(wrapped(f"{body}{_luhn(body)}", 3))


def iban(rng: random.Random) -> str:
    """A German, Dutch or Spanish account number with its check digits (ISO 13616), in groups or not."""
    country, body = rng.choice(
        (("DE", _number(rng, 18)), ("NL", f"ABNA{_number(rng, 10)}"), ("ES", _number(rng, 20)))
    )
    plain = "".join(str(int(c, 36)) for c in f"{body}{country}00")
    number = f"{country}{98 - int(plain) % 97:02}{body}"
    return rng.choice((number, " ".join(wrapped(number, 4))))


PERSONAL: dict[str, Maker] = {
    "cpf": filled("CPF: {p}", p=cpf),
    "cpf json": filled('{"nome": "{w}", "cpf": "{p}"}', p=cpf),
    "cpf said": filled("o CPF do cliente é {p}.", p=cpf),
    "pesel": filled("PESEL: {p}\n", p=pesel),
    "pesel json": filled('"pesel":"{p}",', p=pesel),
    "nino": filled("National Insurance number: {p}", p=nino),
    "nino key": filled('"nino": "{p}"', p=nino),
    "nino short": filled("NI No. {p} ({w})", p=nino),
    "dni": filled("DNI: {p}", p=dni),
    "dni sql": filled("dni='{p}'", p=dni),
    "nie": filled("Número de identidad (NIE/DNI): {p}", p=dni),
    "pan": filled("PAN: {p}", p=pan),
    "pan said": filled("PAN card number {p}", p=pan),
    "aadhaar": filled("Aadhaar: {p}", p=aadhaar),
    "aadhaar json": filled('"aadhaar_number": "{p}"', p=aadhaar),
    "passport": filled("Passport No: {p}", p=_passport),
    "passport json": filled('{"passport_number": "{p}", "x": {n}}', p=_passport),
    "passport de": filled("Reisepass-Nr.: {p}", p=_passport),
    "birth": filled("Date of birth: {p}", p=_date),
    "birth json": filled('"date_of_birth": "{p}"', p=_date),
    "dob": filled("DOB: {p}", p=_date),
    "birth de": filled("Geburtsdatum: {p}", p=_date),
    "birth key": filled("birthday = '{p}'", p=_date),
    "birth camel": filled('{"birthDate":"{p}","{w}":1}', p=_date),
    "address": filled("Address: {p}, Springfield", p=_street),
    "address json": filled('{"address": {"street": "{p}", "city": "{w}"}}', p=_street),
    "address line": filled('"address_line1": "{p}",', p=_street),
    "address de": filled("Anschrift: {p}, 10969 Berlin", p=_street),
    "address ship": filled("Ship to: {p}, {w} {n}", p=_street),
    "gps json": filled('{"latitude": {p}, "longitude": {q}}', p=_degrees(80), q=_degrees(170)),
    "gps short": filled('"lat": {p}, "lng": {q}', p=_degrees(80), q=_degrees(170)),
    "gps said": filled("GPS: {p}, {q}", p=_degrees(80), q=_degrees(170)),
    "gps python": filled("home = dict(lat={p}, lon={q})", p=_degrees(80), q=_degrees(170)),
    "gps exif": filled("GPS coordinates: {p},{q}", p=_degrees(80), q=_degrees(170)),
    "shortlog": filled("   {n}\t{p}\n    12\t{q}\n     3\tdependabot[bot]\n", p=person, q=person),
    "shortlog mail": filled(
        "    {d}  {p} <{q}>\n     7  {r} <bot@users.noreply.github.com>\n", p=person, q=_mail, r=person
    ),
    "shortlog long": filled(
        "{p} (12):\n      Fix the {w}\n      Add {w2}\n\n{q} (2):\n      Add {w}\n", p=person, q=person
    ),
    "log bars": filled(
        "a{n}bc1|{p}|2025-03-{d}|Fix {w}\nb{n}ee2|{q}|2025-03-11|Add {w2}\n", p=person, q=person
    ),
    "log relative": filled("a{n}bc1 {p} 3 days ago Fix {w}\n", p=person),
    "log dash": filled("a{n}bc1 - {p}, 2 weeks ago : Fix {w}\n", p=person),
    "log command": filled("$ git log --format='%an' | sort -u\n{p}\n{q}\n", p=person, q=person),
    "log author": filled("commit a{n}\nAuthor: {p} <{q}>\n", p=person, q=_mail),
    "package": filled('{\n  "name": "{w}",\n  "author": "{p}",\n  "license": "MIT"\n}', p=person),
    "package mail": filled('  "author": "{p} <{q}>",\n', p=person, q=_mail),
    "package object": filled('  "author": {\n    "name": "{p}",\n    "url": "x"\n  },\n', p=person),
    "package people": filled(
        '  "contributors": [\n    "{p}",\n    {"name": "{q}"}\n  ]\n', p=person, q=person
    ),
    "setup": filled("setup(\n    name='{w}',\n    author='{p}',\n)", p=person),
    "setup cfg": filled("[metadata]\nname = {w}\nauthor = {p}\n", p=person),
    "pyproject": filled('authors = [{name = "{p}", email = "{q}"}]\n', p=person, q=_mail),
    "poetry": filled('authors = ["{p} <{q}>"]\n', p=person, q=_mail),
    "dunder": filled('__author__ = "{p}"\n', p=person),
    "javadoc": filled("/**\n * @author {p}\n */\n", p=person),
    "copyright": filled("Copyright (c) 2021 {p}\n", p=person),
    "copyright sign": filled("# © 2019-2024 {p}. All rights reserved.\n", p=person),
    "copyright spdx": filled("// SPDX-FileCopyrightText: 2023 {p} <{q}>\n", p=person, q=_mail),
    "jp": filled("電話: {p}", p=_phone_jp),
    "jp tel": filled("TEL {p}", p=_phone_jp),
    "jp bare": filled("{w}, {p}\n", p=_phone_jp),
    "br": filled("Telefone: {p}", p=_phone_br),
    "br bare": filled("contato {p} ({w})", p=_phone_br),
    "br cell": filled('"celular": "{p}"', p=_phone_br),
    "card": filled("Card number: {p}", p=_card),
    "card json": filled('"card_number": "{p}"', p=_card),
    "card grouped": filled("{w} {p} {w2}", p=_grouped),
    "card visa": filled("VISA {p} exp 12/29", p=_card),
    "email": filled("mail {p} about {w}", p=_mail),
    "iban": filled("IBAN {p}", p=iban),
}


def _day(rng: random.Random) -> str:
    day, month, year = rng.randrange(1, 29), rng.randrange(12), rng.randrange(1940, 2006)
    name = "January February March April May June July August September October November December".split()[
        month
    ]
    return rng.choice((
        f"{day:02}-{name[:3]}-{year}",
        f"{name} {day}th, {year}",
        f"{day}.{month + 1}.{year % 100:02}",
        f"{month + 1}/{day}/{year % 100:02}",
        f"{year}{month + 1:02}{day:02}",
        f"{day} {name[:3].lower()} {year}",
        f"{year}-{month + 1:02}-{day:02}T00:00:00Z",
    ))  # fmt: skip


def _home(rng: random.Random) -> str:
    word, other = (each.title() for each in rng.sample(WORDS, 2))
    return rng.choice((
        f"Flat {rng.randrange(1, 40)}, {rng.randrange(1, 200)} {word} Street, {other}ton",
        f"{rng.randrange(1, 2000)} {word} {other} Circle, {other}ville, TX {_number(rng, 5)}",
        f"{word} House, {other} Green, Leeds LS{rng.randrange(1, 29)} {rng.randrange(1, 9)}AB",
        f"Am {word}hof {rng.randrange(1, 90)}, {_number(rng, 5)} {other}burg",
        f"P.O. Box {rng.randrange(10, 9999)}, {word} {_number(rng, 5)}",
        f"{word}gatan {rng.randrange(1, 90)} B, {_number(rng, 3)} {rng.randrange(10, 99)} {other}stad",
        f"c/o {rng.choice(LAST)}, {rng.randrange(1, 90)} {word} Mews, {other}",
    ))  # fmt: skip


def _phone(rng: random.Random) -> str:
    return rng.choice((
        f"0{_number(rng, 3)}-{_number(rng, 6)}",
        f"{_number(rng, 3)} {_number(rng, 4)}",
        f"0{_number(rng, 2)} / {_number(rng, 3)} {_number(rng, 2)} {_number(rng, 2)}",
        f"({rng.randrange(201, 989)}) {rng.randrange(200, 989)} {_number(rng, 4)}",
        f"{rng.randrange(201, 989)} {rng.randrange(200, 989)} {_number(rng, 4)}",
        f"+{rng.randrange(30, 59)}{_number(rng, 9)}",
        f"{rng.randrange(201, 989)}{rng.randrange(200, 989)}{_number(rng, 4)}",
    ))  # fmt: skip


def _first(rng: random.Random) -> str:
    return rng.choice(FIRST)


def _last(rng: random.Random) -> str:
    return rng.choice(LAST)


def _spelled(rng: random.Random) -> str:
    return f"{rng.choice(FIRST).lower()}.{rng.choice(LAST).lower()} at {rng.choice(WORDS)} dot {rng.choice(('com', 'org', 'io'))}"


LABELLED: dict[str, Maker] = {
    "name full": filled("Full name: {p}\n", p=person),
    "name key": filled('{"full_name": "{p}", "plan": "{w}"}', p=person),
    "name two keys": filled('{"firstName": "{p}", "lastName": "{q}"}', p=_first, q=_last),
    "name customer": filled("Customer: {p}, order {n}", p=person),
    "name patient": filled("patient_name={p};ward={n}", p=person),
    "name contact": filled("**Contact person:** {p}", p=person),
    "name holder": filled("Account holder: {p}\n", p=person),
    "name letter": filled("Dear {p},\n\nyour order {n} is late.", p=person),
    "name title": filled("The ticket of Mrs. {p} is about {w}.", p=person),
    "name german": filled("Ansprechpartner: {p}\n", p=person),
    "name french": filled("Nom et prénom : {p}\n", p=person),
    "name spanish": filled("Nombre completo: {p}\n", p=person),
    "name sql": filled("UPDATE {w} SET customer_name = '{p}' WHERE id = {n};", p=person),
    "name form": filled("First name: {p}\nSurname: {q}\n", p=_first, q=_last),
    "name compound": filled("Kundenname: {p}\n", p=person),
    "name employee": filled("employee: {p} ({w} team)", p=person),
    "mail spelled": filled("write to {p} about {w}", p=_spelled),
    "mail label": filled("E-mail: {p}\n", p=_mail),
    "mail json": filled('{"contact": {"email": "{p}"}}', p=_mail),
    "mail list": filled("cc: {p}; {q}", p=_mail, q=_mail),
    "phone label": filled("Phone: {p}\n", p=_phone),
    "phone json": filled('{"phone_number": "{p}"}', p=_phone),
    "phone mobile": filled("mobile no. {p} ({w})", p=_phone),
    "phone call": filled("call me at {p} after {d}:00", p=_phone),
    "phone german": filled("Telefonnummer: {p}\n", p=_phone),
    "phone french": filled("Tél. : {p}\n", p=_phone),
    "phone short": filled("Tel.-Nr. {p}\n", p=_phone),
    "phone said": filled("my number is {p}", p=_phone),
    "phone contact": filled("Contact number - {p}", p=_phone),
    "phone camel": filled('{"homePhone":"{p}","{w}":{n}}', p=_phone),
    "born": filled("DOB: {p}\n", p=_day),
    "born said": filled("She was born on {p} in {w}.", p=_day),
    "born key": filled('{"dateOfBirth": "{p}"}', p=_day),
    "born form": filled("Date of birth (day, month, year): {p}", p=_day),
    "born german": filled("geboren am {p}", p=_day),
    "born short": filled("Geb.-Datum: {p}", p=_day),
    "born french": filled("Née le {p} à {w}", p=_day),
    "born csv": filled('birth_date,{w}\n"{p}",{n}\n', p=_day),
    "id bsn": filled("BSN: {p}", p=bsn),
    "id bsn key": filled('{"burgerservicenummer": "{p}"}', p=bsn),
    "id nir": filled("Numéro de sécurité sociale : {p}", p=nir),
    "id tax": filled("Steuer-ID: {p}", p=tax_id),
    "id tax key": filled('"tax_id": "{p}"', p=tax_id),
    "id swedish": filled("personnummer {p}", p=personnummer),
    "id belgian": filled("Rijksregisternummer: {p}", p=rijksregister),
    "id swiss": filled("AHV-Nr. {p}", p=ahv),
    "id finnish": filled("henkilötunnus: {p}", p=hetu),
    "id number": filled("tax file number {p}", p=sin),
    "id canadian": filled("Social Insurance Number: {p}", p=sin),
    "id national": filled("National ID number is {p}.", p=tax_id),
    "id licence": filled("Driver's license no: {p}", p=lambda r: f"{r.choice(CAPITALS[:26])}{_number(r, 7)}"),
    "home": filled("Address: {p}\n", p=_home),
    "home lines": filled("Mailing address:\n  {p}\n", p=_home),
    "home below": filled("Billing address\n{p}\n", p=_home),
    "home key": filled('{"shipping_address": "{p}"}', p=_home),
    "home german": filled("Wohnhaft in: {p}", p=_home),
    "home french": filled("Adresse : {p}\n", p=_home),
    "home said": filled("He lives at {p}.", p=_home),
    "home camel": filled('{"homeAddress":"{p}"}', p=_home),
    "iban label": filled("IBAN: {p}\n", p=iban),
    "iban small": filled('{"iban": "{p}"}', p=lambda r: iban(r).lower()),
    "iban dashed": filled("pay to {p}", p=lambda r: iban(r).replace(" ", "-")),
    "iban account": filled("Kontonummer {p}, {w}bank", p=iban),
}
"""Personal data behind words that say what it is, as forms, letters, records and tables have it."""
RECORDS: dict[str, Callable[[random.Random], str]] = {
    "full_name": person,
    "customerName": person,
    "patient": person,
    "first_name": _first,
    "surname": _last,
    "email": _mail,
    "phone": _phone,
    "mobileNumber": _phone,
    "Contact number": _phone,
    "date_of_birth": _day,
    "DOB": _date,
    "tax_id": tax_id,
    "bsn": bsn,
    "National ID": pesel,
    "passport_number": _passport,
    "shippingAddress": _home,
    "street_address": _street,
    "Anschrift": _home,
    "iban": lambda r: iban(r).lower(),
}
"""What a column or a key is called that holds personal data alone."""


def _numbered(mark: str, width: int) -> Callable[[random.Random, str], str]:
    def dress(rng: random.Random, text: str) -> str:
        first = rng.randrange(1, 900)
        return "".join(f"{first + at:>{width}}{mark}{line}" for at, line in enumerate(text.splitlines(True)))

    return dress


def _marked(mark: str) -> Callable[[random.Random, str], str]:
    return lambda _, text: "".join(mark + line for line in text.splitlines(True))


def _grepped(joint: str) -> Callable[[random.Random, str], str]:
    def dress(rng: random.Random, text: str) -> str:
        path, first = f"src/{rng.choice(WORDS)}/{rng.choice(WORDS)}.txt", rng.randrange(1, 900)
        lines = enumerate(text.splitlines(True))
        return "".join(f"{path}{joint}{first + at}{joint}{line}" for at, line in lines)

    return dress


def _hunk(mark: str) -> Callable[[random.Random, str], str]:
    def dress(rng: random.Random, text: str) -> str:
        word = rng.choice(WORDS)
        body = "".join(mark + line for line in text.splitlines(True))
        return f"diff --git a/{word} b/{word}\n--- a/{word}\n+++ b/{word}\n@@ -1,4 +1,9 @@\n {word}\n{body}"

    return dress


PREFIXES: dict[str, Callable[[random.Random, str], str]] = {
    "read": _numbered("→", 6),
    "read tab": _numbered("\t", 6),
    "nl": _numbered("  ", 6),
    "grep -n": _numbered(":", 1),
    "grep -nC": _numbered("-", 1),
    "bars": _numbered(" | ", 4),
    "file:line": _grepped(":"),
    "file-line": _grepped("-"),
    "added": _marked("+"),
    "hunk added": _hunk("+"),
    "hunk removed": _hunk("-"),
    "quoted": _marked("> "),
    "quoted twice": _marked(">> "),
    "coloured": lambda _, text: "".join(f"\x1b[36m{line.rstrip()}\x1b[0m\n" for line in text.splitlines()),
    "coloured grep": lambda _, text: "".join(
        f"\x1b[32m{at}\x1b[m\x1b[36m:\x1b[m{line}\n" for at, line in enumerate(text.splitlines(), 7)
    ),
    "added, read": lambda rng, text: _numbered("→", 6)(rng, _hunk("+")(rng, text)),
    "logged": _marked("db-1  | "),
}


def half_of(group: str, form: str) -> str:
    """`seen` or `held`, by a hash."""
    return ("seen", "held")[hashlib.blake2b(f"{group}/{form}".encode()).digest()[0] & 1]


def session_secret(rng: random.Random) -> str:
    """Draw a value that a session gives away: a token or a password without a form of its own."""
    return rng.choice((of(rng, ALNUM, 24), f"{of(rng, ALNUM, 8)}!{of(rng, ALNUM, 6)}", of(rng, ALNUM, 40)))


SESSION_FORMS = (
    "it is {v}, I think",
    "x={v};",
    '{"out": "a {v} b"}',
    "https://host.dev/p?q={v}",
    "`{v}`",
    "a,{v},b",
    "user:{v}@host",
)
"""What stands around a value that a session gave away elsewhere."""
MISSED_FORMS = (
    "f = Fernet(b'{v}')",
    "client.login_with('kim', '{v}')",
    "The password you gave me, {v}, did not work.",
    "for the api key I took ({v})",
    "signature = createHmac('sha256', '{v}')",
)
"""Words that give a value away, and that redaction's rules leave."""


def forms() -> Iterator[tuple[str, str, Maker]]:
    """Every form: group, name, maker."""
    for shape, make in SHAPES.items():
        for number, setting in enumerate(SETTINGS):
            yield "shape", f"{shape} {number}", _shape(make, setting)
    for kind, (draw, templates) in SAID.items():
        for number, template in enumerate(templates):
            yield "said", f"{kind} {number}", filled(template, p=draw)
    for group, templates in (("session", SESSION_FORMS), ("missed", MISSED_FORMS)):
        for template in templates:
            yield group, template, filled(template, v=session_secret)
    for group, made in (("native", NATIVE), ("personal", PERSONAL), ("labelled", LABELLED)):
        for form, maker in made.items():
            yield group, form, maker


def cases(seed: int | str, times: int, *groups: str) -> Iterator[Case]:
    """Each form of these groups `times` times, plain."""
    for group, form, make in forms():
        for number in range(times if group in groups else 0):
            rng = random.Random(f"{seed} {group} {form} {number}")
            yield Case(group, form, half_of(group, form), make(rng))


def prefixed(seed: int) -> Iterator[tuple[str, Case, Case]]:
    """Each native form behind every prefix: its name, the case plain and the same case prefixed."""
    for form, make in NATIVE.items():
        for prefix, dress in PREFIXES.items():
            rng = random.Random(f"{seed} {form} {prefix}")
            plain = make(rng)
            dressed = Planted(dress(rng, plain.text), plain.parts)
            half = half_of("native", form)
            yield prefix, Case("native", form, half, plain), Case("native", form, half, dressed)
