"""Run a schedule on the event loop: send its questions and report each that finishes."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from tracemill.teachers.planning.replay_plan import WantedAnswer
from tracemill.teachers.planning.schedule import Schedule
from tracemill.teachers.planning.strand_state import OutgoingCall
from tracemill.teachers.replay.buy_answer import STOPPED, TEACHER_OUT, AnswerBuyer, PurchaseOutcome

MAX_OPEN_STEPS = 8
"""Steps of a strand that may be open at once: at a cap, these stay without a label."""


class Dispatcher:
    """A sender of the questions of a plan. An internal error stops everything and is raised at the end."""

    def __init__(
        self,
        schedule: Schedule,
        items: Mapping[OutgoingCall, WantedAnswer],
        buyer: AnswerBuyer,
        answer: Callable[[WantedAnswer, int], Awaitable[PurchaseOutcome]],
        width: int,
    ) -> None:
        """Prepare to send the questions.

        `answer` gets an item and its position among those asked at its step; `width` is the most calls in
        flight.
        """
        self._schedule = schedule
        self._items = items
        self._buyer = buyer
        self._answer = answer
        self._width = width
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._finished = asyncio.Event()
        self._fault: BaseException | None = None

    async def run(self) -> None:
        """Ask until nothing is left; when cancelled, cancel the calls in flight."""
        self._send()
        try:
            await self._finished.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._fault is not None:
            raise self._fault

    def _send(self) -> None:
        """Send the questions that may go now; finish if none is left and none is in flight."""
        self._report_stops()
        for call in self._schedule.next(self._loop.time(), self._width - self._schedule.in_flight):
            task = self._loop.create_task(self._ask(call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not self._schedule.in_flight:
            self._finished.set()

    def _report_stops(self) -> None:
        """Tell the schedule which teachers are unavailable, and whether everything stopped."""
        now = self._loop.time()
        if self._buyer.stopped and STOPPED not in self._ended:
            self._ended.add(STOPPED)
            self._schedule.end(STOPPED, now)
        for teacher in self._buyer.unavailable_teachers() - self._ended:
            self._ended.add(teacher)
            self._schedule.end(TEACHER_OUT, now, teacher=teacher)

    async def _ask(self, call: OutgoingCall) -> None:
        item, order = self._items[call], self._asked[call.step_id]
        self._asked[call.step_id] += 1
        try:
            outcome = await self._answer(item, order)
        except Exception as error:
            self._fault = self._fault or error
            self._buyer.stop(f"the replay failed ({type(error).__name__})")
            outcome = PurchaseOutcome()
        try:
            self._finish_call(call, item, outcome)
            self._send()
        except Exception as error:
            self._fault = self._fault or error
            self._finished.set()

    def _finish_call(self, call: OutgoingCall, item: WantedAnswer, outcome: PurchaseOutcome) -> None:
        now = self._loop.time()
        self._schedule.done(call, now, answered=outcome.reply is not None)
        if outcome.ends:
            self._schedule.end(outcome.ends, now, item.question.trace_id, call.teacher)
