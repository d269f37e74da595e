"""Read the run configuration: one TOML file, flags over it.

Every model is frozen and refuses unknown keys. Paths in the file are relative to the file.
"""

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from tracemill.agreement.equivalence.ladder import Level
from tracemill.agreement.voting.policy import PolicyName, VotePolicy, policy_named
from tracemill.flows.admission.privacy_settings import PrivacySettings
from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.config.cluster_settings import ClusterSettings
from tracemill.flows.config.config_faults import describe_faults
from tracemill.flows.config.notification_settings import NotificationSettings
from tracemill.flows.config.pair_settings import PairSettings
from tracemill.flows.config.release_settings import NormalizeSettings, ReleaseSettings
from tracemill.flows.config.shared_workspace import (
    lock_workspace,
    place_workspace,
    require_shared_ledger,
)
from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
from tracemill.flows.sources.source_settings import SampleSettings, SourceSettings
from tracemill.ingesters.reading.remote_files import is_remote
from tracemill.records.errors import ConfigError
from tracemill.records.frozen_model import FrozenModel
from tracemill.records.identity import canonical_json, digest
from tracemill.records.storage.working_copy import is_url
from tracemill.teachers.core.presets import PRESETS
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    BudgetSettings,
    GateSettings,
    ReplaySettings,
)
from tracemill.teachers.registry import TeacherSettings
from tracemill.train.composer_settings import FILES as COMPOSER_FILES
from tracemill.train.launch.registry import check_launcher
from tracemill.train.training_settings import TrainingSettings

_NOT_THE_RUN = {
    "workspace",
    "ledger_url",
    "budget",
    "shard_mb",
    "training",
    "accept_terms",
    "cluster",
    "notifications",
}
_PATHS = (
    ("", "workspace"),
    *(("sources", key) for key in ("claude_code", "codex", "openhands", "swe_gym", "paths")),
    ("privacy", "env_files"),
    *(("normalize", key) for key in ("recipe", "benchmarks")),
    *(("release", key) for key in ("tokenizer", "outcomes")),
    *(("training", key) for key in ("output", "chat_template", "accelerate")),
    ("gate", "step_scorer"),
    *(("composer", key) for key in COMPOSER_FILES),
    ("verified", "tasks"),
)
"""Tables and keys whose values are paths, or lists of them; `composer` is a table of `training`."""


class VoteSettings(FrozenModel):
    """Settings of the vote that decides where teachers agree (`agreement/`)."""

    policy: PolicyName = "default"
    """The rule that makes votes a pair; the keys below change it."""
    threshold: int | None = Field(None, ge=1)
    """Teachers that must agree on another action than the student's; the policy's (2) where not given."""
    min_families: int | None = Field(None, ge=1)
    """Vendor families they must come from; the policy's (2) where not given."""
    exclude_student_family: bool = True
    """Teachers of the student's own family do not vote."""
    level: Level | None = None
    """How alike two actions must be to count as the same; the policy's where not given."""

    def rule(self) -> VotePolicy:
        """Return the vote policy of these settings, with their changes."""
        return policy_named(
            self.policy,
            threshold=self.threshold,
            min_families=self.min_families,
            exclude_student_family=self.exclude_student_family,
            level=self.level,
        )


class VerifiedSettings(FrozenModel):
    """Settings of the environment that executes both sides of a disagreement (`pairs/verified.py`)."""

    environment: str
    """Name of an environment, as a package registers it (`tracemill.step_environments`)."""
    runs: int = Field(4, ge=1, le=100)
    """Executions of each side."""
    tasks: Path | None = None
    """Folder of tasks that `tracemill env make` wrote: for the environment `episodes`."""


