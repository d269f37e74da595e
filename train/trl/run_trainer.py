"""A trainer of TRL over a release; for the child process alone, everything heavy is imported here."""

# pyright: reportMissingImports=false
# (types are checked where the extra `run_trainer` is not installed, too)

import importlib.metadata
import json
import math
import platform
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from datasets import disable_progress_bars
from transformers import TrainerCallback

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import write_json
from tracemill.train.training_job import LOG, REPORT, SCHEMA, Job
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import Fitted
from tracemill.train.trl.likelihood import likelihood_warnings
from tracemill.train.trl.load_release import check_rows, fit_split, load_splits, load_tokenizer
from tracemill.train.trl.trainers import make_trainer

if TYPE_CHECKING:
    from tracemill.train.trl.stopping import Stopping, Tell

_SAVED = "saved.json"
"""In a checkpoint that was written to its end: the seconds of training up to it."""
_NUMBERS = (
    "loss",
    "mean_token_accuracy",
    "rewards/accuracies",
    "rewards/margins",
    "rewards/chosen",
    "logps/chosen",
)


def run_trainer(job: Job, folder: Path, tell: "Tell", stopping: "Stopping") -> dict[str, Any]:
    """Trains and writes `final/` in the folder; goes on from the last whole checkpoint that lies there.

    Gives `{}`, or `{"stopped": step}`. Raises TrainingError for what was wrong beforehand.
    """
    settings, began = job.settings, time.monotonic()
    disable_progress_bars()
    _check_device(settings)
    tell({"phase": "loading the model"})
    tokenizer = load_tokenizer(settings)
    splits = load_splits(job.release, settings, folder / "cache")
    tell({"phase": "measuring rows"})
    fitted = {name: fit_split(split, tokenizer, settings) for name, split in splits.items()}
    check_rows(fitted["train"], settings)
    resumed, before_s = _last_checkpoint(folder / "checkpoints")
    watch = _watch(tell, stopping, began - before_s)
    trainer = make_trainer(settings, folder / "checkpoints", tokenizer, splits, fitted, [watch])
    stopping.in_training = True
    trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
    if stopping.asked and trainer.state.global_step < trainer.state.max_steps:
        return {"stopped": trainer.state.global_step}
    if trainer.eval_dataset is not None and trainer.state.global_step not in _measured(trainer):
        trainer.evaluate()
    shutil.rmtree(folder / "final", ignore_errors=True)
    trainer.save_model(str(folder / "final"))
    report = _report(job, trainer, fitted)
    report["seconds"] = round(time.monotonic() - began + before_s, 1)
    report["resumed_at_step"] = int(resumed.name.rpartition("-")[2]) if resumed else None
    shutil.copyfile(folder / LOG, folder / "final" / LOG)
    (folder / "final" / REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return {}


def _check_device(settings: TrainingSettings) -> None:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError(
            f"device = 'cuda' and torch {torch.__version__} sees no GPU",
            "a GPU and its driver",
            "use device = 'cpu', or 'auto'",
        )
    on_gpu = torch.cuda.is_available() and settings.device != "cpu"
    if settings.bf16 and not on_gpu:
        raise TrainingError(
            "training.bf16 = true and the training is on the processor",
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
    """The last checkpoint that was written to its end, and the seconds until it; others are removed."""
    whole: dict[int, Path] = {}
    for path in folder.glob("checkpoint-*"):
        if (path / _SAVED).exists():
            whole[int(path.name.rpartition("-")[2])] = path
        else:
            shutil.rmtree(path)
    if not whole:
        return None, 0.0
    last = whole[max(whole)]
    return last, json.loads((last / _SAVED).read_text())["seconds"]


def _watch(tell: "Tell", stopping: "Stopping", since: float) -> TrainerCallback:
    class Watch(TrainerCallback):
        """Tells of steps, marks whole checkpoints, and stops when it is asked to."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            tell({"step": state.global_step, "total": state.max_steps})

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                _require_finite(logs, state.global_step)
                tell({"step": state.global_step, "total": state.max_steps, "loss": logs["loss"]})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if stopping.asked:
                control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            made = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            write_json(made / _SAVED, {"seconds": time.monotonic() - since})

    return Watch()


def _require_finite(logs: dict[str, Any], step: int) -> None:
    """Raises TrainingError where a loss or its gradient is no number any more: the weights are lost from
    here on. Told before the step is saved."""
    for name in ("loss", "grad_norm"):
        if not math.isfinite(value := float(logs.get(name) or 0.0)):
            raise TrainingError(
                f"training diverged: {name} is {value} at step {step}",
                "finite numbers",
                "lower training.learning_rate",
            )


def _measured(trainer: Any) -> dict[int, dict[str, float]]:
    """What was measured on the rows of `validation`, by step; a training that was taken up measures where
    it begins."""
    found = {}
    for entry in trainer.state.log_history:
        if "eval_loss" in entry:
            found[entry["step"]] = {key: entry[f"eval_{key}"] for key in _NUMBERS if f"eval_{key}" in entry}
    return found


def _counted(fitted: Fitted) -> dict[str, Any]:
    """What became of the rows of a split; `weight` is the sum of the weights of those used, None where they
    have none."""
    weights = [row["weight"] for row in fitted.rows if row.get("weight") is not None]
    return {
        "used": len(fitted.rows),
        "cut": fitted.cut,
        "dropped": dict(fitted.dropped),
        "parted": fitted.parted,
        "weight": round(sum(weights), 6) if weights else None,
    }


def _report(job: Job, trainer: Any, fitted: dict[str, Fitted]) -> dict[str, Any]:
    losses = [
        {"step": entry["step"], **{key: entry[key] for key in _NUMBERS if key in entry}}
        for entry in trainer.state.log_history
        if "loss" in entry
    ]
    validation = [{"step": step, **numbers} for step, numbers in _measured(trainer).items()]
    return {
        "schema": SCHEMA,
        "fingerprint": job.fingerprint(),
        "release": job.release.model_dump(mode="json"),
        "settings": job.settings.model_dump(mode="json"),
        "rows": {name: _counted(each) for name, each in fitted.items()},
        "steps": trainer.state.global_step,
        "losses": losses,
        "validation": validation,
        "warnings": likelihood_warnings(job.settings, losses, validation),
        "device": str(trainer.args.device),
        "bf16": trainer.args.bf16,
        "versions": _versions(job),
    }


def _versions(job: Job) -> dict[str, str]:
    found = {"tracemill": job.tracemill_version, "python": platform.python_version()}
    found |= {"torch": torch.__version__, "transformers": transformers.__version__}
    for name in ("trl", "datasets", "accelerate") + (("peft",) if job.settings.lora else ()):
        found[name] = importlib.metadata.version(name)
    return found
