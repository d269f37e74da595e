"""Questions out, replies in, under a hard cap, and no answer paid for twice.

The schedule says what goes out next, `concurrency` questions at a time. Answers the ledger has are
returned without a call. Every attempt reserves its worst case first and is settled at what it cost.
The failure of one call is a row and cancels nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tracemill.agreement.voting.early_stop import Referee
from tracemill.records.reply import Decision, FailureKind, TeacherReply
from tracemill.teachers.core.price import nusd_to_usd
from tracemill.teachers.core.prompt_json import StillAsked
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import HasAccount, Teacher, reply_to
from tracemill.teachers.core.teacher_settings import ReplaySettings
from tracemill.teachers.gate.exploration import Room, expected_if_scarce, split_exploration_phases
from tracemill.teachers.gate.value_stop import ValueStop
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import answer_from_reply_json
from tracemill.teachers.planning.prompt_length import (
    describe_overlong_prompts,
    find_overlong_prompts,
    overlong_prompt_reply,
)
from tracemill.teachers.planning.replay_plan import (
    LATENCY_S,
    Item,
    plan_items,
    plan_replay_strands,
    replay_plan_keys,
    replay_plan_teachers,
)
from tracemill.teachers.planning.schedule import DEADLINE, FULL, NOT_NEEDED, Funds, Rules, Schedule
from tracemill.teachers.planning.strand_state import Call
from tracemill.teachers.planning.throughput import Pace
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.replay.breaker import Breaker
from tracemill.teachers.replay.buy_answer import BUDGET, Caller, OnWait, Outcome
from tracemill.teachers.replay.dispatch import LEAD, Flight
from tracemill.teachers.replay.gc_pause import pause_gc
from tracemill.teachers.replay.observed_replies import Hearing, PairRoom

OnReply = Callable[[TeacherReply, bool], None]
Redact = Callable[[TeacherReply], TeacherReply]
INTERRUPTED = "interrupted"
TIME_UP = "the deadline is over: the same command asks the rest"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Replies by question, teacher and sample, failed ones among them.

    `stopped` is the one line that says why the run ended early, None where it did not: a rerun goes on
    from there. `counters`: `wanted`, `cached`, `asked` (answers that needed a call), `attempts`,
    `retries`, `answered`, `failed:<kind>`, `not_asked:<why>`, `most_in_flight`, `unpriced` (attempts that
    nobody said the price of: they count at their worst case, `unpriced_nusd` in all), `explored` (of those
    wanted, the ones at explored steps, `explored_left` of them not asked). `not_asked` has the reason by
    step and teacher; the label of a step is certain where it begins with `NOT_NEEDED`. `sent` has the request
    keys of the replies that are no earlier ones.
    """

    replies: list[TeacherReply]
    stopped: str | None
    counters: Counter[str] = field(default_factory=Counter)
    not_asked: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    sent: frozenset[str] = frozenset()


