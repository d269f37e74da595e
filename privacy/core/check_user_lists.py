"""Check that the entries of the user's lists can be used, before anything is read or sent.

An invalid pattern, one that never ends on an ordinary line, an entry that redacts most of every text, or
one that matches what tracemill writes into every release would fail late: after hours of reading, or after
answers were paid for.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

from tracemill.privacy.core.user_lists import PATTERN_PREFIX, UserList, make_listed
from tracemill.records.errors import ConfigError

CPU_S = 2
"""Seconds of processor time that a pattern gets for some dozens of lines of 2,000 characters."""
MOST_WORDS, MOST_CHARACTERS, MOST_ALLOWED = 0.2, 0.1, 0.5
"""Shares of an ordinary text: of its words that an entry may touch and of its characters that it may
redact, and of the characters that an entry may let through."""

_LINE = 2_000
_ORDINARY = """\
The parser reads one record at a time and keeps the last position, so that a run which was stopped can go
on. I looked at the failing test first: it expects 42 rows, but the writer flushes only every 1,000 of
them. Should we change the default, or would it be better to call flush() at the end?
def load(path: str, limit: int = 100) -> list[dict[str, object]]:
    with open(path, encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    return sorted(rows, key=lambda row: row["created_at"], reverse=True)[:limit]
{"command": "pytest -q tests/test_writer.py -k flush", "timeout": 120, "env": {"CI": "1"}, "ok": false}
2026-03-14T09:26:53Z INFO  server listening on port 8080 (pid 4711), 3 workers, 0 errors, 17.5 ms
src/app/models/invoice.py:88: AssertionError: assert total == 199.90 and currency in ("EUR", "USD")
"""
_PROBE = f"""\
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
pattern, lines = json.load(sys.stdin)
pattern = re.compile(pattern)
for line in lines:
    for _ in pattern.finditer(line):
        pass
"""


def check_entries(redact: Iterable[str], allow: Iterable[str], written: str) -> None:
    """Raise ConfigError for the first entry that cannot be used; it names the list and the entry.

    `written` is the text that tracemill puts into every release. An entry that matches it would have every
    release refused.
    """
    for entry in redact:
        listed = _made(entry, "redact")
        words, characters = _touched(listed)
        if words > MOST_WORDS or characters > MOST_CHARACTERS:
            share = max(words, characters)
            raise _unusable(entry, "redact", f"would redact far too much: {share:.0%} of an ordinary text")
        if not entry.startswith(PATTERN_PREFIX) and len(entry) < 3:
            raise _unusable(
                entry, "redact", "is shorter than 3 characters", r", or a pattern such as re:\bEU\b"
            )
        if found := next(listed.places(written), None):
            word = written[slice(*found)]
            raise _unusable(
                entry,
                "redact",
                f"fits {word!r}, which stands in every release: its publish gate would refuse it",
            )
    for entry in allow:
        if (share := _touched(_made(entry, "allow"))[1]) > MOST_ALLOWED:
            raise _unusable(
                entry, "allow", f"would let nearly everything through: {share:.0%} of an ordinary text"
            )


def _made(entry: str, purpose: str) -> UserList:
    listed = make_listed([entry], purpose)
    if listed.patterns and not _ends_in_time(listed.patterns[0].pattern):
        raise _unusable(
            entry,
            purpose,
            f"takes more than {CPU_S} s on lines of {_LINE:,} characters (such as nested repetitions do)",
        )
    if any(not found[0] for each in listed.patterns for found in each.finditer(_ORDINARY)):
        raise _unusable(entry, purpose, "matches places without a character (such as \\b alone does)")
    return listed


def _touched(listed: UserList) -> tuple[float, float]:
    """Return the share of an ordinary text's words that the list touches, and of its characters."""
    hit = bytearray(len(_ORDINARY))
    for start, end in listed.places(_ORDINARY):
        hit[start:end] = b"\1" * (end - start)
    at, words, touched = 0, _ORDINARY.split(), 0
    for word in words:
        at = _ORDINARY.index(word, at)
        touched += any(hit[at : at + len(word)])
        at += len(word)
    return touched / len(words), sum(hit) / len(hit)


def _ends_in_time(pattern: str) -> bool:
    """Tell whether a pattern ends in time on long lines that almost match it.

    `re` cannot be interrupted, so the pattern runs in a process of its own with limited processor time.
    """
    literal = "".join(dict.fromkeys(sign for sign in pattern if sign.isalnum() or sign in " _-/.:=@,"))
    pairs = (literal[at : at + 2] for at in range(len(literal) - 1))
    units = dict.fromkeys((*"aA0 _-.", "ab", "a ", "a.", "0,", literal, *literal, *pairs))
    lines = [unit * (_LINE // len(unit)) + end for unit in units if unit for end in ("\0", "")]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROBE],
            input=json.dumps([pattern, lines]),
            text=True,
            capture_output=True,
            timeout=60 * CPU_S,
            check=False,
        )
        return done.returncode == 0
    return False


def _unusable(entry: str, purpose: str, why: str, instead: str = "") -> ConfigError:
    return ConfigError(
        f"the entry {entry!r} of the {purpose} list {why}",
        f"a longer text or a narrower pattern{instead}",
        f"change it in [privacy] {purpose}; nothing was read or sent",
    )
