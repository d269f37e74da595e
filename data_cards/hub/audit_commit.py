"""Commit the result of an audit to the card of a published version; the tag stays."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracemill.data_cards.card.audit_card import insert_audit_into_card
from tracemill.data_cards.card.check_card import README
from tracemill.data_cards.hub.hub_errors import translate_hub_errors
from tracemill.data_cards.hub.push import HubPusher
from tracemill.data_cards.hub.repo_state import HubRepo, read_repo_file, read_repo_state
from tracemill.data_cards.model.audit_sample import AUDIT, Audit, read_audit
from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.model.report_model import REPORT_PAGE
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def find_audit_to_commit(api: "HfApi", repo: HubRepo, folder: Path, manifest: Manifest) -> Audit | None:
    """Return the audit that `main` does not have yet, else None.

    It is None if `main` has it, if nothing was judged, or if `main` holds other rows. Raises ReleaseError if
    `main` has an audit of another sample.
    """
    audit = read_audit(folder, manifest.content_fingerprint)
    if audit is None or not audit.verdicts or not can_commit_audit(repo, manifest):
        return None
    data = read_repo_file(api, repo.repo_id, AUDIT, repo.head) if AUDIT in repo.files else None
    published = _parse_audit(repo, data, audit)
    if published is not None and (published.seed, published.pair_ids) != (audit.seed, audit.pair_ids):
        raise ReleaseError(
            f"{repo.repo_id} has an audit of another sample (seed {published.seed},"
            f" {len(published.verdicts)} judged)",
            "the same sample",
            f"remove {AUDIT} there, or the one in {folder}",
        )
    return None if published == audit else audit


def push_audit(pusher: HubPusher, folder: Path, manifest: Manifest) -> str | None:
    """Commit card, audit and report page on the HEAD that was read.

    Returns the commit, None if there was nothing to commit. A commit whose answer was lost is found again,
    and after a concurrent commit it is retried on the new HEAD. The card is that of the Hub with the
    precision in it. Raises ReleaseError as `find_audit_to_commit`.
    """

    def commit_once() -> str | None:
        repo = read_repo_state(pusher.api, pusher.repo_id)
        audit = find_audit_to_commit(pusher.api, repo, folder, manifest) if repo else None
        if repo is None or audit is None:
            return repo.head if repo and tried else None
        tried.append(repo.head)
        return _commit(pusher.api, repo, folder, manifest, audit)

    tried: list[str] = []
    return pusher.patience.run(commit_once)


def can_commit_audit(repo: HubRepo, manifest: Manifest) -> bool:
    """Return whether `main` holds the rows of this release."""
    return repo.manifest is not None and repo.manifest.content_fingerprint == manifest.content_fingerprint


def _parse_audit(repo: HubRepo, data: bytes | None, audit: Audit) -> Audit | None:
    """Parse the audit on `main`; None if there is none or it belongs to other rows."""
    if data is None:
        return None
    try:
        published = Audit.model_validate_json(data)
    except ValidationError:
        raise ReleaseError(
            f"{AUDIT} of {repo.repo_id} cannot be read", "an audit made by tracemill", "remove it there"
        ) from None
    return published if published.content_fingerprint == audit.content_fingerprint else None


def _commit(api: "HfApi", repo: HubRepo, folder: Path, manifest: Manifest, audit: Audit) -> str:
    from huggingface_hub import CommitOperationAdd

    precision = audit.precision(manifest.rows)
    card = read_repo_file(api, repo.repo_id, README, repo.head)
    if precision is None or card is None:
        raise ReleaseError(
            f"{repo.repo_id} has no card", "the card as tracemill wrote it", "publish it again"
        )
    text = insert_audit_into_card(card.decode(errors="replace"), precision, f"the card of {repo.repo_id}")
    files: dict[str, Any] = {README: text.encode(), AUDIT: str(folder / AUDIT)}
    if REPORT_PAGE in repo.files and (folder / REPORT_PAGE).is_file():
        files[REPORT_PAGE] = str(folder / REPORT_PAGE)
    info = translate_hub_errors(
        f"commit to {repo.repo_id}",
        lambda: api.create_commit(
            repo.repo_id,
            [CommitOperationAdd(name, data) for name, data in files.items()],
            commit_message=f"{manifest.name} {manifest.version}: audit",
            commit_description=precision.sentence(),
            repo_type="dataset",
            parent_commit=repo.head,
        ),
    )
    return str(info.oid)
