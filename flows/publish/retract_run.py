"""Take a published version back from the Hub, and note it so that it does not return."""

from dataclasses import dataclass

from tracemill.data_cards.hub.hub_errors import PATIENCE, RetryPolicy
from tracemill.data_cards.hub.retract import Retraction, retract_version
from tracemill.data_cards.model.find_release import find_release
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.publish.publish_run import PublishOptions, open_pusher
from tracemill.flows.run_state.publish_log import note_retracted, read_publish_log
from tracemill.flows.run_state.run_records import sole_writer
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RetractOptions:
    """Options of `tracemill release retract`: the version, `NAME@VERSION`; `yes` confirms it."""

    release: str
    repo_id: str | None
    yes: bool
    patience: RetryPolicy = PATIENCE


def retract_release(settings: RunSettings, order: RetractOptions) -> list[Retraction]:
    """Retract a version from the given dataset, else from every one that it was pushed to.

    Raises ReleaseError if no dataset is known or the Hub refuses, PrivacyError without confirmation.
    """
    work = Workspace.open(settings.workspace, create=False)
    with sole_writer(work):
        name, version = _named(work, settings, order.release)
        versions = work.releases_dir / name
        places = [place["repo"] for place in read_publish_log(versions).get(version, [])]
        repos = [order.repo_id] if order.repo_id else places
        if not repos:
            raise ReleaseError(
                f"it is not recorded where {name}@{version} was published",
                "the dataset",
                "give --hub OWNER/NAME",
            )
        if not order.yes:
            raise PrivacyError(
                f"{name}@{version} would be deleted from {', '.join(repos)}, with the history of main",
                "confirmation: it cannot be undone",
                "confirm it with --yes",
            )
        done: list[Retraction] = []
        for repo_id in repos:
            pusher = open_pusher(PublishOptions(repo_id, patience=order.patience))
            done.append(retract_version(pusher, version))
            if versions.is_dir():
                note_retracted(versions, version, repo_id)
    return done


def _named(work: Workspace, settings: RunSettings, asked: str) -> tuple[str, str]:
    """Return name and version, even if the workspace no longer has them."""
    name, at, version = asked.partition("@")
    if at:
        return name, version
    try:
        local = find_release(asked, work.releases_dir, one_name=True)
    except ReleaseError:
        return settings.release.name, asked
    return local.manifest.name, local.manifest.version


def retraction_rows(done: list[Retraction]) -> list[tuple[str, str]]:
    """Format retractions as table rows."""
    rows: list[tuple[str, str]] = []
    for each in done:
        tag = "tag deleted" if each.tag else "no tag there"
        history = "history of main squashed" if each.squashed else "history of main as it was"
        objects = f"{each.objects} objects of large files deleted"
        done_there = f"version {each.version}: {each.files} files deleted, {tag}, {history}, {objects}"
        rows.append((each.repo_id, done_there))
        rows.append(("remains", "\n".join(f"- {line}" for line in each.remains)))
    return rows
