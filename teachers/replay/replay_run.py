"""Ask the teachers what was decided, under a hard cap, and pay for no answer twice.

The schedule says what goes out next, `concurrency` questions at a time. Answers in the ledger are returned
without a call. Every attempt reserves its worst case first and is settled at its cost. A failed call is a row
and cancels nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tracemill.agreement.voting.early_stop import EarlyStopper
from tracemill.records.reply import AskDecision, FailureKind, TeacherReply
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import HasAccount, Teacher, reply_to
from tracemill.teachers.core.teacher_settings import ReplaySettings
from tracemill.teachers.gate.exploration import PlanBudget, expected_if_scarce, split_exploration_phases
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import answer_from_reply_json
from tracemill.teachers.planning.prompt_length import (
    describe_overlong_prompts,
    find_overlong_prompts,
)
from tracemill.teachers.planning.replay_plan import (
    LATENCY_S,
    WantedAnswer,
    plan_items,
    plan_replay_strands,
    replay_plan_keys,
    replay_plan_teachers,
)
from tracemill.teachers.planning.schedule import (
    DEADLINE,
    FULL,
    NOT_NEEDED,
    ScarceBudget,
    Schedule,
    ScheduleRules,
)
from tracemill.teachers.planning.strand_state import OutgoingCall
from tracemill.teachers.planning.throughput import TeacherPace
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.replay.breaker import CircuitBreaker
from tracemill.teachers.replay.buy_answer import BUDGET, AnswerBuyer, PurchaseOutcome, RetryWait
from tracemill.teachers.replay.dispatch import MAX_OPEN_STEPS, Dispatcher
from tracemill.teachers.replay.observed_replies import PairCapacity, ReplyCollector

Redact = Callable[[TeacherReply], TeacherReply]
INTERRUPTED = "interrupted"
TIME_UP = "the deadline is over: the same command asks the rest"


def _as_it_is(reply: TeacherReply) -> TeacherReply:
    return reply


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The replies by question, teacher and sample, failed ones included.

    `stopped` says in one line why the run ended early, None if it did not; a rerun continues from there.
    `not_asked` has the reason by step and teacher; the label of a step is certain if it begins with
    `NOT_NEEDED`. `sent` has the request keys of the replies that were not cached.

    `counters`: `wanted`, `cached`, `asked` (answers that needed a call), `attempts`, `retries`, `answered`,
    `failed:<kind>`, `not_asked:<why>`, `most_in_flight`, `unpriced` (attempts without a known price, booked
    at their worst case, `unpriced_nanousd` in all), `explored` (planned answers at explored steps,
    `explored_left` of them not asked).
    """

    replies: list[TeacherReply]
    stopped: str | None
    counters: Counter[str] = field(default_factory=Counter)
    not_asked: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    sent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Questions, teachers and rules of a replay, in a run that was opened in the ledger."""

    questions: Sequence[Question]
    decisions: Iterable[AskDecision]
    """Which teacher is asked at which step."""
    teachers: Sequence[Teacher]
    ledger: Ledger
    run_id: str
    settings: ReplaySettings = field(default_factory=ReplaySettings)
    stopper: EarlyStopper | None = None
    """Says where a step is settled and is not asked further; without it all is asked."""
    pair_room: PairCapacity | None = None
    """Steps whose pairs it has no room for are not asked."""
    breaker: CircuitBreaker | None = None
    """Which teachers failed in earlier replays of the run."""
    redact: Redact = _as_it_is
    """Gives a reply as it may be judged and handed out."""
    closed: str = ""
    """Why nothing goes out, so that the result has what was bought before; "" where something may."""
    time_left_s: float | None = None
    """Seconds after which nothing more goes out, None for no deadline."""
    remaining: float = 0.0
    """How many times the work of this call the run still has after it. Where the cap or the time may not last
    for all of it, explored steps go first."""
    interrupted: asyncio.Event | None = None
    """Once it is set nothing more goes out; the result has what was in flight by then."""


class ReplayObserver:
    """Observer of a replay. This one does nothing; derive from it."""

    def replied(self, reply: TeacherReply, stored: bool) -> None:
        """Receive a reply; `stored` is True if it came from the ledger."""

    def waits(self, wait: RetryWait) -> None:
        """Receive a wait before a call is tried again."""

    def answer_dropped(self) -> None:
        """Receive that an answer is no longer needed."""

    def announce(self, teacher: str, line: str) -> None:
        """Receive, before anything is spent, a line about a teacher for the user."""


async def replay(request: ReplayRequest, observer: ReplayObserver | None = None) -> ReplayResult:
    """Ask the teachers at the decided steps.

    Raises PrivacyError if a question was not redacted, TeacherError, before any money is spent, if a needed
    teacher cannot answer, and LedgerError if the ledger fails.
    """
    require_redacted(request.questions)
    run = _Replay(replace(request, decisions=list(request.decisions)), observer or ReplayObserver())
    watcher = asyncio.ensure_future(run.stop_when(request.interrupted or asyncio.Event()))
    try:
        return await run.run()
    finally:
        watcher.cancel()
        try:
            await run.reservations.flush()
        finally:
            for teacher in request.teachers:
                await teacher.close()
            run.reservations.close()


class _Replay:
    """One replay: its replies, and the questions not asked."""

    def __init__(self, request: ReplayRequest, observer: ReplayObserver) -> None:
        families = {teacher.name: teacher.family for teacher in request.teachers}
        self._request = request
        self._observer = observer
        self._settings = request.settings
        self._observed = ReplyCollector(request.stopper, list(request.decisions), families, request.pair_room)
        self.counters = Counter[str]()
        self._buyer = AnswerBuyer(
            request.ledger, request.run_id, self._settings, self.counters, observer.waits, request.breaker
        )
        self.reservations = self._buyer.reservations
        self._replies: dict[int, TeacherReply] = {}
        self._sent: set[str] = set()
        self._not_asked: dict[tuple[str, str], str] = {}
        self._buying: dict[str, asyncio.Event] = {}

    async def stop_when(self, interrupted: asyncio.Event) -> None:
        """Start no new call once the event is set."""
        await interrupted.wait()
        self._buyer.stop(INTERRUPTED)

    async def run(self) -> ReplayResult:
        """Ask all planned questions at undecided steps, until money or time runs out."""
        asked, time_left_s, closed = self._request, self._request.time_left_s, self._request.closed
        items = plan_items(asked.questions, asked.decisions, asked.teachers, self._settings.samples)
        await self.reservations.run_in_thread(
            self.reservations.ledger.write_off_stale, self._settings.write_off_after_s
        )
        self.counters["wanted"] = len(items)
        deadline = None if time_left_s is None else asyncio.get_running_loop().time() + time_left_s
        rest = self._drop_full(self._undecided(await self._from_ledger(items)))
        if rest and await self._reconcile(rest):
            closed = ""
        if rest and closed:
            self._buyer.stop(closed)
            for item in rest:
                self._note_not_asked(item.call, BUDGET)
            rest = []
        if rest:
            await _check([*{id(item.teacher): item.teacher for item in rest}.values()])
            await self._note_usage(rest)
            rest = await self._drop_overlong(rest)
        if rest:
            room = PlanBudget(
                await self._buyer.budget_left_nanousd(),
                time_left_s,
                self._settings.concurrency,
                asked.remaining,
            )
            for phase in split_exploration_phases(rest, self._observed.explored, room):
                await self._ask(phase, deadline)
        self._count_explored(items)
        self.counters["most_in_flight"] = self.reservations.most_in_flight
        replies = [self._replies[index] for index in sorted(self._replies)]
        late = TIME_UP if self.counters[f"not_asked:{DEADLINE}"] else None
        why = self._buyer.why_ended() or late
        return ReplayResult(replies, why, self.counters, self._not_asked, frozenset(self._sent))

    def _drop_full(self, items: list[WantedAnswer]) -> list[WantedAnswer]:
        """Return the items whose pairs the caps of the release still allow."""
        if self._observed.room is None:
            return items
        self._observed.close_all_but({item.question.step_id for item in items})
        full = {item.call for item in items if self._observed.is_full(item.question.step_id)}
        for call in full:
            self._note_not_asked(call, FULL)
        return [item for item in items if item.call not in full]

    async def _reconcile(self, items: Sequence[WantedAnswer]) -> bool:
        """Book calls of unknown price at their accounts' figures; return whether that frees money."""
        ledger, settings, freed = self.reservations.ledger, self._settings, False
        for account, teacher in _accounts(items).items():
            unknown = await self.reservations.run_in_thread(
                ledger.calls_in_doubt, account, settings.reconcile_after_s
            )
            if not unknown:
                continue
            room = await self._buyer.budget_left_nanousd()
            usage = await teacher.usage_nanousd(fresh=True)
            found = [(each, await teacher.billed_nanousd(each.bill_id)) for each in unknown if each.bill_id]
            billed = {each: nanousd for each, nanousd in found if nanousd is not None}
            ages_s = settings.reconcile_after_s, settings.write_off_after_s
            calls, less_nanousd = await self.reservations.run_in_thread(
                ledger.reconcile, account, usage, *ages_s, billed
            )
            self.counters["reconciled"] += calls
            self.counters["reconciled_nanousd"] += less_nanousd
            if calls:
                usd = f"${nanousd_to_usd(less_nanousd):.4f}"
                said = f"calls in doubt: {calls:,} cost {usd} less, by the account's own figures"
                self._observer.announce(account, said)
            freed = freed or await self._buyer.budget_left_nanousd() > room
        return freed

    async def _note_usage(self, items: Sequence[WantedAnswer]) -> None:
        """Record the accounts' total charges before anything is asked."""
        ledger = self.reservations.ledger
        for account, teacher in _accounts(items).items():
            usage = await teacher.usage_nanousd(fresh=False)
            if usage is None and not await self.reservations.run_in_thread(ledger.has_usage, account):
                usage = await teacher.usage_nanousd(fresh=True)
            if usage is not None:
                await self.reservations.run_in_thread(ledger.note_usage, account, usage)

    async def _from_ledger(self, items: Sequence[WantedAnswer]) -> list[WantedAnswer]:
        """Record the cached answers and return the items without one."""
        found = await self.reservations.run_in_thread(
            self.reservations.ledger.answers_to, replay_plan_keys(items)
        )
        left: list[WantedAnswer] = []
        for item in items:
            stored = item.bought(found)
            if stored is None:
                left.append(item)
            else:
                self._record_stored(item, stored)
        return await self._drop_unreadable(left)

    async def _drop_unreadable(self, items: list[WantedAnswer]) -> list[WantedAnswer]:
        """Return the items without too many paid but unreadable answers; the others fail."""
        keys = list(dict.fromkeys(item.key for item in items))
        ledger = self.reservations.ledger
        self._buyer.paid_unreadable.update(
            await self.reservations.run_in_thread(ledger.paid_unreadable, keys)
        )
        given_up = [item for item in items if self._buyer.is_given_up(item.key)]
        await self._fail(given_up, FailureKind.EMPTY)
        return [item for item in items if not self._buyer.is_given_up(item.key)]

    async def _fail(self, items: Sequence[WantedAnswer], kind: FailureKind) -> None:
        """Record failed replies to items without a call, and store them like answers."""
        if not items:
            return
        replies = [
            replace(reply_to(item.teacher, item.question, item.sample, item.key), failure=kind.value)
            for item in items
        ]
        await self.reservations.run_in_thread(self.reservations.ledger.remember, replies)
        for item, reply in zip(items, replies, strict=True):
            self._record(item, reply, True)

    def _undecided(self, items: Sequence[WantedAnswer]) -> list[WantedAnswer]:
        """Return the items of steps that the replies so far do not decide."""
        settled = self._observed.decided_steps(items)
        for item in items:
            if why := settled.get(item.question.step_id):
                self._note_not_asked(item.call, f"{NOT_NEEDED}: {why}")
        return [item for item in items if item.question.step_id not in settled]

    async def _drop_overlong(self, items: Sequence[WantedAnswer]) -> list[WantedAnswer]:
        """Return the items whose prompts may fit their teachers' contexts; the others fail."""
        overlong = find_overlong_prompts(items)
        if not overlong:
            return list(items)
        for teacher, line in describe_overlong_prompts(items, overlong).items():
            self._observer.announce(teacher, line)
        await self._fail(overlong, FailureKind.CONTEXT_TOO_LONG)
        dropped = {item.index for item in overlong}
        return self._undecided([item for item in items if item.index not in dropped])

    def _count_explored(self, items: Sequence[WantedAnswer]) -> None:
        explored = [item for item in items if item.question.step_id in self._observed.explored]
        self.counters["explored"] = len(explored)
        self.counters["explored_left"] = sum(item.call[:2] in self._not_asked for item in explored)

    async def _ask(self, items: Sequence[WantedAnswer], deadline: float | None) -> None:
        """Ask the items in the order of the schedule until nothing more can be asked."""
        width, order = self._settings.concurrency, replay_plan_teachers(items)
        time_left_s = None if deadline is None else max(deadline - asyncio.get_running_loop().time(), 0.0)
        items_by_call = {item.call: item for item in items}
        room = await self._buyer.budget_left_nanousd() - max(
            (item.leave_nanousd for item in items), default=0
        )
        funds, before = None, self._buyer.spent_nanousd
        if (expected := expected_if_scarce(items, room)) is not None:
            funds = ScarceBudget(
                expected,
                lambda: room - (self._buyer.spent_nanousd - before),
                lambda: self._buyer.spent_nanousd - before,
            )
        schedule = Schedule(
            plan_replay_strands(
                items,
                order,
                width if funds is None else 1,
                time_left_s,
                None if self._observed.room is None else self._observed.rank,
            ),
            [teacher.name for teacher in order],
            ScheduleRules(MAX_OPEN_STEPS if self._observed.can_stop_early else None, deadline, width),
            self._observed.decide,
            TeacherPace(
                {teacher.name: cache_rule(teacher.family).lifetime_s for teacher in order}, LATENCY_S
            ),
            self._note_not_asked,
            funds,
            self._observed.limits(),
        )
        await Dispatcher(schedule, items_by_call, self._buyer, self._answer, width).run()

    def _note_not_asked(self, call: OutgoingCall, reason: str) -> None:
        self.counters[f"not_asked:{reason}"] += 1
        self._not_asked[call.step_id, call.teacher] = reason
        if reason.startswith(NOT_NEEDED):
            self._observer.answer_dropped()

    def _record_stored(self, item: WantedAnswer, text: str) -> None:
        self.counters["cached"] += 1
        reply = answer_from_reply_json(text, item.question.step_id, item.teacher.name)
        item.teacher.recall(item.question, reply)
        self._record(item, reply, True)

    def _record(self, item: WantedAnswer, given: TeacherReply, stored: bool) -> None:
        reply = self._request.redact(given)
        self._replies[item.index] = reply
        if not stored:
            self._sent.add(reply.request_key)
        self._observed.add(reply)
        self.counters["answered" if reply.failure is None else f"failed:{reply.failure}"] += 1
        self._observer.replied(reply, stored)

    async def _answer(self, item: WantedAnswer, order: int) -> PurchaseOutcome:
        """Get one answer; wait if another step is buying the same one."""
        while item.key in self._buying:
            await self._buying[item.key].wait()
        done = self._buying[item.key] = asyncio.Event()
        try:
            outcome = await self._buyer.buy(item, order)
        finally:
            del self._buying[item.key]
            done.set()
        if outcome.stored is not None:
            self._record_stored(item, outcome.stored)
        elif outcome.reply is not None:
            self._record(item, outcome.reply, False)
        elif outcome.ends:
            self._note_not_asked(item.call, outcome.ends)
        return outcome


def _accounts(items: Sequence[WantedAnswer]) -> dict[str, HasAccount]:
    """Return one teacher for each account whose usage can be read."""
    teachers = {id(item.teacher): item.teacher for item in items}.values()
    return {each.account: each for each in teachers if isinstance(each, HasAccount) and each.account}


async def _check(teachers: Sequence[Teacher]) -> None:
    """Check all teachers, then raise the first error: no check is left running."""
    results = await asyncio.gather(*(teacher.check() for teacher in teachers), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
