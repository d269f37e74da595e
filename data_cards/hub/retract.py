"""Retract a published version: delete its files, its tag and the history that leads to them.

Large files lie outside of git on the Hub. Their objects are deleted too, where no branch or tag needs them.
https://huggingface.co/docs/huggingface_hub/package_reference/hf_api#huggingface_hub.HfApi.permanently_delete_lfs_files
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tracemill.data_cards.card.check_card import README
from tracemill.data_cards.hub.push import HubPusher
from tracemill.data_cards.hub.repo_state import HubRepo
from tracemill.records.errors import ReleaseError

_KEPT = frozenset((".gitattributes", README))
_COPIES = "mirrors, caches and everybody who downloaded it keep their copies"


class Retraction(NamedTuple):
    """The result of a retraction; `remains` names what is left, one line each.

    `files` counts the files deleted from `main`, `tag` tells whether there was a tag, `squashed` whether the
    history was squashed, `objects` counts the objects of large files that were deleted.
    """

    repo_id: str
    version: str
    files: int
    tag: bool
    squashed: bool
    objects: int
    remains: tuple[str, ...]


def retract_version(pusher: HubPusher, version: str) -> Retraction:
    """Delete a version from its repository.

    What is deleted already is skipped, so that a retraction that was stopped can be repeated. Raises
    ReleaseError if there is no such repository, and if the Hub refuses.
    """
    repo = pusher.state()
    if repo is None:
        raise ReleaseError(
            f"{pusher.repo_id} is not on the Hub, or not for this token", "an existing dataset"
        )
    on_main = repo.manifest is not None and repo.manifest.version == version
    files = _delete_files(pusher, repo, version) if on_main else 0
    tag = version in repo.tags
    if tag:
        pusher.patience.request(
            f"delete the tag {version} of {pusher.repo_id}",
            lambda: pusher.api.delete_tag(pusher.repo_id, tag=version, repo_type="dataset"),
        )
    squashed, refused = _squash(pusher, version)
    others = sorted(set(repo.tags) - {version})
    objects, kept = _delete_objects(pusher, ("main", *others))
    remains = tuple(_remains(repo, on_main, others, refused, kept))
    return Retraction(pusher.repo_id, version, files, tag, squashed, objects, remains)


def _delete_files(pusher: HubPusher, repo: HubRepo, version: str) -> int:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    deleted = [name for name in repo.files if name not in _KEPT]
    notice = f"Version {version} was retracted by its publisher. Delete your copies."
    card = f"---\nlicense: unknown\nconfigs: []\n---\n\n# Retracted\n\n{notice}\n"
    operations: list[Any] = [CommitOperationDelete(name, is_folder=False) for name in deleted]
    operations.append(CommitOperationAdd(README, card.encode()))
    pusher.patience.request(
        f"commit to {pusher.repo_id}",
        lambda: pusher.api.create_commit(
            pusher.repo_id,
            operations,
            commit_message=f"retract {version}",
            repo_type="dataset",
            parent_commit=repo.head,
        ),
    )
    return len(deleted)


def _squash(pusher: HubPusher, version: str) -> tuple[bool, str]:
    """Squash the history of `main`; return whether that was done, and else why not."""
    try:
        pusher.patience.request(
            f"squash the history of {pusher.repo_id}",
            lambda: pusher.api.super_squash_history(
                pusher.repo_id, branch="main", commit_message=f"{version} was retracted", repo_type="dataset"
            ),
        )
    except ReleaseError as error:
        return False, str(error)
    return True, ""


def _delete_objects(pusher: HubPusher, refs: Iterable[str]) -> tuple[int, str]:
    """Delete the objects of large files that none of the refs needs; return how many, and else why not."""

    def delete() -> int:
        api, repo_id = pusher.api, pusher.repo_id
        needed = {
            large.sha256
            for ref in refs
            for entry in api.list_repo_tree(repo_id, recursive=True, revision=ref, repo_type="dataset")
            if (large := getattr(entry, "lfs", None)) is not None
        }
        stored = api.list_lfs_files(repo_id, repo_type="dataset")
        unneeded = [each for each in stored if each.file_oid not in needed]
        api.permanently_delete_lfs_files(repo_id, unneeded, repo_type="dataset")
        return len(unneeded)

    try:
        what = f"delete the large files of {pusher.repo_id}"
        return pusher.patience.request(what, delete), ""
    except ReleaseError as error:
        return 0, str(error)


def _remains(repo: HubRepo, on_main: bool, others: list[str], refused: str, kept: str) -> Iterator[str]:
    if refused:
        yield (
            f"the history of main was not squashed ({refused}): its commits still lead to the files;"
            " try again, or delete the repository"
        )
    if not on_main and repo.manifest is not None:
        yield (
            f"main is at version {repo.manifest.version}: rows that it shares with this one are still there;"
            " retract it too, or publish one without them"
        )
    if others:
        yield f"tags with a history of their own, which may lead to the files: {', '.join(others)}"
    if kept:
        yield (
            f"objects of large files were not deleted ({kept}) and may be served by their address: try again,"
            " or delete them in the settings of the dataset"
        )
    yield _COPIES
