"""A row as the model's chat template writes it: where its prompt ends, and how long it is."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from tracemill.train.trl.fit_rows import Measure, sides_of


class Rendered(NamedTuple):
    """The texts of a row: each of its sides, by column, follows the prompt directly."""

    prompt: str
    sides: dict[str, str]
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
    whole = {side: text([*prompt, *row[side]]) for side in sides_of(row)}
    shared, parted = len(asked), False
    if not all(each.startswith(asked) for each in whole.values()):
        letters = takewhile(lambda same: len(set(same)) == 1, zip(asked, *whole.values(), strict=False))
        shared, parted = sum(1 for _ in letters), True
    return Rendered(asked[:shared], {side: each[shared:] for side, each in whole.items()}, parted)


def measure_with(tokenizer: Any) -> Measure:
    """Tokens as TRL will count them: the whole conversation through the chat template."""

    def measure(prompt: list[dict[str, Any]], row: Mapping[str, Any]) -> int:
        try:
            found = render_chat_template(tokenizer, prompt, row)
            texts = (found.prompt + side for side in found.sides.values())
            return max(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts)
        except Exception as error:  # whatever a template of somebody else's raises
            raise ValueError(type(error).__name__) from error

    return measure
