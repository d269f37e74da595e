"""What is said before anything is spent, and what is asked again: counted at the server, over a socket."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from teacher_chains import free_port

from tracemill.cli.estimate_output import estimate_rows
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.dry_run import write_requests
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.storage.table_rows import replies_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "examples" / "sessions" / "claude_code"
NAMES = ("deepseek-a", "kimi-a", "glm-a")
MODELS = tuple(f"simulated/{name}" for name in NAMES)
KEY = "sk-or-beforehand"
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Claude Code examples, ingested; to be copied."""
    folder = tmp_path_factory.mktemp("beforehand") / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    return folder


@pytest.fixture
def work(ingested: Path, tmp_path: Path) -> Path:
    return shutil.copytree(ingested, tmp_path / "w")


def settings_of(work: Path, url: str, temperature: float | None = None) -> RunSettings:
    teachers = [
        {
            "type": "openrouter",
            "model": m,
            "base_url": url,
            "local": True,
            "max_tokens": 50,
            "temperature": temperature,
        }
        for m in MODELS
    ]
    given: dict[str, Any] = {"workspace": str(work), "teachers": teachers, "budget": {"max_total_usd": 5}}
    return load_settings(None, given | {"replay": {"stop": "off"}})


def manifest(work: Path, run_id: str) -> dict[str, Any]:
    return json.loads((work / "runs" / run_id / "replay.json").read_text())


def priced(prompt: float) -> dict[str, PriceSettings]:
    return {m: PriceSettings.model_validate({"prompt_usd": prompt, "completion_usd": 2}) for m in MODELS}


