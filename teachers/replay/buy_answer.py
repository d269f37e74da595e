"""One answer bought: reserve, ask, settle, and again where the fault may pass."""

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
from tracemill.teachers.core.price import nusd_to_usd
from tracemill.teachers.core.teacher_protocol import Asked, Teacher, account_of, reply_to
from tracemill.teachers.core.teacher_settings import ReplaySettings
from tracemill.teachers.ledger.entries import Bought, Denied, Grant, Intent, Reservation
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import dump_reply_json
from tracemill.teachers.ledger.reservation_queue import Purse
from tracemill.teachers.planning.replay_plan import Item
from tracemill.teachers.planning.schedule import AT_CAP
from tracemill.teachers.replay.breaker import Attempt, Breaker, list_outages
from tracemill.teachers.replay.rate_limits import ACCOUNT, Pauses

BUDGET = "budget"
STOPPED = "stopped"
TEACHER_OUT = "teacher out"

_HELD_SHARE = 0.1
_UNREADABLE = frozenset({FailureKind.EMPTY, FailureKind.MALFORMED})
"""Answers that came and cannot be used, such as reasoning alone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one item: a reply, or a stored one as JSON, or neither. `ends` says why its chain
    ends here, "" where it goes on; `retry` that another attempt may help."""

    reply: TeacherReply | None = None
    stored: str | None = None
    ends: str = ""
    retry: bool = False
    retry_after_s: float | None = None
    why: str = ""


class Wait(NamedTuple):
    """A teacher is asked again in so many seconds; `why` says what it did: `answers 503`."""

    teacher: str
    why: str
    seconds: float


OnWait = Callable[[Wait], None]


