"""Tell which detectors a text needs: Hyperscan runs every probe of every detector in one pass.

A pass costs a microsecond and a thousandth of what the patterns cost one by one. A probe matches wherever
its detector finds something, and sometimes where it does not, so findings are the same without the pass.

Hyperscan compiles the probes in its prefiltering mode, which may match more than a probe says and never
less (https://intel.github.io/hyperscan/dev-reference/compilation.html#prefiltering-mode).
"""

import threading
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import hyperscan

from tracemill.privacy.core.rule import ProbeEnd
from tracemill.privacy.redaction.hyperscan_cache import compile_hyperscan_database, load_cached_hyperscan

_FLAGS = hyperscan.HS_FLAG_PREFILTER | hyperscan.HS_FLAG_SINGLEMATCH


class Probe(NamedTuple):
    """A pattern for bytes, in the syntax common to `re` and PCRE, and the bits it sets.

    `located`: every place where it matches is reported.
    """

    pattern: str
    bits: int
    located: bool = False


class _Matches(threading.local):
    """The matches of one scan in a thread, and its working memory."""

    def __init__(self) -> None:
        self.met: list[tuple[int, int]] = []
        self.scratch: hyperscan.Scratch | None = None

    def took(self, number: int, start: int, end: int, flags: int, context: object) -> None:
        """Record the match of a probe."""
        self.met.append((number, end))


class Prefilter:
    """Probes, compiled when first used, usable by several threads.

    A pattern that several detectors share is compiled once.

    `kept_as` names the purpose under which the compiled database is cached on disk. Use it only where no
    probe holds a value of the user's.
    """

    def __init__(self, probes: Iterable[Probe], kept_as: str = "") -> None:
        merged: dict[tuple[str, bool], int] = {}
        for pattern, bits, located in probes:
            merged[pattern, located] = merged.get((pattern, located), 0) | bits
        self._probes = tuple(Probe(pattern, bits, located) for (pattern, located), bits in merged.items())
        self._kept_as = kept_as
        self._matches = _Matches()

    @cached_property
    def _database(self) -> hyperscan.Database:
        expressions = [probe.pattern.encode("latin-1") for probe in self._probes]
        flags = [0 if probe.located else _FLAGS for probe in self._probes]
        if self._kept_as:
            return load_cached_hyperscan(self._kept_as, expressions, flags)
        return compile_hyperscan_database(expressions, flags)

    def bits(self, raw: bytes, ends: list[ProbeEnd]) -> int:
        """Return the bits of every probe that matches somewhere in a text.

        `raw` is a text as `encode_rule_text` encodes it. Ends of matches of located probes are added to
        `ends`.
        """
        matches = self._matches
        met = matches.met
        if matches.scratch is None:
            matches.scratch = self._database.scratch.clone()
        self._database.scan(raw, matches.took, scratch=matches.scratch)
        if not met:
            return 0
        found = 0
        for number, end in met:
            _, bits, located = self._probes[number]
            found |= bits
            if located:
                ends.append(ProbeEnd(end, bits))
        met.clear()
        return found


def build_prefilter_pattern(value: bytes, any_case: bool = True) -> str:
    """Build a pattern that matches a value, by default in any case."""
    return ("(?i)" if any_case else "") + "".join(f"\\x{byte:02x}" for byte in value)
