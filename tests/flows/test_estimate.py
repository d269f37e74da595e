"""What a replay would cost, said before it is made, and the very requests it would send."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tracemill.cli.estimate_output import estimate_rows
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.dry_run import write_requests
from tracemill.flows.estimate.estimate_cost import Estimate, estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace, replay_workspace
from tracemill.records.errors import ConfigError, TeacherError, WorkspaceError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.planning.early_stop_rates import early_stop_ask_rates
from tracemill.teachers.planning.measured_usage import ANSWER_TOKENS, BYTES_A_TOKEN

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "examples" / "sessions" / "claude_code"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
LOOPBACK = "http://127.0.0.1:9/api/v1"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Claude Code examples, ingested."""
    folder = tmp_path_factory.mktemp("estimate") / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    return folder


def settings_of(workspace: Path, url: str = LOOPBACK, **more: Any) -> RunSettings:
    teachers = [
        {"type": "openrouter", "model": m, "base_url": url, "local": True, "max_tokens": 500} for m in MODELS
    ]
    given = {"workspace": str(workspace), "teachers": teachers, "budget": {"max_total_usd": 5}}
    return load_settings(None, given | more)


def of(found: Estimate, model: str) -> Any:
    return next(figures for figures in found.teachers if figures.teacher == model)


def test_an_estimate_needs_no_key_and_no_network_and_says_what_it_rests_on(workspace: Path) -> None:
    found = estimate_cost(settings_of(workspace))
    a_call = [f.usd_cached / f.calls for f in found.teachers]
    assert a_call == sorted(a_call)
    for figures in found.teachers:
        assert figures.calls == figures.states > 20
        assert figures.price_from == "the table of 2026-11-21"
        assert (figures.measured.replies, figures.measured.bytes_a_token) == (0, BYTES_A_TOKEN)
        assert figures.answer_tokens == figures.calls * ANSWER_TOKENS
        assert 0 < figures.usd_early <= figures.usd_cached < figures.usd_uncached
    glm = of(found, "z-ai/glm-5.3")
    by_hand = glm.prompt_tokens * 1.4e-6 + glm.answer_tokens * 4.4e-6
    assert glm.usd_uncached == pytest.approx(by_hand, rel=1e-6)
    assert found.total.usd_cached == pytest.approx(sum(f.usd_cached for f in found.teachers))
    assert (found.total.calls, found.cap_usd) == (sum(f.calls for f in found.teachers), 5.0)
    text = "\n".join(f"{name} {figures}" for name, figures in estimate_rows(found))
    for said in ("the table of 2026-11-21", "assumed", "of the steps ask", "$5.00 covers every call"):
        assert said in text
    assert (
        text.count("the table of 2026-11-21") == text.count("bytes/token") == 1
    )  # said once for all of them
    assert not Workspace.open(workspace, create=False).ledger_path.exists()


def test_a_cap_below_the_cost_says_what_it_buys(workspace: Path) -> None:
    found = estimate_cost(settings_of(workspace))
    within = found.by_share[2]
    little = replace(found, cap_usd=within.usd + 1e-9)
    told = dict(estimate_rows(little))["cap"].splitlines()
    assert told[0].endswith("does not cover it: a run stops there and keeps what it bought")
    assert told[1] == (
        f"--gate-share {within.share:g} costs ${within.usd:.4f} and goes where a pair is likeliest: "
        f"about {within.pairs:,.0f} steps with a pair"
    )
    least = min(each.usd for each in found.by_share)
    assert "--gate-share" not in dict(estimate_rows(replace(found, cap_usd=least / 2)))["cap"]


def test_an_estimate_has_one_total_and_says_nothing_twice(workspace: Path) -> None:
    found = estimate_cost(settings_of(workspace))
    rows, total = dict(estimate_rows(found)), found.total
    assert list(rows)[:2] == ["expected cost", "cap"]
    assert rows["expected cost"].splitlines() == [
        f"${total.usd_early:.4f} for {total.calls_early:,} calls at {total.states:,} steps, about 2 min",
        f"${total.usd_uncached:.4f} if nothing is cached and every teacher is asked at every step",
    ]
    assert total.calls_early == sum(f.calls_early for f in found.teachers) < total.calls
    assert sum(f.usd_early for f in found.teachers) == pytest.approx(total.usd_early)
    assert found.by_share[-1].usd == pytest.approx(total.usd_early)  # the whole cost is one figure
    stopped = [f.teacher for f, share in zip(found.teachers, found.shares, strict=True) if share < 1]
    assert [line for line in rows["early stopping"].splitlines() if "%" in line] == [
        f"{found.shares[-1]:>7.0%}  of the steps ask {stopped[0]}: the others decide the rest"
    ]
    within = dict(estimate_rows(replace(found, cap_usd=total.usd_early * 1.01)))["cap"]
    assert within.startswith(f"${total.usd_early * 1.01:.2f} covers it\n")
    every = estimate_cost(settings_of(workspace, replay={"stop": "off"}))
    assert "early stopping" not in dict(estimate_rows(every))
    assert every.total.calls_early == every.total.calls == total.calls
    lines = sum(text.count("\n") + 1 for text in rows.values())
    assert lines <= 23


