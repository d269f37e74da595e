"""Load the tokenizer of the model and the rows of the release."""

# pyright: reportMissingImports=false

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, get_dataset_config_names, load_dataset
from transformers import AutoConfig, AutoTokenizer

from tracemill.records.errors import TrainingError
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import TrainingRelease, check_config
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.chat_template import measure_with, render_chat_template
from tracemill.train.trl.fit_rows import FittedRows, fit_rows

_WEIGHT = "weight"


def load_tokenizer(settings: TrainingSettings) -> Any:
    """Load the model's tokenizer, with a chat template and a padding token.

    Raises TrainingError if the model cannot be loaded or has no chat template.
    """
    model = settings.model
    try:
        AutoConfig.from_pretrained(model)
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise model_error(model, error) from error
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


def model_error(model: str, error: Exception) -> TrainingError:
    """Build the error for a model that cannot be loaded, with the first line of the cause."""
    expected = "an id of the Hub or a folder of a saved model"
    return TrainingError(f"model {model} cannot be loaded ({_first_line(error)})", expected)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def load_splits(
    release: TrainingRelease,
    settings: TrainingSettings,
    cache: Path,
    held_out: Sequence[str] = ("validation",),
    beside: Sequence[str] = (),
) -> dict[str, Dataset]:
    """Load `train`, and those of `held_out` that the release has, of the config that the method reads.

    They have the columns of the method, `weight` if it is used, and those of `beside` that there are. Raises
    TrainingError if the release cannot be loaded, or lacks the config, its columns or rows to train on.
    """
    method, place = TRAINING_METHODS.get(settings.method), release.place
    revision = None if release.path else release.digest
    try:
        check_config(release, settings.method, get_dataset_config_names(place, revision=revision))
        loaded: Any = load_dataset(place, method.config, cache_dir=str(cache), revision=revision)
    except (OSError, ValueError) as error:
        raise TrainingError(
            f"release {place} cannot be loaded ({_first_line(error)})", "a release of tracemill"
        ) from error
    splits = {name: loaded[name] for name in ("train", *held_out) if name in loaded}
    if not splits.get("train"):
        raise TrainingError(f"release {place} has no row to train on", "some in split `train`")
    present = splits["train"].column_names
    if missing := [name for name in method.columns if name not in present]:
        raise TrainingError(
            f"release {place} lacks the columns {', '.join(missing)}", "a release of tracemill"
        )
    counts = method.weighted and settings.use_weights and _WEIGHT in present
    columns = [*method.columns, *([_WEIGHT] if counts else ())]
    columns += [name for name in beside if name in present]
    return {name: split.select_columns(columns) for name, split in splits.items()}


def fit_split(split: Dataset, tokenizer: Any, settings: TrainingSettings) -> FittedRows:
    """Return the rows of a split that fit `max_length`, rendered by the tokenizer's chat template."""
    rows: Any = split
    fitted = fit_rows(rows, measure_with(tokenizer), settings.max_length, settings.context == "cut")
    fitted.parted = sum(render_chat_template(tokenizer, row["prompt"], row).parted for row in fitted.rows)
    return fitted


def check_rows(fitted: FittedRows, settings: TrainingSettings) -> None:
    """Raise TrainingError if no row is left to train on."""
    if fitted.rows:
        return
    if not fitted.measured:
        raise TrainingError(
            f"all {fitted.dropped.total()} rows are of weight 0",
            "rows with a weight above 0",
            "set training.use_weights = false to weight all rows equally",
        )
    if not fitted.lengths:
        raise TrainingError(
            f"the chat template of {settings.model} refuses all {fitted.measured} rows",
            "one that takes tool calls and their results",
            "take another model, or name a Jinja file as training.chat_template",
        )
    raise TrainingError(
        f"none of {fitted.measured} rows fits max_length = {settings.max_length}",
        f"more than that: the shortest row has {min(fitted.lengths)} tokens",
        "raise training.max_length",
    )


def load_release_as_messages(split: Dataset, fitted: FittedRows) -> Dataset:
    """Return the rows as conversations with their tools."""
    return Dataset.from_list(fitted.rows, features=Features(split.features))


def load_release_as_texts(fitted: FittedRows, tokenizer: Any) -> Dataset:
    """Return the rows as texts of the chat template, without whitespace after an end-of-sequence token."""
    end = tokenizer.eos_token or ""

    def strip_after_end(side: str) -> str:
        stripped = side.rstrip()
        return stripped if end and stripped.endswith(end) else side

    def render(row: Mapping[str, Any]) -> dict[str, str]:
        rendered = render_chat_template(tokenizer, row["prompt"], row)
        sides = {name: strip_after_end(side) for name, side in rendered.sides.items()}
        return {"prompt": rendered.prompt, **sides}

    return Dataset.from_list([render(row) for row in fitted.rows])
