# ruff: noqa: E501 (literal texts)
"""What is read and logged: lock files, stack traces, logs, settings without values; nothing private, from a seed."""

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path

from benign_outputs import OUTPUTS, integrity, sha, stamp, version
from benign_public import PUBLIC
from shapes import uuid4

_NAMES = [
    "lodash",
    "react",
    "express",
    "typescript",
    "webpack",
    "eslint",
    "semver",
    "chalk",
    "debug",
    "ws",
    "zod",
    "vite",
    "uuid",
    "jsonwebtoken",
]
_CRATES = [
    "serde",
    "tokio",
    "hyper",
    "rustls",
    "anyhow",
    "thiserror",
    "clap",
    "regex",
    "bytes",
    "rand",
    "secrecy",
    "zeroize",
]
_GO = [
    "golang.org/x/crypto",
    "github.com/spf13/cobra",
    "google.golang.org/grpc",
    "gopkg.in/yaml.v3",
    "k8s.io/api",
]


def _package_lock(rng: random.Random) -> str:
    packages = {
        f"node_modules/{name}": {
            "version": (number := version(rng)),
            "resolved": f"https://registry.npmjs.org/{name}/-/{name}-{number}.tgz",
            "integrity": integrity(rng),
            "engines": {"node": ">=18.0.0"},
        }
        for name in rng.sample(_NAMES, 7)
    }
    return json.dumps({"name": "orders", "lockfileVersion": 3, "packages": packages}, indent=2)


def _uv_lock(rng: random.Random) -> str:
    blocks = []
    for name in rng.sample(_CRATES, 5):
        number, path = version(rng), f"{sha(rng, 2)}/{sha(rng, 2)}/{sha(rng, 60)}"
        url = f"https://files.pythonhosted.org/packages/{path}/{name}-{number}.tar.gz"
        blocks.append(
            f'[[package]]\nname = "{name}"\nversion = "{number}"\nsource = {{ registry = "https://pypi.org/simple" }}\n'
            f'sdist = {{ url = "{url}", hash = "sha256:{sha(rng, 64)}", size = {rng.randrange(10**6)} }}\n'
        )
    return 'version = 1\nrequires-python = ">=3.11"\n\n' + "\n".join(blocks)


def _cargo_lock(rng: random.Random) -> str:
    return "\n".join(
        f'[[package]]\nname = "{name}"\nversion = "{version(rng)}"\n'
        f'source = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "{sha(rng, 64)}"\n'
        for name in rng.sample(_CRATES, 7)
    )


def _go_sum(rng: random.Random) -> str:
    rows = []
    for name in rng.choices(_GO, k=14):
        number = f"v0.{rng.randrange(40)}.0-2026{rng.randrange(1000, 1231)}{rng.randrange(10**6):06d}-{sha(rng, 12)}"
        rows.append(f"{name} {number}/go.mod h1:{base64.b64encode(rng.randbytes(32)).decode()}")
    return "\n".join(rows)


def _yarn_lock(rng: random.Random) -> str:
    return "\n".join(
        f'{name}@^{version(rng)}:\n  version "{(number := version(rng))}"\n'
        f'  resolved "https://registry.yarnpkg.com/{name}/-/{name}-{number}.tgz#{sha(rng, 40)}"\n  integrity {integrity(rng)}\n'
        for name in rng.sample(_NAMES, 6)
    )


def _requirements(rng: random.Random) -> str:
    return "\n".join(
        f"{name}=={version(rng)} \\\n    --hash=sha256:{sha(rng, 64)} \\\n    --hash=sha256:{sha(rng, 64)}"
        for name in rng.sample(_CRATES, 6)
    )


def _python_trace(rng: random.Random) -> str:
    frames = "\n".join(
        f'  File "/usr/lib/python3.11/site-packages/{name}/client.py", line {rng.randrange(900)}, in request\n'
        f"    return self._send(token=self.token, timeout={rng.randrange(90)})"
        for name in rng.sample(_CRATES, 6)
    )
    return (
        f"Traceback (most recent call last):\n{frames}\n"
        f"{rng.choice(_CRATES)}.AuthenticationError: invalid token (request id: req_{sha(rng, 24)})\n"
        f"<Client object at 0x{sha(rng, 12)}>\n"
    )


def _node_trace(rng: random.Random) -> str:
    frames = "\n".join(
        f"    at async {name.title()}.verifyPassword (/srv/app/node_modules/{name}/lib/index.js:{rng.randrange(900)}:{rng.randrange(80)})"
        for name in rng.sample(_NAMES, 8)
    )
    return f"TypeError: Cannot read properties of undefined (reading 'accessToken')\n{frames}\n    at node:internal/main:{rng.randrange(99)}:12\n"


def _java_trace(rng: random.Random) -> str:
    frames = "\n".join(
        f"\tat com.acme.orders.{name}.SecretKeyProvider$${sha(rng, 8)}.getPassword(SecretKeyProvider.java:{rng.randrange(400)})"
        for name in rng.sample(_NAMES, 8)
    )
    return f'Exception in thread "main" java.lang.IllegalStateException: token expired\n{frames}\nCaused by: java.io.IOException\n'


def _go_panic(rng: random.Random) -> str:
    frames = "\n".join(
        f"main.(*Server).handleToken(0xc{sha(rng, 9)}, {{0x{sha(rng, 6)}, 0x{rng.randrange(99)}}})\n\t/srv/app/server.go:{rng.randrange(400)} +0x{sha(rng, 3)}"
        for _ in range(7)
    )
    return f"panic: runtime error: invalid memory address or nil pointer dereference\ngoroutine {rng.randrange(99)} [running]:\n{frames}\n"


