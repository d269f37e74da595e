# ruff: noqa: E501 (patterns)
"""Detect secrets that a command printed in a recorded terminal: a prompt, a command, its output below."""

from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_chosen_password
from tracemill.privacy.core.entropy import is_password, is_plain_password, is_random
from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.secrets.printed_secrets import find_printed_secrets

_MOST_LINES = 4  # of output that are read
_PROMPT = build_rule_pattern(
    r"(?<![^\n])[ \t]{0,12}(?:[\w.@-]{1,40}[:~ ][^\n$#%>]{0,60})?(?:\$|PS [A-Z]:[^\n>]{0,80}>) (?P<command>[^\n]{3,1000})\n"
)
_LINE = build_rule_pattern(r"[ \t]{0,12}(?P<v>[^\s\"'<>]{6,512})[ \t\r]*(?:\n|$)")


def find_in_transcripts(view: TextView) -> Iterator[Span]:
    """Find the lines below a command that prints nothing but a secret, up to a line of more than one word."""
    for prompt in _PROMPT.finditer(view.text):
        printed = find_printed_secrets(prompt["command"].rstrip())
        if printed is None or not (printed.whole or printed.last):
            continue
        at = prompt.end()
        for _ in range(_MOST_LINES):
            line = _LINE.match(view.text, at)
            if line is None:
                break
            if _can_be_secret(line["v"]):
                yield Span(*line.span("v"), "SECRET")
            at = line.end()


def _can_be_secret(value: str) -> bool:
    return is_password(value) or is_random(value) or is_plain_password(value) or is_chosen_password(value)


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_in_transcripts, r"\$ [^\n]+\n[ \t]*[^\s]{6}", r"PS [A-Z]:[^\n]*> [^\n]+\n[ \t]*[^\s]{6}"
    ),
)
