"""Buy one answer: reserve, ask, settle, and retry faults that may pass."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from tracemill.records.errors import TracemillError
from tracemill.records.reply import FailureKind, TeacherReply
from tracemill.teachers.client.billing_lookup import with_looked_up_bill
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.teacher_protocol import AttemptResult, Teacher, account_of, reply_to
from tracemill.teachers.core.teacher_settings import ReplaySettings
from tracemill.teachers.ledger.entries import CachedAnswer, DeniedReservation, Grant, PlannedCall, Reservation
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import dump_reply_json
from tracemill.teachers.ledger.reservation_queue import ReservationQueue
from tracemill.teachers.planning.replay_plan import WantedAnswer
from tracemill.teachers.planning.schedule import AT_CAP, AT_DAY_CAP
from tracemill.teachers.replay.breaker import CircuitBreaker, FinishedAttempt, list_outages
from tracemill.teachers.replay.rate_limits import ACCOUNT, RateLimitPauses

BUDGET = "budget"
STOPPED = "stopped"
TEACHER_OUT = "teacher out"

_BLOCKED_ATTEMPT = 0.1
_UNREADABLE = frozenset({FailureKind.EMPTY, FailureKind.MALFORMED})
"""Answers that arrived and cannot be used, such as reasoning alone."""


@dataclass(frozen=True, slots=True)
class PurchaseOutcome:
    """The result of one item: a reply, a stored reply as JSON, or neither.

    `ends` says why the chain of questions ends here, "" if it continues. `retry` is whether another attempt
    may help.
    """

    reply: TeacherReply | None = None
    stored: str | None = None
    ends: str = ""
    retry: bool = False
    retry_after_s: float | None = None
    why: str = ""


class RetryWait(NamedTuple):
    """A wait of `seconds` before a teacher is asked again; `why` names the fault, such as `answers 503`."""

    teacher: str
    why: str
    seconds: float


OnWait = Callable[[RetryWait], None]


class AnswerBuyer:
    """A buyer of the answers of one replay, with its caps, retries and stops."""

    def __init__(
        self,
        ledger: Ledger,
        run_id: str,
        settings: ReplaySettings,
        counters: Counter[str],
        on_wait: OnWait | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.stopped: str | None = None
        self.exhausted: str | None = None
        self.in_flight = 0
        self.reservations = ReservationQueue(ledger, settings.attempt_timeout_s * settings.max_attempts)
        self.backoff_s = settings.backoff_s
        self._run_id = run_id
        self._settings = settings
        self.counters = counters
        self._on_wait = on_wait
        self._stop = asyncio.Event()
        self._trial_ended = asyncio.Event()
        self._breaker = breaker or CircuitBreaker()
        self._out = self._breaker.outages()
        self.spent_nanousd = 0
        """The cost of all finished calls."""
        self._accounts: dict[str, str] = {}
        self.paid_unreadable: Counter[str] = Counter()
        """Number of paid but unreadable answers by request key, over all runs."""
        self.pauses = RateLimitPauses(settings)

    def stop(self, why: str) -> None:
        """Start no new call; calls in flight finish."""
        self.stopped = self.stopped or why
        self._stop.set()
        self._trial_ended.set()
        self.reservations.stop()

    def why_ended(self) -> str | None:
        """Return in one line why some questions were not asked, None if all were."""
        return self.stopped or self.exhausted or list_outages(self._out) or None

    def closed_reason(self, teacher: str) -> str:
        """Return why a teacher is no longer asked, "" if it may be asked."""
        return STOPPED if self.stopped else TEACHER_OUT if teacher in self._out else ""

    def unavailable_teachers(self) -> set[str]:
        """Return the names of teachers that are no longer asked."""
        return set(self._out)

    async def buy(self, item: WantedAnswer, order: int) -> PurchaseOutcome:
        """Buy one answer, with as many attempts as the settings allow.

        `order` is its position among those asked at its step. The reply's cost includes failed attempts.
        """
        purchase = _Purchase(self, item, order)
        done = [await purchase.attempt()]
        if not self._may_retry(item, done[0]):
            return done[0]

        async def attempt() -> PurchaseOutcome:
            return done.pop() if done else await purchase.attempt()

        retrying = AsyncRetrying(
            stop=lambda state: purchase.attempts >= self._settings.max_attempts,
            wait=self._wait_s,
            retry=retry_if_result(partial(self._may_retry, item)),
            sleep=self.sleep,
            before_sleep=partial(self._report_wait, item.teacher.name),
            retry_error_callback=_last,
        )
        return await retrying(attempt)

    def _may_retry(self, item: WantedAnswer, outcome: PurchaseOutcome) -> bool:
        """Return whether another attempt may help and may be made."""
        return outcome.retry and not self.closed_reason(item.teacher.name)

    def _wait_s(self, state: RetryCallState) -> float:
        """Return the wait the server asked for, else a doubling wait with jitter."""
        requested = _last(state).retry_after_s
        return self.pauses.backoff_s(state.attempt_number - 1) if requested is None else requested

    def _report_wait(self, teacher: str, state: RetryCallState) -> None:
        if self._on_wait is not None:
            self._on_wait(RetryWait(teacher, _last(state).why, state.upcoming_sleep))

    async def sleep(self, seconds: float) -> None:
        """Sleep, but wake up if everything stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def admit(self, teacher: str) -> bool | None:
        """Wait until an attempt at a teacher may start, and return whether it is a trial without others.

        Return None if no attempt may start any more.
        """
        while not self.closed_reason(teacher):
            now = asyncio.get_running_loop().time()
            wait_s = self._breaker.wait_s(teacher, now)
            if wait_s is None:
                await self._trial_ended.wait()
            elif (left_s := max(wait_s, self.pauses.left_s(teacher))) > 0:
                await self.sleep(left_s)
            else:
                return self._breaker.begin_attempt(teacher)
        return None

    def end_trial(self, teacher: str) -> None:
        """End a trial attempt, so that the next one may start."""
        self._breaker.end_trial(teacher)
        self._trial_ended.set()
        self._trial_ended = asyncio.Event()

    def record_attempt(self, teacher: str, asked: AttemptResult, began: float, alone: bool) -> None:
        """Record an attempt in the circuit breaker.

        A refusal caused by other calls in flight is no failure: it is lifted when they end.
        """
        if not asked.sent or (asked.account and asked.retry and self.in_flight):
            return
        attempt = FinishedAttempt(began, asyncio.get_running_loop().time(), alone)
        self._breaker.record(teacher, asked, attempt, self.pauses.backoff_s)
        if asked.reply.failure is None:
            return
        for name, why in self._breaker.outages().items():
            if name not in self._out:
                self._out[name] = why
                self.counters[f"teacher_out:{name}: {why}"] += 1

    async def reserve(self, item: WantedAnswer) -> Grant | None:
        """Reserve the worst case of one attempt; return None where everything stopped."""
        intent = PlannedCall(
            run_id=self._run_id,
            trace_id=item.question.trace_id,
            step_id=item.question.step_id,
            teacher=item.teacher.name,
            request_key=item.key,
            amount_nanousd=item.teacher.bound_nanousd(item.question),
            leave_nanousd=item.leave_nanousd,
            account=self._account(item.teacher),
        )
        return await self.reservations.reserve(intent)

    def _account(self, teacher: Teacher) -> str:
        if teacher.name not in self._accounts:
            self._accounts[teacher.name] = account_of(teacher)
        return self._accounts[teacher.name]

    def note_denial(self, denied: DeniedReservation) -> str:
        """Record that a cap ends a chain, and return the reason for the counters.

        The figures are current; cheaper calls continue, so less may be left at the end.
        """
        if denied.scope == "trace":
            return f"{BUDGET} of the trace"
        self.counters[AT_CAP if denied.scope == "run" else AT_DAY_CAP] += 1
        left = max(denied.cap_nanousd - denied.settled_nanousd - denied.reserved_nanousd, 0)
        kept = f" with ${nanousd_to_usd(denied.kept_nanousd):.6f} kept for later explored steps"
        self.exhausted = (
            f"the {denied.scope}'s cap of ${nanousd_to_usd(denied.cap_nanousd):.4f} did not cover a call "
            f"that may cost ${nanousd_to_usd(denied.wanted_nanousd - denied.kept_nanousd):.6f}"
            f"{kept if denied.kept_nanousd else ''}: ${nanousd_to_usd(left):.6f} was left when it was due, "
            "and cheaper calls may have spent of it since; raise the cap to ask the rest"
        )
        return BUDGET

    async def budget_left_nanousd(self) -> int:
        """Return the nano-USD left under the run's cap."""
        spent = await self.reservations.run_in_thread(self.reservations.ledger.spent, self._run_id)
        return spent.cap_nanousd - spent.settled_nanousd - spent.reserved_nanousd

    async def ask(self, item: WantedAnswer, is_retry: bool) -> AttemptResult:
        """Make one attempt, cut off after `attempt_timeout_s`; an exception of a teacher is a failed call."""
        self.counters["attempts"] += 1
        self.counters["retries" if is_retry else "asked"] += 1
        self.in_flight += 1
        try:
            async with asyncio.timeout(self._settings.attempt_timeout_s):
                return await item.teacher.ask(item.question, item.sample)
        except TimeoutError:
            why = f"gave no answer in {self._settings.attempt_timeout_s:g} s"
            return _failed(item, FailureKind.TIMEOUT, why)
        except TracemillError:
            raise
        except Exception as error:
            return _failed(item, FailureKind.PROVIDER_ERROR, f"failed by itself ({type(error).__name__})")
        finally:
            self.in_flight -= 1

    def close_call(
        self, item: WantedAnswer, reservation: Reservation, asked: AttemptResult, reply: TeacherReply
    ) -> float | None:
        """Settle or cancel a reservation, and stop the calls that the reply rules out.

        Return the seconds to wait before another attempt, None without a request to wait.
        """
        outcome, trace_id = reply.failure or "answer", item.question.trace_id
        if asked.cost_nanousd == 0 and not asked.final:
            self.reservations.cancel(trace_id, reservation, outcome)
        else:
            stored = dump_reply_json(reply) if asked.final or self.is_given_up(item.key) else None
            if asked.cost_nanousd is None:
                self.counters["unpriced"] += 1
                self.counters["unpriced_nanousd"] += reservation.amount_nanousd
            bill_id = asked.bill_id if asked.cost_nanousd is None else ""
            self.reservations.settle(
                trace_id, reservation, asked.cost_nanousd, stored, outcome, asked.stated_nanousd, bill_id
            )
            if (asked.cost_nanousd or 0) > reservation.amount_nanousd:
                cost, reserved = (
                    nanousd_to_usd(asked.cost_nanousd or 0),
                    nanousd_to_usd(reservation.amount_nanousd),
                )
                self.stop(
                    f"a call of {item.teacher.name} cost ${cost:.4f}, more than the ${reserved:.4f} reserved "
                    "for it; the same command resumes at the prices charged, under the same cap"
                )
        if asked.halt == "run":
            self.stop(asked.why)
        elif asked.halt == "teacher":
            self._out[item.teacher.name] = asked.why
            self.counters[f"teacher_out:{item.teacher.name}: {asked.why}"] += 1
        if asked.retry_after_s is not None and self.will_retry(asked):
            self.pauses.hold(ACCOUNT if asked.account else item.teacher.name, asked.retry_after_s)
        if asked.retry_after_s is not None:
            return asked.retry_after_s
        return self.pauses.cool_down(item.teacher.name, asked)

    def is_given_up(self, request_key: str) -> bool:
        """Return whether too many answers to a request were paid and unreadable to buy another."""
        return self.paid_unreadable[request_key] >= self._settings.max_paid_attempts

    def will_retry(self, asked: AttemptResult) -> bool:
        """Return whether another attempt is made after this one."""
        return asked.retry and (asked.retry_after_s or 0.0) <= self._settings.max_retry_after_s


