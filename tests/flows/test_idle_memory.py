"""What `tracemill schedule` and a worker hold in memory while nothing runs, the Prefect server left out."""

import time
from pathlib import Path

import psutil
import pytest
from prefect_nights import PrefectHouse, prefect_house

pytestmark = pytest.mark.slow
LIMIT_MB = 300
SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"


def idle_mb(house: PrefectHouse, name: str) -> float:
    """Resident memory of a process once all runs that it started have ended."""
    process = psutil.Process(house.running[name].pid)
    house.wait(lambda: not process.children(), 120)
    time.sleep(3)
    return process.memory_info().rss / 1e6


@pytest.mark.long
@pytest.mark.parametrize("nights", [0, 1])
def test_an_idle_schedule_and_an_idle_worker_hold_less_than_300_mb(tmp_path: Path, nights: int) -> None:
    """Both before their first run and after a night."""
    config = tmp_path / "run.toml"
    config.write_text(f"workspace = 'w'\n[sources]\npaths = ['{SESSIONS}']\nmin_age_minutes = 0\n")
    with prefect_house(tmp_path, {}) as house:
        house.tracemill("deploy", config, "--cron", "0 3 1 1 *", "--suffix", "deployed")
        house.start_worker()
        house.start_schedule(config)
        house.wait(lambda: len(house.deployments("harvest")) == 2, 120)
        assert 50 < idle_mb(house, "schedule") < LIMIT_MB
        assert 50 < idle_mb(house, "worker") < LIMIT_MB
        for number, name in enumerate(house.deployments("harvest") * nights, 1):
            house.start_run("harvest", name)
            house.wait(lambda number=number: len(house.runs("release", "Completed")) == number, 200)
        if nights:
            assert idle_mb(house, "schedule") < LIMIT_MB
            assert idle_mb(house, "worker") < LIMIT_MB
