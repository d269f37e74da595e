"""Nothing leaves before it is accepted: over a real socket at an address that is not this machine's own.

The server listens on 127.0.0.2, which needs consent as any other host does; 127.0.0.1 needs none.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from console_says import record_of, refusal_of
from prefect_database import prefect_home

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.destinations import Destination, list_destinations
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
KEY = "sk-or-test-only-0123456789"
ELSEWHERE = "127.0.0.2"
MODELS = ("deepseek-a", "kimi-a", "glm-a", "qwen-a")
Run = Callable[..., CompletedProcess[str]]


def _server(host: str = ELSEWHERE) -> AbstractContextManager[RunningStubServer]:
    return running(StubSettings(api_key=KEY, keep_bodies=True), host=host)


def _config(tmp_path: Path, models: tuple[str, ...] = MODELS, more: str = "", extra: str = "") -> Path:
    path = tmp_path / "run.toml"
    teachers = "".join(
        f"[[teachers]]\ntype = 'openrouter'\nmodel = 'simulated/{model}'\n{more}\n" for model in models
    )
    path.write_text(
        f"workspace = 'w'\n[budget]\nmax_total_usd = 5\n[replay]\nstop = 'off'\n{extra}\n{teachers}"
    )
    return path


def _run(tracemill: Run, config: Path, server: RunningStubServer, *flags: object) -> CompletedProcess[str]:
    env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
    return tracemill("run", config, "--claude-code", EXAMPLES / "claude_code", "--json", *flags, **env)


@pytest.fixture(scope="module")
def ingested(console: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that holds the three sessions of two projects."""
    work = tmp_path_factory.mktemp("ingested") / "w"
    assert console("ingest", EXAMPLES / "claude_code", "--workspace", work).returncode == 0
    return work


def _replay(console: Run, config: Path, server: RunningStubServer, *flags: object) -> CompletedProcess[str]:
    env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
    return console("replay", config, "--json", *flags, **env)


def _consents(tmp_path: Path) -> list[dict]:
    return json.loads((tmp_path / "w" / "consents.json").read_text())["consents"]


def test_without_consent_nothing_is_sent_and_the_traces_stay(tracemill: Run, tmp_path: Path) -> None:
    with _server() as server:
        line = refusal_of(_run(tracemill, _config(tmp_path), server))
        assert server.stats()["requests"] == 0
    assert "3 sessions" in line
    assert f"almanac, parcels would go to 4 models at {server.url.removesuffix('/api/v1')}; nothing" in line
    work = Workspace.open(tmp_path / "w", create=False)
    assert sum(table.num_rows for table in work.current("traces")) == 3
    assert list(work.current("decisions")) == []
    assert not (tmp_path / "w" / "ledger.sqlite").exists()
    assert not (tmp_path / "w" / "consents.json").exists()
    said = json.loads(next((tmp_path / "w" / "runs").glob("*/consent.json")).read_text())
    assert [(p["name"], p["place"], p["sessions"], p["states"]) for p in said["projects"]] == [
        ("almanac", "/home/user/almanac", 1, 12),
        ("parcels", "/home/user/parcels", 2, 22),
    ]
    assert all(0.001 < p["megabytes"] < 0.2 for p in said["projects"])
    origin = server.url.removesuffix("/api/v1")
    assert {(d["origin"], d["model"], d["data_collection"]) for d in said["destinations"]} == {
        (origin, f"simulated/{model}", "deny") for model in MODELS
    }
    assert said["found_and_replaced"]["GITHUB_TOKEN"] == 1