def _service_log(rng: random.Random) -> str:
    return "\n".join(
        rng.choice(
            (
                f"{stamp(rng)} INFO  [req-{uuid4(rng)}] GET /v1/tokens/{rng.randrange(99)}/usage 200 {rng.randrange(999)}ms",
                f'time="{stamp(rng)}" level=info msg="token refreshed" key_id={sha(rng, 8)} ttl=3600 trace_id={sha(rng, 32)} span_id={sha(rng, 16)}',
                f"{stamp(rng)} WARN  password policy: at least 12 characters, got {rng.randrange(12)}",
                f'[{rng.randrange(10**6)}.{rng.randrange(10**6)}] cache key orders:{rng.randrange(10**6)}:{sha(rng, 16)} miss, etag W/"{sha(rng, 20)}"',
                f"step {rng.randrange(9999)} | loss {rng.random():.6f} | tokens/s {rng.randrange(99999)} | max_tokens=4096 | lr {rng.random() / 1e4:.3e}",
                f"x-amzn-requestid: {uuid4(rng)} x-amz-id-2 sha256={sha(rng, 64)}",
            )
        )
        for _ in range(16)
    )


def _settings(rng: random.Random) -> str:
    return rng.choice(
        (
            "OPENAI_API_KEY=<your-api-key>\nDB_PASSWORD=${DB_PASSWORD}\nAWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY\nSECRET_KEY=\n"
            f"BUILD_ID={rng.randrange(10**6)}\nAPI_TOKEN=xxxxxxxxxxxxxxxx\nTOKENIZERS_PARALLELISM=false\nGITHUB_SHA={sha(rng)}\n",
            "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef:\n        name: db-credentials\n        key: password\n"
            f"  - name: IMAGE\n    value: registry.example.com/api@sha256:{sha(rng, 64)}\n",
            'variable "db_password" {\n  type      = string\n  sensitive = true\n}\nresource "aws_db_instance" "main" {\n'
            f'  password = var.db_password\n  kms_key_id = aws_kms_key.main.arn\n  snapshot = "rds-{version(rng)}"\n}}\n',
            "  GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}\n  NPM_TOKEN: ${{ secrets.NPM_TOKEN }}\n"
            f"  uses: actions/checkout@{sha(rng)} # v4.2.{rng.randrange(9)}\n  password: ${{{{ github.token }}}}\n",
        )
    )


def _versions(rng: random.Random) -> str:
    return (
        "\n".join(
            f"{name} {version(rng, rng.choice((3, 4)))} -> {version(rng, rng.choice((3, 4)))} ({rng.randrange(10**10)})"
            for name in rng.sample(_NAMES, 12)
        )
        + f"\nChrome/{rng.randrange(99, 140)}.0.{rng.randrange(9999)}.{rng.randrange(200)} build {version(rng, 4)}\n"
    )


def _notebook(rng: random.Random) -> str:
    cell = {
        "cell_type": "code",
        "execution_count": rng.randrange(99),
        "id": sha(rng, 8),
        "outputs": [{"data": {"text/plain": [f"tensor([{rng.random():.4f}, {rng.random():.4f}])"]}}],
        "source": ["tokenizer = load('small')\n", "tokens = tokenizer(text, max_length=512)\n"],
    }
    return json.dumps({"cells": [cell] * 3, "nbformat": 4}, indent=1)


def _source_map(rng: random.Random) -> str:
    mappings = "".join(rng.choices("ABCDEFGIKMQSUY", k=rng.randrange(200, 800)))
    return json.dumps(
        {
            "version": 3,
            "file": f"main.{sha(rng, 8)}.js",
            "sources": ["src/auth.ts"],
            "mappings": ";".join((mappings[:99], mappings[99:])),
        }
    )


FILES: tuple[Callable[[random.Random], str], ...] = (
    _package_lock, _uv_lock, _cargo_lock, _go_sum, _yarn_lock, _requirements, _python_trace, _node_trace, _java_trace,
    _go_panic, _service_log, _settings, _versions, _notebook, _source_map,
)  # fmt: skip


def outputs(seed: int, megabytes: float) -> list[str]:
    """Return outputs and logs of every generator in turn, up to a size in megabytes."""
    rng, texts, size = random.Random(f"{seed} outputs"), [], 0
    makers = (*OUTPUTS, *FILES, *PUBLIC)
    while size < megabytes * 1e6:
        texts.append(makers[len(texts) % len(makers)](rng))
        size += len(texts[-1].encode())
    return texts


def sources(folders: list[Path], suffix: str, seed: int, megabytes: float) -> list[str]:
    """Ordinary source files below `folders`, drawn by a seed; every third as `cat -n` prints it.

    Tests are left out (what looks like a password there may be meant to), and so are packages that look for
    secrets themselves or document logins by example tokens, generated files and files of more than 200 kB.
    """
    unwanted = {"test", "tests", "detect_secrets", "dataclaw", "teich", "site-packages"}
    unwanted |= {"oauthlib", "requests_oauthlib"}
    paths = sorted(
        path
        for folder in folders
        for path in folder.rglob(f"*{suffix}")
        if not unwanted & set(path.relative_to(folder).parts) and ".min." not in path.name
    )
    random.Random(f"{seed} {suffix}").shuffle(paths)
    texts, size = [], 0
    for path in paths:
        if size >= megabytes * 1e6:
            break
        if path.is_file() and 500 < path.stat().st_size < 200_000:
            text = path.read_text(encoding="utf-8", errors="replace")
            if max(map(len, text.split("\n"))) < 2_000:
                texts.append(_numbered(text) if len(texts) % 3 == 2 else text)
                size += len(texts[-1].encode())
    return texts


def _numbered(text: str) -> str:
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(text.split("\n"), 1))
