"""Load, vote on and label batches of traces, and read and write their tables.

Nothing here knows Prefect. Each function takes the workspace and gives counts; the tables carry the
rest, so that every part can also be run alone from the command line.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VoteResult
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import ContextHistory
from tracemill.flows.run_state.run_records import today
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.run_state.stale_labels import stale_label_answers
from tracemill.harnesses.presentation import Presentation, present_all
from tracemill.pairs.disagreements import Proposal, proposals_of
from tracemill.pairs.teacher_pairs import teacher_pair
from tracemill.records.label_source import sources_of_traces
from tracemill.records.pair import DPOPair, StepVotes
from tracemill.records.reply import AskDecision, TeacherReply
from tracemill.records.storage.table_rows import (
    decisions_from_table,
    decisions_to_table,
    pairs_to_table,
    replies_from_table,
    replies_to_table,
    votes_to_table,
)
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import MessageView, Trace, TraceState
from tracemill.teachers.core.question import Question

if TYPE_CHECKING:
    from tracemill.flows.admission.reredaction import ReredactedTrace, Reredactor


def load_traces(work: Workspace, trace_ids: Sequence[str]) -> list[Trace]:
    """Load the redacted traces of a batch as they are stored, in the order of `trace_ids`."""
    found = [
        trace for table in work.current("traces", frozenset(trace_ids)) for trace in traces_from_table(table)
    ]
    return sorted(found, key=lambda trace: trace.trace_id)


@dataclass(frozen=True, slots=True)
class ShownTrace:
    """A trace with the presentation of each of its contexts.

    If its text differs from the stored text, which answers may have been bought for, `former` has the
    prompt ids of the stored text, by context.
    """

    trace: Trace
    presentations: dict[int, Presentation]
    former: Mapping[int, Sequence[str]] = field(default_factory=dict)
    renewed: "ReredactedTrace | None" = None

    @classmethod
    def of(cls, trace: Trace, reredactor: "Reredactor | None" = None) -> "ShownTrace":
        """Present every context of the trace, redacted by the `reredactor`; without one, unchanged."""
        if reredactor is None:
            return cls(trace, present_all(trace))
        renewed = reredactor.redact_again(trace)
        now, former = present_all(renewed.trace), dict[int, Sequence[str]]()
        if reredactor.keeps and _text_of(renewed.trace) != _text_of(trace):
            stored = present_all(trace)
            former = {
                at: shown.prompt_ids for at, shown in stored.items() if shown.prompt_ids != now[at].prompt_ids
            }
        return cls(renewed.trace, now, former, renewed)

    def reply(self, reply: TeacherReply) -> TeacherReply:
        """Redact a reply at a step of the trace for a dataset."""
        return self.renewed.reply(reply) if self.renewed else reply

    def answered(self, state: TraceState) -> set[str]:
        """Return the prompt ids of a step for which answers are valid."""
        context, at = state.context.index, state.step.index
        former = self.former.get(context)
        now = self.presentations[context].prompt_ids[at]
        return {now, former[at]} if former else {now}

    def questions(self) -> list[Question]:
        """Return one question per step, in order; none for a summarising agent, whose steps are no work."""
        made: list[Question] = []
        if self.trace.notes.get("summariser"):
            return made
        for state in self.trace.states():
            presentation = self.presentations[state.context.index]
            at = state.step.index
            made.append(
                Question(
                    step_id=str(state.step_id),
                    trace_id=self.trace.trace_id,
                    messages=MessageView(presentation.messages, presentation.cuts[at]),
                    tools=presentation.tools,
                    prompt_id=presentation.prompt_ids[at],
                    presentation=presentation.version,
                    redaction=self.trace.redaction or "",
                    student_family=state.step.family,
                    former_prompt_id=next(iter(self.answered(state) - {presentation.prompt_ids[at]}), ""),
                )
            )
        return made


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """Traces of one source as teachers see them, whose rows are written together."""

    source: str
    shown: Sequence[ShownTrace]

    @property
    def trace_ids(self) -> list[str]:
        """Return the ids of the traces."""
        return [item.trace.trace_id for item in self.shown]

    @classmethod
    def load(cls, work: Workspace, trace_ids: Sequence[str], reredactor: "Reredactor") -> "TraceBatch":
        """Read and present stored traces, redacted by the `reredactor`."""
        shown = [ShownTrace.of(trace, reredactor) for trace in load_traces(work, trace_ids)]
        return cls(shown[0].trace.source, shown)


def count_new_findings(shown: Sequence[ShownTrace]) -> Counter[str]:
    """Count, by type, the findings that redaction removed in addition to those at ingest."""
    return sum((item.renewed.found for item in shown if item.renewed), Counter[str]())


def _text_of(trace: Trace) -> tuple[object, ...]:
    return trace.contexts, trace.seen_tools


def load_decisions(work: Workspace, trace_ids: Sequence[str]) -> list[AskDecision]:
    """Load the stored decisions on these traces; a rerun reuses them."""
    tables = work.current("decisions", frozenset(trace_ids))
    return [d for table in tables for d in decisions_from_table(table)]


def write_decisions(
    work: Workspace, source: str, trace_ids: Sequence[str], made: Sequence[AskDecision]
) -> None:
    """Store the decisions of a shard, before any money is spent on them."""
    ordered = sorted(made, key=lambda d: (d.step_id, d.teacher))
    work.write("decisions", decisions_to_table(ordered), trace_ids, source, today())


def load_replies(work: Workspace, trace_ids: Sequence[str]) -> list[TeacherReply]:
    """Load the stored replies on these traces."""
    tables = work.current("replies", frozenset(trace_ids))
    return [r for table in tables for r in replies_from_table(table)]


def write_replies(
    work: Workspace, source: str, trace_ids: Sequence[str], replies: Sequence[TeacherReply]
) -> list[TeacherReply]:
    """Store new replies of a batch together with its earlier ones; return them all.

    Of each step, teacher and sample the newest is kept.
    """
    merged = {(r.step_id, r.teacher, r.sample): r for r in load_replies(work, trace_ids)}
    merged |= {(r.step_id, r.teacher, r.sample): r for r in replies}
    every = sorted(merged.values(), key=lambda r: (r.step_id, r.teacher, r.sample, r.request_key))
    if every:
        work.write("replies", replies_to_table(every), trace_ids, source, today())
    return every


@dataclass(frozen=True, slots=True)
class LabelledTraces:
    """The pairs of some traces, all votes at their steps, and the counts."""

    pairs: list[DPOPair] = field(default_factory=list)
    votes: list[StepVotes] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)


@dataclass(frozen=True, slots=True)
class VotedStep:
    """A step with the replies that count as votes, the result of the vote, and the teachers' pair."""

    state: TraceState
    presentation: Presentation
    answers: Sequence[TeacherReply]
    result: VoteResult
    pair: DPOPair | None


