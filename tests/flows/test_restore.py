"""The lines of docs/operations.md that back up and restore, run as they stand there."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from console_says import Call, record_of
from postgres_server import Server, binaries

from tracemill.flows.run_state.run_records import sole_writer
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions" / "claude_code"
PAGE = (ROOT / "docs" / "operations.md").read_text()
LINES = dict(re.findall(r'^```sh title="([a-z-]+)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL))
KEY = "sk-or-test-only-0123456789"


def run_lines(name: str, lines: str = "", **variables: object) -> "subprocess.CompletedProcess[str]":
    env = dict(os.environ) | {key: str(value) for key, value in variables.items()}
    command = ["bash", "-euo", "pipefail", "-c", lines or LINES[name]]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_page_has_the_lines() -> None:
    assert LINES.keys() == {"backup", "backup-postgresql", "restore", "restore-postgresql"}


def test_a_backup_waits_for_a_run_that_is_going_on(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    (work.root / ".run-lock").touch()
    hasty = LINES["backup"].replace("14400", "0.2")
    assert hasty != LINES["backup"]
    with sole_writer(work):
        done = run_lines("backup", hasty, WORKSPACE=work.root, BACKUP=tmp_path)
    assert done.returncode != 0
    assert not (tmp_path / "workspace.tar.gz").exists()
    assert run_lines("backup", WORKSPACE=work.root, BACKUP=tmp_path).returncode == 0


@pytest.mark.slow
def test_a_restored_workspace_goes_on_and_pays_nothing(tracemill: Call, tmp_path: Path) -> None:
    home, work, other = tmp_path / "home", tmp_path / "w", tmp_path / "restored"
    shutil.copytree(EXAMPLES, home)
    config = tmp_path / "run.toml"
    config.write_text("preset = 'open'\n[replay]\nstop = 'off'\n")
    flags = ("run", config, "--claude-code", home, "--max-usd", 50, "--json")
    with running(StubSettings(api_key=KEY)) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
        first = record_of(tracemill(*flags, "-w", work, "--yes", **env))
        paid = server.stats()["paid"]
        assert paid == first["summary"]["calls"] > 0
        assert run_lines("backup", WORKSPACE=work, BACKUP=tmp_path).returncode == 0
        shutil.rmtree(work)
        assert run_lines("restore", WORKSPACE=other, BACKUP=tmp_path).returncode == 0
        second = record_of(tracemill(*flags, "-w", other, **env))
        assert server.stats()["paid"] == paid
    assert (second["summary"]["calls"], second["summary"]["reused"]) == (0, first["summary"]["asked"])
    assert second["summary"]["pairs"] == first["summary"]["pairs"]
    assert (second["release"]["created"], second["release"]["version"]) == (
        False,
        first["release"]["version"],
    )
    assert (other / "redaction.key").stat().st_mode & 0o077 == 0
    nights = json.loads(tracemill("status", "-w", other, "--json").stdout)["nights"]
    assert [each["run_id"] for each in nights] == [second["run_id"], first["run_id"]]


@pytest.mark.slow
def test_a_restored_ledger_on_postgresql_is_the_same_ledger(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = binaries()
    assert programs is not None
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    old, new = postgres.new_database(), postgres.new_database()
    with Ledger(old) as ledger:
        ledger.open_run("r1", 5_000_000_000)
        identity = ledger.identity()
    done = run_lines("backup-postgresql", LEDGER_URL=old, BACKUP=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_lines("restore-postgresql", LEDGER_URL=new, BACKUP=tmp_path)
    assert done.returncode == 0, done.stderr
    with Ledger(new) as ledger:
        assert ledger.identity() == identity
        assert ledger.has_run("r1")
        assert not ledger.has_run("r2")
