"""`tracemill doctor --live`: one call of each teacher under a hard cap, a dataset that is made and deleted.

Real HTTP to the stand-in for OpenRouter, to a server that bills the worst case of every call, and to a Hub on
loopback.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from console_says import Call, wait_while_running
from hub_releases import OF_THE_HUB
from hub_stub import READ_TOKEN, TOKEN, Hub, Request
from teacher_chains import free_port

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.live_checks.run_live_checks import run_live_checks
from tracemill.flows.live_checks.teacher_calls import CAP_NANOUSD, PROBE_TEXT, RECORD_LOOKS
from tracemill.flows.runtime.interrupts import remember_interrupts
from tracemill.records.errors import PrivacyError
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

pytestmark = OF_THE_HUB
KEY = "k-live-0123456789"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "anthropic/claude-sonnet-5.5")
QUICK = RetryPolicy(tries=2, first_wait_s=0.01, most_wait_s=0.01, most_retry_after_s=0.01)


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of teachers and Hub."""
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def wire(**more: object) -> StubSettings:
    return StubSettings.model_validate({"api_key": KEY, **more})


def settings_of(url: str, *models: str, hub: str | None = None, **teacher: object) -> RunSettings:
    base = {} if teacher.get("type") == "simulated" else {"base_url": url}
    given = [{"type": "openrouter", "model": model, **base, **teacher} for model in models]
    over: dict[str, Any] = {"teachers": given, "replay": {"backoff_s": 0.001}, "budget": {"max_total_usd": 1}}
    return load_settings(None, over | ({"release": {"hub": hub}} if hub else {}))


def live(settings: RunSettings) -> dict[str, tuple[str, str]]:
    """What came of each check."""
    found = list(run_live_checks(settings, True, QUICK))
    assert len({check.name for check in found}) == len(found)
    return {check.name: (check.state, check.said) for check in found}


def states(found: dict[str, tuple[str, str]], what: str) -> list[str]:
    return [state for name, (state, _) in found.items() if name.startswith(f"{what} of ")]


def asked_of(server: RunningStubServer) -> list[dict[str, Any]]:
    return [json.loads(body) for body in server.server.bodies]


# ---------------------------------------------------------------- teachers


def test_each_teacher_is_called_once_and_its_cost_held_against_tokens_and_record() -> None:
    with running(wire(keep_bodies=True)) as server:
        found = live(settings_of(server.url, *MODELS, reasoning={"effort": "high"}))
        stats, bodies = server.stats(), asked_of(server)
    assert [*found] == [
        *(f"{what} of {model}" for model in MODELS for what in ("answer", "cost", "record")),
        "spent",
        "hub round trip",
    ]
    assert {state for state, _ in found.values()} == {"ok", "not tried"}
    assert found["hub round trip"] == ("not tried", "no publish target: release.hub is not set")
    assert (stats["received"], stats["paid"], stats["looked_up"]) == (3, 3, 3)
    assert [body["model"] for body in bodies] == [*MODELS]
    assert {body["max_tokens"] for body in bodies} == {64}
    assert all("reasoning" not in body and body["provider"]["max_price"] for body in bodies)
    texts = [body["messages"][0]["content"] for body in bodies]
    assert {text if isinstance(text, str) else text[0]["text"] for text in texts} == {PROBE_TEXT}
    spent = f"${stats['charged_nanousd'] / 1e9:.7f} of 3 calls, at most $0.0".rstrip("0")
    assert found["spent"][1].startswith(spent)
    # 75 prompt tokens at $1.4 and 15 of the answer at $4.4 per million
    assert found["cost of z-ai/glm-5.3"] == ("ok", "$0.000171 stated, $0.000171 by tokens times price")


@pytest.mark.parametrize(
    ("more", "cost", "record"),
    [
        ({"stated_share": "3"}, "3.00 times as much", "failed"),
        ({"stated_share": "0.1"}, "less than its provider charges at least", "failed"),
        ({"stated_share": "0"}, "less than its provider charges at least", "failed"),
        ({"dearer_after": 0, "heeds_max_price": False}, "3.00 times as much", "ok"),
    ],
    ids=["states more", "states a tenth", "states nothing", "charges more"],
)
def test_a_stated_cost_that_is_not_what_tokens_come_to_fails(
    more: dict[str, object], cost: str, record: str
) -> None:
    with running(wire(**more)) as server:
        found = live(settings_of(server.url, "z-ai/glm-5.3"))
        charged = server.stats()["charged_nanousd"]
    assert found["answer of z-ai/glm-5.3"][0] == "ok"
    assert found["cost of z-ai/glm-5.3"][0] == "failed"
    assert cost in found["cost of z-ai/glm-5.3"][1]
    assert found["record of z-ai/glm-5.3"][0] == record
    assert f"${charged / 1e9:.7f}".rstrip("0") + " charged" in found["record of z-ai/glm-5.3"][1]


