"""Preference pairs: what was agreed against what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.records.message import Message, ToolSpec

Verified = Literal["none", "lookahead", "outcome", "execution"]


@dataclass(frozen=True, slots=True)
class Vote:
    """What one teacher's reply counted for.

    `counted` is False where it does not vote, and `reason` says why (failed call, the student's
    family, a tool that was not offered, ...). `key` is what its action counts as, equal where
    votes are for one action, `student` where that is the student's own. `agrees` is True where it supports
    the action that enough teachers agreed on, the student's own among them.
    """

    teacher: str
    family: str
    sample: int
    counted: bool
    reason: str
    key: str
    operation: str
    agrees: bool
    cost_usd: float
    request_key: str


@dataclass(frozen=True, slots=True)
class StepVotes:
    """All votes at a step and what they came to (`pair`, `no_agreement`, ...). `simulated` where any of the
    teachers is."""

    step_id: str
    verdict: str
    votes: tuple[Vote, ...]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class DPOPair:
    """One preference: in this state, `chosen` rather than `rejected`.

    `state_messages` is a view of what was shown (stand-ins included), materialised by the release
    writer alone. `chosen` and `rejected` are lists of assistant messages. `label_source` is a name of
    `records.label_source`, or of a source that whoever made the pair had. `state_key` is the same for the
    same state, wherever it was met (`records.state_keys`); empty where nobody looked. It is not stored.
    """

    step_id: str
    label_source: str
    state_messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    chosen_operation: str
    rejected_operation: str
    source: str
    harness: str
    presentation: str
    student_model: str | None
    student_family: str
    n_teachers_agreeing: int = 0
    votes: tuple[Vote, ...] = ()
    families: tuple[str, ...] = ()
    cost_usd: float = 0.0
    policy: str = ""
    verified: Verified = "none"
    simulated: bool = False
    evidence: str = ""
    project: str | None = None
    repository: str | None = None
    instance_id: str | None = None
    licence: str | None = None
    outcome: str = "unknown"
    state_key: str = ""

    @property
    def pair_id(self) -> str:
        """Step and label source: a step gives at most one pair of each source."""
        return f"{self.step_id}:{self.label_source}"


@dataclass(frozen=True, slots=True)
class Length:
    """Tokens of a row with its tools and its longer side: as it is written, before its context was cut, and
    of its shortest form. `cut` says what the cut took: observations were shortened, or turns left out too."""

    tokens: int
    whole: int
    least: int
    cut: Literal["", "observations", "turns"]


@dataclass(frozen=True, slots=True)
class NormalizedDPOPair:
    """A pair that passed a recipe, with the flat strings the operators saw. `error` is what came back for the
    rejected action where that failed, set with the state by the release writer; `length` is None where it was
    not counted."""

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    recipe: str
    error: str = ""
    length: Length | None = None


@dataclass(frozen=True, slots=True)
class DroppedPair:
    """A pair that did not pass: the operator that dropped it, why, and the value that failed. Of an operator
    of a recipe that is its statistics as JSON, or the type of the error where the pair made it raise."""

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    operator: str
    reason: str
    value: str
