"""`tracemill serve`: a real server, a schedule of every minute, a run that is left out, a Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.runs import sole_writer
from records.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "sessions"


def wait_for(log: Path, text: str, seconds: float = 200) -> None:
    until = time.monotonic() + seconds
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.2)


@pytest.mark.slow
def test_a_schedule_fires_leaves_out_a_run_that_is_going_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    config, log = tmp_path / "run.toml", tmp_path / "log"
    source = f"[sources]\npaths = ['{EXAMPLES / 'claude_code'}']\nidle_minutes = 0\n"
    config.write_text(f"workspace = 'w'\n{source}")
    script = str(Path(sys.executable).parent / "tracemill")
    env = dict(os.environ) | {"PREFECT_HOME": str(tmp_path / "prefect")}
    command = [script, "serve", str(config), "--cron", "* * * * *"]
    with log.open("wb") as said:
        served = subprocess.Popen(command, stdout=said, stderr=said, env=env, start_new_session=True)
    try:
        with sole_writer(Workspace.open(tmp_path / "w")):
            wait_for(log, "failed: another tracemill is running on")
        assert not list((tmp_path / "w" / "runs").glob("*/run.json"))
        wait_for(log, "rows, written)")
        os.killpg(served.pid, signal.SIGINT)
        assert served.wait(60) == 130
    finally:
        served.kill()
    assert len(list((tmp_path / "w" / "releases" / "traces").glob("*/manifest.json"))) == 1
    assert "Traceback" not in log.read_text()
    own = f"PREFECT_HOME={tmp_path / 'prefect'}".encode()
    assert [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if own in readable(path)] == []


def readable(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
