"""What is to be asked, and in which order."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from records.reply import Decision
from teachers.question import Question
from teachers.teacher import Teacher


@dataclass(frozen=True, slots=True)
class Item:
    """One answer wanted. `index` is its place in the result, `order` that among those of its step."""

    index: int
    question: Question
    teacher: Teacher
    sample: int
    order: int
    key: str


Chain = deque[Item]


def plan_items(
    questions: Sequence[Question], decisions: Iterable[Decision], teachers: Sequence[Teacher], samples: int
) -> list[Item]:
    """Every answer that was decided on: by question, then teacher, then sample."""
    asked = {(d.step_id, d.teacher) for d in decisions if d.verdict == "ask"}
    items: list[Item] = []
    for question in questions:
        wanted = [t for t in teachers if (question.step_id, t.name) in asked]
        pairs = [(teacher, sample) for teacher in wanted for sample in range(samples)]
        for order, (teacher, sample) in enumerate(pairs):
            key = teacher.request_key(question, sample)
            items.append(Item(len(items), question, teacher, sample, order, key))
    return items


def chains_of(items: Iterable[Item]) -> deque[Chain]:
    """The items by trace and teacher, each chain in the order of its steps, so that a step is asked
    after the one whose prompt it extends. Chains of one trace stand together."""
    chains: dict[tuple[str, str], Chain] = {}
    for item in items:
        chains.setdefault((item.question.trace_id, item.teacher.name), deque()).append(item)
    first_seen = {trace: place for place, (trace, _) in reversed(list(enumerate(chains)))}
    return deque(sorted(chains.values(), key=lambda chain: first_seen[chain[0].question.trace_id]))
