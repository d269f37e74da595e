"""TRL's SFTTrainer with a weight for each row."""

# pyright: reportMissingImports=false

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from trl.trainer.sft_trainer import SFTTrainer

_IGNORED = -100


class WeightedSFTTrainer(SFTTrainer):
    """An SFTTrainer whose rows have a `weight` above 0.

    The loss of a step is sum(w_i nll_it) / sum(w_i), over every completion token t of every row i of all its
    batches; with equal weights it is TRL's own. Token accuracy and entropy are not weighted.
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
        """Return the batches of a step, with weights scaled to a mean of 1 per token.

        TRL then divides by the number of tokens, which equals the sum of the weights.
        """
        batches, count = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._scale(batches)
        return batches, count

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return TRL's loss with the log probabilities of each row multiplied by its weight."""
        if num_items_in_batch is None:  # evaluation, one batch at a time
            self._scale([inputs])
        weight = inputs.pop("weight")

        def weigh(**model_inputs: Any) -> Any:
            outputs = model(**model_inputs)
            if "log_probs" in outputs:
                outputs["log_probs"] = outputs["log_probs"] * weight[:, None].to(outputs["log_probs"])
            return outputs

        weighted: Any = weigh
        return super().compute_loss(weighted, inputs, return_outputs, num_items_in_batch)

    def _scale(self, batches: Sequence[dict[str, Any]]) -> None:
        """Scale the weights of these batches, in all processes, to a mean of 1 per token."""
        sums = torch.zeros(2, dtype=torch.float64, device=self.accelerator.device)
        for batch in batches:
            tokens = (batch["labels"][:, 1:] != _IGNORED).sum(dim=1)
            counted = torch.stack([tokens.sum(), (tokens * batch["weight"]).sum()])
            sums += counted.to(sums)
        total: Any = self.accelerator.reduce(sums, reduction="sum")
        count, weighted = total.tolist()
        for batch in batches:
            batch["weight"] = batch["weight"] * (count / weighted)
