"""Find the labelled actions of a workspace, then show them one trace at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracemill.data_cards.model.release_spec import LabelCount, LabelFigures
from tracemill.flows.admission.reredaction import ReredactedTrace, Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.label_shard import group_replies
from tracemill.flows.release.outcome_file import outcome_in_file, read_outcome_file
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.harnesses.presentation import Presentation
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.pairs.action_labels import (
    AGREED,
    SOLVED,
    label_agreed_action,
    label_solved_action,
    steps_past_departure,
    why_not_agreed,
)
from tracemill.pairs.directions import direction_warnings
from tracemill.pairs.label_weights import LabelWeights
from tracemill.pairs.side_text import Wording
from tracemill.records.action_row import ActionRow
from tracemill.records.identity import StepId
from tracemill.records.pair import DPOPair, StepVotes
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import replies_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import MessageView, Outcome, Trace, TraceState
from tracemill.records.views import ActionLabel

OTHER_TEXT = "no answer to what is shown today"
CONTRADICTED = "a pair prefers another action"
OUTVOTED = "teachers agree on another action"
SUMMARISER = "a summariser's step"
BETWEEN = "its repository, instance or task is on two sides"
_OUTCOME_COLUMNS = ("trace_id", "parent_trace_id", "outcome", "origin", "instance_id")
_FOR, _AGAINST, _OPEN = "for the action agreed on", "for another action", "at a step without agreement"


@dataclass(slots=True)
class ReleaseLabels:
    """The labelled actions of a release, without their prompts.

    `dropped` counts the reasons for labels left out, by source.
    """

    kept: list[ActionLabel] = field(default_factory=list)
    steps: Counter[str] = field(default_factory=Counter)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    warnings: tuple[str, ...] = ()

    def take(self, source: str, made: ActionLabel | str) -> None:
        """Count a step that could give a label of a source: the label, or the reason for none."""
        self.steps[source] += 1
        if isinstance(made, ActionLabel):
            self.kept.append(made)
        else:
            self.drop(source, made)

    def drop(self, source: str, reason: str, steps: int = 1) -> None:
        """Count steps of a source that are labelled and not released."""
        self.dropped.setdefault(source, Counter())[reason] += steps

    def rows(self) -> Counter[str]:
        """Return the number of labels by trace."""
        return Counter(label.origin.trace_id for label in self.kept)

    def with_side(self, side_of: Callable[[str], str | None]) -> "ReleaseLabels":
        """Keep the labels whose trace has a split, and count the others as dropped."""
        for label in self.kept:
            if side_of(label.origin.trace_id) is None:
                self.drop(label.label_source, BETWEEN)
        return replace(self, kept=[each for each in self.kept if side_of(each.origin.trace_id) is not None])

    def figures(self, too_long: Mapping[str, Counter[str]], pairs: Iterable[DPOPair]) -> LabelFigures:
        """Count labels by source, with warnings on them and on the released pairs.

        `too_long` counts labels that do not fit a trainer's context, by reason.
        """
        return LabelFigures(
            answers=dict(self.answers.most_common()),
            sources=tuple(
                LabelCount(source=source, steps=steps, dropped=dict(dropped.most_common()))
                for source, steps in sorted(self.steps.items())
                for dropped in [self.dropped.get(source, Counter()) + too_long.get(source, Counter())]
            ),
            warnings=(*self.warnings, *direction_warnings(pairs)),
        )


def load_labels(
    work: Workspace,
    pairs: Sequence[DPOPair],
    reredactor: Reredactor,
    settings: RunSettings,
    normalizer: DJNormalizer,
) -> ReleaseLabels:
    """Load every labelled action for the configs to be released, in the order of the traces.

    `pairs` are all pairs, also those that are not released.
    """
    wording, views = settings.pairs.wording, settings.release.views
    wanted = [source for source in (AGREED, SOLVED) if {source, "sft"} & set(views)]
    outcomes = load_outcomes(work, read_outcome_file(settings.release.outcomes)) if wanted else {}
    weights = LabelWeights.fit(_traces_of_known_outcome(work, outcomes))
    reader = _Reader(ReleaseLabels(), outcomes, weights, wording)
    for pair in pairs:
        if pair.label_source == "teachers":
            reader.paired[pair.step_id] = pair
        else:
            reader.against.add(pair.step_id)
    for table in work.current("traces", columns=("trace_id",)) if wanted else ():
        trace_ids = frozenset(table["trace_id"].to_pylist())
        votes = votes_of_traces(work, trace_ids)
        replies = replies_of_traces(work, trace_ids) if AGREED in wanted else {}
        named = votes.keys() | replies.keys() if AGREED in wanted else set()
        solved = {name for name in trace_ids if outcomes[name] == "resolved"} if SOLVED in wanted else set()
        for stored in read_traces(work, trace_ids & (named | solved)):
            name, by = stored.trace_id, reredactor.redact_again(stored)
            if name in named:
                reader.agreed(by, votes.get(name, {}), replies.get(name, []))
            if name in solved:
                reader.solved(by, votes.get(name, {}))
    labels = settle_labels(reader.labels, weights, reader.paired)
    return _screened(replace(labels, warnings=tuple(weights.warnings())), normalizer)


def settle_labels(labels: ReleaseLabels, weights: LabelWeights, paired: Iterable[str]) -> ReleaseLabels:
    """Return the labels after all of them have weights.

    A vote that is no evidence has weight 0; any other vote replaces the label from a solved session at its
    step. A vote after the divergence of a failed session has weight 0 too, unless there are signs of shared
    errors: a student with the same errors reaches such steps. `paired` are steps with a teachers' pair.
    """
    is_contradicted = weights.contradicted_by_outcome()
    replaced: dict[str, str] = dict.fromkeys(paired, CONTRADICTED)
    weighed: list[ActionLabel] = []
    for label in labels.kept:
        if label.label_source == AGREED and is_contradicted(label):
            replaced.pop(label.step_id, None)
            label = replace(label, weight=0.0)
        elif label.label_source == AGREED and not label.same_as_student:
            replaced.setdefault(label.step_id, OUTVOTED)
        weighed.append(label)
    past = frozenset[str]() if weights.warnings() else steps_past_departure(weighed)
    weighed = [
        replace(each, weight=0.0) if each.label_source == AGREED and each.step_id in past else each
        for each in weighed
    ]
    kept: list[ActionLabel] = []
    for label in weighed:
        if label.label_source == SOLVED and label.step_id in replaced:
            labels.drop(SOLVED, replaced[label.step_id])
        else:
            kept.append(label)
    return replace(labels, kept=kept)


def _screened(labels: ReleaseLabels, normalizer: DJNormalizer) -> ReleaseLabels:
    """Drop the labels whose action the recipe's operators on chosen sides drop."""
    rows = [
        ActionRow(str(place), label.message, label.origin.source, label.origin.harness, label.label_source)
        for place, label in enumerate(labels.kept)
    ]
    judged = normalizer.normalize_actions(rows)
    for gone in judged.dropped:
        labels.drop(gone.action.label_source, f"{gone.operator}: {gone.reason}")
    return replace(labels, kept=[labels.kept[int(row.row_id)] for row in judged.kept])


