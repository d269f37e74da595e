"""TRL's GRPOTrainer with two more channels: hint distillation and teacher replay."""

# pyright: reportMissingImports=false

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from transformers import TrainerCallback
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.grpo_trainer import GRPOTrainer

from tracemill.records.errors import TrainingError
from tracemill.train.compose import compose_loss
from tracemill.train.composer.encode_rows import HintExample, PairExample, collate_hints, collate_pairs
from tracemill.train.composer.example_stream import ExampleStream
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.composer.sampled_log_probs import SampledLogProbs
from tracemill.train.composer_settings import Composition
from tracemill.train.consensus.consensus_rewards import STATE
from tracemill.train.hints.hint_rows import add_hint
from tracemill.train.losses.policy import ImportanceMode, importance_weights, shape_advantages
from tracemill.train.losses.taid import TAIDScheduler
from tracemill.train.losses.tensor_checks import check_choice

HINT = "hint"
"""Column of the rows that GRPO plays with what the hinted side is told, for `composition="advantage"`."""
STATE_FILE = "composer_state.json"
_CALLS = "tools/call_frequency"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Channels:
    """The channels beside GRPO, and how the losses are composed.

    With a = alpha_sdpo, b = beta_replay:

        composition "additive"   grpo + a sdpo + b replay, as in `compose_loss`
        "mix"                    (1 - a) grpo + a sdpo + b replay; a is TRL's `distillation_weight`
        "advantage"              grpo + b replay, the advantage of a token being `shape_advantages` with
                                 1 - a as GRPO's share; hints are of the rows that GRPO plays, their column
                                 `hint`, and a row without one has 0 in the place of what a hint says

    hints, pairs: examples of the channels; a channel whose weight is 0 draws none. batch_size: examples a
    process draws of each at every micro-step. alpha_warmup_steps: optimizer steps over which alpha_sdpo rises
    linearly from 0. taid_start: with `sdpo_wrapper="taid"`, t of the first step, from which it rises linearly
    to 1; without it `settings` holds `taid_t`. settings: other arguments of `compose_loss`, such as
    `dpo_variant`. reference: log probabilities of the reference policy, which `dpo_variant="dpo"` needs.
    importance: how losses of tokens are corrected for a difference between the model that learns and what
    sampled them, `importance_weights`; importance_cap is its cap.
    """

    hints: Sequence[HintExample] = ()
    pairs: Sequence[PairExample] = ()
    alpha_sdpo: float = 0.0
    beta_replay: float = 0.0
    batch_size: int = 2
    alpha_warmup_steps: int = 0
    taid_start: float | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reference: ReferenceLogProbs | None = None
    idle_steps: int = 20
    """Logged steps without a tool call after which a warning says so."""
    composition: Composition = "additive"
    importance: Literal["off"] | ImportanceMode = "off"
    importance_cap: float = 3.0

    def __post_init__(self) -> None:
        check_choice("composition", self.composition, get_args(Composition))
        check_choice("importance", self.importance, ("off", *get_args(ImportanceMode)))
        if self.composition != "additive" and self.alpha_sdpo > 1:
            raise ValueError(
                f"alpha_sdpo is {self.alpha_sdpo}; composition {self.composition!r} needs a share, 0 to 1."
            )
        for name, weight, examples in (
            ("alpha_sdpo", self.alpha_sdpo, self.hints),
            ("beta_replay", self.beta_replay, self.pairs),
        ):
            if not 0 <= weight < float("inf"):
                raise ValueError(f"{name} is {weight}; it must be 0 or more, and finite.")
            if name == "alpha_sdpo" and self.shapes_advantages:
                continue
            if weight and not examples:
                raise ValueError(f"{name} is {weight} and there are no examples for it; give some, or 0.")
        if self.beta_replay and self.needs_reference and self.reference is None:
            raise ValueError("dpo_variant is 'dpo' and there is no reference; give one, or take 'simpo'.")

    @property
    def shapes_advantages(self) -> bool:
        """Return whether the hint channel is part of the advantages, not a loss."""
        return self.composition == "advantage" and self.alpha_sdpo > 0

    @property
    def needs_reference(self) -> bool:
        """Return whether the loss of pairs compares with a reference policy."""
        return self.settings.get("dpo_variant", "dpo") == "dpo"


