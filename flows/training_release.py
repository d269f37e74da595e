"""Which release a name means: a folder, one of the workspace, or a dataset of the Hub."""

import re
from pathlib import Path

from data_cards.manifest import MANIFEST, read_manifest
from data_cards.versions import releases_in, versions_in
from records.errors import ReleaseError
from train.job import TrainingRelease

_HUB = re.compile(r"[\w.-]+/[\w.-]+")


def find_release(asked: str, releases_dir: Path) -> TrainingRelease:
    """The release `asked` names, finished and with rows:

    - a folder, of a version or of several (the newest is taken, or the one behind an `@`);
    - `NAME` or `NAME@VERSION` below `releases_dir`;
    - `OWNER/NAME` or `OWNER/NAME@TAG` at the Hub, where no folder is called so.

    Raises ReleaseError where it is not there or holds no row, SourceError where the Hub does not give it.
    """
    name, _, version = asked.partition("@")
    for path, wanted in ((Path(asked).expanduser(), ""), (Path(name).expanduser(), version)):
        if path.is_dir() and ((path / MANIFEST).exists() or versions_in(path)):
            return _in_folder(path.resolve(), wanted)
    if _HUB.fullmatch(name) and not name.startswith("."):
        return _at_the_hub(name, version)
    if "/" in name:
        raise ReleaseError(f"{name} holds no release", "a folder that `tracemill release` wrote")
    if name and versions_in(releases_dir / name):
        return _in_folder(releases_dir / name, version)
    there = releases_in(releases_dir)
    raise ReleaseError(
        f"{releases_dir} holds no release {name!r}",
        f"one of {', '.join(there)}" if there else "a release that was made before",
        "" if there else "run `tracemill release` first",
    )


def _in_folder(folder: Path, version: str) -> TrainingRelease:
    if not (folder / MANIFEST).exists():
        there = versions_in(folder)
        if version and version not in there:
            raise ReleaseError(f"{folder} has no version {version}", f"one of {', '.join(there)}")
        folder = folder / (version or there[-1])
    manifest = read_manifest(folder)
    if not manifest.rows:
        raise ReleaseError(f"{folder} holds no pair", "a release with rows")
    return TrainingRelease(
        name=manifest.name,
        version=manifest.version,
        digest=manifest.content_fingerprint,
        path=folder,
        simulated=manifest.simulated,
    )


def _at_the_hub(repository: str, tag: str) -> TrainingRelease:
    from huggingface_hub import HfApi

    from ingesters.remote import faults

    with faults(f"{repository}@{tag}" if tag else repository):
        commit = HfApi().dataset_info(repository, revision=tag or None).sha or ""
    return TrainingRelease(
        name=repository.replace("/", "--"), version=tag or commit[:12], digest=commit, repository=repository
    )
