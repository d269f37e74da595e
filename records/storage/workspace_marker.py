"""The marker file of a workspace: the version of its file layout, and whether its text is redacted."""

from pathlib import Path
from typing import Literal

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import (
    make_private_folder,
    make_tree_private,
    read_json_file,
    write_json,
)

LAYOUT_VERSION = 1
MARKER = "workspace.json"
OWNER_ONLY = "owner"
"""Value of `modes` in the marker where only the owner may read the files."""
Text = Literal["redacted", "recorded"]


def create_marker(marker: Path, text: Text) -> None:
    """Make the folder, for its owner alone, and its marker; an existing folder keeps its mode."""
    make_private_folder(marker.parent)
    write_json(marker, {"layout": LAYOUT_VERSION, "text": text, "modes": OWNER_ONLY}, private=True)


def close_to_others(marker: Path) -> None:
    """Make the files of a workspace private once, if an older version left them readable to others."""
    value = read_json_file(marker)
    if isinstance(value, dict) and value.get("modes") != OWNER_ONLY:
        make_tree_private(marker.parent)
        write_json(marker, value | {"modes": OWNER_ONLY}, private=True)


def check_marker(marker: Path, text: Text) -> None:
    """Check layout and kind of text. Raises WorkspaceError if the marker names another one."""
    value = read_json_file(marker)
    version = value.get("layout") if isinstance(value, dict) else None
    if version != LAYOUT_VERSION:
        newer = isinstance(version, int) and version > LAYOUT_VERSION
        raise WorkspaceError(
            f"the workspace of {marker} has layout version {version!r}",
            f"layout version {LAYOUT_VERSION}",
            "update tracemill" if newer else "restore the file, or start a new workspace",
        )
    if is_redacted(marker) == (text == "redacted"):
        return
    if text == "redacted":
        raise WorkspaceError(
            f"{marker.parent} holds recorded text (ingest --unredacted), which stays on this machine",
            "a workspace of redacted text",
            "ingest the sessions into another folder without --unredacted",
        )
    raise WorkspaceError(
        f"{marker.parent} is a workspace of redacted text",
        "a folder of its own",
        "choose another with --workspace",
    )


def is_workspace(folder: Path) -> bool:
    """Return whether a folder has the marker of a workspace, of any layout."""
    marker = folder / MARKER
    try:
        value = read_json_file(marker) if marker.is_file() else None
    except WorkspaceError:
        return False
    return isinstance(value, dict) and {"layout", "text"} <= value.keys()


def is_redacted(marker: Path) -> bool:
    """Return whether the marker says that the workspace holds redacted text only."""
    value = read_json_file(marker)
    return isinstance(value, dict) and value.get("text", "redacted") == "redacted"
