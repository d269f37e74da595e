"""Modules of the user's own that bear the names of ours, or of our dependencies, are never imported."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect_database import prefect_home
from training_releases import released, tiny_model

ROOT = Path(__file__).resolve().parents[2]
OWN = ("train", "flows", "pairs", "privacy", "datasets", "evaluate", "records", "teachers", "normalize")
MARK = """
import sys
from pathlib import Path
Path(__file__).with_suffix(".imported").write_text(" ".join(sys.argv))
raise SystemExit("a module of the user's own was imported")
"""
SNIPPET = """
import json, sys
import tracemill as tm

states = [s for trace in tm.ClaudeCodeIngester().ingest(sys.argv[1]) for s in trace.states()]
from tracemill.teachers.core.presets import PRESETS
teachers = PRESETS["simulated"].teachers
made = tm.replay_and_normalize_trace_sync(states, teachers=teachers, max_total_usd=1.0)
import tracemill.train.training_job, tracemill.evaluate.evaluate_table, tracemill.flows.run_flow
names = [name for name in sys.modules if name.partition(".")[0] in json.loads(sys.argv[2])]
print(json.dumps([len(states), len(made.kept), names]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with modules of the user's own and sessions."""
    for name in OWN:
        (tmp_path / f"{name}.py").write_text(MARK)
    (tmp_path / "harnesses").mkdir()
    (tmp_path / "harnesses" / "__init__.py").write_text(MARK)
    shutil.copytree(ROOT / "examples" / "sessions", tmp_path / "sessions")
    (tmp_path / "run.toml").write_text(
        "workspace = 'w'\npreset = 'simulated'\n[sources]\npaths = ['sessions']\nmin_age_minutes = 0\n"
        "[budget]\nmax_total_usd = 1.0\n"
    )
    return tmp_path


def imported(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.imported"))


def script() -> str:
    return str(Path(sys.executable).parent / "tracemill")


def called(folder: Path, *command: str) -> str:
    env = dict(os.environ) | {"PREFECT_HOME": str(prefect_home(folder.parent / "prefect-home"))}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_library_script_beside_them_works(folder: Path) -> None:
    (folder / "snippet.py").write_text(SNIPPET)
    sessions = str(folder / "sessions" / "claude_code")
    out = called(folder, sys.executable, "snippet.py", sessions, json.dumps([*OWN, "harnesses"]))
    states, kept, ours = json.loads(out.splitlines()[-1])
    assert (states, ours) == (34, [])
    assert kept > 10
    assert imported(folder) == []


@pytest.mark.slow
@pytest.mark.long
def test_a_run_among_them_works(folder: Path) -> None:
    record = json.loads(called(folder, script(), "run", "run.toml", "--json"))
    assert record["summary"]["states"] == 69
    assert record["release"]["rows"] > 30
    assert imported(folder) == []


@pytest.mark.slow
@pytest.mark.long
def test_a_schedule_among_them_works(folder: Path) -> None:
    log = folder.parent / "log"
    env = dict(os.environ) | {"PREFECT_HOME": str(prefect_home(folder.parent / "prefect-home"))}
    with log.open("wb") as said:
        command = [script(), "schedule", "run.toml", "--cron", "* * * * *"]
        served = subprocess.Popen(
            command, cwd=folder, env=env, stdout=said, stderr=said, start_new_session=True
        )
    try:
        until = time.monotonic() + 240
        while "release made: " not in log.read_text():
            assert time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(0.5)
        os.killpg(served.pid, signal.SIGINT)
        assert served.wait(90) == 130
    finally:
        served.kill()
        served.wait()
    assert imported(folder) == []


@pytest.mark.slow
def test_a_training_among_them_works(folder: Path) -> None:
    release, model = released(folder / "rel"), tiny_model(folder)
    flags = [
        "--release",
        str(release.path),
        "--model",
        str(model),
        "--output",
        "out",
        "--max-steps",
        "2",
        "--json",
    ]
    record = json.loads(called(folder, script(), "train", *flags))
    assert Path(record["path"]).is_dir()
    assert imported(folder) == []
