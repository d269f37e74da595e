"""tracemill as a library: ask, label and normalise in memory, without Prefect and configuration."""

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tracemill.agreement.voting.consensus_reward import ConsensusShape, consensus_reward
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import tally_votes
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.labeling.ask_session import open_run, redact_reply
from tracemill.flows.labeling.label_shard import ShownTrace, group_replies, make_pairs
from tracemill.flows.labeling.run_ledger import build_ledger
from tracemill.flows.labeling.vote_policy import build_stopper_for, drop_hopeless
from tracemill.flows.run_state.run_records import new_run_id
from tracemill.harnesses.presentation import Presentation
from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import ConfigError, TracemillError
from tracemill.records.label_source import sources_of_traces
from tracemill.records.pair import DPOPair, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.state_keys import state_keys
from tracemill.records.trace import Trace, TraceState
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.api_keys import api_key
from tracemill.teachers.core.eligibility import require_eligible
from tracemill.teachers.core.presets import DEFAULT_TEACHERS
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    BudgetSettings,
    GateSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.replay.replay_run import ReplayRequest, replay
from tracemill.train.consensus.state_rows import state_row

P = ParamSpec("P")
T = TypeVar("T")


def _traces(states: Sequence[TraceState]) -> list[Trace]:
    """Return the redacted traces of the states, each once, in the order of their first state."""
    redactor = make_redactor()
    seen: dict[str, Trace] = {state.trace.trace_id: state.trace for state in states}
    return [redactor.redact_trace(trace)[0] for trace in seen.values()]


async def ask_in_memory(
    shown: Sequence[ShownTrace],
    wanted: Collection[str],
    teachers: Sequence[BaseTeacherSettings],
    ledger: Ledger,
    max_total_usd: float,
    settings: ReplaySettings,
    policy: VotePolicy,
) -> list[TeacherReply]:
    """Ask at the `wanted` steps, in a separate run with default settings.

    Raises ConfigError if too few teachers may vote.
    """
    questions = [q for item in shown for q in item.questions() if q.step_id in wanted]
    families = {question.student_family for question in questions}
    require_eligible(teachers, families, threshold=policy.threshold, min_families=policy.min_families)
    run_id = f"library-{new_run_id()}"
    open_run(ledger, run_id, BudgetSettings.model_validate({"max_total_usd": max_total_usd}))
    redactor, minutes = Redactor.from_environment(os.environ), settings.deadline_minutes
    request = ReplayRequest(
        questions,
        drop_hopeless(make_gate_decisions(questions, teachers, 0, GateSettings()), teachers, policy),
        build_teachers(teachers, os.environ, lambda text: redactor.redact_text(text)[0]),
        ledger,
        run_id,
        settings,
        stopper=build_stopper_for(shown, policy, settings.stop),
        time_left_s=None if minutes is None else minutes * 60,
        redact=lambda reply: redact_reply(redactor, reply),
    )
    return (await replay(request)).replies


async def replay_trace(
    states: Sequence[TraceState],
    teachers: Sequence[BaseTeacherSettings] = DEFAULT_TEACHERS,
    *,
    max_total_usd: float,
    agreement_threshold: int = 2,
    ledger: Path | str | None = None,
    settings: ReplaySettings | None = None,
) -> list[TeacherReply]:
    """Ask the teachers what they would have done at each of the states.

    With the default settings teachers are asked cheapest first, and no further once no answer could change
    a step's label under `agreement_threshold`; at one step in twenty all are asked. Teachers of the
    student's own family are not asked. `ReplaySettings(stop="off")` asks all teachers everywhere, which
    votes under another threshold need.

    This call sends the states to the teachers without a prompt for consent, which `tracemill replay` shows.
    They are redacted before anything is sent, by the rules and with the private values of the environment
    (secret-named variables, home folder, user name); a trace that these rules have redacted already is sent
    as it is.

    `max_total_usd` caps spent and reserved USD together. `ledger` is a database URL or a SQLite file that
    stores the answers, so that a second call pays nothing; without one they are stored only during the
    call. A failed call is a reply with `failure` set. Raises ConfigError or TeacherError before anything is
    spent.
    """
    if not teachers:
        raise ConfigError(
            "no teachers are given",
            do="give some, such as tm.DEFAULT_TEACHERS; tm.extract_session_pairs(states) needs none",
        )
    for teacher in teachers:
        api_key(teacher, os.environ)
    wanted = {str(state.step_id) for state in states}
    shown = [ShownTrace.of(trace) for trace in _traces(states)]
    settings, policy = settings or ReplaySettings(), VotePolicy(threshold=agreement_threshold)
    with build_ledger(ledger) as opened:
        return await ask_in_memory(shown, wanted, teachers, opened, max_total_usd, settings, policy)


def extract_dpo_pairs(
    states: Sequence[TraceState], replies: Sequence[TeacherReply], agreement_threshold: int = 2
) -> list[DPOPair]:
    """Build the pairs from teachers' replies.

    A pair is made if `agreement_threshold` teachers of two families agree on another action than the
    student's. Texts are redacted, as they were when the teachers were asked. Raises ConfigError without
    replies: `extract_session_pairs` makes pairs from sessions alone.
    """
    if states and not replies:
        raise ConfigError(
            "there are no replies, which these pairs are made from",
            do="ask with tm.replay_trace; tm.extract_session_pairs(states) makes pairs without teachers",
        )
    traces = _traces(states)
    shown = [ShownTrace.of(trace) for trace in traces]
    made = make_pairs(shown, replies, VotePolicy(threshold=agreement_threshold), of_traces=False)
    return _with_state_keys(made.pairs, traces, states)


