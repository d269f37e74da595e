"""An audit of a release: a random sample of its pairs, judged by a person, and the precision it shows."""

import random
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tracemill.records.errors import ReleaseError
from tracemill.records.identity import digest
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.records.wilson_interval import wilson_interval

AUDIT = "audit.json"
SAMPLE = 50
"""The 97.5 % quantile of the normal distribution."""
Verdict = Literal["accept", "reject"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Audit(_Frozen):
    """The sample of a release in judging order, and the verdicts so far by pair.

    `content_fingerprint` is that of the release: an audit of other rows does not apply.
    """

    schema_version: Literal[1] = 1
    content_fingerprint: str
    seed: int
    pair_ids: tuple[str, ...]
    verdicts: dict[str, Verdict] = {}

    @property
    def fingerprint(self) -> str:
        """Return a hash of the audit and its verdicts."""
        return digest("audit", self.model_dump_json(), size=8)

    @property
    def left(self) -> list[str]:
        """Return the pairs that have no verdict yet."""
        return [name for name in self.pair_ids if name not in self.verdicts]

    def with_verdict(self, pair_id: str, verdict: Verdict) -> "Audit":
        """Return a copy with one more verdict."""
        return self.model_copy(update={"verdicts": {**self.verdicts, pair_id: verdict}})

    def without(self, pair_id: str) -> "Audit":
        """Return a copy without the verdict on one pair."""
        rest = {name: verdict for name, verdict in self.verdicts.items() if name != pair_id}
        return self.model_copy(update={"verdicts": rest})

    def precision(self, rows: int) -> "Precision | None":
        """Return the share of accepted pairs with its interval, None if nothing was judged.

        `rows` is the number of rows of the release: if all are judged, the interval is one point.
        """
        judged = len(self.verdicts)
        if not judged:
            return None
        accepted = sum(verdict == "accept" for verdict in self.verdicts.values())
        low, high = wilson_interval(accepted, judged) if judged < rows else (accepted / judged,) * 2
        return Precision(
            judged=judged,
            accepted=accepted,
            sample=len(self.pair_ids),
            seed=self.seed,
            precision=accepted / judged,
            low=low,
            high=high,
        )


class Precision(_Frozen):
    """The share of judged pairs that were accepted, with its 95 % interval."""

    judged: int
    accepted: int
    sample: int
    seed: int
    precision: Annotated[float, Field(ge=0, le=1)]
    low: float
    high: float

    def sentence(self) -> str:
        """Return the precision as a sentence."""
        open_ = "" if self.judged == self.sample else f", {self.sample - self.judged} of the sample left"
        return (
            f"{self.accepted} of {self.judged} pairs accepted: precision {self.precision:.2f}"
            f" (95 %: {self.low:.2f} to {self.high:.2f}; seed {self.seed}{open_})"
        )


def draw_audit_sample(pair_ids: list[str], fingerprint: str, seed: int, size: int = SAMPLE) -> Audit:
    """Draw a sample of `size` pairs, or all if there are fewer; it depends on pairs and seed alone."""
    chosen = random.Random(seed).sample(sorted(pair_ids), min(size, len(pair_ids)))
    return Audit(content_fingerprint=fingerprint, seed=seed, pair_ids=tuple(chosen))


def read_audit(folder: Path, fingerprint: str) -> Audit | None:
    """Read the audit of a release, None if there is none.

    Raises ReleaseError if it cannot be read or belongs to other rows.
    """
    path = folder / AUDIT
    try:
        audit = Audit.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ReleaseError(
            f"{path} cannot be read", "an audit made by tracemill", "move it away to start a new one"
        ) from error
    if audit.content_fingerprint != fingerprint:
        raise ReleaseError(
            f"{path} belongs to other rows", "an audit of this release", "move it away to start a new one"
        )
    return audit


def write_audit(folder: Path, audit: Audit) -> None:
    """Write the audit into the folder of the release."""
    with write_atomically(folder / AUDIT) as temporary:
        temporary.write_text(audit.model_dump_json(indent=2) + "\n", encoding="utf-8")