class DisputeSource(Protocol):
    """A label source for steps at which the teachers' votes make no pair."""

    @property
    def name(self) -> str:
        """Return the name of the label source."""
        ...

    def pair_of(
        self, step: VotedStep, proposals: Sequence[Proposal], replies: Sequence[TeacherReply]
    ) -> tuple[DPOPair | None, str]:
        """Return the pair of a step, or the reason for none; `replies` are all stored replies at the step."""
        ...


def make_pairs(
    shown: Sequence[ShownTrace],
    replies: Sequence[TeacherReply],
    policy: VotePolicy,
    of_traces: bool = True,
    disputes: Sequence[DisputeSource] = (),
) -> LabelledTraces:
    """Make the teachers' pairs of the traces and, if `of_traces`, those of every other label source.

    Only replies to today's prompt vote, or to the same prompt with an earlier redaction. `disputes` are the
    label sources used where these votes make no pair.
    """
    by_step = group_replies(replies)
    pairs: list[DPOPair] = []
    votes: list[StepVotes] = []
    skips: dict[str, Counter[str]] = {}
    for item in shown:
        for step in voted_steps(item, by_step, policy):
            simulated = any(reply.simulated for reply in step.answers)
            name, result = str(step.state.step_id), step.result
            votes.append(StepVotes(name, result.verdict, result.votes, simulated))
            pairs += [] if step.pair is None else [step.pair]
            proposals = proposals_of(result, step.answers) if of_traces and disputes else []
            for source in disputes if proposals else ():
                found, why = source.pair_of(step, proposals, [item.reply(r) for r in by_step[name]])
                pairs += [] if found is None else [found]
                skips.setdefault(source.name, Counter()).update([why] if why else [])
        for source in sources_of_traces() if of_traces else ():
            found, reasons = source.pairs_of(item.trace)
            pairs += found
            skips.setdefault(source.name, Counter()).update(reasons)
    hindsight = skips.pop("hindsight", Counter[str]())
    others = {f"{name}: {why}": count for name, each in skips.items() for why, count in each.items()}
    counts = Summary(
        verdicts=Counter(step.verdict for step in votes),
        hindsight_skips=hindsight,
        pair_skips=Counter(others),
        pairs=Counter(name_pair_kind(pair) for pair in pairs),
    )
    return LabelledTraces(pairs, votes, counts)


