"""Put all pairs of the workspace through the recipe, into a release."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.release_spec import LabelFigures, ReleaseSpec, TeacherEntry
from tracemill.data_cards.writing.write_release import Gate, NoRelease, Release, write_release
from tracemill.flows.admission.forgotten_list import ForgottenList
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.label_shard import name_pair_kind
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.flows.publish.publish_gate import judge_with_workspace_gate, make_gate
from tracemill.flows.release.assign_splits import ReleaseSplit
from tracemill.flows.release.fit_context import ContextFitting, make_fitting, make_shorteners
from tracemill.flows.release.label_rows import ReleaseLabels
from tracemill.flows.release.load_pairs import LoadedPairs, load_pair_states, load_votes_without_pair
from tracemill.flows.release.release_due import last_version, why_not_due
from tracemill.flows.release.released_pairs import ReleasedPairs
from tracemill.flows.release.report_facts import run_figures
from tracemill.flows.release.split_release import split_release
from tracemill.flows.release.training_terms import training_terms
from tracemill.flows.release.view_rows import build_view_rows
from tracemill.flows.run_state.code_version import code_version
from tracemill.flows.run_state.run_records import write_manifest
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import count_stale_labels
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.runtime.progress import show_step
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.records.errors import RefusedReleaseError
from tracemill.records.printable import printable_count
from tracemill.records.storage.workspace import Workspace

_MOST_ROUNDS = 3  # releases that are written again while the gate finds something new to redact


@dataclass(frozen=True, slots=True)
class _ReleaseBuild:
    """A release under construction: rows after recipe, caps and splits, and the cutting stage."""

    work: Workspace
    settings: RunSettings
    reredactor: Reredactor
    run_id: str
    summary: Summary
    reduced: LoadedPairs
    labels: ReleaseLabels
    split: ReleaseSplit
    fitting: ContextFitting

    def spec(self) -> ReleaseSpec:
        """Return the part of the spec that is known before the rows are read."""
        release, grown = self.settings.release, self.split.grown
        version = ForgottenList.of(self.work).version_for(self.work.releases_dir, release.name, grown.major)
        spec = _spec(
            self.settings, self.reduced, self.summary, version, self.reredactor.redactor.rules.version
        )
        run = run_figures(self.work, self.settings, self.run_id, self.summary, self.reduced.pairs)
        more = {"run": run, "major": grown.major, "overlaps": dict(self.split.overlaps)}
        return spec.model_copy(update=more)

    def finished(self, spec: ReleaseSpec) -> ReleaseSpec:
        """Add the part that is known after the rows were read, and store the dropped rows."""
        released = self.released()
        write_manifest(self.work, self.run_id, "normalize", released.account())
        labels = self.label_figures(released)
        growth = released.growth(self.split)
        return spec.model_copy(update={"losses": released.losses, "growth": growth, "labels": labels})

    def label_figures(self, released: ReleasedPairs) -> LabelFigures:
        """Return the counts of labels, with warnings on labels and pairs, after the rows were read."""
        return self.labels.figures(self.fitting.labels_too_long, (item.pair for item in released.kept))

    def released(self) -> ReleasedPairs:
        """Return the released pairs, after the rows were read."""
        return ReleasedPairs.of(self.reduced.normalized, self.fitting, self.split)

    def write(self, gate: Gate) -> Release | NoRelease:
        """Write the tables, one shard of the workspace at a time, with card, report and manifest."""
        normalized, pairs, release = self.reduced.normalized, self.settings.pairs, self.settings.release
        steps = build_view_rows(
            self.work, normalized.kept, self.reredactor, pairs.wording, release.views, self.labels.kept
        )
        return write_release(
            self.spec(),
            self.fitting.pairs(load_pair_states(self.work, normalized.kept, self.reredactor)),
            chain(normalized.dropped, self.fitting.too_long),
            self.work.releases_dir,
            load_votes_without_pair(self.work, self.reduced.pairs),
            gate,
            self.fitting.steps(step for step in steps if self.split.of(step.origin.trace_id) is not None),
            self.split.of,
            self.finished,
            make_shorteners(self.settings),
        )


def release_pairs(
    work: Workspace,
    settings: RunSettings,
    normalizer: DJNormalizer,
    reredactor: Reredactor,
    run_id: str,
    summary: Summary,
    only_when_due: bool = False,
) -> ReleaseOutcome:
    """Normalise all pairs and write the release; with `only_when_due` only if enough is new.

    Content equal to the latest version's returns that version. Without a pair or label there is no release,
    and the outcome names the operator that dropped the last one. With `release.redact_findings` the
    findings of the publish gate are redacted and the release is written again. Raises PrivacyError if the
    gate then still finds anything private.
    """
    gate = make_gate(settings, work)
    gate.check()
    listed, rounds = set[str](), 0
    while True:
        try:
            outcome = _release_once(
                work, settings, normalizer, reredactor, run_id, summary, only_when_due, gate
            )
            return _with_listed(outcome, len(listed))
        except RefusedReleaseError as error:
            found = set(error.values) - listed
            if not settings.release.redact_findings or not found or rounds == _MOST_ROUNDS:
                raise
            rounds += 1
            listed |= found
            reredactor = reredactor.with_listed(listed, workspace_key(work.root / "redaction.key"))


def _release_once(
    work: Workspace,
    settings: RunSettings,
    normalizer: DJNormalizer,
    reredactor: Reredactor,
    run_id: str,
    summary: Summary,
    only_when_due: bool,
    gate: PublishGate,
) -> ReleaseOutcome:
    said = list[str]()
    reduced, labels, split = split_release(work, settings, normalizer, reredactor)
    raise_if_interrupted()
    show_step("write tables")
    fitting = make_fitting(settings)
    making = _ReleaseBuild(work, settings, reredactor, run_id, summary, reduced, labels, split, fitting)
    kept = reduced.normalized.kept
    if only_when_due and (waiting := why_not_due(work, settings.release, split.grown, kept)):
        released = making.released()
        outcome = _outcome(released, reduced, making.label_figures(released))
        return _as_last_version(replace(outcome, note=waiting), work, settings.release.name)
    made = making.write(judge_with_workspace_gate(gate, said))
    released = making.released()
    outcome = _outcome(released, reduced, making.label_figures(released))
    outcome = replace(outcome, newer_answers=count_stale_labels(work))
    if isinstance(made, NoRelease):
        return replace(outcome, note=made.reason)
    split.grown.released(made.version, (item.pair.pair_id for item in released.kept)).write()
    outcome = replace(outcome, path=str(made.path), version=made.version, created=made.created)
    restricted = read_manifest(made.path).restricted
    return replace(outcome, rows=made.rows, gate="\n".join(said), terms=restricted)


def _with_listed(outcome: ReleaseOutcome, values: int) -> ReleaseOutcome:
    """Return the outcome with the number of values that were redacted as findings of the gate."""
    if not values or not outcome.gate:
        return outcome
    return replace(outcome, gate=f"{outcome.gate}\n{printable_count(values, 'finding')} redacted before it")


def _as_last_version(outcome: ReleaseOutcome, work: Workspace, name: str) -> ReleaseOutcome:
    """Return the outcome of a release that is not due: the last version, if there is one."""
    if (last := last_version(work, name)) is None:
        return outcome
    version, rows = last.manifest.version, last.manifest.rows
    terms = last.manifest.restricted
    return replace(outcome, path=str(last.folder), version=version, rows=rows, terms=terms)


def _outcome(released: ReleasedPairs, reduced: LoadedPairs, labels: LabelFigures) -> ReleaseOutcome:
    """Return the figures on the rows for the closing table."""
    siblings = Counter(name_pair_kind(pair) for pair in reduced.siblings)
    return ReleaseOutcome(
        path=None,
        version=None,
        rows=0,
        created=False,
        dropped=released.reasons(),
        kept=released.kinds(),
        siblings=dict(siblings),
        no_sibling=dict(reduced.no_sibling),
        splits=released.splits,
        labels={each.source: each.released for each in labels.sources if each.released},
        labels_dropped={
            f"{each.source}: {reason}": steps
            for each in labels.sources
            for reason, steps in each.dropped.items()
        },
        warnings=list(labels.warnings),
    )


def _spec(
    settings: RunSettings, reduced: LoadedPairs, summary: Summary, version: str | None, rules: str
) -> ReleaseSpec:
    code, normalized = code_version(), reduced.normalized
    return ReleaseSpec(
        name=settings.release.name,
        version=version,
        redaction=rules,
        redaction_counts=dict(summary.redactions),
        recipe=normalized.recipe,
        recipe_fingerprint=normalized.fingerprint,
        configuration_fingerprint=settings.fingerprint(),
        policy=build_vote_policy(settings).name,
        wording=settings.pairs.wording,
        views=settings.release.views,
        file_bytes=max(1, int(settings.release.file_mb * 1_000_000)),
        teachers=release_run_teachers(settings),
        tokens_by="estimate" if settings.release.tokenizer is None else settings.release.tokenizer.name,
        max_tokens=settings.release.max_tokens,
        funnel=_funnel(summary, reduced),
        gating=summary.gate,
        spend_usd=summary.spent_usd,
        cap_usd=settings.cap_usd(),
        tracemill_version=code["tracemill"] or "",
        git_commit=code["commit"],
    )


def _funnel(summary: Summary, reduced: LoadedPairs) -> dict[str, int]:
    """Count the pairs of each stage before the recipe."""
    counted = {"traces": summary.traces, "states": summary.states, "questions asked": summary.asked}
    parts = (
        ("not asked", summary.not_asked),
        ("failed call", summary.failures),
        ("vote", summary.verdicts),
        ("no hindsight pair", summary.hindsight_skips),
        ("no other pair", summary.pair_skips),
        ("no sibling pair", reduced.no_sibling),
    )
    for name, counter in parts:
        counted |= {f"{name}: {kind}": count for kind, count in counter.most_common()}
    return counted


def release_run_teachers(settings: RunSettings) -> tuple[TeacherEntry, ...]:
    """Return the teachers of a configuration as entries of the card."""
    return tuple(
        TeacherEntry(
            name=teacher.name,
            model=teacher.model,
            family=teacher.family,
            simulated=teacher.simulated,
            stand_in=teacher.stand_in,
            distillation=training_terms(teacher)[0],
            terms=training_terms(teacher)[1],
        )
        for teacher in settings.models()
    )
