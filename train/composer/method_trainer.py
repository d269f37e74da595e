"""Build the trainer of `composer`: GRPO on tasks or prompts, with hint rows and pairs of a release."""

# pyright: reportMissingImports=false

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM
from trl.chat_template_utils import add_response_schema
from trl.trainer.grpo_config import GRPOConfig

from tracemill.records.errors import TracemillError, TrainingError
from tracemill.train.composer.composer_trainer import HINT, Channels, ComposerReplicationTrainer
from tracemill.train.composer.encode_rows import EncodedRows, encode_hint_rows, encode_pair_rows
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.composer.row_files import read_hint_rows, read_prompt_rows, read_state_rows
from tracemill.train.composer_settings import ComposerSettings
from tracemill.train.consensus.consensus_rewards import STATE, ConsensusReward
from tracemill.train.consensus.state_rows import count_simulated_states
from tracemill.train.hints.writers import count_writers
from tracemill.train.prm.prm_reward import PrmReward
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import FittedRows
from tracemill.train.trl.trainers import lora_of

_READ_TASKS = "tracemill.environments.task:read_tasks"
_ENVIRONMENTS = {
    "claude_code": "tracemill.environments.episodes.environment:ClaudeCodeEnvironment",
    "openhands": "tracemill.environments.episodes.environment:OpenHandsEnvironment",
}
"""Named and not imported: `environments` is a package of the same floor."""


def composer_trainer(
    settings: TrainingSettings,
    common: dict[str, Any],
    tokenizer: Any,
    data: Mapping[str, tuple[Dataset, FittedRows]],
    callbacks: list[Any],
) -> ComposerReplicationTrainer:
    """Build the trainer of `composer`; the reference of pairs is the model as loaded, without its adapters.

    Raises TrainingError if a channel that is on has no example, and if tokenizer and model do not fit.
    """
    composer = settings.composer
    assert composer is not None  # `TrainingSettings` checks it
    tokenizer.padding_side = "left"
    hint_rows = _hint_rows(composer)
    encoded = {
        "sdpo": _hint_examples(composer, hint_rows, tokenizer, settings.max_length),
        "replay": _pair_examples(composer, data, tokenizer, settings.max_length),
    }
    arguments = GRPOConfig(
        num_generations=composer.generations,
        max_completion_length=composer.max_completion_length,
        max_tool_calling_iterations=composer.max_tool_rounds,
        temperature=composer.temperature,
        top_k=0,
        disable_dropout=True,
        **common,
    )
    channels = _channels(settings, composer, encoded)
    reference, learning = None, _LearningModel()
    if channels["beta_replay"] and composer.dpo_variant == "dpo":
        reference = _reference(settings, arguments, tokenizer, learning)
        if settings.lora is None:
            reference.settle(channels["pairs"], arguments.device)
    task = _task_arguments(composer)
    if composer.states is not None:
        _add_call_parser(tokenizer, settings.model)
    try:
        trainer = ComposerReplicationTrainer(
            model=settings.model,
            args=arguments,
            processing_class=tokenizer,
            callbacks=callbacks,
            peft_config=lora_of(settings),
            channels=Channels(**channels, reference=reference),
            **task,
        )
    except (TypeError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0][:300]
        raise TrainingError(
            f"TRL cannot train {settings.model} this way ({first})",
            "a model whose chat template it knows, or whose tokenizer has a response_template",
        ) from error
    check_vocabulary(tokenizer, trainer.model, settings.model)
    if reference is not None and settings.lora is not None:
        made: Any = trainer.model
        learning.model = made.eval()
        reference.settle(channels["pairs"], made.device)
        learning.model = None
    for reward in trainer.reward_funcs:
        if isinstance(reward, PrmReward):
            reward.tools = trainer.tools or None
    trainer.channel_counts = _counts(composer, encoded, task["train_dataset"])
    trainer.channel_counts["sdpo"] |= count_writers(
        hint_rows, {each.name for each in encoded["sdpo"].examples}
    )
    return trainer


def check_vocabulary(tokenizer: Any, model: Any, name: str) -> None:
    """Raise TrainingError if the tokenizer has a token without logits in the model.

    Added tokens may exceed the model's vocabulary, except those of padding and end.
    """
    used = {tokenizer.pad_token_id, tokenizer.eos_token_id} - {None}
    used |= set(tokenizer.get_vocab().values()) - tokenizer.added_tokens_decoder.keys()
    most, size = max(used), model.get_input_embeddings().num_embeddings
    if most >= size:
        raise TrainingError(
            f"the vocabularies of {name} differ: its tokenizer has the token id {most}, its model {size}"
            " tokens",
            "the tokenizer that the model was trained with",
        )


