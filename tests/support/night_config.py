"""What the nights of the tests harvest, ask and publish: a provider, a configuration, sessions that grow."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hub_stub import TOKEN, Hub
from prefect_nights import PrefectHouse, prefect_house
from training_releases import tiny_model

from tracemill.teachers.client.chat_teacher import SIMULATED_HEADER
from tracemill.teachers.openrouter_stub.responses import MARK
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

KEY, DATASET, FLIGHT = "sk-or-nights", "maker/nights", 2
SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
FIRST = SESSIONS / "-home-dev-parcels"
ENDED = ("Completed", "CompletedWithLosses")


@contextmanager
def provider(monkeypatch: pytest.MonkeyPatch, latency_s: float) -> Iterator[RunningStubServer]:
    """A provider whose answers are not marked as simulated: marked ones are not published."""
    monkeypatch.delitem(MARK, SIMULATED_HEADER)
    with running(StubSettings(api_key=KEY, latency_s=latency_s)) as server:
        yield server


@contextmanager
def night_house(folder: Path, stub: RunningStubServer) -> Iterator[PrefectHouse]:
    """A house whose runs ask the provider and publish to the Hub on loopback."""
    env = {"TRACEMILL_OPENROUTER_URL": stub.url, "OPENROUTER_API_KEY": KEY}
    env |= {"HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0"}
    with prefect_house(folder, env) as started:
        yield started


def config_of(folder: Path) -> Path:
    """A configuration over `sessions`, whose releases are published and trained on; one session is short."""
    shutil.copytree(FIRST, folder / "sessions" / FIRST.name)
    short = folder / "sessions" / FIRST.name / growing().name
    lines = short.read_text().splitlines(keepends=True)
    short.write_text("".join(lines[: len(lines) * 3 // 4]))
    teachers = "".join(
        f"[[teachers]]\ntype = 'openrouter'\nmodel = 'simulated/{name}-a'\nlocal = true\nmax_tokens = 128\n"
        for name in ("deepseek", "kimi", "glm")
    )
    path = folder / "night.toml"
    path.write_text(
        "workspace = 'w'\n[sources]\npaths = ['sessions']\nmin_age_minutes = 0\n"
        f"[budget]\nmax_total_usd = 50\n[replay]\nconcurrency = {FLIGHT}\n"
        f"[release]\nname = 'nights'\nhub = '{DATASET}'\nvalidation = 0\ntest = 0\n"
        "[release.drift]\noperations = 1\nagreement = 1\nusd_per_pair = 1000\nlength_ratio = 1000\n"
        f"[training]\nmodel = '{tiny_model(folder / 'tiny')}'\nmethod = 'sft'\nmax_steps = 2\n"
        f"device = 'cpu'\nenvironment = ['HF_TOKEN']\n{teachers}"
    )
    return path


def growing() -> Path:
    """The session that the first night sees cut off."""
    return sorted(FIRST.glob("*.jsonl"))[0]


def grow(folder: Path) -> None:
    """Go on with the session that was cut off, and add a project."""
    shutil.copy(growing(), folder / "sessions" / FIRST.name)
    for project in SESSIONS.iterdir():
        if project.name != FIRST.name:
            shutil.copytree(project, folder / "sessions" / project.name)


def answers(folder: Path) -> int:
    """The answers in the ledger of the workspace."""
    with sqlite3.connect(folder / "w" / "ledger.sqlite") as ledger:
        [(count,)] = ledger.execute("SELECT count(*) FROM answers")
    return count


def night_ends(house: PrefectHouse, hub: Hub, version: int, seconds: float = 900) -> None:
    """Version number `version` is on the Hub and was trained on."""
    house.wait(lambda: len(hub.repos[DATASET].tags) >= version if DATASET in hub.repos else False, seconds)
    house.wait(lambda: len(house.runs("training", *ENDED)) >= version, seconds)
