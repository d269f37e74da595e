"""Have a teacher write the hints of a training, under a cap of its own, and pay for no hint twice."""

import os
from collections.abc import Container
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tracemill.flows.admission.redaction_setup import list_scope, make_trace_filter
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import require_consent
from tracemill.flows.estimate.estimate_hints import HintEstimate, estimate_hints
from tracemill.flows.labeling.ask_hints import hint_batches, hint_settings, hints_of, writer_of
from tracemill.flows.labeling.ask_judge import count_calls
from tracemill.flows.labeling.ask_session import AskSession
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.run_ledger import require_ledger
from tracemill.flows.labeling.trace_batches import select_traces
from tracemill.flows.release.training_terms import require_training_terms
from tracemill.flows.run_state.run_records import StartedRun, end_run, sole_writer, start_run
from tracemill.flows.run_state.run_summary import Summary, money_figures
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.runtime.progress import progress_meter
from tracemill.flows.runtime.terminal import say_lines
from tracemill.records.identity import canonical_json, digest
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.train.hints.hint_text import Hint
from tracemill.train.training_job import TrainingRelease

COMMAND = "hints"


@dataclass(frozen=True, slots=True)
class HintConsent:
    """Consent to ask a teacher for hints: given earlier, by a flag, or still to be asked for.

    Without consent only stored hints are used. `yes` gives consent; `accept_by` is the command that would,
    for the error message.
    """

    asks: bool = True
    yes: bool = False
    accept_by: str = "--yes"


def write_hints(
    settings: RunSettings,
    work: Workspace,
    reredactor: Reredactor,
    held_out: Container[str],
    release: TrainingRelease,
    consent: HintConsent,
) -> dict[str, Hint]:
    """Return the configured teacher's hints by step, for the selected traces that are not held out.

    Raises ConfigError if the teacher has no key or its terms restrict training, PrivacyError without
    consent, TeacherError if it cannot answer at all, and WorkspaceBusyError if another process works on the
    workspace; nothing is spent then.
    """
    own = hint_settings(settings)
    chosen = select_traces(work, make_trace_filter(settings.select, work), list_scope(work, settings.privacy))
    entries = {name: entry for name, entry in chosen.entries.items() if name not in held_out}
    estimate = estimate_hints(own, work, reredactor, entries, open_book(work))
    if estimate.calls and not consent.asks:
        say_lines([f"hints by {estimate}: not asked now"])
    if not estimate.calls or not consent.asks:
        return estimate.hints
    if not settings.accept_terms:
        require_training_terms(own.asked_teachers())
    build_teachers(own.asked_teachers(), os.environ)
    say_lines([f"hints by {estimate}"])
    with ExitStack() as stack:
        stack.enter_context(sole_writer(work))
        run = start_run(work, _fingerprint(own, release), COMMAND)
        require_ledger(own, work, run.run_id)
        sent = [entries[name] for name in sorted(estimate.traces)]
        accepted = require_consent(work, own, run.run_id, sent, consent.yes, accept_by=consent.accept_by)
        meter = stack.enter_context(progress_meter(own.cap_usd()))
        redactor = reredactor.redactor
        asking = stack.enter_context(AskSession.open(own, work, run, redactor, accepted, meter))
        asked, counts = _ask(work, reredactor, estimate, asking)
        counts += asking.spending()
        end_run(work, run.run_id, _record(own, run, counts))
    say_lines(_report(counts, own.cap_usd()))
    return estimate.hints | asked


def _fingerprint(own: RunSettings, release: TrainingRelease) -> str:
    """Return the fingerprint by which an unfinished run for hints is resumed: writer and release."""
    return digest(COMMAND, canonical_json(writer_of(own).model_dump(mode="json")), release.digest, size=8)


def _ask(
    work: Workspace, reredactor: Reredactor, estimate: HintEstimate, asking: AskSession
) -> tuple[dict[str, Hint], Summary]:
    """Ask the questions without an answer in the ledger; return the hints by step, and the counts."""
    hints, counts, writer = dict[str, Hint](), Summary(), writer_of(asking.settings)
    asking.meter.begin("hints", estimate.calls, asking.spending().spent_usd)
    for batch in hint_batches(work, reredactor, estimate.traces):
        left = [each for each in batch.questions if each.step_id not in estimate.hints]
        result = asking.ask_hints(batch.shown, left)
        hints |= hints_of(result.replies, writer.model, result.not_asked)
        counts += count_calls(result) + Summary(left_over=len(result.not_asked), stopped=result.stopped)
        raise_if_interrupted()
    return hints, counts


def _record(own: RunSettings, run: StartedRun, counts: Summary) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        **money_figures(run, own.cap_usd(), counts),
        "teachers": [writer_of(own).name],
        "summary": counts.to_json(),
    }


def _report(counts: Summary, cap_usd: float | None) -> list[str]:
    """Return lines on the questions asked and the cost."""
    said = [f"hints: {counts.calls:,} calls, ${counts.spent_usd:.4f} of at most ${cap_usd:.4f}"]
    return said + ([f"hints: {counts.stopped}"] if counts.stopped else [])
