"""Who acts: the expert, the weak student, and teachers with their regimes of errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.teaching.worlds.world import Action, World, act, draw


@dataclass(frozen=True)
class Turn:
    """One action of a session and what came back."""

    action: Action
    result: str
    failed: bool


@dataclass
class Session:
    """A task, what was done, and whether it was solved at the end."""

    task: int
    text: str
    turns: list[Turn] = field(default_factory=list)
    reward: float = 0.0
    sample: int = 0


@dataclass(frozen=True)
class Teacher:
    """A scripted teacher with three kinds of errors.

    It errs at random at `error` of states, makes the student's error at `shared` of the states where the
    student has one, and the teachers' common error at `common` of all states. The states of shared errors are
    the same for all teachers.
    """

    name: str
    error: float
    shared: float = 0.0
    common: float = 0.0

    def action(self, world: World, env: Any, key: Sequence[object]) -> Action:
        """Return what the teacher does in a state; `key` names the state."""
        right = world.right(env)[0]
        if self.common and draw("common", *key).random() < self.common:
            return world.common_error(env)
        flaw = world.flaw(env)
        if flaw is not None and self.shared and draw("shared", *key).random() < self.shared:
            return flaw
        rng = draw(self.name, *key)
        if rng.random() < self.error:
            return rng.choice(list(world.slips(env)))
        return right


_ERRORS = {"alder": 0.05, "birch": 0.12, "cedar": 0.25}


def _teachers(**flaws: float) -> tuple[Teacher, ...]:
    return tuple(Teacher(name, error, **flaws) for name, error in _ERRORS.items())


REGIMES: Mapping[str, tuple[Teacher, ...]] = {
    "independent": _teachers(),
    "shared_25": _teachers(shared=0.25),
    "shared_50": _teachers(shared=0.5),
    "common_20": _teachers(common=0.2),
    "one_good": (
        Teacher("alder", 0.05),
        Teacher("birch", 0.12, shared=0.75),
        Teacher("cedar", 0.12, shared=0.75),
    ),
}


def weak_action(world: World, env: Any, rng: Any) -> Action:
    """Return what the policy does that the student is trained on before anything else."""
    flaw = world.flaw(env)
    if flaw is not None and rng.random() < world.flaw_rate:
        return flaw
    if rng.random() < world.slip_rate:
        return rng.choice(list(world.slips(env)))
    return world.right(env)[0]


def weak_session(world: World, task: int) -> Session:
    """Play a task with the weak policy."""
    env, rng = world.environment(), draw("weak", world.name, task)
    session = Session(task, env.reset(task=task))
    while not env.done and len(session.turns) < world.turns:
        action = weak_action(world, env, rng)
        result = act(env, action)
        session.turns.append(Turn(action, result.text, result.failed))
    session.reward = env.get_reward()
    return session


def replay(world: World, task: int, actions: Sequence[Action]) -> Any:
    """Return the environment of a task after some actions."""
    env = world.environment()
    env.reset(task=task)
    for action in actions:
        act(env, action)
    return env
