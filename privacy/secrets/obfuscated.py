# ruff: noqa: E501 (patterns)
"""Detect tokens with something in the middle: colours, invisible characters, joined string literals.

Line ends and characters written as escapes count too. What a reader or a program would remove is removed
here.
"""

import re
import string
from collections.abc import Iterator

from tracemill.privacy.core.line_prefixes import PlainText, join_broken_lines
from tracemill.privacy.core.rule import (
    LEFT,
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    build_words_pattern,
    make_probed_detector,
)
from tracemill.privacy.secrets.formats.business import BUSINESS
from tracemill.privacy.secrets.formats.development import DEVELOPMENT
from tracemill.privacy.secrets.formats.hosting import HOSTING
from tracemill.privacy.secrets.formats.model_services import MODELS
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
_LONGEST = 8192  # characters of a token before its break
_BESIDE = 64  # characters of a literal that are not those of a word, such as `access_token$`
_TAIL = 16  # characters between a piece and its line end
_EDGE = 120  # characters before a token that its format may look at
_LINE_END = re.compile(r"\r?\n")
_NEXT_LINE = 160  # characters behind a break that must hold letters and digits
_MOST_LINES = 6  # line ends at which the rest of a token is sought
_LEAST_PIECE = 6  # characters of a piece that follows what could be a whole token
_GENERIC = frozenset(
    (
        *["/hooks/", "hooks.slack.com", "maker.ifttt.com", "office.com", "webhooks", "pubkey-", "-server-"],
        *["pat.", "sat."],
    )
)
_RULES = (*MODELS, *BUSINESS, *HOSTING, *DEVELOPMENT)
_BEGINNINGS = sorted(
    literal
    for literal in {literal for rule in _RULES for literal in rule.literals}
    if len(literal) > 3 and literal not in _GENERIC
)
_LITERALS = (
    *_BEGINNINGS,
    *("eyJ", "hf_", "r8_", "fw_", "fc-", "xox", "dp.", "mb_", "m0-", "pa-", "sk-proj-", "sk-svcacct-"),
)
_OTHERS = (
    *(r"pat[A-Za-z0-9]{14}\.", r"\d{8,10}:AA", r"[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\."),
    *(r"st\.[0-9a-f]{8}", r"[ps]k_[A-Za-z0-9]{8}", r"sk-(?:admin-|[A-Za-z0-9]{8})"),
)
_ANY = "|".join((build_words_pattern(map(str.encode, _LITERALS)).decode("ascii"), *_OTHERS))
# A line end, or the end of a literal that another one continues.
_BREAK = r"(?:\\?\r?\n|[\"'`][ \t]*(?:[+.&\\]?[ \t]*\r?\n|[+.&][ \t]*[frbuFRBU]?[\"'`]))"
_TO_BREAK = rf"[\w.~+/=%-]*(?:\x1b\[[0-9;]*m)?{_BREAK}"
_IN_WORD = f"{string.ascii_letters}{string.digits}_.~+/=%-"
_BROKEN_WORD = build_rule_pattern(rf"(?<![\w.~+/=%-])[\w.~+/=%-]++(?:\x1b\[[0-9;]*m)?{_BREAK}")
_OPEN_END = build_rule_pattern(rf"(?:{_ANY}){_TO_BREAK}")
_EDGE_BEFORE = build_rule_pattern(LEFT)
_INSIDE = sorted({re.escape(literal) for rule in _RULES if not rule.prefixed for literal in rule.literals})
_WITHOUT_EDGE = build_rule_pattern("|".join((*_OTHERS, *_INSIDE, glued_token_formats())))
"""Beginnings of tokens that letters may stand before."""
_TOGETHER = 40  # formats in a probe
_DRAWN = build_rule_pattern(r"[a-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Z][0-9]")
_NAME = build_rule_pattern(r"[A-Z]?[a-z]{2,}(?:[A-Z][a-z]{2,})*\d{0,2}|[a-z_]+\d{0,2}|[A-Z_]+\d{0,2}")


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


