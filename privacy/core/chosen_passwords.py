"""Recognise passwords that people choose: words with a number, or several words in a row."""

import re
from functools import lru_cache
from itertools import pairwise

from tracemill.privacy.core.entropy import is_stand_in, shape_wordiness
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS, SETTING_WORDS, SPEECH

_LEAST, _MOST = 8, 64  # characters
# A run of letters or digits begins behind neither, so that it can be read in one way only.
_SHAPE = re.compile(
    r"[^\W\d_]{3,}(?:[-_.@+!#$%&*]?(?:(?<![^\W\d_])[^\W\d_]{2,}|(?<!\d)\d+))*[-_+!#$%&*?.]{0,2}"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_PHRASE = re.compile(r"[a-z]{3,12}(?P<joint>[-_. ])[a-z]{3,12}(?:(?P=joint)[a-z]{3,12}){2,6}")
_SHORT_PHRASE = re.compile(r"[a-z]{3,12}-[a-z]{3,12}-[a-z]{3,12}")
_CHAIN = re.compile(r"[a-z]{2,16}(?:-[a-z]{2,16}){3,7}")
_NUMBER = re.compile(r"\d+")
_LEET = re.compile(r"(?=[^a-z]*[a-z])[A-Z][a-z0-9@$!]{3,14}[-_.@]\d{2,4}")
# Names of formats, algorithms, platforms and versions, which hold numbers too.
_TECHNICAL = re.compile(
    r"(?i)sha\d|md[45]|utf-?\d|base\d\d|x86|x64|amd\d|arm\d|aes|rsa\d|http|ipv\d|h26\d|u?int\d|float\d|python\d|node\d|java\d"
    r"|ubuntu|debian|centos|windows|oauth|ed25519|secp|curve\d|iso\d|rfc\d|cve|es20\d\d|postgres|mysql|sqlite|redis|kafka|release|revision"
)
_NAMED = re.compile(
    r"^v?\d+(?:\.\d+)+|\.[a-z]{1,5}$|^[0-9a-f]+$|^[a-z]+[-_]?\d{1,2}$|[a-z]{3,}_[a-z]{3,}|::|->"
)
_MARK = re.compile(r"[!#$%&*+@?~^]")
# Paths, code, names of files and hosts.
_NO_WORDS = re.compile(r"[/\\(){}\[\]<>$`|\"']|:\w|->|=>|\.[a-z]{1,4}$|^[\W_]|,$")
_CAPITALS = re.compile(r"[A-Z]{2}[a-z]")
_KNOWN = COMMON_WORDS | LABELS | SETTING_WORDS | SPEECH


@lru_cache(maxsize=4096)
def is_chosen_password(value: str) -> bool:
    """Tell whether a value is words as people choose them for a password.

    It is one to five words with a number of two digits or more (`pumpkin3933`, `Anna_pepper112`), or four
    words or more with the same joint (`butter-maple-pigeon-moon`). At most a third are words of code.
    """
    if not _LEAST <= len(value) <= _MOST or is_stand_in(value) or _TECHNICAL.search(value):
        return False
    return is_numbered_words(value) or is_word_phrase(value)


def is_numbered_words(value: str) -> bool:
    """Tell whether a value is one to five words with a number, most of them no words of code."""
    if _LEET.fullmatch(value):
        return any(map(str.isdigit, value.rstrip("0123456789")))
    digits = sum(map(len, _NUMBER.findall(value)))
    if not 2 <= digits <= 8 or not _SHAPE.fullmatch(value):
        return False
    words = _WORD.findall(value)
    return len(words) <= 5 and _are_own(words)


def is_word_phrase(value: str) -> bool:
    """Tell whether a value is four small words or more with the same joint, most of them no words of code."""
    return _PHRASE.fullmatch(value) is not None and _are_own(re.split(r"[-_. ]", value))


def is_word_chain(value: str) -> bool:
    """Tell whether a value is four small words or more joined by hyphens, words of code among them or not.

    It is a password only where nothing but a password can stand.
    """
    return _CHAIN.fullmatch(value) is not None and not is_stand_in(value)


def is_short_phrase(value: str) -> bool:
    """Tell whether a value is three small words joined by hyphens, none of them a word of code."""
    if not _SHORT_PHRASE.fullmatch(value) or is_stand_in(value) or _TECHNICAL.search(value):
        return False
    return not _KNOWN.intersection(value.split("-"))


def is_joined_words(value: str) -> bool:
    """Tell whether a value is two to eight words joined by marks, blanks or capitals, half of them unknown.

    So are names of things: it is a password only where the whole value is set under a password's name.
    """
    if not _LEAST <= len(value) <= _MOST or is_stand_in(value) or _TECHNICAL.search(value):
        return False
    if _NO_WORDS.search(value) or (" " in value and not _is_no_sentence(value)):
        return False
    words = [each.lower() for each in _WORD.findall(value)]
    whole = [each for each in words if len(each) >= 3]
    known = sum(each in _KNOWN for each in whole)
    has_own = any(len(each) >= 4 for each in {*whole} - _KNOWN)
    return 2 <= len(words) <= 8 and known * 2 <= len(whole) and has_own


def _is_no_sentence(value: str) -> bool:
    words = value.split()
    if SPEECH.intersection(map(str.lower, words)) or value[-1] in ".:!?" or "  " in value:
        return False
    return len(words) > 1 and (value[0].islower() or any(word[0].isupper() for word in words[1:]))


_CAPITAL_WORD = re.compile(r"[A-Z][a-z]{6,31}(?:[!?.*#$%&+~^-]|\d{1,4})?")
_ABOUT_PASSWORDS = re.compile(
    r"(?i)^(?:pass|kenn?wort|parol|contras|senha|hasl|heslo|wachtwoord|losenord|adgangs|salasana|sifre"
    r"|geslo|lozink|secret|credential|token|key)|passw|passphrase"
)
_TOLD_OF_PASSWORDS = frozenset(
    """
    required optional incorrect forgotten forgot mandatory encrypted plaintext protected generated disabled
    enabled expired temporary confirm confirmed confirmation matching mismatch missing invalid visible
    unchanged changed default standard anonymous bearer digest negotiate anyvalue something anything whatever
    placeholder incomplete secretstr stringfield charfield textfield column varchar nvarchar hashed bcrypt
    argon scrypt buffer literal nullable
    """.split()  # noqa: SIM905
)


def is_capital_word(value: str) -> bool:
    """Tell whether a value is a word with a capital that says nothing of passwords: `Sandkasten3`.

    So are types and labels: it is a password only where the whole value is set under a password's name.
    """
    word = value.rstrip("!?.*#$%&+~^-0123456789").lower()
    return (
        _CAPITAL_WORD.fullmatch(value) is not None
        and not is_stand_in(value)
        and word not in _KNOWN
        and word not in _TOLD_OF_PASSWORDS
        and not _ABOUT_PASSWORDS.search(value)
    )


def is_own_word(value: str) -> bool:
    """Tell whether a value is a small word of eight letters or more that says nothing of passwords."""
    return (
        8 <= len(value) <= 32 and value.isascii() and value.islower() and is_capital_word(value.capitalize())
    )


def is_mingled(value: str) -> bool:
    """Tell whether letters and digits of a value are mixed as in no word: `4rs3n4l-69`, `4ZlUTXpRW5V`."""
    if (
        not _LEAST <= len(value) <= _MOST
        or is_stand_in(value)
        or _TECHNICAL.search(value)
        or _NAMED.search(value)
    ):
        return False
    letters = sum(map(str.isalpha, value))
    if letters == len(value):
        return is_scrambled_letters(value)
    marked = any(map(str.isdigit, value)) or _MARK.search(value) is not None
    if not marked or value.isupper():
        return False
    return letters >= 3 and len(value) - letters >= 2 and shape_wordiness(value) < 0.4


def is_scrambled_letters(value: str) -> bool:
    """Tell whether a value is twelve letters or more whose case changes as in no words: `QHzluirDCGjwp`."""
    if not 12 <= len(value) <= _MOST or not value.isalpha() or not value.isascii():
        return False
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(value))
    pairs = len(_CAPITALS.findall(value))
    return (pairs >= 2 or (pairs == 1 and changes >= 4)) and shape_wordiness(value) < 0.5


def _are_own(words: list[str]) -> bool:
    """Tell whether at most a third of some words are words of code, and one has four letters or more."""
    known = sum(word.lower() in _KNOWN or len(word) < 3 for word in words)
    return known * 3 <= len(words) and any(len(word) >= 4 and word.lower() not in _KNOWN for word in words)
