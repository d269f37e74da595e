"""Planted secrets of every kind, in every setting, are found; what is ordinary stays."""

import base64
import json
import random
import string
from collections import Counter
from collections.abc import Callable

import pytest
from leak_corpus import ALNUM, B64, HEX, URLSAFE, of

from tracemill.privacy.redaction.redactor import Redactor

UPPER = string.ascii_uppercase + "234567"


def _uuid(rng: random.Random) -> str:
    h = of(rng, HEX, 32)
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def _segment(value: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _jwt(rng: random.Random) -> str:
    return ".".join((_segment({"alg": "HS256"}), _segment({"sub": of(rng, HEX, 12)}), of(rng, URLSAFE, 43)))


def _discord(rng: random.Random) -> str:
    number = str(rng.randrange(10**17, 10**18)).encode()
    return ".".join(
        (base64.b64encode(number).decode().rstrip("="), of(rng, URLSAFE, 6), of(rng, URLSAFE, 38))
    )


# Found without any word around them. The prefixes are apart from the rest, so that no scanner of
# repositories takes this file for a leak.
BARE: dict[str, Callable[[random.Random], str]] = {
    "aws_key_id": lambda r: "AK" + "IA" + of(r, UPPER, 16),
    "google_key": lambda r: "AI" + "za" + of(r, URLSAFE, 35),
    "google_client_secret": lambda r: "GOC" + "SPX-" + of(r, URLSAFE, 28),
    "google_access_token": lambda r: "ya" + "29." + of(r, URLSAFE, 60),
    "azure_storage": lambda r: "Account" + "Key=" + of(r, ALNUM, 86) + "==",
    "digitalocean": lambda r: "dop" + "_v1_" + of(r, HEX, 64),
    "vault": lambda r: "hv" + "s." + of(r, URLSAFE, 24),
    "databricks": lambda r: "da" + "pi" + of(r, HEX, 32),
    "github_classic": lambda r: "gh" + "p_" + of(r, ALNUM, 36),
    "github_oauth": lambda r: "gh" + "o_" + of(r, ALNUM, 36),
    "github_server": lambda r: "gh" + "s_" + of(r, ALNUM, 36),
    "github_fine": lambda r: "github" + "_pat_" + of(r, ALNUM, 22) + "_" + of(r, ALNUM, 59),
    "gitlab": lambda r: "gl" + "pat-" + of(r, URLSAFE, 20),
    "bitbucket": lambda r: "AT" + "BB" + of(r, ALNUM, 32),
    "anthropic": lambda r: "sk-" + "ant-api03-" + of(r, URLSAFE, 93) + "AA",
    "openai_project": lambda r: "sk-" + "proj-" + of(r, URLSAFE, 74),
    "openai_legacy": lambda r: "sk" + "-" + of(r, ALNUM, 48),
    "openrouter": lambda r: "sk-" + "or-v1-" + of(r, HEX, 64),
    "deepseek": lambda r: "sk" + "-" + of(r, HEX, 32),
    "hugging_face": lambda r: "h" + "f_" + of(r, string.ascii_letters + "0123456789", 34),
    "groq": lambda r: "gs" + "k_" + of(r, ALNUM, 52),
    "xai": lambda r: "xa" + "i-" + of(r, ALNUM, 80),
    "perplexity": lambda r: "pp" + "lx-" + of(r, ALNUM, 48),
    "replicate": lambda r: "r" + "8_" + of(r, ALNUM, 37),
    "npm": lambda r: "np" + "m_" + of(r, ALNUM, 36),
    "pypi": lambda r: "py" + "pi-AgEIcHlwaS5vcmc" + of(r, URLSAFE, 120),
    "docker": lambda r: "dckr" + "_pat_" + of(r, URLSAFE, 27),
    "slack_bot": lambda r: (
        "xo" + f"xb-{r.randrange(10**11, 10**12)}-{r.randrange(10**12, 10**13)}-" + of(r, ALNUM, 24)
    ),
    "slack_webhook": lambda r: (
        "https://hooks.slack"
        + ".com/services/T"
        + of(r, UPPER, 10)
        + "/B"
        + of(r, UPPER, 10)
        + "/"
        + of(r, ALNUM, 24)
    ),
    "discord_token": _discord,
    "discord_webhook": lambda r: (
        "https://discord" + f".com/api/webhooks/{r.randrange(10**17, 10**18)}/" + of(r, URLSAFE, 68)
    ),
    "telegram": lambda r: f"{r.randrange(10**8, 10**10)}:" + "AA" + of(r, URLSAFE, 33),
    "twilio": lambda r: "S" + "K" + of(r, HEX, 32),
    "sendgrid": lambda r: "S" + "G." + of(r, URLSAFE, 22) + "." + of(r, URLSAFE, 43),
    "mailgun": lambda r: "ke" + "y-" + of(r, HEX, 32),
    "stripe": lambda r: "sk" + "_live_" + of(r, ALNUM, 24),
    "stripe_restricted": lambda r: "rk" + "_live_" + of(r, ALNUM, 24),
    "shopify": lambda r: "shp" + "at_" + of(r, HEX, 32),
    "linear": lambda r: "lin" + "_api_" + of(r, ALNUM, 40),
    "notion": lambda r: "nt" + "n_" + of(r, ALNUM, 46),
    "figma": lambda r: "fig" + "d_" + of(r, URLSAFE, 40),
    "supabase": lambda r: "sb" + "p_" + of(r, HEX, 40),
    "airtable": lambda r: "pa" + "t" + of(r, ALNUM, 14) + "." + of(r, HEX, 64),
    "newrelic": lambda r: "NR" + "AK-" + of(r, string.ascii_uppercase + string.digits, 27),
    "grafana": lambda r: "gl" + "sa_" + of(r, ALNUM, 32) + "_" + of(r, HEX, 8),
    "sentry": lambda r: "sntr" + "ys_" + of(r, ALNUM, 90),
    "jwt": _jwt,
}
SETTINGS: dict[str, Callable[[str], str]] = {
    "line": lambda s: f"first\n{s}\nlast",
    "prose": lambda s: f"I used {s}, and it worked.",
    "shell": lambda s: f"$ export X={s} && make deploy",
    "json": lambda s: json.dumps({"output": f"ok\n{s}\nbye"}),
    "json in text": lambda s: "result: " + json.dumps({"output": f"ok\n{s}\tbye"}) + " (exit 0)",
    "json twice": lambda s: json.dumps({"log": json.dumps({"line": f"ok\n{s}"})}),
    "diff": lambda s: f"-    x: old\n+    x: {s}\n",
    "code": lambda s: f'client = make("{s}", retries=3)\n',
    "numbered": lambda s: f"    12→value = '{s}'\n    13→\n",
    "colour": lambda s: f"\x1b[32m{s}\x1b[0m done",
    "query": lambda s: f"GET https://api.host.dev/v1?x={s}&page=2 200",
}
# Found by what stands around them; `{}` is the secret.
CONTEXT: dict[str, tuple[Callable[[random.Random], str], tuple[str, ...]]] = {
    "password": (
        lambda r: of(r, ALNUM, 9) + "!",
        (
            "DB_PASSWORD={}\n",
            "export PGPASSWORD='{}'\n",
            "A=1\\nDB_PASSWORD={}\\nB=2",
            'config = {{"password": "{}"}}',
            "password: {}\n",
            "db:\n  user: app\n  password: {}\n",
            "the password is {}",
            "mysql -h db -u app --password={} shop",
            "sshpass -p {} ssh app@host",
            "machine api.host.dev login app password {}",
            "curl -u app:{} https://host.dev",
            'connect(host, password="{}")',
            '"{{\\"password\\": \\"{}\\"}}"',
        ),
    ),
    "secret": (
        lambda r: of(r, ALNUM, 40),
        (
            "API_KEY={}\n",
            "export MY_SERVICE_TOKEN={}",
            'api_key = "{}"',
            "apiKey: '{}',",
            '{{"client_secret": "{}"}}',
            "X-Api-Key: {}",
            "Authorization: Bearer {}",
            "Authorization: token {}",
            "curl -H 'authorization: Bearer {}' https://host.dev",
            "https://host.dev/v1?access_token={}&x=1",
            'os.environ["SERVICE_SECRET"] = "{}"',
            "--token {}",
            "aws_secret_access_key = {}",
            "//registry.host.dev/:_authToken={}",
            '{{"name": "SERVICE_API_KEY", "value": "{}"}}',
            '["login", "--token", "{}"]',
            "+SECRET_KEY = '{}'",
        ),
    ),
    "hex key": (
        lambda r: of(r, HEX, 40),
        ("wandb login {}", "wandb login --relogin {}", "WANDB_API_KEY={}\n", "wandb.login(key='{}')"),
    ),
    "basic": (
        lambda r: base64.b64encode(f"app:{of(r, ALNUM, 12)}".encode()).decode(),
        (
            "Authorization: Basic {}",
            '{{"auths": {{"host.dev": {{"auth": "{}"}}}}}}',
            "curl -H 'Authorization: Basic {}'",
        ),
    ),
    "url": (
        lambda r: of(r, ALNUM, 14),
        (
            "postgres://app:{}@db.host.dev:5432/shop",
            "DATABASE_URL=mysql://root:{}@10.1.2.3/x\n",
            "redis://:{}@cache:6379/0",
            "mongodb+srv://app:{}@cluster0.host.dev",
            "git clone https://app:{}@git.host.dev/x.git",
            "amqp://app:{}@mq.host.dev//",
        ),
    ),
    "cookie": (lambda r: of(r, ALNUM, 40), ("Cookie: sid={}; theme=dark", "Set-Cookie: session={}; Path=/")),
}
PERSONAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "email": (
        "kim.larsen" + "@" + "northwind.io",
        ("mail {} now", "Author: <{}>", '"to": "{}"', "x\\n{}\\n"),
    ),
    "person": ("Kim Larsen", ("Author: {} <kim@northwind.io>", "Signed-off-by: {} <kim@northwind.io>")),
    "home": (
        "klarsen",
        (
            "/home/{}/x",
            "/Users/{}/x",
            r"C:\Users\{}\x",
            r"C:\\Users\\{}\\x",
            "~/.claude/projects/-Users-{}-x",
            "file:///home/{}/x",
            "/mnt/c/Users/{}/x",
        ),
    ),
    "ip": (
        "203." + "12.88.140",
        ("ssh app@{}", "listening on {}:8080", "host: {}", "64 bytes from {}: ttl=5"),
    ),
    "private ip": ("192.168." + "7.31", ("inet {}/24", "http://{}:3000", "addr {}")),
    "ip6": ("2a01:4f8:c0c:" + "9ab1::17", ("inet6 {} scope", "host {}")),
    "mac": ("3c:22:fb:" + "9a:01:7e", ("ether {} txq", "link/ether {}")),
    "phone": ("+1 415 " + "555 2671", ("call {}", '"phone": "{}"')),
    "phone us": ("(415) " + "555-2671", ("Tel: {}", "reach me at {}.")),
    "phone de": ("+49 30 " + "901820 12", ("Telefon {}",)),
    "host": ("kims-macbook", ("klarsen@{}:~/x$ ls", "[klarsen@{}: ~]")),
}