def test_an_estimate_says_what_shares_of_the_full_cost_give(workspace: Path) -> None:
    found = estimate_cost(settings_of(workspace))
    shares = found.by_share
    assert [each.share for each in shares] == [0.1, 0.25, 0.5, 0.75, 1.0]
    assert (shares[-1].of_all, found.learned_steps) == (pytest.approx(1.0), 0)
    gains = [b.pairs - a.pairs for a, b in pairwise(shares)]
    assert all(gain > 0 for gain in gains)
    assert all(each.of_all > each.share for each in shares[:-1])  # the best steps come first
    assert shares[2].usd == pytest.approx(shares[-1].usd / 2)
    assert found.to_json()["by_share"][0].keys() == {"share", "usd", "pairs", "of_all"}
    lines = dict(estimate_rows(found))["gate share"].splitlines()
    assert lines[3].startswith(
        f"    50%  ${shares[2].usd:.4f}  about {shares[2].pairs:,.0f} steps with a pair"
    )
    assert lines[-2] == "estimated by the gate, whose weights rest on public tables"


def test_what_shares_give_is_learned_from_the_votes_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(workspace, tmp_path / "w")
    given = {"workspace": str(folder), "preset": "simulated", "budget": {"max_total_usd": 5}}
    settings = load_settings(None, given)
    replay_workspace(settings, yes=True)
    votes = label_workspace(settings).verdicts
    told = estimate_cost(settings)
    assert told.learned_steps == sum(votes.values()) - votes["too_few_votes"] > 20
    assert told.by_share[-1].pairs == pytest.approx(votes["pair"], rel=0.15)
    last = dict(estimate_rows(told))["gate share"].splitlines()[-1]
    assert last.endswith(f"public tables and {told.learned_steps} votes of this workspace")


def by_key(bodies: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(body, sort_keys=True) for body in bodies)


@pytest.fixture(scope="module")
def served() -> Any:
    """A server with prompt caches."""
    with running(StubSettings(api_key="k-estimate", keep_bodies=True)) as server:
        yield server


