"""A published version taken back from a Hub on loopback: files, tag, history; what is said of the rest."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hub_releases import OF_THE_HUB, QUICK, REPO, TAG, empty_workspace, log_in, push
from hub_stub import Hub
from release_rows import DAY, SPEC, hindsight, normalized, pair, written

from tracemill.data_cards.writing.write_release import write_release
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.publish.list_versions import list_releases
from tracemill.flows.publish.retract_run import RetractOptions, retract_release, retraction_rows
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.storage.workspace import Workspace

pytestmark = OF_THE_HUB


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch)


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return empty_workspace(tmp_path)


def release(settings: RunSettings, *pairs: Any, days: int = 0) -> Path:
    spec = SPEC.model_copy(update={"created": DAY + timedelta(days=days)})
    rows = normalized(*(pairs or (pair(1), pair(2), hindsight(3))))
    return written(write_release(spec, rows, [], settings.workspace / "releases")).path


def retract(
    settings: RunSettings, asked: str = f"demo@{TAG}", yes: bool = True, hub: str | None = None
) -> Any:
    return retract_release(settings, RetractOptions(asked, hub, yes, QUICK))


def tables(hub: Hub) -> set[str]:
    """Tables that any commit of the repository leads to."""
    found = hub.repos[REPO].commits.values()
    return {name for files in found for name in files if name.endswith(".parquet")}


def test_a_version_goes_with_its_files_its_tag_and_the_history(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    repo = hub.repos[REPO]
    assert len(tables(hub)) > 5
    files, objects = len(repo.commits[repo.refs["main"]]), len(hub.lfs)
    assert objects > 2
    (done,) = retract(settings)
    assert (done.objects, hub.lfs) == (objects, {})
    assert (done.repo_id, done.version, done.files, done.tag, done.squashed) == (
        REPO,
        TAG,
        files - 2,
        True,
        True,
    )
    assert len(done.remains) == 1
    assert "mirrors, caches" in done.remains[0]
    assert (repo.tags, repo.titles, len(repo.commits)) == (set(), [f"{TAG} was retracted"], 1)
    assert tables(hub) == set()
    left = repo.commits[repo.refs["main"]]
    assert set(left) == {".gitattributes", "README.md"}
    assert f"Version {TAG} was retracted".encode() in left["README.md"]
    assert retraction_rows([done])[0] == (
        REPO,
        f"version {TAG}: {files - 2} files deleted, tag deleted, history of main squashed,"
        f" {objects} objects of large files deleted",
    )  # fmt: skip


def test_it_is_noted_and_not_published_there_again(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    retract(settings)
    work = Workspace.open(settings.workspace)
    assert [line["pushed"] for line in list_releases(work, None)] == [[f"{REPO} (retracted)"]]
    hub.log.clear()
    with pytest.raises(ReleaseError) as caught:
        push(settings)
    assert str(caught.value) == (
        f"demo@{TAG} was retracted from {REPO}; expected a version without the retracted content;"
        " write a new version with `tracemill release write`"
    )
    assert hub.log == []


def test_a_version_under_a_later_one_loses_its_tag_and_the_rest_is_said(
    hub: Hub, settings: RunSettings
) -> None:
    release(settings)
    push(settings)
    release(settings, pair(1), pair(4), days=1)
    later = push(settings, accept_drift=True).pushed.version
    repo = hub.repos[REPO]
    objects = len(hub.lfs)
    (done,) = retract(settings)
    assert (done.files, done.tag, done.squashed) == (0, True, True)
    needed = {
        hashlib.sha256(data).hexdigest()
        for name, data in repo.commits[repo.refs[later]].items()
        if name.endswith(".parquet")
    }
    assert set(hub.lfs) == needed
    assert done.objects == objects - len(needed) > 0
    assert repo.tags == {later}
    assert any(f"main is at version {later}" in line for line in done.remains)
    assert any(line.endswith(f"may lead to the files: {later}") for line in done.remains)
    assert b"retracted" not in repo.commits[repo.refs["main"]]["README.md"]


def test_without_a_yes_nothing_is_asked_of_the_hub(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    hub.log.clear()
    with pytest.raises(PrivacyError, match=f"demo@{TAG} would be deleted from {REPO}"):
        retract(settings, yes=False)
    assert hub.log == []


def test_a_hub_that_does_not_squash_is_said_and_a_stopped_retraction_goes_on(
    hub: Hub, settings: RunSettings
) -> None:
    release(settings)
    push(settings)
    refused: Callable[[Any], int] = lambda request: 403 if "super-squash" in request.path else 0  # noqa: E731
    hub.faults = refused
    (done,) = retract(settings)
    assert (done.tag, done.squashed) == (True, False)
    assert "was not squashed" in done.remains[0]
    assert len(tables(hub)) > 5
    hub.faults = lambda request: 0
    (again,) = retract(settings)
    assert (again.files, again.tag, again.squashed) == (0, False, True)
    assert tables(hub) == set()


def test_a_hub_that_keeps_the_objects_of_large_files_is_said(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    hub.faults = lambda request: 403 if "lfs-files" in request.path else 0
    (done,) = retract(settings)
    assert (done.squashed, done.objects) == (True, 0)
    assert done.remains[0].startswith("objects of large files were not deleted")
    assert len(hub.lfs) > 2


def test_a_version_that_nobody_noted_wants_the_dataset(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    with pytest.raises(ReleaseError, match=f"it is not recorded where demo@{TAG} was published"):
        retract(settings)
