"""TRL's RewardTrainer over the pairs of a release, with a calibration on those held out."""

# pyright: reportMissingImports=false

from collections.abc import Mapping
from typing import Any

import torch
from datasets import Dataset
from torch.nn.functional import logsigmoid
from trl.trainer.reward_config import RewardConfig
from trl.trainer.reward_trainer import RewardTrainer

from tracemill.train.prm.calibration import LEAST_PAIRS, calibrate_pairs
from tracemill.train.prm.step_scorer import score_ids
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import FittedRows
from tracemill.train.trl.load_release import load_release_as_messages
from tracemill.train.trl.trainers import lora_of


def prm_trainer(
    settings: TrainingSettings,
    common: dict[str, Any],
    tokenizer: Any,
    data: Mapping[str, tuple[Dataset, FittedRows]],
    callbacks: list[Any],
) -> "StepRewardTrainer":
    """Build the trainer of `prm`.

    The loss of a pair is -log sigmoid(chosen - rejected), TRL's, plus -log sigmoid(chosen) - log
    sigmoid(-rejected): a difference within a state says nothing about how scores of different states
    compare.
    """
    rows = {name: load_release_as_messages(split, fitted) for name, (split, fitted) in data.items()}
    trainer = StepRewardTrainer(
        model=settings.model,
        args=RewardConfig(max_length=settings.max_length, **common),
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings, "SEQ_CLS"),
    )
    if settings.lora is not None and settings.lora.quantize != "none":
        model: Any = trainer.model
        for name, weight in model.named_parameters():
            if weight.requires_grad and ".score." in name:  # TRL made it bfloat16, its input is of `dtype`
                weight.data = weight.data.to(getattr(torch, settings.dtype))
    return trainer


class StepRewardTrainer(RewardTrainer):
    """TRL's RewardTrainer that reports at its end how well its scores are calibrated."""

    notes: list[str]

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return TRL's loss plus that of each side alone."""
        found: Any = super().compute_loss(model, inputs, True, num_items_in_batch)
        ranked, outputs = found
        chosen, rejected = outputs.logits.squeeze(-1).float().chunk(2)
        loss = ranked - (logsigmoid(chosen) + logsigmoid(-rejected)).mean()
        return (loss, outputs) if return_outputs else loss

    def final_figures(self) -> dict[str, Any]:
        """Return the calibration on held-out pairs, None if there are too few."""
        calibration = None
        if self.eval_dataset is not None:
            rows: Any = self.eval_dataset
            scores = [self._scores(rows[f"{side}_ids"]) for side in ("chosen", "rejected")]
            calibration = calibrate_pairs(*scores)
        self.notes = []
        if calibration is None:
            self.notes.append(
                f"scores are not calibrated: fewer than {LEAST_PAIRS} pairs are held out, so they are no "
                "probabilities"
            )
        return {"calibration": calibration}

    def _scores(self, rows: Any) -> list[float]:
        tokenizer: Any = self.processing_class
        size = self.args.per_device_eval_batch_size
        model: Any = self.accelerator.unwrap_model(self.model)
        with self.accelerator.autocast():
            return score_ids(model, [list(each) for each in rows], tokenizer.pad_token_id, size)