def test_a_record_that_comes_late_is_waited_for_and_a_missing_one_fails() -> None:
    with running(wire(bill_delay_s=0.02)) as server:
        found = live(settings_of(server.url, "z-ai/glm-5.3"))
        assert found["record of z-ai/glm-5.3"] == ("ok", "$0.000171 charged, $0.000171 stated")
        assert 1 < server.stats()["looked_up"] <= RECORD_LOOKS
    with running(wire(bill_pages=False)) as server:
        found = live(settings_of(server.url, *MODELS))
        assert states(found, "record") == ["failed"] * 3
        assert found["record of z-ai/glm-5.3"][1] == f"the server shows none after {RECORD_LOOKS} looks"
        assert states(found, "cost") == ["ok"] * 3
        assert server.stats()["looked_up"] == 3 * RECORD_LOOKS


def test_a_dead_server_a_wrong_key_and_no_key_are_a_line_a_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = f"http://127.0.0.1:{free_port()}/api/v1"
    found = live(settings_of(dead, *MODELS))
    assert states(found, "answer") == ["failed"] * 3
    assert found["answer of z-ai/glm-5.3"][1].startswith(f"{dead} does not answer (")
    with running(wire(api_key="k-another-0123456789")) as server:
        found = live(settings_of(server.url, *MODELS))
        assert states(found, "answer") == ["failed"] * 3
        assert found["answer of z-ai/glm-5.3"][1].startswith(f"{server.url} refused the API key")
        monkeypatch.delenv("OPENROUTER_API_KEY")
        without = live(settings_of(server.url, "z-ai/glm-5.3"))
        assert without["answer of z-ai/glm-5.3"][0] == "failed"
        assert "expected the environment variable OPENROUTER_API_KEY" in without["answer of z-ai/glm-5.3"][1]
        assert server.stats()["received"] == 0
    assert "spent" not in found
    assert KEY not in str(found)


@pytest.mark.parametrize(
    ("kind", "why"), [("429", "429"), ("503", "503"), ("reset", "broke off"), ("empty", "empty")]
)
def test_a_call_that_fails_is_made_once(kind: str, why: str) -> None:
    with running(wire(faults=[{"kind": kind, "model": "z-ai/glm-5.3"}])) as server:
        found = live(settings_of(server.url, *MODELS))
        assert server.stats()["received"] == 3
    assert states(found, "answer") == ["ok", "failed", "ok"]
    assert why in found["answer of z-ai/glm-5.3"][1]


def test_an_answer_that_is_cut_at_the_tokens_asked_for_is_one() -> None:
    with running(wire(faults=[{"kind": "length"}])) as server:
        found = live(settings_of(server.url, "z-ai/glm-5.3"))
    assert [state for state, _ in found.values()] == ["ok", "ok", "ok", "ok", "not tried"]
    assert "cut at the 64 that were asked for" in found["answer of z-ai/glm-5.3"][1]


def test_a_teacher_of_this_process_and_one_without_a_price_are_not_tried() -> None:
    found = live(settings_of("", "simulated/glm-a", type="simulated"))
    assert found["answer of simulated/glm-a"] == (
        "not tried",
        "it answers in this process: nothing is sent",
    )
    compatible = {"type": "openai_compatible", "api_key_env": "OPENROUTER_API_KEY"}
    with running(wire()) as server:
        found = live(settings_of(server.url, "z-ai/glm-5.3", **compatible))
        why = "no price is known; set `prices`, 0 where it is free"
        assert found["answer of z-ai/glm-5.3"] == ("not tried", why)
        assert server.stats()["received"] == 0
        for more in ({"prices": {"prompt_usd": 1.4, "completion_usd": 4.4}}, {"local": True}):
            found = live(settings_of(server.url, "z-ai/glm-5.3", **compatible, **more))
            assert found["answer of z-ai/glm-5.3"][0] == "ok"
            assert "record of z-ai/glm-5.3" not in found
        assert server.stats()["received"] == 2
        # the one that is said to be free charges
        assert found["cost of z-ai/glm-5.3"] == (
            "failed",
            "$0.000171 stated, $0 by tokens times price: listed as free",
        )


