"""Pairs that an environment verified: both sides of a disagreement are executed from the recorded state.

tracemill gives one, `episodes`, for episodes of its own tasks. A package gives another by an entry point of
the group `tracemill.step_environments`, and a configuration names it under `[verified]`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.disagreements import Proposal
from tracemill.pairs.step_pair import pair_at
from tracemill.records.errors import ConfigError
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair
from tracemill.records.registry import Registry
from tracemill.records.step_environment import NotExecuted, StepEnvironment
from tracemill.records.trace import TraceState
from tracemill.records.wilson_interval import wilson_interval

MOST_PROPOSALS = 3
"""Most proposals of a step that are executed, those with most votes first."""
NOT_RESTORED, NOT_RUN = "the environment cannot restore the state", "an action could not be executed"
NO_DIFFERENCE, WORSE = "no difference beyond chance", "the agent's action succeeds more often"


@runtime_checkable
class TaskStepEnvironment(Protocol):
    """A step environment that is made for the tasks of a folder."""

    def of_tasks(self, folder: Path) -> StepEnvironment:
        """Return the environment over the tasks of a folder."""
        ...


STEP_ENVIRONMENTS: Registry[StepEnvironment] = Registry(
    "step environment",
    "tracemill.step_environments",
    {"episodes": "tracemill.environments.episodes.replayed_episodes:ENVIRONMENT"},
    fits=lambda name, found: isinstance(found, StepEnvironment) and found.name == name,
    expected="a StepEnvironment of that name, with `version`, `restores` and `succeeds`",
)


def step_environment(name: str, tasks: Path | None = None) -> StepEnvironment:
    """Return the environment of a name, over the tasks of a folder if it takes tasks.

    Raises ConfigError if no installed package registers it, if it takes tasks and none are given, and the
    reverse.
    """
    if name not in STEP_ENVIRONMENTS.names():
        known = ", ".join(STEP_ENVIRONMENTS.names())
        raise ConfigError(
            f"verified.environment {name!r} is not known", known, "install the package that gives it"
        )
    found = STEP_ENVIRONMENTS.get(name)
    takes = isinstance(found, TaskStepEnvironment)
    if takes != (tasks is not None):
        wanted = "a folder that `tracemill env make` wrote" if takes else "no key `tasks`"
        raise ConfigError(f"verified.tasks does not fit the environment {name}", wanted)
    return found.of_tasks(tasks) if isinstance(found, TaskStepEnvironment) and tasks is not None else found


@dataclass(frozen=True, slots=True)
class Verification:
    """The successes of the chosen and of the rejected action in `runs` executions each.

    `low` and `high` are the 95 % interval of the difference of the two rates.
    """

    chosen: int
    rejected: int
    runs: int

    @property
    def difference(self) -> float:
        """Return the difference of the success rates, -1 to 1."""
        return (self.chosen - self.rejected) / self.runs

    @property
    def low(self) -> float:
        """Return the lower end of the interval."""
        return self._end(self.chosen, self.rejected, -1)

    @property
    def high(self) -> float:
        """Return the upper end of the interval."""
        return self._end(self.rejected, self.chosen, 1)

    def _end(self, one: int, other: int, sign: int) -> float:
        """Return an end (R. G. Newcombe, Statistics in Medicine 17, 1998, method 10)."""
        below = one / self.runs - wilson_interval(one, self.runs)[0]
        above = wilson_interval(other, self.runs)[1] - other / self.runs
        return self.difference + sign * math.hypot(below, above)

    def __str__(self) -> str:
        """Return counts and interval in words."""
        return (
            f"{self.chosen} of {self.runs} against {self.rejected} of {self.runs} executions succeed "
            f"(difference {self.difference:.2f}, 95 %: {self.low:.2f} to {self.high:.2f})"
        )


def verify_actions(
    state: TraceState, actions: Sequence[Action], environment: StepEnvironment, runs: int
) -> list[Verification]:
    """Execute the agent's action and each of `actions` from the state; return the comparisons.

    Raises NotExecuted if one of them could not be run.
    """

    def count(action: Action) -> int:
        return sum(environment.succeeds(state, action, run) for run in range(runs))

    own = count(state.student_action)
    return [Verification(count(action), own, runs) for action in actions]


def verified_pair(
    state: TraceState,
    presentation: Presentation,
    proposals: Sequence[Proposal],
    environment: StepEnvironment,
    runs: int,
) -> tuple[DPOPair | None, str]:
    """Return the pair of the proposal that succeeds most against the agent's action, or why there is none.

    A pair needs a difference whose interval is above 0.
    """
    if not environment.restores(state):
        return None, NOT_RESTORED
    tried = proposals[:MOST_PROPOSALS]
    try:
        found = verify_actions(state, [proposal.action for proposal in tried], environment, runs)
    except NotExecuted:
        return None, NOT_RUN
    best = max(range(len(found)), key=lambda at: (found[at].chosen, -at))
    seen, proposal = found[best], tried[best]
    if seen.low <= 0:
        return None, WORSE if seen.high < 0 else NO_DIFFERENCE
    evidence = f"{environment.name} {environment.version}: {seen}"
    pair = pair_at(state, "verified", proposal.action, evidence, "verified", presentation)
    return replace(
        pair,
        n_teachers_agreeing=len(proposal.teachers),
        verified="execution",
        weight=round(seen.difference, 4),
    ), ""
