"""What the report of a release says, as one JSON object: page and terminal speak from it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tracemill.data_cards.model.release_spec import LabelFigures, RunFigures
from tracemill.records.errors import ReleaseError

REPORT_JSON = "report.json"
REPORT_PAGE = "report.html"

Count = Annotated[int, Field(ge=0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stage(_Frozen):
    """One stage of the funnel. `parts` are the label sources of a stage of pairs; `note` says what else
    was counted there, in words."""

    name: str
    count: Count
    unit: Literal["traces", "steps", "pairs"]
    parts: dict[str, int] = {}
    note: str = ""


class Money(_Frozen):
    """USD. `projected_usd` is what the run would have come to without its cap, at the mean price of its
    answers; None where the run's own figures are not there. `paid_usd` is by teacher, of all answers that
    the release rests on, whichever run paid for them."""

    spend_usd: float
    cap_usd: float | None
    projected_usd: float | None
    usd_per_pair: float
    paid_usd: dict[str, float]


class Agreed(_Frozen):
    """Two who voted at the same steps: at `steps` of them both count, at `same` their action is one."""

    one: str
    other: str
    steps: Count
    same: Count


class OperationAgreement(_Frozen):
    """Of the votes that another teacher's stands beside and that are of this class of operation: at how
    many the other's action is the same one, and at how many of the same class."""

    operation: str
    votes: Count
    same: Count
    same_class: Count


class Agreement(_Frozen):
    """Who voted alike: `teachers` in pairs, the agent (`student`) among them; families; classes."""

    teachers: tuple[Agreed, ...] = ()
    families: tuple[Agreed, ...] = ()
    operations: tuple[OperationAgreement, ...] = ()


class Cell(_Frozen):
    """Released pairs of one class of operation over another."""

    rejected: str
    chosen: str
    rows: Count


class TraceCost(_Frozen):
    """What one trace cost, and what came of it."""

    trace_id: str
    steps: Count
    votes: Count
    pairs: Count
    usd: float


class LossRow(_Frozen):
    """What one operator was given and dropped, with the share and examples: the row, and what failed."""

    operator: str
    rows_in: Count
    dropped: Count
    share: float
    errors: Count
    examples: tuple[str, ...] = ()


class ReportFigures(_Frozen):
    """All figures of a report, in the order in which they are shown."""

    schema_version: Literal[1] = 1
    name: str
    version: str
    created: str
    rows: Count
    splits: dict[str, int] = {}
    labels: LabelFigures = LabelFigures()
    simulated: Literal["none", "some", "all"]
    statement: str
    funnel: tuple[Stage, ...]
    verdicts: dict[str, int]
    money: Money
    agreement: Agreement
    operations: tuple[Cell, ...]
    votes: dict[str, dict[str, int]]
    dearest: tuple[TraceCost, ...]
    losses: tuple[LossRow, ...]
    run: RunFigures | None = None


def read_figures(folder: Path) -> ReportFigures | None:
    """The figures a release was given; None where it has none. Raises ReleaseError where they cannot be
    read."""
    path = folder / REPORT_JSON
    try:
        return ReportFigures.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ReleaseError(
            f"{path} cannot be read", "the figures of a release of this version", "remove it"
        ) from error
