"""TRL's DPOTrainer over a release; for the child process alone, everything heavy is imported here."""

# pyright: reportMissingImports=false
# (types are checked where the extra `train` is not installed, too)

import importlib.metadata
import json
import platform
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from datasets import Dataset, Features, disable_progress_bars, load_dataset
from transformers import AutoConfig, AutoTokenizer, TrainerCallback
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from records.errors import TrainingError
from train.fitting import Fitted, Measure, fit_rows
from train.job import LOG, REPORT, SCHEMA, Job
from train.settings import TrainingSettings

if TYPE_CHECKING:
    from train.worker import Stopping, Tell

_SAVED = "saved.json"
"""In a checkpoint that was written to its end: the seconds of training up to it."""
_COLUMNS = ("prompt", "chosen", "rejected", "tools")


def train(job: Job, folder: Path, tell: "Tell", stopping: "Stopping") -> dict[str, Any]:
    """Trains and writes `final/` in the folder; goes on from the last whole checkpoint that lies there.

    Gives `{}`, or `{"stopped": step}`. Raises TrainingError for what was wrong beforehand.
    """
    settings, began = job.settings, time.monotonic()
    disable_progress_bars()
    _check_device(settings)
    tell({"phase": "loading the model"})
    tokenizer = _tokenizer(settings)
    splits = _splits(job, folder)
    tell({"phase": "measuring rows"})
    fitted = {name: _fitted(split, tokenizer, settings) for name, split in splits.items()}
    _check_rows(fitted["train"], settings)
    resumed, before_s = _last_checkpoint(folder / "checkpoints")
    watch = _watch(tell, stopping, began - before_s)
    trainer = DPOTrainer(
        model=settings.model,
        args=_arguments(settings, folder / "checkpoints"),
        train_dataset=_dataset(splits["train"], fitted["train"]),
        eval_dataset=_eval_dataset(splits, fitted),
        processing_class=tokenizer,
        callbacks=[watch],
        peft_config=_lora(settings),
    )
    stopping.in_training = True
    trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
    if stopping.asked and trainer.state.global_step < trainer.state.max_steps:
        return {"stopped": trainer.state.global_step}
    measured = trainer.evaluate() if fitted.get("validation") and fitted["validation"].rows else {}
    shutil.rmtree(folder / "final", ignore_errors=True)
    trainer.save_model(str(folder / "final"))
    report = _report(job, trainer, fitted, measured)
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


