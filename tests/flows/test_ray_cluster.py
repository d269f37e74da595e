"""The stages on Ray: the rows of one process, one cap over all workers, and workers that die."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import ray_head
import ray_jobs
from console_says import Call, record_of, wait_while_running
from postgres_server import Server

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.preflight import check_cluster, run_preflight
from tracemill.flows.runtime.ray_pool import open_ray_pool
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import run_prepared
from tracemill.records.errors import ClusterError, ConfigError, LedgerError, WorkspaceError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.price import usd_down
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
KEY = {"OPENROUTER_API_KEY": "sk-or-test"}
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
SHARD_MB = 0.02
SPENT = 4
"""Exit code of a run that had spent its cap before and asked nothing."""
TABLES = ("traces", "decisions", "replies", "votes", "pairs")
VARIES = {"generation_id", "raw", "latency_s", "cost_usd", "usage", "cached_tokens", "order"}
"""What differs between two purchases of one answer: which teacher's turn it is first at a step, too."""


@contextmanager
def asked(**given: Any) -> Iterator[RunningStubServer]:
    """An OpenRouter of loopback whose key is in the environment."""
    with pytest.MonkeyPatch.context() as patch, running(StubSettings(api_key="sk-or-test", **given)) as stub:
        for name, value in KEY.items():
            patch.setenv(name, value)
        yield stub


def settings(folder: Path, url: str = "", cap_usd: float = 1.0, **more: Any) -> RunSettings:
    teachers = [
        {"type": "openrouter", "model": model, "base_url": url, "local": True} for model in MODELS if url
    ]
    given = {
        "workspace": str(folder),
        "shard_mb": SHARD_MB,
        "sources": {"paths": [str(SESSIONS)], "min_age_minutes": 0},
        "teachers": teachers,
        "budget": {"max_total_usd": cap_usd},
    }
    return RunSettings.model_validate(given | more)


def ingested(folder: Path) -> Path:
    order = IngestOptions(order_of([str(SESSIONS)], min_age_minutes=0), folder, shard_mb=SHARD_MB, jobs=1)
    ingest_everything(order)
    return folder


def same_key(folder: Path, other: Path) -> None:
    """A workspace whose placeholders, and so whose prompts, are those of another."""
    Workspace.open(folder)
    shutil.copy(other / "redaction.key", folder / "redaction.key")


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in VARIES}
    return [plain(each) for each in value] if isinstance(value, list) else value


def rows(folder: Path, name: str) -> list[str]:
    tables = Workspace.open(folder, create=False).current(name)
    return sorted(json.dumps(plain(row), sort_keys=True) for table in tables for row in table.to_pylist())


def released(record: dict[str, Any]) -> dict[str, Any]:
    kept = ("rows", "kept", "dropped", "splits", "labels")
    return {name: record["release"][name] for name in kept}


@pytest.mark.long
@pytest.mark.slow
def test_two_workers_give_the_rows_of_one_process(tmp_path: Path) -> None:
    with asked() as here:
        alone = run_prepared(run_preflight(settings(tmp_path / "a", here.url)), yes=True)
    same_key(tmp_path / "b", tmp_path / "a")
    with asked() as there:
        ready = run_preflight(settings(tmp_path / "b", there.url, cluster={"workers": 2}))
        spread = run_prepared(ready, yes=True)
    paid = here.stats()["paid"]
    assert 150 < paid < 180
    assert (there.stats()["paid"], there.stats()["paid_twice"]) == (paid, 0)
    found = {name: rows(tmp_path / "b", name) for name in TABLES}
    counts = {name: len(each) for name, each in found.items()}
    assert counts.pop("pairs") > 50
    assert counts == {"traces": 7, "decisions": 207, "replies": paid, "votes": 69}
    assert found == {name: rows(tmp_path / "a", name) for name in TABLES}
    assert released(spread) == released(alone)
    one, two = alone["summary"], spread["summary"]
    assert {name for name in one if one[name] != two[name]} <= {"spent_usd"}
    assert "RAY_AUTH_TOKEN" not in os.environ


CONFIG = """
workspace = "w"
shard_mb = 0.02
ledger_url = "{ledger_url}"
{teachers}
[budget]
max_total_usd = {cap_usd}
[cluster]
workers = {workers}
address = "{address}"
wait_s = 20
"""
TEACHER = """[[teachers]]
type = "openrouter"
model = "{}"
base_url = "{}"
local = true
"""


