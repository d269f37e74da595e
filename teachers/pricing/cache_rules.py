"""Define how the providers of each vendor family cache prompts.

Source: https://openrouter.ai/docs/guides/best-practices/prompt-caching. Prices come from the catalogue, which
differs from that page.
"""

from dataclasses import dataclass

LOOK_BACK_BLOCKS = 20
"""Content blocks before a cache mark that are searched for an earlier mark
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching)."""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """The prompt cache of a vendor family.

    `marked`: only prefixes that end at a `cache_control` mark are cached; else all are. `pays_writes`: cached
    tokens are charged at the write price. `lifetime_s` counts from the last use; `min_tokens` is the shortest
    cached prefix.
    """

    marked: bool = False
    pays_writes: bool = False
    lifetime_s: float = 300.0
    min_tokens: int = 1024


_RULES = {
    "anthropic": CacheRule(marked=True, pays_writes=True),
    "qwen": CacheRule(marked=True, pays_writes=True),
    "openai": CacheRule(pays_writes=True),
    "google": CacheRule(lifetime_s=180.0, min_tokens=4096),
}
_DEFAULT = CacheRule()


def cache_rule(family: str) -> CacheRule:
    """Return the rule of a vendor family.

    Families without a rule cache automatically; few state for how long, and five minutes is the shortest
    stated lifetime.
    """
    return _RULES.get(family, _DEFAULT)
