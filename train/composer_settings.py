"""The `[training.composer]` table: what GRPO is rewarded for, and the two channels beside it."""

from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tracemill.agreement.voting.consensus_reward import ConsensusShape

Composition = Literal["additive", "mix", "advantage"]
FILES = ("tasks", "prompts", "states", "hints", "prm")
"""Settings that are paths."""
OUTSIDE_FINGERPRINT_BY_DEFAULT = (
    "composition",
    "hint_level",
    "importance",
    "importance_cap",
    "states",
    "consensus",
    "teacher_weights",
)
"""Settings that are no part of a fingerprint at their default values."""
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
    states: Path | None = None
    """JSON Lines file of states that teachers answered in, as `build_consensus_rows` makes them: the model
    acts once in each, and `consensus` of the answers rewards what it does. By default they are those of the
    workspace, where `consensus` is given."""
    consensus: ConsensusShape | None = None
    """Reward of an action in `states`: `plurality`, `weighted`, `variance_weighted` or `score_regression`."""
    teacher_weights: dict[str, float] = Field(default_factory=dict)
    """Weights of teachers in `consensus`, 1 for those that are not named."""
    reward: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """Function `module:name` that rewards completions, as TRL's `reward_funcs` takes it; beside the tests of
    `tasks` or `consensus`, or for `prompts`."""
    prm: Path | None = None
    """Checkpoint of a training with `method = "prm"`; the mean probability of an episode's actions is one
    more reward."""
    composition: Composition = "additive"
    """How hints are composed with GRPO. `additive`: their loss is added, times `alpha_sdpo`. `mix`:
    (1 - alpha_sdpo) times GRPO's loss, alpha_sdpo times theirs. `advantage`: these shares of advantages."""
    alpha_sdpo: float = Field(0.1, ge=0)
    """Weight of the hint channel; 0 is off. 0 to 1 with `mix` and `advantage`."""
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
    hint_level: str | None = Field(None, min_length=1)
    """With `composition = "advantage"` and `tasks`: which text of a task the hinted side is told besides."""
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
    importance: Literal["off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = "off"
    """How a token's loss is corrected by the ratio of its probability now to that when it was sampled; of
    tokens or whole completions, ratios above `importance_cap` cut to it or left out."""
    importance_cap: float = Field(3.0, gt=0)
    idle_steps: int = Field(20, ge=1)
    """Steps without any call of a tool after which a warning says so."""

    @model_validator(mode="after")
    def _check_rewards(self) -> Self:
        given = [key for key in ("tasks", "prompts", "states") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} of tasks, prompts and states given; expected one of them"
            )
        if not given and self.consensus is None:
            raise ValueError(
                "none of tasks, prompts and states given; expected one of them, or consensus for the states "
                "of the workspace"
            )
        if self.states is not None and self.consensus is None:
            raise ValueError("states without consensus; expected both")
        if self.consensus is not None and given not in ([], ["states"]):
            raise ValueError(f"consensus with {given[0]}; it rewards actions in states: expected states")
        if self.consensus == "score_regression" and self.states is None:
            raise ValueError(
                'consensus = "score_regression" without states; expected a file, as a workspace has no scores'
            )
        if self.teacher_weights and self.consensus is None:
            raise ValueError("teacher_weights without consensus; expected both")
        if bad := [name for name, weight in self.teacher_weights.items() if weight < 0]:
            raise ValueError(f"the weight of {bad[0]} is {self.teacher_weights[bad[0]]}; expected 0 or more")
        if self.prompts is not None and self.reward is None and self.prm is None:
            raise ValueError("prompts without reward; expected a function as `module:name`, or prm")
        if self.hints is not None and not self.alpha_sdpo:
            raise ValueError(
                "hints are given and alpha_sdpo is 0; set alpha_sdpo above 0, or leave hints out"
            )
        return self

    @model_validator(mode="after")
    def _check_composition(self) -> Self:
        if self.composition != "additive" and self.alpha_sdpo > 1:
            raise ValueError(
                f'alpha_sdpo is {self.alpha_sdpo} with composition = "{self.composition}"; expected 0 to 1'
            )
        shaped = self.composition == "advantage"
        if self.hint_level is not None and not (shaped and self.tasks is not None):
            raise ValueError('hint_level is only for composition = "advantage" with tasks')
        if not shaped:
            return self
        for key in ("hints", "hint_writer"):
            if getattr(self, key) is not None:
                raise ValueError(
                    f'{key} is given and composition = "advantage" uses hints on generated actions; expected '
                    "a column hint in prompts, or hint_level with tasks"
                )
        if self.sdpo_wrapper != "none":
            raise ValueError(
                'sdpo_wrapper selects a loss, and composition = "advantage" uses none; expected "none"'
            )
        if self.tasks is not None and self.alpha_sdpo and self.hint_level in (None, self.level):
            raise ValueError(
                'composition = "advantage" with tasks needs hint_level: a text of the tasks other than '
                f'level = "{self.level}"'
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

    def outside_fingerprint(self) -> set[str]:
        """Return the settings that a fingerprint leaves out.

        The file of hint rows, whose content changes with their writer, is among them.
        """
        default = type(self).model_construct()
        unset = {key for key in OUTSIDE_FINGERPRINT_BY_DEFAULT if getattr(self, key) == getattr(default, key)}
        return {"hint_writer", "hint_max_usd"} | unset

    def file_digests(self) -> dict[str, str]:
        """Return a digest of the current content of each file or folder; missing ones are left out."""
        places = {name: getattr(self, name) for name in FILES}
        return {name: _digest(place) for name, place in places.items() if place and place.exists()}

    @property
    def needs_hint_rows(self) -> bool:
        """Return whether the hint channel learns from rows of failed actions."""
        return bool(self.alpha_sdpo) and self.composition != "advantage"

    @property
    def needs_state_rows(self) -> bool:
        """Return whether GRPO uses the workspace's states with teachers' answers."""
        return self.consensus is not None and self.states is None

    def channels_off(self) -> dict[str, str]:
        """Return the channels that are off, with the reason."""
        weights = {"sdpo": ("alpha_sdpo", self.alpha_sdpo), "replay": ("beta_replay", self.beta_replay)}
        return {name: f"{key} is 0" for name, (key, weight) in weights.items() if not weight}
