"""Asking without a workspace: a ledger of one's own, and states for their replies."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from agreement.policy import Policy
from flows.asking import open_run, redact_reply
from flows.runs import new_run_id
from flows.shard_work import Shown
from flows.voting import drop_hopeless, referee_for
from privacy.redact import Redactor
from records.reply import TeacherReply
from teachers.build import build_teachers
from teachers.eligibility import require_eligible
from teachers.gate import decide
from teachers.ledger import Ledger, sqlite_url
from teachers.replay import replay
from teachers.settings import BudgetSettings, GateSettings, ReplaySettings, TeacherSettings


@contextmanager
def build_ledger(place: Path | str | None) -> Iterator[Ledger]:
    """A ledger at a path or database URL; None: one that is gone after the block."""
    if place is None:
        with (
            TemporaryDirectory(prefix="tracemill-") as folder,
            Ledger(sqlite_url(Path(folder) / "l")) as ledger,
        ):
            yield ledger
        return
    text = str(place)
    with Ledger(text if "://" in text else sqlite_url(Path(text))) as ledger:
        yield ledger


async def ask_states(
    shown: Sequence[Shown],
    wanted: Collection[str],
    teachers: Sequence[TeacherSettings],
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
        drop_hopeless(decide(questions, teachers, 0, GateSettings()), teachers, policy),
        build_teachers(teachers, os.environ, lambda text: redactor.redact_text(text)[0]),
        ledger,
        run_id,
        settings,
        referee=referee_for(shown, policy, "tiered" if settings.stop == "value" else settings.stop),
        time_left_s=None if minutes is None else minutes * 60,
        redact=lambda reply: redact_reply(redactor, reply),
    )
    return result.replies
