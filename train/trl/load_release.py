"""What a training begins with: the tokenizer of the model, and the rows of the release that fit it."""

# pyright: reportMissingImports=false

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, get_dataset_config_names, load_dataset
from transformers import AutoConfig, AutoTokenizer

from tracemill.records.errors import TrainingError
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import TrainingRelease, check_config
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.chat_template import measure_with, render_chat_template
from tracemill.train.trl.fit_rows import Fitted, fit_rows

_WEIGHT = "weight"


def load_tokenizer(settings: TrainingSettings) -> Any:
    """The model's tokenizer, with a chat template and a padding token. Raises TrainingError where the model
    is none, or where it has no template."""
    model = settings.model
    try:
        AutoConfig.from_pretrained(model)
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise load_release_model_error(model, error) from error
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


def load_release_model_error(model: str, error: Exception) -> TrainingError:
    """What is raised for a model that is none, with the first line of why."""
    said = (str(error).splitlines() or [""])[0]
    wanted = "an id of the Hub or a folder of a saved model"
    return TrainingError(f"model {model} cannot be loaded ({said})", wanted)


def load_splits(release: TrainingRelease, settings: TrainingSettings, cache: Path) -> dict[str, Dataset]:
    """`train`, and `validation` where the release has one, of the config that the method reads; of their
    columns those that it wants, and `weight` where that is there and counts. Raises TrainingError where the
    release has no such config or no row to train on, or is none of ours."""
    method, place = TRAINING_METHODS.get(settings.method), release.place
    revision = None if release.path else release.digest
    try:
        check_config(release, settings.method, get_dataset_config_names(place, revision=revision))
        found: Any = load_dataset(place, method.config, cache_dir=str(cache), revision=revision)
    except (OSError, ValueError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise TrainingError(f"release {place} cannot be loaded ({said})", "a release of tracemill") from error
    splits = {name: found[name] for name in ("train", "validation") if name in found}
    if not splits.get("train"):
        raise TrainingError(f"release {place} has no row to train on", "some in split `train`")
    there = splits["train"].column_names
    if absent := [name for name in method.columns if name not in there]:
        raise TrainingError(
            f"release {place} lacks the columns {', '.join(absent)}", "a release of tracemill"
        )
    columns = [*method.columns, *([_WEIGHT] if settings.use_weights and _WEIGHT in there else ())]
    return {name: split.select_columns(columns) for name, split in splits.items()}


def fit_split(split: Dataset, tokenizer: Any, settings: TrainingSettings) -> Fitted:
    """The rows of a split that fit the window, through the tokenizer's chat template."""
    rows: Any = split
    fitted = fit_rows(rows, measure_with(tokenizer), settings.max_length, settings.context == "cut")
    fitted.parted = sum(render_chat_template(tokenizer, row["prompt"], row).parted for row in fitted.rows)
    return fitted


def check_rows(fitted: Fitted, settings: TrainingSettings) -> None:
    """Raises TrainingError where no row is left to train on."""
    if fitted.rows:
        return
    if not fitted.measured:
        raise TrainingError(
            f"all {fitted.dropped.total()} rows are of weight 0",
            "some that count",
            "set training.use_weights = false to take them all alike",
        )
    if fitted.shortest_tokens is None:
        raise TrainingError(
            f"the chat template of {settings.model} refuses all {fitted.measured} rows",
            "one that takes tool calls and their results",
            "take another model, or name a Jinja file as training.chat_template",
        )
    raise TrainingError(
        f"none of {fitted.measured} rows fits max_length = {settings.max_length}",
        f"more than that: the shortest row has {fitted.shortest_tokens} tokens",
        "raise training.max_length",
    )


def load_release_as_messages(split: Dataset, fitted: Fitted) -> Dataset:
    """The rows as conversations with their tools."""
    return Dataset.from_list(fitted.rows, features=Features(split.features))


def load_release_as_texts(fitted: Fitted, tokenizer: Any) -> Dataset:
    """The rows as the chat template writes them, each side to the end of its turn."""
    end = tokenizer.eos_token or ""

    def ended(side: str) -> str:
        shorter = side.rstrip()
        return shorter if end and shorter.endswith(end) else side

    def texts(row: Mapping[str, Any]) -> dict[str, str]:
        found = render_chat_template(tokenizer, row["prompt"], row)
        return {"prompt": found.prompt, **{name: ended(side) for name, side in found.sides.items()}}

    return Dataset.from_list([texts(row) for row in fitted.rows])
