"""Collect the replies at each step of a replay and decide where asking ends."""

from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from tracemill.agreement.voting.early_stop import EarlyStopper, StopDecision
from tracemill.records.reply import AskDecision, TeacherReply
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.planning.replay_plan import WantedAnswer
from tracemill.teachers.planning.schedule import PairLimits


class PairCapacity(Protocol):
    """The pairs that the caps of a release still allow, given the answers so far."""

    def rank(self, step_id: str) -> Any:
        """Return the sort key of a step within its trace, the least asked first."""
        ...

    def is_full(self, step_id: str) -> bool:
        """Return whether a pair at a step would be dropped."""
        ...

    def most_open(self, trace_id: str) -> int:
        """Return the number of steps of a trace that may be asked at once without a dropped pair."""
        ...

    def close(self, step_id: str, replies: Sequence[TeacherReply]) -> None:
        """End asking at a step that has these replies."""
        ...


class ReplyCollector:
    """A collector of replies by step, which decides where no more teachers are asked.

    Every teacher is asked at explored steps, and at all steps if there is no `stopper`.
    """

    def __init__(
        self,
        stopper: EarlyStopper | None,
        decisions: Iterable[AskDecision],
        families: dict[str, str],
        room: PairCapacity | None = None,
    ) -> None:
        """Start without replies.

        `families` has the vendor family of every teacher by name, `room` says which pairs the release would
        drop.
        """
        self.room = room
        self._stopper = stopper
        self.explored = {d.step_id for d in decisions if d.reason == EXPLORED}
        self._families = families
        self._replies: dict[str, list[TeacherReply]] = {}

    @property
    def can_stop_early(self) -> bool:
        """Return whether a step can be decided before all its teachers are asked."""
        return self._stopper is not None

    def add(self, reply: TeacherReply) -> None:
        """Add an answer or a failure."""
        self._replies.setdefault(reply.step_id, []).append(reply)

    def limits(self) -> PairLimits | None:
        """Return the limits for a schedule where the release has caps, else None.

        A step that has answers is never full.
        """
        if self.room is None:
            return None
        return PairLimits(self.is_full, self.room.most_open, self.close)

    def is_full(self, step_id: str) -> bool:
        """Return whether the release would drop a pair at a step that has no answer yet."""
        return self.room is not None and step_id not in self._replies and self.room.is_full(step_id)

    def rank(self, step_id: str) -> Any:
        """Return the sort key of a step within its trace: steps with answers first."""
        return step_id not in self._replies, None if self.room is None else self.room.rank(step_id)

    def close(self, step_id: str) -> None:
        """End asking at a step."""
        if self.room is not None and step_id in self._replies:
            self.room.close(step_id, self._replies[step_id])

    def close_all_but(self, step_ids: Container[str]) -> None:
        """End asking at every step but these."""
        for step_id in self._replies:
            if step_id not in step_ids:
                self.close(step_id)

    def decided_steps(self, items: Iterable[WantedAnswer]) -> dict[str, str]:
        """Return the steps of these unanswered items at which no answer is needed, each with the reason."""
        if not self.can_stop_early:
            return {}
        waiting: dict[str, dict[str, None]] = {}
        for item in items:
            waiting.setdefault(item.question.step_id, {})[item.teacher.name] = None
        found = {step: self.decide(step, list(names)).reason for step, names in waiting.items()}
        return {step: why for step, why in found.items() if why}

    def decide(self, step_id: str, waiting: Sequence[str]) -> StopDecision:
        """Return whether asking ends at a step while teachers of these names may still answer."""
        if self._stopper is None or step_id in self.explored:
            return StopDecision("", len(waiting))
        replies = [reply for reply in self._replies.get(step_id, ()) if reply.teacher not in waiting]
        return self._stopper.decide(step_id, replies, [self._families[name] for name in waiting])
