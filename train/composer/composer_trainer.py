"""TRL's GRPOTrainer with two more channels: hint distillation and teacher replay."""

# pyright: reportMissingImports=false

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback
from trl.trainer.grpo_trainer import GRPOTrainer

from tracemill.records.errors import TrainingError
from tracemill.train.compose import compose_loss
from tracemill.train.composer.encode_rows import HintExample, PairExample, collate_hints, collate_pairs
from tracemill.train.composer.example_stream import ExampleStream
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.losses.taid import TAIDScheduler

STATE_FILE = "composer_state.json"
_CALLS = "tools/call_frequency"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Channels:
    """The losses added to GRPO: total = grpo + alpha_sdpo sdpo + beta_replay replay, as in `compose_loss`.

    hints, pairs: examples of the channels; a channel whose weight is 0 draws none. batch_size: examples a
    process draws of each at every micro-step. alpha_warmup_steps: optimizer steps over which alpha_sdpo rises
    linearly from 0. taid_start: with `sdpo_wrapper="taid"`, t of the first step, from which it rises linearly
    to 1; without it `settings` holds `taid_t`. settings: other arguments of `compose_loss`, such as
    `dpo_variant`. reference: log probabilities of the reference policy, which `dpo_variant="dpo"` needs.
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

    def __post_init__(self) -> None:
        for name, weight, examples in (
            ("alpha_sdpo", self.alpha_sdpo, self.hints),
            ("beta_replay", self.beta_replay, self.pairs),
        ):
            if not 0 <= weight < float("inf"):
                raise ValueError(f"{name} is {weight}; it must be 0 or more, and finite.")
            if weight and not examples:
                raise ValueError(f"{name} is {weight} and there are no examples for it; give some, or 0.")
        if self.beta_replay and self.needs_reference and self.reference is None:
            raise ValueError("dpo_variant is 'dpo' and there is no reference; give one, or take 'simpo'.")

    @property
    def needs_reference(self) -> bool:
        """Return whether the loss of pairs compares with a reference policy."""
        return self.settings.get("dpo_variant", "dpo") == "dpo"


class ComposerReplicationTrainer(GRPOTrainer):
    """A GRPOTrainer that adds the losses of `channels` to its own.

    Hints and pairs have streams of their own, since TRL splits and shuffles what lies in `inputs`. Their
    losses are divided by the gradient accumulation steps, as TRL does with its own inside `_compute_loss`.
    Positions of the streams are saved with every checkpoint. It logs `loss/grpo`, `loss/sdpo_kl`,
    `loss/trace_replay_dpo`, `loss/total` and `alpha_sdpo`; a channel that is off says so once in the log.
    With both weights 0 it is TRL's trainer bit by bit. `notes` are lines that the results of the training
    hold, `channel_counts` counts of its examples.
    """

    def __init__(self, *args: Any, channels: Channels, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.channels = channels
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
        if channels.alpha_sdpo:
            self._streams["sdpo"] = stream(channels.hints)
        if channels.beta_replay:
            self._streams["replay"] = stream(channels.pairs)
        for name, key in (("sdpo", "alpha_sdpo"), ("replay", "beta_replay")):
            if name not in self._streams:
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

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        grpo = super()._compute_loss(model, inputs)
        if not model.training:
            return grpo
        if not grpo.isfinite():
            raise _not_finite("the loss of channel grpo", grpo, f"at step {self.state.global_step}")
        return self._add_channels(grpo, model)

    def _add_channels(self, grpo: Tensor, model: Any) -> Tensor:
        """Return GRPO's loss with those of the channels, all divided by the accumulation steps."""
        steps = self.current_gradient_accumulation_steps
        parts, total = {"grpo": grpo * steps}, grpo
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
            raise ValueError(f"{resume_from_checkpoint} has no {STATE_FILE}; it is of another trainer.")
        positions = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for name, stream in self._streams.items():
            stream.position = positions.get(name, 0)


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
