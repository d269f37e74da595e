"""Build the TRL trainer of each method.

The `make_trainer` function of a method takes the settings, the arguments common to all configurations of
transformers trainers, the tokenizer, the rows by split (`train`, and `validation` if there are any) and the
callbacks. It returns the trainer.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors import SafetensorError
from transformers import TrainerCallback

from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import REFERENCE_CACHE
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import FittedRows
from tracemill.train.trl.load_release import (
    load_release_as_messages,
    load_release_as_texts,
    model_error,
)

Data = dict[str, tuple[Dataset, FittedRows]]

_ADDED_TOKENS = 2
"""Tokens that TRL's CPOTrainer may add to a text: one at its beginning, one at its end."""


def make_trainer(
    settings: TrainingSettings,
    folder: Path,
    tokenizer: Any,
    splits: dict[str, Dataset],
    fitted: dict[str, FittedRows],
    callbacks: Sequence[TrainerCallback],
) -> Any:
    """Build a trainer over the fitted rows, with checkpoints in `folder`.

    It evaluates on `validation` if that has rows. Raises TrainingError if the model cannot be loaded.
    """
    used = [name for name in ("train", "validation") if name in fitted and fitted[name].rows]
    common = _config_arguments(settings, folder, "validation" in used)
    make = TRAINING_METHODS.get(settings.method).trainer_of()
    data = {name: (splits[name], fitted[name]) for name in used}
    try:
        return make(settings, common, tokenizer, data, list(callbacks))
    except (OSError, SafetensorError) as error:
        raise model_error(settings.model, error) from error


def sft_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Build the trainer of `sft`: mean negative log-likelihood per completion token, weighted if rows are."""
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from tracemill.train.trl.packed_trainers import PackedSFTTrainer, PackedWeightedSFTTrainer
    from tracemill.train.trl.weighted_sft import WeightedSFTTrainer

    rows = {name: load_release_as_messages(split, fitted) for name, (split, fitted) in data.items()}
    weighted = "weight" in rows["train"].column_names
    plain = WeightedSFTTrainer if weighted else SFTTrainer
    packed = PackedWeightedSFTTrainer if weighted else PackedSFTTrainer
    return _trainer_class(settings, plain, packed)(
        args=SFTConfig(max_length=settings.max_length, completion_only_loss=True, **common),
        **_trainer_arguments(settings, tokenizer, rows, callbacks),
    )


def dpo_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Build the trainer of `dpo`: DPO's loss plus `nll_weight` times the NLL of the chosen sides.

    The reference is the model as loaded; with LoRA, the model without its adapters.
    """
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from tracemill.train.trl.cached_reference import CachedDPOTrainer, CachedPackedDPOTrainer
    from tracemill.train.trl.packed_trainers import PackedDPOTrainer

    rows = {name: load_release_as_messages(split, fitted) for name, (split, fitted) in data.items()}
    cached = settings.reference == "cached"
    if cached:
        path = Path(common["output_dir"]).parent.parent / REFERENCE_CACHE
        make = partial(
            _trainer_class(settings, CachedDPOTrainer, CachedPackedDPOTrainer), reference_cache=path
        )
    else:
        make = _trainer_class(settings, DPOTrainer, PackedDPOTrainer)
    return make(
        args=DPOConfig(
            precompute_ref_log_probs=cached,
            max_length=settings.max_length,
            beta=settings.beta,
            loss_type=["sigmoid", "sft"] if settings.nll_weight else ["sigmoid"],
            loss_weights=[1.0, settings.nll_weight] if settings.nll_weight else [1.0],
            **common,
        ),
        **_trainer_arguments(settings, tokenizer, rows, callbacks),
    )


