"""Read what a dataset repository of the Hub holds, and decide whether a release may go there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracemill.data_cards.hub.hub_errors import translate_hub_errors
from tracemill.data_cards.model.manifest import MANIFEST, Manifest, PublishedManifest
from tracemill.data_cards.model.versions import REPO_ID, parse_version_key
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_NOT_CONTENT = frozenset({".gitattributes", "README.md"})  # what the Hub itself makes for a new repository


@dataclass(frozen=True, slots=True)
class HubRepo:
    """A repository at one moment: `head` is the commit of `main`, `tags` map to commits."""

    repo_id: str
    head: str
    private: bool
    files: tuple[str, ...]
    manifest: PublishedManifest | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PushedVersion:
    """A version whose files are on the Hub, by its commit; `tagged` is True if a tag names the version."""

    commit: str
    version: str
    tagged: bool


def open_hub() -> "HfApi":
    """Return a client of the Hub with a token to write.

    The Hub is that of `HF_ENDPOINT`, the token `HF_TOKEN` or the stored login. Raises ReleaseError if there
    is no token or `HF_HUB_OFFLINE` is set.
    """
    api = open_to_read()
    if not api.token:
        raise ReleaseError(
            "no token for the Hub",
            "one with the right to write",
            "set HF_TOKEN, or run `hf auth login`",
        )
    return api


def open_to_read() -> "HfApi":
    """Return a client of the Hub, with a token if there is one.

    Raises ReleaseError if `HF_HUB_OFFLINE` is set.
    """
    from huggingface_hub import HfApi, constants, get_token

    if constants.HF_HUB_OFFLINE:
        raise ReleaseError("HF_HUB_OFFLINE is set", "access to the Hub", "unset it")
    return HfApi(token=get_token() or False)


def require_writer(api: "HfApi", repo_id: str) -> None:
    """Raise ReleaseError if the token cannot write to the owner of the repository.

    Raises TransientHubError if the Hub does not answer.
    """
    if not REPO_ID.fullmatch(repo_id):
        raise ReleaseError(f"{repo_id!r} is not a dataset id of the Hub", "OWNER/NAME")
    who: dict[str, Any] = translate_hub_errors("`who am I`", api.whoami)
    owner = repo_id.split("/")[0]
    roles = {org.get("name"): org.get("roleInOrg", "write") for org in who.get("orgs") or ()}
    roles[who.get("name")] = "write"
    if owner not in roles:
        raise ReleaseError(
            f"the token of {who.get('name')} has no right to write to {owner}",
            f"an owner among {', '.join(sorted(str(name) for name in roles))}",
        )
    token = (who.get("auth") or {}).get("accessToken") or {}
    if token.get("role") == "read" or roles[owner] == "read" or not _may_write(token):
        raise ReleaseError(
            f"the token has no right to write to {owner}",
            "a token of type write, or a fine-grained one with write access to repositories",
            "make one at https://huggingface.co/settings/tokens",
        )


def _may_write(token: Mapping[str, Any]) -> bool:
    scopes = (token.get("fineGrained") or {}).get("scoped")
    if token.get("role") != "fineGrained" or scopes is None:
        return True
    return any("repo.write" in (scope.get("permissions") or ()) for scope in scopes)


def read_repo_state(api: "HfApi", repo_id: str) -> HubRepo | None:
    """Return the state of a repository, None if it does not exist."""
    from huggingface_hub.errors import RepositoryNotFoundError

    def read() -> Any:
        try:
            return api.dataset_info(repo_id)
        except RepositoryNotFoundError:
            return None

    info = translate_hub_errors(f"a look at {repo_id}", read)
    if info is None:
        return None
    refs = translate_hub_errors(
        f"a look at the tags of {repo_id}", lambda: api.list_repo_refs(repo_id, repo_type="dataset")
    )
    files = tuple(item.rfilename for item in info.siblings or ())
    head = str(info.sha)
    manifest = read_repo_manifest(api, repo_id, head) if MANIFEST in files else None
    tags = {tag.name: str(tag.target_commit) for tag in refs.tags}
    return HubRepo(repo_id, head, bool(info.private), files, manifest, tags)


def read_repo_manifest(api: "HfApi", repo_id: str, commit: str) -> PublishedManifest | None:
    """Return the manifest at a commit, None if there is none of tracemill."""
    data = read_repo_file(api, repo_id, MANIFEST, commit)
    try:
        return None if data is None else PublishedManifest.model_validate_json(data)
    except ValidationError:
        return None


def read_repo_file(api: "HfApi", repo_id: str, name: str, commit: str) -> bytes | None:
    """Return a file at a commit, None if it does not exist."""
    from huggingface_hub.errors import RemoteEntryNotFoundError

    def read() -> bytes | None:
        try:
            path = api.hf_hub_download(repo_id, name, repo_type="dataset", revision=commit)
        except RemoteEntryNotFoundError:
            return None
        return Path(path).read_bytes()

    return translate_hub_errors(f"a look at {name} of {repo_id}", read)


def find_version_in_repo(api: "HfApi", repo: HubRepo, manifest: Manifest) -> PushedVersion | None:
    """Return the version of `repo` with this content, None if the release may be committed on top.

    Raises ReleaseError if the version is taken by other content or older than the published one, and if the
    repository holds something else.
    """
    version, content, last = manifest.version, manifest.content_fingerprint, repo.manifest
    if last is not None and last.name != manifest.name:
        raise ReleaseError(
            f"{repo.repo_id} holds the release {last.name!r}", f"one of {manifest.name!r}", "choose another"
        )
    if version in repo.tags:
        tagged = read_repo_manifest(api, repo.repo_id, repo.tags[version])
        if tagged is None or tagged.content_fingerprint != content:
            raise _taken(repo, version)
        return PushedVersion(repo.tags[version], version, True)
    if last is None:
        _require_empty(repo)
        return None
    if last.content_fingerprint == content:
        return PushedVersion(repo.head, last.version, last.version in repo.tags)
    if last.version == version:
        raise _taken(repo, version)
    if parse_version_key(last.version) > parse_version_key(version):
        raise ReleaseError(
            f"{repo.repo_id} is at version {last.version} and this is {version}", "a later one"
        )
    return None


def _require_empty(repo: HubRepo) -> None:
    other = sorted(set(repo.files) - _NOT_CONTENT)
    if other:
        raise ReleaseError(
            f"{repo.repo_id} holds {len(other)} files that no release of tracemill wrote ({other[0]})",
            "an empty repository, or one of this release",
            "choose another name",
        )


def _taken(repo: HubRepo, version: str) -> ReleaseError:
    return ReleaseError(
        f"{repo.repo_id} has version {version} with other content",
        "a version that does not exist",
        "make a new one with `tracemill release write`",
    )
