# ruff: noqa: E501 (literal texts)
"""What commands print: the output of tools and tests, without anything private in it, from a seed."""

import base64
import hashlib
import json
import random
from collections.abc import Callable

from shapes import uuid4

_PACKAGES = [
    "numpy",
    "pandas",
    "requests",
    "urllib3",
    "certifi",
    "idna",
    "charset-normalizer",
    "tokenizers",
    "typing-extensions",
    "pyyaml",
    "rich",
    "click",
    "attrs",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "tomli",
    "sqlalchemy",
    "greenlet",
    "alembic",
    "fastapi",
    "starlette",
    "anyio",
]
_MODULES = [
    "orders",
    "billing",
    "tokens",
    "auth",
    "session",
    "cache",
    "parser",
    "secrets_store",
    "users",
    "keyring",
    "passwords",
    "routes",
]
_VERBS = [
    "Fix",
    "Add",
    "Remove",
    "Refactor",
    "Rename",
    "Test",
    "Document",
    "Bump",
    "Revert",
    "Merge",
    "Speed",
    "up",
    "Split",
]
_SURNAMES = ["Olsen", "Marin", "Haddad", "Silva", "Kimura"]


def sha(rng: random.Random, size: int = 40) -> str:
    """Hex digits of a digest."""
    return f"{rng.getrandbits(size * 4):0{size}x}"


def version(rng: random.Random, parts: int = 3) -> str:
    """Return a dotted version."""
    return ".".join(str(rng.randrange(0, 40)) for _ in range(parts))


def stamp(rng: random.Random) -> str:
    """Return a time in ISO 8601."""
    return (
        f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}T{rng.randrange(24):02d}:"
        f"{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(10**6):06d}Z"
    )


def integrity(rng: random.Random) -> str:
    """Return the integrity field of a lock file."""
    return "sha512-" + base64.b64encode(hashlib.sha512(sha(rng).encode()).digest()).decode()


def _git_log(rng: random.Random) -> str:
    return "\n".join(
        f"commit {sha(rng)}\nMerge: {sha(rng, 7)} {sha(rng, 7)}\nAuthor: Kim {rng.choice(_SURNAMES)} "
        f"<kim{rng.randrange(99)}@users.noreply.github.com>\nDate:   Fri Nov 20 {rng.randrange(10, 24)}:14:02 2026 +0100\n\n"
        f"    {rng.choice(_VERBS)} {rng.choice(_MODULES)}: see #{rng.randrange(9999)} and {sha(rng, 12)}\n"
        for _ in range(8)
    )


def _git_oneline(rng: random.Random) -> str:
    return "\n".join(
        f"* {sha(rng, 10)} (origin/feature-{rng.randrange(99)}) {rng.choice(_VERBS)} the {rng.choice(_MODULES)} module"
        for _ in range(25)
    )


def _git_diff(rng: random.Random) -> str:
    name = rng.choice(_MODULES)
    return (
        f"diff --git a/src/{name}.py b/src/{name}.py\nindex {sha(rng, 10)}..{sha(rng, 10)} 100644\n--- a/src/{name}.py\n"
        f"+++ b/src/{name}.py\n@@ -{rng.randrange(99)},7 +{rng.randrange(99)},9 @@ def load(path, token=None):\n"
        '-    password = os.environ["DB_PASSWORD"]\n+    password = settings.database.password.get_secret_value()\n'
        '+    api_key = os.getenv("SERVICE_API_KEY", "")\n     if not token:\n'
        '-        raise ValueError("no token")\n+        raise AuthError(f"no token for {self.client_id}")\n'
        "+    headers = {'Authorization': f'Bearer {token}'}\n     return connect(url, password=password)\n"
    )


def _git_status(rng: random.Random) -> str:
    lines = "\n".join(
        f"\tmodified:   src/{rng.choice(_MODULES)}/{rng.choice(_MODULES)}_v{rng.randrange(9)}.py"
        for _ in range(6)
    )
    return f"On branch fix/{rng.randrange(9999)}-token-refresh\nYour branch is ahead of 'origin/main' by 3 commits.\n\nChanges:\n{lines}\n"


