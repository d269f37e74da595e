"""Find the release to train on: one of this machine, or a dataset of the Hub."""

import re
from collections.abc import Iterable
from pathlib import Path

from tracemill.data_cards.model.find_release import lookup_release, release_not_found_error
from tracemill.data_cards.model.manifest import check_files
from tracemill.data_cards.model.release_spec import TeacherEntry
from tracemill.data_cards.model.versions import LATEST
from tracemill.train.training_job import TrainingRelease

_HUB = re.compile(r"[\w.-]+/[\w.-]+")


def resolve_training_release(asked: str, releases_dir: Path) -> TrainingRelease:
    """Find the release that `asked` means (`find_release`), here or on the Hub.

    If there is none here, it is `OWNER/NAME` or `OWNER/NAME@TAG`. Raises ReleaseError if it does not exist
    or a table is missing or was changed, SourceError if the Hub cannot be read.
    """
    found = lookup_release(asked, releases_dir)
    if found is None:
        name, _, tag = asked.partition("@")
        if _HUB.fullmatch(name) and not name.startswith("."):
            return _at_the_hub(name, "" if tag == LATEST else tag)
        raise release_not_found_error(asked, releases_dir)
    check_files(found.folder, found.manifest)
    return TrainingRelease(
        name=found.manifest.name,
        version=found.manifest.version,
        digest=found.manifest.content_fingerprint,
        path=found.folder.resolve(),
        simulated=found.manifest.simulated,
        configs=tuple(found.manifest.tables),
        terms=_terms(found.manifest.teachers),
    )


def _terms(teachers: Iterable[TeacherEntry]) -> dict[str, str]:
    return {each.name: each.terms for each in teachers if each.terms}


def _at_the_hub(repository: str, tag: str) -> TrainingRelease:
    from huggingface_hub import HfApi

    from tracemill.data_cards.hub.repo_state import read_repo_manifest
    from tracemill.ingesters.reading.remote_files import wrap_remote_faults

    with wrap_remote_faults(f"{repository}@{tag}" if tag else repository):
        commit = HfApi().dataset_info(repository, revision=tag or None).sha or ""
    published = read_repo_manifest(HfApi(), repository, commit)
    return TrainingRelease(
        name=repository.replace("/", "--"),
        version=tag or commit[:12],
        digest=commit,
        repository=repository,
        terms=_terms(published.teachers) if published else {},
    )
