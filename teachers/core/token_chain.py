"""What a teacher has been shown along each context, and how many tokens it counted there.

A prompt of a later step begins with one of an earlier step. So its tokens are at most those the teacher
itself reported for the earlier one and the bytes of what is new: a bound that holds for any tokenizer and
is three to four times tighter than bytes alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracemill.records.identity import extend_prompt
from tracemill.records.message import Message
from tracemill.records.trace import MessageView
from tracemill.teachers.core.question import Question


@dataclass(frozen=True, slots=True, order=True)
class Shown:
    """A prompt that was answered: `messages` long, counted as `tokens` by the teacher."""

    messages: int
    tokens: int
    prompt_id: str
    whole: Sequence[Message] = field(default=(), compare=False, repr=False)


class ChainMemory:
    """The prompts one teacher has answered, by context."""

    def __init__(self) -> None:
        self._shown: dict[str, list[Shown]] = {}

    def _of(self, question: Question) -> list[Shown]:
        return self._shown.setdefault(question.context, [])

    def answered(self, question: Question, prompt_tokens: int) -> None:
        """Remembers what a teacher counted for a prompt; 0 where it did not say, which is remembered for
        its length alone."""
        shown = Shown(len(question.messages), prompt_tokens, question.prompt_id, _whole(question))
        known = self._of(question)
        place = bisect_right(known, shown)
        if not place or known[place - 1].prompt_id != shown.prompt_id:
            known.insert(place, shown)

    def before(self, question: Question) -> Shown | None:
        """The longest answered prompt that this one begins with, None where there is none. That it does
        is known of two views of one context, and else checked: the prompt's identity is computed from it."""
        known = self._of(question)
        size = len(question.messages)
        place = bisect_right(known, size, key=lambda shown: shown.messages)
        if not place:
            return None
        found = known[place - 1]
        if found.whole and found.whole is _whole(question):
            return found
        prompt_id = found.prompt_id
        for at in range(found.messages, size):
            prompt_id = extend_prompt(prompt_id, question.messages[at])
        return found if prompt_id == question.prompt_id else None


def _whole(question: Question) -> Sequence[Message]:
    """The context a prompt is a view of; nothing where it is none."""
    return question.messages.whole if isinstance(question.messages, MessageView) else ()