# ---------------------------------------------------------------- the cap


class _Billing(BaseHTTPRequestHandler):
    """Charges every call the most that its price list allows, and states and records nothing of it."""

    models: int
    prompt_usd = 0.000003
    completion_usd = 0.000015
    billed_usd: list[float]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        pricing = {"prompt": str(self.prompt_usd), "completion": str(self.completion_usd)}
        entries = [
            {"id": f"lab/m{number}", "pricing": pricing, "supported_parameters": ["tools", "max_tokens"]}
            for number in range(self.models)
        ]
        pages = {"key": {"usage": 0}, "models": entries, "generation": {"total_cost": 0.0}}
        page = self.path.partition("?")[0].rpartition("/")[2]
        self._json({"data": pages.get(page, {"endpoints": []})})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        most = json.loads(data)["max_tokens"]
        self.billed_usd.append(len(data) * self.prompt_usd + most * self.completion_usd)
        usage = {"prompt_tokens": 40, "completion_tokens": 1, "cost": 0.0}
        choices = [{"finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]
        self._json({"id": f"gen-{len(self.billed_usd)}", "choices": choices, "usage": usage})

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def billing(models: int) -> Iterator[tuple[str, list[float]]]:
    billed: list[float] = []
    handler = type("Handler", (_Billing,), {"models": models, "billed_usd": billed})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", billed
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_server_that_bills_the_most_and_states_nothing_gets_no_more_than_the_cap(count: int) -> None:
    with billing(count) as (url, billed):
        found = live(settings_of(url, *(f"lab/m{number}" for number in range(count))))
    tried = states(found, "answer").count("ok")
    assert tried == len(billed) == min(count, 8)  # the worst case of a call is $0.0056
    assert 0 < sum(billed) <= CAP_NANOUSD / 1e9
    assert states(found, "answer").count("not tried") == count - tried
    assert states(found, "cost").count("failed") == tried
    if count == 30:
        last = found["answer of lab/m29"][1]
        assert last.startswith("its worst case of $0.005")
        assert last.endswith("that are left of $0.05")


@pytest.mark.parametrize("count", [1, 5, 30])
@pytest.mark.parametrize("more", [{}, {"stated_share": "0.1"}, {"bill_pages": False, "stated_share": "0"}])
def test_what_the_account_is_charged_stays_below_the_cap(count: int, more: dict[str, object]) -> None:
    prices = {"prompt_usd": "0.6", "completion_usd": "2.4"}
    models = [f"lab/m{number}" for number in range(count)]
    with running(wire(models=dict.fromkeys(models, prices), **more)) as server:
        found = live(settings_of(server.url, *models))
        stats = server.stats()
    assert stats["paid"] == stats["received"] == states(found, "answer").count("ok") == count
    assert 0 < stats["charged_nanousd"] <= CAP_NANOUSD


# ---------------------------------------------------------------- consent


def test_nothing_is_sent_without_consent(hub: Hub) -> None:
    with running(wire()) as server:
        settings = settings_of(server.url, "z-ai/glm-5.3", hub="maker/pairs")
        with pytest.raises(PrivacyError) as refused:
            list(run_live_checks(settings, yes=False))
        assert server.stats()["requests"] == 0
    assert [request.path for request in hub.log] == []
    assert "; nothing was sent; expected consent; accept it with --yes" in str(refused.value)


def test_what_would_leave_is_said_before_it_does(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    with billing(1) as (url, _):
        found = live(settings_of(url.replace("127.0.0.1", "127.0.0.2"), "lab/m0", hub="maker/pairs"))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "This check would send fixed texts of tracemill, none of your data."
    assert said[1].startswith(
        f"A text of {len(PROBE_TEXT)} characters, once to each of these, for at most $0.05"
    )
    assert said[2].startswith("  lab/m0 at http://127.0.0.2:")
    repo = found["hub round trip"][1].split()[0]
    assert f"  {repo}" in said
    assert f"  hf repos delete {repo} --repo-type dataset --yes" in said


# ---------------------------------------------------------------- the Hub


def round_trip_of(hub: Hub) -> tuple[str, str]:
    return live(settings_of("", hub="maker/pairs"))["hub round trip"]


def made(hub: Hub) -> list[str]:
    """The names that the Hub was asked to make."""
    return [r.path for r in hub.log if r.path == "/api/repos/create"]


def test_a_private_dataset_is_made_read_back_and_deleted(hub: Hub) -> None:
    kept: list[bool] = []
    hub.faults = lambda request: kept.extend(repo.private for repo in hub.repos.values()) or 0
    state, said = round_trip_of(hub)
    assert state == "ok", said
    assert "made private, 61 bytes pushed and read back, deleted in " in said
    assert (hub.repos, len(made(hub))) == ({}, 1)
    assert set(kept) == {True}
    again = round_trip_of(hub)[1]
    assert said.split()[0] != again.split()[0]
    assert said.startswith("maker/tracemill-doctor-")


STEPS: dict[str, Callable[[Request], bool]] = {
    "make": lambda r: r.path == "/api/repos/create",
    "look": lambda r: r.method == "GET" and r.path.startswith("/api/datasets/maker/tracemill-doctor-"),
    "push": lambda r: "/commit/" in r.path,
    "read": lambda r: r.method == "GET" and "/resolve/" in r.path,
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("status", [403, 500])
def test_a_step_that_fails_leaves_nothing(hub: Hub, step: str, status: int) -> None:
    hub.faults = lambda request: status if STEPS[step](request) else 0
    state, said = round_trip_of(hub)
    assert (state, hub.repos) == ("failed", {})
    assert f"the Hub answers {status} to " in said
    assert "may still be there" not in said


@pytest.mark.parametrize("step", STEPS)
def test_a_step_whose_answer_is_lost_leaves_nothing(hub: Hub, step: str) -> None:
    hub.loses = STEPS[step]
    state, said = round_trip_of(hub)
    assert hub.repos == {}
    if step == "push":  # a second try finds the file there
        assert state == "ok"
    else:
        assert state == "failed"
        assert "the Hub cannot be reached to " in said


def test_other_bytes_than_were_pushed_fail(hub: Hub) -> None:
    def change(request: Request) -> int:
        for repo in hub.repos.values() if "/resolve/" in request.path else ():
            repo.commits[repo.refs["main"]]["probe.txt"] = b"something else"
        return 0

    hub.faults = change
    state, said = round_trip_of(hub)
    assert (state, hub.repos) == ("failed", {})
    assert "probe.txt of maker/tracemill-doctor-" in said
    assert "came back with other content" in said


@pytest.mark.parametrize("before", [None, "push"])
def test_a_dataset_that_cannot_be_deleted_is_named_with_what_removes_it(hub: Hub, before: str | None) -> None:
    def refuse(request: Request) -> int:
        return 500 if request.method == "DELETE" or (before and STEPS[before](request)) else 0

    hub.faults = refuse
    state, said = round_trip_of(hub)
    (name,) = hub.repos
    assert state == "failed"
    assert f"{name} may still be there (the Hub answers 500 to delete {name}, 2 times" in said
    assert said.endswith(f"remove it with `hf repos delete {name} --repo-type dataset --yes`")
    assert (f"to commit to {name}" in said) == (before == "push")


@pytest.mark.parametrize(
    ("token", "why"), [("", "no token for the Hub"), (READ_TOKEN, "has no right to write to maker")]
)
def test_without_a_token_that_may_write_nothing_is_made(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, token: str, why: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    state, said = round_trip_of(hub)
    assert state == "failed"
    assert why in said
    assert made(hub) == []


def test_a_hub_that_is_not_there_is_one_line(hub: Hub) -> None:
    hub.loses = lambda request: True
    state, said = round_trip_of(hub)
    assert state == "failed"
    assert said.startswith("the Hub cannot be reached to `who am I`")


# ---------------------------------------------------------------- interrupts


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_deletes_the_dataset(hub: Hub, step: str, number: signal.Signals) -> None:
    def press(request: Request) -> int:
        if STEPS[step](request) and not pressed:
            pressed.append(request)
            os.kill(os.getpid(), number)
        return 0

    pressed: list[Request] = []
    hub.faults = press
    with remember_interrupts(), pytest.raises(KeyboardInterrupt):
        round_trip_of(hub)
    assert len(pressed) == 1
    assert (hub.repos, len(made(hub))) == ({}, 1)


def test_a_second_interrupt_names_what_it_leaves(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    def press(request: Request) -> int:
        if STEPS["push"](request) or request.method == "DELETE":
            os.kill(os.getpid(), signal.SIGINT)
        return 503 if request.method == "DELETE" else 0

    hub.faults = press
    with remember_interrupts(), pytest.raises(KeyboardInterrupt):
        round_trip_of(hub)
    (name,) = hub.repos
    said = capsys.readouterr().err.splitlines()[-1]
    left = f"{name} may still be there (interrupted): remove it with `hf repos delete {name}"
    assert said == f"{left} --repo-type dataset --yes`"


def config_of(folder: Path, *models: str, url: str = "", hub: bool = True) -> Path:
    """A configuration of these teachers at a server, that is to publish."""
    path, target = folder / "run.toml", "[release]\nhub = 'maker/pairs'\n" if hub else ""
    given = "[[teachers]]\ntype = 'openrouter'\nmodel = '{}'\nbase_url = '{}'\n"
    teachers = "".join(given.format(model, url) for model in models)
    path.write_text(f"workspace = 'w'\n[budget]\nmax_total_usd = 1\n{target}{teachers}")
    return path


def doctor(config: Path) -> "subprocess.Popen[str]":
    """`tracemill doctor --live --yes` in a process that knows the Hub of this one."""
    script = str(Path(sys.executable).parent / "tracemill")
    return subprocess.Popen(
        [script, "doctor", str(config), "--live", "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ) | {"HF_HUB_OFFLINE": "0"},
        text=True,
    )


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGKILL, -9),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 130, marks=pytest.mark.slow),
    ],
)
def test_the_command_that_is_ended_leaves_nothing_or_has_named_it(
    hub: Hub, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    def press(request: Request) -> int:
        if STEPS["push"](request):
            process.send_signal(number)
            if number == signal.SIGKILL:
                process.wait(timeout=60)
        return 0

    hub.faults = press
    process = doctor(config_of(tmp_path))
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    if number == signal.SIGKILL:
        (name,) = hub.repos
        assert f"hf repos delete {name} --repo-type dataset --yes" in said
    else:
        assert hub.repos == {}
        last = "tracemill: interrupted; what was sent may have been billed, within the $0.05"
        assert said.splitlines()[-1] == last


def test_calls_in_flight_are_cut_off_by_an_interrupt(tmp_path: Path) -> None:
    with running(wire(latency_s=60)) as server:
        process = doctor(config_of(tmp_path, *MODELS[:2], url=server.url, hub=False))
        wait_while_running(process, lambda: server.stats()["received"] == 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    last = "tracemill: interrupted; what was sent may have been billed, within the $0.05"
    assert said.splitlines()[-1] == last
    assert "Traceback" not in said


# ---------------------------------------------------------------- the command


def test_the_command_prints_a_line_a_check_and_tells_by_its_code(
    console: Call, hub: Hub, tmp_path: Path
) -> None:
    models = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
    with running(wire()) as server:
        config = config_of(tmp_path, *models, url=server.url, hub=False)
        plain = console("doctor", config, PREFECT_API_URL="")
        asked = ("requests", "received")
        assert (plain.returncode, *map(server.stats().get, asked)) == (0, 2, 0)  # the key, then its account
        refused = console("doctor", config, "--live", PREFECT_API_URL="")
        assert (refused.returncode, *map(server.stats().get, asked)) == (2, 4, 0)
        assert refused.stdout.splitlines()[-1].startswith("FAIL  live checks: not accepted yet: ")
        process = doctor(config_of(tmp_path, *models, url=server.url))
        said, _ = process.communicate(timeout=120)
        assert (process.returncode, server.stats()["paid"], hub.repos) == (0, 3, {}), said
    lines = said.splitlines()
    assert len(plain.stdout.splitlines()) == 14
    assert plain.stdout.splitlines()[:8] == lines[:8]
    assert len(lines) == 14 + 3 * 3 + 2
    assert all(line.startswith("ok    ") for line in lines)
    dead = console("doctor", config, "--live", "--yes", PREFECT_API_URL="")
    assert dead.returncode == 2
    assert dead.stdout.count("FAIL  answer of ") == 3
    assert "Traceback" not in dead.stdout + dead.stderr


def test_without_teachers_and_publish_target_there_is_nothing_to_try(console: Call, tmp_path: Path) -> None:
    done = console("doctor", "--workspace", tmp_path / "w", "--live", PREFECT_API_URL="")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-2:] == [
        "not tried teachers: none configured",
        "not tried hub round trip: no publish target: release.hub is not set",
    ]
