"""What a world is: an environment an agent acts in, and the truth about each of its states.

An environment has the shape TRL's `environment_factory` takes: `reset(**row)` returns the text of a task,
every other public method but `get_reward` is a tool, with type hints and an `Args:` docstring. What is right
at a state is the world's to say, not the environment's, so that no tool gives it away.
"""

import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

FINISHING_TEXT = "Done ."
NOT_TOOLS = frozenset({"reset", "get_reward"})
UNKNOWN_TOOL = "ERROR : no such tool"


@dataclass(frozen=True)
class Action:
    """One action: a call of a tool, or a text without a call (`tool` empty)."""

    tool: str
    arguments: tuple[tuple[str, str], ...] = ()
    text: str = ""

    @classmethod
    def call(cls, tool: str, **arguments: str) -> "Action":
        """Return a call of a tool."""
        return cls(tool, tuple(arguments.items()))

    @classmethod
    def say(cls, text: str = FINISHING_TEXT) -> "Action":
        """Return a text without a call, which ends a session."""
        return cls("", (), text)


@dataclass(frozen=True)
class Result:
    """Output of a tool."""

    text: str
    failed: bool = False


class ToolFailure(Exception):
    """A tool failed; the text is what the agent is shown."""


class Environment(Protocol):
    """One episode."""

    done: bool

    def reset(self, task: int, **row: Any) -> str:
        """Begin the task of this number and return its text."""
        ...

    def get_reward(self) -> float:
        """Return 1.0 where the task is solved as things stand, else 0.0."""
        ...


class World(Protocol):
    """Tasks, and what is right, what the student gets wrong, and what anybody may get wrong in a state.

    `flaw` is the student's systematic error here, None where it has none; `flaw_rate` how often it makes
    it. `slips` are errors that anybody makes at random. `common_error` is one that all teachers share
    and the student does not make.
    """

    name: str
    session_format: str
    turns: int
    flaw_rate: float
    slip_rate: float

    def environment(self) -> Environment:
        """Return a new environment."""
        ...

    def right(self, env: Any) -> Sequence[Action]:
        """Return the right actions, the expert's own first; never empty before the end."""
        ...

    def flaw(self, env: Any) -> Action | None:
        """Return what the student does here by its flaw."""
        ...

    def slips(self, env: Any) -> Sequence[Action]:
        """Return errors that may happen here, none of them right."""
        ...

    def common_error(self, env: Any) -> Action:
        """Return the error that all teachers share here."""
        ...


def tool_names(env: Environment) -> list[str]:
    """Return the tools of an environment: its public methods."""
    methods = inspect.getmembers(env, inspect.ismethod)
    return [name for name, _ in methods if not name.startswith("_") and name not in NOT_TOOLS]


def act(env: Environment, action: Action) -> Result:
    """Do one action in an environment; a text without a call ends the episode."""
    if not action.tool:
        env.done = True
        return Result("")
    if action.tool not in tool_names(env):
        return Result(UNKNOWN_TOOL, True)
    try:
        return Result(getattr(env, action.tool)(**dict(action.arguments)))
    except ToolFailure as failure:
        return Result(str(failure), True)
    except TypeError:
        return Result(f"ERROR : {action.tool} has other arguments", True)


def draw(*key: object) -> random.Random:
    """Return a generator of random numbers that is the same for the same key, in every process."""
    return random.Random("\x1f".join(map(str, key)))
