"""What was heard at each step of a replay, and how the step stands by it."""

from collections.abc import Iterable, Sequence

from tracemill.agreement.voting.early_stop import Referee, Standing
from tracemill.records.reply import Decision, TeacherReply
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.gate.value_stop import NOT_WORTH_ON, ValueStop
from tracemill.teachers.planning.replay_plan import Item


class Hearing:
    """The replies so far. Steps of the explored slice, and all where there is no referee, are never
    settled: every teacher is asked there."""

    def __init__(
        self,
        referee: Referee | None,
        decisions: Iterable[Decision],
        families: dict[str, str],
        value: ValueStop | None = None,
    ) -> None:
        """`families` has the vendor family of every teacher, by name; `value` says where asking on is not
        worth its cost."""
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
