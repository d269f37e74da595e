"""Judge whether a secret is distinctive enough to be redacted wherever it occurs.

A word, a name in code or a stand-in also occurs where it is no secret.
"""

import re
from enum import IntEnum
from itertools import pairwise

from tracemill.privacy.core.chosen_passwords import is_chosen_password, is_word_phrase
from tracemill.privacy.core.entropy import (
    entropy,
    has_all_kinds,
    is_mixed_case,
    is_password,
    is_random,
    is_stand_in,
    shape_wordiness,
)
from tracemill.privacy.core.ordinary_values import MIN_SECRET, is_ordinary
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.set_passwords import is_odd_password, is_random_path
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS, SETTING_WORDS, SPEECH

_MOST = 8192  # characters
_MOST_CHOSEN = 64  # characters of a password that somebody chose
_NAME = re.compile(r"[\w-]+(?:[.:]{1,2}[\w-]+)*", re.ASCII)
_JOINT = re.compile(r"[_.:/]|^[a-z\d-]*-[a-z\d-]*$")  # of paths, identifiers and names of versions
_CAMEL = re.compile("[a-z][A-Z]")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PLACE = re.compile(r"(?:~|\.{0,2})/|[A-Za-z]:[\\/]|[\w.@-]+(?:/[\w.@-]+)+(?:$|[:#*])|\w[\w+.-]*://|--?\w+=")
_TIME = re.compile(r"\d{4}-\d\d-\d\d\D|v?\d+(?:\.\d+)+(?:$|[-+a-z])")
_TECHNICAL = re.compile(
    r"(?i)sha-?\d|md5|base\d\d|utf-?\d|u?int\d|float\d|http|python|py\d|x86|amd64|arm64|oauth|ipv\d|es20\d\d|iso-?\d|"
    r"[hre]s\d{3}|aes|ed25519|win\d\d|gpt|claude|llama|qwen|gemini|h26\d|mp\d|test\d*(?![a-z])|user\d|v\d(?!\w)"
)
_CODE = re.compile(
    r"[(){}\[\]<>;]|^[$%@&*#][A-Za-z_{(]|&&|\|\||[=!]=|->|::|^[\w./-]+=|^\w+@[\w.-]+[:/]|\$\{?\w+\}?$|^[^@\s]+@[\w-]+\.\w+$"
)
_MARKS = "*?!:.,;+#_=~-|\u2192"
_NUMBERED = re.compile(r"\d+\W*\u2192|\d+[:|]")
_FILE = re.compile(r"\.[a-z]{1,5}$|[\w-]+\.[a-z]{1,4}:\d")
_SYMBOL = re.compile(r"[^\w\s.:/-]|[^\x00-\x7f]")
_CAPITALS = re.compile("[A-Z]{2}[a-z]")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_PHRASE = re.compile(r"[^\W_]{2,20}")
_NUMBERED_PHRASE = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){1,7}-\d{2,6}")
_VENDOR_KIND = re.compile(r"[A-Z]_(?:KEY|TOKEN|SECRET)$(?<!API_KEY)(?<!PRIVATE_KEY)")
_EXTENDED = re.compile(
    r"(?i)(?:please)?(?:change[_-]?(?:me|this|it)|replace[_-]?me|default)[-_.](?P<own>[a-z\d_.-]{4,40})"
)
_KNOWN_WORDS = COMMON_WORDS | LABELS | SPEECH | SETTING_WORDS
_RUNS = re.compile(r"[A-Za-z]+|\d+")


class Distinctiveness(IntEnum):
    """The degree to which a value is distinctive."""

    NOT = 0
    ALONE = 1
    """The value has the shape of a name: redact it where it stands alone and nothing else has that name."""
    ANYWHERE = 2


def judge_distinctiveness(value: str, kind: str = "") -> Distinctiveness:
    """Judge how far a value that was a secret of type `kind` in one place is a secret elsewhere.

    People choose passwords, so that one may be a word or read as code.
    """
    level = _judge_shape(value)
    if kind and is_chosen_password(value):
        return max(level, Distinctiveness.ANYWHERE if is_word_phrase(value) else Distinctiveness.ALONE)
    if level is Distinctiveness.NOT and _VENDOR_KIND.search(kind) and _is_issued(value):
        return Distinctiveness.ANYWHERE
    chosen = _extends_stand_in(value) or _is_numbered_phrase(value)
    if kind in ("PASSWORD", "SECRET") and level is Distinctiveness.NOT and chosen:
        return Distinctiveness.ALONE
    if level is not Distinctiveness.NOT or not kind or not _can_be_chosen(value):
        return level
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(value))
    if shape_wordiness(value) < 0.5 and changes >= 3 and len(value) >= 12 and _SYMBOL.search(value):
        return Distinctiveness.ANYWHERE
    named = _TECHNICAL.search(value) or _CAMEL.search(value) or _JOINT.search(value)
    return level if named or kind != "PASSWORD" else Distinctiveness.ALONE


def _is_issued(value: str) -> bool:
    """Tell whether a value that has a vendor's form is long and varied enough to be nothing else."""
    return (
        20 <= len(value) <= _MOST
        and len(set(value)) >= 10
        and len(_DIGIT.findall(value)) >= 2
        and " " not in value
        and not find_keyed_placeholders(value)
        and not is_stand_in(value)
    )


