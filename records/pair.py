"""Votes, and the preference pairs made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.records.message import Message, ToolSpec

Verified = Literal["none", "lookahead", "outcome", "execution"]


@dataclass(frozen=True, slots=True)
class Vote:
    """One teacher's reply as a vote.

    `counted` is False where it does not vote, and `reason` says why (failed call, the student's family, a
    tool that was not offered, ...). Votes for one action have the same `key`; it is `student` where the
    action is the student's own. `agrees` is True where the vote supports the action that enough teachers
    agreed on, the student's own included.
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
    """All votes at a step and their result (`pair`, `no_agreement`, ...).

    `simulated` is True where any of the teachers is.
    """

    step_id: str
    verdict: str
    votes: tuple[Vote, ...]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class DPOPair:
    """One preference: in this state, `chosen` rather than `rejected`.

    `state_messages` is a view of the messages shown, stand-ins included; only the release writer copies it.
    `chosen` and `rejected` are assistant messages. `label_source` names a source of `records.label_source`,
    or of a package that was removed since. `state_key` is equal for equal states of any session
    (`records.state_keys`); it is empty where it was not computed, and it is not stored. `weight` (0 to 1) is
    what the source knows of its errors at this pair, 1 where it knows nothing.
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
    weight: float = 1.0
    state_key: str = ""

    @property
    def pair_id(self) -> str:
        """Return step and label source: a step has at most one pair of each source."""
        return f"{self.step_id}:{self.label_source}"


@dataclass(frozen=True, slots=True)
class RowTokens:
    """Tokens of a row with its tools and its longer side.

    `tokens` counts the row as written, `whole` before its context was cut, `least` its shortest form. `cut`
    says what was cut: observations were shortened, or turns left out too.
    """

    tokens: int
    whole: int
    least: int
    cut: Literal["", "observations", "turns"]


@dataclass(frozen=True, slots=True)
class NormalizedDPOPair:
    """A pair that passed a recipe, with the flat strings the operators saw.

    `error` is the result of the rejected action where that failed; the release writer sets it with the state.
    `length` is None where tokens were not counted.
    """

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    recipe: str
    error: str = ""
    length: RowTokens | None = None


@dataclass(frozen=True, slots=True)
class DroppedPair:
    """A pair that an operator dropped, with the reason.

    `value` is the value that failed. For an operator of a recipe it is the statistics as JSON, or the type of
    the error that the pair raised in it.
    """

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    operator: str
    reason: str
    value: str
