"""Which question goes out next: pure, without a clock or a socket of its own.

A strand is a run of steps whose prompts each extend the one before. Along a strand every teacher walks
a chain, one unanswered question at a time, so that each reads the prompt of the one before from the
provider's cache. The cheapest teacher runs some steps ahead; the others follow, and only to steps that
are not settled. Strands that were begun come before new ones, so that their caches stay
warm and what was paid for becomes a label; among either, the longest path goes first. Where the money does
not last for all, strands go in their order, and no more are begun than it is expected to last for.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tracemill.agreement.voting.early_stop import Standing
from tracemill.teachers.planning.strand_state import Call, Chain, Step, StepWork, Strand
from tracemill.teachers.planning.throughput import Pace

_PRIOR_CALLS = 10
"""Calls at their expected cost that the costs so far are held against."""
_MARGIN = 1.25
"""How many times what begun strands are expected to cost must be left for another to begin beside them."""
AT_CAP = "at the cap of the run"
"""Counter of the chains of questions that the cap of the run ended."""
NOT_NEEDED = "not needed"
FULL = f"{NOT_NEEDED}: the caps of the release have no room for its pair"
DEADLINE = "deadline"
Stand = Callable[[str, Sequence[str]], Standing]
"""How a step stands while teachers of these names may still be heard, in the order they are asked."""


class Funds(NamedTuple):
    """What there is to spend where it does not last for all questions: what each is `expected` to cost, what
    is left of the cap and what was spent so far, all in nano-USD."""

    expected: Mapping[Call, int]
    left_nusd: Callable[[], int]
    spent_nusd: Callable[[], int]


class PairLimits(NamedTuple):
    """What the caps of a release say while steps are asked: whether they would drop a pair at a step
    (`is_full`), at how many steps of a trace may be asked at once so that they drop none (`most_open`), and
    who hears that nothing more will be asked at a step that was begun (`close`)."""

    is_full: Callable[[str], bool]
    most_open: Callable[[str], int]
    close: Callable[[str], None]


class Rules(NamedTuple):
    """`lead`: how many steps of a strand may be begun and not finished when another is begun, None for
    any number: so much is paid at most for steps that a cap then leaves without a label.
    `deadline`: time after which nothing goes out. `width`: most questions out at once."""

    lead: int | None = 8
    deadline: float | None = None
    width: int = 32


class Schedule:
    """All questions of a replay in the order they go out. Each is given once by `next`, or is in
    `dropped` with the reason."""

    def __init__(
        self,
        works: Iterable[tuple[str, Sequence[StepWork]]],
        order: Sequence[str],
        rules: Rules,
        stand: Stand,
        pace: Pace,
        on_drop: Callable[[Call, str], None] | None = None,
        funds: Funds | None = None,
        limits: PairLimits | None = None,
    ) -> None:
        """`works` are strands: the id of a trace and its steps in their order. `order` names the
        teachers, cheapest first; `pace` knows how long their caches live; `on_drop` hears of what is
        dropped, and why. With `funds`, strands are begun in their order, and only as many as they are
        expected to last for: what is bought hardly depends on how many questions are out at once. With
        `limits`, which want one strand a trace, steps are begun only as far as their pairs have room; those
        that have none are dropped as `FULL`."""
        self.dropped: dict[Call, str] = {}
        self._rules, self._stand, self._pace, self._on_drop = rules, stand, pace, on_drop
        place = {name: number for number, name in enumerate(order)}
        self._strands = [Strand(trace_id, steps, place) for trace_id, steps in works]
        self._sent: dict[Call, tuple[Chain, Step, float]] = {}
        self._ready: list[tuple[float, int, Chain, int, bool]] = []
        self._pushed = 0
        for strand in self._strands:
            for chain in strand.chains:
                pace.add(chain.teacher, sum(chain.teacher in step.unstarted for step in strand.steps))
        self._new = sorted(self._strands, key=self._path_s) if funds is None else self._strands[::-1]
        self._funds = funds
        self._limits = limits
        self._place = {id(strand): number for number, strand in enumerate(self._strands)}
        self._owed: dict[Call, int] = {}
        self._owed_nusd = 0
        self._home_nusd = 0

    @property
    def out(self) -> int:
        """Questions on their way."""
        return len(self._sent)

    def next(self, now: float, free: int) -> list[Call]:
        """At most `free` questions that go out at `now`, the most urgent first. None, while nothing is
        on its way: all that will be asked is asked."""
        if self._rules.deadline is not None and now >= self._rules.deadline:
            self.end(DEADLINE, now)
        calls: list[Call] = []
        while len(calls) < free:
            call = self._pop(now)
            if call is not None:
                calls.append(call)
            elif self._new and (not self._sent or self._is_affordable(self._new[-1])):
                strand = self._new.pop()
                self._begin(strand)
                self._look_along(strand, now)
            else:
                break
        return calls

    def _begin(self, strand: Strand) -> None:
        strand.begun = True
        if self._funds is not None:
            self._owed |= {call: self._funds.expected[call] for call in strand.calls()}
            self._owed_nusd = sum(self._owed.values())

    def _is_affordable(self, strand: Strand) -> bool:
        """Whether what is left lasts for all strands that were begun and this one, at the costs so far."""
        funds = self._funds
        if funds is None:
            return True
        cost = sum(funds.expected[call] for call in strand.calls())
        prior = _PRIOR_CALLS * (cost // max(sum(1 for _ in strand.calls()), 1)) or 1
        times = (funds.spent_nusd() + prior) / (self._home_nusd + prior)
        return _MARGIN * (self._owed_nusd + cost) * times <= funds.left_nusd()

    def _no_longer_owed(self, call: Call) -> int:
        owed = self._owed.pop(call, 0)
        self._owed_nusd -= owed
        return owed

    def done(self, call: Call, now: float, answered: bool = True) -> None:
        """A question came home at `now`; `answered` is False where that says nothing of how long the
        teacher takes."""
        chain, step, sent = self._sent.pop(call)
        self._home_nusd += self._no_longer_owed(call)
        if answered:
            self._pace.answered(call.teacher, now - sent)
        step.came_home(call.teacher)
        chain.last = now
        if chain.out_at is step:
            chain.out_at = None
            for _ in step.unsent[call.teacher]:
                self._push(chain, chain.head, first=False)
            chain.head += 1
        if step.heard(call.teacher):
            step.together = None
            self._judge(step)
            if step.unstarted and not step.out_and_unheard():
                self._pace.needed(step.unstarted[0])
        self._look_along(chain.strand, now)

    def end(self, reason: str, now: float, trace_id: str | None = None, teacher: str | None = None) -> None:
        """Drops what was not sent yet: all of it, or that of one trace or one teacher or both."""
        ended = [s for s in self._strands if trace_id is None or s.trace_id == trace_id]
        for strand in ended:
            for step in strand.steps[strand.frontier :]:
                for name in list(step.unsent) if teacher is None else [teacher]:
                    self._drop(step, name, reason)
        for strand in ended:
            self._look_along(strand, now)

    def _pop(self, now: float) -> Call | None:
        """The most urgent question that may go; None where none is ready."""
        while self._ready:
            _, _, chain, index, first = heapq.heappop(self._ready)
            step = chain.strand.steps[index]
            if first:
                chain.queued = False
                if chain.teacher not in step.unstarted:
                    self._look_along(chain.strand, now)
                    continue
                if not self._is_needed(chain, step):
                    continue
                if not self._has_room(chain, index):
                    self._look_along(chain.strand, now)
                    continue
                step.unstarted.remove(chain.teacher)
                chain.out_at = step
                chain.strand.open(index)
                self._pace.asked(chain.teacher)
            elif not step.unsent[chain.teacher]:
                continue
            call = Call(step.step_id, chain.teacher, step.send(chain.teacher))
            self._sent[call] = (chain, step, now)
            return call
        return None

    def _judge(self, step: Step) -> None:
        """Asks how the step stands; where it is settled, nobody else is asked there."""
        if not step.unstarted:
            return
        standing = self._stand(step.step_id, step.waiting())
        step.together = standing.together
        if standing.settled:
            for teacher in list(step.unstarted):
                self._drop(step, teacher, f"{NOT_NEEDED}: {standing.settled}", spared=True)

    def _drop(self, step: Step, teacher: str, reason: str, spared: bool = False) -> None:
        unsent = step.unsent.get(teacher)
        if not unsent:
            return
        for sample in unsent:
            call = Call(step.step_id, teacher, sample)
            self.dropped[call] = reason
            self._no_longer_owed(call)
            if self._on_drop is not None:
                self._on_drop(call, reason)
        unsent.clear()
        if teacher in step.unstarted:
            step.unstarted.remove(teacher)
            step.together = None
            self._pace.dropped(teacher, spared)

    def _look_along(self, strand: Strand, now: float) -> None:
        """Queues every chain of a strand that may go on; followers first, since the leader waits for
        those that do not lag behind on purpose."""
        if not strand.begun:
            return
        if self._limits is not None:
            for index in sorted(strand.opened):
                if not strand.steps[index].waiting():
                    strand.opened.remove(index)
                    self._limits.close(strand.steps[index].step_id)
        while sum(self._advance(chain) for chain in strand.chains):
            pass
        strand.pass_finished()
        strand.held = False
        for chain in reversed(strand.chains):
            self._look(chain, now)

    def _advance(self, chain: Chain) -> bool:
        """Moves the chain over the steps where its teacher is not wanted; whether it moved."""
        steps, before = chain.strand.steps, chain.head
        while chain.out_at is None and chain.head < len(steps):
            step = steps[chain.head]
            if self._is_full(chain.strand, chain.head):
                for teacher in list(step.unstarted):
                    self._drop(step, teacher, FULL, spared=True)
            if step.together is None:
                self._judge(step)
            if chain.teacher in step.unstarted:
                break
            chain.head += 1
        return chain.head != before

    def _look(self, chain: Chain, now: float) -> None:
        if chain.out_at is not None or chain.queued or chain.head == len(chain.strand.steps):
            return
        if self._is_needed(chain, chain.strand.steps[chain.head]) and self._is_time(chain, now):
            chain.queued = True
            self._push(chain, chain.head, first=True)

    def _is_needed(self, chain: Chain, step: Step) -> bool:
        """Whether no answer that is still out could make the chain's next question superfluous."""
        before = step.out_and_unheard() + step.unstarted.index(chain.teacher)
        return before < (step.together or 1)

    def _is_full(self, strand: Strand, index: int) -> bool:
        """Whether a step that is not begun would give a pair for which there is no room."""
        if self._limits is None or index in strand.opened:
            return False
        return self._limits.is_full(strand.steps[index].step_id)

    def _has_room(self, chain: Chain, index: int) -> bool:
        """Whether a step may be begun beside those of its trace that are open, or is begun. One before a
        begun step always may: that waits for teachers who come to it along the strand."""
        strand = chain.strand
        if self._limits is None or index <= strand.furthest:
            return True
        room = len(strand.opened) < self._limits.most_open(strand.trace_id)
        return room and not self._is_full(strand, index)

    def _is_time(self, chain: Chain, now: float) -> bool:
        """Whether the chain is not too far ahead, and its calls will not lie too far apart."""
        if self._limits is not None:
            return self._has_room(chain, chain.head)
        strand, lead = chain.strand, self._rules.lead
        if self._lags(chain, now):
            strand.held = True
            return False
        return lead is None or strand.held or chain.head <= strand.furthest or len(strand.opened) < lead

    def _lags(self, chain: Chain, now: float) -> bool:
        """Whether a follower waits on purpose, so that its calls come in one burst: one by one they
        would lie further apart than the cache lives, and there is time to make them after the leader's."""
        strand, pace = chain.strand, self._pace
        leader = strand.chains[0]
        if (
            chain is leader
            or leader.head >= len(strand.steps)
            or not pace.sparse(leader.teacher, chain.teacher)
        ):
            return False
        if chain.last is not None and pace.outlives(chain.teacher, now - chain.last):
            return False
        leader_s = (len(strand.steps) - leader.head) * pace.step_s(leader.teacher)
        burst_s = (len(strand.steps) - chain.head) * pace.step_s(chain.teacher)
        longest_s = max(self._path_s(other) for other in self._strands if other.begun)
        return leader_s + burst_s < max(longest_s, pace.work_s() / self._rules.width)

    def _path_s(self, strand: Strand) -> float:
        """Seconds the strand still takes at the pace so far."""
        left = len(strand.steps) - strand.frontier
        return left * max((self._pace.step_s(chain.teacher) for chain in strand.chains), default=0.0)

    def _push(self, chain: Chain, index: int, first: bool) -> None:
        """Queues a question; the longer the path that hangs on it, the sooner it goes, and with funds that do
        not last those of earlier strands go first."""
        along = chain.strand.chains[chain.rank :]
        left = len(chain.strand.steps) - index
        path_s = left * max(self._pace.step_s(other.teacher) for other in along)
        self._pushed += 1
        turn = -path_s if self._funds is None else self._place[id(chain.strand)]
        heapq.heappush(self._ready, (turn, self._pushed, chain, index, first))