def test_a_price_that_changed_since_the_last_run_is_one_line_in_replay_and_estimate_and_buys_nothing(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    with running(StubSettings(api_key=KEY, models=priced(1.0)), port=port) as server:
        first = replay_workspace(settings_of(work, server.url))
        paid = server.stats()["paid"]
    kept = manifest(work, first["run_id"])["prices"]
    assert sorted(kept) == sorted(MODELS)
    one = kept[MODELS[0]]
    assert (one["server"], one["model"], one["snapshot"]) == (server.url, MODELS[0], MODELS[0])
    assert one["entry"]["pricing"]["prompt"] == "0.000001"
    assert "prices" not in first
    capsys.readouterr()

    changed = {**priced(1.0), MODELS[1]: PriceSettings.model_validate({"prompt_usd": 3, "completion_usd": 4})}
    with running(StubSettings(api_key=KEY, models=changed), port=port) as server:
        line = (
            f"{MODELS[1]}: prompt price $1 per million -> $3 per million, "
            f"completion price $2 per million -> $4 per million since {one['read_at'][:10]}\n"
        )
        estimate_cost(settings_of(work, server.url), refresh=True)
        assert capsys.readouterr().err == line
        replay_workspace(settings_of(work, server.url, temperature=0.5))
        assert capsys.readouterr().err == line  # another one than the last run rests on
        assert server.stats()["received"] == paid
        again = replay_workspace(settings_of(work, server.url))
        assert server.stats()["received"] == paid  # a new price list buys nothing anew
        assert again["summary"]["reused"] == paid
        replay_workspace(settings_of(work, server.url, temperature=0.7))
        assert capsys.readouterr().err == ""  # the last run has the new prices in its manifest

    with running(StubSettings(api_key=KEY, models=priced(5.0)), port=port) as server:
        estimate_cost(settings_of(work, server.url), refresh=True)
        estimated = capsys.readouterr().err
        assert "prompt price $3 per million -> $5 per million" in estimated
        bought = replay_workspace(settings_of(work, server.url))
        assert bought["summary"]["calls"] == 0
        assert capsys.readouterr().err == ""
        kept = manifest(work, bought["run_id"])["prices"][MODELS[1]]
        assert kept["entry"]["pricing"]["prompt"] == "0.000003"  # of the last run that read them
        replay_workspace(settings_of(work, server.url, temperature=0.9))
        assert capsys.readouterr().err == estimated


def too_long(work: Path) -> Counter[str]:
    replies = [r for t in Workspace.open(work).current("replies") for r in replies_from_table(t)]
    return Counter(r.teacher for r in replies if r.failure == "context_too_long")


def test_prompts_longer_than_a_context_are_said_beforehand_and_are_rows_without_a_request(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contexts = {MODELS[0]: 600, MODELS[1]: 60}
    with running(StubSettings(api_key=KEY, contexts=contexts)) as server:
        settings = settings_of(work, server.url)
        found = {f.teacher: f for f in estimate_cost(settings, refresh=True).teachers}
        states = found[MODELS[2]].calls
        some, every = found[MODELS[0]].too_long, found[MODELS[1]].too_long
        assert 0 < some < states == every == found[MODELS[1]].states
        assert (found[MODELS[0]].calls, found[MODELS[1]].calls) == (states - some, 0)
        text = dict(estimate_rows(estimate_cost(settings)))
        assert f"{some} more prompts are longer than the model's context" in text[MODELS[0]]
        assert f"all {every} prompts are longer than the model's context" in text[MODELS[1]]
        record = write_requests(settings)
        assert record["too_long"] == {MODELS[0]: some, MODELS[1]: every, MODELS[2]: 0}
        assert record["requests"] == {MODELS[0]: states - some, MODELS[1]: 0, MODELS[2]: states}
        capsys.readouterr()

        done = replay_workspace(settings)["summary"]
        said = sorted(capsys.readouterr().err.splitlines())
        assert said == [
            f"{MODELS[0]}: {some} of {states} prompts are longer than its context of 600 tokens: "
            "not sent, recorded as context_too_long",
            f"{MODELS[1]}: every prompt is longer than its context of 60 tokens: "
            "not sent, recorded as context_too_long",
        ]
        stats = server.stats()
        assert stats["received"] == done["calls"] <= 2 * states - some
        assert MODELS[1] not in stats["by_model"]
        assert stats["by_model"][MODELS[2]] == states
        assert too_long(work)[MODELS[1]] == every
        assert too_long(work)[MODELS[0]] >= some
        assert done["failures"] == {"context_too_long": sum(too_long(work).values())}
        requests = server.stats()["requests"]
        replay_workspace(settings)
        assert server.stats()["requests"] == requests  # kept like answers: not even a price is read


@pytest.fixture(scope="module")
def console_work(ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(ingested, tmp_path_factory.mktemp("cli") / "w")


def refusal(done: CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr[-2000:]
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("tracemill: ")
    assert KEY not in line
    return line


def config_of(folder: Path, work: Path, model: str = MODELS[0]) -> Path:
    models = (model, *MODELS[1:])
    teachers = "".join(
        f"[[teachers]]\ntype = 'openrouter'\nmodel = '{m}'\nlocal = true\nmax_tokens = 200\n" for m in models
    )
    path = folder / "run.toml"
    path.write_text(f"workspace = '{work}'\n[budget]\nmax_total_usd = 5\n{teachers}")
    return path


@pytest.mark.parametrize("command", [("replay",), ("estimate", "--refresh")], ids=" ".join)
def test_what_cannot_be_asked_is_one_line_and_nothing_is_spent(
    console: Run, console_work: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    config = config_of(tmp_path, console_work)
    with running(StubSettings(api_key=KEY, without_tools=(MODELS[2],))) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
        assert f"{MODELS[2]!r} cannot call tools" in refusal(console(*command, config, **env))
        wrong = env | {"OPENROUTER_API_KEY": "another-key"}
        assert f"{server.url} refused the API key" in refusal(console(*command, config, **wrong))
        nobody = config_of(tmp_path, console_work, "simulated/deepseek-z")
        line = refusal(console(*command, nobody, **env))
        assert (
            "has no model 'simulated/deepseek-z'; expected a model id from its list, such as simulated/"
            in line
        )
        assert server.stats()["received"] == 0
    config = config_of(tmp_path, console_work)
    assert "does not answer" in refusal(console(*command, config, **env))
    unset = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": ""}
    assert "OPENROUTER_API_KEY" in refusal(console(*command, config, **unset))


def test_without_network_or_key_estimate_and_dry_run_go_by_what_is_known(
    console: Run, console_work: Path, tmp_path: Path
) -> None:
    """They look for nothing at a server: what only it knows is found by `--refresh`."""
    env = {"TRACEMILL_OPENROUTER_URL": f"http://127.0.0.1:{free_port()}/api/v1", "OPENROUTER_API_KEY": ""}
    nobody = config_of(tmp_path, console_work, "deepseek/nothing")
    done = console("estimate", nobody, **env)
    assert done.returncode == 0
    assert "deepseek/nothing: nowhere: counted as free" in done.stdout
    done = console("replay", "--dry-run", nobody, "--json", **env)
    assert json.loads(done.stdout)["requests"]["deepseek/nothing"] > 20
