"""How many tasks of a world models solve.

A world is a class in the shape of TRL's `environment_factory`: `reset(task=number)` returns the text of a
task, every other public method but `get_reward` is a tool. One that has an attribute `done` ends an episode.
"""

from collections.abc import Mapping

from pydantic import Field

from tracemill.records.frozen_model import FrozenModel
from tracemill.train.ask_child import ask_child
from tracemill.train.training_settings import TrainingSettings

SOLVED = 1.0
"""Least reward of a task that is solved."""


class PlayRequest(FrozenModel):
    """A request to play tasks of a world (an environment class): the models, the tasks, and settings."""

    world: str
    """Its class, as `module:class`."""
    settings: TrainingSettings
    models: dict[str, str]
    """Folder or id of each model by a name."""
    first: int
    """Number of the first task."""
    tasks: int = Field(ge=1)
    temperature: float = Field(ge=0)
    """How actions are sampled; 0 takes the likeliest token."""
    turns: int = Field(ge=1)
    """Most actions of an episode."""
    new_tokens: int = Field(ge=1)
    """Maximum tokens per action."""


class PlayedTasks(FrozenModel):
    """The outcomes of the episodes of each model, in the order of tasks."""

    rewards: dict[str, list[float]]
    calls: dict[str, int]
    """Number of calls that each model made."""
    cut: dict[str, int]
    """Number of episodes that ended since the next prompt would have been too long."""
    malformed: dict[str, int]
    """Number of actions whose calls could not be read, which end an episode too."""


def play_world(question: PlayRequest, environment: Mapping[str, str]) -> PlayedTasks:
    """Let models play in a child process with PyTorch.

    Raises TrainingError if a model or the world cannot be loaded, or calls of a model cannot be read.
    """
    return PlayedTasks.model_validate(ask_child("tracemill.train.trl.play", question, environment))
