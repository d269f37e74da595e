"""SIGTERM and SIGHUP end what asks teachers as Ctrl-C does: what is in flight comes home, nothing is lost."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from console_says import INTERRUPTED, record_of, wait_while_running, without_progress
from prefect_database import prefect_home

from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
KEY = "k-signals-0123456789"
FLIGHT = 12
Call = Callable[..., "subprocess.CompletedProcess[str]"]


def _config(folder: Path, more: str = "") -> Path:
    path = folder / "run.toml"
    path.write_text(
        f"workspace = 'w'\n[sources]\npaths = ['{EXAMPLES}']\nmin_age_minutes = 0\n"
        f"[budget]\nmax_total_usd = 50\n[replay]\nstop = 'off'\nconcurrency = {FLIGHT}\n{more}"
        + "".join(
            f"[[teachers]]\ntype = 'openrouter'\nmodel = 'simulated/{name}'\nlocal = true\nmax_tokens = 128\n"
            for name in ("deepseek-a", "kimi-a", "glm-a")
        )
    )
    return path


@pytest.fixture
def ingested(tmp_path: Path) -> Path:
    ingest_everything(IngestOptions(order_of([str(EXAMPLES)], min_age_minutes=0), tmp_path / "w"))
    return tmp_path


def _environ(server: RunningStubServer) -> dict[str, str]:
    return {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY, "TERM": "dumb"}


def _start(
    command: str, config: Path, server: RunningStubServer, **environ: str
) -> "subprocess.Popen[bytes]":
    script = str(Path(sys.executable).parent / "tracemill")
    return subprocess.Popen(
        [script, command, str(config), "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(os.environ) | _environ(server) | environ,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_in_flight_comes_home_and_is_kept(
    console: Call, ingested: Path, number: signal.Signals
) -> None:
    with running(StubSettings(api_key=KEY, latency_s=2)) as server:
        process = _start("replay", config := _config(ingested), server)
        wait_while_running(process, lambda: server.stats()["received"] >= FLIGHT + 4)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        stats = server.stats()
        assert stats["paid"] == stats["received"] < 2 * FLIGHT + 4
    with running(StubSettings(api_key=KEY), port=int(server.url.split(":")[2].split("/")[0])) as server:
        record = record_of(console("replay", config, "--json", **_environ(server)))
        assert record["summary"]["reused"] == stats["paid"]
        assert record["summary"]["calls"] == server.stats()["paid"]
        assert (record["summary"]["held_calls"], record["summary"]["left_over"]) == (0, 0)


def test_a_terminal_that_is_closed_ends_it_likewise(ingested: Path) -> None:
    with running(StubSettings(api_key=KEY, latency_s=2)) as server:
        ours, theirs = pty.openpty()
        code = (
            "import fcntl, os, sys, termios\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  # the terminal of this session, as in a shell
            "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
        )
        script = str(Path(sys.executable).parent / "tracemill")
        process = subprocess.Popen(
            [sys.executable, "-c", code, script, "replay", str(_config(ingested))],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(os.environ) | _environ(server),
            start_new_session=True,
        )
        os.close(theirs)
        wait_while_running(process, lambda: server.stats()["received"] >= FLIGHT)
        os.close(ours)  # the kernel sends SIGHUP, and whatever is written fails from now on
        assert process.wait(60) == 130
        stats = server.stats()
    assert stats["paid"] == stats["received"] < 2 * FLIGHT
    records = [json.loads(path.read_text()) for path in (ingested / "w" / "runs").glob("*/run.json")]
    [record] = [record for record in records if record["command"] == "replay"]
    assert record["status"] == "running"


def test_nohup_goes_on_without_its_terminal(ingested: Path) -> None:
    with running(StubSettings(api_key=KEY, latency_s=0.05)) as server:
        script = str(Path(sys.executable).parent / "tracemill")
        process = subprocess.Popen(
            ["nohup", script, "replay", str(_config(ingested)), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) | _environ(server),
            start_new_session=True,
        )
        wait_while_running(process, lambda: server.stats()["received"] >= FLIGHT)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert json.loads(out)["summary"]["left_over"] == 0


@pytest.mark.slow
def test_a_slow_teacher_is_waited_for_as_long_as_an_attempt_may_take(ingested: Path) -> None:
    with running(StubSettings(api_key=KEY, latency_s=15)) as server:
        process = _start("replay", _config(ingested), server)
        wait_while_running(process, lambda: server.stats()["received"] >= 3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=90)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        stats = server.stats()
        assert 3 <= stats["paid"] == stats["received"] <= FLIGHT
    with closing(sqlite3.connect(ingested / "w" / "ledger.sqlite")) as ledger:
        assert ledger.execute("SELECT count(*) FROM answers").fetchone() == (stats["paid"],)


def test_the_grace_is_the_users_to_set(ingested: Path) -> None:
    with running(StubSettings(api_key=KEY, latency_s=60)) as server:
        process = _start("replay", _config(ingested, "grace_s = 1.0\n"), server)
        wait_while_running(process, lambda: server.stats()["received"] >= 3)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        assert 0.9 < time.monotonic() - began < 20
        assert server.stats()["paid"] == 0


@pytest.mark.slow
def test_a_whole_run_ends_so_too(tracemill: Call, tmp_path: Path, prefect_server: dict[str, str]) -> None:
    with running(StubSettings(api_key=KEY, latency_s=2)) as server:
        process = _start("run", config := _config(tmp_path), server, **prefect_server)
        wait_while_running(process, lambda: server.stats()["received"] >= FLIGHT + 4)
        process.send_signal(signal.SIGTERM)  # around the flow Prefect has a handler of its own
        _, said = process.communicate(timeout=60)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        stats = server.stats()
        assert stats["paid"] == stats["received"] < 2 * FLIGHT + 4
    with running(StubSettings(api_key=KEY), port=int(server.url.split(":")[2].split("/")[0])) as server:
        record = record_of(tracemill("run", config, "--json", **_environ(server)))
        assert record["summary"]["flags"]["unfinished run resumed"] == 1
        assert (record["summary"]["reused"], record["summary"]["held_calls"]) == (stats["paid"], 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_the_server_of_a_run_outlives_a_signal_to_the_whole_process_group(
    tmp_path: Path, number: signal.Signals
) -> None:
    """A terminal's Ctrl-C goes to the group. A client whose server is gone tries for over a minute."""
    home = prefect_home(tmp_path / "prefect")
    with running(StubSettings(api_key=KEY, latency_s=2)) as server:
        process = _start("run", _config(tmp_path), server, PREFECT_HOME=str(home))
        wait_while_running(process, lambda: server.stats()["received"] >= FLIGHT)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=40)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        stats = server.stats()
        assert stats["paid"] == stats["received"] < 2 * FLIGHT
    with closing(sqlite3.connect(home / "prefect.db")) as records:
        [(state,)] = records.execute("select state_type from flow_run").fetchall()
    assert state in ("CRASHED", "CANCELLED", "FAILED")
