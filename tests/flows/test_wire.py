"""The whole run against a server that speaks OpenRouter's wire format, over a real socket."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from console_says import INTERRUPTED, record_of, wait_while_running, without_progress

from tracemill.teachers.core.presets import OPEN
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
KEY = "sk-or-test-only-0123456789"
Run = Callable[..., CompletedProcess[str]]


def _config(
    tmp_path: Path, server: RunningStubServer, cap_usd: float, sessions: Path = EXAMPLES, teachers: str = ""
) -> Path:
    """A run with these teachers, else those of the preset `open`, at a server that sends nothing on."""
    path = tmp_path / "run.toml"
    path.write_text(
        f"workspace = 'w'\n[sources]\npaths = ['{sessions}']\n"
        f"[budget]\nmax_total_usd = {cap_usd}\n[replay]\nstop = 'off'\nconcurrency = 32\nbackoff_s = 0.01\n"
        + (teachers or _teachers((each.model for each in OPEN.teachers), "enforce_distillable_text = true"))
    )
    return path


def _teachers(models: Iterable[str], more: str) -> str:
    return "".join(
        f"[[teachers]]\ntype = 'openrouter'\nmodel = '{model}'\nlocal = true\n{more}\n" for model in models
    )


CHEAP = _teachers((f"simulated/{name}-a" for name in ("deepseek", "kimi", "glm", "qwen")), "max_tokens = 256")
"""Four small models with short answers: a cent buys some dozens."""


def _environment(server: RunningStubServer) -> dict[str, str]:
    return {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}


def test_a_cap_of_a_cent_holds_with_four_teachers_and_32_in_flight(tracemill: Run, tmp_path: Path) -> None:
    with running(StubSettings(api_key=KEY, latency_s=0.02)) as server:
        config = _config(tmp_path, server, 0.01, teachers=CHEAP)
        record = record_of(tracemill("run", config, "--json", **_environment(server)))
        charged = float(server.stats()["charged_usd"])
        assert 0.005 < charged <= 0.01
        assert server.stats()["received"] > 20
        assert record["summary"]["spent_usd"] == pytest.approx(charged, abs=1e-9)
        assert "cap" in record["summary"]["stopped"]
        assert record["summary"]["not_asked"]
        assert record["release"]["rows"] > 0
        assert "sk-or-test" not in json.dumps(record)
        held = [p for p in (tmp_path / "w").rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
        assert held == []


@pytest.mark.slow
def test_a_cap_that_covers_not_one_call_asks_nothing_and_says_so(tracemill: Run, tmp_path: Path) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        config = _config(tmp_path, server, 0.001)
        record = record_of(tracemill("run", config, "--json", **_environment(server)))
        assert server.stats()["received"] == 0
    assert "cap" in record["summary"]["stopped"]
    assert (record["summary"]["asked"], record["summary"]["spent_usd"]) == (0, 0)
    assert sum(record["summary"]["not_asked"].values()) == 4 * record["summary"]["states"]
    assert {kind.split(":")[0] for kind in record["release"]["kept"]} == {"hindsight"}


def test_no_secret_of_a_session_reaches_the_wire_and_a_second_run_sends_nothing(
    tracemill: Run, tmp_path: Path
) -> None:
    token, own = "ghp_" + "a1B2c3D4" * 4 + "e5F6", "value-of-a-variable-93845"
    _plant(tmp_path / "sessions", f"token={token} /home/carlotta/x {own}")
    with running(StubSettings(api_key=KEY, keep_bodies=True)) as server:
        config = _config(tmp_path, server, 50, tmp_path / "sessions")
        env = _environment(server) | {"MY_SERVICE_TOKEN": own}
        first = record_of(tracemill("run", config, "--json", **env))
        stats, bodies = server.stats(), b"\n".join(server.server.bodies)
        again = record_of(tracemill("run", config, "--json", **env))
        assert server.stats()["requests"] == stats["requests"]
    assert first["summary"]["calls"] == first["summary"]["asked"] == stats["received"] > 100
    assert stats["requests"] - stats["received"] == 2 * 6  # key, models, 4 endpoints: beforehand, and once
    assert first["summary"]["redactions"]["GITHUB_TOKEN"] >= 1
    assert again["summary"]["reused"] == first["summary"]["asked"]
    assert again["release"]["created"] is False
    for secret in (token, own, "carlotta"):
        assert secret.encode() not in bodies
        held = [p for p in (tmp_path / "w").rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
        assert held == []


def _plant(folder: Path, text: str) -> None:
    """The examples, with this text as the result of every tool of one session."""
    shutil.copytree(EXAMPLES, folder)
    source = sorted((folder / "claude_code").rglob("*.jsonl"))[0]
    records = [json.loads(line) for line in source.read_text().splitlines()]
    planted = 0
    for record in records:
        content = record.get("message", {}).get("content")
        if record["type"] == "user" and isinstance(content, list):
            content[0]["content"] = text
            planted += 1
    assert planted > 5
    source.write_text("\n".join(json.dumps(record) for record in records))


def _start(config: Path, server: RunningStubServer, prefect: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).parent / "tracemill"), "run", str(config), "--json"]
    env = dict(os.environ) | _environment(server) | prefect
    return subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.slow
def test_kill_9_in_the_middle_pays_again_at_most_what_was_in_flight(
    tracemill: Run, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    with running(StubSettings(api_key=KEY, latency_s=0.1)) as server:
        config = _config(tmp_path, server, 50)
        process = _start(config, server, prefect_server)
        deadline = time.monotonic() + 90
        while server.stats()["paid"] < 60 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        killed_at = server.stats()["paid"]
        assert killed_at >= 60
        time.sleep(0.5)
        record = record_of(tracemill("run", config, "--json", **_environment(server)))
        stats = server.stats()
    assert record["summary"]["flags"]["unfinished run resumed"] == 1
    assert 0 <= stats["paid_twice"] <= 32
    assert stats["paid"] - stats["paid_twice"] == record["summary"]["asked"]
    assert record["summary"]["reused"] + record["summary"]["calls"] == record["summary"]["asked"]
    spent, held = record["summary"]["spent_usd"], record["summary"]["held_usd"]
    assert spent <= float(stats["charged_usd"]) + 1e-9
    assert spent + held >= float(stats["charged_usd"]) - 1e-9
    assert 1 <= record["summary"]["held_calls"] <= 32


@pytest.mark.long
@pytest.mark.slow
def test_ten_interrupts_each_end_at_the_first_press_and_nothing_is_paid_twice(
    tracemill: Run, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    """At random moments of one run, from the beginning of the flow on; taken up again each time."""
    coin, lock = random.Random(20261121), tmp_path / "w" / ".run-lock"
    with running(StubSettings(api_key=KEY, latency_s=0.5)) as server:
        config = _config(tmp_path, server, 50)
        config.write_text(config.read_text().replace("concurrency = 32", "concurrency = 8"))
        for number in range(10):
            lock.unlink(missing_ok=True)
            process = _start(config, server, prefect_server)
            wait_while_running(process, lock.exists)
            asked = server.stats()["received"] + coin.randrange(1, 24)
            wait_while_running(
                process, lambda asked=asked: server.stats()["received"] >= asked or coin.random() < 5e-3
            )
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            assert (process.returncode, without_progress(said)) == (130, INTERRUPTED), number
        paid = server.stats()["paid"]
        assert 10 < paid < 200
        record = record_of(tracemill("run", config, "--json", **_environment(server)))
        stats = server.stats()
    assert stats["paid_twice"] == 0
    assert record["summary"]["flags"]["unfinished run resumed"] == 1
    assert record["summary"]["reused"] == paid
    assert stats["paid"] == stats["received"] == record["summary"]["asked"] > 250
    assert record["summary"]["spent_usd"] == pytest.approx(float(stats["charged_usd"]), abs=1e-9)
    assert (record["summary"]["held_calls"], record["summary"]["held_usd"]) == (0, 0)


@pytest.mark.slow
def test_a_second_press_does_not_wait_for_what_is_in_flight(
    tracemill: Run, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    with running(StubSettings(api_key=KEY, latency_s=60)) as server:
        config = _config(tmp_path, server, 50)
        process = _start(config, server, prefect_server)
        wait_while_running(process, lambda: server.stats()["received"] >= 3)  # three traces
        time.sleep(2)
        received = server.stats()["received"]
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, without_progress(said)) == (130, INTERRUPTED)
        assert (server.stats()["received"], server.stats()["paid"]) == (received, 0)
