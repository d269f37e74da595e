"""Two nights by the schedule of a real Prefect server, with a worker, a provider and a Hub on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_stub import Hub
from night_config import DATASET, ENDED, answers, config_of, grow, night_ends, night_house, provider
from prefect_nights import POOL, PrefectHouse

from tracemill.flows.sources.shard_plan import UNCHANGED
from tracemill.teachers.openrouter_stub.server import RunningStubServer

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningStubServer]:
    with provider(monkeypatch, latency_s=0.25) as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, stub: RunningStubServer, hub: Hub) -> Iterator[PrefectHouse]:
    with night_house(tmp_path, stub) as started:
        yield started


def test_two_nights_by_the_schedule_of_the_server(
    house: PrefectHouse, stub: RunningStubServer, hub: Hub
) -> None:
    """Night one publishes a version and trains on it; night two asks only what is new.

    In between a session grows and a project is added.
    """
    folder = house.folder
    config = config_of(folder)
    house.start_worker()
    house.tracemill("deploy", config, "--cron", "*/2 * * * *", "--training-pool", POOL)
    night_ends(house, hub, 1)
    first_calls = stub.stats()["paid"]
    assert first_calls == answers(folder) > 0

    grow(folder)
    night_ends(house, hub, 2)
    stats = stub.stats()
    assert first_calls < answers(folder) == stats["paid"]
    assert stats["paid_twice"] == 0
    assert {"grew": 1, "new": 1, UNCHANGED: 1} in changes_of_runs(folder)
    check_what_prefect_shows(house, hub)


def changes_of_runs(folder: Path) -> list[dict[str, int]]:
    """What each run found changed in its sources."""
    runs = [json.loads(path.read_text()) for path in (folder / "w" / "runs").glob("*/run.json")]
    return [run.get("summary", {}).get("summary", {}).get("changes", {}) for run in runs]


def test_a_version_pushed_by_hand_from_another_workspace_is_trained_on(house: PrefectHouse, hub: Hub) -> None:
    """The other workspace shares the server with the deployments, and knows of no training."""
    house.start_worker()
    house.tracemill("deploy", config_of(house.folder), "--cron", "0 3 1 1 *", "--training-pool", POOL)
    other = house.folder / "other.toml"
    text = (house.folder / "night.toml").read_text().replace(f"hub = '{DATASET}'\n", "")
    other.write_text(text.partition("[training]")[0] + text[text.index("[[teachers]]") :])
    house.tracemill("run", other, "-w", "elsewhere")
    assert not house.events("tracemill.release.published")
    house.tracemill("release", "publish", "--hub", DATASET, "-w", "elsewhere")
    house.wait(lambda: house.runs("training", *ENDED), 400)
    [version] = versions(hub)
    [run] = house.runs("training")
    assert run["parameters"]["release"] == f"{DATASET}@{version}"
    assert not (house.folder / "w" / "releases").exists()
    assert not house.runs("harvest", *ENDED, "Running")


def versions(hub: Hub) -> list[str]:
    return sorted(hub.repos[DATASET].tags)


def check_what_prefect_shows(house: PrefectHouse, hub: Hub) -> None:
    harvests = [run for run in house.runs("harvest") if run["state_name"] in ENDED]
    assert all(run["name"].startswith("nights 20") and " #" in run["name"] for run in harvests)
    assert all({"tracemill", "nights"} <= set(run["tags"]) for run in harvests)
    made = versions(hub)
    trained = house.runs("training", *ENDED)
    assert sorted(run["parameters"]["release"] for run in trained) == [f"{DATASET}@{v}" for v in made]
    published: list[Any] = house.events("tracemill.release.published")
    assert [event["payload"]["version"] for event in published] == made
    assert [event["payload"]["version"] for event in house.events("tracemill.release.created")] == made
    for flow in ("harvest", "release", "training"):
        assert not house.runs(flow, "Failed", "Crashed")
    for key in ("nights-closing-table", "nights-report", "nights-progress", "nights-hub"):
        assert house.artifacts(key), key
    assets = {
        event["resource"]["prefect.resource.id"]
        for event in house.events("prefect.asset.materialization.succeeded")
    }
    assert assets == {"tracemill://nights/pairs", f"hf://datasets/{DATASET}"}
    server = (house.folder / "prefect").rglob("*.db*")
    assert not any(b"parcels" in path.read_bytes() for path in server)
