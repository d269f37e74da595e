"""The prompt caches of the stand-in server: what a request finds there, and what it leaves.

A prompt is cut at its messages. Families that cache by themselves keep every beginning of a prompt that
was answered; those that cache at marks keep what ends at a `cache_control` mark, and look back from a mark
over so many content blocks for one left earlier (`cache_rules`). What is kept expires when it was not
used for the family's lifetime, and is found once the answer that left it has begun.
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
class Prompt:
    """A request's prompt, cut at its messages: the hash of what ends at each, the tokens up to there, the
    blocks up to there, and where marks stand."""

    model: str
    ends: tuple[str, ...]
    tokens: tuple[int, ...]
    blocks: tuple[int, ...]
    marks: tuple[int, ...]
    rule: CacheRule


@dataclass(frozen=True, slots=True)
class Found:
    """Tokens of a prompt read from the cache and written to it."""

    cached_tokens: int = 0
    written_tokens: int = 0


def cut_stub_prompt(
    model: str,
    family: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    lifetime_s: float | None = None,
) -> Prompt:
    """The prompt of a request; `lifetime_s` in place of the family's own."""
    rule = cache_rule(family)
    state, ends = hashlib.blake2b(f"{model}\x1f{json.dumps(tools)}".encode(), digest_size=12), []
    for message in messages:
        said = [message.get("role"), sim_view_text(message), message.get("tool_calls")]
        state.update(json.dumps(said).encode())
        ends.append(state.hexdigest())
    return Prompt(
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


class PromptCache:
    """What all models keep, by the hash of a beginning; times are seconds of any clock that only grows."""

    def __init__(self) -> None:
        self._expires: dict[str, float] = {}

    def look(self, prompt: Prompt, now: float, writes_priced: bool) -> Found:
        """What the prompt finds at a time, and what it would write. Writes are told where they have a
        price of their own."""
        at = self._longest(prompt, now)
        cached = prompt.tokens[at] if at >= 0 else 0
        if not writes_priced:
            return Found(cached, 0)
        end = prompt.tokens[-1]
        if prompt.rule.marked:
            end = prompt.tokens[prompt.marks[-1]] if prompt.marks else 0
        written = end - cached if end >= prompt.rule.min_tokens else 0
        return Found(cached, max(written, 0))

    def _longest(self, prompt: Prompt, now: float) -> int:
        """Where the longest beginning ends that is kept and long enough; -1 where none is."""
        for at in self._candidates(prompt):
            if prompt.tokens[at] < prompt.rule.min_tokens:
                continue
            if self._expires.get(prompt.ends[at], -1.0) >= now:
                return at
        return -1

    def _candidates(self, prompt: Prompt) -> list[int]:
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

    def keep(self, prompt: Prompt, now: float) -> None:
        """Keeps what an answered prompt leaves, and what it read for longer."""
        used = self._longest(prompt, now)
        places = prompt.marks if prompt.rule.marked else range(len(prompt.ends))
        for at in {*places, *((used,) if used >= 0 else ())}:
            self._expires[prompt.ends[at]] = now + prompt.rule.lifetime_s
        if len(self._expires) > 1_000_000:
            self._expires = {key: until for key, until in self._expires.items() if until >= now}
