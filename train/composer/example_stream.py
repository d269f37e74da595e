"""Draw examples without end, in an order that the position alone decides."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ExampleStream:
    """Batches of examples, shuffled anew for each pass; every process takes its own part of a batch.

    batch_size: examples a process takes at a time. position: number of batches drawn; set it to continue
    another stream.
    """

    examples: Sequence[Any]
    batch_size: int
    seed: int
    process: int = 0
    processes: int = 1
    position: int = 0
    _turn: int = field(default=-1, init=False)
    _order: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError("There are no examples to draw.")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}; it must be 1 or more.")

    def draw(self) -> list[Any]:
        """Return the next batch of this process."""
        first = (self.position * self.processes + self.process) * self.batch_size
        self.position += 1
        return [self._at(first + offset) for offset in range(self.batch_size)]

    def _at(self, number: int) -> Any:
        turn, place = divmod(number, len(self.examples))
        if turn != self._turn:
            self._turn, self._order = turn, list(range(len(self.examples)))
            random.Random(f"{self.seed}:{turn}").shuffle(self._order)
        return self.examples[self._order[place]]
