"""Steps for dataset views that are not pairs: runs of judged steps, vote distributions, labelled actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.records.message import Message, ToolSpec


@dataclass(frozen=True, slots=True)
class StepOrigin:
    """The origin of a step; every row of a dataset carries it."""

    trace_id: str
    source: str
    harness: str
    presentation: str
    student_model: str | None
    student_family: str
    repository: str | None = None
    instance_id: str | None = None
    licence: str | None = None
    outcome: str = "unknown"
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class StepRun:
    """Consecutive steps of an agent that were all judged.

    `turns` holds for each step the messages since the step before and the agent's action. `labels` is True
    where that action was confirmed and False where another was preferred, and `label_sources` says by which
    source.
    """

    origin: StepOrigin
    state_messages: Sequence[Message]
    step_ids: tuple[str, ...]
    turns: tuple[tuple[Message, ...], ...]
    labels: tuple[bool, ...]
    label_sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidateAction:
    """One action at a step, and the teachers that voted for it.

    `agreed` is True if the pair of the step rests on these votes. Actions of one intent are listed
    separately here, though the vote may count them as one.
    """

    message: Message
    operation: str
    teachers: tuple[str, ...]
    agreed: bool = False


@dataclass(frozen=True, slots=True)
class SoftStep:
    """The votes at a step as a distribution over actions, the most frequent first.

    `student` is the index of the agent's own action among them, -1 if it got no vote. `evidence` is that of
    the teachers' pair of the step, empty if they made none.
    """

    origin: StepOrigin
    step_id: str
    state_messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    verdict: str
    candidates: tuple[CandidateAction, ...]
    student: int
    cost_usd: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class ActionLabel:
    """One action that is right at a step according to votes or outcomes.

    `label_source` is a name of `records.label_source`; `same_as_student` is True if the action is the
    agent's own. `verdict` is the result of the vote at the step, empty without a vote; `teachers` and
    `families` voted for the action, `n_votes` counts all votes, and `cost_usd` is the cost of all of them.
    `weight` (0 to 1) is used in training. `outcome_weight` (0 to 1) is lower if session outcomes contradict
    the action, None if they say nothing; `outcome_support` counts the other solved sessions that have its
    rarest feature. `pair_id` names the pair at this step with the same action. Only the release writer sets
    `state_messages` and `tools`.
    """

    origin: StepOrigin
    step_id: str
    label_source: str
    message: Message
    operation: str
    same_as_student: bool
    verdict: str
    evidence: str
    weight: float
    outcome_weight: float | None = None
    outcome_support: int = 0
    teachers: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    n_votes: int = 0
    cost_usd: float = 0.0
    pair_id: str | None = None
    state_messages: Sequence[Message] = ()
    tools: tuple[ToolSpec, ...] = ()
