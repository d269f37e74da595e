"""Record how likely each token was when a model sampled it."""

# pyright: reportMissingImports=false

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor


class SampledLogProbs:
    """A context that records the log probabilities of the tokens that `model.generate` draws.

    They are those of the distribution the tokens were drawn from, softmax(logits / temperature), as
    computed while generating: with a key-value cache, in the dtype of generation.
    """

    def __init__(self, model: Any, temperature: float) -> None:
        self._model = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._temperature = temperature
        self._last: Tensor | None = None
        self._drawn: list[Tensor] = []

    def __enter__(self) -> Self:
        self._handle = self._model.register_forward_hook(self._see, with_kwargs=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()

    def of(self, completion_ids: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the log probability of each token of the completions that were drawn, in nats."""
        if self._last is None:
            raise ValueError("The model was not called; there are no log probabilities of what it sampled.")
        ends = [ids[len(self._drawn)] if len(ids) > len(self._drawn) else 0 for ids in completion_ids]
        drawn = [*self._drawn, self._at(torch.tensor(ends, device=self._last.device)[:, None])]
        rows = torch.cat(drawn, dim=1).tolist()
        return [row[: len(ids)] for row, ids in zip(rows, completion_ids, strict=True)]

    def _see(self, _: Any, args: Any, given: Mapping[str, Any], made: Any) -> None:
        if self._last is not None:
            self._drawn.append(self._at(given["input_ids"][:, -1:]))
        self._last = (made.logits[:, -1].detach().float() / self._temperature).log_softmax(-1)

    def _at(self, ids: Tensor) -> Tensor:
        assert self._last is not None
        return self._last.gather(1, ids)
