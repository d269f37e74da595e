"""Train on a release with a TRL trainer; imports torch, so only the child process imports this module."""

# pyright: reportMissingImports=false
# (types are also checked where the extra `train` is not installed)

import importlib.metadata
import json
import math
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from datasets import disable_progress_bars
from transformers import TrainerCallback

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import write_json
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import (
    LOG,
    REPORT,
    SCHEMA,
    TENSORBOARD,
    ProgressCallback,
    TrainingJob,
    reads_rows,
)
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import FittedRows
from tracemill.train.trl.likelihood import likelihood_warnings
from tracemill.train.trl.load_release import check_rows, fit_split, load_splits, load_tokenizer
from tracemill.train.trl.model_card import model_card
from tracemill.train.trl.stopping import is_main_process
from tracemill.train.trl.trainers import make_trainer

if TYPE_CHECKING:
    from tracemill.train.trl.stopping import StopSignal

_SAVED = "saved.json"
"""File of a complete checkpoint, with the seconds of training up to it."""
_METRICS = (
    "loss",
    "learning_rate",
    "mean_token_accuracy",
    "accuracy",
    "rewards/accuracies",
    "rewards/margins",
    "rewards/chosen",
    "logps/chosen",
    "loss/grpo",
    "loss/sdpo_kl",
    "loss/trace_replay_dpo",
    "loss/total",
    "alpha_sdpo",
    "advantage/grpo",
    "advantage/sdpo",
    "advantage/hinted",
    "importance/mean",
    "importance/max",
    "importance/over_cap",
    "reward",
    "frac_reward_zero_std",
    "tools/call_frequency",
)


