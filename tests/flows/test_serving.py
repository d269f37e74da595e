"""`tracemill serve`: a real server, a schedule of every minute, runs that fail, one that is stopped."""

import asyncio
import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from tracemill.flows.run_state.run_records import sole_writer
from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.storage.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
SOURCE = f"""workspace = 'w'
[sources]
paths = ['{EXAMPLES / "claude_code"}']
idle_minutes = 0
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
    env = dict(os.environ) | {"PREFECT_HOME": str(log.parent / "prefect")}
    command = [script, "serve", str(config), "--cron", "* * * * *"]
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
def test_a_run_that_fails_or_is_left_out_is_a_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    config, log, work = tmp_path / "run.toml", tmp_path / "log", tmp_path / "w"
    config.write_text(SOURCE + BUDGET + ELSEWHERE)
    with serving(config, log) as served:
        with sole_writer(Workspace.open(work)):
            wait_for(log, "failed: another tracemill is running on")
            assert not list((work / "runs").glob("*/run.json"))
        wait_for(log, "failed: not accepted yet: 3 sessions")
        config.write_text(SOURCE)
        wait_for(log, "rows, written)")
        os.killpg(served.pid, signal.SIGINT)
        assert served.wait(60) == 130
    said = log.read_text()
    lines = [line.partition(" ")[2] for line in said.splitlines()]
    begun = [number for number, line in enumerate(lines) if line == f"run of {config}"]
    ended = [line.split(":")[0] for line in lines if line.startswith(("failed: ", "run 2"))]
    assert len(begun) == len(ended) >= 3
    assert next(line for line in lines if "not accepted yet" in line).endswith(
        f"consent.json and accept it with `tracemill run {config} --yes`, or leave projects out with [select]"
    )
    assert "Traceback" not in said
    assert not (work / "replies").exists()
    assert len(list((work / "releases" / "traces").glob("*/manifest.json"))) == 1
    assert nothing_is_left_of(tmp_path / "prefect")


@pytest.mark.slow
def test_servers_that_start_at_once_on_an_empty_prefect_home_all_come_up(tmp_path: Path) -> None:
    script = (
        "from tracemill.cli.commands import quiet_prefect; quiet_prefect()\n"
        "from tracemill.flows.schedule import _server\n"
        "with _server() as url: print('up', url)"
    )
    env = dict(os.environ) | {"PREFECT_HOME": str(tmp_path / "prefect")}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [each.communicate(timeout=400)[0] for each in started]
    assert [text.split(" ")[0] for text in said] == ["up"] * 3
    assert len(set(said)) == 3
    assert nothing_is_left_of(tmp_path / "prefect")


def test_one_server_at_a_time_is_started_in_a_prefect_home(tmp_path: Path) -> None:
    from tracemill.flows.schedule import LOCK, lock_prefect_home

    home = tmp_path / "new" / "prefect"
    with lock_prefect_home(home), (home / LOCK.format("server")).open("w") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with lock_prefect_home(tmp_path / "elsewhere"):
            pass
    with (home / LOCK.format("server")).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (tmp_path / "file").touch()
    refused = pytest.raises(WorkspaceError, match=r"file/home cannot be written \(Not a directory\); wanted")
    with refused, lock_prefect_home(tmp_path / "file" / "home"):
        pass


def test_a_configuration_is_served_by_one_alone(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_HOME, temporary_settings

    from tracemill.flows.schedule import lock_served_config, serve_schedule

    home, config = tmp_path / "prefect", tmp_path / "run.toml"
    said = rf"another `tracemill serve` of {config} is running; wanted one at a time; end it, or give all"
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


LATE = """
import signal, sys, time
def end(*_):
    time.sleep(float(sys.argv[1]))
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("takes_s", "grace_s", "code"), [(2.0, 20.0, 7), (30.0, 1.0, -signal.SIGKILL)])
def test_a_run_that_is_told_to_stop_has_its_grace_and_no_more(
    takes_s: float, grace_s: float, code: int
) -> None:
    import anyio
    from prefect.runner._process_manager import ProcessHandle, ProcessManager

    from tracemill.flows.schedule import give_grace

    async def stop() -> int | None:
        async with ProcessManager() as processes:
            give_grace(processes, grace_s)
            child = await anyio.open_process([sys.executable, "-c", LATE, str(takes_s)], stderr=None)
            assert child.stdout is not None
            assert (await child.stdout.receive()).startswith(b"ready")
            run_id = uuid4()
            await processes.add(run_id, ProcessHandle(child))
            await processes.kill(run_id, grace_seconds=0.5)
            await child.wait()
            await processes.remove(run_id)
            await child.aclose()
            return child.returncode

    began = time.monotonic()
    assert asyncio.run(stop()) == code
    assert time.monotonic() - began < 15


