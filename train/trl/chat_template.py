"""A row as the model's chat template writes it: where its prompt ends, and how long it is."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from tracemill.train.trl.fit_rows import Measure


class Rendered(NamedTuple):
    """The texts of a row: either side follows the prompt directly."""

    prompt: str
    chosen: str
    rejected: str
    parted: bool
    """Whether the template writes the prompt otherwise once an answer follows: the sides then begin where
    the texts part, which is how TRL's trainers take it."""


def render_chat_template(
    tokenizer: Any, prompt: Sequence[dict[str, Any]], row: Mapping[str, Any]
) -> Rendered:
    """The row with this prompt. Raises whatever a template raises."""
    tools = row["tools"] or None

    def text(messages: Sequence[dict[str, Any]], **given: Any) -> str:
        return tokenizer.apply_chat_template(list(messages), tools=tools, tokenize=False, **given)

    asked = text(prompt, add_generation_prompt=True)
    chosen, rejected = (text([*prompt, *row[side]]) for side in ("chosen", "rejected"))
    if chosen.startswith(asked) and rejected.startswith(asked):
        return Rendered(asked, chosen[len(asked) :], rejected[len(asked) :], False)
    letters = takewhile(lambda three: len(set(three)) == 1, zip(asked, chosen, rejected, strict=False))
    shared = sum(1 for _ in letters)
    return Rendered(asked[:shared], chosen[shared:], rejected[shared:], True)


def measure_with(tokenizer: Any) -> Measure:
    """Tokens as TRL will count them: the whole conversation through the chat template."""

    def measure(prompt: list[dict[str, Any]], row: Mapping[str, Any]) -> int:
        try:
            found = render_chat_template(tokenizer, prompt, row)
            sides = (found.prompt + found.chosen, found.prompt + found.rejected)
            return max(len(tokenizer(side, add_special_tokens=False)["input_ids"]) for side in sides)
        except Exception as error:  # whatever a template of somebody else's raises
            raise ValueError(type(error).__name__) from error

    return measure
