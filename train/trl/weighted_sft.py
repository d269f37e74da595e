"""TRL's SFTTrainer over rows that count more or less."""

# pyright: reportMissingImports=false

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from trl.trainer.sft_trainer import SFTTrainer

_IGNORED = -100


class WeightedSFTTrainer(SFTTrainer):
    """SFTTrainer whose rows have a `weight` over 0.

    The loss of a step is sum(w_i nll_it) / sum(w_i), over every token t of the completion of every row i of
    all its batches: TRL's own where weights are equal. Token accuracy and entropy count tokens alike.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        collate = self.data_collator

        def with_weights(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
            return collate(rows) | {"weight": torch.tensor([row["weight"] for row in rows])}

        self.data_collator = with_weights

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if "weight" not in self._signature_columns:
            self._signature_columns = [*self._signature_columns, "weight"]

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Any]:
        """Give the batches of a step, their weights scaled so that TRL's division by the count of tokens is
        one by their weights."""
        batches, count = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._scale(batches)
        return batches, count

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return TRL's loss with each row's log probabilities times its weight."""
        if num_items_in_batch is None:  # on rows of `validation`, a batch at a time
            self._scale([inputs])
        weight = inputs.pop("weight")

        def weigh(**given: Any) -> Any:
            outputs = model(**given)
            if "log_probs" in outputs:
                outputs["log_probs"] = outputs["log_probs"] * weight[:, None].to(outputs["log_probs"])
            return outputs

        weighted: Any = weigh
        return super().compute_loss(weighted, inputs, return_outputs, num_items_in_batch)

    def _scale(self, batches: Sequence[dict[str, Any]]) -> None:
        """Make the mean weight of a token of these batches, in all processes, 1."""
        sums = torch.zeros(2, dtype=torch.float64, device=self.accelerator.device)
        for batch in batches:
            tokens = (batch["labels"][:, 1:] != _IGNORED).sum(dim=1)
            counted = torch.stack([tokens.sum(), (tokens * batch["weight"]).sum()])
            sums += counted.to(sums)
        total: Any = self.accelerator.reduce(sums, reduction="sum")
        count, weighted = total.tolist()
        for batch in batches:
            batch["weight"] = batch["weight"] * (count / weighted)