@pytest.mark.long
@pytest.mark.slow
def test_workers_of_a_cluster_hold_one_cap_on_postgresql(
    console: Call, postgres: Server, tmp_path: Path
) -> None:
    cap_usd, ledger_url = 0.02, postgres.new_database()
    ingested(tmp_path / "w")
    with asked() as stub, ray_head.head(2, **KEY) as address:

        def replay(workers: int) -> CompletedProcess[str]:
            teachers = "".join(TEACHER.format(model, stub.url) for model in MODELS)
            given = {"ledger_url": ledger_url, "teachers": teachers, "cap_usd": cap_usd}
            (tmp_path / "run.toml").write_text(CONFIG.format(**given, workers=workers, address=address))
            environ = {**KEY, **ray_head.ENVIRONMENT}
            return console("replay", tmp_path / "run.toml", "--yes", "--json", **environ)

        crowded = replay(workers=3)
        assert (crowded.returncode, crowded.stdout) == (2, "")
        said = "tracemill: the Ray cluster started 2 of 3 workers in 20 s; expected one free CPU for each"
        assert crowded.stderr.splitlines()[-1].startswith(said)
        assert stub.stats()["received"] == 0
        record, charged = record_of(replay(workers=2)), stub.stats()["charged_nanousd"]
        assert 0.5 * usd_down(cap_usd) < charged <= usd_down(cap_usd)
        assert record["summary"]["at_cap"] > 0
        with Ledger(ledger_url) as ledger:
            spent = ledger.spent(record["run_id"])
        assert (spent.settled_nanousd, spent.open_calls) == (charged, 0)
        again = replay(workers=2)
        assert (again.returncode, json.loads(again.stdout)["run_id"]) == (SPENT, record["run_id"])
        assert stub.stats()["charged_nanousd"] == charged


@pytest.mark.long
@pytest.mark.slow
def test_ctrl_c_lets_the_calls_of_all_workers_come_home(tmp_path: Path) -> None:
    folder = ingested(tmp_path / "w")
    with asked(latency_s=2.0) as stub:
        teachers = "".join(TEACHER.format(model, stub.url) for model in MODELS)
        ledger_url = f"sqlite:///{tmp_path / 'ledger.db'}"
        given = {"ledger_url": ledger_url, "teachers": teachers, "cap_usd": 1, "workers": 2}
        config = CONFIG.format(**given, address="").replace('address = ""\n', "")
        (tmp_path / "run.toml").write_text(config)
        script = str(Path(sys.executable).parent / "tracemill")
        command = [script, "replay", str(tmp_path / "run.toml"), "--yes", "--workspace", str(folder)]
        process = subprocess.Popen(command, env={**os.environ, **KEY}, stderr=subprocess.PIPE, text=True)
        wait_while_running(process, lambda: stub.stats()["received"] >= 6)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        charged, received = stub.stats()["charged_nanousd"], stub.stats()["received"]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert 6 <= received < 100
    records = [json.loads(path.read_text()) for path in (folder / "runs").glob("*/run.json")]
    [run_id] = [record["run_id"] for record in records if record["command"] == "replay"]
    with Ledger(ledger_url) as ledger:
        spent = ledger.spent(run_id)
    assert (spent.settled_nanousd, spent.open_calls) == (charged, 0)
    assert len(rows(folder, "replies")) == received


@pytest.mark.long
@pytest.mark.slow
def test_results_keep_their_order_errors_their_words_and_a_killed_worker_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(ray_jobs.__file__).parent))
    with open_ray_pool(2) as pool:
        with pool.map(ray_jobs.opened, range(8)) as results:
            done = list(results)
        assert [number for number, _ in done] == list(range(8))
        assert {pid for _, pid in done} == set(pool.pids)
        assert len(set(pool.pids)) == 2

        words = "^the ledger could not be written; expected a database$"
        with (
            pytest.raises(LedgerError, match=words),
            pool.map(partial(ray_jobs.opened, 3), range(8)) as results,
        ):
            list(results)

        pool.pids.clear()
        with pool.map(ray_jobs.opened, range(40)) as results:
            threading.Timer(1.0, os.kill, (pool.pids[0], signal.SIGKILL)).start()
            done = list(results)
        assert [number for number, _ in done] == list(range(40))
        assert len({pid for _, pid in done}) == 3


@pytest.mark.long
@pytest.mark.slow
def test_a_worker_that_does_not_see_the_workspace_is_one_line(tmp_path: Path) -> None:
    folder = ingested(tmp_path / "w")
    given = settings(folder, cluster={"workers": 2})
    ready = run_preflight(given)
    from tracemill.flows.ingest.ingest_stage import open_ingest_worker

    with open_ray_pool(1) as pool:
        shutil.rmtree(folder)
        opener = partial(open_ingest_worker, ready.ingester, {})
        with pytest.raises(WorkspaceError, match="is not a workspace"), pool.map(opener, [()]) as results:
            list(results)


def test_a_cluster_that_cannot_be_used_is_one_line_before_anything_is_spent(tmp_path: Path) -> None:
    with asked() as stub:
        far = {"workers": 2, "address": "127.0.0.1:1"}
        on_file = settings(tmp_path / "w", stub.url, cluster=far)
        with pytest.raises(ConfigError, match="the ledger is a file of one machine; expected a ledger on"):
            check_cluster(on_file)
        with pytest.raises(ClusterError, match=r"nothing answers at the Ray address 127\.0\.0\.1:1 \("):
            run_prepared(run_preflight(settings(tmp_path / "w", cluster=far)), yes=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "ray", None)
            with pytest.raises(ConfigError, match="Ray is not installed; expected the extra `cluster`"):
                run_preflight(settings(tmp_path / "w", stub.url, cluster={"workers": 2}))
        assert stub.stats()["received"] == 0


def test_a_cluster_is_no_other_run_and_one_worker_is_none() -> None:
    plain_run = RunSettings()
    spread = RunSettings.model_validate({"cluster": {"workers": 4}})
    assert plain_run.fingerprint() == spread.fingerprint()
    assert (plain_run.cluster.is_used, spread.cluster.is_used) == (False, True)
