"""Tell secrets from ordinary text by shape, entropy and words."""

import base64
import binascii
import math
import re
import string
from functools import lru_cache
from itertools import pairwise

from tracemill.privacy.core.letter_pairs import is_drawn_letters
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS, SPEECH

# Stand-ins of documentation, templates and masks.
_STAND_IN = re.compile(
    r"(?i)example|sample|dummy|placeholder|your[_\- ]?|change[_\-]?(?:me|this|it)|x{4,}|\*{3,}|\.{3}|"
    r"redacted|insert|not[-_ ]?an?[-_ ]|lorem|ipsum|undefined|<[a-z_]"
)
# `foo` and its like stand alone or in a row; among other letters they occur in a password by chance.
_SHORT_STAND_IN = re.compile(r"(?i)fake|mock|todo|(?<![a-z])(?:my)?(?:foo|bar|baz|qux)+(?![a-z])|null|none\b")
_SEALED = re.compile(
    r"(?:ENC|SEC)[\[(]|\{cipher\}|\{aes\}|encrypted:[A-Za-z0-9+/=]{16}|vault:v\d+:|\$ANSIBLE_VAULT|AQICAH|U2FsdGVkX1|Ag[AB][A-Za-z0-9+/]{96,}={0,2}$"
    r"|-----BEGIN (?:PGP MESSAGE|AGE ENCRYPTED)"
)
# Words of code and prose about secrets; a value with digits and symbols may still hold them.
_ABOUT = re.compile(
    r"(?i)passw|secret|passphrase|token|credential|12345|abcdef|qwerty|default|invalid|required|optional|"
    r"hidden|masked|string|(?<![a-z])(?:true|false)(?![a-z])|(?:env|environ|getenv|config|settings)(?![a-z])|(?<![a-z])test"
)
# Code, templates, paths, addresses, times.
_CODE = re.compile(
    r"^(?:\$[A-Za-z_{(]|%[(\w]|[{(<\[/\\]|@\w+[/(]|\.(?:[./]|[A-Za-z_]{3})|~/|&\w+;|&[a-z_]\w*$|\*+\w+$)|[{}()<>]|\[\^|\.\*|\.\+|\\[wdsSDWb]|::|"
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?$|^https?:|sha\d{1,3}[:-]|^[A-Za-z]:[\\/]|->|=>|\|\||"
    r"^(?:self|this|process|os|req|request|ctx|args|opts|options|props|params|data|user|app)\."
)
_INNER_DIGITS = re.compile(r"(?<=[A-Za-z])\d+(?=[A-Za-z])")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_HEX = re.compile(r"[0-9a-fA-F]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_LOWER_WORD = re.compile(r"[a-z]{8,32}")
_PHRASE_WORD = re.compile(r"[a-z0-9]{2,16}|\d")
_JOINED = re.compile(r"(?=.*[A-Z0-9])[A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,12}){2,7}")
_SPECIAL = re.compile(r"[!@#$%^&*+=?~]")
_TWO_CAPITALS = re.compile(r"[A-Z]{2}")
_BLANK = re.compile(r"\s")
_TYPE_NAME = re.compile(r"[a-z0-9](?:Key|Token|Secret|Password|Credential)s?$")
_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_QUOTE = re.compile(r"[\"'`]")
_LETTER = re.compile(r"[^\W\d_]")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")  # words have no blanks between them
_DIGIT_OR_SPECIAL = re.compile(r"[\d!@#$%^&*+=?~]")
_PATH = re.compile(r"^[\w.@-]+(?:/[\w.@-]+)+$")


_NO_DIGITS = bytes(range(48, 58))
_NO_LETTERS = (string.ascii_letters).encode()
_TIMES_LOG = (0.0, *(n * math.log2(n) for n in range(1, 513)))


def _letters_and_digits(value: str) -> tuple[int, int]:
    """Count the ASCII letters and the digits of a text."""
    raw = value.encode("latin-1", "replace")
    size = len(raw)
    return size - len(raw.translate(None, _NO_LETTERS)), size - len(raw.translate(None, _NO_DIGITS))


def entropy(text: str) -> float:
    """Return the Shannon entropy of the first 512 characters, in bits per character."""
    text = text[:512]
    size = len(text)
    return (
        math.log2(size) - sum(map(_TIMES_LOG.__getitem__, map(text.count, set(text)))) / size if size else 0.0
    )


def shape_wordiness(text: str) -> float:
    """Return the share of letters and digits that belong to word-shaped parts, 0 to 1.

    Parts are cut at case, digits and punctuation (`getUserName2` → get, User, Name, 2). A part is word-shaped
    where it has four letters or more, vowels, and no long run of consonants.
    """
    total = words = 0
    for part in _PARTS.findall(text):
        total += len(part)
        if len(part) >= 4 and part.isalpha() and _is_wordlike(part):
            words += len(part)
    return words / total if total else 0.0


@lru_cache(maxsize=8192)
def _is_wordlike(part: str) -> bool:
    vowels = len(_VOWEL.findall(part))
    return 0.2 <= vowels / len(part) <= 0.75 and not re.search(r"(?i)[^aeiouy]{5}|q(?!u)", part)


def is_stand_in(value: str) -> bool:
    """Tell whether a value is a placeholder: `your-api-key`, `${TOKEN}`, `os.environ[...]`."""
    if len(set(value)) <= 3 or _CODE.search(value) or _SEALED.match(value):
        return True
    if len(value) > 80:
        return False  # long random text holds any short word by chance
    if _STAND_IN.search(value) or (_SHORT_STAND_IN.search(value) and not is_drawn(value)):
        return True
    strong = _DIGIT.search(value) and _SPECIAL.search(value)
    return not strong and bool(_ABOUT.search(value)) and len(_INNER_DIGITS.findall(value)) < 2


def is_sealed(value: str) -> bool:
    """Tell whether a value is the ciphertext of a secret, in the form of sops, eyaml, Jasypt or Vault."""
    return bool(_SEALED.match(value))


def is_given(value: str) -> bool:
    """Tell whether a value where only a secret can stand is no stand-in."""
    return not is_stand_in(value)


def is_drawn(value: str) -> bool:
    """Tell whether a value has 16 or more characters of mixed case and digits, without words.

    Any three letters can occur in such a value by chance.
    """
    return len(value) >= 16 and is_mixed_case(value)


def is_uuid(value: str) -> bool:
    """Tell whether a value is a UUID: 32 hex digits in the five groups of RFC 9562."""
    return bool(_UUID.fullmatch(value))


def is_random(value: str) -> bool:
    """Tell whether a machine made the value: long, letters and digits, high entropy, no words."""
    if len(value) < 12 or not value.isascii():
        return False
    letters, digits = _letters_and_digits(value)
    if not letters or letters + digits < 0.7 * len(value):
        return False
    if _UUID.fullmatch(value):
        return True
    if _HEX.fullmatch(value):
        return len(value) >= 16 and digits >= 2 and entropy(value) >= 2.6
    if not digits and (len(value) < 20 or value.islower() or value.isupper()):
        return False
    long = len(value) >= 32 and digits >= 3 and not value.islower() and not value.isupper()
    return entropy(value) >= 3.0 and shape_wordiness(value) < (0.65 if long else 0.5)


def is_password(value: str) -> bool:
    """Tell whether a value could have been chosen as a password.

    It has six characters or more and no blank, and letters with digits or symbols, or letters that are no
    words.
    """
    if not 6 <= len(value) <= 128 or _BLANK.search(value) or _PATH.match(value):
        return False
    if not _LETTER.search(value) or _IDEOGRAPH.search(value) or is_stand_in(value):
        return False
    if _DIGIT_OR_SPECIAL.search(value) or is_drawn_letters(value):
        return True
    return (
        len(value) >= 8
        and value.isascii()
        and not value.islower()
        and not value.isupper()
        and (shape_wordiness(value) < 0.3 or changes_case_often(value) or _is_in_short_parts(value))
    )


def _is_in_short_parts(value: str) -> bool:
    """Tell whether letters change their case so often that two in five stand in parts of one or two."""
    if len(value) < 12 or not value.isalpha():
        return False
    return sum(len(part) for part in _PARTS.findall(value) if len(part) < 3) >= 0.4 * len(value)


def is_plain_password(value: str) -> bool:
    """Tell whether a value in a password's place is a word, a number or words separated by blanks.

    Code, documentation and sentences are excluded.
    """
    if not 6 <= len(value) <= 128 or is_stand_in(value) or _PATH.match(value):
        return False
    if value.isdigit():
        return len(value) <= 32
    if _LOWER_WORD.fullmatch(value):
        return value not in COMMON_WORDS and value not in LABELS
    if _JOINED.fullmatch(value):
        return True
    words = value.split(" ")
    if not 3 <= len(words) <= 8 or not all(map(_PHRASE_WORD.fullmatch, words)) or LABELS.intersection(words):
        return False
    return len(SPEECH.intersection(words)) <= bool(_DIGIT.search(value))


def has_all_kinds(value: str) -> bool:
    """Tell whether a value has capitals, small letters and digits."""
    return bool(_LOWER.search(value) and _UPPER.search(value) and _DIGIT.search(value))


def is_scrambled(value: str) -> bool:
    """Tell whether the case of the letters changes as it does in no words; digits are optional."""
    if len(value) < 22 or not value.isascii() or len(_TWO_CAPITALS.findall(value)) < 2:
        return False
    return changes_case_often(value) and entropy(value) >= 3.8


def changes_case_often(value: str) -> bool:
    """Tell whether every third letter or more is in another case than the one before, with few words."""
    changes = sum(a.islower() != b.islower() for a, b in pairwise(value))
    return changes * 3 >= len(value) and shape_wordiness(value) < 0.5


def is_noise(value: str) -> bool:
    """Tell whether a value is 32 or more random letters, digits and symbols, those of code included."""
    if not 32 <= len(value) <= 512 or not value.isascii() or _BLANK.search(value) or value[0] in "$%{<":
        return False
    digits = _letters_and_digits(value)[1]
    return (
        digits >= 2
        and _SPECIAL.search(value) is not None
        and entropy(value) >= 4.3
        and shape_wordiness(value) < 0.4
    )


def is_token(value: str) -> bool:
    """Tell whether a value looks like a key or token that a service issued."""
    if (
        not is_random(value)
        or _BLANK.search(value)
        or _QUOTE.search(value)
        or _TYPE_NAME.search(value)
        or _CODE.search(value)
    ):
        return False
    if _PATH.match(value) and not (is_mixed_case(value) and (len(value) >= 30 or _is_no_path(value))):
        return False
    plain = value.rstrip("=")
    solid = len(value) >= 32 and plain.isalnum()  # no separators around a word
    return solid or not is_stand_in(value)


def _is_no_path(value: str) -> bool:
    """Tell whether a value with a slash has neither a word nor a file ending."""
    return len(value) >= 14 and "." not in value and shape_wordiness(value) < 0.2


def is_mixed(value: str) -> bool:
    """Tell whether what follows a known prefix has a digit, some variety and few words."""
    return bool(_DIGIT.search(value)) and len(set(value)) >= 8 and shape_wordiness(value) < 0.75


def is_mixed_case(value: str) -> bool:
    """Tell whether upper case, lower case and digits all occur, with hardly any words."""
    kinds = _LOWER.search(value) and _UPPER.search(value) and _DIGIT.search(value)
    return bool(kinds) and shape_wordiness(value) < 0.55 and entropy(value) >= 3.2


def is_base64_login(value: str) -> bool:
    """Tell whether a value is Base64 of `name:password`, as in Basic authentication."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    name, colon, password = plain.partition(":")
    return bool(colon and name and password) and plain.isprintable()


def is_base64_blob(value: str) -> bool:
    """Tell whether a value is long encoded data, not a long path, a long identifier or hex."""
    head = value[:192]
    return not _HEX.fullmatch(head) and entropy(head) >= 4.6 and is_mixed_case(head[:96])
