"""The releases of a workspace: found by what a user types, and listed with where they were pushed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_cards.hub import Pushed
from data_cards.manifest import Manifest, read_manifest
from data_cards.versions import releases_in
from records.errors import ReleaseError
from records.files import read_json_file, write_json
from records.workspace import Workspace

PUBLISHED = "published.json"
"""Beside the versions of a release: where each was pushed."""


@dataclass(frozen=True, slots=True)
class Local:
    """A release of a workspace: its folder and manifest."""

    folder: Path
    manifest: Manifest


def find_release(work: Workspace, asked: str | None) -> Local:
    """The release `NAME@VERSION`, `NAME` (its latest), `VERSION` (where only one name has it) or, where
    nothing is asked for, the latest there is of the only name.

    Raises ReleaseError where there is none or more than one.
    """
    name, _, version = (asked or "").partition("@")
    there = releases_in(work.releases_dir)
    if not there:
        raise ReleaseError(f"{work.root} holds no release", "one", "make it with `tracemill release`")
    fitting = {each: versions for each, versions in there.items() if name in ("", each)}
    if asked and not version and not fitting:
        version = name
        fitting = {each: versions for each, versions in there.items() if version in versions}
    found = [(each, version or versions[-1]) for each, versions in fitting.items()]
    known = ", ".join(f"{each}@{one}" for each, versions in there.items() for one in versions[-3:])
    if len(found) != 1 or found[0][1] not in there[found[0][0]]:
        what = "more than one release" if len(found) > 1 else f"no release {asked!r}"
        raise ReleaseError(f"{work.root} holds {what}", f"NAME@VERSION, such as {known}")
    folder = work.releases_dir / found[0][0] / found[0][1]
    return Local(folder, read_manifest(folder))


def note_pushed(work: Workspace, name: str, pushed: Pushed, endpoint: str) -> None:
    """Remember where a version was pushed."""
    noted = pushed_of(work, name)
    places = [each for each in noted.get(pushed.version, []) if each["repo"] != pushed.repo_id]
    place = {"repo": pushed.repo_id, "commit": pushed.commit, "endpoint": endpoint}
    write_json(work.releases_dir / name / PUBLISHED, {**noted, pushed.version: [*places, place]})


def pushed_of(work: Workspace, name: str) -> dict[str, list[dict[str, str]]]:
    """Where each version of a release was pushed: repository and commit. Raises ReleaseError for a broken
    note."""
    path = work.releases_dir / name / PUBLISHED
    if not path.exists():
        return {}
    value: Any = read_json_file(path)
    try:
        return {str(version): [dict(place) for place in places] for version, places in value.items()}
    except (AttributeError, TypeError, ValueError):
        raise ReleaseError(
            f"{path} is no note of what was pushed", "one of tracemill's", "remove it"
        ) from None