def run_trainer(
    job: TrainingJob, folder: Path, on_progress: ProgressCallback, stop: "StopSignal"
) -> dict[str, Any]:
    """Train and write `final/` in the folder; resume from the last complete checkpoint in it.

    Returns `{}`, or `{"stopped": step}`. Raises TrainingError if the training cannot start or diverges.
    """
    settings, began = job.settings, time.monotonic()
    disable_progress_bars()
    _check_device(settings)
    on_progress({"phase": "loading the model"})
    tokenizer = load_tokenizer(settings)
    splits, fitted = {}, {"train": FittedRows()}
    if reads_rows(settings):
        held_out = ("validation",) if TRAINING_METHODS.get(settings.method).evaluates else ()
        splits = load_splits(job.release, settings, folder / "cache", held_out)
        on_progress({"phase": "measuring rows"})
        fitted = {name: fit_split(split, tokenizer, settings) for name, split in splits.items()}
        check_rows(fitted["train"], settings)
        windows = _windows_text(fitted["train"])
        sys.stdout.write(windows + "\n")
        on_progress({"phase": windows})
    resumed, before_s = _last_checkpoint(folder / "checkpoints")
    if settings.tensorboard:
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(folder / TENSORBOARD)
    callback = _make_callback(on_progress, stop, began - before_s)
    trainer = make_trainer(settings, folder / "checkpoints", tokenizer, splits, fitted, [callback])
    stop.in_training = True
    trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
    if stop.requested and trainer.state.global_step < trainer.state.max_steps:
        return {"stopped": trainer.state.global_step}
    if trainer.eval_dataset is not None and trainer.state.global_step not in _validation_metrics(trainer):
        trainer.evaluate()
    if is_main_process():
        shutil.rmtree(folder / "final", ignore_errors=True)
    trainer.save_model(str(folder / "final"))
    if not is_main_process():
        return {}
    final: dict[str, Any] = trainer.final_figures() if hasattr(trainer, "final_figures") else {}
    report = _report(job, trainer, fitted) | final
    report["seconds"] = round(time.monotonic() - began + before_s, 1)
    report["resumed_at_step"] = int(resumed.name.rpartition("-")[2]) if resumed else None
    shutil.copyfile(folder / LOG, folder / "final" / LOG)
    if settings.tensorboard:
        shutil.copytree(folder / TENSORBOARD, folder / "final" / TENSORBOARD)
    (folder / "final" / REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (folder / "final" / "README.md").write_text(model_card(report, settings.model), encoding="utf-8")
    return {}


def _windows_text(fitted: FittedRows) -> str:
    """Return the number of uncut rows for each value of `max_length`, as text, before training."""
    whole = ", ".join(f"{count:,} at {window:,}" for window, count in fitted.whole_at().items())
    return f"of {len(fitted.lengths):,} rows fit whole in max_length: {whole}"


def _check_device(settings: TrainingSettings) -> None:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError(
            f"device = 'cuda' and torch {torch.__version__} sees no GPU",
            "a GPU and its driver",
            "use device = 'cpu', or 'auto'",
        )
    on_gpu = torch.cuda.is_available() and settings.device != "cpu"
    splits = any(os.environ.get(f"ACCELERATE_USE_{name}") == "true" for name in ("FSDP", "DEEPSPEED"))
    if settings.accelerate is not None and splits and not on_gpu:
        raise TrainingError(
            f"{settings.accelerate} splits the model, which accelerate does on GPUs alone",
            "a GPU for each process",
            "leave training.accelerate out: each process then holds the whole model",
        )
    if settings.bf16 and not on_gpu:
        raise TrainingError(
            "training.bf16 = true and the training is on the CPU",
            "a GPU for mixed precision",
            "leave training.bf16 out",
        )
    if settings.bf16 and not torch.cuda.is_bf16_supported():
        raise TrainingError(
            f"training.bf16 = true and {torch.cuda.get_device_name()} has no bfloat16",
            "a GPU that has it",
            "leave training.bf16 out",
        )


def _last_checkpoint(folder: Path) -> tuple[Path | None, float]:
    """Return the last complete checkpoint and its seconds of training; remove incomplete ones."""
    complete: dict[int, Path] = {}
    for path in folder.glob("checkpoint-*"):
        if (path / _SAVED).exists():
            complete[int(path.name.rpartition("-")[2])] = path
        elif is_main_process():
            shutil.rmtree(path)
    if not complete:
        return None, 0.0
    last = complete[max(complete)]
    return last, json.loads((last / _SAVED).read_text())["seconds"]


def _make_callback(on_progress: ProgressCallback, stop: "StopSignal", since: float) -> TrainerCallback:
    class TracemillCallback(TrainerCallback):
        """A callback that reports progress, marks complete checkpoints, and stops on request."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            on_progress({"step": state.global_step, "total": state.max_steps})

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                _require_finite(logs, state.global_step)
                on_progress({"step": state.global_step, "total": state.max_steps, "loss": logs["loss"]})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if _any_process(stop.requested):
                stop.requested = True
                control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not is_main_process():
                return
            checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            write_json(checkpoint / _SAVED, {"seconds": time.monotonic() - since})

    return TracemillCallback()


def _any_process(asked: bool) -> bool:
    """Return whether any process of the training was asked to stop: all of them stop at the same step."""
    if not torch.distributed.is_initialized():
        return asked
    device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
    flag = torch.tensor(int(asked), device=device)
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def _require_finite(logs: dict[str, Any], step: int) -> None:
    """Raise TrainingError if a loss or gradient is not finite, before the broken weights are saved."""
    for name in ("loss", "grad_norm"):
        if not math.isfinite(value := float(logs.get(name) or 0.0)):
            raise TrainingError(
                f"training diverged: {name} is {value} at step {step}",
                "finite numbers",
                "lower training.learning_rate",
            )


def _validation_metrics(trainer: Any) -> dict[int, dict[str, float]]:
    """Return the metrics on `validation` by step; a resumed training evaluates again where it begins."""
    metrics = {}
    for entry in trainer.state.log_history:
        if "eval_loss" in entry:
            metrics[entry["step"]] = {key: entry[f"eval_{key}"] for key in _METRICS if f"eval_{key}" in entry}
    return metrics


def _row_counts(fitted: FittedRows) -> dict[str, Any]:
    """Return counts of the rows of a split; `weight` is the total weight, None if rows have none."""
    weights = [row["weight"] for row in fitted.rows if row.get("weight") is not None]
    return {
        "used": len(fitted.rows),
        "cut": fitted.cut,
        "dropped": dict(fitted.dropped),
        "parted": fitted.parted,
        "weight": round(sum(weights), 6) if weights else None,
    }


def _report(job: TrainingJob, trainer: Any, fitted: dict[str, FittedRows]) -> dict[str, Any]:
    losses = [
        {"step": entry["step"], **{key: entry[key] for key in _METRICS if key in entry}}
        for entry in trainer.state.log_history
        if "loss" in entry
    ]
    validation = [{"step": step, **metrics} for step, metrics in _validation_metrics(trainer).items()]
    return {
        "schema": SCHEMA,
        "fingerprint": job.fingerprint(),
        "release": job.release.model_dump(mode="json"),
        "settings": job.settings.model_dump(mode="json"),
        "rows": {name: _row_counts(each) for name, each in fitted.items()},
        "whole_at": fitted["train"].whole_at(),
        "steps": trainer.state.global_step,
        **({"channels": counts} if (counts := getattr(trainer, "channel_counts", None)) else {}),
        "reference_rows": getattr(trainer, "reference_rows_computed", None),
        "losses": losses,
        "validation": validation,
        "warnings": [
            *getattr(trainer, "packing_notes", ()),
            *getattr(trainer, "notes", ()),
            *likelihood_warnings(job.settings, losses, validation),
        ],
        "device": str(trainer.args.device),
        "processes": trainer.args.world_size,
        "bf16": trainer.args.bf16,
        "versions": _versions(job),
    }


def _versions(job: TrainingJob) -> dict[str, str]:
    versions = {"tracemill": job.tracemill_version, "python": platform.python_version()}
    versions |= {"torch": torch.__version__, "transformers": transformers.__version__}
    for name in ("trl", "datasets", "accelerate") + (("peft",) if job.settings.lora else ()):
        versions[name] = importlib.metadata.version(name)
    return versions
