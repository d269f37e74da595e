"""The run configuration: one TOML file, flags over it, the stages' settings in their order.

Every model is frozen and refuses unknown keys. Paths in the file are relative to the file.
"""

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeInt,
    ValidationError,
    field_validator,
    model_validator,
)

from tracemill.agreement.equivalence.ladder import Rung
from tracemill.agreement.voting.policy import Policy, PolicyName, policy_named
from tracemill.flows.admission.privacy_settings import PrivacySettings, _Model
from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.config.pair_settings import PairSettings
from tracemill.flows.config.release_settings import NormalizeSettings, ReleaseSettings
from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
from tracemill.flows.sources.source_settings import SampleSettings, SourceSettings
from tracemill.ingesters.reading.remote_files import is_remote
from tracemill.records.errors import ConfigError
from tracemill.records.identity import canonical_json, digest
from tracemill.teachers.core.presets import PRESETS
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    BudgetSettings,
    GateSettings,
    ReplaySettings,
)
from tracemill.teachers.registry import TeacherSettings
from tracemill.train.launchers import LAUNCHERS
from tracemill.train.training_settings import TrainingSettings

_NOT_THE_RUN = {"workspace", "ledger_url", "budget", "shard_mb", "training", "accept_terms"}


class VoteSettings(_Model):
    """When teachers agree (`agreement/`)."""

    policy: PolicyName = "default"
    """The rule that makes votes a pair; the keys below change it."""
    threshold: int | None = Field(None, ge=1)
    """Teachers that must agree on another action than the student's; the policy's (2) where not given."""
    min_families: int | None = Field(None, ge=1)
    """Vendor families they must come from; the policy's (2) where not given."""
    exclude_student_family: bool = True
    """Teachers of the student's own family do not vote."""
    level: Rung | None = None
    """How alike two actions must be to count as the same; the policy's where not given."""
    min_chance: float | None = Field(None, ge=0, lt=1)
    """Votes are weighed: the least chance that a further teacher would do the same; the policy's where not
    given, 0 weighs nothing."""
    reliability: dict[str, tuple[NonNegativeInt, NonNegativeInt]] = Field(default_factory=dict)
    """For `weighted`: teacher to how often it agreed with the others, and how often that could be said."""

    def rule(self) -> Policy:
        """The policy these settings name, with what they change of it."""
        return policy_named(
            self.policy,
            threshold=self.threshold,
            min_families=self.min_families,
            exclude_student_family=self.exclude_student_family,
            level=self.level,
            min_chance=self.min_chance,
            reliability=self.reliability,
        )


class RunSettings(_Model):
    """A whole run, from sessions to a release."""

    workspace: Path = DEFAULT_WORKSPACE
    """Folder of tables, ledger and releases."""
    ledger_url: str | None = None
    """Database URL of the ledger; none given: a SQLite file in the workspace."""
    sources: SourceSettings = SourceSettings.model_validate({})
    select: SelectSettings = SelectSettings()
    """Which of the sessions are taken."""
    sample: SampleSettings = SampleSettings.model_validate({})
    """How many of those."""
    preset: Literal["none", "open", "frontier", "simulated"] = "none"
    """A named set of teachers; `none` asks nobody: hindsight pairs only, nothing sent."""
    teachers: tuple[TeacherSettings, ...] = ()
    """Teachers one by one, instead of a preset."""
    accept_terms: bool = False
    """Ask teachers too whose terms restrict training on their answers: the user settled that it may be."""
    budget: BudgetSettings | None = None
    """Hard caps in USD; wanted as soon as there are teachers."""
    replay: ReplaySettings = ReplaySettings()
    gate: GateSettings = GateSettings()
    agreement: VoteSettings = Field(default_factory=lambda: VoteSettings.model_validate({}))
    pairs: PairSettings = PairSettings.model_validate({})
    privacy: PrivacySettings = PrivacySettings()
    normalize: NormalizeSettings = NormalizeSettings()
    release: ReleaseSettings = ReleaseSettings.model_validate({})
    training: TrainingSettings | None = None
    """How `tracemill train`, and a run if it is told so, trains on the release."""
    shard_mb: float = Field(16.0, gt=0)
    """Source megabytes in one shard, the unit of work and of restart."""

    @field_validator("training")
    @classmethod
    def _has_its_launcher(cls, training: TrainingSettings | None) -> TrainingSettings | None:
        if training is not None:
            try:
                LAUNCHERS.get(training.launcher)
            except ConfigError as error:
                raise ValueError(str(error)) from error
        return training

    @model_validator(mode="after")
    def _value_has_a_price(self) -> Self:
        if self.replay.stop == "value" and self.gate.policy != "voi":
            raise ValueError('replay.stop = "value" goes by the gate: set gate.policy = "voi"')
        return self

    def asked(self) -> tuple[BaseTeacherSettings, ...]:
        """The teachers of this run. Raises ConfigError where a preset and a list are both given."""
        if self.teachers and self.preset != "none":
            raise ConfigError(
                f"preset = {self.preset!r} and [[teachers]] are both given", "one of them", "remove one"
            )
        if self.preset != "none":
            return PRESETS[self.preset].teachers
        return self.teachers

    def cap_usd(self) -> float | None:
        """The cap of the run in USD, None where nobody is asked. Raises ConfigError where teachers are
        given and no cap is."""
        if not self.asked():
            return None
        if self.budget is None:
            raise ConfigError(
                "teachers are given and no cap", "budget.max_total_usd", "set it, or use --max-usd"
            )
        return float(self.budget.max_total_usd)

    def fingerprint(self) -> str:
        """What the run is, without where and how fast it runs: an unfinished run is taken up again by
        the same fingerprint. The cap is left out, so that it can be raised for the rest of a run."""
        given = self.model_dump(mode="json", exclude=_NOT_THE_RUN)
        given["replay"] = self.replay.what_is_asked()
        for judged in ("accept", "require_second_opinion", "rebuild", "hub", "drift"):
            given["release"].pop(judged, None)
        for teacher in given["teachers"]:
            teacher.pop("local", None)  # which decides what is asked beforehand, not what is done
        return digest("run", canonical_json(given), size=8)