def group_replies(replies: Sequence[TeacherReply]) -> dict[str, list[TeacherReply]]:
    """Return replies by step."""
    by_step: dict[str, list[TeacherReply]] = {}
    for reply in replies:
        by_step.setdefault(reply.step_id, []).append(reply)
    return by_step


def voted_steps(
    item: ShownTrace, by_step: Mapping[str, Sequence[TeacherReply]], policy: VotePolicy
) -> Iterator[VotedStep]:
    """Count the votes at each step of a trace that has replies."""
    records: dict[int, ContextHistory] = {}
    for state in item.trace.states():
        given = by_step.get(str(state.step_id))
        held = item.answered(state) if given else frozenset[str]()
        answers = [item.reply(reply) for reply in given or () if reply.prompt_id in held]
        if not answers:
            continue
        at = state.context.index
        if at not in records:
            records[at] = replay_context(state.context, item.trace.harness)
        pair, result = teacher_pair(state, item.presentations[at], answers, policy, records[at])
        yield VotedStep(state, item.presentations[at], answers, result, pair)


def name_pair_kind(pair: DPOPair) -> str:
    """Return label source and operations of a pair: `teachers: edit over run`."""
    return f"{pair.label_source}: {pair.chosen_operation} over {pair.rejected_operation}"


def write_labels(
    work: Workspace, source: str, trace_ids: Sequence[str], made: LabelledTraces, vote: str
) -> None:
    """Store pairs and votes of a batch in place of those its traces had.

    `vote` is the version of the vote (`vote_policy.vote_version`). The answers they were made from are
    those that the workspace holds now.
    """
    some = frozenset(trace_ids)
    answers = stale_label_answers(work, some)
    if made.pairs or answers or any(work.current("pairs", some)):
        pairs = sorted(made.pairs, key=lambda pair: pair.pair_id)
        work.write("pairs", pairs_to_table(pairs), trace_ids, source, today(), vote, answers)
    write_votes(work, source, trace_ids, made.votes, vote)


def write_votes(
    work: Workspace, source: str, trace_ids: Sequence[str], votes: Sequence[StepVotes], vote: str
) -> None:
    """Store the votes of a shard in place of those its traces had."""
    if votes or any(work.current("votes", frozenset(trace_ids))):
        ordered = sorted(votes, key=lambda step: step.step_id)
        work.write("votes", votes_to_table(ordered), trace_ids, source, today(), vote)
