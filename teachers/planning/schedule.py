"""Decide which question goes out next; pure, without a clock or a socket.

A strand is a run of steps whose prompts each extend the one before. Along a strand every teacher follows a
chain with one unanswered question at a time, so that each prompt reads the one before from the provider's
cache. The cheapest teacher runs some steps ahead; the others follow, and only to undecided steps. Begun
strands come before new ones, so that caches stay warm and what was paid for becomes a label; among either,
the longest path goes first. Where money is short, strands go in their order, no more are begun than it is
expected to last for, and where answers turn out dearer, the later ones wait until the earlier are finished.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tracemill.agreement.voting.early_stop import StopDecision
from tracemill.teachers.planning.strand_state import (
    OutgoingCall,
    StepProgress,
    StepSequence,
    StepWork,
    TeacherChain,
)
from tracemill.teachers.planning.throughput import TeacherPace

_PRIOR_CALLS = 10
_PRIOR_TIMES = 6.0
"""Prior on actual over expected cost, and its weight in calls at their expected cost.

It is high: while costs are unknown, few strands are begun, and what is begun must be paid for.
"""
_MARGIN = 1.25
"""Ratio of money left to the expected cost of begun strands that another strand needs."""
AT_CAP, AT_DAY_CAP = "at the cap of the run", "at the cap of the day"
"""Counters of chains that the cap of the run, or of the day, ended."""
NOT_NEEDED = "not needed"
FULL = f"{NOT_NEEDED}: the caps of the release have no room for its pair"
DEADLINE = "deadline"
Decide = Callable[[str, Sequence[str]], StopDecision]
"""(step id, names of teachers that may still answer, in order) to whether asking ends there."""


class ScarceBudget(NamedTuple):
    """A budget that does not last for all questions, in nano-USD.

    `expected` is the cost of each, `left_nanousd` the rest of the cap, `spent_nanousd` the money spent.
    """

    expected: Mapping[OutgoingCall, int]
    left_nanousd: Callable[[], int]
    spent_nanousd: Callable[[], int]


class PairLimits(NamedTuple):
    """The caps of a release while steps are asked.

    `is_full`: whether a pair at a step would be dropped. `most_open`: the number of steps of a trace that
    may be asked at once without a dropped pair. `close`: called when asking ends at a begun step.
    """

    is_full: Callable[[str], bool]
    most_open: Callable[[str], int]
    close: Callable[[str], None]


class ScheduleRules(NamedTuple):
    """The limits of a schedule.

    `lead`: how many steps of a sequence may be open when another is begun, None for any number; after a cap
    they stay without a label. `deadline`: time after which nothing is sent. `width`: maximum questions in
    flight.
    """

    lead: int | None = 8
    deadline: float | None = None
    width: int = 32


class Schedule:
    """The questions of a replay in the order of sending.

    Each is returned once by `next`, or is in `dropped` with the reason.
    """

    def __init__(
        self,
        works: Iterable[tuple[str, Sequence[StepWork]]],
        order: Sequence[str],
        rules: ScheduleRules,
        decide: Decide,
        pace: TeacherPace,
        on_drop: Callable[[OutgoingCall, str], None] | None = None,
        budget: ScarceBudget | None = None,
        limits: PairLimits | None = None,
    ) -> None:
        """Plan the sequences `works`: trace ids with their steps in order.

        `order` names the teachers, cheapest first; `pace` has their cache lifetimes; `on_drop` gets dropped
        questions with the reason. With a `budget`, sequences are begun in order, and only as many as it is
        expected to cover, so that the answers bought hardly depend on the number of calls at once. With
        `limits`, which need one sequence per trace, steps are begun only if the caps allow their pairs; the
        others are dropped as `FULL`.
        """
        self.dropped: dict[OutgoingCall, str] = {}
        self._rules, self._decide, self._pace, self._on_drop = rules, decide, pace, on_drop
        place = {name: number for number, name in enumerate(order)}
        self._strands = [StepSequence(trace_id, steps, place) for trace_id, steps in works]
        self._sent: dict[OutgoingCall, tuple[TeacherChain, StepProgress, float]] = {}
        self._ready: list[tuple[float, int, TeacherChain, int, bool]] = []
        self._pushed = 0
        for strand in self._strands:
            for chain in strand.chains:
                pace.add(chain.teacher, sum(chain.teacher in step.unstarted for step in strand.steps))
        self._new = sorted(self._strands, key=self._path_s) if budget is None else self._strands[::-1]
        self._budget = budget
        self._limits = limits
        self._place = {id(strand): number for number, strand in enumerate(self._strands)}
        self._committed: dict[OutgoingCall, tuple[int, int]] = {}
        self._committed_nanousd: dict[int, int] = {}
        self._finished_nanousd = 0
        costs = budget.expected.values() if budget is not None else ()
        self._prior_nanousd = _PRIOR_CALLS * sum(costs) // max(len(costs), 1) or 1

    @property
    def in_flight(self) -> int:
        """Return the number of questions in flight."""
        return len(self._sent)

    def next(self, now: float, free: int) -> list[OutgoingCall]:
        """Return at most `free` questions to send at `now`, the most urgent first.

        An empty list while nothing is in flight means that everything is asked.
        """
        if self._rules.deadline is not None and now >= self._rules.deadline:
            self.end(DEADLINE, now)
        calls: list[OutgoingCall] = []
        while len(calls) < free:
            call = self._pop(now)
            if call is not None:
                calls.append(call)
            elif self._new and (not self._sent or self._is_affordable(self._new[-1])):
                strand = self._new.pop()
                self._begin(strand)
                self._update_strand(strand, now)
            else:
                break
        return calls

    def _begin(self, strand: StepSequence) -> None:
        strand.begun = True
        if self._budget is not None:
            place, costs = self._place[id(strand)], {c: self._budget.expected[c] for c in strand.calls()}
            self._committed |= {call: (place, cost) for call, cost in costs.items()}
            self._committed_nanousd[place] = sum(costs.values())

    def _is_affordable(self, strand: StepSequence) -> bool:
        """Return whether the money lasts for the begun sequences and this one, at the costs so far."""
        budget = self._budget
        if budget is None:
            return True
        cost = sum(budget.expected[call] for call in strand.calls())
        return self._lasts_for(_MARGIN * (sum(self._committed_nanousd.values()) + cost), budget)

    def _comes_in_turn(self, strand: StepSequence) -> bool:
        """Return whether the money lasts for a begun sequence and all before it, at the costs so far.

        It always does for the first one, so that begun sequences are finished in order.
        """
        if self._budget is None or not self._sent:
            return True
        place = self._place[id(strand)]
        before = [cost for other, cost in self._committed_nanousd.items() if other < place]
        own = self._committed_nanousd.get(place, 0)
        return not any(before) or self._lasts_for(sum(before) + own, self._budget)

    def _lasts_for(self, expected_nanousd: float, budget: ScarceBudget) -> bool:
        """Return whether the money left covers calls of an expected cost, scaled by finished calls."""
        times = (budget.spent_nanousd() + _PRIOR_TIMES * self._prior_nanousd) / (
            self._finished_nanousd + self._prior_nanousd
        )
        return expected_nanousd * times <= budget.left_nanousd()

    def _uncommit(self, call: OutgoingCall) -> int:
        place, committed = self._committed.pop(call, (0, 0))
        if committed:
            self._committed_nanousd[place] -= committed
            if not self._committed_nanousd[place]:
                del self._committed_nanousd[place]
        return committed

    def done(self, call: OutgoingCall, now: float, answered: bool = True) -> None:
        """Record that a question finished at `now`.

        `answered` is False if its time says nothing about the teacher's latency.
        """
        chain, step, sent = self._sent.pop(call)
        self._finished_nanousd += self._uncommit(call)
        if answered:
            self._pace.answered(call.teacher, now - sent)
        step.receive(call.teacher)
        chain.last = now
        if chain.out_at is step:
            chain.out_at = None
            for _ in step.unsent[call.teacher]:
                self._push(chain, chain.head, first=False)
            chain.head += 1
        if step.is_answered(call.teacher):
            step.batch_size = None
            self._decide_step(step)
            if step.unstarted and not step.unanswered_count():
                self._pace.needed(step.unstarted[0])
        self._update_strand(chain.strand, now)

    def end(self, reason: str, now: float, trace_id: str | None = None, teacher: str | None = None) -> None:
        """Drop the unsent questions: all of them, or those of one trace, one teacher or both."""
        ended = [s for s in self._strands if trace_id is None or s.trace_id == trace_id]
        for strand in ended:
            for step in strand.steps[strand.frontier :]:
                for name in list(step.unsent) if teacher is None else [teacher]:
                    self._drop(step, name, reason)
        for strand in ended:
            self._update_strand(strand, now)

    def _pop(self, now: float) -> OutgoingCall | None:
        """Return the most urgent question that may go; None if none is ready."""
        while self._ready and self._comes_in_turn(self._ready[0][2].strand):
            _, _, chain, index, first = heapq.heappop(self._ready)
            step = chain.strand.steps[index]
            if first:
                chain.queued = False
                if chain.teacher not in step.unstarted:
                    self._update_strand(chain.strand, now)
                    continue
                if not self._is_needed(chain, step):
                    continue
                if not self._may_be_open(chain, index):
                    self._update_strand(chain.strand, now)
                    continue
                step.unstarted.remove(chain.teacher)
                chain.out_at = step
                chain.strand.open(index)
                self._pace.asked(chain.teacher)
            elif not step.unsent[chain.teacher]:
                continue
            call = OutgoingCall(step.step_id, chain.teacher, step.send(chain.teacher))
            self._sent[call] = (chain, step, now)
            return call
        return None

    def _decide_step(self, step: StepProgress) -> None:
        """Decide a step; if asking ends, drop its other questions."""
        if not step.unstarted:
            return
        decision = self._decide(step.step_id, step.waiting())
        step.batch_size = decision.batch_size
        if decision.reason:
            for teacher in list(step.unstarted):
                self._drop(step, teacher, f"{NOT_NEEDED}: {decision.reason}", skipped=True)

    def _drop(self, step: StepProgress, teacher: str, reason: str, skipped: bool = False) -> None:
        unsent = step.unsent.get(teacher)
        if not unsent:
            return
        for sample in unsent:
            call = OutgoingCall(step.step_id, teacher, sample)
            self.dropped[call] = reason
            self._uncommit(call)
            if self._on_drop is not None:
                self._on_drop(call, reason)
        unsent.clear()
        if teacher in step.unstarted:
            step.unstarted.remove(teacher)
            step.batch_size = None
            self._pace.dropped(teacher, skipped)

    def _update_strand(self, strand: StepSequence, now: float) -> None:
        """Queue every chain of a sequence that may continue.

        Followers come first, since the leader waits for those that are not delayed on purpose.
        """
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
        strand.lagging = False
        for chain in reversed(strand.chains):
            self._queue_chain(chain, now)

    def _advance(self, chain: TeacherChain) -> bool:
        """Move the chain past steps without a question to its teacher; return whether it moved."""
        steps, before = chain.strand.steps, chain.head
        while chain.out_at is None and chain.head < len(steps):
            step = steps[chain.head]
            if self._is_full(chain.strand, chain.head):
                for teacher in list(step.unstarted):
                    self._drop(step, teacher, FULL, skipped=True)
            if step.batch_size is None:
                self._decide_step(step)
            if chain.teacher in step.unstarted:
                break
            chain.head += 1
        return chain.head != before

    def _queue_chain(self, chain: TeacherChain, now: float) -> None:
        if chain.out_at is not None or chain.queued or chain.head == len(chain.strand.steps):
            return
        if self._is_needed(chain, chain.strand.steps[chain.head]) and self._is_time(chain, now):
            chain.queued = True
            self._push(chain, chain.head, first=True)

    def _is_needed(self, chain: TeacherChain, step: StepProgress) -> bool:
        """Return whether no answer in flight could make the chain's next question superfluous."""
        before = step.unanswered_count() + step.unstarted.index(chain.teacher)
        return before < (step.batch_size or 1)

    def _is_full(self, strand: StepSequence, index: int) -> bool:
        """Return whether the caps would drop the pair of a step that is not begun."""
        if self._limits is None or index in strand.opened:
            return False
        return self._limits.is_full(strand.steps[index].step_id)

    def _may_be_open(self, chain: TeacherChain, index: int) -> bool:
        """Return whether a step may be open beside the open steps of its trace.

        Steps before a begun one always may: teachers reach them along the sequence.
        """
        strand = chain.strand
        if self._limits is None or index <= strand.furthest:
            return True
        room = len(strand.opened) < self._limits.most_open(strand.trace_id)
        return room and not self._is_full(strand, index)

    def _is_time(self, chain: TeacherChain, now: float) -> bool:
        """Return whether the chain is not too far ahead, and its calls will be close enough for the cache."""
        if self._limits is not None:
            return self._may_be_open(chain, chain.head)
        strand, lead = chain.strand, self._rules.lead
        if self._lags(chain, now):
            strand.lagging = True
            return False
        return lead is None or strand.lagging or chain.head <= strand.furthest or len(strand.opened) < lead

    def _lags(self, chain: TeacherChain, now: float) -> bool:
        """Return whether a follower is delayed on purpose, so that its calls come in one burst.

        One by one they would be further apart than its cache lives, and there is time for them after the
        leader's.
        """
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

    def _path_s(self, strand: StepSequence) -> float:
        """Return the seconds that the sequence still takes at the pace so far."""
        left = len(strand.steps) - strand.frontier
        return left * max((self._pace.step_s(chain.teacher) for chain in strand.chains), default=0.0)

    def _push(self, chain: TeacherChain, index: int, first: bool) -> None:
        """Queue a question: the longer its remaining path, the sooner it is sent.

        With a scarce budget, earlier sequences go first.
        """
        along = chain.strand.chains[chain.rank :]
        left = len(chain.strand.steps) - index
        path_s = left * max(self._pace.step_s(other.teacher) for other in along)
        self._pushed += 1
        turn = -path_s if self._budget is None else self._place[id(chain.strand)]
        heapq.heappush(self._ready, (turn, self._pushed, chain, index, first))
