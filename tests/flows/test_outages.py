"""A schedule hears of a night in which nobody answered, and of no question that fails every night."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracemill.cli.commands import replay_command
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
KEY = "k-outages-0123456789"


def _serving(kind: FaultKind | None = None) -> Iterator[RunningStubServer]:
    faults = (FaultSettings(kind=kind),) if kind else ()
    with running(StubSettings(api_key=KEY, faults=faults)) as server:
        yield server


@pytest.fixture
def well() -> Iterator[RunningStubServer]:
    yield from _serving()


@pytest.fixture
def refusing() -> Iterator[RunningStubServer]:
    yield from _serving(FaultKind.BAD_REQUEST)


@pytest.fixture
def locked() -> Iterator[RunningStubServer]:
    yield from _serving(FaultKind.WRONG_KEY)


class Nights:
    """A workspace that sessions come to, and replays of all it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> None:
        order = order_of([str(SESSIONS / name)], min_age_minutes=0)
        ingest_everything(IngestOptions(order, self.root))

    def ask(self, server: RunningStubServer) -> int:
        """The exit code of a replay."""
        teachers = [{"type": "openrouter", "model": m, "base_url": server.url, "local": True} for m in MODELS]
        given = {"workspace": str(self.root), "teachers": teachers, "budget": {"max_total_usd": 5}}
        try:
            replay_command(load_settings(None, given), as_json=True, yes=True)
        except SystemExit as ended:
            return int(str(ended.code))
        return 0


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return Nights(tmp_path / "w")


def test_an_outage_is_told_once_questions_are_new(
    nights: Nights, well: RunningStubServer, refusing: RunningStubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    nights.read("-home-dev-parcels")
    assert nights.ask(well) == 0
    assert nights.ask(refusing) == 0  # nothing was to be asked
    nights.read("-home-dev-almanac")
    assert nights.ask(refusing) == 1
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("tracemill: teachers were asked and none answered (")
    assert "bad_request" in told
    assert nights.ask(refusing) == 0  # the same questions again, and all others have their answers
    assert nights.ask(well) == 0


def test_an_outage_that_lasts_and_leaves_questions_open_is_told_every_night(
    nights: Nights, well: RunningStubServer, locked: RunningStubServer
) -> None:
    nights.read("-home-dev-parcels")
    assert nights.ask(well) == 0
    nights.read("-home-dev-almanac")
    assert [nights.ask(locked), nights.ask(locked)] == [1, 1]


@pytest.mark.slow
@pytest.mark.long
def test_a_run_without_any_answer_is_told_every_night(nights: Nights, refusing: RunningStubServer) -> None:
    nights.read("-home-dev-almanac")
    assert [nights.ask(refusing), nights.ask(refusing)] == [1, 1]