@dataclass(slots=True)
class _Reader:
    """A builder of labels, trace by trace.

    `against` are steps with a pair of another source that rejects the agent's action, `paired` the
    teachers' pairs by step.
    """

    labels: ReleaseLabels
    outcomes: Mapping[str, Outcome]
    weights: LabelWeights
    wording: Wording
    against: set[str] = field(default_factory=set)
    paired: dict[str, DPOPair] = field(default_factory=dict)

    def agreed(
        self, by: ReredactedTrace, votes: Mapping[str, StepVotes], replies: Sequence[TeacherReply]
    ) -> None:
        """Add the labels at a trace's steps with teachers' answers."""
        answers = group_replies(replies)
        for state in self._known(by.trace).states():
            name = str(state.step_id)
            step, given = votes.get(name), answers.get(name, [])
            if step is not None:
                self._count_answers(step)
                pair = self.paired.get(name)
                said = [] if pair else map(by.reply, given)
                made = label_agreed_action(state, step, said, pair, self.weights, self.wording)
                self.labels.take(AGREED, made)
            elif given:
                self.labels.answers[OTHER_TEXT] += len(given)
                self.labels.take(AGREED, OTHER_TEXT)

    def solved(self, by: ReredactedTrace, votes: Mapping[str, StepVotes]) -> None:
        """Add the labels at the steps of a trace that solved its task."""
        for state in self._known(by.trace).states():
            self.labels.take(SOLVED, self._solved(state, votes.get(str(state.step_id))))

    def _solved(self, state: TraceState, step: StepVotes | None) -> ActionLabel | str:
        if state.trace.notes.get("summariser"):
            return SUMMARISER
        if str(state.step_id) in self.against:
            return CONTRADICTED
        return label_solved_action(state, step.verdict if step else "", self.weights, self.wording)

    def _known(self, trace: Trace) -> Trace:
        return replace(trace, outcome=self.outcomes.get(trace.trace_id, trace.outcome))

    def _count_answers(self, step: StepVotes) -> None:
        agreed = not why_not_agreed(step)
        for vote in step.votes:
            if not vote.counted:
                self.labels.answers[f"not counted: {vote.reason}"] += 1
            elif not agreed:
                self.labels.answers[_OPEN] += 1
            else:
                self.labels.answers[_FOR if vote.agrees else _AGAINST] += 1


