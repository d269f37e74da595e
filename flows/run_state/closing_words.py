"""Plain words of the closing table for reasons and kinds of pairs that the workspace stores."""

import re
from collections import Counter
from collections.abc import Mapping

from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.records.plain_words import PLAIN_WORDS

_PAIR = re.compile(r"(?P<source>[^:]+): (?P<chosen>\S+) over (?P<rejected>\S+)")
_PAIR_WORDS = {
    "teachers": "teachers: chose {chosen}, agent did {rejected}",
    "hindsight": "self-repair: {chosen} fixed a failed {rejected}",
    "user": "user: accepted {chosen}, rejected {rejected}",
    "revised_edit": "revised after a failed check: {chosen}",
    "repeated_read": "repeated read: {chosen} came next, agent did {rejected}",
    "siblings": "sibling runs: {chosen} solved it, {rejected} did not",
}


def in_plain_words(counter: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by plain words; a reason without a plain form keeps its name."""
    counts: Counter[str] = Counter()
    for reason, count in counter.items():
        counts[PLAIN_WORDS.get(reason) or _pair_words(reason)] += count
    return dict(counts)


def count_deciding(kinds: Mapping[str, int]) -> tuple[int, int]:
    """Return the numbers of pairs with a deciding side, and with a deciding chosen side.

    A deciding side edits, runs tests or finishes. `kinds` counts pairs by kind (`teachers: edit over
    read`).
    """
    either = chosen = 0
    for kind, count in kinds.items():
        if match := _PAIR.fullmatch(kind):
            decides = match["chosen"] in DECIDING
            chosen += count * decides
            either += count * (decides or match["rejected"] in DECIDING)
    return either, chosen


def _pair_words(kind: str) -> str:
    """Return a kind of pairs in words, such as `teachers: read over edit`."""
    match = _PAIR.fullmatch(kind)
    words = _PAIR_WORDS.get(match["source"]) if match else None
    return words.format(**match.groupdict()) if match and words else kind
