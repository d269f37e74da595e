"""What the rows themselves do not say of a release: its name, the money, the teachers, the redaction."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tracemill.data_cards.model.columns import VIEWS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TeacherEntry(_Frozen):
    """A teacher as the card names it. `terms` is a sentence on the terms its answers are under, and
    `distillation` whether these allow training on them; None where that is not known. `standing` is the share
    of steps, of those that tell it apart from the agents, that speak for it; None where too few do."""

    name: str
    model: str
    family: str
    simulated: bool = False
    terms: str = ""
    distillation: bool | None = None
    standing: float | None = None


class LossExample(_Frozen):
    """A row that was dropped: why, the value that failed, and the beginning of both sides."""

    pair_id: str
    reason: str
    value: str
    chosen: str
    rejected: str


class Loss(_Frozen):
    """What one operator was given and dropped, with up to three examples; `errors` of those made it raise."""

    operator: str
    rows_in: Annotated[int, Field(ge=0)]
    dropped: Annotated[int, Field(ge=0)]
    errors: Annotated[int, Field(ge=0)] = 0
    examples: tuple[LossExample, ...] = ()

    @property
    def share(self) -> float:
        """The part of what it was given that it dropped."""
        return self.dropped / self.rows_in if self.rows_in else 0.0


class LabelCount(_Frozen):
    """The steps that could give a label of one source: those that are released, and the others by reason."""

    source: str
    steps: Annotated[int, Field(ge=0)]
    dropped: dict[str, int] = {}

    @property
    def released(self) -> int:
        """Steps whose label is released."""
        return self.steps - sum(self.dropped.values())


class LabelFigures(_Frozen):
    """Single actions as labels. `answers` are those that teachers gave at asked steps, by what became of
    them: for the action agreed on, for another one, at a step without agreement, or why they do not count.
    `warnings` are signs, in sentences, that teachers share errors."""

    answers: dict[str, int] = {}
    sources: tuple[LabelCount, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def released(self) -> int:
        """Labels of all sources that are released."""
        return sum(source.released for source in self.sources)


class Growth(_Frozen):
    """How a version follows the one before: rows that were in and stay, that are new, and that were in and
    are gone, since they are forgotten or a changed recipe drops them."""

    since: str | None
    stayed: Annotated[int, Field(ge=0)]
    new: Annotated[int, Field(ge=0)]
    gone: Annotated[int, Field(ge=0)]


class TeacherRun(_Frozen):
    """What asking one teacher came to, over all answers of a workspace. Latencies in seconds, of answers
    alone; `failures` are calls by kind, `again` tries that failed before another one, by kind."""

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


class Saving(_Frozen):
    """Money that was not spent, in USD by the prices of today and the mean of each teacher; `calls` that were
    not made, or that read a prompt cache. `steps` at which all of that was."""

    usd: float
    calls: int
    steps: int = 0


class RunFigures(_Frozen):
    """What a workspace says of a run and its release does not: pairs before the recipe, calls, savings.

    `asked` and `answered` are steps; `questions` and `answers` those of all teachers. `left_over` are
    questions that a cap or a fault left for the next run, and `projected_usd` what the run would have come
    to with them.
    """

    run_id: str
    asked: int
    answered: int
    questions: int
    answers: int
    left_over: int = 0
    projected_usd: float | None = None
    pairs_made: dict[str, int] = {}
    caching: Saving = Saving(usd=0.0, calls=0)
    stopping: Saving = Saving(usd=0.0, calls=0)
    gate: Saving = Saving(usd=0.0, calls=0)
    teachers: tuple[TeacherRun, ...] = ()


class ReleaseSpec(_Frozen):
    """A release to be written.

    `redaction` is the version of the redaction rules every text went through; without it nothing is
    written. `spend_usd` is what the run paid teachers, for pairs and for everything that gave none.
    `overlaps` counts sessions made of benchmarks for evaluation by how that is known.
    `funnel` counts the stages before the recipe, in their order (traces, states, asked, ...). `version`
    is `YYYY.MM.DD` or `YYYY.MM.DD.N`, computed from `created` (UTC, now where None) where None.
    `major` goes up with a rebuild, and rows and splits only grow between.
    `gating` is what the gate decided on steps and what was explored, `labels` the account of single actions.
    `wording` says whose words the sides hold, `views` which configs beside pairs and votes are written, and
    `file_bytes` how large a file grows before another one is begun. `run` is what the report says of the run
    beside the rows.
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
    losses: tuple[Loss, ...] = ()
    labels: LabelFigures = LabelFigures()
    funnel: dict[str, int] = {}
    gating: dict[str, Any] = {}
    growth: Growth | None = None
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
