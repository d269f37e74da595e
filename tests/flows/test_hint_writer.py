"""A teacher over a socket that writes the hints of a training: estimated, capped, accepted, paid for once."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from training_releases import released

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOrder
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.run_state.run_records import read_run_records
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.training.hint_rows_file import add_hint_rows
from tracemill.flows.training.hint_writer import HintConsent
from tracemill.records.errors import ConfigError, PrivacyError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.openrouter_stub.server import RunningStub, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.train.training_job import TrainingRelease

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
WRITER = "moonshotai/kimi-k3"
Rows = list[dict[str, Any]]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-hints")
    return "k-hints"


@pytest.fixture
def server(key: str) -> Any:
    with running(StubSettings(api_key=key, keep_bodies=True)) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example sessions, ingested under one key: the stub answers to the text it is shown."""
    Workspace.open(tmp_path / "w")
    (tmp_path / "w" / "redaction.key").write_text(bytes(range(32)).hex())
    ingest_everything(IngestOrder(order_of(paths=[str(SESSIONS)], min_age_minutes=0), tmp_path / "w"))
    return tmp_path / "w"


@pytest.fixture
def release(tmp_path: Path) -> TrainingRelease:
    """A release that holds out none of the sessions."""
    made = released(tmp_path / "releases", rows=1, step_id="another-trace:0:0")
    return TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )


def settings_of(
    workspace: Path, url: str, cap: float | None = 1.0, local: bool = True, **more: Any
) -> RunSettings:
    composer: dict[str, Any] = {"tasks": "t"}
    if cap is not None:
        composer |= {"hint_writer": WRITER, "hint_max_usd": cap}
    teacher = {"type": "openrouter", "base_url": url, "local": local, "model": WRITER, "max_tokens": 500}
    training = {"model": "a/b", "method": "composer", "composer": composer}
    given = {"workspace": str(workspace), "teachers": [teacher], "training": training}
    return load_settings(None, given | more)


def rows_of(
    settings: RunSettings, release: TrainingRelease, consent: HintConsent | None = None
) -> tuple[str, Rows]:
    """The fingerprint of the training, and its hint rows."""
    assert settings.training is not None
    training = add_hint_rows(settings, settings.training, release, consent)
    assert training.composer is not None
    assert training.composer.hints is not None
    assert training.composer.hint_writer is None
    lines = training.composer.hints.read_text().splitlines()
    return training.fingerprint(), [json.loads(line) for line in lines]


def asked(server: RunningStub) -> list[str]:
    """The last message of every request."""
    return [json.loads(body)["messages"][-1]["content"] for body in server.server.bodies]


def spent_usd(workspace: Path, run_id: str) -> float:
    with Ledger(sqlite_url(workspace / "ledger.sqlite")) as ledger:
        found = ledger.spent(run_id)
        assert found.open_calls == 0
        return found.settled_nanousd / 1e9


def hint_runs(workspace: Path) -> list[dict[str, Any]]:
    return [record for _, record in read_run_records(Workspace(workspace)) if record["command"] == "hints"]


def test_a_teacher_writes_the_hints_once_and_is_marked_as_their_writer(
    folder: Path, server: RunningStub, release: TrainingRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    _, plain = rows_of(settings_of(folder, server.url, cap=None), release)
    assert asked(server) == []
    settings = settings_of(folder, server.url)
    first, rows = rows_of(settings, release)
    print(Counter((r["writer"], r["fallback"]) for r in rows), len(plain), len(asked(server)))
    print(capsys.readouterr().err)
    print(asked(server)[0]); print(rows[0]["hint"]); print(hint_runs(folder))
    assert 0
