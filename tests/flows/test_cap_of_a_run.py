"""The cap belongs to the run: a command that is repeated after a stop at it spends nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from console_says import record_of

from tracemill.cli.commands import replay_command
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.run_state.run_records import AT_CAP, FINISHED
from tracemill.flows.sources.source_spec import order_of
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
KEY = "k-cap-0123456789"
CAP = 0.004
SAID = f"stopped at its cap of ${CAP:.4f} before, so nothing was asked: raise the cap to ask the rest"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    ingest_everything(IngestOptions(order_of([str(EXAMPLES)], min_age_minutes=0), tmp_path / "w"))
    return tmp_path / "w"


class Told:
    def __init__(self, code: int, err: str, record: dict[str, Any], charged_usd: float) -> None:
        self.code, self.err, self.record, self.charged_usd = code, err, record, charged_usd
        self.summary = record["summary"]


def ask(
    work: Path,
    server: RunningStubServer,
    capsys: pytest.CaptureFixture[str],
    cap: float = CAP,
    fresh: bool = False,
    day: float | None = None,
    **replay: Any,
) -> Told:
    """One `tracemill replay`, and what the server has charged by then."""
    teachers = [
        {"type": "openrouter", "model": model, "base_url": server.url, "max_tokens": 128, "local": True}
        for model in MODELS
    ]
    given = {
        "workspace": str(work),
        "teachers": teachers,
        "budget": {"max_total_usd": cap, "max_day_usd": day},
    }
    given["replay"] = {"stop": "off", "concurrency": 16, **replay}
    capsys.readouterr()
    code = 0
    try:
        replay_command(load_settings(None, given), as_json=True, yes=True, fresh=fresh)
    except SystemExit as ended:
        code = int(str(ended.code))
    out, err = capsys.readouterr()
    return Told(code, err, json.loads(out), float(server.stats()["charged_usd"]))


def status_of(work: Path, told: Told) -> str:
    return json.loads((work / "runs" / told.record["run_id"] / "run.json").read_text())["status"]


def test_the_same_command_after_a_stop_at_the_cap_spends_nothing(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        first = ask(work, server, capsys)
        assert 0.5 * CAP < first.charged_usd <= CAP
        assert (first.code, first.record["at_cap"], first.summary["at_cap"] > 0) == (0, True, True)
        assert status_of(work, first) == AT_CAP
        received = server.stats()["received"]
        for _ in range(3):
            again = ask(work, server, capsys, concurrency=32)
            assert (again.code, again.charged_usd) == (4, first.charged_usd)
            assert again.record["run_id"] == first.record["run_id"]
            assert server.stats()["received"] == received
            assert again.summary["calls"] == 0
            assert again.summary["reused"] == again.summary["asked"] == first.summary["asked"]
            assert again.summary["left_over"] == first.summary["left_over"]
            assert again.err.startswith(f"tracemill: run {first.record['run_id']} {SAID}")
            assert again.summary["spent_usd"] == pytest.approx(first.charged_usd, abs=1e-9)


def test_a_raised_cap_goes_on_in_the_same_run_and_counts_what_was_spent(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        first = ask(work, server, capsys)
        more = ask(work, server, capsys, cap=2 * CAP)
        assert more.record["run_id"] == first.record["run_id"]
        assert (more.code, more.record["at_cap"]) == (0, True)
        assert 1.5 * CAP < more.charged_usd <= 2 * CAP
        back = ask(work, server, capsys, cap=CAP)
        assert (back.code, back.charged_usd) == (4, more.charged_usd)
        whole = ask(work, server, capsys, cap=5)
        assert (whole.code, whole.record["at_cap"], whole.summary["left_over"]) == (0, False, 0)
        assert status_of(work, whole) == FINISHED
        assert server.stats()["paid_twice"] == 0
        after = ask(work, server, capsys, cap=5)
        assert after.record["run_id"] != first.record["run_id"]
        assert (after.code, after.charged_usd) == (0, whole.charged_usd)


def test_a_new_run_has_a_cap_of_its_own(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        first = ask(work, server, capsys)
        second = ask(work, server, capsys, fresh=True)
    assert second.record["run_id"] != first.record["run_id"]
    assert (second.code, second.summary["spent_usd"] <= CAP) == (0, True)
    assert CAP < second.charged_usd <= 2 * CAP


@pytest.mark.parametrize(("after", "times"), [(0, 50), (6, 20)])
def test_calls_dearer_than_their_bound_give_no_second_cap(
    work: Path, capsys: pytest.CaptureFixture[str], after: int, times: int
) -> None:
    """What was in flight when a teacher's first such call came home may pass the cap, nothing after it."""
    settings = StubSettings(api_key=KEY, dearer_after=after, dearer_times=times, heeds_max_price=False)
    with running(settings) as server:
        first = ask(work, server, capsys, cap=0.04, concurrency=4)
        assert "more than the $" in first.summary["stopped"]
        told = [ask(work, server, capsys, cap=0.04, concurrency=4) for _ in range(4)]
        assert {each.record["run_id"] for each in told} == {first.record["run_id"]}
        assert told[-1].code == 4
        assert told[-1].charged_usd == told[-2].charged_usd <= max(0.05, first.charged_usd)


