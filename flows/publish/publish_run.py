"""Publish a release to the Hub; everything that can refuse it comes before the first upload."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tracemill.data_cards.card.check_card import check_card
from tracemill.data_cards.hub.audit_commit import can_commit_audit, find_audit_to_commit, push_audit
from tracemill.data_cards.hub.hub_errors import PATIENCE, RetryPolicy
from tracemill.data_cards.hub.push import HubPusher, PushResult
from tracemill.data_cards.hub.repo_state import HubRepo, open_hub, require_writer
from tracemill.data_cards.model.audit_sample import read_audit
from tracemill.data_cards.model.drift import DriftFigures, find_drift
from tracemill.data_cards.model.drift_bounds import DriftBounds
from tracemill.data_cards.model.find_release import LocalRelease, find_release
from tracemill.data_cards.model.manifest import (
    GateEntry,
    Manifest,
    PublishedManifest,
    check_files,
    read_manifest,
)
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.publish.drift_event import emit_release_drifted
from tracemill.flows.publish.publish_gate import judge_with_workspace_gate, make_gate
from tracemill.flows.run_state.publish_log import note_pushed, read_publish_log
from tracemill.flows.run_state.run_records import sole_writer
from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.flows.runtime.prefect_events import emit_release_published
from tracemill.privacy.publish_gate.kingfisher import require_kingfisher
from tracemill.records.errors import ConfigError, ReleaseError
from tracemill.records.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """Options of `tracemill release publish`.

    `public` makes a new repository public, `accept_drift` lets a release through that is far from the last.
    """

    repo_id: str
    public: bool = False
    accept_drift: bool = False
    patience: RetryPolicy = PATIENCE


@dataclass(slots=True)
class PublishOutcome:
    """The result of a push, with lines to print."""

    pushed: PushResult
    said: list[str] = field(default_factory=list)
    gate: str = ""
    audit_commit: str | None = None
    """The commit that put an audit on the card of a version that was there."""
    audit_there: bool = False
    """Whether the card on `main` tells of the local audit, where there is one."""

    def line(self) -> str:
        """Return one line with the place of the release."""
        made = "pushed" if self.pushed.created else "unchanged since"
        audit = f"\naudit on its card, commit {self.audit_commit[:12]}" if self.audit_commit else ""
        version, commit = self.pushed.version, self.pushed.commit[:12]
        return f"{self.pushed.repo_id}\n{made} version {version}, commit {commit}{audit}"


def publish_release(settings: RunSettings, asked: str | None, order: PublishOptions) -> PublishOutcome:
    """Publish a release of the workspace.

    Raises ReleaseError and PrivacyError, in one line, before anything is uploaded: an incomplete release,
    simulated rows, a card that lacks a field, no token or rights, a repository or version with other
    content, drift beyond the bounds, findings of the gate.
    """
    work = Workspace.open(settings.workspace, create=False)
    with sole_writer(work):
        return publish_local(work, settings, find_release(asked, work.releases_dir, one_name=True), order)


def publish_local(
    work: Workspace, settings: RunSettings, local: LocalRelease, order: PublishOptions, judged: bool = False
) -> PublishOutcome:
    """Publish a local release; `judged` is True if the gate has just passed it."""
    require_second_opinion()
    check_files(local.folder, local.manifest)
    require_real(local.manifest)
    check_card(local.folder, local.manifest)
    if versions := _versions(work, local):
        _refuse_retracted(read_publish_log(versions), local.manifest, order.repo_id)
    pusher = open_pusher(order)
    repo = pusher.state()
    there = pusher.find_content(local.manifest)
    if there is not None:
        if not there.tagged:
            pusher.tag(there)
        outcome = PublishOutcome(PushResult(order.repo_id, there.commit, there.version, False))
        if repo is not None and repo.manifest is not None and repo.manifest.version != there.version:
            outcome.said.append(f"main of {order.repo_id} is at another version, {repo.manifest.version}")
        if repo is not None:
            _push_missing_audit(work, settings, local, order, pusher, repo, outcome)
        return _noted(work, local, pusher, outcome)
    said = [
        *_visibility(repo, order, pusher.api.endpoint),
        *_drift(repo, local.manifest, settings.release.drift, order),
    ]
    judged = judged and local.manifest.gate is not None and len(local.manifest.gate.opinions) > 1
    gate = [] if judged else _judge(work, settings, local.folder)
    pushed = pusher.push(local.folder, local.manifest, order.public)
    return _noted(work, local, pusher, PublishOutcome(pushed, said, "\n".join(gate), audit_there=True))


def publish_finished(work: Workspace, settings: RunSettings, release: ReleaseOutcome) -> ReleaseOutcome:
    """Push a release that was just written to the configured dataset, and return its place."""
    assert release.path is not None
    assert settings.release.hub is not None
    local = LocalRelease(Path(release.path), read_manifest(Path(release.path)))
    done = publish_local(work, settings, local, PublishOptions(settings.release.hub), judged=True)
    return replace(release, pushed="\n".join([done.line(), *done.said]))


def _push_missing_audit(
    work: Workspace,
    settings: RunSettings,
    local: LocalRelease,
    order: PublishOptions,
    pusher: HubPusher,
    repo: HubRepo,
    outcome: PublishOutcome,
) -> None:
    """Push the audit of a published version if its card lacks the result."""
    look = partial(find_audit_to_commit, pusher.api, repo, local.folder, local.manifest)
    outcome.audit_there = can_commit_audit(repo, local.manifest)
    if (audit := order.patience.run(look)) is None:
        return
    outcome.said += _visibility(repo, order, pusher.api.endpoint)
    outcome.gate = "\n".join(_judge(work, settings, local.folder))
    outcome.audit_commit = push_audit(pusher, local.folder, local.manifest)
    if precision := audit.precision(local.manifest.rows):
        outcome.said.append(f"the card on main says: {precision.sentence()}")


def _refuse_retracted(
    noted: Mapping[str, Sequence[Mapping[str, str]]], manifest: Manifest, repo_id: str
) -> None:
    """Refuse a version that was retracted from the repository.

    Raises ReleaseError for a damaged log before anything is sent.
    """
    for place in noted.get(manifest.version, ()):
        if place["repo"] == repo_id and place.get("retracted"):
            raise ReleaseError(
                f"{manifest.name}@{manifest.version} was retracted from {repo_id}",
                "a version without the retracted content",
                "write a new version with `tracemill release write`",
            )


def open_pusher(order: PublishOptions) -> HubPusher:
    """Open the repository to push to, after a check of token and rights.

    Raises ReleaseError.
    """
    api = open_hub()
    order.patience.run(lambda: require_writer(api, order.repo_id))
    return HubPusher(api, order.repo_id, order.patience)


def check_publishing(settings: RunSettings) -> None:
    """Check, before anything is read or spent, that a run can publish if it is to.

    Raises ReleaseError for simulated teachers, or without a token or rights.
    """
    if settings.release.hub is None:
        return
    simulated = [teacher.name for teacher in settings.models() if teacher.simulated]
    if simulated:
        raise ConfigError(
            f"release.hub is set and {simulated[0]} is simulated",
            "teachers that are models: simulated rows are not published",
            "remove release.hub",
        )
    require_second_opinion()
    open_pusher(PublishOptions(settings.release.hub))


def require_second_opinion() -> None:
    """Raise PrivacyError if kingfisher is missing or broken: it is required for publishing."""
    require_kingfisher(os.environ, True, "nothing is published without a second opinion")


def require_real(manifest: Manifest) -> None:
    """Raise ReleaseError if a release has simulated rows."""
    if manifest.simulated != "none":
        raise ReleaseError(
            f"{manifest.simulated_rows} of {manifest.rows} rows of {manifest.name}@{manifest.version} are"
            " simulated",
            "rows of real models: nothing simulated goes to the Hub",
        )


def _judge(work: Workspace, settings: RunSettings, folder: Path) -> list[str]:
    said: list[str] = []
    judge = judge_with_workspace_gate(make_gate(settings, work), said)
    entry: GateEntry = judge(folder)
    return said or [entry.statement]


def _visibility(repo: HubRepo | None, order: PublishOptions, endpoint: str) -> Iterable[str]:
    """Yield lines on the created dataset, or on why it stays private.

    Raises ReleaseError if the repository is public and `--public` was not given.
    """
    if repo is None:
        visibility = "public" if order.public else "private"
        return [f"created {visibility} dataset {endpoint}/datasets/{order.repo_id}"]
    if not repo.private and not order.public:
        raise ReleaseError(f"{repo.repo_id} is public", do="add --public, or make the repository private")
    if repo.private and order.public:
        return [f"{repo.repo_id} stays private: make an existing dataset public in its settings"]
    return []


def _drift(
    repo: HubRepo | None, manifest: Manifest, bounds: DriftBounds, order: PublishOptions
) -> Iterable[str]:
    """Yield lines on accepted drift.

    Raises ReleaseError if drift was not accepted.
    """
    if repo is None or repo.manifest is None:
        return []
    lines = find_drift(
        DriftFigures.of(repo.manifest), DriftFigures.of(PublishedManifest.of(manifest)), bounds
    )
    if lines and not order.accept_drift:
        emit_release_drifted(repo.repo_id, manifest.version, repo.manifest.version)
        raise ReleaseError(
            f"{manifest.version} drifts from {repo.manifest.version}: {'; '.join(lines)}",
            "a release like the last one",
            "look at `tracemill release diff`, then --accept-drift",
        )
    return [f"accepted drift from {repo.manifest.version}: {line}" for line in lines]


def _noted(
    work: Workspace, local: LocalRelease, pusher: HubPusher, outcome: PublishOutcome
) -> PublishOutcome:
    pushed, versions = outcome.pushed, _versions(work, local)
    noted = read_publish_log(versions).get(pushed.version, []) if versions else []
    if pushed.created or (versions and all(place["repo"] != pushed.repo_id for place in noted)):
        emit_release_published(pushed.repo_id, pushed.version, pushed.commit)
    if versions:
        audit = _fingerprint(local) if outcome.audit_there else ""
        note_pushed(versions, outcome.pushed, pusher.api.endpoint, audit)
    return outcome


def _versions(work: Workspace, local: LocalRelease) -> Path | None:
    """Return the folder of a release's versions, None if the release is not of the workspace."""
    versions = work.releases_dir / local.manifest.name
    return versions if local.folder.resolve().parent == versions.resolve() else None


def _fingerprint(local: LocalRelease) -> str:
    """Return the fingerprint of the release's audit; empty without a readable audit."""
    with suppress(ReleaseError):
        audit = read_audit(local.folder, local.manifest.content_fingerprint)
        return audit.fingerprint if audit else ""
    return ""
