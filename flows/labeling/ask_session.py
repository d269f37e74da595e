"""Ask the teachers of a run: its ledger, gate, deadline and circuit breaker."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.agreement.voting.early_stop import EarlyStopper
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.cap_room import RemainingPairs
from tracemill.flows.labeling.gate_run import Gate, gate_version
from tracemill.flows.labeling.judge_setup import judge_of
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.vote_policy import build_vote_policy, drop_hopeless
from tracemill.flows.run_state.run_records import StartedRun, begin_asking
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import on_interrupt
from tracemill.flows.runtime.progress import ProgressMeter
from tracemill.flows.runtime.terminal import say_lines
from tracemill.pairs.judge import JUDGE_VERSION, Judge
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import PrivacyError
from tracemill.records.identity import StepId
from tracemill.records.message import Action
from tracemill.records.pair import StepVotes
from tracemill.records.reply import AskDecision, TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers, check_all
from tracemill.teachers.core.price import nanousd_to_usd, usd_down
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, BudgetSettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import RunSpending
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.teachers.replay.breaker import CircuitBreaker
from tracemill.teachers.replay.buy_answer import RetryWait
from tracemill.teachers.replay.replay_run import ReplayObserver, ReplayRequest, ReplayResult, replay
from tracemill.train.hints.hint_question import HINT_VERSION

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import ShownTrace

DISPUTED, FAILED_ACTION = "the votes make no pair", "the action failed"
FINISHING = "interrupted: up to {:.0f} s for calls in flight to finish, Ctrl-C cuts them off"


@dataclass(slots=True)
class AskSession:
    """The parts of a run that asks: its teachers, its ledger, its gate and its breaker."""

    settings: RunSettings
    ledger: Ledger
    run_id: str
    redactor: Redactor
    accepted: frozenset[str]
    """The traces that may be sent to these teachers."""
    meter: ProgressMeter
    prices: PriceBook = field(default_factory=PriceBook)
    """What they cost, from one run to the next."""
    began_s: float = field(default_factory=time.monotonic)
    gate: Gate | None = None
    """What chooses the steps; None if all are asked."""
    room: RemainingPairs | None = None
    """The room that the caps of the release leave for pairs; None if they leave no step out."""
    states_left: int = 0
    """States of the run that were neither asked nor passed over."""
    told: set[str] = field(default_factory=set[str])
    """Teachers of whom the user was told something."""
    judge: Judge | None = None
    """What is asked where the teachers' votes make no pair."""
    closed: str = ""
    """Why nothing is asked; "" where something may be."""
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
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
        meter: ProgressMeter,
    ) -> "Iterator[AskSession]":
        """Open the session of a run with teachers and a budget during the block."""
        assert settings.budget is not None
        with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
            open_run(ledger, run.run_id, settings.budget)
            begin_asking(work, run.run_id, ledger.identity())
            prices = open_book(work)
            yield cls(
                settings,
                ledger,
                run.run_id,
                redactor,
                accepted,
                meter,
                prices,
                gate=Gate.open(settings, work, prices),
                room=RemainingPairs.open(settings, work),
                closed=run.closed(settings.cap_usd()),
                breaker=CircuitBreaker({each.name: each.sends_to(os.environ) for each in settings.models()}),
                judge=judge_of(settings),
            )

    def decide(
        self, questions: Sequence[Question], before: Sequence[AskDecision], shown: "Sequence[ShownTrace]"
    ) -> list[AskDecision]:
        """Decide which teachers are asked at each step of the traces `shown`.

        Earlier decisions are reused, whatever the gate has learned since; a step that cannot give a pair is
        not asked.
        """
        version = gate_version(self.settings)
        found = {(d.step_id, d.teacher): d for d in before if d.gate.partition("+")[0] == version}
        known = {step_id for step_id, _ in found}
        new = [question for question in questions if question.step_id not in known]
        choices = None
        if self.gate is not None:
            left = None if self.settings.budget is None else self._left_usd()
            choices = self.gate.choose(new, shown, version, left, self.states_left)
        fresh = make_gate_decisions(
            questions, self.settings.asked_teachers(), self.settings.gate.seed, self.settings.gate, choices
        )
        made = [
            d if choices else replace(d, gate=version)
            for d in drop_hopeless(fresh, self.settings.asked_teachers(), build_vote_policy(self.settings))
        ]
        return [found.get((d.step_id, d.teacher), d) for d in made]

    def _left_usd(self) -> float:
        """Return the USD left under the run's cap; the whole cap in an estimate."""
        assert self.settings.budget is not None
        cap = usd_down(self.settings.budget.max_total_usd)
        spent = self._spent() if self.run_id else None
        gone = spent.settled_nanousd + spent.reserved_nanousd if spent else 0
        return nanousd_to_usd(max(cap - gone, 0))

    def ask_judge(self, questions: Sequence[Question], order: str) -> ReplayResult:
        """Ask the judge in one order, under the cap of the run."""
        assert self.judge is not None
        assert self.settings.judge is not None
        self.meter.expect(fewer=-len(questions))
        named = self.settings.judge.model_copy(update={"name": self.judge.teacher(order)})
        return self._run(self._request_to(named, questions, DISPUTED, JUDGE_VERSION))

    def ask_hints(self, shown: "Sequence[ShownTrace]", questions: Sequence[Question]) -> ReplayResult:
        """Ask the session's single teacher for hints at steps of these traces, under the cap of the run.

        Raises PrivacyError for a trace without consent.
        """
        self._require_accepted(shown)
        [writer] = self.settings.asked_teachers()
        request = self._request_to(writer, questions, FAILED_ACTION, HINT_VERSION)
        return self._run(replace(request, redact=_redaction_of(shown)))

    def _request_to(
        self, teacher: BaseTeacherSettings, questions: Sequence[Question], why: str, version: str
    ) -> ReplayRequest:
        """Return a request to ask one teacher each of these questions once."""
        return ReplayRequest(
            questions,
            [AskDecision(each.step_id, teacher.name, "ask", why, version, 1.0, 0.0) for each in questions],
            build_teachers([teacher], os.environ, self._redact, self.prices),
            self.ledger,
            self.run_id,
            self.settings.replay.model_copy(update={"samples": 1}),
            breaker=self.breaker,
            closed=self.closed,
            time_left_s=self._time_left_s(),
        )

    def _require_accepted(self, shown: "Sequence[ShownTrace]") -> None:
        if not self.accepted.issuperset(item.trace.trace_id for item in shown):
            raise PrivacyError("a session would be sent without consent", "consent", "run it again")

    def learn(self, decisions: Sequence[AskDecision], votes: Sequence[StepVotes]) -> None:
        """Update the gate with the decisions and votes of a batch, for its decisions on the next batch."""
        if self.gate is not None:
            self.gate.learn(decisions, votes)

    def remember(self, replies: Sequence[TeacherReply]) -> None:
        """Restore the answers that the workspace still has to a ledger that was lost."""
        refill_session_rows(self.ledger, replies, self.ledger)

    def begin(self, states: int) -> None:
        """Set the meter to the maximum: all teachers at this number of states."""
        self.states_left = states
        self.meter.begin("questions", self._most(states), nanousd_to_usd(self._spent().settled_nanousd))

    def pass_over(self, states: int) -> None:
        """Skip finished states, at which no teacher is asked again."""
        self.states_left -= states
        self.meter.expect(fewer=self._most(states))

    def _most(self, states: int) -> int:
        return states * len(self.settings.asked_teachers()) * self.settings.replay.samples

    def _spent(self) -> RunSpending:
        return self.ledger.spent(self.run_id)

    def ask(
        self,
        shown: "Sequence[ShownTrace]",
        decisions: Sequence[AskDecision],
        stopper: EarlyStopper | None = None,
    ) -> ReplayResult:
        """Ask the decided questions at the steps of these traces.

        Asking ends at steps that the `stopper` decides. Raises PrivacyError for a trace without consent.
        """
        self._require_accepted(shown)
        states = sum(item.trace.step_count for item in shown)
        wanted = sum(decision.verdict == "ask" for decision in decisions) * self.settings.replay.samples
        self.meter.expect(fewer=self._most(states) - wanted)
        self.states_left = max(self.states_left - states, 0)
        if self.gate is not None:
            self.gate.asked()
        request = ReplayRequest(
            [question for item in shown for question in item.questions()],
            decisions,
            build_teachers(self.settings.asked_teachers(), os.environ, self._redact, self.prices),
            self.ledger,
            self.run_id,
            self.settings.replay,
            stopper,
            self.room,
            self.breaker,
            redact=_redaction_of(shown),
            closed=self.closed,
            time_left_s=self._time_left_s(),
            remaining=self.states_left / max(states, 1),
        )
        return self._run(request)

    def _run(self, request: ReplayRequest) -> ReplayResult:
        try:
            return asyncio.run(self._replay(request))
        except asyncio.CancelledError:  # interrupted, and what was in flight did not finish in time
            raise KeyboardInterrupt from None

    async def _replay(self, request: ReplayRequest) -> ReplayResult:
        """Run the replay; after an interrupt no new call is made.

        Calls in flight may be billed, so their answers are awaited as long as the settings allow; a second
        Ctrl-C does not wait.
        """
        loop, task, interrupted = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        assert task is not None
        grace_s = self.settings.replay.interrupt_wait_s

        def press() -> None:
            self.meter.note = FINISHING.format(grace_s)
            loop.call_soon_threadsafe(interrupted.set)
            loop.call_soon_threadsafe(loop.call_later, grace_s, task.cancel)

        with on_interrupt(press):
            return await replay(replace(request, interrupted=interrupted), _ProgressObserver(self))

    def _time_left_s(self) -> float | None:
        """Return the seconds until the deadline of the run, None without a deadline."""
        minutes = self.settings.replay.deadline_minutes
        return None if minutes is None else max(self.began_s + minutes * 60 - time.monotonic(), 0.0)

    def _redact(self, text: str) -> str:
        return self.redactor.redact_text(text)[0]

    def spending(self) -> Summary:
        """Return the run's cost over all its restarts, and the teachers that were given up.

        Charged amounts count as spent; calls of unknown cost count with their worst case.
        """
        spent = self._spent()
        return Summary(
            spent_usd=nanousd_to_usd(spent.settled_nanousd),
            held_usd=nanousd_to_usd(spent.reserved_nanousd),
            held_calls=spent.open_calls,
            outages=self.breaker.outages(),
        )


