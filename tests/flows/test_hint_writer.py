"""A teacher over a socket that writes the hints of a training: estimated, capped, accepted, paid for once."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from training_releases import released

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.forget.forget_run import forget_target
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.run_state.run_records import read_run_records
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.training.hint_rows_file import add_hint_rows
from tracemill.flows.training.hint_writer import HintConsent
from tracemill.flows.training.training_run import describe_training
from tracemill.records.errors import ConfigError, PrivacyError
from tracemill.records.families import family_of
from tracemill.records.identity import StepId
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.client.chat_teacher import SIMULATED_HEADER
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.openrouter_stub.responses import MARK
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.train.training_job import TrainingRelease

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
WRITER = "moonshotai/kimi-k3"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
FAILURES = ("refused", "truncated", "empty")
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
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), tmp_path / "w"))
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


def asked(server: RunningStubServer) -> list[str]:
    """The last message of every request."""
    return [json.loads(body)["messages"][-1]["content"] for body in server.server.bodies]


def spent_usd(workspace: Path, run_id: str) -> float:
    with Ledger(sqlite_url(workspace / "ledger.sqlite")) as ledger:
        found = ledger.spent(run_id)
        assert found.open_calls == 0
        return found.settled_nanousd / 1e9


def hint_runs(workspace: Path) -> list[dict[str, Any]]:
    return [record for _, record in read_run_records(Workspace(workspace)) if record["command"] == "hints"]


def writers(rows: Rows) -> Counter[str]:
    """How many hints are by whom; behind a colon why the writer's is missing."""
    return Counter(f"{row['writer']}: {row['fallback']}".removesuffix(": ") for row in rows)


