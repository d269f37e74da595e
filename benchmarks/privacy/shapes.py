"""Shapes: how a planted value is made from a template and a seeded generator.

A template is literal text with fields: `{a36}` is 36 random characters of the alphabet `a`. A `|` is
dropped; it keeps prefixes apart in the source, so that no scanner of repositories takes a template for a
leak. What is private runs from the first field to the last one, or is what stands in `[...]`.
"""

import base64
import json
import random
import re
import string
import zlib
from collections.abc import Callable
from typing import NamedTuple

_ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "a": _ALNUM,
    "b": _ALNUM + "+/",
    "d": string.digits,
    "e": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "l": string.ascii_lowercase,
    "p": _ALNUM + "!#%*_-+?^~.",
    "s": string.ascii_lowercase + string.digits,
    "S": string.ascii_uppercase + string.digits,
    "t": string.ascii_uppercase + "234567",
    "w": _ALNUM + "-_",
}
_FIELD = re.compile(r"\{(\w+?)(\d*)\}")
_MARKED = re.compile(r"\[([^\[\]]*)\]")
_FIRST = [
    "ana",
    "boris",
    "carla",
    "dmitri",
    "elena",
    "farid",
    "greta",
    "hugo",
    "ines",
    "jonas",
    "katya",
    "leo",
    "mira",
    "nadia",
    "oskar",
    "petra",
]
_LAST = [
    "abbasi",
    "bergmann",
    "castellano",
    "dubois",
    "eriksen",
    "fontaine",
    "grabowski",
    "hoffmann",
    "ivanov",
    "janssen",
    "kowalczyk",
    "lindqvist",
    "moreau",
    "novak",
    "okafor",
    "petrov",
    "quintero",
    "rossi",
    "santos",
    "takeda",
    "ueda",
    "vasquez",
    "weber",
    "yilmaz",
    "zhang",
]
_WORDS = [
    "orbit",
    "maple",
    "harbor",
    "cedar",
    "falcon",
    "delta",
    "nimbus",
    "quartz",
    "ember",
    "summit",
    "lagoon",
    "prairie",
]


class Made(NamedTuple):
    """A value as it is planted, and the parts of it that must not survive."""

    text: str
    parts: tuple[str, ...]


Maker = Callable[[random.Random], Made]


def characters(rng: random.Random, alphabet: str, size: int) -> str:
    """Return random characters that begin and end with a letter or digit.

    From 8 characters on they have a digit if the alphabet has one, from 12 on both cases, as real tokens do.
    """
    pool = ALPHABETS[alphabet]
    for _ in range(1000):
        text = "".join(rng.choices(pool, k=size))
        mixed = size < 12 or not (set(_ALNUM) <= set(pool)) or (text.lower() != text != text.upper())
        digits = size < 8 or not (set(string.digits) & set(pool)) or any(c.isdigit() for c in text)
        if text[0].isalnum() and text[-1].isalnum() and mixed and digits:
            return text
    raise ValueError(alphabet, size)


def checked(rng: random.Random, size: int) -> str:
    """Letters and digits that end in six of their own CRC-32 in base 62, as GitHub and npm do."""
    body = characters(rng, "a", size - 6)
    number, tail = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        tail = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[digit] + tail
    return body + tail


def uuid4(rng: random.Random) -> str:
    """Return a version 4 UUID."""
    h = f"{rng.getrandbits(128):032x}"
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{rng.choice('89ab')}{h[17:20]}-{h[20:]}"


def segment(value: dict[str, object]) -> str:
    """Encode a JSON object in unpadded URL-safe base64, as in a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def user_name(rng: random.Random) -> str:
    """Return a login: initial and surname, first and last name, or surname and a number."""
    first, last = rng.choice(_FIRST), rng.choice(_LAST)
    return rng.choice(
        (first[0] + last, f"{first}.{last}", f"{last}{rng.randrange(10, 99)}", f"{first}{last}")
    )


def person(rng: random.Random) -> str:
    """Return a first name and a surname."""
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}".title()


def host_name(rng: random.Random) -> str:
    """Return a machine's short name."""
    return f"{rng.choice(_WORDS)}-{rng.choice(('lap', 'ws', 'build', 'gpu', 'db'))}{rng.randrange(2, 99):02d}"


def domain(rng: random.Random) -> str:
    """Return a company-like domain that is not reserved for examples."""
    return f"{rng.choice(_WORDS)}{rng.choice(_WORDS)}.{rng.choice(('io', 'com', 'dev', 'net', 'de'))}"


def _field(rng: random.Random, name: str, size: int) -> str:
    named: dict[str, Callable[[random.Random], str]] = {
        "uuid": uuid4,
        "user": user_name,
        "person": person,
        "host": host_name,
        "domain": domain,
        "word": lambda r: r.choice(_WORDS),
    }
    if name in named:
        return named[name](rng)
    return checked(rng, size) if name == "g" else characters(rng, name, size)


def expand(template: str, rng: random.Random) -> Made:
    """Fill a template, and return the text and its private parts.

    User, host and domain are the same throughout a template.
    """
    whole = "[" not in template
    plain = template.replace("|", "")
    if whole:
        fields = list(_FIELD.finditer(plain))
        start, end = fields[0].start(), fields[-1].end()
        plain = f"{plain[:start]}[{plain[start:end]}]{plain[end:]}"
    once = {name: _field(rng, name, 0) for name in ("user", "host", "domain") if f"{{{name}}}" in plain}
    filled = _FIELD.sub(lambda m: once.get(m[1]) or _field(rng, m[1], int(m[2] or 0)), plain)
    parts = tuple(m[1] for m in _MARKED.finditer(filled))
    return Made(_MARKED.sub(r"\1", filled), parts)


def template(text: str) -> Maker:
    """Return a maker of values of one template."""
    return lambda rng: expand(text, rng)
