"""Tell where a placeholder can stand in Python source so that it still parses."""

import ast
import re
import warnings
from collections.abc import Sequence

from tracemill.privacy.core.rule import Span

_LEXEME = re.compile(
    r"#[^\n]*"
    r"|'''[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*'''"
    r'|"""[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*"""'
    r"|'[^\\'\n]*(?:\\.[^\\'\n]*)*'"
    r'|"[^\\"\n]*(?:\\.[^\\"\n]*)*"',
    re.DOTALL,
)
_FORMATTED = re.compile(r"(?<![A-Za-z0-9_])(?:[ft]r?|r[ft])$", re.IGNORECASE)
_OPEN_ESCAPE = re.compile(r"\\(?:$|[xuUN0-7])")
_ESCAPE_SIZE = 10  # characters of the longest escape that is not a name


def is_python(text: str) -> bool:
    """Tell whether the text parses as a Python module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def are_python_safe_spans(text: str, spans: Sequence[Span]) -> bool:
    """Tell whether replacing these spans keeps valid Python valid, without parsing it.

    Spans are in order and disjoint.
    """
    rest = [span for span in spans if not _is_inert(text, span)]
    return not rest or _are_in_strings(text, rest)


def _is_inert(text: str, span: Span) -> bool:
    """Tell whether a span cannot break the code around it.

    It stands after a `#`, between equal quotes, between `<` and `>`, or is capitalised words side by side,
    which are no code.
    """
    before, after = text[span.start - 1 : span.start] if span.start else "", text[span.end : span.end + 1]
    if before in ("'", '"'):
        return after == before and text[span.end - 1] != "\\"
    if before == "<" and after == ">":
        return True
    words = text[span.start : span.end].split(" ")
    if span.kind == "PERSON" and len(words) > 1 and all(word[:1].isupper() for word in words):
        return True
    line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    return line.lstrip()[:1] == "#"


def _are_in_strings(text: str, spans: Sequence[Span]) -> bool:
    """Tell whether every span stands inside a comment or a plain string."""
    waiting = iter(spans)
    span = next(waiting)
    for lexeme in _LEXEME.finditer(text):
        if lexeme.start() > span.start:
            return (
                span.kind == "IP" and "." in text[span.start : span.end]
            )  # outside strings it is no valid Python
        formatted = lexeme[0][0] != "#" and _FORMATTED.search(
            text, max(0, lexeme.start() - 3), lexeme.start()
        )
        if formatted and lexeme[0].count("{") != lexeme[0].count("}"):
            return False  # a string inside it may end it here
        while span.start < lexeme.end():
            if formatted or not _is_inside(text, span, lexeme):
                return False
            following = next(waiting, None)
            if following is None:
                return True
            span = following
    return False


def _is_inside(text: str, span: Span, lexeme: re.Match[str]) -> bool:
    if text[lexeme.start()] == "#":
        return span.end <= lexeme.end()
    quote = 3 if lexeme[0][:3] in ("'''", '"""') else 1
    whole = lexeme.start() + quote <= span.start and span.end <= lexeme.end() - quote
    before = text[max(lexeme.start(), span.start - _ESCAPE_SIZE) : span.start]
    return whole and "\\" not in text[span.start : span.end] and not _OPEN_ESCAPE.search(before)