class RunSettings(FrozenModel):
    """A whole run, from sessions to a release."""

    workspace: Path = DEFAULT_WORKSPACE
    """Folder of tables, ledger and releases, or a URL of fsspec."""
    ledger_url: str | None = None
    """Database URL of the ledger; none given: a SQLite file in the workspace."""
    sources: SourceSettings = SourceSettings.model_validate({})
    select: SelectSettings = SelectSettings()
    """Which of the sessions are taken."""
    sample: SampleSettings = SampleSettings.model_validate({})
    """How many of those."""
    preset: Literal["none", "open", "frontier", "simulated"] = "none"
    """A named set of teachers; `none` asks nobody: pairs of one session only, nothing sent."""
    teachers: tuple[TeacherSettings, ...] = ()
    """Teachers one by one, instead of a preset."""
    accept_terms: bool = False
    """Ask teachers too whose terms restrict training on their answers: the user settled that it may be."""
    budget: BudgetSettings | None = None
    """Hard caps in USD; wanted as soon as there are teachers."""
    replay: ReplaySettings = ReplaySettings()
    gate: GateSettings = GateSettings()
    judge: TeacherSettings | None = None
    """A model that is asked where the teachers' votes make no pair; none by default."""
    verified: VerifiedSettings | None = None
    """An environment that executes both sides where the votes make no pair; none by default."""
    agreement: VoteSettings = Field(default_factory=lambda: VoteSettings.model_validate({}))
    pairs: PairSettings = PairSettings.model_validate({})
    privacy: PrivacySettings = PrivacySettings()
    normalize: NormalizeSettings = NormalizeSettings()
    release: ReleaseSettings = ReleaseSettings.model_validate({})
    cluster: ClusterSettings = ClusterSettings.model_validate({})
    training: TrainingSettings | None = None
    """How `tracemill train`, and a run if it is told so, trains on the release."""
    notifications: NotificationSettings = NotificationSettings()
    """Messages that Prefect sends on failures, caps, releases and drift."""
    shard_mb: float = Field(16.0, gt=0)
    """Source megabytes in one shard, the unit of work and of restart."""

    @model_validator(mode="before")
    @classmethod
    def _workspace_is_placed(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("workspace"), str):
            return given
        require_shared_ledger(given["workspace"], given.get("ledger_url"))
        return given | {"workspace": place_workspace(given["workspace"])}

    @model_validator(mode="after")
    def _workspace_is_locked(self) -> Self:
        lock_workspace(self.workspace, self.ledger_url)
        return self

    @field_validator("training")
    @classmethod
    def _has_its_launcher(cls, training: TrainingSettings | None) -> TrainingSettings | None:
        if training is not None:
            try:
                check_launcher(training)
            except ConfigError as error:
                raise ValueError(str(error)) from error
        return training

    def asked_teachers(self) -> tuple[BaseTeacherSettings, ...]:
        """Return the teachers of this run.

        Raises ConfigError if a preset and a list are both given.
        """
        if self.teachers and self.preset != "none":
            raise ConfigError(
                f"preset = {self.preset!r} and [[teachers]] are both given", "one of them", "remove one"
            )
        if self.preset != "none":
            return PRESETS[self.preset].teachers
        return self.teachers

    def models(self) -> tuple[BaseTeacherSettings, ...]:
        """Return all models that receive text: the teachers and, if there are any, the judge."""
        asked = self.asked_teachers()
        return asked if self.judge is None or not asked else (*asked, self.judge)

    def hint_writer(self) -> BaseTeacherSettings | None:
        """Return the teacher that writes hints for a training, None if templates do.

        Raises ConfigError if no teacher of the configuration, nor its judge, has the name.
        """
        composer = None if self.training is None else self.training.composer
        if composer is None or composer.hint_writer is None:
            return None
        known = (*self.asked_teachers(), *(() if self.judge is None else (self.judge,)))
        found = next((each for each in known if each.name == composer.hint_writer), None)
        if found is None:
            names = ", ".join(each.name for each in known) or "there are none"
            raise ConfigError(
                f"training.composer.hint_writer = {composer.hint_writer!r} names no teacher",
                f"a teacher of this configuration ({names})",
                "name one of them, or add [[teachers]] or [judge]",
            )
        return found

    def cap_usd(self) -> float | None:
        """Return the cap of the run in USD, None if no teacher is asked.

        Raises ConfigError if there are teachers and no cap.
        """
        if not self.asked_teachers():
            return None
        if self.budget is None:
            raise ConfigError(
                "teachers are configured but no budget", do="set budget.max_total_usd or --max-usd"
            )
        return float(self.budget.max_total_usd)

    def fingerprint(self) -> str:
        """Return a digest of the run's settings, by which an unfinished run is resumed.

        Settings of place and speed are left out, and so is the cap, so that it can be raised for the rest
        of a run.
        """
        given = self.model_dump(mode="json", exclude=_NOT_THE_RUN)
        given["replay"] = self.replay.request_fields()
        for newer in ("judge", "verified"):
            if given[newer] is None:
                del given[newer]
        if given["gate"]["step_scorer"] is None:
            del given["gate"]["step_scorer"]
        if given.get("verified", {}).get("tasks", "") is None:
            del given["verified"]["tasks"]
        for judged in (
            *("allow_findings", "redact_findings", "require_second_opinion", "rebuild", "hub", "drift"),
            *("min_new_pairs", "max_age_days"),
        ):
            given["release"].pop(judged, None)
        for teacher in given["teachers"]:
            teacher.pop("local", None)  # which decides what is asked beforehand, not what is done
        return digest("run", canonical_json(given), size=8)


def load_settings(path: Path | None, overrides: dict[str, Any]) -> RunSettings:
    """Load the configuration in `path`, and apply `overrides` (nested like the file).

    Raises ConfigError, in one line, for a file that is missing or not TOML, or has an unknown key or an
    invalid value.
    """
    value: dict[str, Any] = {}
    if path is not None:
        value = _resolve_paths(_read_toml(path), path.resolve().parent)
    merged = _merge(value, overrides)
    try:
        return RunSettings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(f"{path or 'the configuration'}: {describe_faults(error, RunSettings)}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there", "a TOML configuration") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error})", "a TOML configuration") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if key.startswith("deny_") and isinstance(old, list):
            value = [*old, *value]  # a flag adds to what is denied and takes nothing off it
        if key == "allow_findings" and isinstance(old, list):
            value = [*old, *value]  # a flag adds to what is allowed and takes nothing off it
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _resolve_paths(value: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make relative paths absolute against the folder of the file; malformed values are left as they are."""

    def resolve(path: Any) -> Any:
        if not isinstance(path, str) or is_remote(path) or is_url(path):
            return path
        return os.path.normpath(folder / Path(path).expanduser())

    teachers = value.get("teachers")
    training = value.get("training")
    tables = value | ({"composer": training.get("composer")} if isinstance(training, dict) else {})
    places = [(tables.get(table) if table else value, key) for table, key in _PATHS]
    places += [(teacher, "path") for teacher in teachers] if isinstance(teachers, list) else []
    if isinstance(training, dict) and str(training.get("model")).startswith((".", "/", "~")):
        places.append((training, "model"))
    for table, key in places:
        if isinstance(table, dict) and key in table:
            path = table[key]
            table[key] = [resolve(each) for each in path] if isinstance(path, list) else resolve(path)
    return value
