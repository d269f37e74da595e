"""A published version taken back: its files off `main`, its tag, and the history that leads to them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tracemill.data_cards.card.check_card import README
from tracemill.data_cards.hub.hub_errors import translate_hub_errors
from tracemill.data_cards.hub.push import Pusher
from tracemill.data_cards.hub.repo_state import HubRepo
from tracemill.records.errors import ReleaseError

_KEPT = frozenset((".gitattributes", README))
_COPIES = (
    "mirrors, caches and everybody who downloaded it keep their copies; objects of large files may be served"
    " by their address until the Hub collects them: ask its support to purge them"
)


class Retraction(NamedTuple):
    """What was taken back: how many files were deleted from `main`, whether there was a tag, whether the
    history was squashed, and what remains, a line each."""

    repo_id: str
    version: str
    files: int
    tag: bool
    squashed: bool
    remains: tuple[str, ...]


def retract_version(pusher: Pusher, version: str) -> Retraction:
    """Delete a version from its repository. What is gone already is passed over, so that a retraction that
    was stopped goes on.

    Raises ReleaseError where there is no such repository, and where the Hub refuses.
    """
    repo = pusher.state()
    if repo is None:
        raise ReleaseError(f"{pusher.repo_id} is not on the Hub, or not for this token", "a dataset there is")
    on_main = repo.manifest is not None and repo.manifest.version == version
    files = _delete_files(pusher, repo, version) if on_main else 0
    tag = version in repo.tags
    if tag:
        pusher.patience.run(lambda: _delete_tag(pusher, version))
    squashed, refused = _squash(pusher, version)
    others = sorted(set(repo.tags) - {version})
    return Retraction(
        pusher.repo_id, version, files, tag, squashed, tuple(_remains(repo, on_main, others, refused))
    )


def _delete_files(pusher: Pusher, repo: HubRepo, version: str) -> int:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    doomed = [name for name in repo.files if name not in _KEPT]
    said = f"Version {version} was retracted by its publisher. Delete your copies."
    card = f"---\nlicense: unknown\nconfigs: []\n---\n\n# Retracted\n\n{said}\n"
    operations: list[Any] = [CommitOperationDelete(name, is_folder=False) for name in doomed]
    operations.append(CommitOperationAdd(README, card.encode()))
    pusher.patience.run(
        lambda: translate_hub_errors(
            f"commit to {pusher.repo_id}",
            lambda: pusher.api.create_commit(
                pusher.repo_id,
                operations,
                commit_message=f"retract {version}",
                repo_type="dataset",
                parent_commit=repo.head,
            ),
        )
    )
    return len(doomed)


def _delete_tag(pusher: Pusher, version: str) -> None:
    translate_hub_errors(
        f"delete the tag {version} of {pusher.repo_id}",
        lambda: pusher.api.delete_tag(pusher.repo_id, tag=version, repo_type="dataset"),
    )


def _squash(pusher: Pusher, version: str) -> tuple[bool, str]:
    """Make one commit of the history of `main`; whether that was done, and why it was not."""
    try:
        pusher.patience.run(
            lambda: translate_hub_errors(
                f"squash the history of {pusher.repo_id}",
                lambda: pusher.api.super_squash_history(
                    pusher.repo_id,
                    branch="main",
                    commit_message=f"{version} was retracted",
                    repo_type="dataset",
                ),
            )
        )
    except ReleaseError as error:
        return False, str(error)
    return True, ""


def _remains(repo: HubRepo, on_main: bool, others: list[str], refused: str) -> Iterator[str]:
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
    yield _COPIES