def simpo_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Build the trainer of `simpo`.

    CPOTrainer passes no tools to the chat template, so it gets rendered texts. It would place the model on a
    GPU even if the training is on the CPU.
    """
    from trl.experimental.cpo import CPOConfig, CPOTrainer

    from tracemill.train.trl.packed_trainers import PackedCPOTrainer

    rows = {name: load_release_as_texts(fitted, tokenizer) for name, (_, fitted) in data.items()}
    arguments = CPOConfig(
        loss_type="simpo",
        cpo_alpha=0.0,
        beta=settings.beta,
        simpo_gamma=settings.gamma or 0.0,
        max_length=settings.max_length + _ADDED_TOKENS,
        remove_unused_columns=False,
        **common,
    )
    on_gpu = arguments.device.type == "cuda"
    assert isinstance(arguments.model_init_kwargs, dict)
    arguments.model_init_kwargs["device_map"] = "auto" if on_gpu else None
    return _trainer_class(settings, CPOTrainer, PackedCPOTrainer)(
        args=arguments,
        **_trainer_arguments(settings, tokenizer, rows, callbacks),
    )


def kto_trainer(
    settings: TrainingSettings, common: dict[str, Any], tokenizer: Any, data: Data, callbacks: list[Any]
) -> Any:
    """Build the trainer of `kto`, with a reference as in `dpo`.

    TRL takes rows in order and estimates the KL divergence from the other rows of a batch. Both sides of a
    pair are neighbours in a release, so rows are shuffled by the seed.
    """
    from trl.trainer.kto_config import KTOConfig
    from trl.trainer.kto_trainer import KTOTrainer

    rows = {
        name: load_release_as_messages(split, fitted).shuffle(seed=settings.seed)
        for name, (split, fitted) in data.items()
    }
    return KTOTrainer(
        args=KTOConfig(max_length=settings.max_length, beta=settings.beta, **common),
        **_trainer_arguments(settings, tokenizer, rows, callbacks),
    )


def _trainer_class(settings: TrainingSettings, plain: Any, packed: Any) -> Any:
    """Return the trainer class: TRL's, or the one for packed rows."""
    if settings.packing == "off":
        return plain
    return partial(packed, packing_tokens=settings.packing_tokens)


def _trainer_arguments(
    settings: TrainingSettings, tokenizer: Any, rows: dict[str, Dataset], callbacks: list[Any]
) -> dict[str, Any]:
    return {
        "model": settings.model,
        "train_dataset": rows["train"],
        "eval_dataset": rows.get("validation"),
        "processing_class": tokenizer,
        "callbacks": callbacks,
        "peft_config": lora_of(settings),
    }


def _config_arguments(settings: TrainingSettings, folder: Path, evaluated: bool) -> dict[str, Any]:
    on_gpu = torch.cuda.is_available() and settings.device != "cpu"
    bf16 = on_gpu and torch.cuda.is_bf16_supported() if settings.bf16 is None else settings.bf16
    warm_constant = settings.scheduler == "constant" and settings.warmup > 0
    return {
        "output_dir": str(folder),
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.scheduler if not warm_constant else "constant_with_warmup",
        "warmup_steps": settings.warmup,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        "model_init_kwargs": model_arguments(settings),
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps or -1,
        "per_device_train_batch_size": settings.batch,
        "per_device_eval_batch_size": settings.batch,
        "gradient_accumulation_steps": settings.accumulate,
        "seed": settings.seed,
        "use_cpu": settings.device == "cpu" or (settings.processes > 1 and not on_gpu),
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
        "report_to": "tensorboard" if settings.tensorboard else "none",
        "disable_tqdm": True,
    }


def model_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """Return the arguments for loading the weights."""
    arguments: dict[str, Any] = {"dtype": settings.dtype}
    if settings.lora is not None and settings.lora.quantize == "4bit":
        from transformers import BitsAndBytesConfig

        arguments["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    return arguments


def lora_of(settings: TrainingSettings, task: str = "CAUSAL_LM") -> Any:
    """Return the peft configuration of the adapters, None if all weights are trained."""
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
        task_type=task,
    )