def _pytest(rng: random.Random) -> str:
    lines = [
        f"tests/test_{rng.choice(_MODULES)}.py::TestLogin::test_{rng.choice(_MODULES)}_{rng.randrange(99)}"
        f"[{rng.choice(('utf-8', sha(rng, 8), '10.2-None', 'password-reset'))}] PASSED [ {rng.randrange(99)}%]"
        for _ in range(18)
    ]
    tail = (
        "E       AssertionError: assert '" + sha(rng, 64) + "' == '" + sha(rng, 64) + "'\n"
        f"E         - {uuid4(rng)}\nE         + {uuid4(rng)}\n"
        f"tests/test_auth.py:{rng.randrange(300)}: AssertionError\n"
        f"=========== 1 failed, {rng.randrange(99)} passed, 2 warnings in {rng.random() * 30:.2f}s ==========="
    )
    return (
        f"platform linux -- Python 3.11.{rng.randrange(9)}, pytest-8.3.4, pluggy-1.5.0\n"
        + "\n".join(lines)
        + "\n"
        + tail
    )


def _pip(rng: random.Random) -> str:
    lines = []
    for name in rng.sample(_PACKAGES, 9):
        lines.append(f"Collecting {name}>={version(rng)}")
        lines.append(
            f"  Downloading {name.replace('-', '_')}-{version(rng)}-cp311-cp311-manylinux_2_17_x86_64.whl ({rng.randrange(900)} kB)"
        )
    found = " ".join(f"{name}-{version(rng)}" for name in rng.sample(_PACKAGES, 9))
    return (
        "\n".join(lines)
        + f"\nInstalling collected packages: {', '.join(_PACKAGES[:9])}\nSuccessfully installed {found}\n"
    )


def _npm(rng: random.Random) -> str:
    warns = "\n".join(
        f"npm warn deprecated {name}@{version(rng)}: use {name}@{version(rng)} or later"
        for name in rng.sample(_PACKAGES, 6)
    )
    return f"{warns}\n\nadded {rng.randrange(2000)} packages, and audited {rng.randrange(2000)} packages in {rng.randrange(60)}s\n\n3 vulnerabilities\n"


def _webpack(rng: random.Random) -> str:
    rows = "\n".join(
        f"  dist/assets/{rng.choice(_MODULES)}-{base64.urlsafe_b64encode(rng.randbytes(6)).decode()}.js   "
        f"{rng.random() * 300:.2f} kB | gzip: {rng.random() * 90:.2f} kB"
        for _ in range(14)
    )
    return f"vite v5.4.{rng.randrange(20)} building for production...\n{rows}\n  chunk {sha(rng, 20)} [rendered]\n"


def _cargo(rng: random.Random) -> str:
    rows = "\n".join(
        f"   Compiling {name} v{version(rng)} (/srv/app/crates/{name})" for name in rng.sample(_PACKAGES, 12)
    )
    tests = "\n".join(
        f"test {rng.choice(_MODULES)}::tests::{rng.choice(_MODULES)}_{n} ... ok" for n in range(10)
    )
    return f"{rows}\n    Finished `test` profile in 4.21s\n     Running unittests (target/debug/deps/app-{sha(rng, 16)})\n{tests}\n"


def _go_test(rng: random.Random) -> str:
    rows = "\n".join(
        f"--- PASS: Test{rng.choice(_MODULES).title()}/{sha(rng, 6)} (0.0{rng.randrange(9)}s)"
        for _ in range(12)
    )
    return f"{rows}\nPASS\ncoverage: {rng.random() * 100:.1f}% of statements\nok  \tgithub.com/acme/orders/internal/auth\t{rng.random():.3f}s\n"


def _docker(rng: random.Random) -> str:
    rows = "\n".join(
        f'{sha(rng, 12)}   api:{version(rng)}   "/docker-entrypoint.…"   3 hours ago   Up 3 hours   api_{n}'
        for n in range(5)
    )
    steps = "\n".join(
        f"#{n} sha256:{sha(rng, 64)} {rng.randrange(99)}.{rng.randrange(99)}MB / 99.1MB 2.{n}s"
        for n in range(8)
    )
    return f"CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   NAMES\n{rows}\n{steps}\nDigest: sha256:{sha(rng, 64)}\n"


