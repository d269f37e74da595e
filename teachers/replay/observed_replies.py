"""What was heard at each step of a replay, and how the step stands by it."""

from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from tracemill.agreement.voting.early_stop import Referee, Standing
from tracemill.records.reply import Decision, TeacherReply
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.gate.value_stop import NOT_WORTH_ON, ValueStop
from tracemill.teachers.planning.replay_plan import Item
from tracemill.teachers.planning.schedule import PairLimits


class PairRoom(Protocol):
    """How many pairs the caps of a release still have room for, by what was answered so far."""

    def rank(self, step_id: str) -> Any:
        """What the steps of a trace are sorted by, the least asked first."""
        ...

    def is_full(self, step_id: str) -> bool:
        """Whether a pair at a step would be dropped."""
        ...

    def most_open(self, trace_id: str) -> int:
        """At how many steps of a trace may be asked at once, so that no pair of theirs is dropped."""
        ...

    def close(self, step_id: str, replies: Sequence[TeacherReply]) -> None:
        """Nothing more is asked at a step that has these replies."""
        ...


class Hearing:
    """The replies so far. Steps of the explored slice, and all where there is no referee, are never
    settled: every teacher is asked there."""

    def __init__(
        self,
        referee: Referee | None,
        decisions: Iterable[Decision],
        families: dict[str, str],
        value: ValueStop | None = None,
        room: PairRoom | None = None,
    ) -> None:
        """`families` has the vendor family of every teacher, by name; `value` says where asking on is not
        worth its cost, and `room` which pairs the release would drop."""
        self.room = room
        self._referee, self._value = referee, value
        self.explored = {d.step_id for d in decisions if d.reason == EXPLORED}
        self._families = families
        self._heard: dict[str, list[TeacherReply]] = {}

    @property
    def stops(self) -> bool:
        """Whether any step can be settled before all its teachers are asked."""
        return self._referee is not None

    def hear(self, reply: TeacherReply) -> None:
        """One more answer, or failure."""
        self._heard.setdefault(reply.step_id, []).append(reply)

    def limits(self) -> PairLimits | None:
        """What a schedule goes by where the release has caps; a step that has answers is never full."""
        if self.room is None:
            return None
        return PairLimits(self.is_full, self.room.most_open, self.close)

    def is_full(self, step_id: str) -> bool:
        """Whether the release would drop a pair at a step at which nothing was answered yet."""
        return self.room is not None and step_id not in self._heard and self.room.is_full(step_id)

    def rank(self, step_id: str) -> Any:
        """What steps of a trace are sorted by where the release has caps: those that were begun first."""
        return step_id not in self._heard, None if self.room is None else self.room.rank(step_id)

    def close(self, step_id: str) -> None:
        """Nothing more is asked at a step."""
        if self.room is not None and step_id in self._heard:
            self.room.close(step_id, self._heard[step_id])

    def close_all_but(self, step_ids: Container[str]) -> None:
        """Nothing more is asked at any other step than these."""
        for step_id in self._heard:
            if step_id not in step_ids:
                self.close(step_id)

    def settled(self, items: Iterable[Item]) -> dict[str, str]:
        """The steps of these unanswered items that need no answer any more, each with the reason."""
        if not self.stops:
            return {}
        waiting: dict[str, dict[str, None]] = {}
        for item in items:
            waiting.setdefault(item.question.step_id, {})[item.teacher.name] = None
        found = {step: self.stand(step, list(names)).settled for step, names in waiting.items()}
        return {step: why for step, why in found.items() if why}

    def stand(self, step_id: str, waiting: Sequence[str]) -> Standing:
        """How a step stands while teachers of these names may still be heard."""
        if self._referee is None or step_id in self.explored:
            return Standing("", len(waiting))
        heard = [reply for reply in self._heard.get(step_id, ()) if reply.teacher not in waiting]
        standing = self._referee.stand(step_id, heard, [self._families[name] for name in waiting])
        if not standing.settled and self._value is not None and self._value.stops(step_id, heard, waiting):
            return Standing(NOT_WORTH_ON, 0)
        return standing

    def in_order(self, teachers: Sequence[Teacher]) -> list[Teacher]:
        """The teachers in the order in which they are asked, of those given cheapest first: where asking may
        stop by value, that which was decided."""
        places = {} if self._value is None else self._value.places
        return sorted(teachers, key=lambda teacher: places.get(teacher.name, len(places)))
