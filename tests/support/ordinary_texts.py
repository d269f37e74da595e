# ruff: noqa: E501 (templates)
"""Text that holds nothing private and looks as if it did, drawn from a seed: logs, lock files, hashes, figures."""

import random
import sysconfig
import uuid
from collections.abc import Callable
from pathlib import Path

from leak_corpus import ALNUM, B64, HEX, WORDS, of

_VERBS = ("Downloading", "Installing", "Compiling", "Linking", "Running", "Caching", "Uploading", "Resolving")


def _log_line(rng: random.Random) -> str:
    time = f"2026-05-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(10**7):07}Z"
    word, other = rng.sample(WORDS, 2)
    return time + " " + rng.choice(
        (
            f"{rng.choice(_VERBS)} {word}-{other}@{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)} ({rng.randrange(9000)} kB)",
            f"##[group]Run {word}/{other}@{of(rng, HEX, 40)}",
            f"{word}: Pulling fs layer {of(rng, HEX, 12)} sha256:{of(rng, HEX, 64)}",
            f"tests/{word}/test_{other}.py::test_{word}_token_{rng.randrange(99)} PASSED [ {rng.randrange(99)}%]",
            f"cache key: {word}-{of(rng, HEX, 64)} restored in {rng.randrange(9000)} ms",
            f"  token: *** password: *** run {rng.randrange(10**10)} attempt {rng.randrange(9)}",
            f"request {uuid.UUID(int=rng.getrandbits(128))} took {rng.uniform(0, 9):.4f} s, lat {rng.uniform(1, 90):.2f} ms",
            f"job {rng.randrange(10**15, 10**16)} finished {word} {rng.randrange(10**12)}",
        )
    )  # fmt: skip


def _lock_entry(rng: random.Random) -> str:
    word, other = rng.sample(WORDS, 2)
    version = f"{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)}"
    return rng.choice(
        (
            f'    "node_modules/{word}-{other}": {{\n      "version": "{version}",\n      "resolved": "https://registry.npmjs.org/{word}/-/{word}-{version}.tgz",\n      "integrity": "sha512-{of(rng, B64, 86)}==",\n      "license": "MIT"\n    }},',
            f'[[package]]\nname = "{word}"\nversion = "{version}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "{of(rng, HEX, 64)}"\n',
            f"github.com/{word}/{other} v{version} h1:{of(rng, B64, 43)}=\ngithub.com/{word}/{other} v{version}/go.mod h1:{of(rng, B64, 43)}=",
            f'    {{file = "{word}-{version}-py3-none-any.whl", hash = "sha256:{of(rng, HEX, 64)}"}},',
        )
    )  # fmt: skip


def _hash_line(rng: random.Random) -> str:
    return rng.choice(
        (
            f"{of(rng, HEX, 64)}  {rng.choice(WORDS)}/{rng.choice(WORDS)}.tar.gz",
            f"commit {of(rng, HEX, 40)}",
            f"{of(rng, HEX, 7)} Fix the {rng.choice(WORDS)} of {rng.choice(WORDS)}",
            f"index {of(rng, HEX, 7)}..{of(rng, HEX, 7)} 100644",
            f"{uuid.UUID(int=rng.getrandbits(128))},{rng.randrange(1000)}",
            f"md5 {of(rng, HEX, 32)} etag {of(rng, HEX, 32)}-{rng.randrange(9)}",
        )
    )


def _script(rng: random.Random) -> str:
    a, b, c = (rng.choice("abcdefghijklmnop") for _ in range(3))
    word, other = rng.sample(WORDS, 2)
    return rng.choice(
        (
            f"function {a}({b},{c}){{return {b}.{word}({c},function(){{{a}.{other}=!0}})}}",
            f'var {a}={{key:"{word}",token:{b}.token||null,password:{c}("{other}")}};',
            f'!function({a}){{"use strict";{a}.exports={{{word}:{rng.randrange(9999)},{other}:"{of(rng, ALNUM, 6)}"}}}}({b});',
            f"{a}.prototype.{word}Key=function({b}){{for(var {c}=0;{c}<{b}.length;{c}++)this.{other}({b}[{c}])}},",
        )
    )  # fmt: skip


def _figures(rng: random.Random) -> str:
    return ",".join(str(rng.randrange(10**15, 10**16)) for _ in range(6))


LOGS: dict[str, Callable[[random.Random], str]] = {
    "ci log": _log_line,
    "lock file": _lock_entry,
    "hashes": _hash_line,
    "minified": _script,
    "figures": _figures,
}


def ordinary(kind: str, seed: int, size: int) -> list[str]:
    """Texts of one kind, of about `size` characters together."""
    rng, texts, left = random.Random(f"{seed} {kind}"), [], size
    joint = "" if kind == "minified" else "\n"
    while left > 0:
        text = joint.join(LOGS[kind](rng) for _ in range(300))
        texts.append(text)
        left -= len(text)
    return texts


def source_texts(size: int) -> list[str]:
    """Files of the standard library, every seventh, of about `size` characters together."""
    texts, left = [], size
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-z]*/[a-z]*.py"))[::7]:
        if left <= 0 or "site-packages" in path.parts or "test" in path.parts:
            continue
        texts.append(path.read_text("utf-8", "replace"))
        left -= len(texts[-1])
    return texts
