"""What cutting has to know of a context, found once for all of its steps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from tracemill.normalize.context_length.token_counts import Count, count_message_tokens
from tracemill.records.message import Message
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders

WHOLE = 0
SHORTENED = "\n[... {n:,} characters left out ...]\n"


class Plan:
    """The messages of a context, how many stand before the agent first speaks (`head`), and where its turns
    begin (`starts`): what was said before it spoke, what it did, and what came back."""

    def __init__(self, messages: Sequence[Message], count: Count) -> None:
        self.messages = messages
        roles = [message.role for message in messages]
        self.head = roles.index("assistant") if "assistant" in roles else len(roles)
        self.starts = _starts(roles, self.head)
        self._count = count
        self._each = count_message_tokens(messages, count)
        self._short: dict[int, list[Message]] = {}
        self._sizes: dict[int, list[int]] = {WHOLE: list(accumulate(self._each, initial=0))}
        self._marks: dict[int, int] = {}

    def short(self, most: int) -> list[Message]:
        """The messages, what came back (the result of a tool, or what stands in the user's place) in at most
        `most` characters."""
        if most not in self._short:
            short = list(self.messages)
            for at in self._long(most):
                short[at] = replace(short[at], content=shorten_for_cut_plan(short[at].content, most))
            self._short[most] = short
        return self._short[most]

    def sizes(self, most: int) -> list[int]:
        """Tokens of the messages before each place, 0 to all of them, shortened as in `short`; `WHOLE`
        shortens nothing."""
        if most not in self._sizes:
            places = self._long(most)
            texts = [self.messages[at].content for at in places]
            before, after = (
                self._count(texts),
                self._count([shorten_for_cut_plan(text, most) for text in texts]),
            )
            each = list(self._each)
            for at, was, now in zip(places, before, after, strict=True):
                each[at] += now - was
            self._sizes[most] = list(accumulate(each, initial=0))
        return self._sizes[most]

    def marked(self, head: int, mark: Callable[[Sequence[Message]], Sequence[Message]]) -> int:
        """Tokens that a word on what is left out adds to the first `head` messages."""
        if head not in self._marks:
            after = sum(count_message_tokens(mark(self.messages[:head]), self._count))
            self._marks[head] = after - self.sizes(WHOLE)[head]
        return self._marks[head]

    def _long(self, most: int) -> list[int]:
        return [
            at
            for at, message in enumerate(self.messages)
            if at > self.head and message.role in ("tool", "user") and len(message.content) > most
        ]


def shorten_for_cut_plan(text: str, most: int) -> str:
    """The beginning and the end of a text, at most `most` characters together and no part of a placeholder,
    and between them how many are left out."""
    first, last = head_with_whole_placeholders(text, most // 2), tail_with_whole_placeholders(text, most // 2)
    return f"{first}{SHORTENED.format(n=len(text) - len(first) - len(last))}{last}"


def _starts(roles: Sequence[str], head: int) -> list[int]:
    """Where turns begin: with whatever is no result and answers nobody."""
    return [
        at
        for at in range(head, len(roles))
        if at == head or (roles[at] != "tool" and roles[at - 1] not in ("user", "system"))
    ]
