"""Call every teacher once, and compare its cost by answer, tokens and the server's record.

The worst case of each call is known before it is made, and the worst cases of all calls together stay within
the cap, whatever the servers state afterwards.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracemill.flows.consent.destinations import THIS_MACHINE
from tracemill.flows.live_checks.live_check import LiveCheck, LiveState
from tracemill.records.errors import TracemillError
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolSpec
from tracemill.records.printable import printable_count
from tracemill.records.reply import FailureKind
from tracemill.records.trace import MessageView
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.billing_lookup import look_up_bill
from tracemill.teachers.client.chat_teacher import BELIEVED, ROUNDING_NANOUSD, ChatTeacher
from tracemill.teachers.core.api_keys import api_key
from tracemill.teachers.core.base_urls import host_of
from tracemill.teachers.core.price import Price, nanousd_to_usd
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult, Teacher
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    OpenRouterTeacherSettings,
    ReasoningSettings,
    ReplaySettings,
)
from tracemill.teachers.pricing.price_book import PriceBook

CAP_NANOUSD = 50_000_000
"""The most that all calls together can cost, in nano-USD: $0.05."""
ANSWER_TOKENS = 64
RECORD_LOOKS = 7
"""Looks at the record of an answer, which appears late: half a minute with the default `replay.backoff_s`."""
PROBE_TEXT = "This is a connection test. Call the tool `report` with the status ok."
_TOOL = ToolSpec(
    "report",
    "Reports the status of the connection.",
    {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]},
)
_LIMIT_S = 60.0
"""Seconds that a call may take, and that a server has to say what its models cost."""
_SAME = 0.01
"""The share by which a record and a stated cost may differ."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that fits the cap; `bound_nanousd` is its worst case."""

    settings: BaseTeacherSettings
    teacher: Teacher
    bound_nanousd: int


def probe_question() -> Question:
    """Build the fixed question that every teacher is asked; it contains no data of the user."""
    message, tools = Message("user", PROBE_TEXT), (_TOOL,)
    prompt_id = extend_prompt(prompt_root(tools, "doctor"), message)
    return Question("doctor:0:0", "doctor", MessageView((message,), 1), tools, prompt_id, "doctor", "fixed")


def call_teachers(
    asked: Sequence[BaseTeacherSettings], environ: Mapping[str, str], replay: ReplaySettings
) -> list[LiveCheck]:
    """Call each teacher once and return the checks in their order, the total cost last."""
    return asyncio.run(_Calls(asked, environ, replay).run())