def _kubectl(rng: random.Random) -> str:
    rows = "\n".join(
        f"{rng.choice(_MODULES)}-{sha(rng, 10)}-{''.join(rng.choices('bcdfghjklmnpqrstvwxz2456789', k=5))}   1/1   Running   0   {rng.randrange(99)}d"
        for _ in range(14)
    )
    return f"NAME{' ' * 30}READY   STATUS    RESTARTS   AGE\n{rows}\nsecret/db-credentials   Opaque   3   41d\ntoken-cleaner-{sha(rng, 10)}   0/1   Completed\n"


def _sums(rng: random.Random) -> str:
    return "\n".join(
        f"{sha(rng, rng.choice((32, 40, 64)))}  dist/{rng.choice(_MODULES)}-{version(rng)}.tar.gz"
        for _ in range(16)
    )


def _rows(rng: random.Random) -> str:
    rows = "\n".join(
        f" {uuid4(rng)} | {stamp(rng)} | {rng.randrange(10**9)} | {rng.choice(('paid', 'open'))}"
        for _ in range(14)
    )
    return f" id | created_at | amount | state\n----+----\n{rows}\n(14 rows)\n"


def _listing(rng: random.Random) -> str:
    return "\n".join(
        f"-rw-r--r-- 1 root root {rng.randrange(10**7):>8} Nov {rng.randrange(1, 29):>2} 10:{rng.randrange(60):02d} "
        f"{rng.choice(_MODULES)}.{sha(rng, 8)}.{rng.choice(('js', 'css', 'map', 'pyc'))}"
        for _ in range(16)
    )


def _coverage(rng: random.Random) -> str:
    rows = "\n".join(
        f"src/{rng.choice(_MODULES)}.py {rng.randrange(900):>6} {rng.randrange(90):>5}   {rng.randrange(100)}%   "
        f"{rng.randrange(99)}-{rng.randrange(100, 200)}, {rng.randrange(200, 300)}"
        for _ in range(14)
    )
    return f"Name    Stmts   Miss  Cover   Missing\n{rows}\n"


def _api(rng: random.Random) -> str:
    rows = [
        {"id": uuid4(rng), "etag": sha(rng, 32), "created_at": stamp(rng), "node_id": base64.b64encode(rng.randbytes(15)).decode(),
         "next_page_token": None, "usage": {"input_tokens": rng.randrange(9999), "output_tokens": rng.randrange(999)}}
        for _ in range(5)
    ]  # fmt: skip
    return json.dumps({"object": "list", "data": rows, "has_more": False}, indent=rng.choice((None, 2)))


def _hexdump(rng: random.Random) -> str:
    return "\n".join(
        f"{n * 16:08x}  " + " ".join(f"{rng.randrange(256):02x}" for _ in range(16)) + "  |................|"
        for n in range(14)
    )


def _processes(rng: random.Random) -> str:
    rows = "\n".join(
        f"root {rng.randrange(99999):>7}  0.{rng.randrange(9)}  1.2 {rng.randrange(10**6):>7} ?  Ssl  10:0{rng.randrange(9)}   0:02 "
        f"/usr/bin/python3 -m {rng.choice(_MODULES)} --workers {rng.randrange(9)} --token-file /run/secrets/token"
        for _ in range(10)
    )
    return f"USER PID %CPU %MEM VSZ TTY STAT START TIME COMMAND\n{rows}\n"


OUTPUTS: tuple[Callable[[random.Random], str], ...] = (
    _git_log, _git_oneline, _git_diff, _git_status, _pytest, _pip, _npm, _webpack, _cargo, _go_test, _docker, _kubectl,
    _sums, _rows, _listing, _coverage, _api, _hexdump, _processes,
)  # fmt: skip
"""Generators of what commands print; each gives about a screen."""