async def replay(
    questions: Sequence[Question],
    decisions: Iterable[Decision],
    teachers: Sequence[Teacher],
    ledger: Ledger,
    run_id: str,
    settings: ReplaySettings | None = None,
    on_reply: OnReply | None = None,
    *,
    on_wait: OnWait | None = None,
    on_spared: Callable[[], None] | None = None,
    interrupted: asyncio.Event | None = None,
    referee: Referee | None = None,
    time_left_s: float | None = None,
    later: float = 0.0,
    redact: Redact | None = None,
    tell: Callable[[str, str], None] | None = None,
    value: ValueStop | None = None,
    breaker: Breaker | None = None,
    closed: str = "",
    pair_room: PairRoom | None = None,
) -> ReplayResult:
    """Asks what was decided, in the run `run_id` that was opened in the ledger.

    `on_reply` gets every reply with True where it came from the ledger, `on_wait` every wait before
    another attempt, `on_spared` a call for every answer that is not needed any more. Once `interrupted` is
    set nothing more goes out, and the result has what was in flight by then; nor does anything once
    `time_left_s` is over. Of the run, `later` times as much as this is still to come: where the cap or the
    time may not last for all of it, explored steps go first. `tell` gets, before anything is spent, a teacher
    and what its user should know: prompts that are longer than its context. `redact` gives a reply as
    it may be judged and handed out. Steps that the `referee` calls settled are not asked further, nor
    those at which `value` says that it is not worth it; without them all is asked. `breaker` knows what
    failed in earlier replays of the run. Steps whose pairs `pair_room` has no room for are not asked. Where
    `closed` says why, nothing goes out: the result has what was bought before.

    Raises PrivacyError before anything where a question was not redacted, TeacherError before any money where
    a teacher that is needed cannot answer, LedgerError where the ledger fails.
    """
    require_redacted(questions)
    settings, decisions = settings or ReplaySettings(), list(decisions)
    families = {teacher.name: teacher.family for teacher in teachers}
    hearing = Hearing(referee, decisions, families, value, pair_room)
    caller = Caller(ledger, run_id, settings, Counter(), on_wait, breaker)
    run = _Replay(caller, settings, hearing, on_reply, on_spared, redact or _as_it_is, tell)
    watching = asyncio.ensure_future(run.stop_at(interrupted or asyncio.Event()))
    try:
        with pause_gc():
            items = plan_items(questions, decisions, teachers, settings.samples)
            return await run.run(items, time_left_s, later, closed)
    finally:
        watching.cancel()
        try:
            await run.purse.booked()
        finally:
            for teacher in teachers:
                await teacher.close()
            run.purse.close()