def test_a_teacher_writes_the_hints_once_and_is_marked_as_their_writer(
    folder: Path, server: RunningStubServer, release: TrainingRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    _, plain = rows_of(settings_of(folder, server.url, cap=None), release)
    assert writers(plain) == {"template": len(plain)}
    assert server.server.account.requests == 0

    settings = settings_of(folder, server.url)
    [writer] = settings.teachers
    others = [writer.model_copy(update={"name": m, "model": m, "family": family_of(m)}) for m in MODELS]
    settings = settings.model_copy(update={"teachers": (*others, writer)})  # who are asked for no hint
    estimate = estimate_cost(settings).hints
    figures = r"(\d+) failed actions, at most (\d+) calls, \$(\d\.\d+), under a cap of \$1.0000 of its own"
    said = re.fullmatch(f"{WRITER}: {figures}", estimate)
    assert said is not None
    assert int(said[1]) == int(said[2]) == len(plain) == 21
    assert asked(server) == []
    first, rows = rows_of(settings, release)
    assert capsys.readouterr().err.splitlines()[0] == f"hints by {estimate}"
    assert len(asked(server)) == len(rows) == len(plain)
    [run] = hint_runs(folder)
    spent = spent_usd(folder, run["run_id"])
    assert 0 < spent < float(said[3])
    assert run["summary"]["summary"]["spent_usd"] == pytest.approx(spent)

    by = writers(rows)
    assert by == {WRITER: by[WRITER], "template: no hint": len(rows) - by[WRITER]}
    assert 0 < by["template: no hint"] < 7
    errors = {row["step_id"]: row for row in plain}
    for row in rows:
        written = row["writer"] == WRITER
        assert row["hint"].startswith("Look at what is there first.") == written == row["simulated"]
        assert row["hinted_prompt"][-1]["content"].endswith(row["hint"])
        changed = ("hint", "hinted_prompt", "writer", "fallback", "simulated")
        assert {k: v for k, v in row.items() if k not in changed} == {
            k: v for k, v in errors[row["step_id"]].items() if k not in changed
        }
    for text in asked(server):
        assert "took an action that failed" in text
        assert "\n\nThe error:\n" in text
    assert not any(b"ghp_" in body for body in server.server.bodies)

    requests = server.server.account.requests
    assert rows_of(settings, release) == (first, rows)
    assert server.server.account.requests == requests  # not even a price is read
    assert len(hint_runs(folder)) == 1
    left = re.search(r"21 failed actions, at most (\d+) calls, \$(\d\.\d+)", estimate_cost(settings).hints)
    assert left is not None
    assert (left[1], left[2]) == ("0", "0.0000")


def test_the_cap_of_the_hints_holds_and_the_next_training_spends_nothing(
    folder: Path, server: RunningStubServer, release: TrainingRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    cap = 0.03
    before = rows_of(settings_of(folder, server.url, cap), release)
    by = writers(before[1])
    assert 0 < by[WRITER] < 18
    assert by["template: not asked: budget"] == 21 - len(asked(server)) > 0
    [run] = hint_runs(folder)
    assert run["status"] == "at cap"
    spent = spent_usd(folder, run["run_id"])
    assert 0 < spent <= cap
    sent = asked(server)
    capsys.readouterr()
    assert rows_of(settings_of(folder, server.url, cap), release) == before
    assert asked(server) == sent
    assert spent_usd(folder, run["run_id"]) == spent
    assert "stopped at its cap of $0.0300 before, so nothing was asked" in capsys.readouterr().err

    _, more = rows_of(settings_of(folder, server.url, 1.0), release)  # a raised cap asks the rest alone
    assert writers(more)["template: not asked: budget"] == 0
    assert len(asked(server)) == len(set(asked(server))) == 21
    assert [record["run_id"] for record in hint_runs(folder)] == [run["run_id"]]


def test_refused_empty_and_cut_answers_fall_back_to_the_template_and_are_counted(
    folder: Path, key: str, release: TrainingRelease
) -> None:
    faults = [
        FaultSettings(kind=FaultKind.CONTENT_FILTER, probability=0.25),
        FaultSettings(kind=FaultKind.LENGTH, probability=0.25),
        FaultSettings(kind=FaultKind.EMPTY_MESSAGE, probability=0.8),
    ]
    with running(StubSettings(api_key=key, keep_bodies=True, faults=tuple(faults))) as server:
        settings = settings_of(folder, server.url, replay={"backoff_s": 0.01})
        first, rows = rows_of(settings, release)
        by = writers(rows)
        assert set(by) <= {WRITER, "template: no hint", *(f"template: {why}" for why in FAILURES)}
        assert all(by[f"template: {why}"] > 0 for why in FAILURES)
        assert sum(by.values()) == 21
        _, plain = rows_of(settings_of(folder, server.url, cap=None), release)
        hints = {row["step_id"]: row["hint"] for row in plain}
        assert all(row["hint"] == hints[row["step_id"]] for row in rows if row["writer"] == "template")
        [run] = hint_runs(folder)
        spent, sent = spent_usd(folder, run["run_id"]), len(asked(server))
        assert rows_of(settings, release) == (first, rows)  # what was refused is not asked for again
        assert len(asked(server)) == sent
        assert spent_usd(folder, run["run_id"]) == spent


def test_nothing_leaves_before_it_is_accepted_and_no_session_that_is_not_selected(
    folder: Path, server: RunningStubServer, release: TrainingRelease
) -> None:
    denied = {"deny_projects": ["parcels"]}
    settings = settings_of(folder, server.url, local=False, select=denied)
    refused = r"not accepted yet: .* would go to 1 model at http.* accept it with `x --yes`"
    with pytest.raises(PrivacyError, match=refused):
        rows_of(settings, release, HintConsent(accept_by="`x --yes`"))
    assert asked(server) == []
    _, rows = rows_of(settings, release, HintConsent(yes=True))
    sent = "".join(asked(server))
    assert 0 < len(asked(server)) < 21
    assert writers(rows)["template: not asked"] == 21 - len(asked(server))
    assert "almanac" in sent
    assert "parcels" not in sent
    (folder / "ledger.sqlite").unlink()
    rows_of(settings, release)  # accepted before, and asked again: the ledger is gone
    assert len(asked(server)) == 2 * len(set(asked(server)))


def test_a_training_that_asks_nobody_has_the_hints_that_were_bought(
    folder: Path, server: RunningStubServer, release: TrainingRelease
) -> None:
    settings, nobody = settings_of(folder, server.url), HintConsent(asks=False)
    _, rows = rows_of(settings, release, nobody)
    assert writers(rows) == {"template: not asked": 21}
    assert server.server.account.requests == 0
    assert hint_runs(folder) == []
    bought = rows_of(settings, release)
    requests = server.server.account.requests
    assert rows_of(settings, release, nobody) == bought
    assert server.server.account.requests == requests


@pytest.mark.slow  # a training wants the extra `train`
def test_a_dry_run_of_a_training_asks_nobody_and_says_what_is_left(
    folder: Path, server: RunningStubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = released(folder / "releases", rows=1, step_id="another-trace:0:0")
    for place, file in (("model", "config.json"), ("tasks/one", "task.toml")):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / file).write_text("")
    composer = {"tasks": str(tmp_path / "tasks"), "hint_writer": WRITER, "hint_max_usd": 1.0}
    training = {"model": str(tmp_path / "model"), "method": "composer", "composer": composer}
    settings = settings_of(folder, server.url, training=training)
    describe_training(settings, "views")
    said = capsys.readouterr().err
    assert "21 failed actions, at most 21 calls" in said
    assert said.endswith("under a cap of $1.0000 of its own: not asked now\n")
    assert server.server.account.requests == 0
    release = TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )
    rows_of(settings, release)
    sent, _ = len(asked(server)), capsys.readouterr()
    described = describe_training(settings, "views")
    assert capsys.readouterr().err == ""
    assert len(asked(server)) == sent == 21
    assert described == describe_training(settings, "views")


def test_what_teachers_agreed_on_follows_a_written_hint(
    folder: Path, server: RunningStubServer, release: TrainingRelease, tmp_path: Path
) -> None:
    settings = settings_of(folder, server.url)
    _, rows = rows_of(settings, release)
    row = next(row for row in rows if row["writer"] == WRITER)
    assert release.path is not None
    made = released(tmp_path / "b", rows=1, step_id=row["step_id"])
    (made.path / "data" / "sft").rename(release.path / "data" / "agreed")
    sent = len(asked(server))
    _, again = rows_of(settings, release)
    [changed] = [new["hint"] for old, new in zip(rows, again, strict=True) if new != old]
    assert changed.startswith(f"{row['hint']}\n\nA better next action is:\nI test.\nBash ")
    assert len(asked(server)) == sent


def test_a_forgotten_session_is_gone_from_the_hints_and_the_models_that_saw_it_are_named(
    folder: Path,
    server: RunningStubServer,
    release: TrainingRelease,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(MARK, SIMULATED_HEADER)  # as a real model answers
    settings = settings_of(folder, server.url)
    _, rows = rows_of(settings, release)
    assert not any(row["simulated"] for row in rows)
    trace_id = StepId.parse(rows[0]["step_id"]).trace_id
    (folder / "trainings" / "states").mkdir()  # of a training on what teachers answered
    record = forget_target(settings, trace_id, "trace", yes=True, everything=False)
    assert f"What was sent to {WRITER} (simulated), under their terms." in record["remains"]
    assert not (folder / "trainings" / "hints").exists()
    assert not (folder / "trainings" / "states").exists()
    with Ledger(sqlite_url(folder / "ledger.sqlite")) as ledger:
        assert not [text for _, text in ledger.texts() if trace_id in text]
    sent = len(asked(server))
    _, left = rows_of(settings, release)
    assert left == [row for row in rows if StepId.parse(row["step_id"]).trace_id != trace_id]
    assert len(asked(server)) == sent


def test_a_writer_that_cannot_be_is_refused_before_anything_is_asked(
    folder: Path, server: RunningStubServer, release: TrainingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = settings_of(folder, server.url, teachers=[], judge={"type": "simulated", "model": "a/judge"})
    with pytest.raises(ConfigError, match=rf"'{WRITER}' names no teacher; .*\(a/judge\)"):
        rows_of(named, release)
    terms = {
        "type": "openrouter",
        "base_url": server.url,
        "local": True,
        "model": "anthropic/claude-opus-4.5",
    }
    restricted = settings_of(folder, server.url, teachers=[terms | {"name": WRITER}])
    with pytest.raises(ConfigError, match="--accept-terms"):
        rows_of(restricted, release)
    monkeypatch.delenv("OPENROUTER_API_KEY")
    with pytest.raises(ConfigError, match="OPENROUTER_API_KEY"):
        rows_of(settings_of(folder, server.url), release)
    assert server.server.account.requests == 0
    assert hint_runs(folder) == []
