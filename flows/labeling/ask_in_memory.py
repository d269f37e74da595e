"""Asking without a workspace: a ledger of one's own, and states for their replies."""

import os
from collections.abc import Collection, Sequence

from tracemill.agreement.voting.policy import Policy
from tracemill.flows.labeling.ask_session import open_run, redact_reply
from tracemill.flows.labeling.label_shard import Shown
from tracemill.flows.labeling.vote_policy import build_stopper_for, drop_hopeless
from tracemill.flows.run_state.run_records import new_run_id
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.reply import TeacherReply
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.eligibility import require_eligible
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    BudgetSettings,
    GateSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.replay.replay_run import replay


async def ask_in_memory(
    shown: Sequence[Shown],
    wanted: Collection[str],
    teachers: Sequence[BaseTeacherSettings],
    ledger: Ledger,
    max_total_usd: float,
    settings: ReplaySettings,
    policy: Policy,
) -> list[TeacherReply]:
    """The replies at the `wanted` steps, in a run of its own: decided, stopped early and explored as a run of
    the product does with its defaults; a stop by value is `tiered` here, where nothing was learned. Raises
    ConfigError where too few may vote."""
    questions = [q for item in shown for q in item.questions() if q.step_id in wanted]
    families = {question.student_family for question in questions}
    require_eligible(teachers, families, threshold=policy.threshold, min_families=policy.min_families)
    run_id = f"library-{new_run_id()}"
    open_run(ledger, run_id, BudgetSettings.model_validate({"max_total_usd": max_total_usd}))
    redactor, minutes = Redactor.from_environment(os.environ), settings.deadline_minutes
    result = await replay(
        questions,
        drop_hopeless(make_gate_decisions(questions, teachers, 0, GateSettings()), teachers, policy),
        build_teachers(teachers, os.environ, lambda text: redactor.redact_text(text)[0]),
        ledger,
        run_id,
        settings,
        referee=build_stopper_for(shown, policy, "tiered" if settings.stop == "value" else settings.stop),
        time_left_s=None if minutes is None else minutes * 60,
        redact=lambda reply: redact_reply(redactor, reply),
    )
    return result.replies
