"""Which release a command is about, and its report written again."""

import json
import sys
from pathlib import Path

from data_cards.manifest import MANIFEST, read_manifest
from data_cards.report import renew_report
from data_cards.report_model import REPORT_PAGE
from data_cards.versions import releases_in
from flows.runs import DEFAULT_WORKSPACE
from records.errors import ReleaseError
from records.workspace import Workspace


def release_folder(asked: str | None, root: Path | None) -> Path:
    """The folder of a release: a path, or `NAME[@VERSION]` in a workspace, the newest version without one;
    the release made last where nothing is asked. Raises ReleaseError where there is none such."""
    if asked and (Path(asked) / MANIFEST).is_file():
        return Path(asked)
    work = Workspace.open(root or DEFAULT_WORKSPACE, create=False)
    there = releases_in(work.releases_dir)
    known = [f"{name}@{version}" for name, versions in there.items() for version in versions]
    name, _, version = (asked or "").partition("@")
    fitting = [
        work.releases_dir / each / versions[-1 if not version else versions.index(version)]
        for each, versions in there.items()
        if name in ("", each) and (not version or version in versions)
    ]
    if not fitting:
        wanted = ", ".join(known[-5:]) or "one that `tracemill release` made"
        raise ReleaseError(f"{work.root} holds no release {asked or 'yet'}", wanted)
    return max(fitting, key=lambda folder: read_manifest(folder).created)


def write_report_again(asked: str | None, root: Path | None, as_json: bool) -> None:
    """`tracemill report`: figures and page of a finished release, from the release alone."""
    folder = release_folder(asked, root)
    figures = renew_report(folder)
    if as_json:
        sys.stdout.write(json.dumps(figures.model_dump(mode="json")) + "\n")
    else:
        sys.stdout.write(f"{folder / REPORT_PAGE}\n")
