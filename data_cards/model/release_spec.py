"""The specification of a release: what its rows do not say, such as money, teachers and redaction."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tracemill.data_cards.model.columns import VIEWS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TeacherEntry(_Frozen):
    """A teacher as the card names it.

    `stand_in` says what the answers are where no model gave them: `simulated` or `written by hand`. `terms`
    is a sentence on the terms of its answers; `distillation` tells whether they allow training, None if
    unknown.
    Manifests of earlier releases say more of a teacher, which is ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    model: str
    family: str
    simulated: bool = False
    stand_in: str = ""
    terms: str = ""
    distillation: bool | None = None


class DropExample(_Frozen):
    """A dropped row: the reason, the value that failed, and the beginning of both sides."""

    pair_id: str
    reason: str
    value: str
    chosen: str
    rejected: str


class OperatorDrops(_Frozen):
    """Rows that one operator was given and dropped, with up to three examples; `errors` made it raise."""

    operator: str
    rows_in: Annotated[int, Field(ge=0)]
    dropped: Annotated[int, Field(ge=0)]
    errors: Annotated[int, Field(ge=0)] = 0
    examples: tuple[DropExample, ...] = ()

    @property
    def share(self) -> float:
        """Return the share of its rows that it dropped."""
        return self.dropped / self.rows_in if self.rows_in else 0.0


class LabelCount(_Frozen):
    """The steps that could give a label of one source, and those that did not, by reason."""

    source: str
    steps: Annotated[int, Field(ge=0)]
    dropped: dict[str, int] = {}

    @property
    def released(self) -> int:
        """Return the number of steps whose label is released."""
        return self.steps - sum(self.dropped.values())


class LabelFigures(_Frozen):
    """Counts of single actions as labels.

    `answers` counts teachers' answers by outcome: for the agreed action, for another one, at a step without
    agreement, or why they do not count. `warnings` are sentences on signs that teachers share errors, or that
    pairs contradict each other.
    """

    answers: dict[str, int] = {}
    sources: tuple[LabelCount, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def released(self) -> int:
        """Return the number of released labels of all sources."""
        return sum(source.released for source in self.sources)


class VersionGrowth(_Frozen):
    """Row changes of a version since the one before: rows kept, new, and removed.

    Rows are removed by `tracemill privacy forget` or by a changed recipe.
    """

    since: str | None
    stayed: Annotated[int, Field(ge=0)]
    new: Annotated[int, Field(ge=0)]
    gone: Annotated[int, Field(ge=0)]


class TeacherFigures(_Frozen):
    """Figures of one teacher over all its calls in a workspace.

    Latencies are of answers, in seconds. `failures` counts failed calls by kind, `again` failed attempts that
    were retried, by kind.
    """

    name: str
    calls: int
    answered: int
    failures: dict[str, int] = {}
    again: dict[str, int] = {}
    p10_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    slowest_s: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    paid_usd: float = 0.0


class SavedCost(_Frozen):
    """Cost saved, in USD, from today's prices and each teacher's mean cost.

    `calls` is the number of calls that were not made or read a prompt cache, at `steps` steps.
    """

    usd: float
    calls: int
    steps: int = 0


class RunFigures(_Frozen):
    """Figures of a run that its release does not hold: pairs before the recipe, calls, savings.

    `asked` and `answered` are steps; `questions` and `answers` are those of all teachers. `left_over` counts
    questions that a cap or an error left for the next run, and `projected_usd` is the cost with them.
    """

    run_id: str
    asked: int
    answered: int
    questions: int
    answers: int
    left_over: int = 0
    projected_usd: float | None = None
    pairs_made: dict[str, int] = {}
    caching: SavedCost = SavedCost(usd=0.0, calls=0)
    stopping: SavedCost = SavedCost(usd=0.0, calls=0)
    gate: SavedCost = SavedCost(usd=0.0, calls=0)
    teachers: tuple[TeacherFigures, ...] = ()


class ReleaseSpec(_Frozen):
    """A release to be written.

    - `redaction`: version of the redaction rules that every text went through; required.
    - `version`: `YYYY.MM.DD` or `YYYY.MM.DD.N`, by default computed from `created` (UTC, by default now).
      `major` goes up with a rebuild; between rebuilds rows and splits only grow.
    - `spend_usd`: what the run paid teachers, also for answers that gave no pair.
    - `overlaps`: sessions made from benchmarks, by reason. `funnel`: counts of the stages before the recipe,
      in order. `gating`: decisions of the gate. `labels`: counts of single actions.
    - `wording`: free text of the sides. `views`: configs to write beside pairs and votes. `file_bytes`: size
      from which on a file is followed by another one. `run`: figures of the run for the report.
    """

    name: str
    redaction: str
    redaction_counts: dict[str, int] = {}
    version: str | None = None
    major: Annotated[int, Field(ge=1)] = 1
    created: datetime | None = None
    pretty_name: str = ""
    repo_id: str | None = None
    language: tuple[str, ...] = ()
    recipe: str = ""
    recipe_fingerprint: str = ""
    configuration_fingerprint: str = ""
    policy: str = ""
    wording: Literal["full", "calls_only", "student_thought"] = "full"
    views: tuple[str, ...] = VIEWS
    file_bytes: Annotated[int, Field(ge=1)] = 500_000_000
    teachers: tuple[TeacherEntry, ...] = ()
    losses: tuple[OperatorDrops, ...] = ()
    labels: LabelFigures = LabelFigures()
    funnel: dict[str, int] = {}
    gating: dict[str, Any] = {}
    growth: VersionGrowth | None = None
    overlaps: dict[str, int] = {}
    tokens_by: str = ""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    spend_usd: Annotated[float, Field(ge=0)] = 0.0
    cap_usd: Annotated[float, Field(ge=0)] | None = None
    tracemill_version: str = ""
    git_commit: str | None = None
    run: RunFigures | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME.fullmatch(value) or ".." in value:
            raise ValueError("letters, digits, '.', '-' and '_', a letter or digit first, at most 96")
        return value
