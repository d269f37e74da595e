"""A ledger on PostgreSQL from the command line: the money is in it, and what is wrong with it is one line."""

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from console_says import refusal_of
from postgres_server import PASSWORD, Server

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.ask_session import AskSession
from tracemill.flows.labeling.run_ledger import require_ledger
from tracemill.flows.preflight import _answers_are_needed_of_this_machine
from tracemill.flows.run_state.run_records import end_run, start_run
from tracemill.flows.runtime.progress import ProgressMeter
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import LedgerError
from tracemill.records.message import Action
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
Run = Callable[..., CompletedProcess[str]]
SECRET = "hunter2-of-the-ledger"


def _config(folder: Path, ledger_url: str, base_url: str) -> Path:
    teachers = "".join(
        f'[[teachers]]\ntype = "openrouter"\nmodel = "{model}"\nbase_url = "{base_url}"\nlocal = true\n'
        for model in ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
    )
    path = folder / "run.toml"
    path.write_text(
        f'workspace = "w"\nledger_url = "{ledger_url}"\n{teachers}[budget]\nmax_total_usd = 1\n'
        f'[sources]\nclaude_code = ["sessions"]\n'
    )
    return path


def _refused(done: CompletedProcess[str]) -> str:
    line = refusal_of(done)
    assert SECRET not in line
    assert PASSWORD not in line
    return line


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://user:{secret}@127.0.0.1:{port}/db", "cannot be opened: Connection refused"),
        ("postgresql://user:{secret}@127.0.0.1:port/db", "the ledger URL cannot be used"),
        ("postgresql://user@127.0.0.1:{port}/db?password={secret}", "unknown option 'password'"),
        ("postgresql://user:{secret}@127.0.0.1:{port}/db?sslmode={secret}", "unknown sslmode"),
        ("postgresql+nosuch://user:{secret}@127.0.0.1/db", "the ledger URL cannot be used"),
        ("postgresql://user:{secret}@127.0.0.1:{port}/db?sslmode=verify-full&sslrootcert=/no", "sslrootcert"),
        ("mysql://user:{secret}@127.0.0.1/db", "a ledger of the kind 'mysql'"),
    ],
)
def test_a_ledger_that_cannot_be_opened_is_one_line_before_anything_is_read_or_sent(
    console: Run, tmp_path: Path, url: str, said: str
) -> None:
    shutil.copytree(EXAMPLES / "claude_code", tmp_path / "sessions")
    with running(StubSettings()) as server:
        config = _config(tmp_path, url.format(secret=SECRET, port=_closed_port()), server.url)
        assert said in _refused(console("run", config, "--yes", OPENROUTER_API_KEY="sk-or-test"))
        assert server.stats()["requests"] == 0
    assert not (tmp_path / "w").exists()


def test_a_run_goes_on_in_the_ledger_it_began_in_alone(tmp_path: Path) -> None:
    """Known by what is in the ledger, not by its place."""
    work = Workspace.open(tmp_path / "w")
    run = start_run(work, "fingerprint")
    for name in ("a", "moved", "b", "moved"):
        if name == "moved" and not (tmp_path / name).exists():
            shutil.copy(tmp_path / "a", tmp_path / name)
        settings = RunSettings.model_validate(
            {
                "workspace": work.root,
                "ledger_url": f"sqlite:///{tmp_path / name}",
                "teachers": [{"type": "simulated", "model": "m"}],
                "budget": {"max_total_usd": 3},
            }
        )
        if name == "b":
            with pytest.raises(LedgerError, match="/b is not the ledger that it began in"):
                require_ledger(settings, work, run.run_id)
            continue
        require_ledger(settings, work, run.run_id)
        with AskSession.open(settings, work, run, Redactor(), frozenset(), ProgressMeter()) as asking:
            assert asking is not None
    end_run(work, run.run_id, {})


def test_teachers_are_tried_beforehand_unless_the_ledger_has_answers(tmp_path: Path) -> None:
    """A ledger by its URL too: a run whose answers are bought needs nobody."""
    (tmp_path / "sessions").mkdir()
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    settings = RunSettings.model_validate(
        {
            "workspace": tmp_path / "w",
            "ledger_url": url,
            "teachers": [{"type": "simulated", "model": "m"}],
            "budget": {"max_total_usd": 3},
        }
    )
    assert _answers_are_needed_of_this_machine(settings)
    with Ledger(url) as ledger:
        ledger.remember([TeacherReply("t:0:0", "k", "m", "f", 0, 0, action=Action("done"))])
    assert not _answers_are_needed_of_this_machine(settings)


@pytest.mark.slow
@pytest.mark.long
def test_a_run_with_its_money_on_postgresql_and_a_wrong_password(
    tracemill: Run, postgres: Server, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLES / "claude_code", tmp_path / "sessions")
    url = postgres.new_database()
    bare = url.replace(f":{PASSWORD}", "")
    with running(StubSettings(api_key="sk-or-test")) as server:
        config = _config(tmp_path, bare, server.url)
        env = {"OPENROUTER_API_KEY": "sk-or-test"}
        for wrong in ({"PGPASSWORD": SECRET}, {}):
            line = _refused(tracemill("run", config, "--yes", **env, **wrong))
            assert "the server refuses the user or the password" in line
        assert (server.stats()["requests"], (tmp_path / "w").exists()) == (0, False)
        done = tracemill("run", config, "--yes", "--json", **env, PGPASSWORD=PASSWORD)
        assert done.returncode == 0, done.stderr[-2000:]
        record, charged = json.loads(done.stdout), server.stats()["charged_nanousd"]
        asked = server.stats()["received"]
        again = json.loads(tracemill("run", config, "--yes", "--json", **env, PGPASSWORD=PASSWORD).stdout)
        assert server.stats()["received"] == asked > 20
    assert again["summary"]["spent_usd"] == 0
    with Ledger(url) as ledger:
        spent = ledger.spent(record["run_id"])
    assert (spent.settled_nanousd, spent.open_calls) == (charged, 0)
    held = [p for p in (tmp_path / "w").rglob("*") if p.is_file() and PASSWORD.encode() in p.read_bytes()]
    assert held == []
    assert not (tmp_path / "w" / "ledger.sqlite").exists()
