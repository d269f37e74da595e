"""Check the card of a release, and prepare it for the Hub."""

import re
from pathlib import Path
from typing import Any

import yaml

from tracemill.data_cards.model.manifest import Manifest
from tracemill.records.errors import ReleaseError

README = "README.md"
LOCAL = "path/to/this/folder"
"""Text in a card that stands for the repository while the release is local."""
_HEAD = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_LISTS = ("size_categories", "task_categories", "tags", "configs", "dataset_info")
_FIELDS = {"pretty_name": str, "license": str, **dict.fromkeys(_LISTS, list)}
_SECTIONS = (
    "Load and train",
    "Where the labels come from",
    "What the pairs are about",
    "What was shown",
    "Where the sessions come from",
    "What was thrown away",
    "What it cost",
    "Privacy",
    "Known limits",
    "Changes",
)


def checked_card_for_hub(folder: Path, repo_id: str) -> str:
    """Return the card with the repository's name in place of the folder's."""
    return (folder / README).read_text(encoding="utf-8").replace(LOCAL, repo_id)


def check_card(folder: Path, manifest: Manifest) -> None:
    """Raise ReleaseError, with all problems in one line, if the card lacks a field, section or config."""
    path = folder / README
    try:
        match = _HEAD.match(path.read_text(encoding="utf-8"))
        head: Any = yaml.safe_load(match[1]) if match else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ReleaseError(
            f"{path} cannot be read ({type(error).__name__})", "the card of a release"
        ) from None
    if match is None or not isinstance(head, dict):
        raise ReleaseError(f"{path} has no YAML head", "the card as tracemill writes it")
    lacking = [
        name for name, kind in _FIELDS.items() if not isinstance(head.get(name), kind) or not head[name]
    ]
    lacking += [f"section {name!r}" for name in _SECTIONS if f"\n## {name}\n" not in match[2]]
    named = {entry.get("config_name") for entry in head.get("configs") or () if isinstance(entry, dict)}
    lacking += [f"config {name!r}" for name in manifest.tables if name not in named]
    if lacking:
        raise ReleaseError(
            f"{path} lacks {', '.join(lacking)}", "the card as tracemill writes it", "write the release again"
        )
