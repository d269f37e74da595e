"""Simulate a teacher in this process: deterministic, priced, marked in every row."""

import asyncio
import json
import time
from dataclasses import replace

from tracemill.records.identity import request_key
from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import TeacherReply, TeacherUsage
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult, reply_to
from tracemill.teachers.core.teacher_settings import SimulatedTeacherSettings
from tracemill.teachers.offline.offline_teacher import OfflineTeacher
from tracemill.teachers.offline.sim_policy import SimulatedAnswer, simulate_answer

PROVIDER = "simulated"


class SimulatedTeacher(OfflineTeacher):
    """A teacher that answers from `sim_policy`; its list price is counted, though nothing is paid."""

    simulated = True

    def __init__(self, settings: SimulatedTeacherSettings) -> None:
        super().__init__(settings, settings.prices or OFFLINE_PRICES.get(settings.model))
        self._settings = settings

    def request_key(self, question: Question, sample: int) -> str:
        """Return the key of an answer."""
        settings = self._settings
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=PROVIDER,
            sampling={
                "max_tokens": settings.max_tokens,
                "temperature": settings.temperature,
                "seed": settings.seed,
            },
            reasoning=settings.reasoning.to_wire(),
            presentation=question.presentation,
            sample=sample,
        )

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that an answer can cost, in nano-USD, from the bytes of the request."""
        body = {"messages": question.wire_messages(), "tools": question.wire_tools()}
        size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        return self._price.bound_nanousd(size, self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Return one answer after `latency_s` seconds."""
        started = time.perf_counter()
        await asyncio.sleep(self._settings.latency_s)
        given = simulate_answer(
            self.model,
            question.wire_messages(),
            question.wire_tools(),
            seed=self._settings.seed,
            sample=sample,
        )
        cost = self._price.cost_nanousd(given.prompt_tokens, given.completion_tokens)
        return AttemptResult(self._reply(question, sample, given, cost, time.perf_counter() - started), cost)

    def _reply(
        self, question: Question, sample: int, given: SimulatedAnswer, cost_nanousd: int, latency_s: float
    ) -> TeacherReply:
        calls = tuple(
            ToolCall(f"call_{given.call_id}{index}", name, arguments)
            for index, (name, arguments) in enumerate(given.calls)
        )
        return replace(
            reply_to(self, question, sample, self.request_key(question, sample)),
            model=self.model,
            provider=PROVIDER,
            generation_id=f"sim-{given.call_id}",
            action=Action(given.text, calls),
            finish_reason="tool_calls" if calls else "stop",
            usage=TeacherUsage(given.prompt_tokens, given.completion_tokens),
            cost_usd=nanousd_to_usd(cost_nanousd),
            latency_s=latency_s if self._settings.latency_s else 0.0,
            simulated=True,
            raw=json.dumps(given.wire_message(), ensure_ascii=False),
        )