class Caller:
    """Buys answers for one replay; knows what has stopped."""

    def __init__(
        self,
        ledger: Ledger,
        run_id: str,
        settings: ReplaySettings,
        counters: Counter[str],
        on_wait: OnWait | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.stopped: str | None = None
        self.dry: str | None = None
        self.in_flight = 0
        self.purse = Purse(ledger, settings.attempt_timeout_s * settings.max_attempts)
        self.backoff_s = settings.backoff_s
        self._run_id = run_id
        self._settings = settings
        self.counters = counters
        self._on_wait = on_wait
        self._stop = asyncio.Event()
        self._home = asyncio.Event()
        self._breaker = breaker or Breaker()
        self._out = self._breaker.out()
        self.spent_nusd = 0
        """What the calls that came home are booked at."""
        self._accounts: dict[str, str] = {}
        self.paid_in_vain: Counter[str] = Counter()
        """Answers by request key that were paid, over all runs, and that nothing could be read of."""
        self.pauses = Pauses(settings)

    def stop(self, why: str) -> None:
        """Lets nothing more go out; what is in flight comes home."""
        self.stopped = self.stopped or why
        self._stop.set()
        self._home.set()
        self.purse.stop()

    def why_ended(self) -> str | None:
        """Why not everything was asked, in one line; None where everything was, or failed by itself."""
        return self.stopped or self.dry or list_outages(self._out) or None

    def closed(self, teacher: str) -> str:
        """Why nothing more is asked of a teacher; "" where it is."""
        return STOPPED if self.stopped else TEACHER_OUT if teacher in self._out else ""

    def out(self) -> set[str]:
        """The teachers of whom nothing more can be had."""
        return set(self._out)

    async def buy(self, item: Item, order: int) -> Outcome:
        """One answer, by as many attempts as the settings allow; `order` is its place among those asked at
        its step. Costs of useless attempts are part of the reply's cost."""
        purchase = _Purchase(self, item, order)
        first = [await purchase.attempt()]
        if not self._again(item, first[0]):
            return first[0]

        async def attempt() -> Outcome:
            return first.pop() if first else await purchase.attempt()

        retrying = AsyncRetrying(
            stop=lambda state: purchase.attempts >= self._settings.max_attempts,
            wait=self._wait_s,
            retry=retry_if_result(partial(self._again, item)),
            sleep=self.nap,
            before_sleep=partial(self._tell, item.teacher.name),
            retry_error_callback=_last,
        )
        return await retrying(attempt)

    def _again(self, item: Item, outcome: Outcome) -> bool:
        """Whether another attempt may help, and may be made."""
        return outcome.retry and not self.closed(item.teacher.name)

    def _wait_s(self, state: RetryCallState) -> float:
        """The server's own wish to the letter, else doubling waits with jitter."""
        wished = _last(state).retry_after_s
        return self.pauses.backoff_s(state.attempt_number - 1) if wished is None else wished

    def _tell(self, teacher: str, state: RetryCallState) -> None:
        if self._on_wait is not None:
            self._on_wait(Wait(teacher, _last(state).why, state.upcoming_sleep))

    async def nap(self, seconds: float) -> None:
        """Sleeps, unless everything stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def admit(self, teacher: str) -> bool | None:
        """Wait until an attempt at a teacher may go out; None where none may any more, else whether it goes
        out alone, to see whether the teacher answers again."""
        while not self.closed(teacher):
            now = asyncio.get_running_loop().time()
            wait_s = self._breaker.wait_s(teacher, now)
            if wait_s is None:
                await self._home.wait()
            elif (left_s := max(wait_s, self.pauses.left_s(teacher))) > 0:
                await self.nap(left_s)
            else:
                return self._breaker.begin(teacher)
        return None

    def came_home(self, teacher: str) -> None:
        """An attempt that went out alone is over: the next one may go."""
        self._breaker.end(teacher)
        self._home.set()
        self._home = asyncio.Event()

    def hear(self, teacher: str, asked: Asked, began: float, alone: bool) -> None:
        """Count the failures in a row. A refusal because of what else is in flight is none: its end frees
        it."""
        if not asked.sent or (asked.account and asked.retry and self.in_flight):
            return
        attempt = Attempt(began, asyncio.get_running_loop().time(), alone)
        self._breaker.hear(teacher, asked, attempt, self.pauses.backoff_s)
        if asked.reply.failure is None:
            return
        for name, why in self._breaker.out().items():
            if name not in self._out:
                self._out[name] = why
                self.counters[f"teacher_out:{name}: {why}"] += 1

    async def reserve(self, item: Item) -> Grant | None:
        """The worst case of one attempt; None where all stopped."""
        intent = Intent(
            run_id=self._run_id,
            trace_id=item.question.trace_id,
            step_id=item.question.step_id,
            teacher=item.teacher.name,
            request_key=item.key,
            amount_nusd=item.teacher.bound_nusd(item.question),
            leave_nusd=item.leave_nusd,
            account=self._account(item.teacher),
        )
        return await self.purse.take(intent)

    def _account(self, teacher: Teacher) -> str:
        if teacher.name not in self._accounts:
            self._accounts[teacher.name] = account_of(teacher)
        return self._accounts[teacher.name]

    def denied(self, denied: Denied) -> str:
        """Notes that a cap ends a chain; gives the reason for the counters. The figures are of this moment:
        calls that cost less go on, so what is left at the end is no more."""
        if denied.scope == "trace":
            return f"{BUDGET} of the trace"
        if denied.scope == "run":
            self.counters[AT_CAP] += 1
        left = max(denied.cap_nusd - denied.settled_nusd - denied.reserved_nusd, 0)
        kept = f" with ${nusd_to_usd(denied.kept_nusd):.6f} kept for explored steps to come"
        self.dry = (
            f"the {denied.scope}'s cap of ${nusd_to_usd(denied.cap_nusd):.4f} did not cover a call that may "
            f"cost ${nusd_to_usd(denied.wanted_nusd - denied.kept_nusd):.6f}"
            f"{kept if denied.kept_nusd else ''}: ${nusd_to_usd(left):.6f} was left when it was due, "
            "and cheaper calls may have spent of it since; raise the cap to ask the rest"
        )
        return BUDGET

    async def room_nusd(self) -> int:
        """What the run's cap leaves at the moment."""
        spent = await self.purse.book(self.purse.ledger.spent, self._run_id)
        return spent.cap_nusd - spent.settled_nusd - spent.reserved_nusd

    async def ask(self, item: Item, again: bool) -> Asked:
        """One attempt, cut off after `attempt_timeout_s`; what a teacher raises is a failed call."""
        self.counters["attempts"] += 1
        self.counters["retries" if again else "asked"] += 1
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
        self, item: Item, reservation: Reservation, asked: Asked, reply: TeacherReply
    ) -> float | None:
        """Settles or releases, and stops what the reply says can go no further; gives the seconds until
        another attempt, None where nothing says."""
        outcome, trace_id = reply.failure or "answer", item.question.trace_id
        if asked.cost_nusd == 0 and not asked.final:
            self.purse.release(trace_id, reservation, outcome)
        else:
            stored = dump_reply_json(reply) if asked.final or self.given_up(item.key) else None
            if asked.cost_nusd is None:
                self.counters["unpriced"] += 1
                self.counters["unpriced_nusd"] += reservation.amount_nusd
            bill_id = asked.bill_id if asked.cost_nusd is None else ""
            self.purse.settle(
                trace_id, reservation, asked.cost_nusd, stored, outcome, asked.stated_nusd, bill_id
            )
            if (asked.cost_nusd or 0) > reservation.amount_nusd:
                self.stop(f"a call of {item.teacher.name} cost more than its bound")
        if asked.halt == "run":
            self.stop(asked.why)
        elif asked.halt == "teacher":
            self._out[item.teacher.name] = asked.why
            self.counters[f"teacher_out:{item.teacher.name}: {asked.why}"] += 1
        if asked.retry_after_s is not None and self.worth_waiting(asked):
            self.pauses.hold(ACCOUNT if asked.account else item.teacher.name, asked.retry_after_s)
        if asked.retry_after_s is not None:
            return asked.retry_after_s
        return self.pauses.cool_down(item.teacher.name, asked)

    def given_up(self, request_key: str) -> bool:
        """Whether so many answers to a request were paid in vain that no other is bought."""
        return self.paid_in_vain[request_key] >= self._settings.max_paid_attempts

    def worth_waiting(self, asked: Asked) -> bool:
        """Whether another attempt is made after this one."""
        return asked.retry and (asked.retry_after_s or 0.0) <= self._settings.max_retry_after_s