def load_settings(path: Path | None, overrides: dict[str, Any]) -> RunSettings:
    """The configuration in `path` with `overrides` (nested as the file is) laid over it.

    Raises ConfigError, in one line, for a file that is missing, no TOML, or holds a key or value that
    is not known.
    """
    value: dict[str, Any] = {}
    if path is not None:
        value = _resolved(_read_toml(path), path.resolve().parent)
    merged = _merge(value, overrides)
    try:
        return RunSettings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(f"{path or 'the configuration'}: {_first(error)}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there", "a TOML configuration") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error})", "a TOML configuration") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no TOML: {error}") from None


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if key.startswith("deny_") and isinstance(old, list):
            value = [*old, *value]  # a flag adds to what is denied and takes nothing off it
        if key == "accept" and isinstance(old, list):
            value = [*old, *value]  # what was accepted before stays so
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _resolved(value: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Relative paths of the file made absolute against its folder; anything malformed is left alone."""
    sources = value.get("sources")
    if isinstance(sources, dict):
        for key, paths in sources.items():
            if isinstance(paths, list) and key not in ("hub", "urls"):
                local = (isinstance(p, str) and not is_remote(p) for p in paths)
                sources[key] = [
                    _place(folder, p) if is_path else p for p, is_path in zip(paths, local, strict=True)
                ]
    private = value.get("privacy")
    if isinstance(private, dict) and isinstance(private.get("env_files"), list):
        private["env_files"] = [_place(folder, p) if isinstance(p, str) else p for p in private["env_files"]]
    normalize = value.get("normalize")
    if isinstance(normalize, dict) and isinstance(normalize.get("benchmarks"), list):
        files = normalize["benchmarks"]
        normalize["benchmarks"] = [_place(folder, p) if isinstance(p, str) else p for p in files]
    teachers = value.get("teachers")
    recorded = [(each, "path") for each in teachers] if isinstance(teachers, list) else []
    training = value.get("training")
    if (
        isinstance(training, dict)
        and isinstance(given := training.get("model"), str)
        and given.startswith((".", "/", "~"))
    ):
        training["model"] = _place(folder, given)
    trained = [(training, "output"), (training, "chat_template")]
    released = [(value.get("release"), "tokenizer"), (value.get("release"), "outcomes")]
    further = [*released, *recorded, *trained]
    for table, key in ((value, "workspace"), (value.get("normalize"), "recipe"), *further):
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = _place(folder, table[key])
    return value


def _place(folder: Path, given: str) -> str:
    return os.path.normpath(folder / Path(given).expanduser())


def _first(error: ValidationError) -> str:
    """The first fault as `where: what (found X)`, and how many more there are."""
    faults = error.errors(include_url=False)
    fault = faults[0]
    where = ".".join(str(part) for part in fault["loc"]) or "top level"
    if fault["type"] == "extra_forbidden":
        text = f"unknown key {where!r}; remove it or see docs/configuration.md"
    else:
        message = fault["msg"].removeprefix("Value error, ")
        found = fault.get("input")
        text = f"{where}: {message}"
        if isinstance(found, str | int | float | bool):
            text += f" (found {found!r})"
    return text if len(faults) == 1 else f"{text} (and {len(faults) - 1} more)"
