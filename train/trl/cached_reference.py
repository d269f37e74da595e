"""DPO trainers that compute the log probabilities of the reference once, for this and for later trainings."""

# pyright: reportMissingImports=false

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl.trainer.dpo_trainer import DPOTrainer

from tracemill.records.storage.atomic_files import write_json
from tracemill.train.trl.packed_trainers import PackedDPOTrainer

_TOKENS = ("prompt_ids", "chosen_ids", "rejected_ids")
_FIGURES = ("ref_chosen_logps", "ref_rejected_logps")


class CachedReference:
    """A mixin that adds a cache to TRL's DPOTrainer with `precompute_ref_log_probs`.

    TRL computes them before the first step and holds no reference model after that. `reference_cache` is a
    file that keeps them by the weights of the reference and the token ids of a row; only rows that it lacks
    are computed.
    """

    _precompute_model_hash: str
    accelerator: Any

    def __init__(self, *args: Any, reference_cache: Path, **kwargs: Any) -> None:
        self._reference_cache = reference_cache
        self.reference_rows_computed = 0
        super().__init__(*args, **kwargs)

    def _precompute_ref_logps(self, dataset: Dataset, name: str, batch_size: int) -> Dataset:
        tokens: Any = dataset.select_columns(list(_TOKENS))
        keys = [self._key(row) for row in tokens]
        known = _read(self._reference_cache)
        missing = [number for number, key in enumerate(keys) if key not in known]
        if missing:
            trl: Any = super()
            computed = trl._precompute_ref_logps(dataset.select(missing), name, batch_size)
            self.reference_rows_computed += len(missing)
            for number, row in zip(missing, computed.select_columns(list(_FIGURES)), strict=True):
                known[keys[number]] = [row[figure] for figure in _FIGURES]
            if self.accelerator.is_main_process:
                write_json(self._reference_cache, known)
        for place, figure in enumerate(_FIGURES):
            dataset = dataset.add_column(figure, [known[key][place] for key in keys])
        return dataset

    def _key(self, row: Mapping[str, Sequence[int]]) -> str:
        content = json.dumps([self._precompute_model_hash, *(row[name] for name in _TOKENS)])
        return blake2b(content.encode(), digest_size=16).hexdigest()


class CachedDPOTrainer(CachedReference, DPOTrainer):
    """TRL's DPOTrainer with a cached reference."""


class CachedPackedDPOTrainer(CachedReference, PackedDPOTrainer):
    """TRL's DPOTrainer with packed rows and a cached reference."""


def _read(path: Path) -> dict[str, list[float]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
