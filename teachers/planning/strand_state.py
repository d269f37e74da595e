"""The state of what is asked along one run of steps; the schedule decides, this remembers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Call(NamedTuple):
    """One question as it goes out."""

    step_id: str
    teacher: str
    sample: int


class StepWork(NamedTuple):
    """A step with what is still to be asked there: the samples wanted of each teacher."""

    step_id: str
    wanted: Mapping[str, Sequence[int]]


@dataclass(slots=True, eq=False)
class Step:
    """One step: samples not sent yet by teacher, the teachers asked nothing yet in their order, samples
    on their way. `together` is how many teachers may be asked at once, None where that is not known."""

    step_id: str
    unsent: dict[str, list[int]]
    unstarted: list[str]
    out: dict[str, int] = field(default_factory=dict[str, int])
    together: int | None = None

    def heard(self, teacher: str) -> bool:
        """Whether nothing more will come of a teacher."""
        return not self.unsent[teacher] and not self.out.get(teacher)

    def waiting(self) -> list[str]:
        """Who may still be heard: those asked already, then the others in their order."""
        started = [t for t in self.unsent if t not in self.unstarted and not self.heard(t)]
        return started + self.unstarted

    def out_and_unheard(self) -> int:
        """How many teachers were asked and not heard in full."""
        return len(self.waiting()) - len(self.unstarted)

    def send(self, teacher: str) -> int:
        """The next sample of a teacher goes out."""
        self.out[teacher] = self.out.get(teacher, 0) + 1
        return self.unsent[teacher].pop(0)

    def came_home(self, teacher: str) -> None:
        """A sample came home."""
        self.out[teacher] -= 1


@dataclass(slots=True, eq=False)
class Chain:
    """One teacher's way along a strand. `head` is its next step, `out_at` the step whose first sample is
    on its way, `last` when an answer came home last."""

    strand: "Strand"
    teacher: str
    rank: int
    head: int = 0
    out_at: Step | None = None
    queued: bool = False
    last: float | None = None


class Strand:
    """A run of steps and the chains along it, in the order of the teachers. All steps before `frontier`
    are finished with, those in `opened` are begun and not finished, none behind `furthest` is begun;
    `held` where a follower lags behind on purpose."""

    __slots__ = ("begun", "chains", "frontier", "furthest", "held", "opened", "steps", "trace_id")

    def __init__(self, trace_id: str, works: Sequence[StepWork], place: Mapping[str, int]) -> None:
        self.trace_id = trace_id
        self.steps: list[Step] = []
        for work in works:
            names = sorted((name for name, samples in work.wanted.items() if samples), key=place.__getitem__)
            self.steps.append(Step(work.step_id, {n: list(work.wanted[n]) for n in names}, names))
        named = sorted({name for step in self.steps for name in step.unsent}, key=place.__getitem__)
        self.chains = [Chain(self, name, rank) for rank, name in enumerate(named)]
        self.frontier = 0
        self.furthest = -1
        self.opened: set[int] = set()
        self.begun = False
        self.held = False

    def calls(self) -> Iterator[Call]:
        """The questions that were not sent yet."""
        for step in self.steps:
            for teacher, samples in step.unsent.items():
                for sample in samples:
                    yield Call(step.step_id, teacher, sample)

    def open(self, index: int) -> None:
        """Notes that a teacher is asked at a step."""
        self.opened.add(index)
        self.furthest = max(self.furthest, index)

    def pass_finished(self) -> None:
        """Takes the steps where nobody is waited for any more for finished."""
        self.opened = {index for index in self.opened if self.steps[index].waiting()}
        while self.frontier < len(self.steps) and not self.steps[self.frontier].waiting():
            self.frontier += 1