@pytest.mark.slow
def test_accepted_once_it_is_recorded_and_asks_no_more(tracemill: Run, tmp_path: Path) -> None:
    with _server() as server:
        config = _config(tmp_path)
        done = _run(tracemill, config, server, "--yes")
        first = record_of(done)
        for said in (
            "almanac",
            "parcels",
            "2 sessions, 22 steps",
            "simulated/glm-a at http://127.0.0.2:",
            "data_collection = deny",
        ):
            assert said in done.stderr
        assert "GITHUB_TOKEN" in done.stderr
        assert first["summary"]["calls"] > 80
        (consent,) = _consents(tmp_path)
        assert (consent["how"], consent["redaction"][0], len(consent["date"])) == ("--yes", "r", 20)
        assert {p["name"] for p in consent["projects"]} == {"almanac", "parcels"}
        assert {d["origin"] for d in consent["destinations"]} == {server.url.removesuffix("/api/v1")}
        again = _run(tracemill, config, server)
        assert record_of(again)["summary"]["reused"] == first["summary"]["asked"]
        assert "What would leave" not in again.stderr
    assert len(_consents(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.long
def test_a_run_whose_lists_let_more_through_asks_again(tracemill: Run, tmp_path: Path) -> None:
    with _server() as server:
        done = _run(tracemill, _config(tmp_path, extra="[privacy]\nredact = ['seedling']"), server, "--yes")
        assert "Under [privacy]: 1 value redacted (entries and .env files), 0 allowed\n" in done.stderr
        received = server.stats()["requests"]
        allowing = _config(tmp_path, extra="[privacy]\nredact = ['seedling']\nallow = ['dev']")
        assert _run(tracemill, allowing, server).returncode == 0  # text that is stored stays as it is
        line = refusal_of(_run(tracemill, allowing, server, "--reredact"))
        assert "[privacy] allows more than was accepted before; nothing was sent" in line
        assert server.stats()["requests"] == received
        stricter = _config(tmp_path, extra="[privacy]\nredact = ['seedling', 'customs']")
        assert _run(tracemill, stricter, server).returncode == 0


@pytest.mark.slow
def test_a_new_project_asks_for_the_new_project_alone(console: Run, tmp_path: Path, ingested: Path) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    with _server() as server:
        config = _config(tmp_path)
        first = record_of(_replay(console, config, server, "--project", "almanac", "--yes"))
        received = server.stats()["requests"]
        line = refusal_of(_replay(console, config, server))
        assert "2 sessions" in line
        assert "of parcels would go" in line
        assert server.stats()["requests"] == received
        second = _replay(console, config, server, "--yes")
        assert "almanac" not in second.stderr
    assert first["summary"]["states"] == 12
    assert record_of(second)["summary"]["reused"] == first["summary"]["asked"]
    assert [[p["name"] for p in c["projects"]] for c in _consents(tmp_path)] == [["almanac"], ["parcels"]]


@pytest.mark.slow
def test_a_weaker_policy_and_a_new_teacher_ask_again_and_a_stronger_policy_does_not(
    console: Run, tmp_path: Path, ingested: Path
) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    narrow, allow = ("--project", "almanac"), "data_collection = 'allow'"
    with _server() as server:
        record_of(_replay(console, _config(tmp_path, MODELS[:3]), server, *narrow, "--yes"))
        received = server.stats()["requests"]
        line = refusal_of(_replay(console, _config(tmp_path, MODELS), server, *narrow))
        assert "would go to 1 model " in line
        line = refusal_of(_replay(console, _config(tmp_path, MODELS[:3], allow), server, *narrow))
        assert "would go to 3 models" in line
        assert server.stats()["requests"] == received
        stronger = _config(tmp_path, MODELS[:3], "enforce_distillable_text = true")
        assert record_of(_replay(console, stronger, server, *narrow))["summary"]["states"] == 12
    assert len(_consents(tmp_path)) == 1


@pytest.mark.slow
def test_a_server_on_this_machine_needs_consent_unless_it_is_local(
    console: Run, tmp_path: Path, ingested: Path
) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    with _server("127.0.0.1") as server:
        line = refusal_of(_replay(console, _config(tmp_path), server, "--project", "almanac"))
        assert "would go to 4 models at http://127.0.0.1:" in line
        assert server.stats()["requests"] == 0
        local = _config(tmp_path, MODELS, "local = true")
        record = record_of(_replay(console, local, server, "--project", "almanac"))
    assert record["summary"]["calls"] == 48
    assert not (tmp_path / "w" / "consents.json").exists()


@pytest.mark.slow
def test_a_replay_of_a_workspace_needs_the_same_consent(console: Run, tmp_path: Path, ingested: Path) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    config = _config(tmp_path)
    with _server() as server:
        line = refusal_of(_replay(console, config, server))
        assert "almanac, parcels would go to 4 models" in line
        assert server.stats()["requests"] == 0
        record = record_of(_replay(console, config, server, "--yes"))
        assert record["summary"]["calls"] == record["summary"]["asked"] == 34 * 4
        assert record_of(_replay(console, config, server))["summary"]["reused"] == 34 * 4


def _heeding_interrupts() -> None:
    """As on a terminal, also where the tests run in the background of a shell, which ignores them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _on_terminal(
    answer: str, config: Path, server: RunningStubServer, *command: object, **environment: str
) -> tuple[int, str]:
    """The command on a pseudo-terminal, with this answer to its question; an empty one is a Ctrl-C, which a
    terminal sends to all of its processes. Exit code and all that was shown."""
    ours, theirs = pty.openpty()
    script = str(Path(sys.executable).parent / "tracemill")
    given = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY, "TERM": "dumb"}
    process = subprocess.Popen(
        [script, *map(str, command), str(config)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=dict(os.environ) | given | environment,
        start_new_session=True,
        preexec_fn=_heeding_interrupts,
    )
    os.close(theirs)
    shown, asked = b"", False
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
            if b"[y/N]" in shown and not asked:
                asked = True
                os.write(ours, answer.encode()) if answer else os.killpg(process.pid, signal.SIGINT)
    except OSError:  # the other side was closed
        pass
    os.close(ours)
    return process.wait(timeout=120), shown.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), ("y\n", 0)])
def test_on_a_terminal_it_asks(tmp_path: Path, ingested: Path, answer: str, code: int) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    with _server() as server:
        found, shown = _on_terminal(answer, _config(tmp_path), server, "replay")
        assert found == code, shown[-1500:]
        assert "Send this? [y/N]" in shown
        assert (server.stats()["received"] > 80) == (code == 0)
    if code == 0:
        assert [consent["how"] for consent in _consents(tmp_path)] == ["asked"]
    else:
        assert not (tmp_path / "w" / "consents.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("replay",),
        pytest.param(("run", "--claude-code", EXAMPLES / "claude_code"), marks=pytest.mark.long),
    ],
)
def test_a_ctrl_c_at_the_question_ends_with_130(tmp_path: Path, ingested: Path, command: tuple) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    with _server() as server:
        home = str(prefect_home(tmp_path / "prefect"))  # a server of its own, which the Ctrl-C ends too
        code, shown = _on_terminal("", _config(tmp_path), server, *command, PREFECT_HOME=home)
        assert server.stats()["requests"] == 0
    assert code == 130, shown[-1500:]
    assert shown.rstrip().endswith("interrupted; the same command resumes and pays nothing twice")
    assert not (tmp_path / "w" / "consents.json").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"consents": [{"date": "2026-01-01"}]}', '{"consents": 3}'])
def test_a_broken_record_of_consents_sends_nothing(
    console: Run, tmp_path: Path, ingested: Path, text: str
) -> None:
    shutil.copytree(ingested, tmp_path / "w")
    (tmp_path / "w" / "consents.json").write_text(text)
    with _server() as server:
        line = refusal_of(_replay(console, _config(tmp_path), server, "--yes"))
        assert server.stats()["requests"] == 0
    assert "consents.json" in line


def test_where_a_teacher_is_decides_whether_it_needs_consent() -> None:
    teachers = [
        {"type": "openrouter", "model": "a/b", "enforce_distillable_text": True, "provider": "one"},
        {"type": "openai_compatible", "model": "q", "base_url": "http://LOCALHOST:8000/v1", "local": True},
        {"type": "openai_compatible", "model": "r", "base_url": "http://[::1]:8000/v1", "local": True},
        {"type": "openai_compatible", "model": "u", "base_url": "http://127.0.0.1:4000/v1"},
        {"type": "openai_compatible", "model": "v", "base_url": "http://relay.example/v1", "local": True},
        {"type": "openai_compatible", "model": "s", "base_url": "http://gpu.example:8000/v1"},
        {"type": "openai_compatible", "model": "t", "base_url": "http://127.0.0.1.example/v1"},
        {"type": "openrouter", "model": "w", "base_url": "http://127.0.0.1:4000/v1"},
        {"type": "openrouter", "model": "x", "base_url": "http://127.0.0.1:4000/v1", "local": True},
        {"type": "openrouter", "model": "y", "base_url": "http://relay.example/v1", "local": True},
        {"type": "simulated", "model": "simulated/glm-a"},
    ]
    settings = RunSettings.model_validate({"teachers": teachers})
    assert list_destinations(settings, {}) == [
        Destination("http://127.0.0.1.example", "t"),
        Destination("http://127.0.0.1:4000", "u"),
        Destination("http://127.0.0.1:4000", "w", data_collection="deny"),
        Destination("http://gpu.example:8000", "s"),
        Destination("http://relay.example", "v"),
        Destination("http://relay.example", "y", data_collection="deny"),
        Destination("https://openrouter.ai", "a/b", "one", "deny", True),
    ]
    found = list_destinations(settings, {"TRACEMILL_OPENROUTER_URL": "http://127.0.0.1:9/v1"})
    assert [d.model for d in found] == ["t", "u", "w", "a/b", "s", "v", "y"]


def test_what_one_destination_covers_of_another() -> None:
    strict = Destination("h", "m", "any", "deny", True)
    loose = Destination("h", "m", "any", "allow", False)
    pinned = Destination("h", "m", "one", "deny", True)
    assert loose.covers(strict)
    assert strict.covers(pinned)
    assert strict.covers(strict)
    for wider in (
        loose,
        Destination("h", "m", "any", "unstated", True),
        Destination("h", "n", "any", "deny", True),
    ):
        assert not strict.covers(wider)
    assert not pinned.covers(strict)
