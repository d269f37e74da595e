"""All pairs of the workspace through the recipe, into a release."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from tracemill.data_cards.model.find_release import LocalRelease
from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.release_spec import LabelFigures, ReleaseSpec, TeacherEntry
from tracemill.data_cards.writing.write_release import Gate, NoRelease, Release, write_release
from tracemill.flows.admission.forgotten_list import Forgotten
from tracemill.flows.admission.reredaction import Renewer
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.label_shard import name_pair_kind
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.flows.publish.publish_gate import judge_with_workspace_gate, make_gate
from tracemill.flows.release.assign_splits import Split
from tracemill.flows.release.fit_context import Fitting, make_fitting, make_shorteners
from tracemill.flows.release.label_rows import Labels
from tracemill.flows.release.load_pairs import Reduced, load_pair_states, load_votes_without_pair
from tracemill.flows.release.released_pairs import Released
from tracemill.flows.release.report_facts import run_figures
from tracemill.flows.release.split_release import split_release
from tracemill.flows.release.training_terms import training_terms
from tracemill.flows.release.view_rows import build_view_rows
from tracemill.flows.run_state.code_version import code_version
from tracemill.flows.run_state.run_records import write_manifest
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import count_stale_labels
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.records.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _Making:
    """A release while it is made: what went through recipe, caps and sides, and what cuts it."""

    work: Workspace
    settings: RunSettings
    renewer: Renewer
    run_id: str
    summary: Summary
    reduced: Reduced
    labels: Labels
    split: Split
    fitting: Fitting

    def spec(self) -> ReleaseSpec:
        """What is known before the rows are read."""
        release, grown = self.settings.release, self.split.grown
        version = Forgotten.of(self.work).version_for(self.work.releases_dir, release.name, grown.major)
        spec = _spec(self.settings, self.reduced, self.summary, version, self.renewer.redactor.rules.version)
        run = run_figures(self.work, self.settings, self.run_id, self.summary, self.reduced.pairs)
        more = {"run": run, "major": grown.major, "overlaps": dict(self.split.overlaps)}
        return spec.model_copy(update=more)

    def finished(self, spec: ReleaseSpec) -> ReleaseSpec:
        """With what is known once the rows were read; the account of losses is written down."""
        released = self.released()
        write_manifest(self.work, self.run_id, "normalize", released.account())
        labels = self.labels.figures(self.fitting.labels_too_long)
        growth = released.growth(self.split)
        return spec.model_copy(update={"losses": released.losses, "growth": growth, "labels": labels})

    def released(self) -> Released:
        """What is in the release, once the rows were read."""
        return Released.of(self.reduced.normalized, self.fitting, self.split)

    def write(self, gate: Gate) -> Release | NoRelease:
        """The tables, read from the workspace a shard at a time, with card, report and manifest."""
        normalized, pairs, release = self.reduced.normalized, self.settings.pairs, self.settings.release
        steps = build_view_rows(
            self.work, normalized.kept, self.renewer, pairs.wording, release.views, self.labels.kept
        )
        return write_release(
            self.spec(),
            self.fitting.pairs(load_pair_states(self.work, normalized.kept, self.renewer)),
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
    renewer: Renewer,
    run_id: str,
    summary: Summary,
) -> ReleaseOutcome:
    """Normalise and write. Content equal to the latest version's gives that version back; no pair and no
    label left gives no release, and says which operator took the last. Raises PrivacyError where the publish
    gate finds anything private."""
    gate, said = make_gate(settings, work), list[str]()
    gate.check()
    reduced, labels, split = split_release(work, settings, normalizer, renewer)
    raise_if_interrupted()
    fitting = make_fitting(settings)
    making = _Making(work, settings, renewer, run_id, summary, reduced, labels, split, fitting)
    made = making.write(judge_with_workspace_gate(gate, said))
    released = making.released()
    outcome = _outcome(released, reduced, labels.figures(fitting.labels_too_long))
    outcome = replace(outcome, newer_answers=count_stale_labels(work))
    if isinstance(made, NoRelease):
        return replace(outcome, note=made.reason)
    split.grown.released(made.version, (item.pair.pair_id for item in released.kept)).write()
    outcome = replace(outcome, path=str(made.path), version=made.version, created=made.created)
    pushed = _push(work, settings, made.path)
    return replace(outcome, rows=made.rows, gate="\n".join(said), pushed=pushed)


def _outcome(released: Released, reduced: Reduced, labels: LabelFigures) -> ReleaseOutcome:
    """What the closing table says of the rows."""
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


def _push(work: Workspace, settings: RunSettings, folder: Path) -> str:
    """The finished release to the Hub, where the configuration names a dataset; a line on it."""
    if settings.release.hub is None:
        return ""
    from tracemill.flows.publish.publish_run import PublishOrder, publish_local

    order = PublishOrder(settings.release.hub)
    done = publish_local(work, settings, LocalRelease(folder, read_manifest(folder)), order, judged=True)
    return "\n".join([done.line(), *done.said])


def _spec(
    settings: RunSettings, reduced: Reduced, summary: Summary, version: str | None, rules: str
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
        teachers=release_run_teachers(settings, summary),
        tokens_by="estimate" if settings.release.tokenizer is None else settings.release.tokenizer.name,
        max_tokens=settings.release.max_tokens,
        funnel=_funnel(summary, reduced),
        gating=summary.gate,
        spend_usd=summary.spent_usd,
        cap_usd=settings.cap_usd(),
        tracemill_version=code["tracemill"] or "",
        git_commit=code["commit"],
    )


def _funnel(summary: Summary, reduced: Reduced) -> dict[str, int]:
    """What there was before the recipe, and where it went."""
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


def release_run_teachers(settings: RunSettings, summary: Summary) -> tuple[TeacherEntry, ...]:
    """The teachers of a configuration as the card names them."""
    return tuple(
        TeacherEntry(
            name=teacher.name,
            model=teacher.model,
            family=teacher.family,
            simulated=teacher.simulated,
            distillation=training_terms(teacher)[0],
            terms=training_terms(teacher)[1],
            standing=_standing(summary, teacher.name),
        )
        for teacher in settings.asked()
    )


def _standing(summary: Summary, teacher: str) -> float | None:
    found = summary.standing.get(teacher, {})
    return found["standing"] if found.get("told") else None