class _Replay:
    """One replay: what is on its way, and what came of the rest."""

    def __init__(
        self,
        caller: Caller,
        settings: ReplaySettings,
        hearing: Hearing,
        on_reply: OnReply | None,
        on_spared: Callable[[], None] | None,
        redact: Redact,
        tell: Callable[[str, str], None] | None,
    ) -> None:
        self._tell = tell
        self.counters = caller.counters
        self.purse = caller.purse
        self._caller = caller
        self._settings = settings
        self._hearing = hearing
        self._on_reply = on_reply
        self._on_spared = on_spared
        self._redact = redact
        self._replies: dict[int, TeacherReply] = {}
        self._sent: set[str] = set()
        self._not_asked: dict[tuple[str, str], str] = {}
        self._buying: dict[str, asyncio.Event] = {}

    async def stop_at(self, interrupted: asyncio.Event) -> None:
        """Waits for the event, then lets nothing more go out."""
        await interrupted.wait()
        self._caller.stop(INTERRUPTED)

    async def run(
        self, items: Sequence[Item], time_left_s: float | None, later: float, closed: str
    ) -> ReplayResult:
        await self.purse.book(self.purse.ledger.write_off_stale, self._settings.write_off_after_s)
        self.counters["wanted"] = len(items)
        deadline = None if time_left_s is None else asyncio.get_running_loop().time() + time_left_s
        rest = self._with_room(self._unsettled(await self._from_ledger(items)))
        if rest and await self._reconcile(rest):
            closed = ""
        if rest and closed:
            self._caller.stop(closed)
            for item in rest:
                self._leave(item.call, BUDGET)
            rest = []
        if rest:
            await _check([*{id(item.teacher): item.teacher for item in rest}.values()])
            await self._note_usage(rest)
            rest = await self._fitting(rest)
        if rest:
            room = Room(await self._caller.room_nusd(), time_left_s, self._settings.concurrency, later)
            for phase in split_exploration_phases(rest, self._hearing.explored, room):
                await self._ask(phase, deadline)
        self._count_explored(items)
        self.counters["most_in_flight"] = self.purse.most_in_flight
        replies = [self._replies[index] for index in sorted(self._replies)]
        late = TIME_UP if self.counters[f"not_asked:{DEADLINE}"] else None
        why = self._caller.why_ended() or late
        return ReplayResult(replies, why, self.counters, self._not_asked, frozenset(self._sent))

    def _with_room(self, items: list[Item]) -> list[Item]:
        """The items for whose pairs the release has room."""
        if self._hearing.room is None:
            return items
        self._hearing.close_all_but({item.question.step_id for item in items})
        full = {item.call for item in items if self._hearing.is_full(item.question.step_id)}
        for call in full:
            self._leave(call, FULL)
        return [item for item in items if item.call not in full]

    async def _reconcile(self, items: Sequence[Item]) -> bool:
        """Books calls in doubt at what their accounts say; whether that leaves the run more money."""
        ledger, settings, cheaper = self.purse.ledger, self._settings, False
        for account, teacher in _accounts(items).items():
            doubts = await self.purse.book(ledger.calls_in_doubt, account, settings.reconcile_after_s)
            if not doubts:
                continue
            room = await self._caller.room_nusd()
            usage = await teacher.usage_nusd(fresh=True)
            found = [(each, await teacher.billed_nusd(each.bill_id)) for each in doubts if each.bill_id]
            billed = {each: nusd for each, nusd in found if nusd is not None}
            since = settings.reconcile_after_s, settings.write_off_after_s
            calls, less_nusd = await self.purse.book(ledger.reconcile, account, usage, *since, billed)
            self.counters["reconciled"] += calls
            self.counters["reconciled_nusd"] += less_nusd
            if calls and self._tell is not None:
                usd = f"${nusd_to_usd(less_nusd):.4f}"
                self._tell(
                    account, f"calls in doubt: {calls:,} cost {usd} less, by the account's own figures"
                )
            cheaper = cheaper or await self._caller.room_nusd() > room
        return cheaper

    async def _note_usage(self, items: Sequence[Item]) -> None:
        """Keeps what the accounts were charged before anything is asked."""
        ledger = self.purse.ledger
        for account, teacher in _accounts(items).items():
            usage = await teacher.usage_nusd(fresh=False)
            if usage is None and not await self.purse.book(ledger.looked_at, account):
                usage = await teacher.usage_nusd(fresh=True)
            if usage is not None:
                await self.purse.book(ledger.note_usage, account, usage)

    async def _from_ledger(self, items: Sequence[Item]) -> list[Item]:
        """Records what was bought before; gives what was not."""
        found = await self.purse.book(self.purse.ledger.answers_to, replay_plan_keys(items))
        left: list[Item] = []
        for item in items:
            stored = item.bought(found)
            if stored is None:
                left.append(item)
            else:
                self._record_stored(item, stored)
        return await self._affordable(left)

    async def _affordable(self, items: list[Item]) -> list[Item]:
        """The items whose answers were not paid in vain too often already. The others are rows, kept like
        answers."""
        keys = list(dict.fromkeys(item.key for item in items))
        self._caller.paid_in_vain.update(await self.purse.book(self.purse.ledger.paid_in_vain, keys))
        given_up = [item for item in items if self._caller.given_up(item.key)]
        if not given_up:
            return items
        rows = [
            replace(
                reply_to(item.teacher, item.question, item.sample, item.key), failure=FailureKind.EMPTY.value
            )
            for item in given_up
        ]
        await self.purse.book(self.purse.ledger.remember, rows)
        for item, row in zip(given_up, rows, strict=True):
            self._record(item, row, True)
        return [item for item in items if not self._caller.given_up(item.key)]

    def _unsettled(self, items: Sequence[Item]) -> list[Item]:
        """The items of steps that what was bought before does not settle."""
        settled = self._hearing.settled(items)
        for item in items:
            if why := settled.get(item.question.step_id):
                self._leave(item.call, f"{NOT_NEEDED}: {why}")
        return [item for item in items if item.question.step_id not in settled]

    async def _fitting(self, items: Sequence[Item]) -> list[Item]:
        """The items that may fit their teachers' contexts. The others are rows, kept like answers."""
        unfit = find_overlong_prompts(items)
        if not unfit:
            return list(items)
        if self._tell is not None:
            for teacher, line in describe_overlong_prompts(items, unfit).items():
                self._tell(teacher, line)
        rows = [overlong_prompt_reply(item) for item in unfit]
        await self.purse.book(self.purse.ledger.remember, rows)
        for item, row in zip(unfit, rows, strict=True):
            self._record(item, row, True)
        left = {item.index for item in unfit}
        return self._unsettled([item for item in items if item.index not in left])

    def _count_explored(self, items: Sequence[Item]) -> None:
        explored = [item for item in items if item.question.step_id in self._hearing.explored]
        self.counters["explored"] = len(explored)
        self.counters["explored_left"] = sum(item.call[:2] in self._not_asked for item in explored)

    async def _ask(self, items: Sequence[Item], deadline: float | None) -> None:
        """Asks the items in the order of the schedule, until the end or until nothing more can be asked."""
        width, order = self._settings.concurrency, self._hearing.in_order(replay_plan_teachers(items))
        time_left_s = None if deadline is None else max(deadline - asyncio.get_running_loop().time(), 0.0)
        flying = {item.call: item for item in items}
        still = StillAsked(item.question for item in items)

        def drop(call: Call, reason: str) -> None:
            self._leave(call, reason)
            still.once_less(flying[call].question)

        async def answer(item: Item, order: int) -> Outcome:
            outcome = await self._answer(item, order)
            still.once_less(item.question)
            return outcome

        room = await self._caller.room_nusd() - max((item.leave_nusd for item in items), default=0)
        funds, before = None, self._caller.spent_nusd
        if (expected := expected_if_scarce(items, room)) is not None:
            funds = Funds(
                expected,
                lambda: room - (self._caller.spent_nusd - before),
                lambda: self._caller.spent_nusd - before,
            )
        schedule = Schedule(
            plan_replay_strands(
                items,
                order,
                width if funds is None else 1,
                time_left_s,
                None if self._hearing.room is None else self._hearing.rank,
            ),
            [teacher.name for teacher in order],
            Rules(LEAD if self._hearing.stops else None, deadline, width),
            self._hearing.stand,
            Pace({teacher.name: cache_rule(teacher.family).lifetime_s for teacher in order}, LATENCY_S),
            drop,
            funds,
            self._hearing.limits(),
        )
        await Flight(schedule, flying, self._caller, answer, width).land()

    def _leave(self, call: Call, reason: str) -> None:
        self.counters[f"not_asked:{reason}"] += 1
        self._not_asked[call.step_id, call.teacher] = reason
        if self._on_spared is not None and reason.startswith(NOT_NEEDED):
            self._on_spared()

    def _record_stored(self, item: Item, text: str) -> None:
        self.counters["cached"] += 1
        reply = answer_from_reply_json(text, item.question.step_id, item.teacher.name)
        item.teacher.recall(item.question, reply)
        self._record(item, reply, True)

    def _record(self, item: Item, given: TeacherReply, stored: bool) -> None:
        reply = self._redact(given)
        self._replies[item.index] = reply
        if not stored:
            self._sent.add(reply.request_key)
        self._hearing.hear(reply)
        self.counters["answered" if reply.failure is None else f"failed:{reply.failure}"] += 1
        if self._on_reply is not None:
            self._on_reply(reply, stored)

    async def _answer(self, item: Item, order: int) -> Outcome:
        """Gets one answer. One that another step is buying at the moment is waited for."""
        while item.key in self._buying:
            await self._buying[item.key].wait()
        done = self._buying[item.key] = asyncio.Event()
        try:
            outcome = await self._caller.buy(item, order)
        finally:
            del self._buying[item.key]
            done.set()
        if outcome.stored is not None:
            self._record_stored(item, outcome.stored)
        elif outcome.reply is not None:
            self._record(item, outcome.reply, False)
        elif outcome.ends:
            self._leave(item.call, outcome.ends)
        return outcome


def _as_it_is(reply: TeacherReply) -> TeacherReply:
    return reply


def _accounts(items: Sequence[Item]) -> dict[str, HasAccount]:
    """A teacher of each account that can be looked at."""
    teachers = {id(item.teacher): item.teacher for item in items}.values()
    return {each.account: each for each in teachers if isinstance(each, HasAccount) and each.account}


async def _check(teachers: Sequence[Teacher]) -> None:
    _raise_first(await asyncio.gather(*(teacher.check() for teacher in teachers), return_exceptions=True))


def _raise_first(results: Sequence[object]) -> None:
    for result in results:
        if isinstance(result, BaseException):
            raise result