class _Purchase:
    """The attempts at one answer, and what they cost together. One that found the account's limit met
    while other calls of ours were in flight counts a tenth: their end frees it."""

    def __init__(self, caller: Caller, item: Item, order: int) -> None:
        self.attempts = 0.0
        self._caller = caller
        self._item = item
        self._order = order
        self._spent_nusd = 0
        self._last: TeacherReply | None = None

    async def attempt(self) -> Outcome:
        """One attempt, all in."""
        caller, teacher = self._caller, self._item.teacher.name
        alone = await caller.admit(teacher)
        if alone is None:
            return Outcome(reply=self._last, ends=caller.closed(teacher))
        try:
            return await self._admitted(alone)
        finally:
            if alone:
                caller.came_home(teacher)

    async def _admitted(self, alone: bool) -> Outcome:
        caller, item = self._caller, self._item
        grant = await caller.reserve(item)
        if grant is None:
            return Outcome(reply=self._last, ends=STOPPED)
        if isinstance(grant, Bought):
            return Outcome(stored=grant.reply)
        if isinstance(grant, Denied):
            return Outcome(reply=self._last, ends=caller.denied(grant))
        if caller.stopped:
            caller.purse.release(item.question.trace_id, grant, STOPPED)
            return Outcome(reply=self._last, ends=STOPPED)
        again, began = self._last is not None, asyncio.get_running_loop().time()
        asked = await caller.ask(item, again)
        caller.hear(item.teacher.name, asked, began, alone)
        if not asked.sent:
            caller.counters["attempts"] -= 1
            caller.counters["retries" if again else "asked"] -= 1
        asked = await with_looked_up_bill(item.teacher, asked, caller.nap, caller.backoff_s)
        cost_nusd = grant.amount_nusd if asked.cost_nusd is None else asked.cost_nusd
        self._spent_nusd += cost_nusd
        caller.spent_nusd += cost_nusd
        reply = replace(asked.reply, order=self._order, cost_usd=nusd_to_usd(self._spent_nusd))
        self._last = reply
        if asked.reply.failure in _UNREADABLE and asked.cost_nusd != 0:
            caller.paid_in_vain[item.key] += 1
        wait_s = caller.close_call(item, grant, asked, reply)
        held = asked.account and asked.retry and caller.in_flight > 0
        self.attempts += _HELD_SHARE if held else 1.0
        retry = caller.worth_waiting(asked) and not caller.given_up(item.key)
        return Outcome(reply=reply, retry=retry, retry_after_s=wait_s, why=asked.why)


def _last(state: RetryCallState) -> Outcome:
    if state.outcome is None:
        raise RuntimeError("an attempt without an outcome")
    return state.outcome.result()


def _failed(item: Item, kind: FailureKind, why: str) -> Asked:
    """A call that may have been billed and gave nothing."""
    reply = replace(reply_to(item.teacher, item.question, item.sample, item.key), failure=kind.value)
    return Asked(reply, cost_nusd=None, retry=True, why=why)
