"""Personal data, private keys and encoded data are found; what is ordinary stays."""

import base64
import random
from collections import Counter

import pytest
from leak_corpus import B64, SHAPES, of

from tracemill.privacy.redaction.redactor import Redactor

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
    text = f"Access key ID,Secret access key\n{SHAPES['aws id'](rng)},{secret}\n"
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