def _hint_rows(composer: ComposerSettings) -> list[dict[str, Any]]:
    if not composer.needs_hint_rows:
        return []
    if composer.hints is None:
        raise TrainingError(
            f"composer.alpha_sdpo is {composer.alpha_sdpo} and there are no hint rows",
            "training.composer.hints, or sessions in the workspace",
            "give a file, or set alpha_sdpo = 0",
        )
    return read_hint_rows(composer.hints)


def _hint_examples(
    composer: ComposerSettings, rows: Sequence[dict[str, Any]], tokenizer: Any, max_length: int
) -> EncodedRows:
    if not composer.needs_hint_rows:
        return EncodedRows()
    encoded = encode_hint_rows(rows, tokenizer, max_length)
    return _some(encoded, "alpha_sdpo", composer.alpha_sdpo, "hint row")


def _pair_examples(
    composer: ComposerSettings,
    data: Mapping[str, tuple[Dataset, FittedRows]],
    tokenizer: Any,
    max_length: int,
) -> EncodedRows:
    if not composer.beta_replay:
        return EncodedRows()
    _, fitted = data["train"]
    encoded = encode_pair_rows(fitted.rows, tokenizer, max_length)
    for reason, count in fitted.dropped.items():
        encoded.dropped[reason] = encoded.dropped.get(reason, 0) + count
    return _some(encoded, "beta_replay", composer.beta_replay, "pair")


def _some(encoded: EncodedRows, key: str, weight: float, kind: str) -> EncodedRows:
    if not encoded.examples:
        why = "; ".join(f"{count} {reason}" for reason, count in encoded.dropped.items()) or "there are none"
        raise TrainingError(
            f"composer.{key} is {weight} and no {kind} can be used ({why})",
            f"at least one {kind} of at most max_length tokens",
            f"raise training.max_length, or set {key} = 0",
        )
    return encoded


def _channels(
    settings: TrainingSettings, composer: ComposerSettings, encoded: Mapping[str, EncodedRows]
) -> dict[str, Any]:
    """Return the arguments of `Channels` but for the reference."""
    return {
        "hints": encoded["sdpo"].examples,
        "pairs": encoded["replay"].examples,
        "alpha_sdpo": composer.alpha_sdpo,
        "beta_replay": composer.beta_replay,
        "batch_size": composer.channel_batch,
        "alpha_warmup_steps": composer.alpha_warmup_steps,
        "taid_start": composer.taid_t,
        "seed": settings.seed,
        "idle_steps": composer.idle_steps,
        "composition": composer.composition,
        "importance": composer.importance,
        "importance_cap": composer.importance_cap,
        "settings": {
            "dpo_variant": composer.dpo_variant,
            "sdpo_wrapper": composer.sdpo_wrapper,
            "jsd_beta": composer.jsd_beta,
            "dpo_beta": settings.beta,
            "simpo_beta": composer.simpo_beta,
            "simpo_gamma": composer.simpo_gamma,
        },
    }


@dataclass(slots=True)
class _LearningModel:
    """The trained model, once the trainer has made it; with its adapters disabled it is the reference."""

    model: Any = None

    def __call__(self, **inputs: Any) -> Any:
        return self.model(**inputs)


def _reference(
    settings: TrainingSettings, arguments: GRPOConfig, tokenizer: Any, learning: _LearningModel
) -> ReferenceLogProbs:
    """Return the log probabilities of pairs by the loaded model, stored beside the checkpoints.

    With adapters the reference is the trained model with them disabled, so that no second model is in
    memory; without adapters it is a copy, which is evaluated at once.
    """

    @contextmanager
    def as_reference() -> Iterator[None]:
        with ExitStack() as stack:
            if settings.lora is not None:
                stack.enter_context(learning.model.disable_adapter())
            if arguments.bf16:
                stack.enter_context(torch.autocast(arguments.device.type, torch.bfloat16))
            yield

    model: Any = learning
    name = settings.model
    if settings.lora is None:
        model = AutoModelForCausalLM.from_pretrained(settings.model, dtype=torch.float32)
        check_vocabulary(tokenizer, model, settings.model)
        model.to(arguments.device).eval()
    else:
        name = f"{name}, {settings.dtype}, {settings.lora.quantize}"
    path = Path(str(arguments.output_dir)).parent / "reference.jsonl" if arguments.world_size == 1 else None
    return ReferenceLogProbs(model, name, tokenizer.pad_token_id, path, as_reference)


