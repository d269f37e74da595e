"""TRL's trainer of each method, with our settings in its words.

The function that a method names as its `make_trainer` is called with the settings, the arguments that the
configuration of every trainer of transformers takes, the tokenizer, the rows by split (`train`, and
`validation` where there are any) and the callbacks, and returns the trainer.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors import SafetensorError
from transformers import TrainerCallback

from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import Fitted
from tracemill.train.trl.load_release import (
    load_release_as_messages,
    load_release_as_texts,
    load_release_model_error,
)

Data = dict[str, tuple[Dataset, Fitted]]

_ENDS = 2
"""Tokens that TRL's CPOTrainer may put around a text: one at its beginning, one at its end."""


def make_trainer(
    settings: TrainingSettings,
    folder: Path,
    tokenizer: Any,
    splits: dict[str, Dataset],
    fitted: dict[str, Fitted],
    callbacks: Sequence[TrainerCallback],
) -> Any:
    """A trainer over the rows that fit, which evaluates on those of `validation` where there are any and
    keeps its checkpoints in `folder`. Raises TrainingError where the model's weights cannot be read."""
    held = [name for name in ("train", "validation") if name in fitted and fitted[name].rows]
    common = _arguments(settings, folder, "validation" in held)
    make = TRAINING_METHODS.get(settings.method).trainer_of()
    data = {name: (splits[name], fitted[name]) for name in held}
    try:
        return make(settings, common, tokenizer, data, list(callbacks))
    except (OSError, SafetensorError) as error:
        raise load_release_model_error(settings.model, error) from error


def sft_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Make the trainer of `sft`: the mean negative log-likelihood of a token of the completions, weighted
    where rows have weights."""
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from tracemill.train.trl.weighted_sft import WeightedSFTTrainer

    rows = {name: load_release_as_messages(*one) for name, one in data.items()}
    weighted = "weight" in rows["train"].column_names
    make = WeightedSFTTrainer if weighted else SFTTrainer
    return make(
        model=settings.model,
        args=SFTConfig(max_length=settings.max_length, completion_only_loss=True, **common),
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings),
    )


def dpo_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Make the trainer of `dpo`: TRL's sum of DPO's loss and `nll_weight` times the negative log-likelihood
    of the chosen sides. The reference is the model as it was loaded; with LoRA, the model without its
    adapters."""
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    rows = {name: load_release_as_messages(*one) for name, one in data.items()}
    return DPOTrainer(
        model=settings.model,
        args=DPOConfig(
            max_length=settings.max_length,
            beta=settings.beta,
            loss_type=["sigmoid", "sft"] if settings.nll_weight else ["sigmoid"],
            loss_weights=[1.0, settings.nll_weight] if settings.nll_weight else [1.0],
            **common,
        ),
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings),
    )


def simpo_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Make the trainer of `simpo`. CPOTrainer passes no tools to the chat template, so it gets texts; and it
    is kept from its own choice of a precision, which would be that of the file."""
    from trl.experimental.cpo import CPOConfig, CPOTrainer

    rows = {name: load_release_as_texts(fitted, tokenizer) for name, (_, fitted) in data.items()}
    arguments = CPOConfig(
        loss_type="simpo",
        cpo_alpha=0.0,
        beta=settings.beta,
        simpo_gamma=settings.gamma or 0.0,
        max_length=settings.max_length + _ENDS,
        remove_unused_columns=False,
        **common,
    )
    on_gpu = arguments.device.type == "cuda"
    arguments.model_init_kwargs = {"dtype": "float32", "device_map": "auto" if on_gpu else None}
    return CPOTrainer(
        model=settings.model,
        args=arguments,
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings),
    )


def kto_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Make the trainer of `kto`, with a reference as in `dpo`. TRL takes the rows in their order and
    estimates the divergence from the completions of the other rows of a batch. Both sides of a pair are
    neighbours in a release, so the rows are shuffled by the seed."""
    from trl.trainer.kto_config import KTOConfig
    from trl.trainer.kto_trainer import KTOTrainer

    rows = {name: load_release_as_messages(*one).shuffle(seed=settings.seed) for name, one in data.items()}
    return KTOTrainer(
        model=settings.model,
        args=KTOConfig(max_length=settings.max_length, beta=settings.beta, **common),
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings),
    )


def _arguments(settings: TrainingSettings, folder: Path, evaluated: bool) -> dict[str, Any]:
    on_gpu = torch.cuda.is_available() and settings.device != "cpu"
    bf16 = on_gpu and torch.cuda.is_bf16_supported() if settings.bf16 is None else settings.bf16
    return {
        "output_dir": str(folder),
        "learning_rate": settings.learning_rate,
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps or -1,
        "per_device_train_batch_size": settings.batch,
        "per_device_eval_batch_size": settings.batch,
        "gradient_accumulation_steps": settings.accumulate,
        "seed": settings.seed,
        "use_cpu": settings.device == "cpu",
        "bf16": bf16,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "eval_strategy": "steps" if evaluated else "no",
        "eval_steps": settings.eval_steps,
        "eval_on_start": evaluated,
        "save_strategy": "steps",
        "save_steps": settings.save_steps,
        "save_total_limit": 2,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "report_to": "none",
        "disable_tqdm": True,
    }


def lora_of(settings: TrainingSettings) -> Any:
    """Return the configuration of the adapters as peft has it, None where all weights are trained."""
    if settings.lora is None:
        return None
    from peft import LoraConfig

    lora = settings.lora
    modules = lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules)
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules=modules,
        task_type="CAUSAL_LM",
    )
