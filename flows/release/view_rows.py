"""Build the rows of all views but pairs, one shard of traces at a time."""

from collections.abc import Iterator, Mapping, Sequence

from tracemill.flows.admission.reredaction import ReredactedTrace, Reredactor
from tracemill.flows.labeling.label_shard import group_replies
from tracemill.flows.release.label_rows import replies_of_traces, show_labels, votes_of_traces
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.harnesses.presentation import Presentation, present_all
from tracemill.pairs.action_labels import describe_agreement
from tracemill.pairs.other_views import Judgement, build_soft_step_view, build_step_run_views
from tracemill.pairs.side_text import Wording
from tracemill.records.identity import StepId
from tracemill.records.pair import NormalizedDPOPair, StepVotes
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.records.views import ActionLabel, SoftStep, StepRun

CONFIRMED = "agrees_with_student"


def build_view_rows(
    work: Workspace,
    kept: Sequence[NormalizedDPOPair],
    reredactor: Reredactor,
    wording: Wording,
    views: Sequence[str],
    labels: Sequence[ActionLabel] = (),
) -> Iterator[StepRun | SoftStep | ActionLabel]:
    """Build the rows of all views but pairs.

    They are labels with the prompts of their steps, runs of judged steps for the view `prm` and votes as
    distributions for `soft`, if these are among `views`. A step is wrong if a kept pair rejects it, and
    right if the vote was for it.
    """
    rejected: dict[str, dict[str, Judgement]] = {}
    for item in kept:
        pair = item.pair
        told = Judgement(False, pair.label_source, pair.simulated)
        rejected.setdefault(StepId.parse(pair.step_id).trace_id, {})[pair.step_id] = told
    labelled: dict[str, list[ActionLabel]] = {}
    for label in labels:
        labelled.setdefault(label.origin.trace_id, []).append(label)
    judged = bool({"prm", "soft"} & set(views))
    if not judged and not labelled:
        return
    for table in work.current("traces", columns=("trace_id",)):
        trace_ids = frozenset(table["trace_id"].to_pylist())
        votes = votes_of_traces(work, trace_ids) if judged else {}
        replies = replies_of_traces(work, frozenset(votes)) if "soft" in views else {}
        evidence = _evidence(work, frozenset(votes)) if "soft" in views else {}
        wanted = trace_ids & (votes.keys() | (rejected.keys() if judged else set()) | labelled.keys())
        for stored in read_traces(work, wanted):
            by = reredactor.redact_again(stored)
            here = votes.get(by.trace.trace_id, {})
            shown = present_all(by.trace)
            yield from show_labels(by.trace, shown, labelled.get(by.trace.trace_id, ()))
            if "prm" in views:
                yield from _runs(by, shown, here, rejected.get(by.trace.trace_id, {}), wording)
            if "soft" in views:
                yield from _soft(by, shown, here, replies.get(by.trace.trace_id, []), evidence, wording)


def _evidence(work: Workspace, trace_ids: frozenset[str]) -> dict[str, str]:
    """Return the evidence of the teachers' pair at each step, also of pairs that are not released."""
    rows = (
        row
        for table in work.current("pairs", trace_ids, ("step_id", "label_source", "evidence"))
        for row in table.to_pylist()
    )
    return {row["step_id"]: row["evidence"] for row in rows if row["label_source"] == "teachers"}


def _runs(
    by: ReredactedTrace,
    shown: Mapping[int, Presentation],
    votes: Mapping[str, StepVotes],
    rejected: Mapping[str, Judgement],
    wording: Wording,
) -> Iterator[StepRun]:
    """Yield runs of judged steps; a step that a pair rejects and a vote confirms is not judged."""
    right = {
        step_id: Judgement(True, "teachers", step.simulated)
        for step_id, step in votes.items()
        if step.verdict == CONFIRMED
    }
    both = right.keys() & rejected.keys()
    judged = {name: told for name, told in {**right, **rejected}.items() if name not in both}
    if judged:
        for context in by.trace.contexts:
            if context.index in shown:
                yield from build_step_run_views(by.trace, context, shown[context.index], judged, wording)


def _soft(
    by: ReredactedTrace,
    shown: Mapping[int, Presentation],
    votes: Mapping[str, StepVotes],
    replies: Sequence[TeacherReply],
    evidence: Mapping[str, str],
    wording: Wording,
) -> Iterator[SoftStep]:
    by_step = group_replies([by.reply(reply) for reply in replies])
    for state in by.trace.states():
        step = votes.get(str(state.step_id))
        if step is not None:
            answers = by_step.get(step.step_id, [])
            why = evidence.get(step.step_id) or describe_agreement(step)
            made = build_soft_step_view(state, shown[state.context.index], step, answers, wording, why)
            if made is not None:
                yield made
