"""Estimate what the hints of a training would cost, before anything is spent."""

import os
from collections.abc import Container
from dataclasses import dataclass, field

import orjson

from tracemill.flows.admission.redaction_setup import list_scope, make_trace_filter
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.ask_hints import hint_batches, hint_settings, stored_hints, writer_of
from tracemill.flows.labeling.run_ledger import open_stored_ledger
from tracemill.flows.labeling.trace_batches import select_traces
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question
from tracemill.teachers.planning.measured_usage import MeasuredUsage
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.train.hints.hint_text import Hint


@dataclass(frozen=True, slots=True)
class HintEstimate:
    """The questions for hints that a training would ask, those already answered, and the cost of the rest.

    `hints` has the answered hints by step; `traces` has the traces with unanswered questions.
    """

    model: str
    cap_usd: float
    questions: int = 0
    calls: int = 0
    usd: float = 0.0
    hints: dict[str, Hint] = field(default_factory=dict[str, Hint])
    traces: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return the estimate as one line of text."""
        return (
            f"{self.model}: {self.questions:,} failed actions, at most {self.calls:,} calls, "
            f"${self.usd:.4f}, under a cap of ${self.cap_usd:.4f} of its own"
        )


def estimate_workspace_hints(settings: RunSettings, work: Workspace, book: PriceBook) -> str:
    """Return the estimate of hints for a training on all selected sessions, "" without a hint writer."""
    if settings.hint_writer() is None:
        return ""
    chosen = select_traces(work, make_trace_filter(settings.select, work), list_scope(work, settings.privacy))
    reredactor = make_reredactor(work, settings)
    return str(estimate_hints(hint_settings(settings), work, reredactor, chosen.entries, book))


def estimate_hints(
    settings: RunSettings, work: Workspace, reredactor: Reredactor, selected: Container[str], book: PriceBook
) -> HintEstimate:
    """Estimate the hints at the failed actions of the selected traces; nothing is sent.

    `settings` are those of `hint_settings`. Each call is assumed to read its whole prompt uncached.
    """
    writer, budget = writer_of(settings), settings.budget
    assert budget is not None
    [teacher] = build_teachers((writer,), os.environ, book=book, to_ask=False)
    answer, nanousd, questions = round(MeasuredUsage().answer_tokens), 0, 0
    hints, traces, keys = dict[str, Hint](), set[str](), set[str]()
    with open_stored_ledger(settings, work) as ledger:
        for batch in hint_batches(work, reredactor, selected):
            found = stored_hints(batch, teacher, ledger)
            hints |= found
            questions += len(batch.questions)
            for question in batch.questions:
                if question.step_id in found:
                    continue
                traces.add(question.trace_id)
                if (key := teacher.request_key(question, 0)) not in keys:
                    keys.add(key)
                    nanousd += teacher.price.charge_nanousd(_prompt_tokens(question), answer, 0, 0)
    usd, cap = nanousd_to_usd(nanousd), float(budget.max_total_usd)
    return HintEstimate(teacher.model, cap, questions, len(keys), usd, hints, frozenset(traces))


def _prompt_tokens(question: Question) -> int:
    tools = sum(len(orjson.dumps(tool.to_wire())) for tool in question.tools)
    return round((count_message_bytes(question.messages) + tools) / MeasuredUsage().bytes_a_token)
