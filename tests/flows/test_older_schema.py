"""A workspace with tables of an older schema: one line says the way out, and it leads out."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.release.load_pairs import load_pairs
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace, replay_workspace
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.workspace import Workspace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
BACK: dict[str, tuple[str, Callable[[RunSettings], Any]]] = {
    "traces": ("the next ingest reads the sessions again", lambda given: ingest(given.workspace)),
    "decisions": ("decides anew and pays for nothing twice", lambda given: replay_workspace(given, yes=True)),
    "replies": ("takes the answers from the ledger", lambda given: replay_workspace(given, yes=True)),
    "votes": ("`tracemill label` makes them anew at no cost", lambda given: label_workspace(given)),
    "pairs": ("`tracemill label` makes them anew at no cost", lambda given: label_workspace(given)),
}


def ingest(root: Path) -> None:
    ingest_everything(IngestOptions(order_of([str(SESSIONS)], min_age_minutes=0), root))


def settings_of(root: Path) -> RunSettings:
    return load_settings(
        None, {"workspace": str(root), "preset": "simulated", "budget": {"max_total_usd": 1}}
    )


def rows(work: Workspace, name: str) -> list[str]:
    return sorted(str(row) for table in work.current(name) for row in table.to_pylist())


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("labelled") / "w"
    ingest(root)
    replay_workspace(settings_of(root), yes=True)
    label_workspace(settings_of(root))
    return root


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_way_out_of_an_older_schema_brings_the_table_back(
    labelled: Path, tmp_path: Path, name: str
) -> None:
    work = Workspace.open(shutil.copytree(labelled, tmp_path / "w"))
    before = rows(work, name)
    for path in (work.root / name).rglob("*.parquet"):
        table = pq.read_table(path)
        older = {**(pq.read_metadata(path).metadata or {}), b"tracemill.schema": b"0"}
        older.pop(b"ARROW:schema", None)
        pq.write_table(table.replace_schema_metadata(older), path)
    said, bring_back = BACK[name]
    with pytest.raises(WorkspaceError) as refused:
        list(Workspace.open(work.root).current(name))
    line = str(refused.value)
    assert f"has schema 0 of {name}; expected {SCHEMAS[name][0]}; remove the folder `{name}` of" in line
    assert said in line
    assert "\n" not in line
    shutil.rmtree(work.root / name)
    found = bring_back(settings_of(work.root))
    assert rows(Workspace.open(work.root), name) == before
    if name in ("decisions", "replies"):
        assert (found["summary"]["calls"], found["summary"]["spent_usd"]) == (0, 0.0)
    assert len(load_pairs(work)) == len(load_pairs(Workspace.open(labelled))) > 5
