"""Words and letters of texts; of ASCII texts, as most are, by tables over their bytes."""

import re
import string

_WORD = re.compile(r"\w+")
_NO_LETTER = re.compile(r"[\W\d_]+")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

_ASCII = [chr(code) for code in range(128)]
_LETTERS = string.ascii_letters
_BEYOND = bytes(range(128, 256))
_LOWER_WORDS = "".join(c.lower() if c.isalnum() or c == "_" else " " for c in _ASCII).encode() + _BEYOND
_NOT_LETTERS = "".join(c for c in _ASCII if c not in _LETTERS).encode()
_BLANKS = "".join(" " if c.isspace() else c for c in _ASCII).encode() + _BEYOND
_SIGNS = "".join(c for c in _ASCII if not c.isalnum() and not c.isspace()).encode()


def words_to_count(text: str) -> list[bytes]:
    """The runs of letters, digits and underscores of a text in lower case, as UTF-8."""
    if text.isascii():
        return text.encode("ascii").translate(_LOWER_WORDS).split()
    return [word.encode("utf-8", "surrogatepass") for word in _WORD.findall(text.lower())]


def letters_to_count(text: str) -> str:
    """The letters of a text and nothing else."""
    if text.isascii():
        return text.encode("ascii").translate(None, _NOT_LETTERS).decode("ascii")
    return _NO_LETTER.sub("", text)


def count_words(text: str) -> int:
    """Words between blanks that hold a letter or a digit; a Chinese or Japanese character is a word."""
    if text.isascii():
        return len(text.encode("ascii").translate(_BLANKS, _SIGNS).split())
    text, ideographs = _IDEOGRAPH.subn(" ", text)
    return ideographs + sum(1 for word in text.split() if _ALPHANUMERIC.search(word))
