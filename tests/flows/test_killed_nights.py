"""Nights in which the worker and the server are killed, over a real Prefect server, a provider and a Hub."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hub_stub import Hub
from night_config import DATASET, ENDED, FIRST, FLIGHT, answers, config_of, grow, night_house, provider
from prefect_nights import POOL, PrefectHouse

from tracemill.teachers.openrouter_stub.server import RunningStubServer

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningStubServer]:
    with provider(monkeypatch, latency_s=0.5) as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, stub: RunningStubServer, hub: Hub) -> Iterator[PrefectHouse]:
    with night_house(tmp_path, stub) as started:
        yield started


def test_a_night_whose_worker_and_server_were_killed_ends_and_pays_for_nothing_twice(
    house: PrefectHouse, stub: RunningStubServer, hub: Hub
) -> None:
    """First the worker is killed with all it runs, then, while the harvest works again, the server."""
    folder = house.folder
    config = config_of(folder)
    house.start_worker()
    house.tracemill("deploy", config, "--cron", "0 3 1 1 *", "--training-pool", POOL)
    house.call_dead_after(60)
    house.start_run("harvest", "nightly-harvest")
    house.wait(lambda: DATASET in hub.repos and len(hub.repos[DATASET].tags) == 1, 600)
    first = stub.stats()["paid"]
    assert first == answers(folder) > 0

    grow(folder)
    house.start_run("harvest", "nightly-harvest")
    house.wait(lambda: stub.stats()["paid"] >= first + 6, 300, every_s=0.05)
    house.kill("worker")
    died = stub.stats()["paid"]
    [crashed] = house.wait(lambda: house.runs("harvest", "Crashed"), 200)
    assert "no heartbeat" in crashed["state"]["message"]
    house.start_worker()
    house.wait(lambda: stub.stats()["paid"] >= died + 6, 200, every_s=0.05)
    house.kill("server")
    time.sleep(45)  # so long that the server, once it is back, calls the harvest dead that still works
    house.start_server()
    house.wait(lambda: len(hub.repos[DATASET].tags) == 2, 600)
    house.wait(lambda: trained(house) == {f"{DATASET}@{tag}" for tag in hub.repos[DATASET].tags}, 600)

    stats = stub.stats()
    assert stats["paid_twice"] <= FLIGHT
    assert stats["paid"] - stats["paid_twice"] - FLIGHT <= answers(folder) <= stats["paid"]
    harvests = house.count("harvest")
    assert (harvests["Crashed"], sum(harvests[state] for state in ENDED)) == (1, 2)
    for flow in ("harvest", "release", "training"):
        assert not house.runs(flow, "Failed", "Running")


def trained(house: PrefectHouse) -> set[str]:
    return {run["parameters"]["release"] for run in house.runs("training", *ENDED)}


def test_a_training_whose_worker_was_killed_is_started_again_once_and_completes(
    house: PrefectHouse, hub: Hub
) -> None:
    """The worker is killed with the training, which goes on from its last checkpoint under a new worker."""
    config = config_of(house.folder)
    config.write_text(config.read_text().replace("max_steps = 2\n", "max_steps = 40\nsave_steps = 5\n"))
    house.start_worker()
    house.tracemill("deploy", config, "--cron", "0 3 1 1 *", "--training-pool", POOL)
    house.call_dead_after(60)
    house.start_run("harvest", "nightly-harvest")
    saved = house.folder / "w" / "checkpoints"
    house.wait(lambda: list(saved.rglob("checkpoint-5/trainer_state.json")), 600, every_s=0.05)
    house.kill("worker")
    assert not list(saved.rglob("training.json"))
    [crashed] = house.wait(lambda: house.runs("training", "Crashed"), 200)
    assert "no heartbeat" in crashed["state"]["message"]
    house.start_worker()
    [again] = house.wait(lambda: house.runs("training", *ENDED), 400)
    assert again["parameters"] == crashed["parameters"]
    assert again["parameters"]["release"] == f"{DATASET}@{next(iter(hub.repos[DATASET].tags))}"
    assert house.count("training") == {"Crashed": 1, "Completed": 1}
    [report] = [json.loads(path.read_text()) for path in saved.rglob("training.json")]
    assert report["steps"] == 40
    assert report["resumed_at_step"] >= 5
    for flow in ("harvest", "release"):
        assert house.count(flow) - Counter(Scheduled=1) == {"Completed": 1}


def deploy_two_times(house: PrefectHouse, config: Path) -> list[datetime]:
    """Deploy with two times a minute apart, the first in a minute or more; gives them."""
    first = (datetime.now(UTC) + timedelta(seconds=120)).replace(second=0, microsecond=0)
    due = [first, first + timedelta(minutes=1)]
    minutes = ",".join(str(each.minute) for each in due)
    hours = ",".join(sorted({str(each.hour) for each in due}))
    house.tracemill("deploy", config, "--cron", f"{minutes} {hours} * * *")
    return due


def test_times_that_nobody_served_are_made_up_for_once(house: PrefectHouse) -> None:
    """Server and worker are away at two times; of the two late runs one harvests."""
    folder = house.folder
    shutil.copytree(FIRST, folder / "sessions")
    config = folder / "plain.toml"
    config.write_text("workspace = 'w'\n[sources]\npaths = ['sessions']\nmin_age_minutes = 0\n")
    due = deploy_two_times(house, config)
    house.wait(lambda: len(house.runs("harvest", "Scheduled")) >= 2, 60)
    house.kill("server")
    time.sleep(max(0, (due[-1] - datetime.now(UTC)).total_seconds()) + 5)
    house.start_server()
    house.start_worker()
    house.wait(lambda: house.runs("release", *ENDED), 300)

    def missed() -> list[str]:
        late = [f"{each:%Y-%m-%dT%H:%M:%S}" for each in due]
        return sorted(
            each["state_name"] for each in house.runs("harvest") if each["expected_start_time"][:19] in late
        )

    house.wait(lambda: missed() in (["Cancelled", "Completed"], ["Completed", "Skipped"]), 120)
    assert len(house.events("tracemill.harvest.finished")) == 1