def _recall(seeds: int) -> tuple[Counter[str], Counter[str], list[str]]:
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    missed: list[str] = []
    redactor = Redactor(key=b"k" * 32)

    def put(kind: str, setting: str, secret: str, text: str) -> None:
        planted[kind] += 1
        core = secret.split("/")[-1].split("Key=")[-1]
        if core in redactor.redact_text(text)[0]:
            missed.append(f"{kind} in {setting}")
        else:
            found[kind] += 1

    for seed in range(seeds):
        for kind, make in BARE.items():
            for setting, dress in SETTINGS.items():
                secret = make(random.Random(f"{kind}{setting}{seed}"))
                put(kind, setting, secret, dress(secret))
        for kind, (make, templates) in CONTEXT.items():
            for template in templates:
                secret = make(random.Random(f"{kind}{template}{seed}"))
                put(kind, template, secret, template.format(secret))
    return planted, found, missed


def test_planted_secrets_are_found() -> None:
    planted, found, missed = _recall(seeds=5)
    assert sum(planted.values()) >= 2500
    low = {kind: f"{found[kind]}/{n}" for kind, n in planted.items() if found[kind] < 0.95 * n}
    assert not low, (low, Counter(missed).most_common(20))
    assert sum(found.values()) >= 0.99 * sum(planted.values()), Counter(missed).most_common(20)


