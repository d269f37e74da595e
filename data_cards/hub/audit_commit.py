"""What an audit found goes onto the card of a version that is on the Hub: one commit, the tag stays."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracemill.data_cards.card.audit_card import insert_audit_into_card
from tracemill.data_cards.card.check_card import README
from tracemill.data_cards.hub.hub_errors import translate_hub_errors
from tracemill.data_cards.hub.push import Pusher
from tracemill.data_cards.hub.repo_state import HubRepo, read_repo_file, read_repo_state
from tracemill.data_cards.model.audit_sample import AUDIT, Audit, read_audit
from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.model.report_model import REPORT_PAGE
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def find_audit_to_commit(api: "HfApi", repo: HubRepo, folder: Path, manifest: Manifest) -> Audit | None:
    """The audit of a release that `main` does not tell of; None where it does, where nobody judged anything,
    and where `main` holds other rows.

    Raises ReleaseError where `main` has an audit of another sample.
    """
    audit = read_audit(folder, manifest.content_fingerprint)
    if audit is None or not audit.verdicts or not can_commit_audit(repo, manifest):
        return None
    data = read_repo_file(api, repo.repo_id, AUDIT, repo.head) if AUDIT in repo.files else None
    there = _opened(repo, data, audit)
    if there is not None and (there.seed, there.pair_ids) != (audit.seed, audit.pair_ids):
        raise ReleaseError(
            f"{repo.repo_id} has an audit of another sample (seed {there.seed},"
            f" {len(there.verdicts)} judged)",
            "that one, gone on with",
            f"remove {AUDIT} there, or the one in {folder}",
        )
    return None if there == audit else audit


def push_audit(pusher: Pusher, folder: Path, manifest: Manifest) -> str | None:
    """Commits card, audit and report page on the HEAD that was read; gives the commit, None where there was
    nothing left to say. A commit whose answer was lost is found, and one that others were faster than is made
    on theirs. The card is the one of the Hub with the figure in it. Raises ReleaseError as
    `find_audit_to_commit`.
    """

    def once() -> str | None:
        repo = read_repo_state(pusher.api, pusher.repo_id)
        audit = find_audit_to_commit(pusher.api, repo, folder, manifest) if repo else None
        if repo is None or audit is None:
            return repo.head if repo and tried else None
        tried.append(repo.head)
        return _commit(pusher.api, repo, folder, manifest, audit)

    tried: list[str] = []
    return pusher.patience.run(once)


def can_commit_audit(repo: HubRepo, manifest: Manifest) -> bool:
    """Whether `main` is at the rows of this release."""
    return repo.manifest is not None and repo.manifest.content_fingerprint == manifest.content_fingerprint


def _opened(repo: HubRepo, data: bytes | None, audit: Audit) -> Audit | None:
    """The audit on `main`, None where there is none or it is of other rows."""
    if data is None:
        return None
    try:
        there = Audit.model_validate_json(data)
    except ValidationError:
        raise ReleaseError(
            f"{AUDIT} of {repo.repo_id} cannot be read", "an audit made by tracemill", "remove it there"
        ) from None
    return there if there.content_fingerprint == audit.content_fingerprint else None


def _commit(api: "HfApi", repo: HubRepo, folder: Path, manifest: Manifest, audit: Audit) -> str:
    from huggingface_hub import CommitOperationAdd

    precision = audit.precision(manifest.rows)
    card = read_repo_file(api, repo.repo_id, README, repo.head)
    if precision is None or card is None:
        raise ReleaseError(f"{repo.repo_id} has no card", "the card as tracemill wrote it", "publish it anew")
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
