"""The `[training.composer]` table: what GRPO is rewarded for, and the two channels beside it."""

from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

HINT_COLUMNS = ("step_id", "prompt", "hinted_prompt", "completion", "tools")


def _digest(place: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(each for each in (place, *place.rglob("*")) if each.is_file()):
        digest.update(path.relative_to(place).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()


class ComposerSettings(BaseModel):
    """GRPO on tasks or prompts, plus hint distillation and preference pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tasks: Path | None = None
    """Folder of tasks that `tracemill env make` wrote: the model acts in them, and their tests reward it."""
    harness: Literal["claude_code", "openhands"] = "claude_code"
    """Whose tools the model has in a task."""
    level: str = "detailed"
    """Which text of a task the model is given: `detailed`, `terse` or another one that its tasks have."""
    sandbox: Literal["auto", "bubblewrap", "docker", "podman", "unsafe-process"] = "auto"
    """Where calls in a task run."""
    prompts: Path | None = None
    """JSON Lines file with a conversation in the column `prompt`; the reward gets its other columns."""
    reward: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """Function `module:name` that rewards completions, as TRL's `reward_funcs` takes it; beside the tests of
    `tasks`, or for `prompts`."""
    prm: Path | None = None
    """Checkpoint of a training with `method = "prm"`; the mean probability of an episode's actions is one
    more reward."""
    alpha_sdpo: float = Field(0.1, ge=0)
    """Weight of the hint channel; 0 is off."""
    alpha_warmup_steps: int = Field(0, ge=0)
    """Steps of the optimiser over which `alpha_sdpo` rises from 0."""
    sdpo_wrapper: Literal["none", "taid", "entropy_opd"] = "none"
    """Divergence of the hint channel: generalised Jensen-Shannon, TAID's or the mix by entropy."""
    jsd_beta: float = Field(0.5, ge=0, le=1)
    """With `sdpo_wrapper = "none"`: 0 is forward KL, 1 reverse KL."""
    taid_t: float = Field(0.4, ge=0, le=1)
    """With `sdpo_wrapper = "taid"`: the share of the hinted side at the first step; it rises to 1."""
    hints: Path | None = None
    """JSON Lines file of hint rows; by default they are made of the failed actions of the workspace."""
    hint_writer: str | None = Field(None, min_length=1)
    """Name of the teacher that writes the hints of the workspace; by default templates do."""
    hint_max_usd: Decimal | None = Field(None, ge=0, le=1_000_000)
    """Hard cap in USD on what the hints of one training may cost; wanted with `hint_writer`."""
    beta_replay: float = Field(0.05, ge=0)
    """Weight of the channel of preference pairs, those of the release; 0 is off."""
    dpo_variant: Literal["dpo", "simpo"] = "dpo"
    """Loss of pairs: `dpo`, whose scale is `training.beta`, or `simpo`."""
    simpo_beta: float = Field(2.0, gt=0)
    simpo_gamma: float = Field(1.0, ge=0)
    channel_batch: int = Field(2, ge=1)
    """Hint rows, and pairs, that a process takes at every batch."""
    generations: int = Field(4, ge=2)
    """Completions of one prompt, which are compared with each other."""
    max_completion_length: int = Field(512, ge=1)
    """Tokens that the model may write in an episode, results of its calls included."""
    max_tool_rounds: int = Field(8, ge=1)
    """Rounds of calls in an episode."""
    temperature: float = Field(1.0, gt=0)
    idle_steps: int = Field(20, ge=1)
    """Steps without any call of a tool after which a warning says so."""

    @model_validator(mode="after")
    def _check_rewards(self) -> Self:
        if (self.tasks is None) == (self.prompts is None):
            given = "neither" if self.tasks is None else "both"
            raise ValueError(f"{given} of tasks and prompts given; expected one of them")
        if self.prompts is not None and self.reward is None and self.prm is None:
            raise ValueError("prompts without reward; expected a function as `module:name`, or prm")
        if self.hints is not None and not self.alpha_sdpo:
            raise ValueError(
                "hints are given and alpha_sdpo is 0; set alpha_sdpo above 0, or leave hints out"
            )
        return self

    @model_validator(mode="after")
    def _check_hint_writer(self) -> Self:
        if (self.hint_writer is None) != (self.hint_max_usd is None):
            given, missing = (
                ("hint_writer", "hint_max_usd") if self.hint_writer else ("hint_max_usd", "hint_writer")
            )
            raise ValueError(f"{given} without {missing}; expected both")
        if self.hint_writer is not None and self.hints is not None:
            raise ValueError("hints and hint_writer are both given; expected one of them")
        if self.hint_writer is not None and not self.alpha_sdpo:
            raise ValueError(
                "hint_writer is given and alpha_sdpo is 0; set alpha_sdpo above 0, or leave hint_writer out"
            )
        return self

    def file_digests(self) -> dict[str, str]:
        """Return a digest of what each file or folder holds now; none of one that is not there."""
        places = {"tasks": self.tasks, "prompts": self.prompts, "hints": self.hints, "prm": self.prm}
        return {name: _digest(place) for name, place in places.items() if place and place.exists()}

    def channels_off(self) -> dict[str, str]:
        """Return the channels that are off, with the reason."""
        weights = {"sdpo": ("alpha_sdpo", self.alpha_sdpo), "replay": ("beta_replay", self.beta_replay)}
        return {name: f"{key} is 0" for name, (key, weight) in weights.items() if not weight}
