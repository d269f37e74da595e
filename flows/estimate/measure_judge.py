"""Measure a judge on tables of several models, where rewards say which of two actions is better.

Cases are steps of the tables at which the votes of three teachers make no pair. The judge is asked as in a
run: redacted text, both orders, the ledger of the workspace and the cap of the budget.
"""

import asyncio
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.agreement.equivalence.ladder import is_ladder_part_either_way
from tracemill.evaluate.table.recorded_states import TableState, read_table
from tracemill.evaluate.table.rules import VOTERS, product_label_rule
from tracemill.evaluate.table.student_draws import TableVotes, draw_students, may_be_asked
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.ask_judge import JudgedStep
from tracemill.flows.labeling.ask_session import DISPUTED as DISPUTED_WHY
from tracemill.flows.labeling.ask_session import open_run
from tracemill.flows.labeling.judge_setup import judge_key, write_precision
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.run_ledger import build_ledger
from tracemill.pairs.disagreements import DISPUTED, rank_proposal
from tracemill.pairs.judge import JUDGE_VERSION, ORDERS, Judge, JudgePrecision, may_judge, prefers_proposal
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import ConfigError
from tracemill.records.identity import digest, extend_prompt, prompt_root
from tracemill.records.message import Action
from tracemill.records.reply import AskDecision
from tracemill.records.storage.workspace import Workspace
from tracemill.records.wilson_interval import wilson_interval
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, BudgetSettings
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

DRAWS = 300
PRESENTATION = "table"


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """A disagreement of a table: the state, the agent's and the proposed action, and their rewards."""

    table: str
    state: TableState
    own: Action
    proposal: Action
    rewards: tuple[float, float]
    student_family: str

    @property
    def score(self) -> str:
        """Return `right` if the proposal has the higher reward, `wrong` if the lower one, else `tie`."""
        own, proposed = self.rewards
        return "right" if proposed > own else "wrong" if proposed < own else "tie"


@dataclass(frozen=True, slots=True)
class JudgeMeasurement:
    """The result of a measurement and its cost: `calls` of this run, USD of all runs of this judge."""

    precision: JudgePrecision
    calls: int
    cached: int
    spent_usd: float
    stopped: str | None


def measure_judge(settings: RunSettings, tables: Sequence[Path], most: int) -> JudgeMeasurement:
    """Ask the configured judge about at most `most` cases, and store its precision in the workspace.

    Raises ConfigError without a judge or a budget, TeacherError if the judge cannot be asked or a table
    cannot be read, SourceError if a table has no usable case.
    """
    judge, budget = judge_and_budget(settings)
    work = Workspace.open(settings.workspace)
    redactor = make_redactor(work, settings.privacy)
    cases = [case for path in tables for case in judge_cases(path, judge.family)]
    random.Random(0).shuffle(cases)
    steps = [_step(number, case, redactor) for number, case in enumerate(cases[:most])]
    found = {step.question.step_id: case.score for step, case in zip(steps, cases, strict=False)}
    calls, cached, stopped, asked = 0, 0, None, 0
    with build_ledger(settings.ledger_url or work.ledger_path) as ledger:
        run_id = f"judge-{judge_key(judge)}"
        open_run(ledger, run_id, budget)
        for order in ORDERS:
            result = _ask(settings, work, redactor, (ledger, run_id), steps, order)
            asked = asked or sum(reply.failure is None for reply in result.replies)
            calls, cached = calls + result.counters["attempts"], cached + result.counters["cached"]
            stopped = stopped or result.stopped
            liked = {reply.step_id for reply in result.replies if prefers_proposal(reply.action, order)}
            steps = [step for step in steps if step.question.step_id in liked]
        spent = nanousd_to_usd(ledger.spent(run_id).settled_nanousd)
    scores = [found[step.question.step_id] for step in steps]
    right, wrong = scores.count("right"), scores.count("wrong")
    low, high = wilson_interval(right, right + wrong)
    names = tuple(sorted({path.name for path in tables}))
    precision = JudgePrecision(names, asked, right, wrong, scores.count("tie"), round(low, 4), round(high, 4))
    write_precision(work.root, judge, precision)
    return JudgeMeasurement(precision, calls, cached, spent, stopped)


