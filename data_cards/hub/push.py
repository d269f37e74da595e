"""Push a release to the Hub: one commit on a known parent, then the version as a tag."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracemill.data_cards.card.check_card import README, checked_card_for_hub
from tracemill.data_cards.hub.hub_errors import PATIENCE, RetryPolicy, TransientHubError, translate_hub_errors
from tracemill.data_cards.hub.repo_state import (
    HubRepo,
    PushedVersion,
    find_version_in_repo,
    read_repo_state,
)
from tracemill.data_cards.model.manifest import MANIFEST, Manifest
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

# pushed beside `data/`; other files stay local
_UPLOADED = (README, MANIFEST, "report.html", "report.json", "audit.json")


@dataclass(frozen=True, slots=True)
class PushResult:
    """The place of a release; `created` is False if the same content existed already, as `version`."""

    repo_id: str
    commit: str
    version: str
    created: bool


@dataclass(frozen=True, slots=True)
class HubPusher:
    """A writer of releases to one dataset repository.

    An upload resumes where a killed one stopped: the Hub keeps complete files. `huggingface_hub` 2.4 does not
    retry commits. Here HEAD is read after every failure, so that a commit whose answer was lost is found, and
    after a concurrent commit (412) the commit is retried on the new HEAD.
    """

    api: "HfApi"
    repo_id: str
    patience: RetryPolicy = PATIENCE

    def state(self) -> HubRepo | None:
        """Return the state of the repository, None if it does not exist.

        Raises ReleaseError if the Hub does not answer.
        """
        return self.patience.run(lambda: read_repo_state(self.api, self.repo_id))

    def find_content(self, manifest: Manifest) -> PushedVersion | None:
        """Return where this content is already, None if it can be pushed.

        Raises ReleaseError as `find_version_in_repo`.
        """

        def once() -> PushedVersion | None:
            repo = read_repo_state(self.api, self.repo_id)
            return find_version_in_repo(self.api, repo, manifest) if repo else None

        return self.patience.run(once)

    def prepare(self) -> None:
        """Choose the protocol of uploads, before the first one."""
        self.patience.run(self._choose_upload_protocol)

    def _choose_upload_protocol(self) -> None:
        """Upload by LFS if this Hub has no Xet.

        `huggingface_hub` 2.4 does so only if `hf_xet` is not installed, and fails otherwise.
        """
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

    def push(self, folder: Path, manifest: Manifest, public: bool = False) -> PushResult:
        """Commit the release in `folder` and tag it.

        A missing repository is created, private unless `public`. Raises ReleaseError as
        `find_version_in_repo`, and if the Hub refuses.
        """
        self.patience.request(
            f"make {self.repo_id}",
            lambda: self.api.create_repo(
                self.repo_id, repo_type="dataset", private=not public, exist_ok=True
            ),
        )
        self.prepare()
        created: list[str] = []

        def once() -> PushedVersion:
            repo = read_repo_state(self.api, self.repo_id)
            if repo is None:
                raise TransientHubError(f"the Hub does not show {self.repo_id}, which was just made")
            existing = find_version_in_repo(self.api, repo, manifest)
            if existing is not None:
                return existing
            created.append(manifest.content_fingerprint)
            return PushedVersion(self._commit(repo, folder, manifest), manifest.version, False)

        content = self._run_or_find(once, manifest)
        if not content.tagged:
            self.tag(content)
        return PushResult(self.repo_id, content.commit, content.version, bool(created))

    def _run_or_find(self, once: Any, manifest: Manifest) -> PushedVersion:
        """Call `once` with retries; after the last failure, look whether the content arrived."""
        try:
            return self.patience.run(once)
        except ReleaseError:
            existing = self.find_content(manifest)
            if existing is None:
                raise
            return existing

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

    def tag(self, content: PushedVersion) -> None:
        """Tag a version that has no tag.

        Raises ReleaseError if the tag is on another commit.
        """
        self.patience.run(lambda: self._tag(content))

    def _tag(self, content: PushedVersion) -> None:
        translate_hub_errors(
            f"tag {self.repo_id}",
            lambda: self.api.create_tag(
                self.repo_id, tag=content.version, revision=content.commit, repo_type="dataset", exist_ok=True
            ),
        )
        refs = translate_hub_errors(
            f"a look at the tags of {self.repo_id}",
            lambda: self.api.list_repo_refs(self.repo_id, repo_type="dataset"),
        )
        targets = {tag.name: tag.target_commit for tag in refs.tags}
        if targets.get(content.version) != content.commit:
            raise ReleaseError(
                f"{self.repo_id} has the tag {content.version} on another commit", f"it on {content.commit}"
            )


def list_files_to_push(folder: Path) -> list[str]:
    """Return the files of a release that are pushed, as paths below `folder`."""
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
    """Yield deletions of tables and report of the last version that this one lacks; other files stay."""
    from huggingface_hub import CommitOperationDelete

    if repo.manifest is None:
        return
    for name in sorted(set(repo.files) - set(list_files_to_push(folder))):
        if name in _UPLOADED or (name.startswith("data/") and name.endswith(".parquet")):
            yield CommitOperationDelete(name, is_folder=False)
