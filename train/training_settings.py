"""The `[training]` table of a run configuration: which model, how, and where the checkpoint goes."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tracemill.records.errors import ConfigError
from tracemill.records.identity import canonical_json, digest
from tracemill.train.registry import TRAINING_METHODS

_METHOD = "sft"
_OF_ONE_METHOD = {"gamma": "simpo", "nll_weight": "dpo"}


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
    """Layers that get one: names, or `all-linear`."""


class TrainingSettings(_Model):
    """How a release is trained on."""

    model: str
    """Id of a model at the Hub, or its folder."""
    output: Path | None = None
    """Folder of checkpoints, each in `<release>/<version>`; else `checkpoints` in the workspace."""
    method: str = _METHOD
    """`sft`: likelihood of the completions; `dpo`: direct preference optimisation
    (https://arxiv.org/abs/2305.18290) with that likelihood of the chosen sides beside it; `simpo`
    (https://arxiv.org/abs/2405.14734), without a reference model; `kto` (https://arxiv.org/abs/2402.01306),
    of sides that are good or bad; or what a package adds."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Settings that only this method has; those of ours have none."""
    use_weights: bool = True
    """Rows count as much as their column `weight` says, where the method's rows have it; else all alike."""
    learning_rate: float = Field(1e-6, gt=0)
    beta: float = Field(0.1, gt=0)
    """How closely DPO and KTO hold the model to the one it began as; SimPO's scale of mean log probabilities
    (2.0 where it is not given)."""
    nll_weight: float | None = Field(None, ge=0)
    """DPO alone: how much the mean negative log-likelihood of a token of the chosen sides counts beside
    DPO's own loss, 1.0 where not given; with 0 it is plain DPO."""
    gamma: float | None = Field(None, ge=0)
    """SimPO alone: the margin that the chosen side's reward is to have (equation 6), 1.0 where not given."""
    max_length: int = Field(4096, ge=1)
    """Tokens of a prompt and one side together."""
    context: Literal["cut", "drop"] = "cut"
    """What becomes of a row that is longer: its oldest turns are left out, or all of it."""
    epochs: float = Field(1.0, gt=0)
    max_steps: int | None = Field(None, ge=1)
    """Steps of the optimiser, instead of `epochs`."""
    batch: int = Field(1, ge=1)
    """Rows at a time."""
    accumulate: int = Field(8, ge=1)
    """Batches to a step of the optimiser."""
    seed: int = Field(0, ge=0, lt=2**32)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    bf16: bool | None = None
    """Mixed precision in bfloat16; not given, where the device has it."""
    gradient_checkpointing: bool = True
    """Less memory for about a third more time."""
    eval_steps: int = Field(50, ge=1)
    """Steps between two measurements on the release's split `validation`."""
    save_steps: int = Field(50, ge=1)
    """Steps between the checkpoints that a training which was cut off goes on from."""
    chat_template: Path | None = None
    """Jinja file, for a tokenizer without a chat template of its own."""
    lora: LoraSettings | None = None
    launcher: str = "local"
    """What runs it: `local` is a process on this machine; or what a package adds."""
    environment: tuple[str, ...] = ()
    """Environment variables that the training is given beside those it needs, such as `HF_TOKEN`."""
    after_release: bool = False
    """A run that wrote a new version of its release trains on it."""
    simulated: bool = False
    """Also where rows of it are simulated."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_method(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(name := given.get("method", _METHOD), str):
            return given
        try:
            method = TRAINING_METHODS.get(name)
        except ConfigError:  # told by the key itself
            return given
        told = {key: value for key, value in given.items() if value is not None} if method.defaults else given
        options = told.get("options", {})
        if method.options and isinstance(options, dict):
            told = {**told, "options": {**method.options, **options}}
        return {**method.defaults, **told}

    @field_validator("method")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            return TRAINING_METHODS.get(name).name
        except ConfigError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _fits_the_method(self) -> Self:
        method = TRAINING_METHODS.get(self.method)
        if unknown := sorted(set(self.options) - set(method.options)):
            known = ", ".join(method.options) or "none"
            raise ValueError(f"options.{unknown[0]} is no option of {self.method!r}; it has {known}")
        for key, owner in _OF_ONE_METHOD.items():
            if getattr(self, key) is not None and key not in method.defaults:
                raise ValueError(f'{key} is a setting of method = "{owner}" alone')
        method.check(dict(self))
        return self

    def fingerprint(self) -> str:
        """What decides the checkpoint, in 8 hex digits; where it is put, what runs it and when it is started
        is left out, and so is how often it is saved on the way."""
        aside = {"output", "launcher", "environment", "after_release", "simulated", "save_steps"}
        aside |= {key for key in ("options", "nll_weight") if not getattr(self, key)}
        if self.use_weights:
            aside.add("use_weights")
        return digest("training", canonical_json(self.model_dump(mode="json", exclude=aside)), size=4)
