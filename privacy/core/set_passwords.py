# ruff: noqa: E501 (patterns)
"""Judge whether a whole value set under a password's name is a password, whatever characters it has.

Code, templates, patterns and sentences occur in such places too. They are recognised by their grammar, not
by single characters: `{`, `(`, `/` or a blank are as likely in a generated password as in code.
"""

import re
from itertools import pairwise

from tracemill.privacy.core.entropy import is_stand_in, shape_wordiness
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS, SETTING_WORDS, SPEECH

_LEAST, _MOST = 8, 256  # characters
_LEAST_MINGLED = 12  # characters of small letters with digits among them
_MARKED_WORD = re.compile(r"[A-Za-z]{3,16}[@_-]?\d{2,6}[!#$%&*@?]{1,3}")
_NUMBERED_PHRASE = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){2,7}-?\d{2,6}")
_MINGLED = re.compile(r"[a-z]{3,12}\d{3,8}[a-z]{3,12}")
_TECHNICAL = re.compile(
    r"(?i)sha\d|md\d|utf|base\d|x\d{3}|amd|arm\d|aes|rsa|http|log4j|ipv\d|\d{5}|h26\d|key|api|app|ext\b|auth|token"
)
_KNOWN_WORDS = COMMON_WORDS | LABELS | SETTING_WORDS | SPEECH
_TEMPLATE = re.compile(
    r"\$\{[\w.:!#?-]*\}|\$\{[A-Za-z_][\w.]*(?:$|:)|\$\([^()]{2,}\)|\{\{[^{}]*\}\}|<%|%>|#\{\w[^{}]*\}|%\(\w+\)[sdr]|\{[A-Za-z_][\w.]*\}"
    r"|\$\{\{|\{\{ |\$\[\[|<[A-Za-z_/][\w /-]*>"
)
_WHOLE = re.compile(
    r"<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)|\(\(.*\)\)|\$[A-Za-z_][\w.:>-]*|%\w+%|@[\w./:(')-]+|[!&*][A-Za-z_][\w ]*"
    r"|(?:await |new |yield |not |return )?[A-Za-z_$][\w.$:>?!-]*(?:\(.*\)|\[.*\])[;,]?"  # calls and subscripts
    r"|[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+(?:\(.*)?"
    r"|[a-z][a-z\d+.-]{1,12}://[\w./:%?=&#-]*|(?:~|\.{0,2})/[\w.@/-]*|[A-Za-z]:\\[\w.\\ -]*|[\w.@-]+(?:/[\w.@-]+)+"
    r"|[\w.-]+@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\|[\w:,.-]+)+|ENC\[.*|\$ANSIBLE_VAULT.*|\\?[\w\\]+::.*|[\w-]+=[\w-]+(?:[&;][\w-]+=[\w-]*)*"
    r"|[-+]?[\d.,:/ %-]+|\W+",
    re.DOTALL,
)
_STAND_IN = re.compile(
    r"(?i)example|sample|dummy|placeholder|your[_\- ]|change[_\-]?(?:me|this|it)|x{4,}|\*{3,}|\.{3}|redacted|insert|"
    r"lorem|undefined|\bnull\b|passwor[dt]|secret|token"
)
_PATTERN = re.compile(r"\(\?|\\[dwsDWSb]|\[\^?[A-Za-z0\\]-?|[.\])][*+]|\{\d+(?:,\d*)?\}|^\^|\$$|A-Z|a-z|0-9")
_FRAMED = re.compile(
    r"(?:\$\{.*\}|\$\(.*\)|\{\{.*|<%.*|\$[A-Za-z_][A-Za-z_]*|%[A-Za-z_]+%|\(\?.*|[\w.]+\([\w., ]*\))$"
)
_PLAIN = re.compile(r"[!#$%&*@^]?[A-Za-z0-9]+[!#$%&*@^]?")
_CODE = re.compile(r"=>|->|::|\(\)|&&|\|\||[=!]==?|\+=|\w\(\w*\)\.|\]\[|\"\]|'\]|\\n")
_WORDS = re.compile(r"[A-Za-z]{2,}")
_SYMBOL = re.compile(r"[^\w\s]|_")
_ODD = re.compile(r"[!#$%?@^~\\|<>`&*+]")
_SIGN = re.compile(
    r"[0-9(){}\[\]/,;:'!#$%?@^~\\|<>&*+=]"
)  # every random or made-up password has one of these
_MARK = re.compile(r"[!#$%?@^~*+&=]")
_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_ENCLOSING = re.compile(r"[()\[\]{}\"'`]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_PIECE = re.compile(r"[A-Za-z0-9]{6,}")
_CLASSES = bytes(
    ord("a") if 97 <= c <= 122 else ord("A") if 65 <= c <= 90 else ord("0") if 48 <= c <= 57 else ord("!")
    for c in range(256)
)


def is_set_password(value: str) -> bool:
    """Tell whether a quoted value is random characters, or a word with digits and symbols."""
    if _SIGN.search(value) is None:
        return False
    if _is_surely_drawn(value):
        return True
    if not _is_candidate(value):
        return False
    return _is_phrase(value) if " " in value else _is_drawn(value) or _is_made_up(value)


def is_bare_password(value: str, among_settings: bool = False) -> bool:
    """Return whether an unquoted value that fills the rest of its line looks like a password.

    In source code such a value is an expression.
    """
    if _SIGN.search(value) is None:
        return False
    if _is_surely_drawn(value):
        return True
    if value[0] in "=:`":
        return False
    if among_settings and " " not in value and len(value) >= 12 and is_set_password(value):
        return not _is_balanced(value) or _ODD.search(value) is not None
    if not _is_candidate(value) or _CODE.search(value):
        return False
    if " " in value:
        parts = value.split(" ")
        return (
            len(parts) == 2
            and not _ENCLOSING.search(value)
            and _is_phrase(value)
            and _MARK.search(value) is not None
        )
    if _ENCLOSING.search(value) is None and value[-1] not in ",;":
        return _is_drawn(value) or _is_made_up(value)
    odd = len(set(_ODD.findall(value)))
    if _is_balanced(value) or value[-1] in "([{,;":
        return len(value) >= 14 and odd >= 2 and _is_drawn(value)
    return len(value) >= 10 and _is_drawn(value) and (odd >= 1 or len(value) >= 14)


def is_made_up_key(value: str) -> bool:
    """Tell whether a value under the name of a token, key or secret is made up like a password.

    It has capitals, small letters and a mark, and is no path, code or sentence.
    """
    if (
        len(value) < 10
        or " " in value
        or not _MARK.search(value)
        or not _is_candidate(value)
        or _CODE.search(value)
    ):
        return False
    if not (_LOWER.search(value) and _UPPER.search(value) and _MARK.search(value)):
        return False
    return (_is_drawn(value) or _is_made_up(value)) and (
        _DIGIT.search(value) is not None or shape_wordiness(value) < 0.75
    )


def is_chosen_key(value: str) -> bool:
    """Tell whether a whole value under the name of a token, key or secret is one that somebody chose.

    It is a word with digits and a mark (`harbor4125!`), words joined by hyphens before a number, small letters
    with digits among them, or eight letters or more in both cases that make no words.
    """
    if is_stand_in(value):
        return False
    if _MARKED_WORD.fullmatch(value):
        return True
    if _NUMBERED_PHRASE.fullmatch(value):
        return len(_KNOWN_WORDS.intersection(re.findall("[a-z]+", value))) < 2
    if _MINGLED.fullmatch(value):
        return len(value) >= _LEAST_MINGLED and _TECHNICAL.search(value) is None
    if not 8 <= len(value) <= 32 or not value.isascii() or not value.isalnum() or value.isdigit():
        return False
    if _TECHNICAL.search(value):
        return False
    if value.islower():
        return len(value) >= _LEAST_MINGLED and _changes(value) >= 4
    needed = 2 if _DIGIT.search(value) else 4
    return _LOWER.search(value) is not None and _changes(value) >= needed and shape_wordiness(value) < 0.25


def is_odd_password(value: str) -> bool:
    """Tell whether a value is so random that it can be nothing else than a password.

    It has capitals, small letters, two digits or more and a mark, and nothing of code.
    """
    if _is_surely_drawn(value):
        return _MARK.search(value) is not None
    if not 12 <= len(value) <= _MOST or len(_DIGIT.findall(value)) < 2 or _kinds(value) < 4:
        return False
    return "=" not in value and _MARK.search(value) is not None and is_set_password(value)


def _is_surely_drawn(value: str) -> bool:
    """Tell whether letters, digits and symbols are mixed so evenly that it cannot be code."""
    if not 12 <= len(value) <= _MOST or not value.isascii() or not value.isprintable() or " " in value:
        return False
    if _FRAMED.match(value) or _STAND_IN.search(value) or shape_wordiness(value) >= 0.3:
        return False
    changes = _changes(value)
    if _PLAIN.fullmatch(value):
        return _kinds(value) >= 3 and _DIGIT.search(value) is not None and changes >= 0.4 * (len(value) - 1)
    odd = len(set(_ODD.findall(value)))
    return _kinds(value) >= 3 and odd >= 2 and changes >= (0.45 if odd == 2 else 0.35) * (len(value) - 1)


def _is_candidate(value: str) -> bool:
    """Tell whether a value is not as a whole a template, stand-in, expression or pattern."""
    if not _LEAST <= len(value) <= _MOST or not value.isprintable() or len(set(value)) <= 4:
        return False
    if _TEMPLATE.search(value) or len(set(_PATTERN.findall(value))) >= 3:
        return False
    if _STAND_IN.search(value) or (_WHOLE.fullmatch(value) and not _is_odd_path(value)):
        return False
    return not (
        " " not in value
        and _ENCLOSING.search(value) is None
        and is_stand_in(value)
        and not _SYMBOL.search(value)
    )


def _is_odd_path(value: str) -> bool:
    """Tell whether a value has the form of a path but a random piece and no file ending.

    Of one that begins with a slash, every piece is random.
    """
    if re.fullmatch(r"/?[\w@+-]+(?:/[\w@+-]+)*", value) is None:
        return False
    pieces = _PIECE.findall(value)
    return any(map(is_scrambled_piece, pieces)) and (value[0] != "/" or all(map(is_scrambled_piece, pieces)))


def is_scrambled_path(value: str) -> bool:
    """Tell whether a value in the form of a path has capitals, small letters, digits and no word."""
    if "." in value or not re.fullmatch(r"/?[\w@-]+(?:/[\w@-]+)+", value):
        return False
    return _kinds(value) == 4 and shape_wordiness(value) < 0.2


def is_random_path(value: str) -> bool:
    """Tell whether a value has the form of a path of random pieces: capitals, small letters and digits."""
    return (
        "/" in value
        and _kinds(value) == 4
        and len(value) >= 12
        and _is_odd_path(value)
        and shape_wordiness(value) < 0.45
    )


def is_scrambled_piece(piece: str) -> bool:
    """Tell whether letters and digits of a piece alternate as no name's do."""
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(piece))
    mixed = _DIGIT.search(piece) and _LOWER.search(piece) and _UPPER.search(piece)
    return (changes >= 3 or bool(mixed)) and not piece.isdigit() and shape_wordiness(piece) < 0.5


