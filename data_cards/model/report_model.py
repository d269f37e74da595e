"""The figures of a report as one JSON object, which page and terminal show."""

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


class FunnelStage(_Frozen):
    """One stage of the funnel; `parts` splits pairs by label source, `note` names other counts."""

    name: str
    count: Count
    unit: Literal["traces", "steps", "pairs"]
    parts: dict[str, int] = {}
    note: str = ""


class MoneyFigures(_Frozen):
    """Costs in USD.

    `projected_usd` is the cost without a cap, at the mean price of the answers, None if the run's figures are
    missing. `paid_usd` is by teacher, for all answers of the release from any run.
    """

    spend_usd: float
    cap_usd: float | None
    projected_usd: float | None
    usd_per_pair: float
    paid_usd: dict[str, float]


class PairAgreement(_Frozen):
    """Agreement of two voters: at `steps` steps both count, at `same` of them their actions are equal."""

    one: str
    other: str
    steps: Count
    same: Count


class OperationAgreement(_Frozen):
    """Agreement of votes for one operation with the votes of other teachers.

    `same` of them are for the same action, `same_class` for the same operation.
    """

    operation: str
    votes: Count
    same: Count
    same_class: Count


class Agreement(_Frozen):
    """Agreement between teachers in pairs, with the agent as `student`; between families; by operation."""

    teachers: tuple[PairAgreement, ...] = ()
    families: tuple[PairAgreement, ...] = ()
    operations: tuple[OperationAgreement, ...] = ()


class OperationCell(_Frozen):
    """Number of released pairs with this rejected and this chosen operation."""

    rejected: str
    chosen: str
    rows: Count


class TraceCost(_Frozen):
    """The cost of one trace, with its steps, votes and pairs."""

    trace_id: str
    steps: Count
    votes: Count
    pairs: Count
    usd: float


class DropReport(_Frozen):
    """Rows that one operator was given and dropped, with the share and examples."""

    operator: str
    rows_in: Count
    dropped: Count
    share: float
    errors: Count
    examples: tuple[str, ...] = ()


class ReportFigures(_Frozen):
    """All figures of a report, in the order of the page."""

    schema_version: Literal[1] = 1
    name: str
    version: str
    created: str
    rows: Count
    splits: dict[str, int] = {}
    labels: LabelFigures = LabelFigures()
    simulated: Literal["none", "some", "all"]
    stand_in: str = "simulated"
    statement: str
    funnel: tuple[FunnelStage, ...]
    verdicts: dict[str, int]
    money: MoneyFigures
    agreement: Agreement
    operations: tuple[OperationCell, ...]
    votes: dict[str, dict[str, int]]
    dearest: tuple[TraceCost, ...]
    losses: tuple[DropReport, ...]
    run: RunFigures | None = None


def read_figures(folder: Path) -> ReportFigures | None:
    """Read the figures of a release, None if it has none.

    Raises ReleaseError if they cannot be read.
    """
    path = folder / REPORT_JSON
    try:
        return ReportFigures.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ReleaseError(
            f"{path} cannot be read", "the figures of a release of this version", "remove it"
        ) from error
