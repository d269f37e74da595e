"""The `[training]` table of a run configuration."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tracemill.records.errors import ConfigError
from tracemill.records.identity import canonical_json, digest
from tracemill.train.composer_settings import ComposerSettings
from tracemill.train.registry import TRAINING_METHODS

_METHOD = "sft"
_METHOD_OF_KEY = {"gamma": "simpo", "nll_weight": "dpo"}
_OUTSIDE_FINGERPRINT_BY_DEFAULT = (
    "scheduler",
    "warmup",
    "weight_decay",
    "max_grad_norm",
    "dtype",
    "reference",
    "accelerate",
)
"""Settings that are no part of a fingerprint at their default values."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LoraSettings(_Model):
    """Low-rank adapters in place of all weights (https://arxiv.org/abs/2106.09685), through peft."""

    r: int = Field(16, ge=1)
    """Rank."""
    alpha: float = Field(32.0, gt=0)
    """Scale of an adapter: its output is multiplied by alpha / r."""
    dropout: float = Field(0.0, ge=0, lt=1)
    target_modules: str | tuple[str, ...] = "all-linear"
    """Names of the layers that get an adapter, or `all-linear`."""
    quantize: Literal["none", "4bit"] = "none"
    """`4bit`: the other weights are loaded as 4-bit NormalFloat through bitsandbytes (QLoRA,
    https://arxiv.org/abs/2305.14314)."""