def _task_arguments(composer: ComposerSettings) -> dict[str, Any]:
    """Return the trainer's arguments for GRPO: rows, and the environment or the reward function."""
    rewards: list[Any] = [_reward(composer.reward)] if composer.reward is not None else []
    if composer.prm is not None:
        rewards.append(PrmReward(composer.prm))
    if composer.consensus is not None:
        if composer.states is None:
            raise TrainingError(
                f"composer.consensus is {composer.consensus!r} and there are no states",
                "training.composer.states, or sessions in the workspace that teachers were asked about",
            )
        rewards.insert(0, ConsensusReward(composer.consensus, composer.teacher_weights))
        rows = _hinted_prompts(composer, read_state_rows(composer.states, composer.consensus))
        return {"train_dataset": state_dataset(rows), "reward_funcs": rewards}
    if composer.prompts is not None:
        rows = _hinted_prompts(composer, read_prompt_rows(composer.prompts))
        return {"train_dataset": Dataset.from_list(rows), "reward_funcs": rewards}
    try:
        tasks = resolve_name(_READ_TASKS)(composer.tasks)
        environment = partial(
            resolve_name(_ENVIRONMENTS[composer.harness]),
            tasks=composer.tasks,
            sandbox=composer.sandbox,
            level=composer.level,
        )
        environment()  # refuses a sandbox that is not installed
    except TracemillError as error:
        raise TrainingError(str(error)) from error
    for level in (composer.level, composer.hint_level or composer.level):
        if lacking := [task.name for task in tasks if level not in task.texts]:
            levels = ", ".join(sorted(tasks[0].texts))
            raise TrainingError(f"task {lacking[0]} has no text of level {level!r}", f"one of {levels}")
    rows: list[dict[str, Any]] = [
        {"prompt": [{"role": "user", "content": ""}], "task": task.name} for task in tasks
    ]
    if composer.hint_level is not None:
        rows = [{**row, HINT: task.texts[composer.hint_level]} for row, task in zip(rows, tasks, strict=True)]
    return {
        "train_dataset": Dataset.from_list(rows),
        "reward_funcs": rewards or None,
        "environment_factory": environment,
    }


def state_dataset(rows: Sequence[Mapping[str, Any]]) -> Dataset:
    """Return rows of states as a dataset for GRPO; each is JSON, since a table would mix call arguments."""
    played = [{"prompt": [{"role": "user", "content": ""}], STATE: json.dumps(row)} for row in rows]
    hinted = any(HINT in row for row in rows)
    return Dataset.from_list(
        [{**play, HINT: row.get(HINT) or ""} for play, row in zip(played, rows, strict=True)]
        if hinted
        else played
    )


def _add_call_parser(tokenizer: Any, name: str) -> None:
    """Make the tokenizer parse calls in generated text, as TRL does for its own tools."""
    if getattr(tokenizer, "response_template", None) is None:
        try:
            add_response_schema(tokenizer)
        except ValueError as error:
            raise TrainingError(
                f"the calls of {name} cannot be read: TRL does not know its chat template",
                "a model whose chat template it knows, or whose tokenizer has a response_template",
            ) from error


def _hinted_prompts(composer: ComposerSettings, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of prompts; all have the column `hint` if advantages use hints."""
    if composer.composition != "advantage" or not composer.alpha_sdpo:
        return rows
    path = composer.prompts or composer.states
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get(HINT) or "", str):
            raise TrainingError(f"the hint in line {number} of {path} is no text", "a string")
    if not any(row.get(HINT) for row in rows):
        raise TrainingError(
            f'composition = "advantage" and no row of {path} has a hint',
            "a text as the column hint of at least one row",
            "give some, or set alpha_sdpo = 0",
        )
    return [{**row, HINT: row.get(HINT) or ""} for row in rows]


def _reward(name: str) -> Any:
    try:
        function = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise TrainingError(
            f"training.composer.reward = {name!r} cannot be imported ({type(error).__name__})",
            "a function `module:name` of an installed package, or of a folder in PYTHONPATH",
        ) from error
    if not callable(function):
        raise TrainingError(f"training.composer.reward = {name!r} is no function", "a function `module:name`")
    return function


def _counts(
    composer: ComposerSettings, encoded: Mapping[str, EncodedRows], rows: Dataset
) -> dict[str, dict[str, Any]]:
    """Return for each channel its weight, its examples, those left out, and the reason if it is off."""
    off, alpha = composer.channels_off(), composer.alpha_sdpo
    examples = {name: len(each.examples) for name, each in encoded.items()}
    if composer.composition == "advantage" and alpha:
        examples["sdpo"] = sum(map(bool, rows[HINT]))
    weights = {
        "grpo": 1.0 if composer.composition == "additive" else 1 - alpha,
        "sdpo": alpha,
        "replay": composer.beta_replay,
    }
    counts: dict[str, dict[str, Any]] = {}
    for name, weight in weights.items():
        dropped = dict(encoded[name].dropped) if name in encoded else {}
        counts[name] = {
            "weight": weight,
            "examples": examples.get(name, len(rows)),
            "dropped": dropped,
            "off": off.get(name),
        }
    if composer.states is not None:
        counts["grpo"] |= count_simulated_states(map(json.loads, rows[STATE]))
    return counts