class ComposerReplicationTrainer(GRPOTrainer):
    """A GRPOTrainer that composes the losses of `channels` with its own.

    Hints and pairs have streams of their own, since TRL splits and shuffles the content of `inputs`. Their
    losses are divided by the gradient accumulation steps, as TRL does with its own inside `_compute_loss`.
    Positions of the streams are saved with every checkpoint. It logs `loss/grpo`, `loss/sdpo_kl`,
    `loss/trace_replay_dpo`, `loss/total` and `alpha_sdpo`, with shaped advantages `advantage/grpo`,
    `advantage/sdpo` and `advantage/hinted`, with a correction `importance/mean`, `importance/max` and
    `importance/over_cap`; a channel that is off is logged once with the reason. With both weights 0 it is
    TRL's trainer bit by bit. `notes` are lines for the training's results, `channel_counts` counts of its
    examples.
    """

    def __init__(self, *args: Any, channels: Channels, **kwargs: Any) -> None:
        if channels.shapes_advantages and kwargs.get("rollout_func") is not None:
            raise ValueError("composition is 'advantage'; the prompts of a rollout_func cannot be hinted.")
        super().__init__(*args, **kwargs)
        if channels.importance != "off" and self.use_vllm:
            raise ValueError(
                "importance is for samplers that TRL does not correct; "
                "with vLLM set vllm_importance_sampling_mode."
            )
        self.channels = channels
        self._asked: list[Any] = []
        self._played: list[str] = []
        self._tools_of_rows: list[Any] | None = None
        self.notes: list[str] = []
        self.channel_counts: dict[str, dict[str, Any]] = {}
        accelerator = self.accelerator
        stream: Callable[..., ExampleStream] = partial(
            ExampleStream,
            batch_size=channels.batch_size,
            seed=channels.seed,
            process=accelerator.process_index,
            processes=accelerator.num_processes,
        )
        self._streams: dict[str, ExampleStream] = {}
        if channels.alpha_sdpo and not channels.shapes_advantages:
            self._streams["sdpo"] = stream(channels.hints)
        if channels.beta_replay:
            self._streams["replay"] = stream(channels.pairs)
        for name, key in (("sdpo", "alpha_sdpo"), ("replay", "beta_replay")):
            if not getattr(channels, key):
                _log.warning("channel %s is off: %s is 0", name, key)
        self.add_callback(SilentToolsCallback(channels.idle_steps, self.notes))

    @property
    def alpha_sdpo(self) -> float:
        """Return the weight of the hint channel at this optimizer step."""
        warmup = self.channels.alpha_warmup_steps
        rise = min(1.0, (self.state.global_step + 1) / warmup) if warmup else 1.0
        return self.channels.alpha_sdpo * rise

    @property
    def loss_settings(self) -> dict[str, Any]:
        """Return the arguments of `compose_loss` at this optimizer step."""
        channels = self.channels
        if channels.settings.get("sdpo_wrapper") != "taid" or channels.taid_start is None:
            return dict(channels.settings)
        steps = max(1, self.state.max_steps)
        scheduler = TAIDScheduler(steps, t_start=channels.taid_start, disable_adaptive=True)
        return {**channels.settings, "taid_t": scheduler.update_t(0.0, self.state.global_step)}

    def _tokenize_prompts(self, prompts: list[Any]) -> Any:
        """Render states with the tools of their own rows; TRL itself has one list of tools per training."""
        if self._tools_of_rows is None:
            return super()._tokenize_prompts(prompts)
        tokenizer: Any = self.processing_class
        ids = [
            tokenizer.apply_chat_template(
                prompt, tools=tools or None, add_generation_prompt=True, return_dict=True
            )["input_ids"]
            for prompt, tools in zip(prompts, self._tools_of_rows, strict=True)
        ]
        return ids, None, {}

    def _generate(self, prompts: list[Any]) -> Any:
        self._asked = list(prompts)
        return super()._generate(prompts)

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self.channels.importance == "off":
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        model = self.accelerator.unwrap_model(self.model_wrapped)
        with SampledLogProbs(model, self.temperature) as sampled:
            completion_ids, _ = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        return completion_ids, sampled.of(completion_ids)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if STATE in inputs[0]:
            states = [json.loads(row[STATE]) for row in inputs]
            inputs = [{**row, "prompt": state["prompt"]} for row, state in zip(inputs, states, strict=True)]
            self._tools_of_rows = [state["tools"] for state in states]
            self._played = sorted({state["step_id"] for state in states})
        elif "task" in inputs[0]:
            self._played = sorted({str(row["task"]) for row in inputs})
        batch = super()._generate_and_score_completions(inputs)
        model: Any = self.model
        if not model.training:
            return batch
        if self.channels.shapes_advantages or self.channels.importance != "off":
            keep = batch["completion_mask"] * batch.get("tool_mask", 1)
            now = batch.get("old_per_token_logps")
            if now is None:
                now = self._log_probs(batch, batch["prompt_ids"], batch["prompt_mask"])
            if self.channels.shapes_advantages:
                batch["advantages"] = self._shaped(batch, inputs, now, keep)
            if self.channels.importance != "off":
                batch["advantages"] = self._corrected(batch, now, keep)
        return batch

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the rewards; an infinite one would make the advantages of its group NaN, or 0."""
        rewards: Tensor = super()._calculate_rewards(*args, **kwargs)
        if rewards.isinf().any():
            name = self.reward_func_names[int(rewards.isinf().any(0).nonzero()[0])]
            raise TrainingError(
                f"a reward of {name} is infinite {self._where()}",
                "finite rewards, or None where a function has none",
            )
        return rewards

    def _where(self) -> str:
        played = f" in which {', '.join(self._played)} were played" if self._played else ""
        return f"at step {self.state.global_step}{played}"

    def _shaped(
        self, batch: Mapping[str, Tensor], rows: Sequence[Mapping[str, Any]], now: Tensor, keep: Tensor
    ) -> Tensor:
        """Return the advantages with the part from hints added, `[B, T]`."""
        hints = [row.get(HINT) or "" for row in rows]
        told = [
            add_hint(prompt, hint) if hint else prompt
            for prompt, hint in zip(self._asked, hints, strict=True)
        ]
        prompt_ids, _, _ = self._tokenize_prompts(told)
        padding: Any = self._tokenizer.pad_token_id
        ids, seen = _pad_left(prompt_ids, padding, now.device)
        is_hinted = torch.tensor([bool(hint) for hint in hints], device=now.device)[:, None]
        hinted = self._log_probs(batch, ids, seen).where(is_hinted, now)
        shaped = shape_advantages(batch["advantages"], hinted, now, keep, grpo_share=1 - self.alpha_sdpo)
        counted = keep.bool()
        self._note("advantage/grpo", batch["advantages"].abs())
        self._note("advantage/sdpo", (hinted - now)[counted & is_hinted].abs())
        self._note("advantage/hinted", is_hinted.to(now.dtype))
        self._metrics["train"]["alpha_sdpo"].append(self.alpha_sdpo)
        return shaped

    def _corrected(self, batch: Mapping[str, Tensor], now: Tensor, keep: Tensor) -> Tensor:
        """Return the advantages times the importance weights of the sampler, `[B, T]`.

        No weight is below 0, so that the clipped loss of a token is multiplied by its weight.
        """
        sampling = batch.get("sampling_per_token_logps")
        if sampling is None:
            raise ValueError("importance is on and the rollouts have no logprobs; give them, or take 'off'.")
        channels, counted = self.channels, keep.bool()
        mode: Any = channels.importance
        exact = importance_weights(now, sampling, keep, mode=mode, cap=float("inf"))
        weights = importance_weights(now, sampling, keep, mode=mode, cap=channels.importance_cap)
        for name, value in (
            ("importance/mean", exact[counted]),
            ("importance/over_cap", (exact > channels.importance_cap)[counted].to(now.dtype)),
        ):
            self._note(name, value)
        most: Any = self.accelerator.gather(exact.where(counted, 0).max())
        self._metrics["train"]["importance/max"].append(most.max().item())
        advantages = batch["advantages"]
        return weights * (advantages[:, None] if advantages.ndim == 1 else advantages)

    def _log_probs(self, batch: Mapping[str, Tensor], prompt_ids: Tensor, prompt_mask: Tensor) -> Tensor:
        """Return the log probability of each sampled token after these prompts, `[B, T]`, a constant."""
        model: Any = self.model
        checkpointing: Any = self.args.gradient_checkpointing_kwargs
        with torch.no_grad(), disable_gradient_checkpointing(model, checkpointing):
            log_probs, _, _ = self._get_per_token_logps_and_entropies(
                model,
                torch.cat([prompt_ids, batch["completion_ids"]], dim=1),
                torch.cat([prompt_mask, batch["completion_mask"]], dim=1),
                batch["completion_ids"].shape[1],
                batch_size=self.args.per_device_train_batch_size,
            )
        return log_probs

    def _note(self, name: str, values: Tensor) -> None:
        """Log the mean of these values over all processes; nothing if there are none."""
        found: Any = self.accelerator.reduce(
            torch.stack([values.sum(), torch.tensor(float(values.numel()), device=values.device)])
        )
        if found[1] > 0:
            self._metrics["train"][name].append((found[0] / found[1]).item())

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        grpo = super()._compute_loss(model, inputs)
        if not model.training:
            return grpo
        if not grpo.isfinite():
            raise _not_finite("the loss of channel grpo", grpo, self._where())
        return self._add_channels(grpo, model)

    def _add_channels(self, grpo: Tensor, model: Any) -> Tensor:
        """Return GRPO's loss composed with those of the channels, all divided by the accumulation steps."""
        steps = self.current_gradient_accumulation_steps
        share = 1 - self.alpha_sdpo if self.channels.composition == "mix" else 1.0
        parts, total = {"grpo": grpo * steps}, share * grpo
        for name, stream in self._streams.items():
            examples = stream.draw()
            weight, loss = self._channel(name, examples, model)
            if not loss.isfinite():
                names = ", ".join(each.name for each in examples)
                raise _not_finite(f"the loss of channel {name}", loss, f"on the batch {names}")
            total = total + weight * loss / steps
            parts[name] = loss
        self._record({**parts, "total": total * steps})
        return total

    def _channel(self, name: str, examples: Sequence[Any], model: Any) -> tuple[float, Tensor]:
        """Return the weight and the loss of one channel on a batch of this process."""
        tokenizer: Any = self.processing_class
        pad_id: int = tokenizer.pad_token_id
        if name == "sdpo":
            batch = self._on_device(collate_hints(examples, pad_id))
            loss, _ = compose_loss(model, batch, 1.0, 0.0, **self.loss_settings)
            return self.alpha_sdpo, loss * self._share_of_tokens(batch["student_response_mask"])
        batch = self._on_device(collate_pairs(examples, pad_id))
        if self.channels.needs_reference and self.channels.reference is not None:
            batch |= self.channels.reference.of(examples, self.accelerator.device)
        loss, _ = compose_loss(model, batch, 0.0, 1.0, **self.loss_settings)
        return self.channels.beta_replay, loss

    def _share_of_tokens(self, mask: Tensor) -> float:
        """Return the tokens of this process over the mean of all: processes average their losses."""
        count = mask.sum().to(torch.float64)
        total: Any = self.accelerator.reduce(count, reduction="sum")
        return (count * self.accelerator.num_processes / total).item()

    def _on_device(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: each.to(self.accelerator.device) for name, each in batch.items()}

    def _record(self, parts: Mapping[str, Tensor]) -> None:
        named = {"grpo": "loss/grpo", "sdpo": "loss/sdpo_kl", "replay": "loss/trace_replay_dpo"}
        for name, loss in parts.items():
            gathered: Any = self.accelerator.gather(loss.detach())
            self._metrics["train"][named.get(name, "loss/total")].append(gathered.mean().item())
        if "sdpo" in parts:
            self._metrics["train"]["alpha_sdpo"].append(self.alpha_sdpo)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
        if self.args.should_save:
            positions = {name: stream.position for name, stream in self._streams.items()}
            (folder / STATE_FILE).write_text(json.dumps(positions), encoding="utf-8")

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        path = Path(resume_from_checkpoint) / STATE_FILE
        if self._streams and not path.exists():
            raise ValueError(
                f"{resume_from_checkpoint} has no {STATE_FILE}; it was written by another trainer."
            )
        positions = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for name, stream in self._streams.items():
            stream.position = positions.get(name, 0)


def _pad_left(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return token ids as `[B, L]`, padded on the left, and 1 if they are no padding."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), pad_id)
    seen = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, longest - len(row) :] = torch.tensor(row)
        seen[place, longest - len(row) :] = 1
    return ids.to(device), seen.to(device)


def _not_finite(what: str, loss: Tensor, where: str) -> TrainingError:
    return TrainingError(
        f"{what} is {loss.item()} {where}",
        "finite numbers",
        "lower training.learning_rate, or take these rows out",
    )


class SilentToolsCallback(TrainerCallback):
    """Say once if the model called no tool in the first steps that were logged."""

    def __init__(self, steps: int, notes: list[str]) -> None:
        self._left, self._notes = steps, notes

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self._left <= 0 or _CALLS not in (logs or {}):
            return
        self._left = self._left - 1 if logs[_CALLS] == 0 else 0
        if self._left == 0 and logs[_CALLS] == 0:
            note = (
                f"the model called no tool in {state.global_step} steps, so it learns nothing from rewards "
                "of tools: teach it calls first (method sft, on sessions with tools)"
            )
            self._notes.append(note)
            _log.warning(note)
