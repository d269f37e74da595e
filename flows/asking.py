"""Teachers, ledger and run together: what asks the questions of a shard."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from agreement.settling import Referee
from flows.consent_text import say_lines
from flows.interrupts import on_press
from flows.progress import Meter
from flows.runs import utc_now
from flows.settings import RunSettings
from flows.summary import Summary
from privacy.redact import Redactor
from records.errors import PrivacyError
from records.families import UNKNOWN
from records.identity import StepId, canonical_json, digest
from records.message import Action
from records.reply import Decision, TeacherReply
from records.workspace import Workspace
from teachers.build import build_teachers
from teachers.eligibility import require_eligible
from teachers.gate import GATE_VERSION, decide
from teachers.ledger import Ledger, sqlite_url
from teachers.ledger_entries import Spent
from teachers.price_book import PRICES, PriceBook
from teachers.prices import nusd_to_usd, usd_down
from teachers.question import Question
from teachers.replay import Redact, ReplayResult, replay
from teachers.settings import BudgetSettings, GateSettings, ReplaySettings, TeacherSettings

COME_HOME_S = 10.0
"""Seconds that calls in flight have to come home after Ctrl-C: they may be billed, so their answers are
worth waiting for. A second press does not wait."""
COMING_HOME = f"interrupted: {COME_HOME_S:.0f} s for calls in flight to come home, Ctrl-C cuts them off"

TOO_FEW = "too few families may vote"


@dataclass(frozen=True, slots=True)
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

    @classmethod
    @contextmanager
    def open(
        cls,
        settings: RunSettings,
        work: Workspace,
        run_id: str,
        redactor: Redactor,
        accepted: frozenset[str],
        gauge: Meter,
    ) -> "Iterator[Asking | None]":
        """The asking of a run while the block lasts; None where it has no teachers."""
        if not settings.asked() or settings.budget is None:
            yield None
            return
        with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
            open_run(ledger, run_id, settings.budget)
            prices = PriceBook(work.root / PRICES, lambda line: say_lines([line]))
            yield cls(settings, ledger, run_id, redactor, accepted, gauge, prices)

    def decide(self, questions: Sequence[Question], before: Sequence[Decision]) -> list[Decision]:
        """Which teacher is asked at which step. Decisions made before are replayed; a step that cannot
        give a pair is asked of nobody."""
        version = self._gate_version()
        found = {(d.step_id, d.teacher): d for d in before if d.gate == version}
        fresh = decide(questions, self.settings.asked(), self.settings.gate.seed, self.settings.gate)
        made = [replace(d, gate=version) for d in _drop_hopeless(fresh, self.settings)]
        return [found.get((d.step_id, d.teacher), d) for d in made]

    def _gate_version(self) -> str:
        """The gate and everything its verdicts depend on: under another version they are made anew."""
        gate = self.settings.gate.model_dump(mode="json")
        vote = self.settings.agreement.model_dump(mode="json")
        names = [[teacher.name, teacher.family] for teacher in self.settings.asked()]
        return f"{GATE_VERSION}-{digest(canonical_json([gate, vote, names]), size=4)}"

    def remember(self, replies: Sequence[TeacherReply]) -> None:
        """Give a ledger that was lost the answers the workspace still holds."""
        answered = {reply.request_key: reply for reply in replies if reply.failure is None}
        known = self.ledger.answers_to(list(answered))
        if lost := [reply for key, reply in answered.items() if key not in known]:
            self.ledger.remember(lost)

    def begin(self, states: int) -> None:
        """Ready to ask, at most all teachers at so many states."""
        self.gauge.begin("questions", self._most(states), nusd_to_usd(self._spent().settled_nusd))

    def pass_over(self, states: int) -> None:
        """So many of the states are finished with: nobody is asked about them again."""
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
    ) -> ReplayResult:
        """The replies of what was decided for so many states, as far as the `referee` does not call their
        steps settled; `redact` has, by trace, what takes private things out of them. Raises PrivacyError for
        a question of a trace that nobody accepted to send."""
        if not self.accepted.issuperset(question.trace_id for question in questions):
            raise PrivacyError("a session would be sent that nobody accepted", "consent", "run it again")
        wanted = sum(decision.verdict == "ask" for decision in decisions) * self.settings.replay.samples
        self.gauge.expect(fewer=self._most(states) - wanted)
        try:
            return asyncio.run(self._ask(questions, decisions, referee, redact or {}))
        except asyncio.CancelledError:  # interrupted, and what was in flight did not come home in time
            raise KeyboardInterrupt from None

    async def _ask(
        self,
        questions: Sequence[Question],
        decisions: Sequence[Decision],
        referee: Referee | None,
        redact: Mapping[str, Redact],
    ) -> ReplayResult:
        """The replay. At Ctrl-C nothing more goes out; what is in flight has `COME_HOME_S`."""
        teachers = build_teachers(self.settings.asked(), os.environ, self._redact, self.prices)
        loop, task, interrupted = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        assert task is not None

        def on_reply(reply: TeacherReply, stored: bool) -> None:
            self.gauge.replied(reply.teacher, None if stored else reply.cost_usd, reply.failure is None)

        def clean(reply: TeacherReply) -> TeacherReply:
            known = redact.get(StepId.parse(reply.step_id).trace_id)
            return known(reply) if known else redact_reply(self.redactor, reply)

        def press() -> None:
            self.gauge.note = COMING_HOME
            loop.call_soon_threadsafe(interrupted.set)
            loop.call_soon_threadsafe(loop.call_later, COME_HOME_S, task.cancel)

        with on_press(press):
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
                redact=clean,
            )

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


def check_answering(settings: RunSettings) -> None:
    """Raises TeacherError where a teacher cannot answer at all: wrong key, unknown model, no network.
    No text of a session is sent."""

    async def check() -> None:
        teachers = build_teachers(settings.asked(), os.environ)
        try:
            for teacher in teachers:
                await teacher.check()
        finally:
            for teacher in teachers:
                await teacher.close()

    asyncio.run(check())


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


def _drop_hopeless(decisions: Sequence[Decision], settings: RunSettings) -> list[Decision]:
    """Where fewer teachers or families than the vote needs would be asked, none is."""
    families = {teacher.name: teacher.family for teacher in settings.asked()}
    asked: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.verdict == "ask":
            asked.setdefault(decision.step_id, []).append(families[decision.teacher])
    vote = settings.agreement.rule()
    hopeless = {
        step_id
        for step_id, found in asked.items()
        if len(found) < vote.threshold or len(set(found) - {UNKNOWN}) < vote.min_families
    }
    return [
        Decision(d.step_id, d.teacher, "skip", TOO_FEW, d.gate, 0.0, d.coin)
        if d.verdict == "ask" and d.step_id in hopeless
        else d
        for d in decisions
    ]


@contextmanager
def build_ledger(place: Path | str | None) -> Iterator[Ledger]:
    """A ledger at a path or database URL; None: one that is gone after the block."""
    if place is None:
        with (
            TemporaryDirectory(prefix="tracemill-") as folder,
            Ledger(sqlite_url(Path(folder) / "l")) as ledger,
        ):
            yield ledger
        return
    text = str(place)
    with Ledger(text if "://" in text else sqlite_url(Path(text))) as ledger:
        yield ledger


async def ask_states(
    questions: Sequence[Question],
    teachers: Sequence[TeacherSettings],
    ledger: Ledger,
    max_total_usd: float,
    settings: ReplaySettings,
) -> list[TeacherReply]:
    """Ask every teacher every question, in a run of its own. Raises ConfigError where too few may vote."""
    require_eligible(teachers, {question.student_family for question in questions})
    run_id = f"library-{utc_now()}-{os.getpid()}"
    open_run(ledger, run_id, BudgetSettings.model_validate({"max_total_usd": max_total_usd}))
    decisions = decide(questions, teachers, 0, GateSettings())
    redactor = Redactor.from_environment(os.environ)
    built = build_teachers(teachers, os.environ, lambda text: redactor.redact_text(text)[0])
    result = await replay(
        questions,
        decisions,
        built,
        ledger,
        run_id,
        settings,
        redact=lambda reply: redact_reply(redactor, reply),
    )
    return result.replies