def _tokenizer(settings: TrainingSettings) -> Any:
    model = settings.model
    try:
        AutoConfig.from_pretrained(model)
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise TrainingError(
            f"model {model} cannot be loaded ({said})", "an id of the Hub or a folder of a saved model"
        ) from error
    if settings.chat_template is not None:
        tokenizer.chat_template = settings.chat_template.read_text(encoding="utf-8")
    if not tokenizer.chat_template:
        raise TrainingError(
            f"the tokenizer of {model} has no chat template",
            "one that renders messages and tool calls",
            "take an instruct model, or name a Jinja file as training.chat_template",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _splits(job: Job, folder: Path) -> dict[str, Dataset]:
    """`train`, and `validation` where the release has one."""
    release = job.release
    place = str(release.path) if release.path else release.repository
    assert place is not None
    at: dict[str, Any] = (
        {"cache_dir": str(folder / "cache")} if release.path else {"revision": release.digest}
    )
    try:
        found: Any = load_dataset(place, "dpo", **at)
    except (OSError, ValueError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise TrainingError(f"release {place} cannot be loaded ({said})", "its config `dpo`") from error
    splits = {name: found[name] for name in ("train", "validation") if name in found}
    if not splits.get("train"):
        raise TrainingError(f"release {place} has no row to train on", "some in split `train`")
    if absent := [name for name in _COLUMNS if name not in splits["train"].column_names]:
        raise TrainingError(
            f"release {place} lacks the columns {', '.join(absent)}", "a release of tracemill"
        )
    return splits


def measure_with(tokenizer: Any) -> Measure:
    """Tokens as TRL will count them: the whole conversation through the chat template."""

    def measure(prompt: list[dict[str, Any]], row: Mapping[str, Any]) -> int:
        try:
            return max(
                _length(tokenizer, [*prompt, *row[side]], row["tools"]) for side in ("chosen", "rejected")
            )
        except Exception as error:  # whatever a template of somebody else's raises
            raise ValueError(type(error).__name__) from error

    return measure


def _length(tokenizer: Any, messages: list[dict[str, Any]], tools: Any) -> int:
    text = tokenizer.apply_chat_template(messages, tools=tools or None, tokenize=False)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _fitted(split: Dataset, tokenizer: Any, settings: TrainingSettings) -> Fitted:
    rows: Any = split.select_columns(list(_COLUMNS))
    return fit_rows(rows, measure_with(tokenizer), settings.max_length, settings.context == "cut")


def _check_rows(fitted: Fitted, settings: TrainingSettings) -> None:
    if fitted.rows:
        return
    if fitted.shortest_tokens is None:
        raise TrainingError(
            f"the chat template of {settings.model} refuses all {fitted.dropped.total()} rows",
            "one that takes tool calls and their results",
            "take another model, or name a Jinja file as training.chat_template",
        )
    raise TrainingError(
        f"none of {fitted.dropped.total()} rows fits max_length = {settings.max_length}",
        f"more than that: the shortest row has {fitted.shortest_tokens} tokens",
        "raise training.max_length",
    )


def _dataset(split: Dataset, fitted: Fitted) -> Dataset:
    features = Features({name: split.features[name] for name in _COLUMNS})
    return Dataset.from_list(fitted.rows, features=features)


def _eval_dataset(splits: dict[str, Dataset], fitted: dict[str, Fitted]) -> Dataset | None:
    held = fitted.get("validation")
    return _dataset(splits["validation"], held) if held and held.rows else None


def _arguments(settings: TrainingSettings, folder: Path) -> DPOConfig:
    on_gpu = torch.cuda.is_available() and settings.device != "cpu"
    bf16 = on_gpu and torch.cuda.is_bf16_supported() if settings.bf16 is None else settings.bf16
    return DPOConfig(
        output_dir=str(folder),
        learning_rate=settings.learning_rate,
        beta=settings.beta,
        max_length=settings.max_length,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        seed=settings.seed,
        use_cpu=settings.device == "cpu",
        bf16=bf16,
        gradient_checkpointing=settings.gradient_checkpointing,
        save_strategy="steps",
        save_steps=settings.save_steps,
        save_total_limit=2,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )


def _lora(settings: TrainingSettings) -> Any:
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
                tell({"step": state.global_step, "total": state.max_steps, "loss": logs["loss"]})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if stopping.asked:
                control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            made = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            said = json.dumps({"seconds": time.monotonic() - since})
            (made / _SAVED).write_text(said, encoding="utf-8")

    return Watch()


def _report(job: Job, trainer: Any, fitted: dict[str, Fitted], measured: dict[str, float]) -> dict[str, Any]:
    history = trainer.state.log_history
    numbers = ("loss", "rewards/accuracies", "rewards/margins")
    return {
        "schema": SCHEMA,
        "fingerprint": job.fingerprint(),
        "release": job.release.model_dump(mode="json"),
        "settings": job.settings.model_dump(mode="json"),
        "rows": {
            name: {"used": len(each.rows), "cut": each.cut, "dropped": dict(each.dropped)}
            for name, each in fitted.items()
        },
        "steps": trainer.state.global_step,
        "losses": [
            {"step": entry["step"], **{key: entry[key] for key in numbers if key in entry}}
            for entry in history
            if "loss" in entry
        ],
        "validation": {key.removeprefix("eval_"): value for key, value in measured.items()},
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