def _extends_stand_in(value: str) -> bool:
    """Tell whether a password is a stand-in with a part of its own: `changeme-fwuyn`."""
    found = _EXTENDED.fullmatch(value)
    if found is None or len(value) > _MOST_CHOSEN:
        return False
    parts = re.findall(r"[a-z]+|\d+", found["own"].lower())
    return any(len(part) >= 4 and part not in _KNOWN_WORDS and not is_stand_in(part) for part in parts)


def _is_numbered_phrase(value: str) -> bool:
    """Tell whether a password is words joined by hyphens before a number, most of them no word of code."""
    words = _RUNS.findall(value)[:-1] if _NUMBERED_PHRASE.fullmatch(value) else []
    return (
        len(words) > 1
        and len(_KNOWN_WORDS.intersection(words)) * 2 < len(words)
        and not _TECHNICAL.search(value)
    )


def _can_be_chosen(value: str) -> bool:
    """Tell whether a value that stood in a password's place can be one, and no stand-in or place."""
    return (
        MIN_SECRET <= len(value) <= _MOST_CHOSEN
        and not is_ordinary(value)
        and not find_keyed_placeholders(value)
        and not (is_stand_in(value) and not _SYMBOL.search(value))
        and len(set(value)) >= 5
        and _LETTER.search(value) is not None
        and not any(blank in value for blank in " \t\n")
    )


def _judge_shape(value: str) -> Distinctiveness:
    if (
        not MIN_SECRET <= len(value) <= _MOST
        or (is_ordinary(value) and not is_random_path(value))
        or find_keyed_placeholders(value)
    ):
        return Distinctiveness.NOT
    if is_odd_password(value):
        return Distinctiveness.ANYWHERE
    if " " in value or "\t" in value:
        return Distinctiveness.ANYWHERE if _is_phrase(value) else Distinctiveness.NOT
    if _TIME.match(value) or not _LETTER.search(value) or len(set(value)) < 5:
        return Distinctiveness.NOT
    if is_random_path(value):
        return Distinctiveness.ANYWHERE
    if is_random(value):
        return _judge_random(value)
    if is_stand_in(value) or _PLACE.match(value):
        return Distinctiveness.NOT
    if _SYMBOL.search(value) and not _NAME.fullmatch(value):
        return _judge_made_up(value)
    return _judge_name(value)


def _judge_made_up(value: str) -> Distinctiveness:
    """Judge a value made up of words, digits and symbols; a word followed by punctuation is none."""
    core = value.strip(_MARKS)
    letters_and_digits = (
        len(core) >= 6 and _DIGIT.search(core) is not None and _LETTER.search(core) is not None
    )
    made_up = letters_and_digits or (
        _SYMBOL.search(core) and not core.islower() and shape_wordiness(core) < 0.5
    )
    if not made_up or not is_password(value) or _CODE.search(value) or _NUMBERED.match(value):
        return Distinctiveness.NOT
    return Distinctiveness.NOT if _FILE.search(core) or _TECHNICAL.search(core) else Distinctiveness.ANYWHERE


def _judge_random(value: str) -> Distinctiveness:
    solid = len(value) >= 20 and value.rstrip("=").isalnum()
    if (
        entropy(value) < 2.8
        or (_FILE.search(value) and not has_all_kinds(value))
        or (is_stand_in(value) and not solid)
    ):
        return Distinctiveness.NOT
    place = _PLACE.match(value) and not (len(value) >= 20 and is_mixed_case(value))
    return (
        Distinctiveness.NOT
        if place or (_CODE.search(value) and not _SYMBOL.search(value))
        else Distinctiveness.ANYWHERE
    )


def _judge_name(value: str) -> Distinctiveness:
    """Judge a value of letters, digits, `_`, `-` and `.`, which names are made of."""
    changes = sum(a.islower() != b.islower() for a, b in pairwise(value))
    if not _DIGIT.search(value):
        scrambled = len(value) >= 10 and changes >= 5 and value.isalpha() and _CAPITALS.search(value)
        scrambled = scrambled and shape_wordiness(value) < 0.3
        return Distinctiveness.ANYWHERE if scrambled else Distinctiveness.NOT
    if len(value) >= 14 and changes >= 6 and entropy(value) >= 3.4 and shape_wordiness(value) < 0.75:
        return Distinctiveness.ANYWHERE
    if _TECHNICAL.search(value):
        return Distinctiveness.NOT
    if shape_wordiness(value) < 0.5:
        runs = len(_RUNS.findall(value))
        mixed = has_all_kinds(value) and runs >= 3
        return Distinctiveness.ANYWHERE if mixed or (len(value) >= 10 and runs >= 5) else _alone(value)
    return _alone(value)


def _alone(value: str) -> Distinctiveness:
    many = len(_DIGIT.findall(value)) >= 2 and not _CAMEL.search(value)
    return (
        Distinctiveness.ALONE
        if many and _IDENTIFIER.fullmatch(value) and "_" not in value
        else Distinctiveness.NOT
    )


def _is_phrase(value: str) -> bool:
    """Tell whether a value is three or more words, separated by blanks, that make no sentence."""
    words = value.lower().split(" ")
    if len(words) < 3 or len(value) < 16 or not all(map(_PHRASE.fullmatch, words)):
        return False
    return not (SPEECH | LABELS).intersection(words) and not is_stand_in(value)
