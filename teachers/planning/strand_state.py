"""Hold the state of what is asked along a strand; the schedule makes the decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class OutgoingCall(NamedTuple):
    """One question as it is sent to a teacher."""

    step_id: str
    teacher: str
    sample: int


class StepWork(NamedTuple):
    """A step and the samples to obtain from each teacher there."""

    step_id: str
    wanted: Mapping[str, Sequence[int]]


@dataclass(slots=True, eq=False)
class StepProgress:
    """The progress of asking at one step.

    `unsent` maps teachers to samples that are not sent, `unstarted` lists the teachers not asked yet in
    order, `in_flight` counts sent samples by teacher. `batch_size` is how many teachers may be asked at
    once, None if unknown.
    """

    step_id: str
    unsent: dict[str, list[int]]
    unstarted: list[str]
    in_flight: dict[str, int] = field(default_factory=dict[str, int])
    batch_size: int | None = None

    def is_answered(self, teacher: str) -> bool:
        """Return whether nothing more will come from a teacher."""
        return not self.unsent[teacher] and not self.in_flight.get(teacher)

    def waiting(self) -> list[str]:
        """Return the teachers that may still answer: those asked already, then the others in order."""
        started = [t for t in self.unsent if t not in self.unstarted and not self.is_answered(t)]
        return started + self.unstarted

    def unanswered_count(self) -> int:
        """Return how many teachers were asked and have not answered in full."""
        return len(self.waiting()) - len(self.unstarted)

    def send(self, teacher: str) -> int:
        """Return the teacher's next sample, which is now in flight."""
        self.in_flight[teacher] = self.in_flight.get(teacher, 0) + 1
        return self.unsent[teacher].pop(0)

    def receive(self, teacher: str) -> None:
        """Record that a sample of the teacher was answered or failed."""
        self.in_flight[teacher] -= 1


@dataclass(slots=True, eq=False)
class TeacherChain:
    """One teacher's progress along a sequence of steps.

    `head` is its next step, `out_at` the step whose first sample is in flight, `last` the time of its last
    answer.
    """

    strand: "StepSequence"
    teacher: str
    rank: int
    head: int = 0
    out_at: StepProgress | None = None
    queued: bool = False
    last: float | None = None


class StepSequence:
    """A sequence of steps, with one chain per teacher along it, in the order of the teachers.

    Steps before `frontier` are finished, those in `opened` are begun and not finished, none after
    `furthest` is begun. `lagging` is whether a follower is delayed on purpose.
    """

    __slots__ = ("begun", "chains", "frontier", "furthest", "lagging", "opened", "steps", "trace_id")

    def __init__(self, trace_id: str, works: Sequence[StepWork], place: Mapping[str, int]) -> None:
        self.trace_id = trace_id
        self.steps: list[StepProgress] = []
        for work in works:
            names = sorted((name for name, samples in work.wanted.items() if samples), key=place.__getitem__)
            self.steps.append(StepProgress(work.step_id, {n: list(work.wanted[n]) for n in names}, names))
        named = sorted({name for step in self.steps for name in step.unsent}, key=place.__getitem__)
        self.chains = [TeacherChain(self, name, rank) for rank, name in enumerate(named)]
        self.frontier = 0
        self.furthest = -1
        self.opened: set[int] = set()
        self.begun = False
        self.lagging = False

    def calls(self) -> Iterator[OutgoingCall]:
        """Yield the questions that were not sent."""
        for step in self.steps:
            for teacher, samples in step.unsent.items():
                for sample in samples:
                    yield OutgoingCall(step.step_id, teacher, sample)

    def open(self, index: int) -> None:
        """Record that a teacher is asked at a step."""
        self.opened.add(index)
        self.furthest = max(self.furthest, index)

    def pass_finished(self) -> None:
        """Move the frontier past steps without outstanding answers."""
        self.opened = {index for index in self.opened if self.steps[index].waiting()}
        while self.frontier < len(self.steps) and not self.steps[self.frontier].waiting():
            self.frontier += 1
