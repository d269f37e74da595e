"""What is to be asked, along which strands, and in which order of teachers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.records.reply import Decision
from tracemill.records.trace import MessageView
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.planning.segments import Length, Worth, find_segment_cuts
from tracemill.teachers.planning.strand_state import Call, StepWork
from tracemill.teachers.pricing.prompt_cache import TokenCosts

ANSWER_TOKENS = 600
"""Tokens an answer is taken to have, reasoning included, where the cost of a call is estimated."""
LATENCY_S = 8.0
"""Seconds an answer is taken to take."""
CUT_SHARE = 0.05
"""What cutting a strand may add to its cost where only the other strands wait for it."""
HASTE_SHARE = 1.0
"""The same where it would not be through by the deadline."""
BYTES_A_TOKEN = 4
_MESSAGE_BYTES = 32
_CACHED_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Item:
    """One answer wanted. `index` is its place in the result, `key` what it is bought under, `former_key`
    what it may have been bought under before; empty where that is nothing else. It is bought only where
    `leave_nusd` is left beside it."""

    index: int
    question: Question
    teacher: Teacher
    sample: int
    key: str
    former_key: str = ""
    leave_nusd: int = 0

    def bought(self, answers: Mapping[str, str]) -> str | None:
        """The stored answer among those of the ledger by key, None where there is none."""
        return answers.get(self.key) or (answers.get(self.former_key) if self.former_key else None)

    @property
    def call(self) -> Call:
        """The item as the schedule knows it."""
        return Call(self.question.step_id, self.teacher.name, self.sample)


def plan_items(
    questions: Sequence[Question], decisions: Iterable[Decision], teachers: Sequence[Teacher], samples: int
) -> list[Item]:
    """Every answer that was decided on: by question, then teacher, then sample."""
    asked = {(d.step_id, d.teacher) for d in decisions if d.verdict == "ask"}
    items: list[Item] = []
    for question in questions:
        wanted = [t for t in teachers if (question.step_id, t.name) in asked]
        for teacher, sample in ((teacher, sample) for teacher in wanted for sample in range(samples)):
            key = teacher.request_key(question, sample)
            items.append(Item(len(items), question, teacher, sample, key, _former(question, teacher, sample)))
    return items


def _former(question: Question, teacher: Teacher, sample: int) -> str:
    if not question.former_prompt_id:
        return ""
    return teacher.request_key(replace(question, prompt_id=question.former_prompt_id), sample)


def replay_plan_keys(items: Iterable[Item]) -> list[str]:
    """The keys under which answers to the items may lie in a ledger, each once."""
    return list(dict.fromkeys(key for item in items for key in (item.key, item.former_key) if key))


def replay_plan_teachers(items: Sequence[Item]) -> list[Teacher]:
    """The teachers of the items by what a call to them costs on average, cache included; of two that cost
    the same, the one that is named first."""
    teachers = {id(item.teacher): item.teacher for item in items}.values()
    some = items[:: max(len(items) // 50, 1)]
    tokens = sum(_tokens(item.question) for item in some) // max(len(some), 1)

    def usd(teacher: Teacher) -> float:
        costs = TokenCosts.of(teacher.price)
        return costs.call_usd(tokens, round(tokens * _CACHED_SHARE), ANSWER_TOKENS)

    return sorted(teachers, key=usd)


def plan_replay_strands(
    items: Sequence[Item],
    teachers: Sequence[Teacher],
    width: int,
    time_left_s: float | None,
    rank: Callable[[str], Any] | None = None,
) -> list[tuple[str, list[StepWork]]]:
    """The steps of the items as strands, one a trace, or several where it is worth cutting it: where it
    would take longer than all the work at `width` calls at once, or than there is time. With a `rank` of
    steps by their ids there is one a trace, the least rank first."""
    traces: dict[str, list[Question]] = {}
    wanted: dict[str, dict[str, list[int]]] = {}
    for item in items:
        step_id = item.question.step_id
        if step_id not in wanted:
            traces.setdefault(item.question.trace_id, []).append(item.question)
        wanted.setdefault(step_id, {}).setdefault(item.teacher.name, []).append(item.sample)
    worth = Worth(len(items) / width * LATENCY_S, LATENCY_S, CUT_SHARE)
    costs = [TokenCosts.of(teacher.price) for teacher in teachers]
    strands: list[tuple[str, list[StepWork]]] = []
    for trace_id, questions in traces.items():
        works = [StepWork(question.step_id, wanted[question.step_id]) for question in questions]
        if rank is not None:
            strands.append((trace_id, sorted(works, key=lambda work: rank(work.step_id))))
            continue
        strands += [(trace_id, part) for part in _parts(works, questions, costs, worth, time_left_s)]
    return strands


def _parts(
    works: list[StepWork],
    questions: Sequence[Question],
    costs: Sequence[TokenCosts],
    worth: Worth,
    time_left_s: float | None,
) -> list[list[StepWork]]:
    takes_s = len(works) * worth.step_s
    late = time_left_s is not None and takes_s > time_left_s
    if late and time_left_s is not None:
        worth = Worth(max(time_left_s, worth.step_s), worth.step_s, HASTE_SHARE)
    if takes_s <= worth.target_s:
        return [works]
    starts = find_segment_cuts(replay_plan_lengths(questions), costs, ANSWER_TOKENS, worth)
    return [works[a:b] for a, b in zip(starts, [*starts[1:], len(works)], strict=True)]


def replay_plan_lengths(questions: Sequence[Question]) -> list[Length]:
    """How long each prompt is, in tokens of four bytes, and how much of it the one before has too."""
    lengths: list[Length] = []
    before: Sequence[object] = ()
    tokens = 0
    for question in questions:
        messages = question.messages
        if _extends(messages, before):
            shared, alike = tokens, len(before)
        else:
            alike = next(
                (n for n, (a, b) in enumerate(zip(messages, before, strict=False)) if a != b),
                min(len(messages), len(before)),
            )
            shared = _tokens(question, 0, alike)
        tokens = shared + _tokens(question, alike)
        lengths.append(Length(tokens, shared))
        before = messages
    return lengths


def _extends(messages: Sequence[object], before: Sequence[object]) -> bool:
    """Whether a prompt surely begins with the one before: both are views of one context."""
    if isinstance(messages, MessageView) and isinstance(before, MessageView):
        return messages.whole is before.whole and len(before) <= len(messages)
    return False


def _tokens(question: Question, start: int = 0, end: int | None = None) -> int:
    messages = question.messages[start:end]
    size = sum(
        _MESSAGE_BYTES + len(m.content) + sum(len(call.arguments) + len(call.name) for call in m.tool_calls)
        for m in messages
    )
    return size // BYTES_A_TOKEN
