"""Plan a replay: which answers are wanted, in which strands, in which order of teachers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.records.reply import AskDecision
from tracemill.records.trace import MessageView
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.planning.segments import ChainCutRule, StepTokens, find_segment_cuts
from tracemill.teachers.planning.strand_state import OutgoingCall, StepWork
from tracemill.teachers.pricing.prompt_cache import TokenCosts

ANSWER_TOKENS = 600
"""Assumed tokens of an answer, reasoning included."""
LATENCY_S = 8.0
"""Assumed seconds until an answer."""
CUT_SHARE = 0.05
"""Highest share of extra cost for cutting a strand that only delays the replay."""
HASTE_SHARE = 1.0
"""The same for a strand that would miss the deadline."""
BYTES_A_TOKEN = 4
_MESSAGE_BYTES = 32
_CACHED_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class WantedAnswer:
    """One answer to obtain.

    `index` is its position in the result, `key` the request key, `former_key` the key of an earlier
    presentation ("" if there is none). It is bought only if `leave_nanousd` of the caps remain free.
    """

    index: int
    question: Question
    teacher: Teacher
    sample: int
    key: str
    former_key: str = ""
    leave_nanousd: int = 0

    def bought(self, answers: Mapping[str, str]) -> str | None:
        """Return the stored answer from `answers`, by request key; None if there is none."""
        return answers.get(self.key) or (answers.get(self.former_key) if self.former_key else None)

    @property
    def call(self) -> OutgoingCall:
        """Return the item as a call of the schedule."""
        return OutgoingCall(self.question.step_id, self.teacher.name, self.sample)


def plan_items(
    questions: Sequence[Question], decisions: Iterable[AskDecision], teachers: Sequence[Teacher], samples: int
) -> list[WantedAnswer]:
    """Return every answer that was decided on, by question, then teacher, then sample."""
    asked = {(d.step_id, d.teacher) for d in decisions if d.verdict == "ask"}
    items: list[WantedAnswer] = []
    for question in questions:
        wanted = [t for t in teachers if (question.step_id, t.name) in asked]
        for teacher, sample in ((teacher, sample) for teacher in wanted for sample in range(samples)):
            key = teacher.request_key(question, sample)
            items.append(
                WantedAnswer(len(items), question, teacher, sample, key, _former(question, teacher, sample))
            )
    return items


def _former(question: Question, teacher: Teacher, sample: int) -> str:
    if not question.former_prompt_id:
        return ""
    return teacher.request_key(replace(question, prompt_id=question.former_prompt_id), sample)


def replay_plan_keys(items: Iterable[WantedAnswer]) -> list[str]:
    """Return every key under which a ledger may have answers to the items, once."""
    return list(dict.fromkeys(key for item in items for key in (item.key, item.former_key) if key))


def replay_plan_teachers(items: Sequence[WantedAnswer]) -> list[Teacher]:
    """Return the teachers of the items, cheapest first by average cached call; ties in order."""
    teachers = {id(item.teacher): item.teacher for item in items}.values()
    some = items[:: max(len(items) // 50, 1)]
    tokens = sum(_tokens(item.question) for item in some) // max(len(some), 1)

    def usd(teacher: Teacher) -> float:
        costs = TokenCosts.of(teacher.price)
        return costs.call_usd(tokens, round(tokens * _CACHED_SHARE), ANSWER_TOKENS)

    return sorted(teachers, key=usd)


def plan_replay_strands(
    items: Sequence[WantedAnswer],
    teachers: Sequence[Teacher],
    width: int,
    time_left_s: float | None,
    rank: Callable[[str], Any] | None = None,
) -> list[tuple[str, list[StepWork]]]:
    """Return the steps of the items as (trace id, steps) sequences.

    A trace is one sequence. It is cut if it would take longer than all the work at `width` calls at once,
    or than the time left, as long as cutting is worth its cost. With a `rank` by step id no trace is cut
    and its steps are sorted by rank.
    """
    traces: dict[str, list[Question]] = {}
    wanted: dict[str, dict[str, list[int]]] = {}
    for item in items:
        step_id = item.question.step_id
        if step_id not in wanted:
            traces.setdefault(item.question.trace_id, []).append(item.question)
        wanted.setdefault(step_id, {}).setdefault(item.teacher.name, []).append(item.sample)
    worth = ChainCutRule(len(items) / width * LATENCY_S, LATENCY_S, CUT_SHARE)
    costs = [TokenCosts.of(teacher.price) for teacher in teachers]
    strands: list[tuple[str, list[StepWork]]] = []
    for trace_id, questions in traces.items():
        works = [StepWork(question.step_id, wanted[question.step_id]) for question in questions]
        if rank is not None:
            strands.append((trace_id, sorted(works, key=lambda work: rank(work.step_id))))
            continue
        strands += [(trace_id, part) for part in _cut_strand(works, questions, costs, worth, time_left_s)]
    return strands


def _cut_strand(
    works: list[StepWork],
    questions: Sequence[Question],
    costs: Sequence[TokenCosts],
    worth: ChainCutRule,
    time_left_s: float | None,
) -> list[list[StepWork]]:
    takes_s = len(works) * worth.step_s
    late = time_left_s is not None and takes_s > time_left_s
    if late and time_left_s is not None:
        worth = ChainCutRule(max(time_left_s, worth.step_s), worth.step_s, HASTE_SHARE)
    if takes_s <= worth.target_s:
        return [works]
    starts = find_segment_cuts(replay_plan_lengths(questions), costs, ANSWER_TOKENS, worth)
    return [works[a:b] for a, b in zip(starts, [*starts[1:], len(works)], strict=True)]


def replay_plan_lengths(questions: Sequence[Question]) -> list[StepTokens]:
    """Return each prompt's tokens, at four bytes each, and how many it shares with the one before."""
    lengths: list[StepTokens] = []
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
        lengths.append(StepTokens(tokens, shared))
        before = messages
    return lengths


def _extends(messages: Sequence[object], before: Sequence[object]) -> bool:
    """Return whether a prompt surely begins with the one before: both are views of one context."""
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
