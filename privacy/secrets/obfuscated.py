# ruff: noqa: E501 (patterns)
"""Detect tokens with something in the middle: colours, invisible characters, joined string literals.

Line ends and characters written as escapes count too. What a reader or a program would remove is removed
here.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import is_mixed
from tracemill.privacy.core.rule import Detector, Span, TextView, compile_rule_pattern, make_probed_detector
from tracemill.privacy.secrets.glued_tokens import glued_token_formats
from tracemill.privacy.secrets.token_scan import find_tokens

_REACH = 400  # characters around a disguise that are searched for a token
_COLOUR = r"(?:\x1b|\\x1b|\\u001b|\\033|\\e)\[[0-9;]*[A-Za-z]"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\x00"
_JOINT = r"\\*[\"'`][ \t]*(?:[+.&]|\\|\.\.)?[ \t]*(?:\\?\r?\n[ \t]*)?(?:[+.&][ \t]*)?[frbuFRBU]?\\*[\"'`]"
_TAKEN_OUT = rf"(?:{_COLOUR})+|[{_INVISIBLE}]+|</?(?:wbr|b|em|mark|strong|span[^<>]{{0,40}})/?>|\*\*|\\\r?\n[ \t]*|{_JOINT}"
_WRITTEN = (
    r"%[2-7][0-9A-Fa-f]|&#[0-9]{2,3};|&#[xX][2-7][0-9A-Fa-f];|\\x[2-7][0-9A-Fa-f]|\\u00[2-7][0-9A-Fa-f]"
)
_DISGUISE = re.compile(
    rf"(?P<out>(?<=[A-Za-z0-9_.-])(?:{_TAKEN_OUT})(?=[A-Za-z0-9_.*%&\\-]))|(?P<written>{_WRITTEN})"
)
_LINE_END = compile_rule_pattern(
    rf"(?P<a>(?<![A-Za-z0-9])(?:{glued_token_formats()})[\w-]{{0,160}})\r?\n[ \t]{{0,12}}(?P<b>[\w-]{{4,160}})(?![\w-])"
)


def find_disguised(view: TextView) -> Iterator[Span]:
    """Find tokens that are interrupted or escaped."""
    text, done = view.text, -1
    for match in _BEGINNING.finditer(text):
        if match.start() < done:
            continue
        start, end = max(0, match.start() - _REACH), min(len(text), match.end() + _REACH)
        done = end - _REACH // 2
        yield from _tokens_of(text, start, end)


def _tokens_of(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the tokens that the formats find in a part of the text once it is decoded."""
    pieces: list[str] = []
    places: list[int] = []
    at = start
    for match in _DISGUISE.finditer(text, start, end):
        pieces.append(text[at : match.start()])
        places += range(at, match.start())
        if not match["out"]:
            pieces.append(_meant(match))
            places.append(match.start())
        at = match.end()
    pieces.append(text[at:end])
    places += [*range(at, end), end]
    meant = "".join(pieces)
    for span in find_tokens(TextView(meant)):
        first, last = places[span.start], places[span.end - 1]
        if text[first : last + 1] != meant[span.start : span.end]:
            last = _end_of(text, last)
            yield Span(first, last, span.kind)


def _end_of(text: str, last: int) -> int:
    match = _DISGUISE.match(text, last)
    return match.end() if match and not match["out"] else last + 1


def _meant(match: re.Match[str]) -> str:
    written = match["written"]
    if written.startswith("&#"):
        digits = written[2:-1]
        code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
        return chr(code) if 32 < code < 127 else " "
    return chr(int(written[-2:], 16))


def find_wrapped(view: TextView) -> Iterator[Span]:
    """Find tokens of a fixed size that a line end interrupts."""
    for match in _LINE_END.finditer(view.text):
        whole = match["a"] + match["b"]
        if _WHOLE.fullmatch(whole) and not _WHOLE.fullmatch(match["a"]) and is_mixed(whole):
            yield Span(match.start(), match.end(), "TOKEN")


_WHOLE = compile_rule_pattern(glued_token_formats(whole=True))
_IN_TOKEN = r"[A-Za-z0-9_-]"


def _beginnings(invisible: str) -> tuple[str, ...]:
    """Return patterns of interruptions and escapes in the middle of a possible token."""
    return (
        rf"{_IN_TOKEN}{{4}}(?:{_COLOUR})+{_IN_TOKEN}{{4}}",
        rf"{_IN_TOKEN}{{2}}[{invisible}]+{_IN_TOKEN}{{8}}",
        rf"{_IN_TOKEN}{{4}}(?:</?(?:wbr|b|em|mark|strong|span[^<>]*)/?>|\*\*){_IN_TOKEN}{{16}}",
        rf"{_IN_TOKEN}{{4}}\\\r?\n[ \t]*{_IN_TOKEN}{{8}}",
        rf"(?:{glued_token_formats()}){_IN_TOKEN}*{_JOINT}{_IN_TOKEN}{{6}}",
        rf"(?:%[2-7][0-9A-Fa-f]|&#\d+;|&#[xX][2-7][0-9A-Fa-f];|\\x[2-7][0-9A-Fa-f]|\\u00[2-7][0-9A-Fa-f]){_IN_TOKEN}{{16}}",
        r"(?:(?:%|\\x|\\u00)[2-7][0-9A-Fa-f]){16}",
        rf"(?:{_IN_TOKEN}[{invisible}]){{12}}",
    )


_BEGINNING = compile_rule_pattern("|".join(f"(?:{each})" for each in _beginnings(_INVISIBLE)))
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_disguised,
        *_beginnings(r"\xad\x00"),
    ),
    make_probed_detector(find_wrapped, rf"(?:{glued_token_formats()})[\w-]*\r?\n[ \t]*[\w-]{{4}}"),
)
