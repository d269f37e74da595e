"""Whether asking goes on at a step after what was heard there: the stop by value of a replay.

All it goes by is in the decisions, which were written before any money was spent, and in the weights that
decided them, so that a rerun over the same answers stops where the first run did.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tracemill.agreement.voting.early_stop import Referee
from tracemill.records.reply import Decision, TeacherReply
from tracemill.teachers.gate.value_stages import Stages, are_own_answers, is_worth, value_stage_words

NOT_WORTH_ON = "asking on is not worth its cost"


@dataclass(frozen=True, slots=True)
class Look:
    """What the answers so far say before one more teacher is asked: their words, the probability of a pair,
    None where too little is known to go by it, and whether to go on."""

    heard: tuple[str, ...]
    belief: float | None
    verdict: Literal["go on", "stop"]


class ValueStop:
    """Looks at the steps of a replay whose decisions have a price."""

    def __init__(
        self,
        referee: Referee,
        decisions: Iterable[Decision],
        families: Mapping[str, str],
        stages_of: Callable[[str], Stages],
    ) -> None:
        """`families` has the vendor family of every teacher by name; `stages_of` gives what decides between
        teachers under a gate as decisions name it."""
        self._referee, self._families, self._stages_of = referee, families, stages_of
        self._rows: dict[str, dict[str, Decision]] = {}
        self._known: dict[tuple[str, tuple[str, ...]], Decision] = {}
        for decision in decisions:
            if decision.verdict == "ask" and decision.place is not None:
                self._rows.setdefault(decision.step_id, {})[decision.teacher] = decision
            if decision.heard_verdict:
                self._known[decision.step_id, decision.heard] = decision
        self.places = {name: _place(row) for rows in self._rows.values() for name, row in rows.items()}
        """Where each teacher comes among those asked at a step."""

    def stops(self, step_id: str, replies: Sequence[TeacherReply], waiting: Sequence[str]) -> bool:
        """Whether nobody of those waiting is worth asking, after these replies."""
        rows = self._rows.get(step_id, {})
        due = min(
            (name for name in waiting if name in rows), key=lambda name: _place(rows[name]), default=None
        )
        if due is None or not replies or not self._referee.knows(step_id):
            return False
        return self._look(rows, due, replies).verdict == "stop"

    def with_looks(self, decisions: Sequence[Decision], replies: Iterable[TeacherReply]) -> list[Decision]:
        """The decisions with what was heard before each teacher that comes after others, as far as the label
        was open by then; of explored steps as it would have been."""
        heard: dict[str, list[TeacherReply]] = {}
        for reply in replies:
            heard.setdefault(reply.step_id, []).append(reply)
        looks: dict[tuple[str, str], Look] = {}
        for step_id in {decision.step_id for decision in decisions} & heard.keys():
            looks |= self._along(step_id, heard[step_id])
        return [_with(d, looks.get((d.step_id, d.teacher))) for d in decisions]

    def _along(self, step_id: str, replies: Sequence[TeacherReply]) -> dict[tuple[str, str], Look]:
        rows, found = self._rows.get(step_id, {}), dict[tuple[str, str], Look]()
        order = sorted(rows, key=lambda name: _place(rows[name]))
        answered = {reply.teacher for reply in replies}
        for at in range(1, len(order)):
            before = [reply for reply in replies if reply.teacher in order[:at]]
            waiting = [self._families[name] for name in order[at:]]
            if order[at - 1] not in answered or self._referee.stand(step_id, before, waiting).settled:
                break
            look = found[step_id, order[at]] = self._look(rows, order[at], before)
            if look.verdict == "stop":
                break
        return found

    def _look(self, rows: Mapping[str, Decision], due: str, replies: Sequence[TeacherReply]) -> Look:
        row = rows[due]
        asked = sorted({r.teacher for r in replies} & rows.keys(), key=lambda name: _place(rows[name]))
        words = value_stage_words(*self._referee.told(row.step_id, replies, asked))
        known = self._known.get((row.step_id, words))
        if known is not None:
            belief = known.heard_belief
        else:
            belief = self._stages_of(row.gate).probability(row.features, words, len(asked))
        if belief is None:
            return Look(words, None, "stop" if are_own_answers(words) else "go on")
        enough = is_worth(belief, row.utility or 0.0, row.price or 0.0, row.to_go_usd or 0.0)
        return Look(words, belief, "go on" if enough else "stop")


def _place(decision: Decision) -> int:
    return decision.place or 0


def _with(decision: Decision, look: Look | None) -> Decision:
    if look is None:
        return decision
    return replace(decision, heard=look.heard, heard_belief=look.belief, heard_verdict=look.verdict)
