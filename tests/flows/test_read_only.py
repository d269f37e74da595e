"""Commands that only read take a workspace that can only be read, and make no file in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemill.cli.release_group import diff, list_versions
from tracemill.cli.replay import estimate
from tracemill.cli.workspace_status import show_workspace
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.privacy_scan import scan_path
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace, replay_workspace
from tracemill.records.errors import LedgerError, ReleaseError, WorkspaceError
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.ledger.snapshot import copy_ledger

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "swe_gym"


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[RunSettings]:
    """A workspace whose teachers were asked, then closed to writers."""
    settings = load_settings(
        None, {"workspace": str(tmp_path / "w"), "preset": "simulated", "budget": {"max_total_usd": 1}}
    )
    ingest_everything(IngestOptions(order_of([str(SESSIONS)]), settings.workspace))
    replay_workspace(settings, yes=True)
    label_workspace(settings)
    settings.workspace.chmod(0o500)
    yield settings
    settings.workspace.chmod(0o700)


def files_in(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_what_only_reads_needs_no_right_to_write(asked: RunSettings, capsys: Any) -> None:
    root, before = asked.workspace, files_in(asked.workspace)
    show_workspace(root, 1, None, 7, True)
    assert sum(json.loads(capsys.readouterr().out)["pairs"].values()) > 0
    list_versions(None, root, True)
    assert json.loads(capsys.readouterr().out) == {"releases": []}
    with pytest.raises(ReleaseError):  # there is none
        diff("a@1", "a@2", root, True)
    assert scan_path(root, None, [], True) in (0, 1, 3)
    capsys.readouterr()
    estimate(None, root, "simulated", 1, json=True)
    found = json.loads(capsys.readouterr().out)
    assert files_in(root) == before
    root.chmod(0o700)
    assert estimate_cost(asked).to_json() == found
    assert sum(each["bought"] for each in found["teachers"]) > 40


def test_what_writes_says_so_in_one_line(asked: RunSettings) -> None:
    for writing in (lambda: estimate_cost(asked, refresh=True), lambda: label_workspace(asked)):
        with pytest.raises(WorkspaceError, match="w cannot be written; expected a folder with write"):
            writing()


def test_a_ledger_is_copied_with_what_is_not_in_its_file_yet(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with Ledger(sqlite_url(place)) as ledger:
        ledger.open_run("a", 5)
        assert (tmp_path / "ledger.sqlite-wal").stat().st_size > 0
        copy_ledger(place, tmp_path / "copy")
    with Ledger(sqlite_url(tmp_path / "copy")) as copy:
        assert copy.has_run("a")
    place.write_bytes(b"no ledger, " * 500)
    with pytest.raises(LedgerError, match=r"sqlite cannot be read \(file is not a database\)") as said:
        copy_ledger(place, tmp_path / "other")
    assert "\n" not in str(said.value)