class TrainingSettings(_Model):
    """The settings of a training."""

    model: str
    """Id of a model at the Hub, or its folder."""
    output: Path | None = None
    """Folder of checkpoints, each in `<release>/<version>`; by default `checkpoints` in the workspace."""
    method: str = _METHOD
    """`sft`: negative log-likelihood of the completions. `dpo`: direct preference optimisation
    (https://arxiv.org/abs/2305.18290) plus that likelihood of the chosen sides. `simpo`
    (https://arxiv.org/abs/2405.14734): no reference model. `kto` (https://arxiv.org/abs/2402.01306): sides
    labelled good or bad. `prm`: a step scorer. `composer`: GRPO with hints and pairs. Packages add others."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Settings that only this method has; the methods above have none."""
    composer: ComposerSettings | None = None
    """Of `composer` alone: tasks or prompts, reward and channels."""
    use_weights: bool = True
    """Weight rows by their column `weight`, if the method does and its rows have it."""
    learning_rate: float = Field(1e-6, gt=0)
    scheduler: Literal["linear", "cosine", "polynomial", "inverse_sqrt", "constant"] = "linear"
    """How the learning rate goes on after its warm-up."""
    warmup: float = Field(0.0, ge=0)
    """Steps over which the learning rate rises from 0; below 1 the share of all steps."""
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    """Longer gradients are scaled down to this norm."""
    beta: float = Field(0.1, gt=0)
    """DPO and KTO: strength of the constraint to the reference model. SimPO: scale of mean log probabilities,
    by default 2.0."""
    nll_weight: float | None = Field(None, ge=0)
    """DPO alone: weight of the mean negative log-likelihood per token of the chosen sides, by default 1.0; 0
    is plain DPO."""
    gamma: float | None = Field(None, ge=0)
    """SimPO alone: target reward margin (equation 6), by default 1.0."""
    max_length: int = Field(4096, ge=1)
    """Tokens of a prompt and one side together."""
    context: Literal["cut", "drop"] = "cut"
    """Longer rows: `cut` leaves out their oldest turns, `drop` the whole row."""
    packing: Literal["off", "prefix"] = "off"
    """`prefix`: tokens that rows of a batch begin with alike are computed once, and a batch has rows that
    begin alike; with `sft`, `dpo` and `simpo`."""
    packing_tokens: int = Field(16384, ge=1)
    """Tokens that are computed at a time, with `packing = "prefix"`; a single row may have more."""
    epochs: float = Field(1.0, gt=0)
    max_steps: int | None = Field(None, ge=1)
    """Steps of the optimiser, instead of `epochs`."""
    batch: int = Field(1, ge=1)
    """Rows per device and forward pass."""
    accumulate: int = Field(8, ge=1)
    """Batches per step of the optimiser."""
    seed: int = Field(0, ge=0, lt=2**32)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the weights. In `bfloat16` small steps of full training are rounded away."""
    bf16: bool | None = None
    """Mixed precision in bfloat16; by default if the device supports it."""
    gradient_checkpointing: bool = True
    """Less memory for about a third more time."""
    eval_steps: int = Field(50, ge=1)
    """Steps between two evaluations on the release's split `validation`."""
    tensorboard: bool = False
    """Write the metrics of each step for TensorBoard, in `tensorboard` of the checkpoint."""
    save_steps: int = Field(50, ge=1)
    """Steps between two checkpoints, from which an interrupted training resumes."""
    chat_template: Path | None = None
    """Jinja file, for a tokenizer without a chat template."""
    lora: LoraSettings | None = None
    reference: Literal["model", "cached"] = "model"
    """`dpo` alone. `cached`: the reference's log probabilities are computed once, before the first step, and
    kept beside the checkpoints for later trainings on the same rows; no reference model stays in memory."""
    processes: int = Field(1, ge=1)
    """Processes on one machine, one per GPU, started by accelerate; each takes `batch` rows."""
    accelerate: Path | None = None
    """Configuration of accelerate for several processes, such as `configs/train/fsdp2.yaml`; by default each
    process holds the whole model."""
    launcher: str = "local"
    """What runs the training: `local`, `command`, `prefect`, `slurm`, `hf-jobs` or `modal`. Packages add
    others."""
    launch: dict[str, Any] = Field(default_factory=dict)
    """Options of the launcher."""
    hub: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")
    """Model repository on the Hub, `OWNER/NAME`, that checkpoints go to."""
    compare: bool = True
    """Compare a new checkpoint with the last promoted one, on the pairs that the release holds out."""
    environment: tuple[str, ...] = ()
    """Environment variables that the training gets in addition to those it needs, such as `HF_TOKEN`."""
    after_release: bool = False
    """Train after every run that wrote a new version of its release."""
    simulated: bool = False
    """Train even if rows are simulated."""

    @model_validator(mode="before")
    @classmethod
    def _add_defaults_of_method(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(name := given.get("method", _METHOD), str):
            return given
        try:
            method = TRAINING_METHODS.get(name)
        except ConfigError:  # raised by `_check_method`
            return given
        if method.defaults:
            given = {key: value for key, value in given.items() if value is not None}
        options = given.get("options", {})
        if method.options and isinstance(options, dict):
            given = {**given, "options": {**method.options, **options}}
        return {**method.defaults, **given}

    @field_validator("method")
    @classmethod
    def _check_method(cls, name: str) -> str:
        try:
            return TRAINING_METHODS.get(name).name
        except ConfigError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _check_keys_of_method(self) -> Self:
        method = TRAINING_METHODS.get(self.method)
        if unknown := sorted(set(self.options) - set(method.options)):
            options = ", ".join(method.options) or "none"
            raise ValueError(f"options.{unknown[0]} is no option of {self.method!r}; it has {options}")
        for key, owner in _METHOD_OF_KEY.items():
            if getattr(self, key) is not None and key not in method.defaults:
                raise ValueError(f'{key} is a setting of method = "{owner}" alone')
        if self.composer is not None and self.method != "composer":
            raise ValueError('composer is a table of method = "composer" alone')
        if self.reference != "model" and self.method != "dpo":
            raise ValueError('reference is a setting of method = "dpo" alone')
        if self.accelerate is not None and self.processes == 1:
            raise ValueError("accelerate is a file for several processes, and processes is 1")
        if self.packing != "off" and not method.packed:
            raise ValueError(f'packing = "{self.packing}" is not for method = "{self.method}"')
        method.check(dict(self))
        return self

    def fingerprint(self) -> str:
        """Return a digest, 8 hex digits, of the settings and files that change the checkpoint."""
        excluded = {"output", "launcher", "environment", "after_release", "simulated", "save_steps"}
        excluded |= {"hub", "compare", "tensorboard"}
        if self.launcher != "command":  # whose options name another trainer
            excluded.add("launch")
        if self.processes == 1:
            excluded.add("processes")
        excluded |= {key for key in ("options", "nll_weight", "composer") if not getattr(self, key)}
        if self.use_weights:
            excluded.add("use_weights")
        if self.packing == "off":
            excluded |= {"packing", "packing_tokens"}
        fields = type(self).model_fields
        excluded |= {
            key for key in _OUTSIDE_FINGERPRINT_BY_DEFAULT if getattr(self, key) == fields[key].default
        }
        settings = self.model_dump(mode="json", exclude=excluded)
        if self.composer is not None:
            settings["composer"]["files"] = self.composer.file_digests()
            for key in self.composer.outside_fingerprint():
                del settings["composer"][key]
        if self.lora is not None and self.lora.quantize == "none":
            del settings["lora"]["quantize"]
        return digest("training", canonical_json(settings), size=4)
