"""Teachers, ledger and run together: what asks the questions of a shard."""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.agreement.voting.early_stop import Referee
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.cap_room import CapRoom
from tracemill.flows.labeling.gate_run import Gate, gate_version
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.vote_policy import build_vote_policy, drop_hopeless
from tracemill.flows.run_state.run_records import StartedRun, begin_asking
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import on_interrupt
from tracemill.flows.runtime.progress import Meter
from tracemill.flows.runtime.terminal import say_lines
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import PrivacyError
from tracemill.records.identity import StepId
from tracemill.records.message import Action
from tracemill.records.pair import StepVotes
from tracemill.records.reply import Decision, TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers, check_all
from tracemill.teachers.core.price import nusd_to_usd, usd_down
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import BudgetSettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.gate.value_stop import ValueStop
from tracemill.teachers.ledger.entries import Spent
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.teachers.replay.breaker import Breaker
from tracemill.teachers.replay.replay_run import Redact, ReplayResult, replay

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import Shown

COMING_HOME = "interrupted: up to {:.0f} s for calls in flight to come home, Ctrl-C cuts them off"


@dataclass(slots=True)
class Asking:
    """What a run needs to ask: its teachers, its place in the ledger, its rules."""

    settings: RunSettings
    ledger: Ledger
    run_id: str
    redactor: Redactor
    accepted: frozenset[str]
    """The traces that may be sent to these teachers."""
    gauge: Meter
    prices: PriceBook = field(default_factory=PriceBook)
    """What they cost, from one run to the next."""
    began_s: float = field(default_factory=time.monotonic)
    gate: Gate | None = None
    """What chooses the steps; None where all are asked."""
    room: CapRoom | None = None
    """The room that the caps of the release leave for pairs; None where they leave no step out."""
    states_left: int = 0
    """States of the run that were neither asked nor passed over."""
    told: set[str] = field(default_factory=set[str])
    """Teachers of whom the user was told something."""
    closed: str = ""
    """Why nothing is asked; "" where something may be."""
    breaker: Breaker = field(default_factory=Breaker)
    """Which teachers failed so far."""

    @classmethod
    @contextmanager
    def open(
        cls,
        settings: RunSettings,
        work: Workspace,
        run: StartedRun,
        redactor: Redactor,
        accepted: frozenset[str],
        gauge: Meter,
    ) -> "Iterator[Asking | None]":
        """The asking of a run while the block lasts; None where it has no teachers."""
        if not settings.asked() or settings.budget is None:
            yield None
            return
        with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
            open_run(ledger, run.run_id, settings.budget)
            begin_asking(work, run.run_id, ledger.identity())
            prices = open_book(work)
            gate = Gate.open(settings, work, prices)
            asking = cls(settings, ledger, run.run_id, redactor, accepted, gauge, prices, gate=gate)
            asking.room = CapRoom.open(settings, work)
            asking.closed = run.closed(settings.cap_usd())
            asking.breaker = Breaker({each.name: each.sends_to(os.environ) for each in settings.asked()})
            yield asking

    def decide(
        self, questions: Sequence[Question], before: Sequence[Decision], shown: "Sequence[Shown]"
    ) -> list[Decision]:
        """Which teacher is asked at which step of the traces `shown`. Decisions made before are replayed,
        whatever the gate has learned since; a step that cannot give a pair is asked of nobody."""
        version = gate_version(self.settings)
        found = {(d.step_id, d.teacher): d for d in before if d.gate.partition("+")[0] == version}
        known = {step_id for step_id, _ in found}
        new = [question for question in questions if question.step_id not in known]
        choices = None
        if self.gate is not None:
            left = None if self.settings.budget is None else self._left_usd()
            choices = self.gate.choose(new, shown, version, left, self.states_left)
        fresh = make_gate_decisions(
            questions, self.settings.asked(), self.settings.gate.seed, self.settings.gate, choices
        )
        made = [
            d if choices else replace(d, gate=version)
            for d in drop_hopeless(fresh, self.settings.asked(), build_vote_policy(self.settings))
        ]
        return [found.get((d.step_id, d.teacher), d) for d in made]

    def _left_usd(self) -> float:
        """What the cap of the run has left; all of it in an estimate, which is no run."""
        assert self.settings.budget is not None
        cap = usd_down(self.settings.budget.max_total_usd)
        spent = self._spent() if self.run_id else None
        gone = spent.settled_nusd + spent.reserved_nusd if spent else 0
        return nusd_to_usd(max(cap - gone, 0))

    def learn(self, decisions: Sequence[Decision], votes: Sequence[StepVotes]) -> None:
        """Let the gate learn from what came of a batch, if it does; the next batch is decided by that."""
        if self.gate is not None:
            self.gate.learn(decisions, votes)

    def remember(self, replies: Sequence[TeacherReply]) -> None:
        """Give a ledger that was lost the answers the workspace still holds."""
        refill_session_rows(self.ledger, replies, self.ledger)

    def begin(self, states: int) -> None:
        """Ready to ask, at most all teachers at so many states."""
        self.states_left = states
        self.gauge.begin("questions", self._most(states), nusd_to_usd(self._spent().settled_nusd))

    def pass_over(self, states: int) -> None:
        """So many of the states are finished with: nobody is asked about them again."""
        self.states_left -= states
        self.gauge.expect(fewer=self._most(states))

    def _most(self, states: int) -> int:
        return states * len(self.settings.asked()) * self.settings.replay.samples

    def _spent(self) -> Spent:
        return self.ledger.spent(self.run_id)

    def ask(
        self,
        questions: Sequence[Question],
        decisions: Sequence[Decision],
        states: int,
        referee: Referee | None = None,
        redact: Mapping[str, Redact] | None = None,
        value: ValueStop | None = None,
    ) -> ReplayResult:
        """The replies of what was decided for so many states, as far as the `referee` does not call their
        steps settled and `value` does not stop there; `redact` has, by trace, what takes private things out
        of them. Raises PrivacyError for a question of a trace that nobody accepted to send."""
        if not self.accepted.issuperset(question.trace_id for question in questions):
            raise PrivacyError("a session would be sent that nobody accepted", "consent", "run it again")
        wanted = sum(decision.verdict == "ask" for decision in decisions) * self.settings.replay.samples
        self.gauge.expect(fewer=self._most(states) - wanted)
        self.states_left = max(self.states_left - states, 0)
        if self.gate is not None:
            self.gate.asked()
        later = self.states_left / max(states, 1)
        try:
            return asyncio.run(self._ask(questions, decisions, referee, redact or {}, later, value))
        except asyncio.CancelledError:  # interrupted, and what was in flight did not come home in time
            raise KeyboardInterrupt from None

    async def _ask(
        self,
        questions: Sequence[Question],
        decisions: Sequence[Decision],
        referee: Referee | None,
        redact: Mapping[str, Redact],
        later: float,
        value: ValueStop | None,
    ) -> ReplayResult:
        """The replay. At an interrupt nothing more goes out. What is in flight may be billed, so its answers
        are waited for, as long as the settings allow; a second Ctrl-C does not wait."""
        teachers = build_teachers(self.settings.asked(), os.environ, self._redact, self.prices)
        loop, task, interrupted = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        assert task is not None

        def on_reply(reply: TeacherReply, stored: bool) -> None:
            self.gauge.replied(reply.teacher, None if stored else reply.cost_usd, reply.failure is None)

        def clean(reply: TeacherReply) -> TeacherReply:
            known = redact.get(StepId.parse(reply.step_id).trace_id)
            return known(reply) if known else redact_reply(self.redactor, reply)

        grace_s = self.settings.replay.come_home_s

        def press() -> None:
            self.gauge.note = COMING_HOME.format(grace_s)
            loop.call_soon_threadsafe(interrupted.set)
            loop.call_soon_threadsafe(loop.call_later, grace_s, task.cancel)

        with on_interrupt(press):
            return await replay(
                questions,
                decisions,
                teachers,
                self.ledger,
                self.run_id,
                self.settings.replay,
                on_reply,
                on_wait=lambda wait: self.gauge.waits(*wait),
                on_spared=lambda: self.gauge.expect(fewer=1),
                interrupted=interrupted,
                referee=referee,
                time_left_s=self._time_left_s(),
                later=later,
                redact=clean,
                tell=self._tell,
                value=value,
                breaker=self.breaker,
                closed=self.closed,
                pair_room=self.room,
            )

    def _tell(self, teacher: str, line: str) -> None:
        """Says a line of a teacher, the first of a run; the closing table has them all counted."""
        if teacher not in self.told:
            self.told.add(teacher)
            say_lines([line])

    def _time_left_s(self) -> float | None:
        """Seconds until the deadline of the run, None where it has none."""
        minutes = self.settings.replay.deadline_minutes
        return None if minutes is None else max(self.began_s + minutes * 60 - time.monotonic(), 0.0)

    def _redact(self, text: str) -> str:
        return self.redactor.redact_text(text)[0]

    def book(self, summary: Summary) -> None:
        """Put the run's money into its summary, over all its restarts: what was paid, and what is held
        at the worst case for calls whose price is not known."""
        spent = self._spent()
        summary.spent_usd = nusd_to_usd(spent.settled_nusd)
        summary.held_usd = nusd_to_usd(spent.reserved_nusd)
        summary.held_calls = spent.open_calls
        summary.outages = self.breaker.out()


