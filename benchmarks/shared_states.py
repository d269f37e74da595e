"""Group recorded runs by the states in which several models were, for the builders of tables."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

FEWEST_MODELS = 3


class ModelRun(Protocol):
    """A recorded run of a model."""

    @property
    def model(self) -> str:
        """Return the name of the model."""
        ...


R = TypeVar("R", bound=ModelRun)


def shared_states(
    runs: list[R], histories: Callable[[R], Iterable[str]]
) -> Iterator[tuple[str, dict[str, tuple[R, int]]]]:
    """Yield the states in which three models or more were, once for each time that they were.

    `histories` gives, for each step of a run, a digest of its state. Each state comes with its number of time
    (`DIGEST/0`), and by model with the run and the step.
    """
    states: dict[str, dict[str, list[tuple[R, int]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for depth, state in enumerate(histories(run)):
            states[state][run.model].append((run, depth))
    for state, by_model in states.items():
        for time in range(max(map(len, by_model.values()))):
            here = {model: places[time] for model, places in sorted(by_model.items()) if len(places) > time}
            if len(here) < FEWEST_MODELS:
                break
            yield f"{state}/{time}", here
