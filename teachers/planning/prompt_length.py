"""Find prompts that are certainly longer than a model's context; they fail without a call.

The number of tokens is not known before a prompt is sent. One token for every six bytes is a safe lower bound
for code, prose and JSON under any tokenizer; in between, the server decides.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.planning.replay_plan import BYTES_A_TOKEN, WantedAnswer, replay_plan_lengths
from tracemill.teachers.planning.segments import StepTokens

MOST_BYTES_A_TOKEN = 6


def prompt_lengths_by_step(questions: Iterable[Question]) -> dict[str, StepTokens]:
    """Return the length of each step's prompt, and the length it shares with the one before."""
    traces: dict[str, dict[str, Question]] = {}
    for question in questions:
        traces.setdefault(question.trace_id, {})[question.step_id] = question
    return {
        step_id: length
        for steps in traces.values()
        for step_id, length in zip(steps, replay_plan_lengths(list(steps.values())), strict=True)
    }


def find_overlong_prompts(items: Sequence[WantedAnswer]) -> list[WantedAnswer]:
    """Return the items whose prompts certainly exceed their teachers' known contexts."""
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


def describe_overlong_prompts(items: Sequence[WantedAnswer], unfit: Sequence[WantedAnswer]) -> dict[str, str]:
    """Return a line, by name, for each teacher whose context some of the items exceed."""
    asked: Counter[str] = Counter(item.teacher.name for item in items)
    long: Counter[str] = Counter(item.teacher.name for item in unfit)
    teachers: dict[str, Teacher] = {item.teacher.name: item.teacher for item in unfit}
    lines: dict[str, str] = {}
    for name, count in long.items():
        some = f"{count:,} of {asked[name]:,} prompts are" if count < asked[name] else "every prompt is"
        lines[name] = (
            f"{name}: {some} longer than its context of {teachers[name].context_tokens:,} tokens: "
            f"not sent, recorded as context_too_long"
        )
    return lines