_SHORT_NAME = 20  # characters of a name in a listing, whose next row begins with a digest
_DIGEST = build_rule_pattern(r"[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")


def find_wrapped(view: TextView) -> Iterator[Span]:
    """Find tokens that line ends or joined literals interrupt."""
    text, done = view.text, -1
    for low, high in view.windows():
        before = text[max(0, low - _LONGEST) : low]
        low -= len(before) - len(before.rstrip(_IN_WORD))
        for word in _BROKEN_WORD.finditer(text, low, min(len(text), high + _TAIL)):
            start = max(low, word.start() - _BESIDE)
            low = word.end()
            for match in _OPEN_END.finditer(text, start, word.end()):
                if match.start() < done or not _DRAWN.search(text, match.end(), match.end() + _NEXT_LINE):
                    continue
                if not (_EDGE_BEFORE.match(text, match.start()) or _WITHOUT_EDGE.match(text, match.start())):
                    continue
                for span in _wrapped_from(text, match.start(), match.end()):
                    done = max(done, span.end)
                    yield span


def _wrapped_from(text: str, at: int, broken: int) -> list[Span]:
    """Return the tokens that begin near a place and go on over a break, most lines first.

    With fewer lines no word of a line behind a token is read as a part of it.
    """
    start, end = max(0, at - _EDGE), min(len(text), broken + _REACH)
    ends = [end, *(line.start() for line in _LINE_END.finditer(text, broken + 1, end))][:_MOST_LINES]
    for stop in sorted(ends, reverse=True):
        found = []
        for joined in join_broken_lines(text[start:stop]):
            for span in find_tokens(TextView(joined.text)):
                if last := _end_of_wrapped(joined, span):
                    first, last = joined.place_whole(span.start, last)
                    found.append(Span(start + first, start + last, span.kind))
        if found:
            return found
    return []


def _end_of_wrapped(joined: PlainText, span: Span) -> int:
    """Return where a token ends that goes on after a line end, or 0 where it does not.

    What follows the first line is more of it where the token has a fixed size, or where it is no word.
    """
    cuts = joined.cuts(span.start, span.end)
    if not cuts:
        return 0
    if _WHOLE.fullmatch(joined.text, span.start, cuts[0]):
        return 0
    if whole := _WHOLE.match(joined.text, span.start):
        return whole.end() if cuts[0] < whole.end() else 0
    text, first = joined.text, joined.text[span.start : cuts[0]]
    open_end = any(each.end == len(first) for each in find_tokens(TextView(first)))
    ends = [*cuts[1:], span.end]
    if len(first) < _SHORT_NAME and _DIGEST.fullmatch(text, cuts[0], ends[0]):
        return 0
    drawn = [end for at, end in zip(cuts, ends, strict=True) if _is_drawn_piece(text[at:end])]
    if open_end or len(ends) > 1:
        return drawn[-1] if drawn else 0
    return span.end


def _is_drawn_piece(piece: str) -> bool:
    """Tell whether a piece is no word: letters and digits, or letters that change case in the middle."""
    return len(piece) >= _LEAST_PIECE and _DRAWN.search(piece) is not None and not _NAME.fullmatch(piece)


_WHOLE = build_rule_pattern(rf"(?:{glued_token_formats(whole=True)})")
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


_BEGINNING = build_rule_pattern("|".join(f"(?:{each})" for each in _beginnings(_INVISIBLE)))
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_disguised,
        *_beginnings(r"\xad\x00"),
    ),
    make_probed_detector(
        find_wrapped,
        *(
            rf"(?:{'|'.join(map(re.escape, _LITERALS[first : first + _TOGETHER]))}){_TO_BREAK}"
            for first in range(0, len(_LITERALS), _TOGETHER)
        ),
        # A probe of several that begin with classes of characters takes as long as a hundred others.
        *(shape + _TO_BREAK for shape in _OTHERS),
        located=True,
    ),
)
