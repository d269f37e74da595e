"""What the rows themselves do not say of a release: its name, the money, the teachers, the redaction."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from data_cards.features import VIEWS

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


class Loss(_Frozen):
    """What one operator of the recipe was given and dropped; `errors` of those made it raise."""

    operator: str
    rows_in: Annotated[int, Field(ge=0)]
    dropped: Annotated[int, Field(ge=0)]
    errors: Annotated[int, Field(ge=0)] = 0


class ReleaseSpec(_Frozen):
    """A release to be written.

    `redaction` is the version of the redaction rules every text went through; without it nothing is
    written. `spend_usd` is what the run paid teachers, for pairs and for everything that gave none.
    `funnel` counts the stages before the recipe, in their order (traces, states, asked, ...). `version`
    is `YYYY.MM.DD` or `YYYY.MM.DD.N`, computed from `created` (UTC, now where None) where None.
    `wording` says whose words the sides hold, `views` which configs beside pairs and votes are written.
    """

    name: str
    redaction: str
    redaction_counts: dict[str, int] = {}
    version: str | None = None
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
    teachers: tuple[TeacherEntry, ...] = ()
    losses: tuple[Loss, ...] = ()
    funnel: dict[str, int] = {}
    spend_usd: Annotated[float, Field(ge=0)] = 0.0
    cap_usd: Annotated[float, Field(ge=0)] | None = None
    tracemill_version: str = ""
    git_commit: str | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME.fullmatch(value) or ".." in value:
            raise ValueError("letters, digits, '.', '-' and '_', a letter or digit first, at most 96")
        return value
