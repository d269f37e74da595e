"""`tracemill schedule`: a real server, a schedule of every minute, runs that fail, one that is stopped."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from prefect_database import prefect_home

from tracemill.flows.run_state.run_records import sole_writer
from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.storage.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
SOURCE = f"""workspace = 'w'
[sources]
paths = ['{EXAMPLES / "claude_code"}']
min_age_minutes = 0
"""
BUDGET = "[budget]\nmax_total_usd = 1.0\n[replay]\nconcurrency = 1\n"
FAMILIES = ("deepseek", "kimi", "glm", "qwen")


def teachers(kind: str) -> str:
    return "".join(f"[[teachers]]\nmodel = '{name}-a'\nfamily = '{name}'\n{kind}\n" for name in FAMILIES)


ELSEWHERE = teachers(
    "type = 'openai_compatible'\nbase_url = 'https://teacher.invalid/v1'\n"
    "prices = {prompt_usd = 1.0, completion_usd = 1.0}"
)


def wait_for(log: Path, text: str, seconds: float = 200) -> None:
    until = time.monotonic() + seconds
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.2)


@contextmanager
def serving(config: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    script = str(Path(sys.executable).parent / "tracemill")
    env = dict(os.environ) | {"PREFECT_HOME": str(prefect_home(log.parent / "prefect"))}
    command = [script, "schedule", str(config), "--cron", "* * * * *"]
    with log.open("wb") as said:
        served = subprocess.Popen(command, stdout=said, stderr=said, env=env, start_new_session=True)
    try:
        yield served
    finally:
        served.kill()
        served.wait()


def nothing_is_left_of(home: Path) -> bool:
    own = f"PREFECT_HOME={home}".encode()
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if own in readable(path)] == []


def readable(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_fails_or_is_left_out_is_a_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    config, log, work = tmp_path / "run.toml", tmp_path / "log", tmp_path / "w"
    config.write_text(SOURCE + BUDGET + ELSEWHERE)
    with serving(config, log) as served:
        with sole_writer(Workspace.open(work)):
            wait_for(log, "Skipped('another process is working on the workspace'")
            assert not list((work / "runs").glob("*/run.json"))
        wait_for(log, "harvest failed: not accepted yet: 3 sessions")
        config.write_text(SOURCE)
        wait_for(log, "release made: ")
        os.killpg(served.pid, signal.SIGINT)
        assert served.wait(90) == 130
    assert not (work / "replies").exists()
    assert len(list((work / "releases" / "traces").glob("*/manifest.json"))) == 1
    assert nothing_is_left_of(tmp_path / "prefect")


@pytest.mark.slow
@pytest.mark.long
def test_servers_that_start_at_once_on_an_empty_prefect_home_all_come_up(tmp_path: Path) -> None:
    script = (
        "from tracemill.cli.commands import quiet_prefect; quiet_prefect()\n"
        "from tracemill.flows.deployment.local_server import prefect_server\n"
        "with prefect_server() as url: print('up', url)"
    )
    env = dict(os.environ) | {"PREFECT_HOME": str(tmp_path / "prefect")}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=400)[0] for each in started]
    assert [text.split(" ")[0] for text in said] == ["up"] * 2
    assert len(set(said)) == 2
    assert nothing_is_left_of(tmp_path / "prefect")


def test_one_server_at_a_time_is_started_in_a_prefect_home(tmp_path: Path) -> None:
    from tracemill.flows.deployment.local_server import LOCK, lock_prefect_home

    home = tmp_path / "new" / "prefect"
    with lock_prefect_home(home), (home / LOCK.format("server")).open("w") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with lock_prefect_home(tmp_path / "elsewhere"):
            pass
    with (home / LOCK.format("server")).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (tmp_path / "file").touch()
    refused = pytest.raises(
        WorkspaceError, match=r"file/home cannot be written \(Not a directory\); expected"
    )
    with refused, lock_prefect_home(tmp_path / "file" / "home"):
        pass


def test_a_configuration_is_served_by_one_alone(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_HOME, temporary_settings

    from tracemill.flows.deployment.local_server import lock_served_config
    from tracemill.flows.schedule import serve_schedule

    home, config = tmp_path / "prefect", tmp_path / "run.toml"
    said = (
        rf"another `tracemill schedule` of {config} is running; expected one at a time; end it, or give all"
    )
    with (
        lock_served_config(home, config),
        lock_served_config(home, tmp_path / "other.toml"),
        lock_served_config(tmp_path / "p", config),
    ):
        with temporary_settings({PREFECT_HOME: home}), pytest.raises(WorkspaceError, match=said):
            serve_schedule(config, "0 3 * * *", "UTC")
        assert not list(home.glob("*.db"))
    with lock_served_config(home, config):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_a_schedule_that_is_ended_while_its_server_comes_up_leaves_none(
    tmp_path: Path, end: signal.Signals
) -> None:
    config, log = tmp_path / "run.toml", tmp_path / "log"
    config.write_text(SOURCE)
    with serving(config, log) as served:
        until = time.monotonic() + 200
        while not any("uvicorn" in each.cmdline() for each in psutil.Process(served.pid).children()):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        served.send_signal(end)
        assert served.wait(90) == 130
    assert nothing_is_left_of(tmp_path / "prefect")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "latency_s",
    [3.0, 40.0],  # Prefect by itself kills after 30 s
)
def test_sigterm_in_the_middle_of_a_run_lets_what_is_in_flight_come_home(
    tmp_path: Path, latency_s: float
) -> None:
    config, log, work = tmp_path / "run.toml", tmp_path / "log", tmp_path / "w"
    config.write_text(SOURCE + BUDGET + teachers(f"type = 'simulated'\nlatency_s = {latency_s}"))
    with serving(config, log) as served:
        wait_for(log, "questions ")
        served.send_signal(signal.SIGTERM)
        assert served.wait(90) == 130
    assert log.read_text().endswith(
        "tracemill: interrupted; the same command resumes and pays nothing twice\n"
    )
    with sqlite3.connect(work / "ledger.sqlite") as ledger:
        [(calls,)], [(answers,)] = (ledger.execute(f"SELECT count(*) FROM {name}") for name in COUNTED)
    assert 0 < calls == answers
    [run] = (work / "runs").glob("*/run.json")
    assert json.loads(run.read_text())["status"] == "running"  # the same configuration takes it up
    assert nothing_is_left_of(tmp_path / "prefect")


COUNTED = ("calls", "answers")


@pytest.mark.parametrize(
    ("cron", "timezone", "said"),
    [
        ("0 3 * *", "UTC", "--cron '0 3 \\* \\*' is not valid; expected five fields"),
        ("*/20 * * * * *", "UTC", "is not valid; expected five fields"),
        ("61 3 * * *", "UTC", "--cron '61 3 .*' is not valid; expected five fields"),
        ("0 3 31 2 *", "UTC", "--cron '0 3 31 2 \\*' never occurs; expected a day that its month has"),
        ("0 3 * * *", "Mars/Olympus", "--timezone 'Mars/Olympus' is unknown; expected a name such as"),
    ],
)
def test_a_schedule_that_is_none_is_one_line(cron: str, timezone: str, said: str) -> None:
    from tracemill.flows.deployment.deployment_plan import check_schedule

    with pytest.raises(ConfigError, match=said):
        check_schedule(cron, timezone)
