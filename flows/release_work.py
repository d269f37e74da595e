"""All pairs of the workspace through the recipe, into a release."""

from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

from data_cards.manifest import read_manifest
from data_cards.release import NoRelease, write_release
from data_cards.spec import ReleaseSpec, TeacherEntry
from flows.code_version import code_version
from flows.fitting import make_fitting
from flows.forgotten import Forgotten
from flows.interrupts import raise_if_interrupted
from flows.losses import account, losses_of, with_examples
from flows.publish_find import Local
from flows.publish_gate import judging, make_gate
from flows.reduce import Reduced, votes_without_pair, with_states
from flows.renewing import Renewer
from flows.report_work import run_figures
from flows.runs import write_manifest
from flows.settings import RunSettings
from flows.shard_work import pair_kind
from flows.split_release import of_split, reduced_and_split
from flows.summary import ReleaseOutcome, Summary
from flows.teacher_terms import terms_of
from flows.view_work import judged_steps
from flows.voting import policy_of
from normalize.normalizer import DJNormalizer
from records.workspace import Workspace


def release_pairs(
    work: Workspace,
    settings: RunSettings,
    normalizer: DJNormalizer,
    renewer: Renewer,
    run_id: str,
    summary: Summary,
) -> ReleaseOutcome:
    """Normalise and write. Content equal to the latest version's gives that version back; no pair left
    gives no release, and says which operator took the last. Raises PrivacyError where the publish gate
    finds anything private."""
    gate, said = make_gate(settings, work), list[str]()
    gate.check()
    reduced, split = reduced_and_split(work, settings, normalizer, renewer)
    normalized = reduced.normalized
    raise_if_interrupted()
    write_manifest(work, run_id, "normalize", account(normalized))
    fitting = make_fitting(settings)
    steps = judged_steps(work, normalized.kept, renewer, settings.pairs.wording, settings.release.views)
    major = split.grown.major
    version = Forgotten.of(work).version_for(work.releases_dir, settings.release.name, major)
    spec = _spec(settings, reduced, summary, version, renewer.redactor.rules.version)
    figures = run_figures(work, settings, run_id, summary, reduced.pairs)
    made = write_release(
        spec.model_copy(update={"run": figures, **of_split(split, normalized)}),
        fitting.pairs(with_states(work, normalized.kept, renewer)),
        chain(normalized.dropped, fitting.too_long),
        work.releases_dir,
        votes_without_pair(work, reduced.pairs),
        judging(gate, said),
        fitting.steps(step for step in steps if split.of(step.origin.trace_id) is not None),
        split.of,
        lambda: with_examples(fitting.losses(), fitting.too_long),
    )
    dropped = dict(Counter(f"{item.operator}: {item.reason}" for item in normalized.dropped))
    kept = dict(Counter(pair_kind(item.pair) for item in normalized.kept))
    siblings = dict(Counter(pair_kind(pair) for pair in reduced.siblings))
    outcome = ReleaseOutcome(
        None, None, 0, False, dropped, kept, siblings=siblings, no_sibling=dict(reduced.no_sibling)
    )
    if isinstance(made, NoRelease):
        return replace(outcome, note=made.reason)
    left_out = {gone.pair.pair_id for gone in fitting.too_long}
    ids = (item.pair.pair_id for item in normalized.kept)
    split.grown.released(made.version, (name for name in ids if name not in left_out)).write()
    gate_said = "\n".join(said)
    path = str(made.path)
    outcome = replace(
        outcome, path=path, version=made.version, rows=made.rows, created=made.created, gate=gate_said
    )
    return replace(outcome, pushed=_push(work, settings, made.path))


def _push(work: Workspace, settings: RunSettings, folder: Path) -> str:
    """The finished release to the Hub, where the configuration names a dataset; a line on it."""
    if settings.release.hub is None:
        return ""
    from flows.publish_work import PublishOrder, publish_local

    order = PublishOrder(settings.release.hub)
    done = publish_local(work, settings, Local(folder, read_manifest(folder)), order, judged=True)
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
        policy=policy_of(settings).name,
        wording=settings.pairs.wording,
        views=settings.release.views,
        teachers=teachers_of(settings, summary),
        losses=losses_of(normalized),
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
        ("no sibling pair", reduced.no_sibling),
    )
    for name, counter in parts:
        counted |= {f"{name}: {kind}": count for kind, count in counter.most_common()}
    return counted


def teachers_of(settings: RunSettings, summary: Summary) -> tuple[TeacherEntry, ...]:
    """The teachers of a configuration as the card names them."""
    return tuple(
        TeacherEntry(
            name=teacher.name,
            model=teacher.model,
            family=teacher.family,
            simulated=teacher.type == "simulated",
            distillation=terms_of(teacher)[0],
            terms=terms_of(teacher)[1],
            standing=_standing(summary, teacher.name),
        )
        for teacher in settings.asked()
    )


def _standing(summary: Summary, teacher: str) -> float | None:
    found = summary.standing.get(teacher, {})
    return found["standing"] if found.get("told") else None