@pytest.mark.parametrize("kind", PERSONAL)
def test_personal_data_is_found(kind: str) -> None:
    value, templates = PERSONAL[kind]
    redactor = Redactor(key=b"k" * 32)
    left = [t for t in templates if value in redactor.redact_text(t.format(value))[0]]
    assert left == []


def _key_body(rng: random.Random, newline: str) -> str:
    return newline.join(of(rng, B64, 64) for _ in range(12))


@pytest.mark.parametrize("label", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
@pytest.mark.parametrize("newline", ["\n", "\\n", "\\\\n", "\r\n", "\n    "])
def test_private_keys_are_found_whole(label: str, newline: str) -> None:
    body = _key_body(random.Random(3), newline)
    frame = "-----{} " + label + "PRIVATE" + " KEY-----"
    text = f'key = "{frame.format("BEGIN")}{newline}{body}{newline}{frame.format("END")}" # end'
    redacted, counts = Redactor(key=b"k").redact_text(text)
    assert counts == Counter(PRIVATE_KEY=1)
    assert redacted.startswith('key = "<PRIVATE_KEY_')
    assert redacted.endswith('>" # end')


def test_a_private_key_that_is_cut_off_is_found() -> None:
    text = "-----BEGIN PRIVATE" + " KEY-----\n" + _key_body(random.Random(4), "\n") + "\n... 20 more lines"
    redacted, _ = Redactor(key=b"k").redact_text(text)
    assert redacted.endswith("\n... 20 more lines")
    assert len(redacted) < 50


def test_an_aws_secret_next_to_its_key_id_is_found_without_a_name() -> None:
    rng = random.Random(5)
    secret = of(rng, B64, 40)
    text = f"Access key ID,Secret access key\n{'AK' + 'IA' + of(rng, UPPER, 16)},{secret}\n"
    redacted, counts = Redactor(key=b"k").redact_text(text)
    assert secret not in redacted
    assert counts == Counter(AWS_KEY_ID=1, AWS_SECRET=1)


def test_encoded_data_becomes_a_placeholder_with_its_length() -> None:
    data = base64.b64encode(random.Random(6).randbytes(3000)).decode()
    redacted, counts = Redactor(key=b"k").redact_text(f"data:image/png;base64,{data}")
    assert redacted.startswith("data:image/png;base64,<BLOB_4000_")
    assert len(redacted) == len("data:image/png;base64,<BLOB_4000_3f2ac91d>")
    assert counts == Counter(BLOB=1)


BENIGN = (
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvUdBeoGlODJ6=="',
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "pip install torch==2.13.0 numpy==1.26.4.0",
    "Chrome/120.0.6099.109 Safari/537.36",
    'version = "10.3.9.90"',
    "v1.2.3.4 released; 4.18.0.553 is older",
    "127.0.0.1:8000 0.0.0.0 255.255.255.0 localhost ::1",
    "password = get_password()",
    "token: str = field(default='')",
    "def login(user: str, password: str, api_key: str | None = None) -> Token:",
    "token = self.tokenizer.next_token()",
    'api_key=os.environ["OPENROUTER_API_KEY"]',
    "password=settings.DATABASE_PASSWORD, token=request.headers.get('X-Token')",
    'API_KEY="your-api-key-here"',
    "PASSWORD=${DB_PASSWORD}",
    "export GITHUB_TOKEN=$(gh auth token)",
    "TOKEN=<your token>",
    '"password": "string", "token_type": "bearer", "max_tokens": 4096',
    "input_tokens: 12345, output_tokens: 678, cache_read_input_tokens: 91011",
    "Bearer token authentication is required; basic authentication is not supported",
    "headers = {'Authorization': f'Bearer {token}'}",
    "http://user:password@example.com and postgres://postgres:postgres@localhost:5432/test",
    "git clone git@github.com:owner/name.git",
    "@dataclass(frozen=True)\n@pytest.mark.slow\nasync def f(): ...",
    "npm install @types/node@20.11.5 react@18.2.0",
    "Co-Authored-By: Bot <noreply@example.com>",
    "tests/test_auth.py::test_token_refresh_returns_new_access_token PASSED [ 93%]",
    "=========== 12 passed, 3 skipped in 415.55s ===========",
    "2024-01-15T10:30:45.123456Z 1705314645 1234567890",
    "+1234567890 lines\n+4155552671\n-4155552671",
    "x = a@b.T + w@self.weights.data",
    "/home/user/proj/a.py /Users/runner/work /home/ubuntu/.cache",
    "https://host.dev/home/dashboard ./home/index.html",
    "std::vector<std::string> ab::cd::ef",
    "secret_key_base, password_hash, token_count = load()",
    "class AccessTokenSerializerBase64Decoder2(TokenSerializerBase64Decoder): pass",
    "sk-loading-spinner-container-large-variant-two",
    "key: value\nkeyboard: qwerty\nkeyId: 42",
    'public_key = "ssh-ed25519"',
    "i18n_translation_key_for_2nd_level_menu_item = 'menu.items.second_level'",
    'if "-----BEGIN PRIVATE' + ' KEY-----" in text:\n    raise ValueError("a key")\n',
    "12:34:56 00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
    "toolu_01EmKTEoGj8Hrv64RxG8UzJv call_abc123DEF456ghi789 msg_01XFDUDYJgAACzvnptvVoYEL",
    "go.sum: h1:fHPg5GQYlCeLIPB9BZqMVR5nR9A+IM5zcgeTdjMYmLA=",
    "nginx:1.25.3@sha256:10d1f5b58f74683ad34eb29287e07dab1e90f10af243f151bb50aa5dbb4d62ee",
)


@pytest.mark.parametrize("text", BENIGN)
def test_ordinary_text_stays(text: str) -> None:
    redacted, counts = Redactor(key=b"k").redact_text(text)
    assert counts == Counter()
    assert redacted is text
