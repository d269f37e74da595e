"""What a server that does not answer costs: a few attempts in a run, whatever the number of questions."""

import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracemill.cli.commands import replay_command
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.errors import TeacherError
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
KEY = "k-given-up-0123456789"
MORE = 10
"""Attempts beyond those in flight that a dead server may cost a run."""
MORE_CONTEXTS = 3


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the sessions of the examples, those of Claude Code several times over: every file is a
    session of its own."""
    folder = tmp_path_factory.mktemp("given-up")
    sessions = folder / "sessions"
    shutil.copytree(EXAMPLES, sessions)
    for file in sorted((sessions / "claude_code").rglob("*.jsonl")):
        for number in range(MORE_CONTEXTS):
            name = f"{file.stem[:-2]}{number:02}"
            text = file.read_text().replace(file.stem, name).replace("src/", f"src{number}/")
            (file.parent / f"{name}.jsonl").write_text(text)
    ingest_everything(IngestOptions(order_of([str(sessions)], min_age_minutes=0), folder / "w"))
    return folder / "w"


@pytest.fixture
def work(ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return Path(shutil.copytree(ingested, tmp_path / "w"))


class Outcome:
    def __init__(self, code: int, said: str, record: dict[str, Any]) -> None:
        self.code, self.said, self.summary = code, said, record["summary"]


def ask(
    work: Path, url: str, capsys: pytest.CaptureFixture[str], concurrency: int = 8, **replay: Any
) -> Outcome:
    """One `tracemill replay` over the workspace."""
    teachers = [{"type": "openrouter", "model": model, "base_url": url, "local": True} for model in MODELS]
    given = {"workspace": str(work), "teachers": teachers, "budget": {"max_total_usd": 50}}
    given["replay"] = {"concurrency": concurrency, "backoff_s": 0.005, "stop": "off", **replay}
    capsys.readouterr()
    code = 0
    try:
        replay_command(load_settings(None, given), as_json=True, yes=True)
    except SystemExit as ended:
        code = int(str(ended.code))
    out, err = capsys.readouterr()
    return Outcome(code, err, json.loads(out))


@contextmanager
def broken(kind: FaultKind, **when: Any) -> Iterator[Any]:
    faults = (FaultSettings(kind=kind, retry_after_s=0.01, **when),)
    with running(StubSettings(api_key=KEY, faults=faults)) as server:
        yield server


@pytest.mark.parametrize(
    ("kind", "concurrency"),
    [
        (FaultKind.RATE_LIMIT, 8),
        (FaultKind.BAD_REQUEST, 8),
        (FaultKind.PROXY_PAGE, 8),
        (FaultKind.SERVER_ERROR, 1),
        pytest.param(FaultKind.SERVER_ERROR, 64, marks=pytest.mark.slow),
    ],
)
def test_a_server_that_dies_costs_what_is_in_flight_and_ten_attempts(
    work: Path, capsys: pytest.CaptureFixture[str], kind: FaultKind, concurrency: int
) -> None:
    with broken(kind, after_requests=30) as server:
        told = ask(work, server.url, capsys, concurrency)
        received = server.stats()["received"]
    assert 30 < received <= 30 + concurrency + MORE
    assert told.code == 1
    assert told.summary["outages"].keys() == set(MODELS)
    assert {why.split(" failed ")[0] for why in told.summary["outages"].values()} <= {"it", "its server"}
    assert "teachers given up; the same command asks them again: " in told.said
    assert all(told.said.count(model) == 1 for model in MODELS)
    questions = 3 * told.summary["states"]
    assert questions > 250
    assert told.summary["left_over"] > questions - received - 3 * 64
    with running(StubSettings(api_key=KEY)) as well:
        again = ask(work, well.url, capsys)
    assert (again.code, again.summary["outages"], again.summary["left_over"]) == (0, {}, 0)


def test_one_teacher_that_fails_does_not_keep_the_others_from_answering(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with broken(FaultKind.SERVER_ERROR, model=MODELS[0]) as server:
        told = ask(work, server.url, capsys, 32)
        stats = server.stats()
    assert told.summary["outages"].keys() == {MODELS[0]}
    kin = told.summary["not_asked"]["student family"]
    assert told.summary["answered_now"] == 2 * told.summary["states"] - kin
    assert MORE <= stats["faults"]["500"] <= 32 + MORE
    assert told.code == 1


def test_an_outage_of_moments_costs_no_question(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first requests fail; attempts that go out alone find the server again."""
    with broken(FaultKind.SERVER_ERROR, first_requests=8) as server:
        told = ask(work, server.url, capsys, 8)
        faults = server.stats()["faults"]
    assert (told.code, told.summary["outages"], told.summary["left_over"]) == (0, {}, 0)
    assert (faults, told.summary["failed_now"]) == ({"500": 8}, {})


def test_faults_between_answers_give_nobody_up(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with broken(FaultKind.UNAVAILABLE, probability=0.3) as server:
        told = ask(work, server.url, capsys, 16, max_attempts=12)
    assert (told.code, told.summary["outages"], told.summary["left_over"]) == (0, {}, 0)
    assert not told.summary["failed_now"]


def test_a_session_whose_prompts_are_refused_is_not_sent_further(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every question of one teacher is refused with 400: two of a context are sent, none a third time."""
    with broken(FaultKind.BAD_REQUEST, model=MODELS[0]) as server:
        told = ask(work, server.url, capsys, 1)
        stats = server.stats()
    assert stats["faults"] == {"400": MORE}
    assert told.summary["failed_now"]["bad_request"] > MORE


def test_pages_that_fail_at_first_do_not_end_the_start(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        running(StubSettings(api_key=KEY, page_failures=1_000)) as server,
        pytest.raises(TeacherError, match=r"gave no model list \(HTTP 503\)"),
    ):
        ask(work, server.url, capsys)
    with running(StubSettings(api_key=KEY, page_failures=3)) as server:
        told = ask(work, server.url, capsys)
    assert (told.code, told.summary["left_over"]) == (0, 0)


def test_a_server_that_is_not_there_is_one_error(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(TeacherError, match="does not answer"):
            ask(work, f"http://127.0.0.1:{port}/api/v1", capsys)
