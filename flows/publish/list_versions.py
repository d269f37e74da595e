"""List and compare versions of releases."""

from dataclasses import asdict
from itertools import product
from typing import Any

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.data_cards.hub.push import HubPusher
from tracemill.data_cards.hub.repo_state import open_to_read, read_repo_manifest
from tracemill.data_cards.model.compare_versions import compare_labels, compare_pairs
from tracemill.data_cards.model.drift import DriftFigures, compare_drift_figures
from tracemill.data_cards.model.find_release import find_release
from tracemill.data_cards.model.manifest import PublishedManifest, check_files, read_manifest
from tracemill.data_cards.model.versions import REPO_ID, versions_by_release
from tracemill.flows.run_state.publish_log import read_publish_log
from tracemill.records.errors import ReleaseError
from tracemill.records.storage.workspace import Workspace

_SHOWN = 10


def list_releases(work: Workspace, hub: str | None) -> list[dict[str, Any]]:
    """List every version, oldest first by name: rows, date, digest, and where it was pushed.

    With `hub` the versions of that repository are listed too; those missing on this machine have `local`
    False. For a version whose manifest cannot be read, `error` says what to do. Raises ReleaseError if the
    Hub cannot be read.
    """
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for name, versions in versions_by_release(work.releases_dir).items():
        noted = read_publish_log(work.releases_dir / name)
        for version in versions:
            places = [
                f"{place['repo']} (retracted)" if place.get("retracted") else place["repo"]
                for place in noted.get(version, [])
            ]
            try:
                manifest = PublishedManifest.of(read_manifest(work.releases_dir / name / version))
            except ReleaseError as error:
                lines[name, version] = _unreadable(name, version, places, error)
            else:
                lines[name, version] = _line(manifest, True, places)
    if hub is not None:
        for manifest in _on_the_hub(hub):
            key = manifest.name, manifest.version
            line = lines.setdefault(key, _line(manifest, False, []))
            if line["error"] is not None:
                line["pushed"] = sorted({*line["pushed"], hub})
            elif line["content"] != manifest.content_fingerprint:
                line["pushed"].append(f"{hub} (other content)")
            elif hub not in line["pushed"]:
                line["pushed"].append(hub)
    return list(lines.values())


def _line(manifest: PublishedManifest, local: bool, pushed: list[str]) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "rows": manifest.rows,
        "created": manifest.created,
        "content": manifest.content_fingerprint,
        "local": local,
        "pushed": pushed,
        "error": None,
    }


def _unreadable(name: str, version: str, pushed: list[str], error: ReleaseError) -> dict[str, Any]:
    """Describe a version with a damaged manifest by its folder and the error."""
    nothing = {"rows": None, "created": "", "content": ""}
    return {"name": name, "version": version, **nothing, "local": True, "pushed": pushed, "error": str(error)}


def _on_the_hub(repo_id: str) -> list[PublishedManifest]:
    if not REPO_ID.fullmatch(repo_id):
        raise ReleaseError(f"{repo_id!r} is no dataset of the Hub", "OWNER/NAME")
    pusher = HubPusher(open_to_read(), repo_id)
    repo = pusher.state()
    if repo is None:
        who = "for this token" if pusher.api.token else "without a token"
        raise ReleaseError(
            f"{repo_id} is not on the Hub, or not {who}",
            "an existing dataset, and for a private one a token that may read it",
            "check the name, or set HF_TOKEN",
        )
    read = RetryPolicy().run
    found = [
        read(lambda commit=commit: read_repo_manifest(pusher.api, repo_id, commit))
        for commit in repo.tags.values()
    ]
    return sorted((each for each in found if each), key=lambda each: each.created)


def diff_listed_versions(work: Workspace, before: str, after: str) -> dict[str, Any]:
    """Compare two versions: changes to pairs and labels, and figures that differ.

    Raises ReleaseError if a version does not exist, or a table of it is missing or was changed.
    """
    old, new = (find_release(asked, work.releases_dir, one_name=True) for asked in (before, after))
    for each in (old, new):
        check_files(each.folder, each.manifest)
    moved = {
        "pairs": compare_pairs(old.folder, new.folder),
        "labels": compare_labels(old.folder, new.folder),
    }
    figures = compare_drift_figures(
        *(DriftFigures.of(PublishedManifest.of(each.manifest)) for each in (old, new))
    )
    return {
        "before": old.called,
        "after": new.called,
        **{
            table: {kind: list(names) for kind, names in asdict(rows).items()}
            for table, rows in moved.items()
        },
        "figures": [{"figure": name, "before": was, "after": now} for name, was, now in figures],
    }


def release_rows(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Format the records of `list_releases` as table rows."""
    rows = []
    for line in lines:
        if line["error"] is not None:
            rows.append((f"{line['name']}@{line['version']}", line["error"]))
            continue
        where = ", ".join(line["pushed"]) or "not pushed"
        here = "" if line["local"] else ", not here"
        told = f"{line['rows']:,} rows, {line['created'][:10]}, content {line['content'][:12]}\n{where}{here}"
        rows.append((f"{line['name']}@{line['version']}", told))
    return rows or [("releases", "none")]


def listed_version_diff_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Format the record of `diff_listed_versions` as table rows."""
    rows = []
    for table, kind in product(("pairs", "labels"), ("added", "removed", "changed")):
        names = record[table][kind]
        more = [f"and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
        rows.append((f"{table} {kind}", "\n".join([f"{len(names):,}", *names[:_SHOWN], *more])))
    moved = [f"{each['figure']}: {each['before']} -> {each['after']}" for each in record["figures"]]
    return [*rows, ("figures", "\n".join(moved) or "unchanged")]
