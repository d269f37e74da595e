"""Prompts that are surely longer than a model's context: rows without a call.

How many tokens a prompt has is not known before it is sent. That it has more than one for every six bytes
is sure enough for code, prose and JSON of any tokenizer; what lies between is sent, and the server decides.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracemill.records.reply import FailureKind, TeacherReply
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher, reply_to
from tracemill.teachers.planning.replay_plan import BYTES_A_TOKEN, Item, replay_plan_lengths
from tracemill.teachers.planning.segments import Length

MOST_BYTES_A_TOKEN = 6


def prompt_lengths_by_step(questions: Iterable[Question]) -> dict[str, Length]:
    """How long each step's prompt is, and how much of it the one before in its trace has too."""
    traces: dict[str, dict[str, Question]] = {}
    for question in questions:
        traces.setdefault(question.trace_id, {})[question.step_id] = question
    return {
        step_id: length
        for steps in traces.values()
        for step_id, length in zip(steps, replay_plan_lengths(list(steps.values())), strict=True)
    }


def find_overlong_prompts(items: Sequence[Item]) -> list[Item]:
    """The items whose prompts surely do not fit their teachers' contexts, as far as those are known."""
    limits = {id(item.teacher): item.teacher.context_tokens for item in items}
    if not any(limits.values()):
        return []
    lengths = prompt_lengths_by_step(item.question for item in items)
    return [
        item
        for item in items
        if (limit := limits[id(item.teacher)])
        and lengths[item.question.step_id].tokens * BYTES_A_TOKEN > limit * MOST_BYTES_A_TOKEN
    ]


def overlong_prompt_reply(item: Item) -> TeacherReply:
    """The reply of an item that is too long."""
    reply = reply_to(item.teacher, item.question, item.sample, item.key)
    return replace(reply, failure=FailureKind.CONTEXT_TOO_LONG.value)


def describe_overlong_prompts(items: Sequence[Item], unfit: Sequence[Item]) -> dict[str, str]:
    """A line for each teacher that some of the items do not fit, by its name."""
    asked: Counter[str] = Counter(item.teacher.name for item in items)
    long: Counter[str] = Counter(item.teacher.name for item in unfit)
    teachers: dict[str, Teacher] = {item.teacher.name: item.teacher for item in unfit}
    lines: dict[str, str] = {}
    for name, count in long.items():
        some = f"{count:,} of {asked[name]:,} prompts are" if count < asked[name] else "every prompt is"
        lines[name] = (
            f"{name}: {some} longer than its context of {teachers[name].context_tokens:,} tokens: "
            f"rows context_too_long, not sent"
        )
    return lines
