"""TRL's trainers with packed rows."""

# pyright: reportMissingImports=false

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils import is_peft_model
from torch.utils.data import Sampler
from trl.experimental.cpo import CPOTrainer
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.sft_trainer import SFTTrainer
from trl.trainer.utils import add_fused_lm_head

from tracemill.train.packing.packable import packing_obstacle
from tracemill.train.packing.packed_forward import PackedForward
from tracemill.train.packing.token_tree import Ids, sort_by_tokens
from tracemill.train.packing.tree_attention import TREE_ATTENTION
from tracemill.train.trl.weighted_sft import WeightedSFTTrainer

_LOGGER = logging.getLogger(__name__)
_IDS = (("prompt_ids", "chosen_ids"), ("chosen_input_ids",), ("input_ids",))
"""Columns of the tokens of a row, of each trainer: of a pair, those of its chosen side."""


class PackedTrainer:
    """A mixin that packs rows: another forward pass of a trainer's models, and batches with shared prefixes.

    A batch is `per_device_train_batch_size` rows, as without packing. `packing_notes` says where the plain
    path is used, and why.
    """

    model: Any
    args: Any
    accelerator: Any
    train_dataset: Any
    packed: list[PackedForward]

    def __init__(self, *args: Any, packing_tokens: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.packing_notes: list[str] = []
        models = [
            _base_of(self.accelerator.unwrap_model(model))  # DeepSpeed has wrapped the reference model
            for model in (self.model, getattr(self, "ref_model", None))
            if model is not None
        ]
        self.packed = []
        for model in models:
            if obstacle := packing_obstacle(model, self.args.max_length):
                self._note(f"rows are not packed: the model cannot compute trees ({obstacle})")
                return
        for model in models:
            self._add_head(model)
            fall_back = partial(self._fall_back, model, model.config._attn_implementation)
            _choose_attention(model)
            forward = PackedForward(model, packing_tokens, fall_back, self.accelerator.autocast)
            forward.install()
            self.packed.append(forward)

    def _add_head(self, model: Any) -> None:
        """Add TRL's fused head if the trainer has not."""

    def _fall_back(self, model: Any, attention: str, problem: str) -> None:
        if model.config._attn_implementation != attention:
            model.set_attn_implementation(attention)
        self._note(f"rows are not packed: {problem}")

    def _note(self, line: str) -> None:
        if line not in self.packing_notes:
            self.packing_notes.append(line)
            _LOGGER.warning(line)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        trl: Any = super()
        rows = self.train_dataset if train_dataset is None else train_dataset
        batch = self.args.train_batch_size
        if not self.packed or batch == 1:  # the rows of a batch of one share what there is to share
            return trl._get_train_sampler(train_dataset)
        return SharedPrefixSampler(_ids_of(rows), batch, self.args.seed)


class PackedSFTTrainer(PackedTrainer, SFTTrainer):
    """TRL's SFTTrainer with packed rows."""


class PackedWeightedSFTTrainer(PackedTrainer, WeightedSFTTrainer):
    """The trainer of weighted rows with packed rows."""


class PackedDPOTrainer(PackedTrainer, DPOTrainer):
    """TRL's DPOTrainer with packed rows."""


class PackedCPOTrainer(PackedTrainer, CPOTrainer):
    """TRL's CPOTrainer for SimPO with packed rows; `logits/*` are means over answer tokens alone."""

    def _add_head(self, model: Any) -> None:
        add_fused_lm_head(model, outputs=("log_probs", "mean_logits"))

    def concatenated_forward(self, model: Any, batch: Any) -> Any:
        """Return CPOTrainer's result: log probabilities of both sides, averaged over their tokens."""
        if not all(each.active for each in self.packed) or not self.packed:
            return super().concatenated_forward(model, batch)
        pad = cast("int", self.pad_token_id)
        rows = self.concatenated_inputs(batch, padding_value=pad, device=self.accelerator.device)
        options = {"output_router_logits": True} if self.aux_loss_enabled else {}
        outputs = model(
            input_ids=rows["concatenated_input_ids"],
            attention_mask=rows["concatenated_attention_mask"],
            labels=rows["concatenated_labels"],
            use_cache=False,
            fused_lm_head=True,
            **options,
        )
        pairs, mask = len(batch["chosen_labels"]), outputs.label_mask
        means = outputs.log_probs.sum(-1) / mask.sum(-1)
        told = (outputs.mean_logits[:pairs][mask[:pairs]], outputs.mean_logits[pairs:][mask[pairs:]])
        found = (means[:pairs], means[pairs:], *told, torch.zeros((), device=means.device))
        return (*found, outputs.aux_loss) if self.aux_loss_enabled else found


class SharedPrefixSampler(Sampler[int]):
    """A sampler whose batches contain rows that share token prefixes.

    Batches come in an order drawn from the seed and the epoch; each epoch cuts them at other rows. The last
    batch may be smaller.
    """

    def __init__(self, rows: Sequence[Ids], batch: int, seed: int) -> None:
        self.order, self.batch, self.seed, self.epoch = sort_by_tokens(rows), batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Draw the order of this epoch from now on."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.order)

    def __iter__(self) -> Iterator[int]:
        """Yield the index of every row once."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        first = int(torch.randint(len(self.order), (1,), generator=generator))
        order = self.order[first:] + self.order[:first]
        batches = [order[begin : begin + self.batch] for begin in range(0, len(order), self.batch)]
        whole, rest = (batches[:-1], batches[-1:]) if len(batches[-1]) < self.batch else (batches, [])
        for place in torch.randperm(len(whole), generator=generator).tolist():
            yield from whole[place]
        for batch in rest:
            yield from batch


def _base_of(model: Any) -> Any:
    return model.get_base_model() if is_peft_model(model) else model


def _choose_attention(model: Any) -> None:
    """Use FlexAttention on a GPU, where a dense mask of a long tree takes much memory."""
    if model.device.type == "cuda" and getattr(model, "_supports_flex_attn", False):
        model.set_attn_implementation(TREE_ATTENTION)


def _ids_of(rows: Any) -> list[Ids]:
    """Return the tokens of each row, those of a pair with its chosen side."""
    columns = next(names for names in _IDS if set(names) <= set(rows.column_names))
    found = zip(*(rows[name] for name in columns), strict=True)
    return [np.concatenate([np.asarray(part, np.int64) for part in parts]) for parts in found]