class _Calls:
    """The calls of one `doctor --live`."""

    def __init__(
        self, asked: Sequence[BaseTeacherSettings], environ: Mapping[str, str], replay: ReplaySettings
    ) -> None:
        self._asked = asked
        self._environ = environ
        self._replay = replay
        self._book = PriceBook()
        self._question = probe_question()
        self._checks: dict[str, list[LiveCheck]] = {one.name: [] for one in asked}
        self._known_nanousd = 0
        self._left_nanousd = CAP_NANOUSD

    async def run(self) -> list[LiveCheck]:
        built = self._build()
        try:
            fitting = self._fitting(await self._usable(built))
            width = asyncio.Semaphore(self._replay.concurrency)
            await asyncio.gather(*(self._call(call, width) for call in fitting))
        finally:
            for _, teacher in built:
                await teacher.close()
        found = [check for checks in self._checks.values() for check in checks]
        if fitting:
            said = f"{_usd(self._known_nanousd)} of {printable_count(len(fitting), 'call')}"
            worst = f"at most {_usd(CAP_NANOUSD - self._left_nanousd)} of {_usd(CAP_NANOUSD)}"
            found.append(LiveCheck("spent", "ok", f"{said}, {worst}"))
        return found

    def _say(self, one: BaseTeacherSettings, what: str, state: LiveState, said: str) -> None:
        self._checks[one.name].append(LiveCheck(f"{what} {one.name}", state, said))

    def _build(self) -> list[tuple[BaseTeacherSettings, Teacher]]:
        """Build the remote teachers that have a key."""
        chosen: list[BaseTeacherSettings] = []
        for one in self._asked:
            if one.sends_to(self._environ) is None:
                self._say(one, "answer of", "not tried", "it answers in this process: nothing is sent")
                continue
            try:
                api_key(one, self._environ)
            except TracemillError as error:
                self._say(one, "answer of", "failed", str(error))
            else:
                chosen.append(one)
        short = [_short(one) for one in chosen]
        return list(zip(chosen, build_teachers(short, self._environ, book=self._book), strict=True))

    async def _usable(
        self, built: Sequence[tuple[BaseTeacherSettings, Teacher]]
    ) -> list[tuple[BaseTeacherSettings, Teacher]]:
        """Return the teachers that their servers list, with their prices."""

        async def check(teacher: Teacher) -> str:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await teacher.check()
            except TimeoutError:
                return f"its server gave no model list in {_LIMIT_S:g} s"
            except TracemillError as error:
                return str(error)
            except Exception as error:
                return _by_itself(error)
            return ""

        faults = await asyncio.gather(*(check(teacher) for _, teacher in built))
        for (one, _), fault in zip(built, faults, strict=True):
            if fault:
                self._say(one, "answer of", "failed", fault)
        return [pair for pair, fault in zip(built, faults, strict=True) if not fault]

    def _fitting(self, usable: Sequence[tuple[BaseTeacherSettings, Teacher]]) -> list[_Call]:
        """Return the calls whose worst cases fit the cap together, in order."""
        found: list[_Call] = []
        for one, teacher in usable:
            bound = teacher.bound_nanousd(self._question)
            if not self._price_known(one, teacher):
                why = "no price is known; set `prices`, 0 where it is free"
                self._say(one, "answer of", "not tried", why)
            elif bound > self._left_nanousd:
                why = f"its worst case of {_usd(bound)} does not fit {_usd(self._left_nanousd)} that are left"
                self._say(one, "answer of", "not tried", f"{why} of {_usd(CAP_NANOUSD)}")
            else:
                self._left_nanousd -= bound
                found.append(_Call(one, teacher, bound))
        return found

    def _price_known(self, one: BaseTeacherSettings, teacher: Teacher) -> bool:
        """Return whether the worst case is a known price, not a default of 0."""
        if one.prices is not None or teacher.price != Price():
            return True
        url = one.sends_to(self._environ) or ""
        if host_of(url) in THIS_MACHINE and one.stays_here():
            return True
        page = self._book.page(url.rstrip("/"), one.model) or {}
        return "prompt" in (page.get("entry") or {}).get("pricing", {})

    async def _call(self, call: _Call, width: asyncio.Semaphore) -> None:
        one, teacher = call.settings, call.teacher
        sent_bytes = len(teacher.body(self._question, 0)) if isinstance(teacher, ChatTeacher) else 0
        limit_s = min(self._replay.attempt_timeout_s, _LIMIT_S)
        async with width:
            try:
                async with asyncio.timeout(limit_s):
                    asked = await teacher.ask(self._question, 0)
            except TimeoutError:
                self._known_nanousd += call.bound_nanousd
                self._say(one, "answer of", "failed", f"gave no answer in {limit_s:g} s")
                return
            except Exception as error:
                self._known_nanousd += call.bound_nanousd
                self._say(one, "answer of", "failed", _by_itself(error))
                return
        self._say_answer(one, asked)
        record = await self._record(one, teacher, asked)
        likely = [each for each in (record, asked.claimed_nanousd, asked.cost_nanousd) if each is not None]
        self._known_nanousd += max(likely, default=call.bound_nanousd)
        for check in _cost_checks(one, teacher, asked, record, sent_bytes):
            self._checks[one.name].append(check)

    def _say_answer(self, one: BaseTeacherSettings, asked: AttemptResult) -> None:
        reply = asked.reply
        if reply.failure not in (None, FailureKind.TRUNCATED.value):
            self._say(one, "answer of", "failed", asked.why or reply.failure or "")
            return
        tokens = f"{reply.usage.prompt_tokens:,} + {reply.usage.completion_tokens:,} tokens"
        cut = f", cut at the {ANSWER_TOKENS} that were asked for" if reply.failure else ""
        simulated = ", simulated" if reply.simulated else ""
        self._say(one, "answer of", "ok", f"in {reply.latency_s:.1f} s, {tokens}{cut}{simulated}")

    async def _record(self, one: BaseTeacherSettings, teacher: Teacher, asked: AttemptResult) -> int | None:
        """Return the cost in the server's record of the answer, polled until the record exists."""
        named = asked.reply.generation_id
        if not named or not isinstance(one, OpenRouterTeacherSettings):
            return None
        return await look_up_bill(teacher, named, asyncio.sleep, self._replay.backoff_s, RECORD_LOOKS)