def judge_and_budget(settings: RunSettings) -> tuple[BaseTeacherSettings, BudgetSettings]:
    """Return the judge and the budget of a configuration. Raises ConfigError if one is missing."""
    if settings.judge is None:
        raise ConfigError(
            "no judge is configured", "[judge] with type and model", "see docs/configuration.md"
        )
    if settings.budget is None:
        raise ConfigError("a judge is configured but no budget", do="set budget.max_total_usd or --max-usd")
    return settings.judge, settings.budget


def judge_cases(path: Path, judge_family: str) -> Iterator[JudgeCase]:
    """Yield the disagreements of a table whose two actions both have rewards, each once."""
    table = read_table(path)
    acts = {
        (row.state_id, model): answer.action
        for row in iter_recorded_table(path)
        if isinstance(row, RecordedState)
        for model, answer in row.answers.items()
    }
    rule, poll, seen = product_label_rule(VOTERS[0]), TableVotes(table), set[tuple[int, str, str]]()
    judge = Judge("", judge_family)
    for draw in draw_students(table, DRAWS, 0)[0]:
        family = table.families[draw.student]
        if not may_be_asked(table, draw, rule.policy) or not may_judge(judge, family):
            continue
        for panel in poll.panels(draw, rule):
            if len(panel.voters) < rule.policy.threshold or panel.label(rule).verdict not in DISPUTED:
                continue
            state, level = panel.state, rule.policy.level
            own = panel.own.at(level)
            names = [vote.keys.at(level) for vote in panel.votes]
            actions = [acts[state.state_id, model] for model in panel.voters]
            places = [
                at
                for at, vote in enumerate(panel.votes)
                if names[at] != own and not is_ladder_part_either_way(vote.keys, panel.own)
            ]
            if not places:
                continue
            best = min(places, key=lambda at: rank_proposal(names.count(names[at]), actions[at], names[at]))
            worth, proposed = (state.acted[m].reward for m in (draw.student, panel.voters[best]))
            place = (state.number, own, names[best])
            if worth is not None and proposed is not None and place not in seen:
                seen.add(place)
                did = acts[state.state_id, draw.student]
                yield JudgeCase(path.name, state, did, actions[best], (worth, proposed), family)


def _step(number: int, case: JudgeCase, redactor: Redactor) -> JudgedStep:
    """Return the redacted question on a case."""
    name = f"judge-{digest(case.table, case.state.state_id, str(number), size=6)}"
    messages = [redactor.redact_message(message, name)[0] for message in case.state.messages]
    own, proposal = (
        Action.of(redactor.redact_message(action.to_message(), name)[0])
        for action in (case.own, case.proposal)
    )
    prompt_id = prompt_root(case.state.tools, PRESENTATION)
    for message in messages:
        prompt_id = extend_prompt(prompt_id, message)
    question = Question(
        f"{name}:0:0",
        name,
        messages,
        case.state.tools,
        prompt_id,
        PRESENTATION,
        redactor.rules.version,
        case.student_family,
    )
    return JudgedStep(question, proposal, own)


def _ask(
    settings: RunSettings,
    work: Workspace,
    redactor: Redactor,
    spending: tuple[Ledger, str],
    steps: Sequence[JudgedStep],
    order: str,
) -> ReplayResult:
    """Ask the judge about these steps in one order of the two actions."""
    judge, (ledger, run_id) = judge_and_budget(settings)[0], spending
    named = judge.model_copy(update={"name": Judge(judge.model, judge.family).teacher(order)})
    teachers = build_teachers(
        [named], os.environ, lambda text: redactor.redact_text(text)[0], open_book(work)
    )
    questions = [step.asked(order) for step in steps]
    decisions = [
        AskDecision(question.step_id, named.name, "ask", DISPUTED_WHY, JUDGE_VERSION, 1.0, 0.0)
        for question in questions
    ]
    replayed = settings.replay.model_copy(update={"samples": 1})
    return asyncio.run(replay(ReplayRequest(questions, decisions, teachers, ledger, run_id, replayed)))
