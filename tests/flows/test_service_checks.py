"""`tracemill doctor` on services: a real Prefect server and worker, a stand-in for OpenRouter, a Hub."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from console_says import Call
from hub_releases import OF_THE_HUB
from hub_stub import READ_TOKEN, TOKEN, Hub
from postgres_server import Server
from prefect_process import prefect_serving, worker_of
from teacher_chains import free_port

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.runtime.named_server import names_a_server
from tracemill.flows.service_checks.accounts import check_hub_token, check_keys
from tracemill.flows.service_checks.clock import ClockReading, check_clock, compare_clock, read_http_date
from tracemill.flows.service_checks.run_service_checks import check_disk, check_ledger_of
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

KEY = "k-doctor-0123456789"


def settings_of(folder: Path, **more: Any) -> RunSettings:
    return load_settings(None, {"workspace": str(folder / "w"), **more})


def asking(folder: Path, url: str, **more: Any) -> RunSettings:
    models = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3")
    teachers = [{"type": "openrouter", "model": model, "base_url": url} for model in models]
    return settings_of(folder, teachers=teachers, budget={"max_total_usd": 10}, **more)


def checked(settings: RunSettings) -> tuple[str, str]:
    """The one check of the one key of two teachers."""
    [check] = check_keys(settings)
    assert check.name == "credit of OPENROUTER_API_KEY"
    return check.state, check.said


# ---------------------------------------------------------------- keys and tokens


@pytest.mark.parametrize(
    ("more", "state", "said"),
    [
        ({"credit_usd": "25"}, "ok", "$25.00 left of the limit of the key"),
        ({"credit_usd": "3.5"}, "ok", "less than the cap of $10.00: a run may end early"),
        ({"credit_usd": "0"}, "failed", "$0.00 left of the limit of the key; expected more"),
        ({"says_usage": "credits", "used_elsewhere_usd": "58"}, "ok", "$42.00 left on the account"),
        ({}, "ok", "no limit on the key; its server does not tell the credit of the account"),
        ({"api_key": "k-another-0123456789"}, "failed", "refused the API key"),
    ],
    ids=["limit", "below the cap", "nothing left", "account", "no limit", "wrong key"],
)
def test_the_credit_of_a_key_is_read_once_for_all_its_teachers(
    more: dict[str, Any], state: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    with running(StubSettings.model_validate({"api_key": KEY, **more})) as server:
        found = checked(asking(tmp_path, server.url))
        stats = server.stats()
    assert found[0] == state
    assert said in found[1]
    assert KEY not in found[1]
    assert stats["received"] == 0
    assert stats["requests"] <= 2


def test_a_server_without_an_answer_and_a_missing_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = f"http://127.0.0.1:{free_port()}/api/v1"
    assert list(check_keys(asking(tmp_path, dead))) == []
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    state, said = checked(asking(tmp_path, dead))
    assert state == "failed"
    assert said.startswith(f"{dead} does not answer (")
    assert list(check_keys(settings_of(tmp_path))) == []


@OF_THE_HUB
def test_a_token_of_the_hub_must_be_able_to_write(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = settings_of(tmp_path, release={"hub": "team/pairs"})
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert "no token for the Hub" in check_hub_token(named).said
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    passed = check_hub_token(named)
    assert (passed.state, passed.said) == ("ok", f"may write to team/pairs at {hub.url}")
    other = check_hub_token(settings_of(tmp_path, release={"hub": "stranger/pairs"}))
    assert (other.state, "no right to write to stranger" in other.said) == ("failed", True)
    monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    assert check_hub_token(named).state == "failed"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.faults = lambda request: 503
    broken = check_hub_token(named)
    assert broken.state == "failed"
    assert TOKEN not in broken.said
    hub.log.clear()
    assert check_hub_token(settings_of(tmp_path)).said == "none needed: release.hub is not set"
    assert hub.log == []


# ---------------------------------------------------------------- ledger, disk, clock


def test_a_ledger_file_is_read_and_not_changed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert check_ledger_of(settings, []).state == "ok"
    assert not settings.workspace.exists()
    Workspace.open(settings.workspace)
    path = settings.workspace / "ledger.sqlite"
    Ledger(sqlite_url(path)).close()
    before = path.read_bytes()
    found = check_ledger_of(settings, [])
    assert (found.state, found.said) == ("ok", f"{path} (0 answers), not damaged")
    assert path.read_bytes() == before
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE answers")
    assert "is damaged (no such table: answers)" in check_ledger_of(settings, []).said
    path.write_bytes(b"no database at all, " * 400)
    broken = check_ledger_of(settings, [])
    assert broken.state == "failed"
    assert broken.said.endswith("restore it from the last backup")


@pytest.mark.slow
def test_a_ledger_on_postgresql_gives_its_clock(postgres: Server, tmp_path: Path) -> None:
    clocks: list[ClockReading] = []
    check = check_ledger_of(settings_of(tmp_path, ledger_url=postgres.new_database()), clocks)
    assert (check.state, check.said) == ("ok", "postgresql, opened")
    [reading] = clocks
    assert abs(reading.ahead_s) < 1
    gone = f"postgresql://tracemill:x@127.0.0.1:{free_port()}/ledger"
    assert check_ledger_of(settings_of(tmp_path, ledger_url=gone), clocks).state == "failed"


def test_a_disk_needs_room_for_two_more_of_the_largest_release(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert check_disk(settings).state == "ok"
    release = settings.workspace / "releases" / "traces" / "2026.11.22"
    release.mkdir(parents=True)
    with (release / "sparse.parquet").open("wb") as stream:
        stream.truncate(4_000_000_000_000)
    found = check_disk(settings)
    assert found.state == "failed"
    assert "expected at least 8,000.0 GB; remove old releases" in found.said


def test_a_clock_is_compared_with_the_time_between_question_and_answer() -> None:
    now = datetime.now(UTC)
    assert compare_clock("s", now, now - timedelta(seconds=5)).ahead_s == 0
    assert compare_clock("s", now - timedelta(seconds=100), now).ahead_s == -100
    ahead = compare_clock("s", now + timedelta(hours=1), now)
    assert 3599 < ahead.ahead_s <= 3600
    failed = check_clock([ClockReading("a", -2), ahead])
    assert failed.state == "failed"
    assert "s behind the s; expected at most 30 s" in failed.said
    assert check_clock([ClockReading("a", -2)]).said == "within 2 s of the a"
    assert check_clock([ClockReading("a", -31)]).said.startswith("31 s ahead of the a")
    assert read_http_date("s", None, now) is None
    assert read_http_date("s", "yesterday", now) is None
    assert read_http_date("s", format_datetime(now, usegmt=True), now) == ClockReading("s", 0.0)


# ---------------------------------------------------------------- Prefect


SERVER_LOG = """
import logging
from tracemill.cli.commands import quiet_prefect

