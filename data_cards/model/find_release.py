"""Find a release of the workspace by name and version, or by the path of its folder."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tracemill.data_cards.model.manifest import MANIFEST, Manifest, read_manifest
from tracemill.data_cards.model.versions import LATEST, versions_by_release, versions_in_folder
from tracemill.records.errors import ReleaseError

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class LocalRelease:
    """A release on this machine: its folder and manifest."""

    folder: Path
    manifest: Manifest

    @property
    def called(self) -> str:
        """Return `NAME@VERSION`."""
        return f"{self.manifest.name}@{self.manifest.version}"


def find_release(reference: str | None, releases_dir: Path, one_name: bool = False) -> LocalRelease:
    """Return the release that `reference` names; `releases_dir` is that of the workspace.

    - `NAME`, `NAME@latest` or `NAME@VERSION`: a release of the workspace, by default its newest version.
    - `VERSION` or `latest`: a release of the workspace, if only one name has that version.
    - `PATH`, with or without `@VERSION`: the folder of a release, or of its versions.
    - None: the last release written, or with `one_name` the newest of the only name.

    A name of the workspace comes before a folder of the same name; `./NAME` is the folder. Raises
    ReleaseError if no release or more than one matches.
    """
    release = lookup_release(reference, releases_dir, one_name)
    if release is None:
        raise release_not_found_error(reference, releases_dir)
    return release


def lookup_release(reference: str | None, releases_dir: Path, one_name: bool = False) -> LocalRelease | None:
    """Return the release as `find_release` does, None if no name and no folder matches.

    Raises ReleaseError if the name or the folder exists and the version does not.
    """
    releases = versions_by_release(releases_dir)
    if not reference:
        return _newest_release(releases, releases_dir, one_name)
    name, _, version = reference.rpartition("@") if "@" in reference else (reference, "", "")
    if name in releases:
        return _of(releases_dir / name, version)
    named = [each for each, versions in releases.items() if reference == LATEST or reference in versions]
    if not version and named:
        if len(named) > 1:
            raise ReleaseError(
                f"{releases_dir.parent} holds more than one release {reference!r}",
                " or ".join(f"{each}@{reference}" for each in named),
            )
        return _of(releases_dir / named[0], reference)
    for path, wanted in ((Path(reference).expanduser(), ""), (Path(name).expanduser(), version)):
        if name and ((path / MANIFEST).is_file() or versions_in_folder(path)):
            return _of(path, wanted)
    return None


def release_not_found_error(reference: str | None, releases_dir: Path) -> ReleaseError:
    """Build the error for a release that does not exist; it names similar releases or the newest ones."""
    releases = versions_by_release(releases_dir)
    if not releases:
        problem = f"no release {reference!r}: no folder is one, and {releases_dir.parent} holds none"
        message = f"there is {problem}" if reference else f"{releases_dir.parent} holds no release"
        return ReleaseError(message, "one", "make it with `tracemill release write`")
    near = _similar(
        reference or "", [f"{name}@{version}" for name, all_ in releases.items() for version in all_]
    )
    return ReleaseError(
        f"{releases_dir.parent} holds no release {reference!r}, and no folder of that name is one",
        f"NAME@VERSION or a path, such as {', '.join(near or _newest(releases))}",
    )


def _newest_release(
    releases: dict[str, list[str]], releases_dir: Path, one_name: bool
) -> LocalRelease | None:
    if one_name and len(releases) > 1:
        raise ReleaseError(
            f"{releases_dir.parent} holds more than one release",
            f"NAME or NAME@VERSION, such as {', '.join(_newest(releases))}",
        )
    newest = [_of(releases_dir / name, LATEST) for name in releases]
    return max(newest, key=lambda each: each.manifest.created, default=None)


def _of(folder: Path, version: str) -> LocalRelease:
    """Return a version of the release in `folder`, or the release itself if `folder` is one."""
    if not (folder / MANIFEST).is_file():
        versions = versions_in_folder(folder)
        wanted = versions[-1] if version in ("", LATEST) else version
        if wanted not in versions:
            near = ", ".join(_similar(version, versions) or versions[-_SHOWN:])
            raise ReleaseError(f"{folder} has no version {version!r}", f"`{LATEST}` or one such as {near}")
        folder = folder / wanted
    elif version:
        raise ReleaseError(f"{folder} is one version", "its path alone", f"leave out @{version}")
    return LocalRelease(folder, read_manifest(folder))


def _similar(reference: str, releases: list[str]) -> list[str]:
    return get_close_matches(reference, releases[::-1], _SHOWN, 0.5)


def _newest(releases: dict[str, list[str]]) -> list[str]:
    return [f"{name}@{versions[-1]}" for name, versions in releases.items()][:_SHOWN]
