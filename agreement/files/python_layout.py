"""Python files apart from their layout, and from comments that only a person reads."""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from functools import lru_cache

from tracemill.records.identity import digest

_MAX_PYTHON = 200_000
_LAYOUT = frozenset((tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING))
_MARKS = frozenset(
    ("noqa", "nosec", "nosonar", "nopep8", "nolint", "pragma", "pyre", "skipcq", "region", "endregion")
)
_FIRST_WORD = re.compile(r"([^\W\d_][\w'/]*)([:=]?)")
_RULE = frozenset(" \t=-*~_.+")
_QUOTES = frozenset("(\"'`")
_SCRIPT = "///"


@lru_cache(maxsize=512)
def digest_without_layout(text: str) -> str | None:
    """Digest of the syntax tree of a Python file and of the comments that tools act on, so of all but layout
    and other comments; None where it is none, or longer than 200 kB."""
    if len(text) > _MAX_PYTHON:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.dump(ast.parse(text))
        return digest(tree, *(_comments(text) if "#" in text else ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return None


def is_acted_on(comment: str) -> bool:
    """True for a comment that a tool may act on, such as `# type: ignore`, `# noqa`, `# fmt: off`, a coding
    cookie or a `#!` line. One that is not surely prose counts as such."""
    return any(map(_tells_a_tool, re.split("#+", comment)[1:]))


def _tells_a_tool(words: str) -> bool:
    told = words.strip()
    if _RULE.issuperset(told):
        return False
    if "coding:" in told or "coding=" in told:
        return True
    word = _FIRST_WORD.match(told)
    if word is None:
        return not (told[0] in _QUOTES or told[0].isdigit())
    if word[1].lower() in _MARKS:
        return True
    return bool(word[2]) and not word[1][0].isupper()


def _comments(text: str) -> Iterator[str]:
    """The comments that tools act on, each with its place among the words of the file. In a script with
    metadata (PEP 723) all comments are."""
    every = any(line.startswith(f"# {_SCRIPT}") for line in text.split("\n"))
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if every or is_acted_on(token.string):
                alone = not token.line[: token.start[1]].strip()
                yield f"{count} {'alone' if alone else 'behind'} {token.string.rstrip()}"
        elif token.type not in _LAYOUT:
            count += 1
