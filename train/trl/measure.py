"""Measure models on held-out pairs: `python -m tracemill.train.trl.measure FOLDER`.

It answers a `PreferenceRequest` with `PreferenceMargins`.
"""

# pyright: reportMissingImports=false

import sys
from pathlib import Path
from typing import Any

import torch
from datasets import concatenate_datasets, disable_progress_bars
from transformers import AutoModelForCausalLM, AutoTokenizer

from tracemill.records.errors import TrainingError
from tracemill.train.ask_child import answer_parent
from tracemill.train.losses.token_log_probs import token_log_probs
from tracemill.train.preferences import (
    HELD_OUT,
    NO_PAIR,
    PAIR_COLUMNS,
    PreferenceMargins,
    PreferenceRequest,
)
from tracemill.train.trl.chat_template import render_chat_template
from tracemill.train.trl.load_release import check_rows, fit_split, load_splits, model_error
from tracemill.train.trl.worker import worker_error_text


def measure_models(question: PreferenceRequest, cache: Path) -> PreferenceMargins:
    """Return the margins of each model on the held-out pairs that fit the first one.

    Raises TrainingError if a model or the release cannot be loaded, or no pair is held out.
    """
    settings = question.settings
    splits = load_splits(question.release, settings, cache, HELD_OUT, PAIR_COLUMNS)
    held_out = [splits[name] for name in HELD_OUT if splits.get(name)]
    if not held_out:
        raise TrainingError(NO_PAIR)
    fitted = None
    margins: dict[str, list[float]] = {}
    for name, folder in question.models.items():
        tokenizer = _load(AutoTokenizer, folder)
        if settings.chat_template is not None:
            tokenizer.chat_template = settings.chat_template.read_text(encoding="utf-8")
        if fitted is None:
            fitted = fit_split(concatenate_datasets(held_out), tokenizer, settings)
            check_rows(fitted, settings)
        margins[name] = _measure(folder, tokenizer, fitted.rows, settings.device)
    rows = fitted.rows if fitted else []
    pairs = [{name: str(row[name]) for name in PAIR_COLUMNS if name in row} for row in rows]
    return PreferenceMargins(pairs=pairs, margins=margins, left_out=dict(fitted.dropped) if fitted else {})


def _measure(folder: str, tokenizer: Any, rows: list[dict[str, Any]], device: str) -> list[float]:
    model = _load(AutoModelForCausalLM, folder, dtype="auto")
    model.to("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu").eval()
    margins = []
    for row in rows:
        rendered = render_chat_template(tokenizer, row["prompt"], row)
        chosen, rejected = (
            _mean_log_prob(model, tokenizer, rendered.prompt, rendered.sides[side])
            for side in ("chosen", "rejected")
        )
        margins.append(chosen - rejected)
    return margins


def _load(kind: Any, folder: str, **options: Any) -> Any:
    """Load a part of a checkpoint, which may be an adapter. Raises TrainingError if it fails."""
    try:
        return kind.from_pretrained(folder, **options)
    except (OSError, ValueError) as error:
        raise model_error(folder, error) from error


@torch.inference_mode()
def _mean_log_prob(model: Any, tokenizer: Any, prompt: str, side: str) -> float:
    """Return the mean log probability, in nats, of a token of a side after its prompt."""
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    after = tokenizer(side, add_special_tokens=False)["input_ids"]
    ids = torch.tensor([before + after], device=model.device)
    logits = model(input_ids=ids).logits[:, len(before) - 1 : -1]
    return token_log_probs(logits, ids[:, len(before) :]).mean().item()


def main(folder: Path) -> int:
    """Answer the request in the folder: write the figures or the reason for none, and return 0."""
    disable_progress_bars()
    return answer_parent(
        folder,
        lambda text: measure_models(PreferenceRequest.model_validate_json(text), folder / "cache"),
        worker_error_text,
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
