# ruff: noqa: E501 (literal texts)
"""What looks private and is not: public keys, certificates, fingerprints, symbols, plans, numbers, from a seed."""

import base64
import random
import textwrap
from collections.abc import Callable

from benign_outputs import sha, stamp, version
from shapes import characters, uuid4

_MODULES = ["orders", "billing", "tokens", "auth", "session", "cache", "parser", "keyring"]


def _certificate(rng: random.Random) -> str:
    body = "\n".join(textwrap.wrap("MIID" + characters(rng, "b", 900), 64))
    serial = ":".join(f"{rng.randrange(256):02x}" for _ in range(20))
    modulus = "\n".join(
        "    " + ":".join(f"{rng.randrange(256):02x}" for _ in range(15)) + ":" for _ in range(8)
    )
    return (
        f"Certificate:\n  Serial Number:\n    {serial}\n  Signature Algorithm: sha256WithRSAEncryption\n  Modulus:\n{modulus}\n"
        f"{'-' * 5}BEGIN CERTIFICATE{'-' * 5}\n{body}\n{'-' * 5}END CERTIFICATE{'-' * 5}\n"
    )


def _public_keys(rng: random.Random) -> str:
    blob = base64.b64encode(rng.randbytes(279)).decode()
    print_ = base64.b64encode(rng.randbytes(32)).decode().rstrip("=")
    return (
        f"The key fingerprint is:\nSHA256:{print_}\nssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{blob}\n"
        f"gpg: Good signature, key {sha(rng, 16).upper()}\nPrimary key fingerprint: "
        + " ".join(sha(rng, 4).upper() for _ in range(10))
        + "\n"
    )


def _symbols(rng: random.Random) -> str:
    return "\n".join(
        f"{sha(rng, 16)} T _ZN4core3ptr{rng.randrange(99)}drop_in_place$LT${rng.choice(_MODULES)}..Token$GT$17h{sha(rng, 16)}E"
        for _ in range(12)
    )


def _plan(rng: random.Random) -> str:
    return (
        "  # aws_instance.api will be updated in-place\n"
        f'  ~ resource "aws_instance" "api" {{\n        ami           = "ami-0{sha(rng, 16)}"\n'
        f'        id            = "i-0{sha(rng, 16)}"\n      ~ password      = (sensitive value)\n'
        f'        arn           = "arn:aws:kms:eu-west-1:{rng.randrange(10**11, 10**12)}:key/{uuid4(rng)}"\n'
        f'        vpc_id        = "vpc-0{sha(rng, 16)}"\n        subnet_id = "subnet-0{sha(rng, 16)}"\n    }}\n\n'
        "Plan: 0 to add, 1 to change, 0 to destroy.\n"
    )


def _describe(rng: random.Random) -> str:
    return (
        f"Name:             {rng.choice(_MODULES)}-{sha(rng, 10)}\nNamespace:        prod\nPriority:         0\n"
        f"Start Time:       {stamp(rng)}\nLabels:           pod-template-hash={sha(rng, 10)}\n"
        f"Annotations:      checksum/config: {sha(rng, 64)}\nContainer ID:   containerd://{sha(rng, 64)}\n"
        f"Image ID:       api@sha256:{sha(rng, 64)}\nEnvironment:\n  DB_PASSWORD:  <set to the key 'password' in secret 'db'>\n"
        "  API_TOKEN:    <set to the key 'token' in secret 'api'>  Optional: false\nTolerations: node.kubernetes.io/not-ready\n"
    )


def _numbers(rng: random.Random) -> str:
    return "\n".join(
        rng.choice(
            (
                f"epoch {rng.randrange(1_600_000_000, 1_800_000_000)} took {rng.random() * 99:.9f}s at {stamp(rng)}",
                f"[{', '.join(f'{rng.uniform(-1, 1):.8f}' for _ in range(8))}]",
                f"isbn 978-3-{rng.randrange(10, 99)}-{rng.randrange(10**5, 10**6)}-{rng.randrange(9)}, order {rng.randrange(10**10, 10**11)}",
                f"heap: {rng.randrange(10**9)} {rng.randrange(10**9)} {rng.randrange(10**9)} objects {rng.randrange(10**7)}",
                f"rgb(12, 34, 56) #{sha(rng, 6)} #{sha(rng, 8)} 0x{sha(rng, 8)} u+{sha(rng, 4)}",
                f"sections 3.1.{rng.randrange(40)}.{rng.randrange(40)} and {rng.randrange(9)}.{rng.randrange(9)}.2; range 2026-01-04..2026-02-{rng.randrange(10, 28)}",
                f"line {rng.randrange(999)}:{rng.randrange(99)}: expected 200-299, got {rng.randrange(300, 599)} ({rng.randrange(10**4)}/{rng.randrange(10**4)})",
                f"std::vector<foo::bar>::at {sha(rng, 2)}:{sha(rng, 2)} a::b::c 12:34:56",
            )
        )
        for _ in range(16)
    )


def _prose(rng: random.Random) -> str:
    return (
        "The password field must hold at least twelve characters, and the token is refreshed every hour. Set the secret in the "
        "vault and never in the repository. The API key is read from the environment: `api_key = os.environ['SERVICE_API_KEY']`.\n"
        f"Upgrade to {version(rng)} first; the auth: basic setting and the `--token` flag are gone. Password: see the wiki. "
        "Authorization: Bearer <token> is what the gateway expects, with `client_secret: str | None = None` in the model.\n"
    )


PUBLIC: tuple[Callable[[random.Random], str], ...] = (
    _certificate,
    _public_keys,
    _symbols,
    _plan,
    _describe,
    _numbers,
    _prose,
)
