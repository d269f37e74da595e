"""Encode conversations as token ids, and collate them into the tensors that `compose_loss` takes."""

# pyright: reportMissingImports=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tracemill.train.trl.chat_template import render_chat_template

Encoded = tuple[tuple[int, ...], tuple[int, ...]]
"""The token ids of a context and of the response that follows it."""
_SIDES = ("chosen", "rejected")


@dataclass(frozen=True, slots=True)
class HintExample:
    """One response after its context and after the context with a hint; `name` is its step id."""

    name: str
    student: Encoded
    hinted: Encoded


@dataclass(frozen=True, slots=True)
class PairExample:
    """Both sides of a pair after one context; `name` is its pair id."""

    name: str
    chosen: Encoded
    rejected: Encoded


@dataclass(slots=True)
class EncodedRows:
    """Examples of one kind, and how many rows are left out by reason."""

    examples: list[Any] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str) -> None:
        """Count a row that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def encode_hint_rows(rows: Sequence[Mapping[str, Any]], tokenizer: Any, max_length: int) -> EncodedRows:
    """Encode rows of `build_hint_rows`. The response has the same token ids in both contexts.

    A row is left out if the chat template refuses it, if it writes the response differently after the hint,
    or if either text has more than `max_length` tokens.
    """
    found = EncodedRows()
    for row in rows:
        try:
            plain, hinted = (
                render_chat_template(tokenizer, row[prompt], row) for prompt in ("prompt", "hinted_prompt")
            )
        except Exception:  # templates may raise anything
            found.drop("the chat template refuses it")
            continue
        response = plain.sides["completion"]
        if hinted.sides["completion"] != response:
            found.drop("the chat template writes the response differently after the hint")
            continue
        said = _ids(tokenizer, response)
        contexts = (_ids(tokenizer, plain.prompt), _ids(tokenizer, hinted.prompt))
        if max(map(len, contexts)) + len(said) > max_length:
            found.drop(f"longer than {max_length} tokens")
        elif said and all(contexts):
            found.examples.append(HintExample(row["step_id"], (contexts[0], said), (contexts[1], said)))
    return found


def encode_pair_rows(rows: Sequence[Mapping[str, Any]], tokenizer: Any, max_length: int) -> EncodedRows:
    """Encode rows of a `dpo` config: `prompt`, `chosen`, `rejected`, `tools` and `pair_id`."""
    found = EncodedRows()
    for row in rows:
        try:
            rendered = render_chat_template(tokenizer, row["prompt"], row)
        except Exception:  # templates may raise anything
            found.drop("the chat template refuses it")
            continue
        context = _ids(tokenizer, rendered.prompt)
        sides = [_ids(tokenizer, rendered.sides[side]) for side in _SIDES]
        if len(context) + max(map(len, sides)) > max_length:
            found.drop(f"longer than {max_length} tokens")
        elif context and all(sides):
            found.examples.append(PairExample(row["pair_id"], (context, sides[0]), (context, sides[1])))
    return found


def collate_hints(examples: Sequence[HintExample], pad_id: int) -> dict[str, Tensor]:
    """Return the tensors `student_*` and `hinted_*` of `compose_loss`, padded on the right."""
    return _collate([each.student for each in examples], "student_", pad_id) | _collate(
        [each.hinted for each in examples], "hinted_", pad_id
    )


def collate_pairs(examples: Sequence[PairExample], pad_id: int) -> dict[str, Tensor]:
    """Return the tensors `chosen_*` and `rejected_*` of `compose_loss`, padded on the right."""
    return _collate([each.chosen for each in examples], "chosen_", pad_id) | _collate(
        [each.rejected for each in examples], "rejected_", pad_id
    )


def _ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def _collate(rows: Sequence[Encoded], prefix: str, pad_id: int) -> dict[str, Tensor]:
    length = max(len(context) + len(said) for context, said in rows)
    ids = torch.full((len(rows), length), pad_id)
    attended, response = torch.zeros_like(ids), torch.zeros_like(ids)
    for number, (context, said) in enumerate(rows):
        end = len(context) + len(said)
        ids[number, :end] = torch.tensor([*context, *said])
        attended[number, :end] = 1
        response[number, len(context) : end] = 1
    names = ("input_ids", "attention_mask", "response_mask")
    return {prefix + name: each for name, each in zip(names, (ids, attended, response), strict=True)}
