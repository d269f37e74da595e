"""Which release a text means: one of a workspace, by name and version, or a folder anywhere."""

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
        """`NAME@VERSION`."""
        return f"{self.manifest.name}@{self.manifest.version}"


def find_release(asked: str | None, releases_dir: Path, one_name: bool = False) -> LocalRelease:
    """The release that `asked` means, `releases_dir` being the workspace's:

    - `NAME`, `NAME@latest` or `NAME@VERSION`: there, the newest version where none is said;
    - `VERSION` or `latest`: there, where only one name has it;
    - `PATH`: the folder of a release, or of the versions of one, with or without `@VERSION` behind it;
    - nothing: the one made last there, or with `one_name` the newest of the only name.

    A name of the workspace comes before a folder that is called so; `./NAME` is the folder. Raises
    ReleaseError where there is none such, with those that are like it, or more than one.
    """
    found = look_up(asked, releases_dir, one_name)
    if found is None:
        raise release_not_found_error(asked, releases_dir)
    return found


def look_up(asked: str | None, releases_dir: Path, one_name: bool = False) -> LocalRelease | None:
    """The same, None where neither the workspace nor a folder is called so. Raises ReleaseError where the
    name or the folder is there and the version is not."""
    there = versions_by_release(releases_dir)
    if not asked:
        return _last(there, releases_dir, one_name)
    name, _, version = asked.rpartition("@") if "@" in asked else (asked, "", "")
    if name in there:
        return _of(releases_dir / name, version)
    if not version and (named := _by_version(asked, there)):
        if len(named) > 1:
            raise ReleaseError(
                f"{releases_dir.parent} holds more than one release {asked!r}",
                " or ".join(f"{each}@{asked}" for each in named),
            )
        return _of(releases_dir / named[0], asked)
    for path, wanted in ((Path(asked).expanduser(), ""), (Path(name).expanduser(), version)):
        if name and ((path / MANIFEST).is_file() or versions_in_folder(path)):
            return _of(path, wanted)
    return None


def release_not_found_error(asked: str | None, releases_dir: Path) -> ReleaseError:
    """The error of a release that is not there: those whose names are like it, else the newest of each
    name."""
    there = versions_by_release(releases_dir)
    if not there:
        what = f"no release {asked!r}: no folder is one, and {releases_dir.parent} holds none"
        said = f"there is {what}" if asked else f"{releases_dir.parent} holds no release"
        return ReleaseError(said, "one", "make it with `tracemill release`")
    near = _like(asked or "", [f"{name}@{version}" for name, all_ in there.items() for version in all_])
    return ReleaseError(
        f"{releases_dir.parent} holds no release {asked!r}, and no folder of that name is one",
        f"NAME@VERSION or a path, such as {', '.join(near or _newest(there))}",
    )


def _last(there: dict[str, list[str]], releases_dir: Path, one_name: bool) -> LocalRelease | None:
    if one_name and len(there) > 1:
        raise ReleaseError(
            f"{releases_dir.parent} holds more than one release",
            f"NAME or NAME@VERSION, such as {', '.join(_newest(there))}",
        )
    made = [_of(releases_dir / name, LATEST) for name in there]
    return max(made, key=lambda each: each.manifest.created, default=None)


def _of(folder: Path, version: str) -> LocalRelease:
    """The version of a release, or the release itself where `folder` is one."""
    if not (folder / MANIFEST).is_file():
        there = versions_in_folder(folder)
        wanted = there[-1] if version in ("", LATEST) else version
        if wanted not in there:
            near = ", ".join(_like(version, there) or there[-_SHOWN:])
            raise ReleaseError(f"{folder} has no version {version!r}", f"`{LATEST}` or one such as {near}")
        folder = folder / wanted
    elif version:
        raise ReleaseError(f"{folder} is one version", "its path alone", f"leave out @{version}")
    return LocalRelease(folder, read_manifest(folder))


def _by_version(asked: str, there: dict[str, list[str]]) -> list[str]:
    """The names that have this version."""
    return [name for name, versions in there.items() if asked == LATEST or asked in versions]


def _like(asked: str, known: list[str]) -> list[str]:
    return get_close_matches(asked, known[::-1], _SHOWN, 0.5)


def _newest(there: dict[str, list[str]]) -> list[str]:
    return [f"{name}@{versions[-1]}" for name, versions in there.items()][:_SHOWN]