quiet_prefect()
from prefect.logging.configuration import setup_logging

setup_logging()
for name in ("prefect.server.api", "uvicorn.error", "prefect._internal.concurrency"):
    logging.getLogger(name).error("database is locked")
logging.getLogger("EventsWorker").critical("failed to process item")
logging.getLogger("tracemill").error("told")
"""


def test_what_the_server_of_a_run_tries_again_is_not_told() -> None:
    """A process of its own, whose logs Prefect sets up as in its server."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", SERVER_LOG]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "told" in done.stdout + done.stderr
    assert "locked" not in done.stdout + done.stderr
    assert "failed" not in done.stdout + done.stderr


CHECKS = """
import sys
from pathlib import Path
from tracemill.cli.commands import quiet_prefect
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.service_checks.run_service_checks import run_service_checks

quiet_prefect()
for check in run_service_checks(load_settings(None, {"workspace": sys.argv[1]})):
    print(f"{check.name}: {check.state} {check.said}")
"""


def lines_of(folder: Path, env: dict[str, str]) -> dict[str, str]:
    """State and words of each check, in a process that reads the address of the server anew."""
    command = [sys.executable, "-c", CHECKS, str(folder / "w")]
    done = subprocess.run(command, env=dict(os.environ) | env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_a_server_is_named_by_the_environment_or_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert not names_a_server()
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    assert names_a_server()
    monkeypatch.delenv("PREFECT_API_URL")
    profiles = (
        'active = "here"\n[profiles.here]\n[profiles.team]\nPREFECT_API_URL = "https://p.invalid/api"\n'
    )
    (tmp_path / "profiles.toml").write_text(profiles)
    assert not names_a_server()
    monkeypatch.setenv("PREFECT_PROFILE", "team")
    assert names_a_server()
    (tmp_path / "profiles.toml").write_text("no toml [")
    assert not names_a_server()


def test_doctor_has_a_line_for_each_service(console: Call, tmp_path: Path) -> None:
    done = console("doctor", "--workspace", tmp_path / "w", PREFECT_API_URL="")
    assert done.returncode == 0
    names = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert names[-4:] == [f"ok    {name}" for name in ("disk", "ledger", "prefect server", "clock")]
    assert "prefect server: none named in PREFECT_API_URL: a run starts its own" in done.stdout
    Workspace.open(tmp_path / "w")
    (tmp_path / "w" / "ledger.sqlite").write_bytes(b"no database at all, " * 400)
    damaged = console("doctor", "--workspace", tmp_path / "w", PREFECT_API_URL="")
    assert damaged.returncode == 2
    assert "FAIL  ledger: " in damaged.stdout


def test_a_dead_server_and_one_of_another_version(tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}/api"
    home = {"PREFECT_HOME": str(tmp_path / "prefect")}
    found = lines_of(tmp_path, {**home, "PREFECT_API_URL": dead})
    assert found["prefect server"].startswith(f"failed {dead} does not answer (")
    assert not {"scheduler", "workers"} & found.keys()
    with answering("3.9.9", timedelta(minutes=5)) as url:
        other = lines_of(tmp_path, {**home, "PREFECT_API_URL": url})
    assert other["prefect server"].startswith(f"failed {url} has version 3.9.9 and this machine 3.")
    assert other["clock"].startswith("failed ")
    assert not {"scheduler", "workers"} & other.keys()
    assert "s behind the prefect server; expected at most 30 s" in other["clock"]


@contextmanager
def answering(version: str, ahead: timedelta) -> Iterator[str]:
    """A server of another version with another clock."""

    class Handler(BaseHTTPRequestHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(datetime.now(UTC) + ahead, usegmt=True)

        def do_GET(self) -> None:
            self._send(json.dumps(version))

        def _send(self, body: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api"
        server.shutdown()


DEPLOY = """
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.actions import DeploymentScheduleCreate

with get_client(sync_client=True) as client:
    client.create_work_pool(WorkPoolCreate(name="nights", type="process"))
    flow_id = client.create_flow_from_name("harvest")
    schedule = DeploymentScheduleCreate(schedule=CronSchedule(cron="0 3 * * *"), active=True)
    client.create_deployment(flow_id, "nightly-harvest", work_pool_name="nights", schedules=[schedule],
        tags=["tracemill"], entrypoint="tracemill.flows.run_flow.harvest")
    client.create_deployment(flow_id, "of-another-team", schedules=[schedule], entrypoint="theirs.py:flow")
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_scheduler_and_a_worker_that_are_gone_are_seen(tmp_path: Path) -> None:
    home = tmp_path / "prefect"
    without = {"PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false"}
    with prefect_serving(home, **without) as env:
        empty = lines_of(tmp_path, env)
        assert empty["prefect server"] == f"ok version 3.8.8 at {env['PREFECT_API_URL']}"
        assert empty["scheduler"] == "ok no deployment has an active schedule"
        assert empty["workers"] == "ok no deployment of tracemill"
        assert empty["clock"].startswith("ok within ")
        subprocess.run([sys.executable, "-c", DEPLOY], env=dict(os.environ) | env, check=True)
        found = lines_of(tmp_path, env)
    said = "failed the server has made no coming run of nightly-harvest; expected one"
    assert found["scheduler"].startswith(said)
    assert found["workers"] == (
        "failed the pool nights has no worker: run `prefect worker start --pool nights`"
    )
    with prefect_serving(home) as env, worker_of("nights", env):
        deadline = time.monotonic() + 120
        while (seen := lines_of(tmp_path, env)) and time.monotonic() < deadline:
            if seen["scheduler"].startswith("ok") and seen["workers"].startswith("ok"):
                break
            time.sleep(2)
    assert seen["scheduler"].startswith("ok next runs: nightly-harvest at 2")
    assert seen["scheduler"].endswith(" 03:00 UTC")
    assert seen["workers"] == "ok nights (1 online)"