class _Purchase:
    """The attempts at one answer, and their cost together.

    An attempt that reached the account's limit while other calls were in flight counts a tenth: the limit
    is lifted when they end.
    """

    def __init__(self, buyer: AnswerBuyer, item: WantedAnswer, order: int) -> None:
        self.attempts = 0.0
        self._buyer = buyer
        self._item = item
        self._order = order
        self._spent_nanousd = 0
        self._last: TeacherReply | None = None

    async def attempt(self) -> PurchaseOutcome:
        """Make one attempt, with its reservation and settlement."""
        buyer, teacher = self._buyer, self._item.teacher.name
        alone = await buyer.admit(teacher)
        if alone is None:
            return PurchaseOutcome(reply=self._last, ends=buyer.closed_reason(teacher))
        try:
            return await self._attempt_once(alone)
        finally:
            if alone:
                buyer.end_trial(teacher)

    async def _attempt_once(self, alone: bool) -> PurchaseOutcome:
        buyer, item = self._buyer, self._item
        grant = await buyer.reserve(item)
        if grant is None:
            return PurchaseOutcome(reply=self._last, ends=STOPPED)
        if isinstance(grant, CachedAnswer):
            return PurchaseOutcome(stored=grant.reply)
        if isinstance(grant, DeniedReservation):
            return PurchaseOutcome(reply=self._last, ends=buyer.note_denial(grant))
        if buyer.stopped:
            buyer.reservations.cancel(item.question.trace_id, grant, STOPPED)
            return PurchaseOutcome(reply=self._last, ends=STOPPED)
        is_retry, began = self._last is not None, asyncio.get_running_loop().time()
        asked = await buyer.ask(item, is_retry)
        buyer.record_attempt(item.teacher.name, asked, began, alone)
        if not asked.sent:
            buyer.counters["attempts"] -= 1
            buyer.counters["retries" if is_retry else "asked"] -= 1
        asked = await with_looked_up_bill(item.teacher, asked, buyer.sleep, buyer.backoff_s)
        cost_nanousd = grant.amount_nanousd if asked.cost_nanousd is None else asked.cost_nanousd
        self._spent_nanousd += cost_nanousd
        buyer.spent_nanousd += cost_nanousd
        reply = replace(asked.reply, order=self._order, cost_usd=nanousd_to_usd(self._spent_nanousd))
        self._last = reply
        if asked.reply.failure in _UNREADABLE and asked.cost_nanousd != 0:
            buyer.paid_unreadable[item.key] += 1
        wait_s = buyer.close_call(item, grant, asked, reply)
        blocked = asked.account and asked.retry and buyer.in_flight > 0
        self.attempts += _BLOCKED_ATTEMPT if blocked else 1.0
        retry = buyer.will_retry(asked) and not buyer.is_given_up(item.key)
        return PurchaseOutcome(reply=reply, retry=retry, retry_after_s=wait_s, why=asked.why)


def _last(state: RetryCallState) -> PurchaseOutcome:
    if state.outcome is None:
        raise RuntimeError("an attempt without an outcome")
    return state.outcome.result()


def _failed(item: WantedAnswer, kind: FailureKind, why: str) -> AttemptResult:
    """Return a failed call that may have been billed."""
    reply = replace(reply_to(item.teacher, item.question, item.sample, item.key), failure=kind.value)
    return AttemptResult(reply, cost_nanousd=None, retry=True, why=why)
