"""Tiny trainings of the three-channel trainer: a model drawn at random, rows for the channels, rewards."""

from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from training_releases import tiny_model
from transformers import AutoModelForCausalLM
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from tracemill.train.composer.composer_trainer import Channels, ComposerReplicationTrainer
from tracemill.train.composer.encode_rows import encode_hint_rows, encode_pair_rows
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.hints.hint_rows import add_hint

LENGTH = 160


def make_tiny(folder: Path) -> Path:
    """A model drawn at random, with weights large enough that its context matters."""
    torch.manual_seed(0)
    tiny_model(folder)
    model = model_of(folder)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim == 2:
                value.mul_(8.0 if "layers" in name else 4.0)
    model.save_pretrained(folder)
    return folder


def hint_rows(count: int) -> list[dict[str, Any]]:
    """Tasks whose right answer the hint holds; the response is the answer."""
    rows = []
    for number in range(count):
        prompt = [{"role": "user", "content": f"Fix bug {number}."}]
        hinted = add_hint(prompt, f"Say: test {number}")
        said = [{"role": "assistant", "content": f"test {number}"}]
        rows.append(
            {
                "step_id": f"s{number}",
                "prompt": prompt,
                "hinted_prompt": hinted,
                "completion": said,
                "tools": [],
            }
        )
    return rows


def pair_rows(count: int) -> list[dict[str, Any]]:
    rows = []
    for number in range(count):
        sides = {
            side: [{"role": "assistant", "content": f"{text} {number}"}]
            for side, text in (("chosen", "test"), ("rejected", "Done."))
        }
        prompt = [{"role": "user", "content": f"Fix bug {number}."}]
        rows.append({"pair_id": f"p{number}", "prompt": prompt, **sides, "tools": []})
    return rows


def model_of(tiny: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)


def channels_of(tiny: Path, tokenizer: Any, **more: Any) -> Channels:
    hints = encode_hint_rows(hint_rows(6), tokenizer, LENGTH).examples
    pairs = encode_pair_rows(pair_rows(6), tokenizer, LENGTH).examples
    reference = ReferenceLogProbs(model_of(tiny).eval(), "tiny", tokenizer.pad_token_id)
    return Channels(**{"hints": hints, "pairs": pairs, "reference": reference, **more})


def varied(completions: list[Any], **_: Any) -> list[float]:
    return [float(sum(map(ord, each[0]["content"])) % 7) for each in completions]


def constant(completions: list[Any], **_: Any) -> list[float]:
    return [1.0 for _ in completions]


def trainer_of(
    tiny: Path,
    folder: Path,
    channels: Channels | None,
    reward: Any = constant,
    rollout_func: Any = None,
    **more: Any,
) -> Any:
    settings: dict[str, Any] = {
        "max_steps": 2,
        "per_device_train_batch_size": 2,
        "num_generations": 2,
        "max_completion_length": 6,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "seed": 3,
        "disable_dropout": True,
    }
    args = GRPOConfig(output_dir=str(folder), **(settings | more))
    prompts = [{"prompt": [{"role": "user", "content": f"Fix bug {n}."}]} for n in range(12)]
    make: Any = GRPOTrainer if channels is None else ComposerReplicationTrainer
    given = {} if channels is None else {"channels": channels, "rollout_func": rollout_func}
    return make(
        model=str(tiny), reward_funcs=reward, args=args, train_dataset=Dataset.from_list(prompts), **given
    )


def nll(model: Any, batch: dict[str, Any], side: str) -> Any:
    """Mean negative log likelihood of the responses after one of their contexts."""
    labels = batch[f"{side}input_ids"].masked_fill(batch[f"{side}response_mask"] == 0, -100)
    given = {name: batch[f"{side}{name}"] for name in ("input_ids", "attention_mask")}
    return model(**given, labels=labels).loss


def weights(trainer: Any) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters()}


def logged(trainer: Any, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]
