"""A release is found by one rule, whoever asks: name, version, `latest`, or a path."""

import json
import shutil
from pathlib import Path

import pytest
from training_releases import released

from tracemill.data_cards.model.find_release import find_release, lookup_release
from tracemill.records.errors import ReleaseError


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """Two versions of `alpha`, ten and two by text order, and one of `beta` that is older."""
    folder = tmp_path / "w" / "releases"
    made = released(folder, "alpha").path
    for name, version, day in (
        ("alpha", "2026.11.21.2", 22),
        ("alpha", "2026.11.21.10", 23),
        ("beta", "2026.11.20", 20),
    ):
        copy = Path(shutil.copytree(made, folder / name / version))
        told = json.loads((copy / "manifest.json").read_text())
        told |= {"name": name, "version": version, "created": f"2026-11-{day}T00:00:00Z"}
        (copy / "manifest.json").write_text(json.dumps(told))
    shutil.rmtree(made)
    return folder


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("alpha", "alpha/2026.11.21.10"),
        ("alpha@latest", "alpha/2026.11.21.10"),
        ("alpha@2026.11.21.2", "alpha/2026.11.21.2"),
        ("2026.11.20", "beta/2026.11.20"),
        (None, "alpha/2026.11.21.10"),
        ("./alpha", "alpha/2026.11.21.10"),
        ("./alpha@latest", "alpha/2026.11.21.10"),
        ("./alpha@2026.11.21.2", "alpha/2026.11.21.2"),
        ("beta/2026.11.20", "beta/2026.11.20"),
    ],
)
def test_names_versions_and_paths(
    releases: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, found: str
) -> None:
    monkeypatch.chdir(releases)
    assert find_release(asked, releases).folder.resolve() == releases / found


def test_a_name_of_the_workspace_comes_before_a_folder(
    releases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "here"
    shutil.copytree(releases / "beta" / "2026.11.20", elsewhere / "alpha")
    monkeypatch.chdir(elsewhere)
    assert find_release("alpha", releases).called == "alpha@2026.11.21.10"
    assert find_release("./alpha", releases).called == "beta@2026.11.20"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "alpah",
            "holds no release 'alpah', and no folder of that name is one; expected NAME@VERSION or a path,",
        ),
        (
            "alpha@2026.11.21.11",
            "has no version '2026.11.21.11'; expected `latest` or one such as 2026.11.21.10",
        ),
        ("gamma@2026.11.20", "such as beta@2026.11.20"),
        ("zzz", "such as alpha@2026.11.21.10, beta@2026.11.20"),
        ("latest", "holds more than one release 'latest'; expected alpha@latest or beta@latest"),
        ("beta/2026.11.20@2026.11.20", "is one version; expected its path alone"),
    ],
)
def test_what_is_not_there_is_one_line_with_what_is_like_it(
    releases: Path, monkeypatch: pytest.MonkeyPatch, asked: str, said: str
) -> None:
    monkeypatch.chdir(releases)
    with pytest.raises(ReleaseError) as caught:
        find_release(asked, releases)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_asked_is_the_last_or_with_one_name_the_only_one(releases: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ReleaseError, match="more than one release; expected NAME or NAME@VERSION, such as alpha@"
    ):
        find_release(None, releases, one_name=True)
    shutil.rmtree(releases / "beta")
    assert find_release(None, releases, one_name=True).called == "alpha@2026.11.21.10"
    with pytest.raises(
        ReleaseError, match="none holds no release; expected one; make it with `tracemill release write`"
    ):
        find_release(None, tmp_path / "none" / "releases")
    with pytest.raises(ReleaseError, match=r"there is no release 'x': no folder is one, and .* holds none"):
        find_release("x", tmp_path / "none" / "releases")
    assert lookup_release("owner/name", releases) is None
