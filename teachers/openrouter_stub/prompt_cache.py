"""Simulate the stub server's prompt caches.

A prompt is cut at its messages. Families with automatic caching keep every prefix of an answered prompt; the
others keep what ends at a `cache_control` mark, and search a number of content blocks before a mark for an
earlier one (`cache_rules`). An entry expires when it was not used for the family's lifetime.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from tracemill.teachers.offline.sim_policy import sim_message_tokens, sim_tools_tokens
from tracemill.teachers.offline.sim_view import sim_view_text
from tracemill.teachers.pricing.cache_rules import LOOK_BACK_BLOCKS, CacheRule, cache_rule


@dataclass(frozen=True, slots=True)
class StubPrompt:
    """A request's prompt, cut at its messages.

    For each message `ends` has the hash of the prefix, `tokens` and `blocks` its size; `marks` are the
    indices of cache marks.
    """

    model: str
    ends: tuple[str, ...]
    tokens: tuple[int, ...]
    blocks: tuple[int, ...]
    marks: tuple[int, ...]
    rule: CacheRule


@dataclass(frozen=True, slots=True)
class CacheTokens:
    """Tokens of a prompt read from the cache and written to it."""

    cached_tokens: int = 0
    written_tokens: int = 0


def cut_stub_prompt(
    model: str,
    family: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    lifetime_s: float | None = None,
) -> StubPrompt:
    """Return the prompt of a request; `lifetime_s` replaces the family's own lifetime."""
    rule = cache_rule(family)
    state, ends = hashlib.blake2b(f"{model}\x1f{json.dumps(tools)}".encode(), digest_size=12), []
    for message in messages:
        content = [message.get("role"), sim_view_text(message), message.get("tool_calls")]
        state.update(json.dumps(content).encode())
        ends.append(state.hexdigest())
    return StubPrompt(
        model=model,
        ends=tuple(ends),
        tokens=tuple(accumulate(map(sim_message_tokens, messages), initial=sim_tools_tokens(tools)))[1:],
        blocks=tuple(accumulate(map(_blocks, messages))),
        marks=tuple(at for at, message in enumerate(messages) if _is_marked(message)),
        rule=rule if lifetime_s is None else replace(rule, lifetime_s=lifetime_s),
    )


def _blocks(message: Mapping[str, Any]) -> int:
    return max(1, bool(sim_view_text(message)) + len(message.get("tool_calls") or ()))


def _is_marked(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and "cache_control" in part for part in parts)


class StubPromptCache:
    """The cache of all models by prefix hash; times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._expires: dict[str, float] = {}

    def lookup(self, prompt: StubPrompt, now: float, writes_priced: bool) -> CacheTokens:
        """Return the tokens that the prompt reads at a time, and those it writes if writes have a price."""
        at = self._longest(prompt, now)
        cached = prompt.tokens[at] if at >= 0 else 0
        if not writes_priced:
            return CacheTokens(cached, 0)
        end = prompt.tokens[-1]
        if prompt.rule.marked:
            end = prompt.tokens[prompt.marks[-1]] if prompt.marks else 0
        written = end - cached if end >= prompt.rule.min_tokens else 0
        return CacheTokens(cached, max(written, 0))

    def _longest(self, prompt: StubPrompt, now: float) -> int:
        """Return the end of the longest cached prefix that is long enough; -1 without one."""
        for at in self._candidates(prompt):
            if prompt.tokens[at] < prompt.rule.min_tokens:
                continue
            if self._expires.get(prompt.ends[at], -1.0) >= now:
                return at
        return -1

    def _candidates(self, prompt: StubPrompt) -> list[int]:
        if not prompt.rule.marked:
            return list(range(len(prompt.ends) - 1, -1, -1))
        return sorted(
            {
                at
                for mark in prompt.marks
                for at in range(mark, -1, -1)
                if prompt.blocks[mark] - prompt.blocks[at] <= LOOK_BACK_BLOCKS
            },
            reverse=True,
        )

    def keep(self, prompt: StubPrompt, now: float) -> None:
        """Store the prefixes of an answered prompt, and renew those it read."""
        used = self._longest(prompt, now)
        places = prompt.marks if prompt.rule.marked else range(len(prompt.ends))
        for at in {*places, *((used,) if used >= 0 else ())}:
            self._expires[prompt.ends[at]] = now + prompt.rule.lifetime_s
        if len(self._expires) > 1_000_000:
            self._expires = {key: until for key, until in self._expires.items() if until >= now}