def _by_itself(error: Exception) -> str:
    """Describe an unexpected error of a teacher from a package."""
    return f"failed by itself ({type(error).__name__})"


def _short(one: BaseTeacherSettings) -> BaseTeacherSettings:
    """Return a copy of the settings for a short answer, without long reasoning."""
    off = one.reasoning.enabled is False or one.reasoning.effort == "none"
    reasoning = one.reasoning if off else ReasoningSettings()
    return one.model_copy(update={"max_tokens": ANSWER_TOKENS, "reasoning_room": 0, "reasoning": reasoning})


def _cost_checks(
    one: BaseTeacherSettings, teacher: Teacher, asked: AttemptResult, record: int | None, sent_bytes: int
) -> Iterator[LiveCheck]:
    """Compare the stated cost with tokens times price and with the server's record."""
    stated, usage = asked.claimed_nanousd, asked.reply.usage
    if isinstance(teacher, ChatTeacher) and (stated is not None or usage.prompt_tokens):
        least, most = teacher.cost_range_nanousd(asked.reply.provider, usage, sent_bytes)
        yield LiveCheck(f"cost of {one.name}", *_held_against_tokens(stated, least, most))
    if isinstance(one, OpenRouterTeacherSettings) and asked.reply.generation_id:
        yield LiveCheck(f"record of {one.name}", *_held_against_record(stated, record))


def _held_against_tokens(stated: int | None, least: int, most: int | None) -> tuple[LiveState, str]:
    """Return whether a stated cost lies between the provider's lowest price and tokens times price."""
    if most is None:
        return "failed", "fewer tokens were counted than the request has"
    if stated is None:
        return "not tried", f"the answer states no cost; its tokens come to {_usd(most)}"
    said = f"{_usd(stated)} stated, {_usd(most)} by tokens times price"
    if stated < BELIEVED * least:
        return "failed", f"{said}: less than its provider charges at least, {_usd(least)}"
    if stated > most + ROUNDING_NANOUSD:
        return "failed", f"{said}: {stated / most:.2f} times as much" if most else f"{said}: listed as free"
    return "ok", said


def _held_against_record(stated: int | None, record: int | None) -> tuple[LiveState, str]:
    """Return whether the server's record of an answer has the same cost as the answer."""
    if record is None:
        return "failed", f"the server shows none after {RECORD_LOOKS} looks"
    if stated is None:
        return "not tried", f"{_usd(record)}; the answer states no cost"
    same = abs(record - stated) <= max(ROUNDING_NANOUSD, _SAME * record)
    return ("ok" if same else "failed"), f"{_usd(record)} charged, {_usd(stated)} stated"


def _usd(nanousd: int) -> str:
    return "$" + f"{nanousd_to_usd(nanousd):.7f}".rstrip("0").rstrip(".")
