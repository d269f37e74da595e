"""Ask a teacher for hints at the failed actions of a workspace."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.label_shard import ShownTrace
from tracemill.flows.run_state.stored_traces import traces_of_table
from tracemill.records.errors import ConfigError
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, BudgetSettings, GateSettings
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import answer_from_reply_json
from tracemill.train.hints.error_sites import error_sites
from tracemill.train.hints.hint_question import HINT_VERSION, hint_message, hint_prompt_id, read_hint
from tracemill.train.hints.hint_text import TEMPLATE, Hint

NOT_ASKED = "not asked"
"""Why a template took the place of a hint that nobody was asked for."""


@dataclass(frozen=True, slots=True)
class HintBatch:
    """Traces of a workspace as teachers see them, and a question for each of their failed actions."""

    shown: Sequence[ShownTrace]
    questions: Sequence[Question]


def hint_settings(settings: RunSettings) -> RunSettings:
    """Return the settings for hints: one teacher, and a separate cap.

    The caps of a day and of a trace stay. Raises ConfigError if no writer is configured.
    """
    writer, training = settings.hint_writer(), settings.training
    if (
        writer is None
        or training is None
        or training.composer is None
        or training.composer.hint_max_usd is None
    ):
        raise ConfigError(
            "no writer of hints is configured", "training.composer.hint_writer and hint_max_usd"
        )
    budget = BudgetSettings(max_total_usd=training.composer.hint_max_usd)
    if settings.budget is not None:
        budget = settings.budget.model_copy(update={"max_total_usd": budget.max_total_usd})
    named = writer.model_copy(update={"name": f"{writer.model} (hint writer)"})
    own = {"preset": "none", "teachers": (named,), "judge": None, "verified": None}
    return settings.model_copy(update={**own, "gate": GateSettings(), "budget": budget})


def writer_of(settings: RunSettings) -> BaseTeacherSettings:
    """Return the one teacher of settings that `hint_settings` returned."""
    [writer] = settings.asked_teachers()
    return writer


def hint_batches(work: Workspace, reredactor: Reredactor, selected: Container[str]) -> Iterator[HintBatch]:
    """Yield the selected traces that have failed actions, with the questions on them, a shard at a time."""
    for table in work.current("traces"):
        shown, questions = list[ShownTrace](), list[Question]()
        for trace in traces_of_table(table):
            if trace.trace_id not in selected or not any(True for _ in error_sites(trace)):
                continue
            item = ShownTrace.of(trace, reredactor)
            if found := list(hint_questions(item)):
                shown.append(item)
                questions += found
        if questions:
            yield HintBatch(shown, questions)


def hint_questions(item: ShownTrace) -> Iterator[Question]:
    """Yield a question for each failed action of a trace; none for a trace of a summarising agent."""
    steps = {question.step_id: question for question in item.questions()}
    for site in error_sites(item.trace):
        question = steps.get(str(site.state.step_id))
        if question is None:
            continue
        message = hint_message(site)
        yield replace(
            question,
            messages=(*question.messages, message),
            prompt_id=hint_prompt_id(question.prompt_id, message),
            presentation=f"{question.presentation}+{HINT_VERSION}",
            former_prompt_id="",
        )


def stored_hints(batch: HintBatch, teacher: Teacher, ledger: Ledger) -> dict[str, Hint]:
    """Return the hints, by step, of the questions whose answers the ledger has; nothing is sent."""
    keys = {question.step_id: teacher.request_key(question, 0) for question in batch.questions}
    stored = ledger.answers_to(list(dict.fromkeys(keys.values())))
    clean = {item.trace.trace_id: item.reply for item in batch.shown}
    replies = [
        clean[question.trace_id](answer_from_reply_json(stored[key], question.step_id, teacher.name))
        for question in batch.questions
        if (key := keys[question.step_id]) in stored
    ]
    return hints_of(replies, teacher.model)


def hints_of(
    replies: Iterable[TeacherReply],
    model: str,
    not_asked: Mapping[tuple[str, str], str] | None = None,
) -> dict[str, Hint]:
    """Return the hints of replies by step.

    A hint without text is to be replaced by that of a template: its answer failed or is no hint, or the
    question was `not_asked`.
    """
    left = (not_asked or {}).items()
    found = {step_id: Hint("", TEMPLATE, f"{NOT_ASKED}: {why}") for (step_id, _), why in left}
    for reply in replies:
        text, why = ("", str(reply.failure)) if reply.action is None else read_hint(reply.action)
        found[reply.step_id] = Hint(text, model, "", reply.simulated) if text else Hint("", TEMPLATE, why)
    return found