def extract_session_pairs(states: Sequence[TraceState]) -> list[DPOPair]:
    """Build the pairs that sessions give without teachers: nothing is sent.

    They are self-repairs (a failed action, and the later one that fixed it), edits that the user rejected,
    edits that were revised after a failed check, and repeated reads of known text: those that `tracemill
    run --claude-code PATH` makes before its recipe and caps, which `DJNormalizer` applies. Texts are
    redacted.
    """
    traces = _traces(states)
    made = [pair for trace in traces for source in sources_of_traces() for pair in source.pairs_of(trace)[0]]
    return _with_state_keys(made, traces, states)


def _with_state_keys(
    pairs: Sequence[DPOPair], traces: Sequence[Trace], states: Sequence[TraceState]
) -> list[DPOPair]:
    """Return the pairs at the steps of `states`, with the keys of these states."""
    wanted = {str(state.step_id) for state in states}
    keys = {step: key for trace in traces for step, key in state_keys(trace).items()}
    return [replace(pair, state_key=keys[pair.step_id]) for pair in pairs if pair.step_id in wanted]


def compute_teacher_consensus_prm(
    states: Sequence[TraceState],
    replies: Sequence[TeacherReply],
    shape: ConsensusShape = "weighted",
    *,
    teacher_weights: Mapping[str, float] | None = None,
    scores: Mapping[str, Mapping[str, float]] | None = None,
) -> list[float | None]:
    """Return a reward for the student's action at each state: what teachers' answers there say of it.

    The rewards are in the order of `states`; None if no answer, or score, counts. With w_i the weight of
    teacher i (`teacher_weights`, 1 for others), a_i its action, a the student's, p(x) the sum of w_i over
    a_i = x divided by the sum of w_i, and n(x) the number of answers x:

        plurality           1 if n(a) >= n(x) for all x, else 0
        weighted            p(a)
        variance_weighted   p(a) (1 - v), v = sum over x of p(x) (1 - p(x)): the variance of a vote
        score_regression    the r that minimises sum of w_i (s_i - r)^2, s_i = `scores[step_id][teacher]`

    Actions are equal, and answers count, as for pairs: one answer of a teacher, none of the student's family.
    Texts are redacted, as they were when the teachers were asked. Raises ValueError for a shape, weight or
    score that cannot be used.
    """
    rewards = {
        str(state.step_id): consensus_reward(
            votes, shape, teacher_weights, (scores or {}).get(str(state.step_id))
        )
        for state, _, votes, _ in _voted(states, replies)
    }
    return [rewards[str(state.step_id)] for state in states]


def build_consensus_rows(
    states: Sequence[TraceState],
    replies: Sequence[TeacherReply],
    scores: Mapping[str, Mapping[str, float]] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each state with an answer, or score, that counts: what `composer.states` reads.

    A training acts in these states, and `compute_teacher_consensus_prm` of the answers rewards what it does:
    the student's recorded action would get the same reward from its row. `scores` are teachers' scores of
    recorded actions, by step and teacher; the shape `score_regression` rewards no other action. Rows are in
    the order of `states`, and JSON takes them. Texts are redacted, as they were when the teachers were asked.
    """
    rows: dict[str, dict[str, Any]] = {}
    for state, shown, votes, given in _voted(states, replies):
        row = state_row(state, shown, votes, given, (scores or {}).get(str(state.step_id)))
        if row["answers"] or row["scored"]:
            rows[row["step_id"]] = row
    return [rows[step_id] for state in states if (step_id := str(state.step_id)) in rows]


def _voted(
    states: Sequence[TraceState], replies: Sequence[TeacherReply]
) -> Iterator[tuple[TraceState, Presentation, tuple[Vote, ...], list[TeacherReply]]]:
    """Yield the states, redacted, with the presentation of their context, the votes and the replies."""
    by_step = group_replies(replies)
    wanted = {str(state.step_id) for state in states}
    for item in map(ShownTrace.of, _traces(states)):
        for state in item.trace.states():
            if (step_id := str(state.step_id)) in wanted:
                shown, given = item.presentations[state.context.index], by_step.get(step_id, [])
                yield state, shown, tally_votes(state, shown.tools, given, VotePolicy()).votes, given


async def replay_and_normalize_trace(
    states: Sequence[TraceState],
    teachers: Sequence[BaseTeacherSettings] = DEFAULT_TEACHERS,
    *,
    max_total_usd: float,
    agreement_threshold: int = 2,
    recipe: Path | None = None,
    ledger: Path | str | None = None,
    settings: ReplaySettings | None = None,
) -> NormalizedPairs:
    """Do `replay_trace`, `extract_dpo_pairs` and `DJNormalizer` in one call."""
    normalizer = DJNormalizer(recipe)
    normalizer.check()
    replies = await replay_trace(
        states,
        teachers,
        max_total_usd=max_total_usd,
        agreement_threshold=agreement_threshold,
        ledger=ledger,
        settings=settings,
    )
    pairs = extract_dpo_pairs(states, replies, agreement_threshold)
    return await asyncio.to_thread(normalizer.normalize, pairs)


def _sync(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Wrap a coroutine function for synchronous code; our errors are raised without inner frames."""

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return asyncio.run(call(*args, **kwargs))
        except TracemillError as error:
            raise error.with_traceback(None) from None

    run.__name__ = run.__qualname__ = f"{call.__name__}_sync"
    run.__doc__ = f"`{call.__name__}` for code that is not async."
    return run


replay_trace_sync = _sync(replay_trace)
"""`replay_trace` for code that is not async: the same arguments and result."""
replay_and_normalize_trace_sync = _sync(replay_and_normalize_trace)
"""`replay_and_normalize_trace` for code that is not async: the same arguments and result."""
