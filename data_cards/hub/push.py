"""A release on the Hub: everything in one commit on a known parent, then the version as a tag."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracemill.data_cards.card.check_card import README, checked_card_for_hub
from tracemill.data_cards.hub.hub_errors import PATIENCE, Passing, Patience, translate_hub_errors
from tracemill.data_cards.hub.repo_state import Found, HubRepo, find_version_in_repo, read_repo_state
from tracemill.data_cards.model.manifest import MANIFEST, Manifest
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

# beside `data/`; what else lies there stays here
_UPLOADED = (README, MANIFEST, "report.html", "report.json", "audit.json")


@dataclass(frozen=True, slots=True)
class Pushed:
    """Where a release is: `created` is False where the same content was there already, under `version`."""

    repo_id: str
    commit: str
    version: str
    created: bool


@dataclass(frozen=True, slots=True)
class Pusher:
    """Puts releases into one dataset repository.

    The upload goes on where a killed one stopped: the Hub keeps what arrived whole and takes it no second
    time. `huggingface_hub` does not try a commit again (2.4): here HEAD is read after every failure, so that
    a commit whose answer was lost is found, and one that others were faster than (412) is made on theirs.
    """

    api: "HfApi"
    repo_id: str
    patience: Patience = PATIENCE

    def state(self) -> HubRepo | None:
        """The repository, None where there is none. Raises ReleaseError where the Hub does not answer."""
        return self.patience.run(lambda: read_repo_state(self.api, self.repo_id))

    def found(self, manifest: Manifest) -> Found | None:
        """Where this content is already, None where it can be pushed. Raises ReleaseError where it cannot."""

        def once() -> Found | None:
            repo = read_repo_state(self.api, self.repo_id)
            return find_version_in_repo(self.api, repo, manifest) if repo else None

        return self.patience.run(once)

    def _uploads_by_what_is_there(self) -> None:
        """Has `huggingface_hub` (2.4) upload by LFS where this Hub has no Xet: by itself it does so only
        where `hf_xet` is not installed, and fails otherwise."""
        from huggingface_hub import constants
        from huggingface_hub.utils import build_hf_headers, get_session

        if constants.HF_HUB_DISABLE_XET or find_spec("hf_xet") is None:
            return
        url = f"{self.api.endpoint}/api/datasets/{self.repo_id}/xet-write-token/main"
        headers = build_hf_headers(token=self.api.token)
        answer = translate_hub_errors(
            f"ask {self.repo_id} for Xet", lambda: get_session().get(url, headers=headers)
        )
        if answer.status_code == 404:
            constants.HF_HUB_DISABLE_XET = True

    def push(self, folder: Path, manifest: Manifest, public: bool = False) -> Pushed:
        """Commit the release in `folder` and tag it; makes the repository where there is none, private unless
        `public`. Raises ReleaseError as `find_version_in_repo` does, and where the Hub refuses."""
        self.patience.run(lambda: self._make(public))
        self.patience.run(self._uploads_by_what_is_there)
        created: list[str] = []

        def once() -> Found:
            repo = read_repo_state(self.api, self.repo_id)
            if repo is None:
                raise Passing(f"the Hub does not show {self.repo_id}, which was just made")
            there = find_version_in_repo(self.api, repo, manifest)
            if there is not None:
                return there
            created.append(manifest.content_fingerprint)
            return Found(self._commit(repo, folder, manifest), manifest.version, False)

        found = self._to_the_end(once, manifest)
        if not found.tagged:
            self.patience.run(lambda: self._tag(found))
        return Pushed(self.repo_id, found.commit, found.version, bool(created))

    def _to_the_end(self, once: Any, manifest: Manifest) -> Found:
        """`once` with patience; where the last try failed HEAD is read a last time."""
        try:
            return self.patience.run(once)
        except ReleaseError:
            there = self.found(manifest)
            if there is None:
                raise
            return there

    def _make(self, public: bool) -> None:
        translate_hub_errors(
            f"make {self.repo_id}",
            lambda: self.api.create_repo(
                self.repo_id, repo_type="dataset", private=not public, exist_ok=True
            ),
        )

    def _commit(self, repo: HubRepo, folder: Path, manifest: Manifest) -> str:
        operations = [*_additions(folder, self.repo_id), *_deletions(repo, folder)]
        info = translate_hub_errors(
            f"commit to {self.repo_id}",
            lambda: self.api.create_commit(
                self.repo_id,
                operations,
                commit_message=f"{manifest.name} {manifest.version}",
                commit_description=f"{manifest.rows} rows, content {manifest.content_fingerprint}",
                repo_type="dataset",
                parent_commit=repo.head,
            ),
        )
        return str(info.oid)

    def tag(self, found: Found) -> None:
        """The tag of a version that is there without. Raises ReleaseError where it names another commit."""
        self.patience.run(lambda: self._tag(found))

    def _tag(self, found: Found) -> None:
        translate_hub_errors(
            f"tag {self.repo_id}",
            lambda: self.api.create_tag(
                self.repo_id, tag=found.version, revision=found.commit, repo_type="dataset", exist_ok=True
            ),
        )
        refs = translate_hub_errors(
            f"a look at the tags of {self.repo_id}",
            lambda: self.api.list_repo_refs(self.repo_id, repo_type="dataset"),
        )
        targets = {tag.name: tag.target_commit for tag in refs.tags}
        if targets.get(found.version) != found.commit:
            raise ReleaseError(
                f"{self.repo_id} has the tag {found.version} on another commit", f"it on {found.commit}"
            )


def list_files_to_push(folder: Path) -> list[str]:
    """The files of a release that go to the Hub, by path below `folder`."""
    data = (path.relative_to(folder).as_posix() for path in folder.glob("data/**/*.parquet"))
    return [*(name for name in _UPLOADED if (folder / name).is_file()), *sorted(data)]


def _additions(folder: Path, repo_id: str) -> Iterator[Any]:
    from huggingface_hub import CommitOperationAdd

    for name in list_files_to_push(folder):
        if name == README:
            yield CommitOperationAdd(name, checked_card_for_hub(folder, repo_id).encode())
        else:
            yield CommitOperationAdd(name, str(folder / name))


def _deletions(repo: HubRepo, folder: Path) -> Iterator[Any]:
    """Tables and report of the last version that this one does not have; files of others stay."""
    from huggingface_hub import CommitOperationDelete

    if repo.manifest is None:
        return
    for name in sorted(set(repo.files) - set(list_files_to_push(folder))):
        if name in _UPLOADED or (name.startswith("data/") and name.endswith(".parquet")):
            yield CommitOperationDelete(name, is_folder=False)