def refill_session_rows(known: Ledger, replies: Iterable[TeacherReply], into: Ledger) -> None:
    """Store those of the replies that answer and that `known` does not have."""
    answered = {reply.request_key: reply for reply in replies if reply.failure is None}
    found = known.answers_to(list(answered))
    if lost := [reply for key, reply in answered.items() if key not in found]:
        into.remember(lost)


def check_answering(settings: RunSettings) -> None:
    """Raises TeacherError where a teacher cannot answer at all: wrong key, unknown model, no network.
    No text of a session is sent."""
    asyncio.run(check_all(build_teachers(settings.asked(), os.environ)))


def redact_reply(redactor: Redactor, reply: TeacherReply) -> TeacherReply:
    """The reply as it may go into a dataset: a teacher can say what it was never shown."""
    if reply.action is None:
        return reply
    scope = StepId.parse(reply.step_id).trace_id
    message = redactor.redact_message(reply.action.to_message(), scope)[0]
    return replace(reply, action=Action.of(message))


def open_run(ledger: Ledger, run_id: str, budget: BudgetSettings) -> None:
    """Set the caps of a run in the ledger."""
    day, trace = budget.max_day_usd, budget.max_trace_usd
    ledger.open_run(
        run_id,
        usd_down(budget.max_total_usd),
        None if day is None else usd_down(day),
        None if trace is None else usd_down(trace),
    )
