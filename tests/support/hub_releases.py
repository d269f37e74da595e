"""A workspace whose releases go to the Hub on loopback."""

from pathlib import Path
from typing import Any

import pytest
from hub_stub import TOKEN

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.publish.publish_run import PublishOptions, PublishOutcome, publish_release
from tracemill.records.storage.workspace import Workspace

REPO = "maker/pairs"
TAG = "2026.11.21"
"""The version of a release of `release_rows.DAY`."""
QUICK = RetryPolicy(first_wait_s=0.01, most_wait_s=0.02, most_retry_after_s=0.02)
OF_THE_HUB = pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning")
"""`huggingface_hub` 2.4 hands its HTTP client bytes as `data`."""


def log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that may write; the publish gate has its own rules alone."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def empty_workspace(folder: Path) -> RunSettings:
    """The settings of a new workspace `w` in a folder, whose release `demo` goes to `REPO`."""
    made = load_settings(None, {"workspace": str(folder / "w"), "release": {"name": "demo", "hub": REPO}})
    Workspace.open(made.workspace)
    return made


def push(settings: RunSettings, asked: str | None = None, **order: Any) -> PublishOutcome:
    """`tracemill release publish`, without long waits."""
    return publish_release(settings, asked, PublishOptions(REPO, patience=QUICK, **order))
