"""Note where the versions of a workspace's releases were pushed."""

from pathlib import Path
from typing import Any

from tracemill.data_cards.hub.push import PushResult
from tracemill.records.errors import ReleaseError, WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json

PUBLISHED = "published.json"
"""Beside the versions of a release: where each was pushed."""


def note_pushed(versions: Path, pushed: PushResult, endpoint: str, audit: str) -> None:
    """Record where a version was pushed.

    `versions` is the folder of a release's versions, `audit` the fingerprint of the audit that the pushed
    card contains, empty without one.
    """
    noted = read_publish_log(versions)
    places = [each for each in noted.get(pushed.version, []) if each["repo"] != pushed.repo_id]
    place = {"repo": pushed.repo_id, "commit": pushed.commit, "endpoint": endpoint, "audit": audit}
    write_json(versions / PUBLISHED, {**noted, pushed.version: [*places, place]})


def note_retracted(versions: Path, version: str, repo_id: str) -> None:
    """Record that a version was retracted from a dataset."""
    noted = read_publish_log(versions)
    places = [each for each in noted.get(version, []) if each["repo"] != repo_id]
    retracted = {"repo": repo_id, "commit": "", "endpoint": "", "audit": "", "retracted": "yes"}
    write_json(versions / PUBLISHED, {**noted, version: [*places, retracted]})


def read_publish_log(versions: Path) -> dict[str, list[dict[str, str]]]:
    """Return where each version of a release was pushed: `repo`, `commit`, `endpoint` and `audit`.

    Raises ReleaseError for a broken note.
    """
    path = versions / PUBLISHED
    if not path.exists():
        return {}
    try:
        value: Any = read_json_file(path)
        return {str(version): [dict(place) for place in places] for version, places in value.items()}
    except (WorkspaceError, AttributeError, TypeError, ValueError):
        raise ReleaseError(
            f"{path} is damaged",
            "a file written by `tracemill release publish`",
            "remove it: `tracemill release publish` of a version that is on the Hub writes it again",
        ) from None
