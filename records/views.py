"""Steps for the views of a dataset that are no pairs: runs of judged steps, and what teachers voted for."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.records.message import Message, ToolSpec


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a step is from, as every row of a dataset says it."""

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
    """Neighbouring steps of an agent that were all judged. `turns` holds for each what the agent did, behind
    what was said since the step before; `labels` whether that was confirmed (True) or another action was
    preferred (False), and `label_sources` by what."""

    origin: Origin
    state_messages: Sequence[Message]
    step_ids: tuple[str, ...]
    turns: tuple[tuple[Message, ...], ...]
    labels: tuple[bool, ...]
    label_sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One action at a step, and the teachers whose votes are for it. `agreed` is True where the pair of the
    step rests on them: actions of one intent stand apart here, and may be one to the vote."""

    message: Message
    operation: str
    teachers: tuple[str, ...]
    agreed: bool = False


@dataclass(frozen=True, slots=True)
class SoftStep:
    """The votes at a step as a distribution over actions, the most frequent first. `student` is the place of
    the agent's own action among them, -1 where nobody voted for it. `evidence` is that of the teachers' pair
    of the step, empty where they made none."""

    origin: Origin
    step_id: str
    state_messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    verdict: str
    candidates: tuple[Candidate, ...]
    student: int
    cost_usd: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class ActionLabel:
    """One action that is right at a step, as far as votes or outcomes say so.

    `label_source` is a name of `records.label_source`; `same_as_student` where the action is the agent's own.
    `verdict` is what the vote of the step came to, empty where there was none; `teachers` and `families` are
    those whose votes are for the action, `n_votes` all that count. `cost_usd` is what the votes cost, also
    those against it. `weight` (0 to 1) is what training uses; `outcome_weight` (0 to 1) what outcomes of
    sessions say of the action, None where they say nothing, and `outcome_support` the other solved sessions
    that did what is least usual about it. `pair_id` names the pair that was made here of the same action.
    `state_messages` and `tools` are set by the release writer's reader alone.
    """

    origin: Origin
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
