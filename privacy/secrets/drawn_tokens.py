"""Detect tokens of services whose format is not listed: a prefix and a long part that a machine drew.

Addresses that let anybody post to them (webhooks) are found here too.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import entropy, is_random, is_scrambled, is_token, shape_wordiness
from tracemill.privacy.core.rule import (
    UUID,
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
    skip_rule_escape,
)

_LEAST_DRAWN = 20  # characters of a part that is drawn as a whole
_LEAST_JOINED = 32  # characters of parts that `_` and `-` of the alphabet separate
_LEAST_RUN, _MOST_RUN = 22, 400  # characters of a word that is read at once
_CAPITAL = re.compile(rb"[A-Z]")  # stands in every part that is drawn
_DOT_BEFORE_DRAWN = re.compile(rb"\.(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{%d}" % _LEAST_DRAWN)
_NO_EDGE = frozenset("/+.@")
_WORDS = re.compile(r"(?:[a-z]+[_-]+)+(?=[a-z]+[_-])")  # words before the prefix: `notes-` of `notes-ghp_...`
_APART, _PARTS = re.compile(r"[_-]"), re.compile(r"[._-]")
_UPPER, _LOWER, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")
# First words of what is no secret: ids of messages, calls, payments and builds, digests.
_PUBLIC = frozenset(
    """
    toolu srvtoolu mcptoolu call tool msg message chatcmpl cmpl resp response req request run thread
    asst file item fc rs ws step gen batch msgbatch evt event cus sub pi ch in price acct txn card
    pm src seti si il ii session sess conv conversation org proj project user usr member team vs ft
    dpl prj task job agent trace span node css sc index chunk vendor main app page static assets
    font img image icon svg sha1 sha256 sha384 sha512 md5 blake3 integrity build hash digest id uuid
    guid etag commit rev ref nonce correlation cid docker layer container pod volume snapshot vol
    subnet vpc eni ami sg igw rtb arn test spec case pk pub public ssh rsa ecdsa ed25519 git tree
    blob cache key_id keyid client clientid claude gpt model checkpoint dataset
    """.split()  # noqa: SIM905
)


def find_prefixed(view: TextView) -> Iterator[Span]:
    """Find words with a part of random letters in both cases and digits, after a prefix."""
    text = view.text
    for start, end in _words_with_capitals(view):
        start = skip_rule_escape(text, start)
        if text[start - 1 : start] in _NO_EDGE or text[end : end + 1] in ("+", "/"):
            continue
        first, *parts = _APART.split(text[start:end].strip("_-"))
        if parts and first.lower() not in _PUBLIC and _has_drawn_part(parts):
            words = _WORDS.match(text, start, end)
            yield Span(words.end() if words else start, end, "API_KEY")


def _words_with_capitals(view: TextView) -> Iterator[tuple[int, int]]:
    """Yield long words that hold a capital, in pieces of at most `_MOST_RUN` characters."""
    for first, last in view.long_runs("runs", _LEAST_RUN):
        for start in range(first, last - _LEAST_RUN + 1, _MOST_RUN):
            end = min(last, start + _MOST_RUN)
            if _CAPITAL.search(view.raw, start, end):
                yield start, end


_DOTTED = build_rule_pattern(
    r"(?<![\w./+-])[a-z][\w-]{0,20}\.(?:[A-Za-z0-9_-]{8,64}\.)?[A-Za-z0-9_-]{20,256}(?![\w=]|[.][a-z])"
)


def find_dotted(view: TextView) -> Iterator[Span]:
    """Find a prefix and random parts with dots between them."""
    for start, end in view.regions():
        if not _DOT_BEFORE_DRAWN.search(view.raw, start, end):
            continue
        for match in _DOTTED.finditer(view.text, start, end):
            if any(len(part) >= _LEAST_DRAWN and is_drawn_part(part) for part in _PARTS.split(match[0])):
                yield Span(*match.span(), "API_KEY")


def _has_drawn_part(parts: list[str]) -> bool:
    if any(len(part) >= _LEAST_DRAWN and is_drawn_part(part) for part in parts):
        return True
    while len(parts) > 1 and len(parts[0]) < 8:
        parts = parts[1:]
    joined = "".join(parts)
    return len(joined) >= _LEAST_JOINED and is_drawn_part(joined)


def is_drawn_part(value: str) -> bool:
    """Tell whether letters and digits are random: both cases, three capitals and two digits or more."""
    if is_scrambled(value):
        return True
    capitals = len(_UPPER.findall(value))
    return (
        capitals >= 3
        and len(_LOWER.findall(value)) >= 3
        and len(_DIGIT.findall(value)) >= 2
        and shape_wordiness(value) < 0.4
        and entropy(value) >= 3.5
        and _changes(value) >= 0.35 * len(value)
    )


def _changes(value: str) -> int:
    """Count how often a character is of another kind than the one before it."""
    kinds = ["a" if c.islower() else "A" if c.isupper() else "0" for c in value]
    return sum(kinds[at] != kinds[at - 1] for at in range(1, len(kinds)))


def _is_posted_to(value: str) -> bool:
    return is_random(value.replace("/", "")) or is_random(value.rpartition("/")[2])


_ID = rf"(?:{UUID}|[0-9a-f]{{32,64}}|[A-Za-z0-9_-]{{16,128}})"
_SLASH = r"\\?/"
PREFIXED = make_probed_detector(
    find_prefixed, rf"[_-](?:[A-Za-z0-9]{{{_LEAST_DRAWN}}}|[A-Za-z0-9_-]{{{_LEAST_JOINED}}})"
)
DETECTORS: tuple[Detector, ...] = (
    PREFIXED,
    make_probed_detector(find_dotted, rf"\.[A-Za-z0-9_-]{{{_LEAST_DRAWN}}}"),
    make_anywhere_detector(
        "API_KEY",
        rf"(?<![\w-])(?P<v>[a-z][a-z0-9]{{1,15}}[_-](?:live|prod|production|secret|sandbox|key|token|pat|api|sk)[_-]{UUID})(?![\w-])",
        rf"(?:live|prod|production|secret|sandbox|key|token|pat|api|sk)[_-]{UUID}",
    ),
    make_anywhere_detector(
        "WEBHOOK",
        rf"(?i:https?:{_SLASH}{_SLASH}[^\s\"'<>\\?]{{0,100}}?hooks?(?:[\w.:-]{{0,40}}){_SLASH}(?:[\w.-]{{1,24}}{_SLASH}){{0,5}})"
        rf"(?P<v>(?:[A-Za-z0-9_-]{{12,40}}{_SLASH})?{_ID})(?![\w-])",
        r"(?i)hooks?[\w.:-]*\\?/[^\s\"'<>?]{16}",
        _is_posted_to,
    ),
    make_anywhere_detector(
        "WEBHOOK",
        rf"(?:hooks\.zapier\.com/hooks/(?:catch|standard)/(?P<v>\d{{4,10}}/\w{{5,12}})|hc-ping\.com/(?P<w>{UUID}))",
        r"hooks\.zapier\.com/hooks/|hc-ping\.com/",
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        r"[?&](?:key|code|sig|signature|pass|pw|auth)=(?P<v>[A-Za-z0-9_%.~-]{24,256})(?![\w$({-])",
        r"[?&](?:key|code|sig|signature|pass|pw|auth)=[A-Za-z0-9_%.~-]{24}",
        is_token,
    ),
)
