"""How the providers of each family keep a prompt's beginning: for how long, from which length, at whose word.

Source: https://openrouter.ai/docs/guides/best-practices/prompt-caching. Prices are not here: they come
from the catalogue, whose cache prices differ from what the documents say.
"""

from dataclasses import dataclass

LOOK_BACK_BLOCKS = 20
"""Content blocks before a mark among which an explicit cache looks for an earlier mark
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching)."""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """`marked`: only what ends at a `cache_control` mark is kept; else every beginning is, of itself.
    `pays_writes`: tokens that are kept are charged at the write price, also where nobody asked for it.
    `lifetime_s` counts from the last use; `min_tokens` is the shortest beginning that is kept."""

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
    """The rule of a vendor family. Families without one of their own cache by themselves; how long they
    keep a prompt is stated by few, and five minutes is the shortest that any states for sure."""
    return _RULES.get(family, _DEFAULT)
