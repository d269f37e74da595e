"""Every test starts from a clean environment: no keys, no proxies, no telemetry, no real services."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_CLEARED = ("OPENROUTER_API_KEY", "TRACEMILL_OPENROUTER_URL", "HF_TOKEN", "HF_ENDPOINT", "PREFECT_API_URL")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _CLEARED:
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One Prefect home for all runs of the session: its database is made once."""
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture
def tracemill(prefect_home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the console script as a user would: `tracemill("run", "--json", OPENROUTER_API_KEY="k")`."""

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        script = Path(sys.executable).parent / "tracemill"
        env = dict(os.environ) | {"PREFECT_HOME": str(prefect_home)} | environment
        command = [str(script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)

    return call
