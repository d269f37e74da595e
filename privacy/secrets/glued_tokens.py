"""Detect tokens glued to the text before them: `ABCghp_...`, a column that ran into the next.

Without an edge on its left a token is recognised by a prefix of four characters or more and by a body of
exactly the vendor's length and alphabet, which ends there. Formats of any length are left out. Lengths are
those of the vendors' pages on their key formats.
"""

import re
from collections.abc import Iterator, Sequence

from tracemill.privacy.core.entropy import entropy
from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import FormatRule, Span, build_rule_pattern

_EXACT = {
    "AKIA": "[A-Z2-7]{16}",
    "ASIA": "[A-Z2-7]{16}",
    "AIza": "[A-Za-z0-9_-]{35}",
    "GOCSPX-": "[A-Za-z0-9_-]{28}",
    **dict.fromkeys(("dop_v1_", "doo_v1_", "dor_v1_"), "[0-9a-f]{64}"),
    **dict.fromkeys(("ghp_", "gho_", "ghs_", "ghu_", "ghr_"), "[A-Za-z0-9]{36}"),
    "github_pat_": "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    **dict.fromkeys(("glpat-", "gldt-", "glptt-"), "[A-Za-z0-9_-]{20}"),
    "sk-ant-": r"(?:api|admin|oat)\d\d-[A-Za-z0-9_-]{93}AA",
    "sk-or-": "v1-[0-9a-f]{64}",
    "sk-": r"proj-[\w-]{74}T3BlbkFJ[\w-]{74}|(?:proj-)?[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    "hf_": "[A-Za-z]{34}",
    "gsk_": "[A-Za-z0-9]{52}",
    "pplx-": "[A-Za-z0-9]{48}",
    "npm_": "[A-Za-z0-9]{36}",
    "rubygems_": "[0-9a-f]{48}",
    "dckr_": "pat_[A-Za-z0-9_-]{27}",
    "xox": r"[bp](?:-\d{10,13}){2,3}-(?:[A-Za-z0-9]{24}|[0-9a-f]{32})",
    **dict.fromkeys(("sk_live_", "rk_live_", "sk_test_", "rk_test_"), "(?:[A-Za-z0-9]{24}|[A-Za-z0-9]{99})"),
    "whsec_": "[A-Za-z0-9]{32}",
    **dict.fromkeys(("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9a-f]{32}"),
    "SG.": r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "glsa_": "[A-Za-z0-9]{32}_[0-9a-f]{8}",
    "PMAK-": "[0-9a-f]{24}-[0-9a-f]{34}",
    "NRAK-": "[A-Z0-9]{27}",
    "lin_api_": "[A-Za-z0-9]{40}",
    "sbp_": "[0-9a-f]{40}",
    "dapi": "[0-9a-f]{32}",
    "AGE-SECRET-KEY-": "1[A-Z0-9]{58}",
    "eyJ": r"[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{43}",
}
_MIN_ENTROPY = 3.0  # bits per character; 32 random hex digits have about 3.7


def glued_token_formats(*, whole: bool = False) -> str:
    """Return a pattern of the prefixes that need no edge; with `whole`, of the tokens."""
    found = (re.escape(prefix) + (f"(?:{body})" if whole else "") for prefix, body in sorted(_EXACT.items()))
    return "|".join(found)


def glued_patterns(rule: FormatRule) -> tuple[LazyPattern[str], ...]:
    """Return one pattern for each of the rule's prefixes that need no edge before them."""
    return tuple(
        build_rule_pattern(rf"(?<=[A-Za-z0-9]){re.escape(literal)}(?:{_EXACT[literal]})(?![A-Za-z0-9_-])")
        for literal in rule.literals
        if literal in _EXACT and rule.prefixed and rule.kind != "JWE"  # begins like a JWT, has any length
    )


def find_glued(
    patterns: Sequence[LazyPattern[str]], kind: str, text: str, start: int, end: int
) -> Iterator[Span]:
    """Yield the tokens in `text[start:end]` that follow a letter or digit."""
    for pattern in patterns:
        for match in pattern.finditer(text, start, end):
            if entropy(match[0]) >= _MIN_ENTROPY:
                yield Span(*match.span(), kind)
