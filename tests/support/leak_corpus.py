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
)


def _shape(make: Callable[[random.Random], str], setting: str) -> Maker:
    def made(rng: random.Random) -> Planted:
        value = make(rng)
        text = setting.replace("{v!}", f'"{value}"').replace("{v}", value)
        return Planted(filled(text)(rng).text, (value,))

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
    "iban": filled("IBAN DE{x}", x=lambda r: _iban(r)),
}


def _iban(rng: random.Random) -> str:
    body = "".join(str(rng.randrange(10)) for _ in range(18))
    return f"{98 - int(body + '131400') % 97:02}{body}"


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


def forms() -> Iterator[tuple[str, str, Maker]]:
    """Every form: group, name, maker."""
    for shape, make in SHAPES.items():
        for number, setting in enumerate(SETTINGS):
            yield "shape", f"{shape} {number}", _shape(make, setting)
    for group, made in (("native", NATIVE), ("personal", PERSONAL)):
        for form, maker in made.items():
            yield group, form, maker


def cases(seed: int, times: int) -> Iterator[Case]:
    """Each form `times` times, plain."""
    for group, form, make in forms():
        for number in range(times):
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


def session_secret(rng: random.Random) -> str:
    """Draw a value that a session gives away: a token or a password without a form of its own."""
    return rng.choice((of(rng, ALNUM, 24), f"{of(rng, ALNUM, 8)}!{of(rng, ALNUM, 6)}", of(rng, ALNUM, 40)))