def test_a_dry_run_writes_what_a_replay_then_sends_and_the_estimate_was_near(
    workspace: Path, served: RunningStubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(workspace, served.url, replay={"concurrency": 4, "stop": "off"})
    record = write_requests(settings)  # without a key
    lines = [json.loads(line) for line in Path(record["path"]).read_text().splitlines()]
    assert served.stats()["requests"] == 0
    assert record["requests"] == {m: sum(line["teacher"] == m for line in lines) for m in MODELS}
    assert "k-estimate" not in Path(record["path"]).read_text()
    assert Path(record["path"]).stat().st_mode & 0o077 == 0
    assert {line["url"] for line in lines} == {f"{served.url}/chat/completions"}
    assert lines[0]["headers"] == {"X-OpenRouter-Title": "tracemill"}

    monkeypatch.setenv("OPENROUTER_API_KEY", "k-estimate")
    replay_workspace(settings)
    sent = [json.loads(body) for body in served.server.bodies]
    assert by_key(sent) == by_key([line["body"] for line in lines])
    charged = served.stats()["charged_usd"]

    # bought answers are neither written nor estimated again, and what they cost and took is measured
    assert sum(write_requests(settings)["requests"].values()) == 0
    after = estimate_cost(settings)
    assert after.total.calls == 0
    assert after.total.bought == len(lines)
    assert {f.measured.replies for f in after.teachers} == {len(lines) // 3}

    assert {f.price_from[:14] for f in after.teachers} == {"the server on "}

    # the same steps under another setting are asked anew: their estimate rests on what was measured
    again = settings_of(workspace, served.url, replay={"concurrency": 4, "stop": "off"})
    again = again.model_copy(
        update={"teachers": tuple(t.model_copy(update={"temperature": 0.5}) for t in again.teachers)}
    )
    expected = estimate_cost(again).total
    assert expected.calls == len(lines)
    assert expected.usd_cached == pytest.approx(charged, rel=0.1)
    assert expected.usd_uncached > 1.3 * charged


def test_after_early_stopping_what_is_not_needed_is_neither_written_nor_estimated(
    workspace: Path, served: RunningStubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-estimate")
    settings = settings_of(workspace, served.url, replay={"concurrency": 4, "stop": "lossless"})
    settings = settings.model_copy(
        update={"teachers": tuple(t.model_copy(update={"temperature": 0.25}) for t in settings.teachers)}
    )
    every = sum(write_requests(settings)["requests"].values())
    before = served.stats()["received"]
    replay_workspace(settings)
    assert 0 < served.stats()["received"] - before < every  # some steps were settled early
    assert sum(write_requests(settings)["requests"].values()) == 0
    assert estimate_cost(settings).total.calls == 0
    asked_all = settings.model_copy(update={"replay": settings.replay.model_copy(update={"stop": "off"})})
    spared = every - (served.stats()["received"] - before)
    assert sum(write_requests(asked_all)["requests"].values()) == spared


def test_prices_are_read_on_demand_and_teachers_that_cannot_be_asked_are_found(
    workspace: Path, served: RunningStubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(workspace, served.url)
    with pytest.raises(ConfigError, match="no API key"):
        estimate_cost(settings, refresh=True)
    monkeypatch.setenv("OPENROUTER_API_KEY", "wrong")
    with pytest.raises(TeacherError, match="refused the API key"):
        estimate_cost(settings, refresh=True)
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-estimate")
    received = served.stats()["received"]
    assert of(estimate_cost(settings, refresh=True), MODELS[0]).price_from.startswith("the server on ")
    assert served.stats()["received"] == received
    with pytest.raises(TeacherError, match="does not answer"):
        estimate_cost(settings_of(workspace), refresh=True)


def test_without_traces_or_teachers_it_is_one_line(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no teachers are given"):
        estimate_cost(load_settings(None, {"workspace": str(workspace)}))
    Workspace.open(tmp_path / "empty")
    with pytest.raises(WorkspaceError, match="holds no traces"):
        estimate_cost(settings_of(tmp_path / "empty"))
    with pytest.raises(WorkspaceError, match="holds no traces"):
        write_requests(settings_of(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("teachers", "stop", "fewer"),
    [
        (3, "lossless", (0.145, 0.155)),
        (4, "lossless", (0.07, 0.08)),
        (2, "lossless", (0.02, 0.03)),
        (3, "tiered", (0.175, 0.19)),
        (3, "off", (0.0, 0.0)),
    ],
)
def test_early_stopping_saves_what_recorded_answers_said(
    teachers: int, stop: Any, fewer: tuple[float, float]
) -> None:
    shares = early_stop_ask_rates(teachers, 2, stop, 0.0)
    assert shares[0] == 1.0
    assert list(shares) == sorted(shares, reverse=True)
    assert fewer[0] <= 1 - sum(shares) / teachers <= fewer[1]
    explored = early_stop_ask_rates(teachers, 2, stop, 0.05)
    assert sum(explored) == pytest.approx(0.05 * teachers + 0.95 * sum(shares))


def test_what_a_replay_refuses_an_estimate_and_a_dry_run_refuse_before_they_write(workspace: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"agreement": {"threshold": 9}}, "expected 3 families and 9 teachers"),
        ({"agreement": {"min_families": 7}}, "expected 8 families"),
    ]
    requests = Workspace(workspace).dry_run_path
    before = requests.read_bytes() if requests.exists() else None
    for table, said in wrong:
        for command in (estimate_cost, write_requests, replay_workspace):
            with pytest.raises(ConfigError, match=said):
                command(settings_of(workspace, **table))
    assert (requests.read_bytes() if requests.exists() else None) == before


def test_the_whole_cost_is_the_same_whatever_share_is_to_be_spent(workspace: Path) -> None:
    every = estimate_cost(settings_of(workspace)).by_share
    some = estimate_cost(settings_of(workspace, gate={"share": 0.3})).by_share
    assert [each.share for each in some] == [0.1, 0.25, 0.3, 0.5, 0.75, 1.0]
    assert some[-1].usd == pytest.approx(every[-1].usd, rel=0.1)
