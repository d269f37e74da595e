"""All pairs of the workspace through the recipe, into a release."""

from collections import Counter
from dataclasses import replace

from data_cards.release import NoRelease, write_release
from data_cards.spec import Loss, ReleaseSpec, TeacherEntry
from flows.code_version import code_version
from flows.forgotten import Forgotten
from flows.interrupts import raise_if_interrupted
from flows.publish_gate import judging, make_gate
from flows.reduce import Reduced, reduce_pairs, votes_without_pair, with_states
from flows.renewing import Renewer
from flows.runs import write_manifest
from flows.settings import RunSettings
from flows.shard_work import pair_kind
from flows.summary import ReleaseOutcome, Summary
from flows.view_work import judged_steps
from flows.voting import policy_of
from normalize.normalizer import DJNormalizer, Normalized
from records.workspace import Workspace
from teachers.presets import PRESETS


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
    reduced = reduce_pairs(work, settings.pairs, normalizer, renewer)
    normalized = reduced.normalized
    raise_if_interrupted()
    write_manifest(work, run_id, "normalize", account(normalized))
    version = Forgotten.of(work).version_for(work.releases_dir, settings.release.name)
    made = write_release(
        _spec(settings, reduced, summary, version, renewer.redactor.rules.version),
        with_states(work, normalized.kept, renewer),
        normalized.dropped,
        work.releases_dir,
        votes_without_pair(work, reduced.pairs),
        judging(gate, said),
        judged_steps(work, normalized.kept, renewer, settings.pairs.wording, settings.release.views),
    )
    dropped = dict(Counter(f"{item.operator}: {item.reason}" for item in normalized.dropped))
    kept = dict(Counter(pair_kind(item.pair) for item in normalized.kept))
    siblings = dict(Counter(pair_kind(pair) for pair in reduced.siblings))
    outcome = ReleaseOutcome(
        None, None, 0, False, dropped, kept, siblings=siblings, no_sibling=dict(reduced.no_sibling)
    )
    if isinstance(made, NoRelease):
        return replace(outcome, note=made.reason)
    gate_said = "\n".join(said)
    path = str(made.path)
    return replace(
        outcome, path=path, version=made.version, rows=made.rows, created=made.created, gate=gate_said
    )


def account(normalized: Normalized) -> dict[str, object]:
    """What the recipe kept and dropped, by operator."""
    operators = [
        {"operator": c.operator, "rows_in": c.rows_in, "dropped": c.dropped, "errors": c.errors}
        for c in normalized.counts
    ]
    return {
        "recipe": normalized.recipe,
        "fingerprint": normalized.fingerprint,
        "operators": operators,
        "kept": len(normalized.kept),
        "dropped": len(normalized.dropped),
    }


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
        losses=tuple(
            Loss(operator=c.operator, rows_in=c.rows_in, dropped=c.dropped, errors=c.errors)
            for c in normalized.counts
        ),
        funnel=_funnel(summary, reduced),
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
    terms = "" if settings.preset == "none" else PRESETS[settings.preset].terms
    return tuple(
        TeacherEntry(
            name=teacher.name,
            model=teacher.model,
            family=teacher.family,
            simulated=teacher.type == "simulated",
            terms=terms,
            standing=_standing(summary, teacher.name),
        )
        for teacher in settings.asked()
    )


def _standing(summary: Summary, teacher: str) -> float | None:
    found = summary.standing.get(teacher, {})
    return found["standing"] if found.get("told") else None