def _redaction_of(shown: "Sequence[ShownTrace]") -> Callable[[TeacherReply], TeacherReply]:
    """Return the function that redacts replies at steps of these traces."""
    known = {item.trace.trace_id: item.reply for item in shown}
    return lambda reply: known[StepId.parse(reply.step_id).trace_id](reply)


class _ProgressObserver(ReplayObserver):
    """A replay observer that updates the meter of its session."""

    def __init__(self, asking: AskSession) -> None:
        self._asking = asking
        self._gauge = asking.meter

    def replied(self, reply: TeacherReply, stored: bool) -> None:
        """Count a reply and its cost."""
        self._gauge.replied(reply.teacher, None if stored else reply.cost_usd, reply.failure is None)

    def waits(self, wait: RetryWait) -> None:
        """Show the teacher that the replay waits for."""
        self._gauge.waits(*wait)

    def answer_dropped(self) -> None:
        """Reduce the expected number of answers by one."""
        self._gauge.expect(fewer=1)

    def announce(self, teacher: str, line: str) -> None:
        """Print a teacher's line once in a run; the closing table counts them all."""
        if teacher not in self._asking.told:
            self._asking.told.add(teacher)
            say_lines([line])


def refill_session_rows(known: Ledger, replies: Iterable[TeacherReply], into: Ledger) -> None:
    """Store the successful replies that `known` does not have."""
    answered = {reply.request_key: reply for reply in replies if reply.failure is None}
    found = known.answers_to(list(answered))
    if lost := [reply for key, reply in answered.items() if key not in found]:
        into.remember(lost)


def check_answering(settings: RunSettings) -> None:
    """Check that the teachers can answer; no text of a session is sent.

    Raises TeacherError if one cannot answer: wrong key, unknown model, no network.
    """
    asyncio.run(check_all(build_teachers(settings.models(), os.environ)))


def redact_reply(redactor: Redactor, reply: TeacherReply) -> TeacherReply:
    """Redact a reply for a dataset: a teacher may write private text that was not in its prompt."""
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