def _kinds(value: str) -> int:
    return sum(each.search(value) is not None for each in (_LOWER, _UPPER, _DIGIT, _SYMBOL))


def _is_drawn(value: str) -> bool:
    """Tell whether characters of three kinds alternate as no words' or code's do."""
    if len(value) < 10 or _kinds(value) < 3 or not value.isascii():
        return False
    return _changes(value) >= 0.45 * (len(value) - 1) and shape_wordiness(value) < 0.4


def _changes(value: str) -> int:
    """Count how often a character is of another kind than the one before it."""
    return sum(a != b for a, b in pairwise(value.encode("ascii").translate(_CLASSES)))


def _is_made_up(value: str) -> bool:
    """Tell whether a value is a word or two with digits and symbols: `Tundra(9412)Xq7`."""
    if _kinds(value) < 3 or _SYMBOL.search(value) is None or not _LOWER.search(value) or _CODE.search(value):
        return False
    if shape_wordiness(value) >= 0.8 or len(_WORDS.findall(value)) > 4:
        return False
    return _DIGIT.search(value) is not None or (
        _MARK.search(value) is not None and shape_wordiness(value) < 0.75
    )


def _is_phrase(value: str) -> bool:
    """Tell whether parts separated by blanks make no sentence and no code.

    The parts have letters in both cases with digits among them.
    """
    parts = value.split(" ")
    if len(parts) > 6 or _CODE.search(value) or _kinds(value) < 3 or value != value.strip():
        return False
    words = [word.lower() for word in _WORDS.findall(value)]
    if SPEECH.intersection(word for word in words if len(word) > 2):
        return False
    drawn = shape_wordiness(value) < 0.3 and len(value) >= 12 and min(map(len, parts)) >= 1
    mixed = (
        _DIGIT.search(value) is not None
        and _UPPER.search(value) is not None
        and _LOWER.search(value) is not None
    )
    scrambled = any(_kinds(part) >= 3 and len(part) >= 6 and shape_wordiness(part) < 0.5 for part in parts)
    return mixed and (drawn or (scrambled and shape_wordiness(value) < 0.5))


def _is_balanced(value: str) -> bool:
    """Tell whether brackets and quotes are closed as in code."""
    opened: list[str] = []
    for each in _ENCLOSING.findall(value):
        if each in _PAIRS:
            if not opened or opened.pop() != _PAIRS[each]:
                return False
        elif each in "([{":
            opened.append(each)
    return not opened and not any(value.count(quote) % 2 for quote in "\"'`")
