"""A version is made once enough is new, or the last one is old."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from growing_traces import add, trace
from kept_pairs import Kept

from tracemill.data_cards.model.manifest import MANIFEST, read_manifest
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.records.storage.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "w")


def release(work: Workspace, **changes: Any) -> ReleaseOutcome:
    pairs = {"siblings": False, "repository_share": 0}
    over = {"workspace": str(work.root), "pairs": pairs, "release": {"views": ["sft"], **changes}}
    settings = load_settings(None, over)
    return release_pairs(work, settings, Kept(), make_reredactor(work, settings), "run", Summary(), True)


def test_a_first_version_waits_for_its_pairs(work: Workspace) -> None:
    add(work, [trace(n) for n in range(9)])
    outcome = release(work, min_new_pairs=10)
    assert (outcome.path, outcome.note) == (None, "not due: 9 of 10 new pairs")
    assert not list(work.releases_dir.glob("*/*"))
    add(work, [trace(9)])
    outcome = release(work, min_new_pairs=10)
    assert (outcome.created, outcome.rows) == (True, 10)


def test_a_version_follows_once_enough_is_new_or_the_last_one_is_old(work: Workspace) -> None:
    add(work, [trace(n) for n in range(20)])
    first = release(work, min_new_pairs=5)
    add(work, [trace(n) for n in range(20, 24)])
    waits = release(work, min_new_pairs=5, max_age_days=7)
    assert (waits.path, waits.version, waits.created) == (first.path, first.version, False)
    assert waits.rows == 20
    assert waits.note == f"not due: 4 of 5 new pairs since version {first.version}, 0.0 days old"
    assert (
        f"unchanged since version {first.version} (20 rows)\n{waits.note}"
        in dict(closing_table_rows(Summary(), None, [], waits))["release"]
    )

    manifest = read_manifest(Path(str(first.path)))
    older = manifest.model_copy(update={"created": manifest.created - timedelta(days=8)})
    (Path(str(first.path)) / MANIFEST).write_text(older.model_dump_json())
    assert release(work, min_new_pairs=5, max_age_days=9).created is False
    assert release(work, min_new_pairs=5, max_age_days=7).rows == 24


def test_without_bounds_any_new_pair_makes_a_version(work: Workspace) -> None:
    add(work, [trace(n) for n in range(20)])
    assert release(work).created is True
    assert release(work).created is False
    add(work, [trace(20)])
    assert release(work).created is True
