"""Token counts and shortened messages of a context, shared by all of its steps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from tracemill.normalize.context_length.token_counts import Count, count_message_tokens
from tracemill.records.message import Message
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders

WHOLE = 0
SHORTENED = "\n[... {n:,} characters left out ...]\n"


class CutPlan:
    """The messages of a context, their token counts and the turns they form.

    `head` is the number of messages before the agent's first one; `starts` are the indices at which turns
    begin. A turn is the input of an action, the action and its results.
    """

    def __init__(self, messages: Sequence[Message], count: Count) -> None:
        self.messages = messages
        roles = [message.role for message in messages]
        self.head = roles.index("assistant") if "assistant" in roles else len(roles)
        self.starts = _starts(roles, self.head)
        self._count = count
        self._short: dict[int, list[Message]] = {WHOLE: list(messages)}
        self._sizes: dict[int, list[int]] = {}
        self._notices: dict[int, int] = {}

    def short(self, most: int) -> list[Message]:
        """Return the messages with observations of at most `most` characters; `WHOLE` shortens nothing.

        An observation is a tool result, or a user message after the agent's first message.
        """
        if most not in self._short:
            short = list(self.messages)
            for at, message in enumerate(short):
                is_observation = at > self.head and message.role in ("tool", "user")
                if is_observation and len(message.content) > most:
                    short[at] = replace(message, content=shorten_for_cut_plan(message.content, most))
            self._short[most] = short
        return self._short[most]

    def sizes(self, most: int) -> list[int]:
        """Return cumulative token counts of `short(most)`: entry i is the total of the first i messages."""
        if most not in self._sizes:
            counts = count_message_tokens(self.short(most), self._count)
            self._sizes[most] = list(accumulate(counts, initial=0))
        return self._sizes[most]

    def notice_tokens(self, head: int, add_notice: Callable[[Sequence[Message]], Sequence[Message]]) -> int:
        """Return the tokens that a notice on left-out messages adds to the first `head` messages."""
        if head not in self._notices:
            after = sum(count_message_tokens(add_notice(self.messages[:head]), self._count))
            self._notices[head] = after - self.sizes(WHOLE)[head]
        return self._notices[head]


def shorten_for_cut_plan(text: str, most: int) -> str:
    """Keep the beginning and the end of a text, at most `most` characters, and insert the number left out.

    A placeholder is kept whole or left out.
    """
    first, last = head_with_whole_placeholders(text, most // 2), tail_with_whole_placeholders(text, most // 2)
    return f"{first}{SHORTENED.format(n=len(text) - len(first) - len(last))}{last}"


def _starts(roles: Sequence[str], head: int) -> list[int]:
    """Return the indices at which turns begin.

    A turn begins at a message that is not a result and does not follow a system or user message.
    """
    return [
        at
        for at in range(head, len(roles))
        if at == head or (roles[at] != "tool" and roles[at - 1] not in ("user", "system"))
    ]
