"""A workspace on S3: the release of one on disk, one writer over all machines, and bad input."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
import s3_server
from postgres_server import Server

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.preflight import run_preflight
from tracemill.flows.run_state.run_records import sole_writer
from tracemill.flows.workspace_commands import run_prepared
from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.storage.workspace import Workspace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
VIEWS = {"dpo", "dpo_json", "sft", "agreed", "solved", "kto", "prm", "hints", "soft", "votes"}
VIEWS |= {f"{view}_{size}" for view in ("dpo", "sft", "kto") for size in ("1k", "4k", "8k")}
VARIES = {"generation_id", "raw", "latency_s", "created", "written_at", "run_id", "order"}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket on loopback."""
    with s3_server.serving() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        yield f"s3://{s3_server.BUCKET}"


def settings(place: str, **more: Any) -> RunSettings:
    given = {
        "workspace": place,
        "shard_mb": 0.02,
        "sources": {"paths": [str(SESSIONS)], "min_age_minutes": 0},
        "teachers": [{"type": "simulated", "model": model} for model in MODELS],
        "budget": {"max_total_usd": 1},
    }
    return RunSettings.model_validate(given | more)


def machine_of(cache: Path, patch: pytest.MonkeyPatch, url: str, given: dict[str, Any]) -> RunSettings:
    """The settings of a run as another machine has them, with a working copy of its own."""
    patch.setenv("XDG_CACHE_HOME", str(cache))
    return settings(url, **given)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in VARIES}
    return [plain(each) for each in value] if isinstance(value, list) else value


def rows(work: Workspace, name: str) -> list[str]:
    tables = work.current(name)
    return sorted(json.dumps(plain(row), sort_keys=True) for table in tables for row in table.to_pylist())


def released(release: Path) -> dict[str, list[str]]:
    """The rows of each table of a release."""
    return {
        path.relative_to(release).as_posix(): [
            json.dumps(plain(row), sort_keys=True) for row in pq.read_table(path).to_pylist()
        ]
        for path in release.rglob("*.parquet")
    }


@pytest.mark.long
@pytest.mark.slow
def test_a_workspace_on_s3_gives_the_release_of_one_on_disk(
    bucket: str, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    on_disk = run_prepared(run_preflight(settings(str(tmp_path / "w"))), yes=True)
    url, ledger_url = f"{bucket}/team/workspace", postgres.new_database()
    given = {"ledger_url": ledger_url, "cluster": {"workers": 2}}
    first = settings(url, **given)
    work = Workspace.open(first.workspace)
    (work.root / "redaction.key").write_bytes((tmp_path / "w" / "redaction.key").read_bytes())
    on_s3 = run_prepared(run_preflight(first), yes=True)
    disk = Workspace.open(tmp_path / "w")
    for name in ("traces", "decisions", "replies", "votes", "pairs"):
        assert len(found := rows(work, name)) >= 7
        assert found == rows(disk, name)
    for name in ("rows", "kept", "dropped", "splits", "labels", "version"):
        assert on_s3["release"][name] == on_disk["release"][name]
    found = released(Path(on_s3["release"]["path"]))
    assert found == released(Path(on_disk["release"]["path"]))
    assert {path.split("/")[1] for path in found} >= VIEWS
    assert all(found.values())
    copied = fsspec.filesystem("s3").find(f"{s3_server.BUCKET}/team/workspace/releases")
    assert {path.partition("/data/")[2] for path in copied if path.endswith(".parquet")} == {
        path.removeprefix("data/") for path in found
    }


@pytest.mark.long
@pytest.mark.slow
def test_another_machine_goes_on_and_one_writes_at_a_time(
    bucket: str, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, given = f"{bucket}/team/workspace", {"ledger_url": postgres.new_database(), "teachers": []}
    one = machine_of(tmp_path / "one", monkeypatch, url, given)
    first = run_prepared(run_preflight(one), yes=True)
    two = machine_of(tmp_path / "two", monkeypatch, url, given)
    assert two.workspace != one.workspace
    again = run_prepared(run_preflight(two), yes=True)
    assert again["summary"]["changes"] == {"unchanged since they were read": 5}
    assert again["summary"]["pairs"] == first["summary"]["pairs"]
    assert again["release"]["version"] == first["release"]["version"]
    kept = Path(first["release"]["path"]).relative_to(one.workspace)
    assert released(two.workspace / kept) == released(one.workspace / kept)
    assert not list(two.workspace.rglob("ledger.sqlite*"))

    third = Workspace.open(machine_of(tmp_path / "three", monkeypatch, url, given).workspace)
    busy = pytest.raises(WorkspaceError, match=f"another tracemill is running on {url}")
    with sole_writer(Workspace.open(two.workspace)), ExitStack() as stack, busy:
        stack.enter_context(sole_writer(third))


def test_a_bucket_that_is_not_there_and_a_server_that_is_not_there_are_one_line(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shared = {"ledger_url": "postgresql://127.0.0.1/ledger"}
    with pytest.raises(WorkspaceError, match=r"^the workspace s3://nobody/w cannot be read \(\w+\); exp"):
        settings("s3://nobody/w", **shared)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(WorkspaceError, match=r"cannot be read \(\w+\); expected a bucket that exists"):
        settings(f"{bucket}/other", **shared)


def test_a_workspace_behind_a_url_wants_a_ledger_on_postgresql() -> None:
    for ledger_url in (None, "sqlite:////data/ledger.db"):
        with pytest.raises(ConfigError, match="s3://bucket/w has no ledger on PostgreSQL; expected one data"):
            settings("s3://bucket/w", ledger_url=ledger_url)