@pytest.mark.slow
@pytest.mark.parametrize("latency_s", [3.0, 40.0])  # Prefect by itself kills after 30 s
def test_sigterm_in_the_middle_of_a_run_lets_what_is_in_flight_come_home(
    tmp_path: Path, latency_s: float
) -> None:
    config, log, work = tmp_path / "run.toml", tmp_path / "log", tmp_path / "w"
    config.write_text(SOURCE + BUDGET + teachers(f"type = 'simulated'\nlatency_s = {latency_s}"))
    with serving(config, log) as served:
        wait_for(log, "questions ")
        served.send_signal(signal.SIGTERM)
        assert served.wait(90) == 130
    said = log.read_text()
    assert said.count(f"run of {config}") == 1
    assert said.splitlines()[-1] == "tracemill: interrupted; the same command goes on and pays nothing twice"
    assert "Traceback" not in said
    with sqlite3.connect(work / "ledger.sqlite") as ledger:
        [(calls,)], [(answers,)] = (ledger.execute(f"SELECT count(*) FROM {name}") for name in COUNTED)
    assert 0 < calls == answers
    [run] = (work / "runs").glob("*/run.json")
    assert json.loads(run.read_text())["status"] == "running"  # the same configuration takes it up
    assert nothing_is_left_of(tmp_path / "prefect")


COUNTED = ("calls", "answers")


def test_each_time_of_a_schedule_comes_once_and_not_before(prefect_env: dict[str, str]) -> None:
    from prefect.server.schemas.schedules import CronSchedule

    from tracemill.flows.schedule import schedule_times

    async def first(count: int) -> list[tuple[datetime, datetime]]:
        found: list[tuple[datetime, datetime]] = []
        async for due in schedule_times(
            CronSchedule(cron="* * * * * *", timezone="UTC")
        ):  # the sixth: seconds
            found.append((due, datetime.now(UTC)))
            if len(found) == count:
                return found
        return found

    found = asyncio.run(first(2))
    assert all(due <= seen and due.microsecond == 0 for due, seen in found)
    assert found[1][0] > found[0][1]


@pytest.mark.parametrize(
    ("cron", "timezone", "said"),
    [
        ("0 3 * *", "UTC", "--cron '0 3 \\* \\*' is none; wanted five fields"),
        ("*/20 * * * * *", "UTC", "is none; wanted five fields"),
        ("61 3 * * *", "UTC", "--cron '61 3 .*' is none; wanted five fields"),
        ("0 3 31 2 *", "UTC", "--cron '0 3 31 2 \\*' never comes; wanted a day and month that there are"),
        ("0 3 * * *", "Mars/Olympus", "--timezone 'Mars/Olympus' is none; wanted a name such as"),
    ],
)
def test_a_schedule_that_is_none_is_one_line(cron: str, timezone: str, said: str) -> None:
    from tracemill.flows.schedule import read_schedule

    with pytest.raises(ConfigError, match=said):
        read_schedule(cron, timezone)


def run_process(server: int) -> int:
    """The process that carries out a scheduled run, below the process that serves."""
    import psutil

    below = psutil.Process(server).children(recursive=True)
    [found] = [one.pid for one in below if "PREFECT__FLOW_RUN_ID" in one.environ()]
    return found


@pytest.mark.slow
def test_a_run_whose_process_is_killed_is_a_line(tmp_path: Path) -> None:
    config, log = tmp_path / "run.toml", tmp_path / "log"
    config.write_text(SOURCE + BUDGET + teachers("type = 'simulated'\nlatency_s = 3.0"))
    with serving(config, log) as served:
        wait_for(log, "questions ")
        os.kill(run_process(served.pid), signal.SIGKILL)
        wait_for(log, " died: ", 60)
        os.killpg(served.pid, signal.SIGINT)
        assert served.wait(90) == 130
    [line] = [line for line in log.read_text().splitlines() if " died: " in line]
    assert re.search(r" run of \d{4}-\d\d-\d\d \d\d:\d\d died: .*-9", line), line
    assert nothing_is_left_of(tmp_path / "prefect")
