"""Make and find placeholders of private values: `<GITHUB_TOKEN_3f2ac91d>`, `user_3f2ac91d`.

The eight hex digits are a keyed hash of the value and its trace. The same value gives the same placeholder
throughout a trace, in any order, and another one in another trace. Without the secret key they neither
reveal a value nor confirm a guess. Two values collide once in four thousand million.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tracemill.records.errors import WorkspaceError
from tracemill.records.placeholders import HEX, IN_ANGLES, KIND

KEY_BYTES = 32
_GLUED = re.compile(rf"(?<=[A-Za-z0-9])(?=<{KIND}{HEX}>)|(?<=>)(?<=[0-9a-f]{{4}}>)(?=[A-Za-z0-9<])")
_NO_IDENTIFIER = re.compile(r"[^A-Za-z0-9_-]")
# The spellings of a placeholder, each with a literal that it contains.
_SPELLINGS = (
    ("<", re.compile(rf"<{KIND}{HEX}>")),
    ("REDACTED_", re.compile(rf"REDACTED_(?<![A-Za-z0-9]REDACTED_){KIND}{HEX}(?![A-Za-z0-9])")),
    ("user_", re.compile(rf"user_(?<![A-Za-z0-9]user_){HEX}(?![A-Za-z0-9])")),
)
_KIND_AND_DIGITS = re.compile(rf"(?:<|REDACTED_)(?P<kind>{KIND})(?P<digits>[0-9a-f]{{8}})(?![A-Za-z0-9])")
_DIGITS = re.compile(rf"_(?:\d{{1,9}}_)?{HEX}(?=>?$)")


def find_keyed_placeholders(text: str) -> list[tuple[int, int]]:
    """Return where placeholders stand in a text; they are never redacted again."""
    return [
        match.span() for literal, pattern in _SPELLINGS if literal in text for match in pattern.finditer(text)
    ]


def find_placeholder_digits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the type and the digits of every placeholder in a text, except those of users."""
    if "<" in text or "REDACTED_" in text:
        for match in _KIND_AND_DIGITS.finditer(text):
            yield match["kind"].rstrip("_"), match["digits"]


def strip_placeholder_digits(text: str) -> str:
    """Return the text with placeholders stripped of what differs by trace: `<EMAIL>`, `user`."""
    for literal, pattern in _SPELLINGS:
        if literal in text:
            text = pattern.sub(lambda found: _DIGITS.sub("", found[0]), text)
    return text


def digest_with_placeholder_key(key: bytes, *parts: str) -> str:
    """Return 32 hex digits for several texts together; only the key's holder can compute them."""
    state = hashlib.blake2b(key=key[:64], digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


def hash_with_placeholder_key(key: bytes, scope: str, value: str) -> str:
    """Return eight hex digits for a value inside a scope (a trace id); computing them needs the key."""
    data = value.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=_key_of(key, scope), digest_size=4).hexdigest()


@lru_cache(maxsize=256)
def _key_of(key: bytes, scope: str) -> bytes:
    return hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), key=key[:64], digest_size=32).digest()


def keyed_user_placeholder(key: bytes, scope: str, name: str) -> str:
    """Return the placeholder of a user name: a plain word, so that paths and names stay readable."""
    return f"user_{hash_with_placeholder_key(key, scope, name.casefold())}"


def build_keyed_placeholder(kind: str, digits: str, *, bare: bool = False) -> str:
    """Return `<KIND_3f2ac91d>`, or with `bare` the identifier `REDACTED_KIND_3f2ac91d`.

    The identifier is for code outside strings.
    """
    return f"REDACTED_{kind}_{digits}" if bare else f"<{kind}_{digits}>"


def placeholder_as_identifier(text: str, digits: str, longest: int) -> str:
    """Return a redacted name as letters, digits, `_` and `-`, with its placeholders kept.

    Return `REDACTED_NAME_<digits>` where that takes more than `longest` characters.
    """
    name = IN_ANGLES.sub(r"REDACTED_\1", _GLUED.sub("_", text))
    name = _NO_IDENTIFIER.sub("_", name)
    return name if 0 < len(name) <= longest else build_keyed_placeholder("NAME", digits, bare=True)


def workspace_key(path: Path) -> bytes:
    """Return the key in the file at `path`; create it on first use, readable by its owner only.

    Raises WorkspaceError where the file cannot be read or written, or holds no key.
    """
    try:
        if not path.exists():
            _create_key(path)
        key = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"the redaction key {path} cannot be used ({type(error).__name__})",
            f"a readable file of {2 * KEY_BYTES} hex digits",
            "restore it, or remove it to start anew (placeholders then change)",
        ) from None
    if len(key) < KEY_BYTES:
        raise WorkspaceError(f"the redaction key {path} is too short", f"{2 * KEY_BYTES} hex digits")
    return key


def _create_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(os.urandom(KEY_BYTES).hex(), "ascii")
    try:
        path.hardlink_to(draft)  # the first of several processes wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()
