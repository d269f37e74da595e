"""A ledger that is gone or another one: an unfinished run stops, a finished one costs nothing more."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.dry_run import write_requests
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.errors import LedgerError
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "examples" / "sessions" / "claude_code"
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
KEY = "sk-or-lost"


@pytest.fixture(scope="module")
def served() -> Iterator[RunningStubServer]:
    with running(StubSettings(api_key=KEY)) as server:
        yield server


@pytest.fixture(scope="module")
def replayed(served: RunningStubServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Claude Code examples after a replay; to be copied."""
    folder = tmp_path_factory.mktemp("lost") / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENROUTER_API_KEY", KEY)
        replay_workspace(settings_of(folder, served.url), yes=True)
    return folder


@pytest.fixture
def work(replayed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return shutil.copytree(replayed, tmp_path / "w")


def settings_of(work: Path, url: str, **more: Any) -> RunSettings:
    teachers = [
        {"type": "openrouter", "model": m, "base_url": url, "local": True, "max_tokens": 50} for m in MODELS
    ]
    given: dict[str, Any] = {"workspace": str(work), "teachers": teachers, "budget": {"max_total_usd": 5}}
    return load_settings(None, given | {"replay": {"stop": "off"}} | more)


def killed(work: Path) -> str:
    """The last run as a kill leaves it: its record says that it runs, and half of its replies are not in
    the workspace."""
    path = max((work / "runs").glob("*/run.json"))
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"status": "running"}))
    shutil.rmtree(work / "replies")
    return record["run_id"]


def lose_ledger(work: Path) -> None:
    for path in work.glob("ledger.sqlite*"):
        path.unlink()


def test_an_unfinished_run_whose_ledger_is_gone_stops_and_a_new_one_has_to_be_asked_for(
    work: Path, served: RunningStubServer
) -> None:
    settings, before = settings_of(work, served.url), served.stats()["received"]
    run_id = killed(work)
    lose_ledger(work)
    with pytest.raises(LedgerError) as error:
        replay_workspace(settings, yes=True)
    for said in (
        run_id,
        str(work / "ledger.sqlite"),
        "is gone",
        "not known",
        "put that ledger back",
        "--fresh",
    ):
        assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert served.stats()["received"] == before
    assert not (work / "ledger.sqlite").exists()
    new = replay_workspace(settings, yes=True, new_run=True)
    assert new["run_id"] != run_id
    assert new["summary"]["calls"] > 50


def test_an_unfinished_run_goes_on_in_its_own_ledger_alone(
    work: Path, served: RunningStubServer, tmp_path: Path
) -> None:
    run_id = killed(work)
    kept = shutil.copy(work / "ledger.sqlite", tmp_path / "kept")
    elsewhere = settings_of(work, served.url, ledger_url=f"sqlite:///{tmp_path / 'other.sqlite'}")
    with pytest.raises(LedgerError, match=r"other\.sqlite is not the ledger that it began in"):
        replay_workspace(elsewhere, yes=True)
    lose_ledger(work)
    shutil.copy(kept, work / "ledger.sqlite")
    again = replay_workspace(settings_of(work, served.url), yes=True)
    assert (again["run_id"], again["summary"].get("calls", 0)) == (run_id, 0)


def test_an_unfinished_run_stops_where_its_ledger_was_put_back_from_before_it(
    work: Path, served: RunningStubServer
) -> None:
    run_id = killed(work)
    database = sqlite3.connect(work / "ledger.sqlite")
    database.execute("DELETE FROM runs")
    database.commit()
    database.close()
    with pytest.raises(LedgerError, match=rf"{run_id} .* no longer holds it"):
        replay_workspace(settings_of(work, served.url), yes=True)


def test_estimate_and_dry_run_count_what_a_replay_fills_a_lost_ledger_with(
    work: Path, served: RunningStubServer
) -> None:
    settings, before = settings_of(work, served.url), served.stats()["received"]
    bought = estimate_cost(settings).total.bought
    lose_ledger(work)
    found = estimate_cost(settings).total
    assert (found.calls, found.bought) == (0, bought)
    assert bought > 50
    assert sum(write_requests(settings)["requests"].values()) == 0
    assert not (work / "ledger.sqlite").exists()
    replay_workspace(settings, yes=True)
    assert served.stats()["received"] == before