def load_outcomes(work: Workspace, told: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcome of each trace, from its source or else from the user's file (`told`).

    A subagent's outcome is that of its session.
    """
    own: dict[str, Outcome] = {}
    parents: dict[str, str] = {}
    for table in work.current("traces", columns=_OUTCOME_COLUMNS):
        for row in table.to_pylist():
            own[row["trace_id"]] = row["outcome"]
            if row["outcome"] == "unknown":
                own[row["trace_id"]] = outcome_in_file(row, told)
            if row["parent_trace_id"]:
                parents[row["trace_id"]] = row["parent_trace_id"]
    return {name: _outcome_of(name, own, parents) for name in own}


def _outcome_of(name: str, own: Mapping[str, Outcome], parents: Mapping[str, str]) -> Outcome:
    met: set[str] = set()
    while own.get(name, "unknown") == "unknown" and name in parents and name not in met:
        met.add(name)
        name = parents[name]
    return own.get(name, "unknown")


def _traces_of_known_outcome(work: Workspace, outcomes: Mapping[str, Outcome]) -> Iterator[Trace]:
    known = frozenset(name for name, outcome in outcomes.items() if outcome != "unknown")
    for trace in read_traces(work, known):
        yield replace(trace, outcome=outcomes[trace.trace_id])


def show_labels(
    trace: Trace, shown: Mapping[int, Presentation], labels: Sequence[ActionLabel]
) -> Iterator[ActionLabel]:
    """Yield the labels of a trace with the prompts of their steps."""
    for label in labels:
        state = trace.state(StepId.parse(label.step_id))
        what = shown[state.context.index]
        yield replace(
            label,
            origin=replace(label.origin, presentation=what.label),
            state_messages=MessageView(what.messages, what.cuts[state.step.index]),
            tools=what.tools,
        )


def votes_of_traces(work: Workspace, trace_ids: frozenset[str]) -> dict[str, dict[str, StepVotes]]:
    """Return the votes at the steps of these traces, by trace and step id."""
    found: dict[str, dict[str, StepVotes]] = {}
    for table in work.current("votes", trace_ids):
        for step in votes_from_table(table):
            found.setdefault(StepId.parse(step.step_id).trace_id, {})[step.step_id] = step
    return found


def replies_of_traces(work: Workspace, trace_ids: frozenset[str]) -> dict[str, list[TeacherReply]]:
    """Return the replies at the steps of these traces, by trace."""
    found: dict[str, list[TeacherReply]] = {}
    for table in work.current("replies", trace_ids):
        for reply in replies_from_table(table):
            found.setdefault(StepId.parse(reply.step_id).trace_id, []).append(reply)
    return found
