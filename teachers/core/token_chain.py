"""Remember the token counts of answered prompts, to bound those of later prompts.

A later prompt of a context begins with an earlier one, so it has at most the tokens that the teacher counted
for that one plus the bytes of what is new: a bound for any tokenizer that is three to four times tighter than
bytes alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracemill.records.identity import extend_prompt
from tracemill.records.message import Message
from tracemill.records.trace import MessageView
from tracemill.teachers.core.question import Question


@dataclass(frozen=True, slots=True, order=True)
class AnsweredPrompt:
    """An answered prompt: number of messages, and tokens as counted by the teacher."""

    messages: int
    tokens: int
    prompt_id: str
    whole: Sequence[Message] = field(default=(), compare=False, repr=False)


class ChainMemory:
    """The prompts one teacher has answered, by context."""

    def __init__(self) -> None:
        self._shown: dict[str, list[AnsweredPrompt]] = {}

    def _of(self, question: Question) -> list[AnsweredPrompt]:
        return self._shown.setdefault(question.context, [])

    def answered(self, question: Question, prompt_tokens: int) -> None:
        """Store the tokens that a teacher counted for a prompt; 0 stores only the number of messages."""
        shown = AnsweredPrompt(len(question.messages), prompt_tokens, question.prompt_id, _whole(question))
        known = self._of(question)
        place = bisect_right(known, shown)
        if not place or known[place - 1].prompt_id != shown.prompt_id:
            known.insert(place, shown)

    def before(self, question: Question) -> AnsweredPrompt | None:
        """Return the longest answered prompt that this one begins with, None without one.

        For two views of one context this is known; otherwise it is checked by computing the prompt id.
        """
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
    """Return the context that a prompt is a view of, else ()."""
    return question.messages.whole if isinstance(question.messages, MessageView) else ()
