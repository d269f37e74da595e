"""Resolve datasets of the Hugging Face Hub by id, revision and split to files that are read one by one.

`datasets` finds the files of a split, as for streaming: by the card's configs, else by their names. The
revision is resolved to a commit first, so that all files are of one state. Nothing is downloaded here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.ingesters.reading.remote_files import HUB, wrap_remote_faults
from tracemill.records.errors import SourceError

_SPEC = re.compile(
    r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^:@\s]+))?"
    r"(?::(?:(?P<folder>(?:[\w.-]+/)+)|(?:(?P<config>[^/:\s]+)/)?(?P<split>\w+(?:\.\w+)*)))?"
)
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class HubSpec:
    """The name of a dataset as a user gives it: `ID[@REVISION]`, then `:[CONFIG/]SPLIT` or `:FOLDER/`."""

    repo: str
    revision: str | None = None
    config: str | None = None
    split: str | None = None
    folder: str | None = None

    @classmethod
    def parse(cls, text: str) -> "HubSpec":
        """Parse the result of `str`. Raises SourceError if the text has another form."""
        match = _SPEC.fullmatch(text.strip())
        if match is None:
            raise SourceError(
                f"{text!r} is not the name of a dataset", "OWNER/NAME[@REVISION][:[CONFIG/]SPLIT | :FOLDER/]"
            )
        return cls(**match.groupdict())

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        config = f"{self.config}/" if self.config else ""
        part = self.folder or (f"{config}{self.split}" if self.split else "")
        return f"{self.repo}{revision}" + (f":{part}" if part else "")


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a dataset. Equal files of two commits have the same `tag`."""

    url: str
    bytes: int
    tag: str


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A split of a dataset at one commit, or a folder of its repository (`split` ends in `/` then)."""

    repo: str
    commit: str
    split: str
    licence: str | None
    files: tuple[HubFile, ...]

    @property
    def name(self) -> str:
        """Return `hf://datasets/ID@COMMIT:SPLIT`."""
        return f"{HUB}{self.repo}@{self.commit}:{self.split}"


def resolve_hub_dataset(spec: HubSpec) -> HubDataset:
    """Return the commit, split and files of a dataset, or the files below a folder of its repository.

    Raises SourceError for a dataset, revision, configuration or split that does not exist, for a gated
    dataset, and where the Hub cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi()
    where = f"{spec.repo}@{spec.revision}" if spec.revision else spec.repo
    with wrap_remote_faults(where):
        info = api.dataset_info(spec.repo, revision=spec.revision)
        if info.gated:
            api.auth_check(spec.repo, repo_type="dataset")
        commit = info.sha or ""
        if spec.folder:
            below = spec.folder.rstrip("/")
            tree = api.list_repo_tree(spec.repo, below, recursive=True, revision=commit, repo_type="dataset")
            infos = list(tree)
            split, paths = spec.folder, sorted(each.path for each in infos if isinstance(each, RepoFile))
            urls = [f"{HUB}{spec.repo}@{commit}/{path}" for path in paths]
        else:
            split, urls = _split_files(spec, commit)
            paths = [url.split(f"@{commit}/", 1)[-1] for url in urls]
            infos = api.get_paths_info(spec.repo, paths, revision=commit, repo_type="dataset")
    file_by_path = {item.path: item for item in infos if isinstance(item, RepoFile)}
    files = tuple(
        HubFile(url, file_by_path[path].size, _tag(file_by_path[path]))
        for url, path in zip(urls, paths, strict=True)
        if path in file_by_path
    )
    return HubDataset(spec.repo, commit, split, _licence(info.card_data), files)


def _split_files(spec: HubSpec, commit: str) -> tuple[str, list[str]]:
    """Return the split and the URLs of its files.

    Raises SourceError if there is no such split, or several and none is named.
    """
    from datasets import load_dataset_builder
    from datasets.exceptions import DatasetsError

    try:
        builder = load_dataset_builder(spec.repo, spec.config, revision=commit)
    except (DatasetsError, ValueError, FileNotFoundError) as error:
        raise SourceError(f"{spec} cannot be opened: {_first_line(error)}", "a dataset of files") from None
    files_by_split = builder.config.data_files or {}
    files = {str(split): [str(url) for url in urls] for split, urls in files_by_split.items()}
    split = spec.split or (next(iter(files)) if len(files) == 1 else None)
    if split is None or split not in files:
        what = f"has no split {split!r}" if split else "has several splits"
        expected = " | ".join(files) or "one with data files"
        raise SourceError(f"{spec} {what}", expected, f"name it as {spec.repo}:SPLIT")
    return split, files[split]


def _tag(item: object) -> str:
    lfs = getattr(item, "lfs", None)
    return str(getattr(lfs, "sha256", None) or getattr(item, "blob_id", ""))


def _licence(card: object) -> str | None:
    stated = getattr(card, "license", None)
    if isinstance(stated, Sequence) and not isinstance(stated, str):
        stated = stated[0] if len(stated) == 1 else None
    name = getattr(card, "license_name", None) if stated == "other" else stated
    return name if isinstance(name, str) and name else None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