def test_a_stop_at_the_cap_of_the_day_is_taken_up_by_the_same_run(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        first = ask(work, server, capsys, cap=1.0, day=CAP)
        assert (first.code, first.record["at_cap"], first.summary["at_day_cap"] > 0) == (0, False, True)
        again = ask(work, server, capsys, cap=1.0, day=CAP)
        assert (again.code, again.summary["calls"], again.charged_usd) == (4, 0, first.charged_usd)
        assert again.err.startswith("tracemill: the day's cap of $0.0040 did not cover a call")
        more = ask(work, server, capsys, cap=1.0, day=2 * CAP)
    assert {told.record["run_id"] for told in (first, again, more)} == {first.record["run_id"]}
    assert CAP < more.charged_usd <= 2 * CAP


@pytest.mark.slow
@pytest.mark.long
def test_a_whole_run_says_so_too_and_a_scheduled_one_begins_anew(
    tracemill: Any, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    with running(StubSettings(api_key=KEY)) as server:
        config = tmp_path / "run.toml"
        config.write_text(
            f"workspace = 'w'\n[sources]\npaths = ['{EXAMPLES}']\nmin_age_minutes = 0\n"
            f"[budget]\nmax_total_usd = {CAP}\n[replay]\nstop = 'off'\n"
            + "".join(
                f"[[teachers]]\ntype = 'openrouter'\nmodel = '{model}'\nlocal = true\nmax_tokens = 128\n"
                for model in MODELS
            )
        )
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
        first = record_of(tracemill("run", config, "--json", **env))
        charged = float(server.stats()["charged_usd"])
        again = tracemill("run", config, "--json", **env)
        assert again.returncode == 4
        assert SAID in again.stderr
        record = json.loads(again.stdout)
        assert (record["run_id"], record["summary"]["calls"]) == (first["run_id"], 0)
        assert record["release"]["created"] is False
        assert float(server.stats()["charged_usd"]) == charged
        shown = tracemill("status", "--workspace", tmp_path / "w")
        assert shown.returncode == 0
        assert SAID in " ".join(shown.stdout.split())
        code = (
            "import sys; from tracemill.flows.run_flow import harvest\nprint(harvest(sys.argv[1])['run_id'])"
        )
        command = [sys.executable, "-c", code, str(config)]
        environ = {**os.environ, **prefect_server, **env}
        scheduled = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        assert scheduled.stdout.strip() not in ("", first["run_id"])
        assert charged < float(server.stats()["charged_usd"]) <= charged + CAP
