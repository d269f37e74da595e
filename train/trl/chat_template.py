"""Render rows by the model's chat template, and count their tokens."""

import os.path
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracemill.train.trl.fit_rows import Measure, sides_of


class RenderedRow(NamedTuple):
    """The texts of a row: its prompt, and by column the sides that follow it.

    `parted` is True if the template writes the prompt differently once an answer follows. The sides then
    begin where the texts diverge, as in TRL's trainers.
    """

    prompt: str
    sides: dict[str, str]
    parted: bool


def render_chat_template(
    tokenizer: Any, prompt: Sequence[dict[str, Any]], row: Mapping[str, Any]
) -> RenderedRow:
    """Render a row with this prompt. Raises whatever the template raises."""
    tools = row["tools"] or None

    def render(messages: Sequence[dict[str, Any]], **options: Any) -> str:
        return tokenizer.apply_chat_template(list(messages), tools=tools, tokenize=False, **options)

    prompt_text = render(prompt, add_generation_prompt=True)
    whole = {side: render([*prompt, *row[side]]) for side in sides_of(row)}
    shared = len(os.path.commonprefix([prompt_text, *whole.values()]))  # noqa: RUF071  by character
    sides = {side: text[shared:] for side, text in whole.items()}
    return RenderedRow(prompt_text[:shared], sides, shared < len(prompt_text))


def measure_with(tokenizer: Any) -> Measure:
    """Return a function that counts tokens as TRL does: of the whole rendered conversation."""

    def measure(prompt: list[dict[str, Any]], row: Mapping[str, Any]) -> int:
        try:
            rendered = render_chat_template(tokenizer, prompt, row)
            texts = (rendered.prompt + side for side in rendered.sides.values())
            return max(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts)
        except Exception as error:  # templates may raise anything
            raise ValueError(type(error).__name__) from error

    return measure
