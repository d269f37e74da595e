"""Log probabilities of pairs by the reference policy, computed once for each content."""

# pyright: reportMissingImports=false

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tracemill.train.compose import pair_log_probs
from tracemill.train.composer.encode_rows import PairExample, collate_pairs


class ReferenceLogProbs:
    """The log probabilities of both sides of pairs, by a model that is not trained.

    model: gives `logits` as in `compose_loss`. name: identifies this reference; stored values of another
    name are not used. path: a file for the values, None for none. `computed` counts the pairs that the
    model was evaluated on.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        name: str,
        pad_id: int,
        path: Path | None = None,
        as_reference: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._model: Callable[..., Any] | None = model
        self._name, self._pad_id, self._path = name, pad_id, path
        self._as_reference = as_reference
        self._known: dict[str, tuple[float, float]] = {}
        self.computed = 0
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, chosen, rejected = json.loads(line)
                self._known[key] = (chosen, rejected)

    def of(self, examples: Sequence[PairExample], device: torch.device | None = None) -> dict[str, Tensor]:
        """Return `reference_chosen_logps` and `reference_rejected_logps`, `[P]` each, in nats."""
        keys = [self._key(each) for each in examples]
        missing = {key: each for key, each in zip(keys, examples, strict=True) if key not in self._known}
        for key, example in missing.items():
            self._known[key] = self._compute(example, device)
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, *self._known[key]]) + "\n")
        chosen, rejected = zip(*(self._known[key] for key in keys), strict=True)
        return {
            "reference_chosen_logps": torch.tensor(chosen, device=device),
            "reference_rejected_logps": torch.tensor(rejected, device=device),
        }

    def settle(self, examples: Sequence[PairExample], device: torch.device | None = None) -> None:
        """Compute the values of all these examples and release the model; no others can be computed later."""
        for example in examples:
            self.of([example], device)
        self._model = None

    def _compute(self, example: PairExample, device: torch.device | None) -> tuple[float, float]:
        if self._model is None:
            raise ValueError(f"Pair {example.name} has no reference value, and its model was released.")
        batch = {name: each.to(device) for name, each in collate_pairs([example], self._pad_id).items()}
        with torch.no_grad(), self._as_reference():
            chosen, rejected, _ = pair_log_probs(self._model, batch, average=False)
        self.computed += 1
        return chosen.item(), rejected.item()

    def _key(self, example: PairExample) -> str:
        content = json.dumps([self._name, example.chosen, example.rejected])
        return blake2b(content.encode(), digest_size=16).hexdigest()
