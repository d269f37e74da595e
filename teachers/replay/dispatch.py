"""A schedule on the event loop: questions go out as it says, and it hears of each that comes home."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from tracemill.teachers.planning.replay_plan import Item
from tracemill.teachers.planning.schedule import Schedule
from tracemill.teachers.planning.strand_state import Call
from tracemill.teachers.replay.buy_answer import STOPPED, TEACHER_OUT, Caller, Outcome

LEAD = 8
"""Steps of a strand that may be begun and not finished: what a cap that is met leaves without a label."""


class Flight:
    """The questions of one schedule. A fault of our own stops everything and is raised at the end."""

    def __init__(
        self,
        schedule: Schedule,
        items: Mapping[Call, Item],
        caller: Caller,
        answer: Callable[[Item, int], Awaitable[Outcome]],
        width: int,
    ) -> None:
        """`answer` gets an item and its place among those asked at its step; `width` is how many are on
        their way at most."""
        self._schedule = schedule
        self._items = items
        self._caller = caller
        self._answer = answer
        self._width = width
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._landed = asyncio.Event()
        self._fault: BaseException | None = None

    async def land(self) -> None:
        """Asks until nothing is left; when cancelled, cancels what is on its way."""
        self._send()
        try:
            await self._landed.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._fault is not None:
            raise self._fault

    def _send(self) -> None:
        """Sends what may go now; with nothing on its way and nothing to send, it is over."""
        self._end_closed()
        for call in self._schedule.next(self._loop.time(), self._width - self._schedule.out):
            task = self._loop.create_task(self._fly(call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not self._schedule.out:
            self._landed.set()

    def _end_closed(self) -> None:
        """Tells the schedule of teachers that are out, and of the end of everything."""
        now = self._loop.time()
        if self._caller.stopped and STOPPED not in self._ended:
            self._ended.add(STOPPED)
            self._schedule.end(STOPPED, now)
        for teacher in self._caller.out() - self._ended:
            self._ended.add(teacher)
            self._schedule.end(TEACHER_OUT, now, teacher=teacher)

    async def _fly(self, call: Call) -> None:
        item, order = self._items[call], self._asked[call.step_id]
        self._asked[call.step_id] += 1
        try:
            outcome = await self._answer(item, order)
        except Exception as error:
            self._fault = self._fault or error
            self._caller.stop(f"the replay failed ({type(error).__name__})")
            outcome = Outcome()
        try:
            self._come_home(call, item, outcome)
            self._send()
        except Exception as error:
            self._fault = self._fault or error
            self._landed.set()

    def _come_home(self, call: Call, item: Item, outcome: Outcome) -> None:
        now = self._loop.time()
        self._schedule.done(call, now, answered=outcome.reply is not None)
        if outcome.ends:
            self._schedule.end(outcome.ends, now, item.question.trace_id, call.teacher)
