"""Every test starts from a clean environment: no keys, no proxies, no telemetry, no real services."""

import os

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
