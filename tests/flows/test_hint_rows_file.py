"""Hint rows of a workspace: written for a training, without what the release holds out, and removed."""

import json
from pathlib import Path

import pytest
from training_releases import released

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.training.hint_rows_file import add_hint_rows
from tracemill.flows.training.workspace_rows import remove_rows
from tracemill.records.errors import TrainingError
from tracemill.records.identity import StepId
from tracemill.records.storage.workspace import Workspace
from tracemill.train.composer_settings import HINT_COLUMNS
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> RunSettings:
    """A workspace of three example sessions."""
    work = tmp_path_factory.mktemp("hints") / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), work))
    training = {"model": "a/b", "method": "composer", "composer": {"tasks": "t"}}
    return load_settings(None, {"workspace": str(work), "training": training})


def release_of(folder: Path, step_id: str, split: str = "train") -> TrainingRelease:
    """A release of one pair at this step, in this split."""
    made = released(folder, rows=1, step_id=step_id)
    for file in (made.path / "data").glob("*/train-*.parquet"):
        file.rename(file.with_name(file.name.replace("train", split, 1)))
    return TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )


def rows_of(settings: RunSettings, release: TrainingRelease) -> tuple[TrainingSettings, list[dict[str, str]]]:
    assert settings.training is not None
    training = add_hint_rows(settings, settings.training, release)
    assert training.composer is not None
    assert training.composer.hints is not None
    lines = training.composer.hints.read_text().splitlines()
    return training, [json.loads(line) for line in lines]


def test_failed_actions_become_rows_but_for_sessions_that_are_held_out(
    settings: RunSettings, tmp_path: Path
) -> None:
    training, rows = rows_of(settings, release_of(tmp_path / "a", "another-trace:0:0"))
    steps = [row["step_id"] for row in rows]
    assert len(steps) == len(set(steps)) >= 3
    assert all(set(HINT_COLUMNS) <= row.keys() for row in rows)
    assert all(row["hint"] for row in rows)

    away = StepId.parse(steps[0]).trace_id
    fewer, left = rows_of(settings, release_of(tmp_path / "b", f"{away}:0:0", "validation"))
    assert [row["step_id"] for row in left] == [s for s in steps if StepId.parse(s).trace_id != away]
    assert 0 < len(left) < len(steps)
    _, same = rows_of(settings, release_of(tmp_path / "c", f"{away}:0:0"))
    assert same == rows  # a session to train on

    assert training.fingerprint() != fewer.fingerprint()
    for each in (training, fewer):
        assert each.composer is not None
        assert each.composer.hints is not None
        assert each.composer.hints.stat().st_mode & 0o077 == 0
        remove_rows(settings.workspace, each)
        assert not each.composer.hints.exists()


def test_what_teachers_agreed_on_is_in_the_hint(settings: RunSettings, tmp_path: Path) -> None:
    release = release_of(tmp_path / "a", "another-trace:0:0")
    _, rows = rows_of(settings, release)
    assert release.path is not None
    agreed = release.path / "data" / "agreed"
    made = released(tmp_path / "b", rows=1, step_id=rows[0]["step_id"])
    (made.path / "data" / "sft").rename(agreed)  # rows of the same columns, at the step of the first hint
    _, again = rows_of(settings, release)
    changed = [new["hint"] for old, new in zip(rows, again, strict=True) if new != old]
    assert changed == [
        f"{rows[0]['hint']}\n\nA better next action is:\nI test.\n"
        'Bash {"cmd": "pytest test_0.py", "timeout": 0}'
    ]


def test_a_file_of_the_user_stays_and_nothing_is_written_where_hints_are_off(
    settings: RunSettings, tmp_path: Path
) -> None:
    release, base = release_of(tmp_path, "t:0:0"), {"model": "a/b", "method": "composer"}
    own = tmp_path / "hints.jsonl"
    own.touch()
    for composer in ({"tasks": "t", "hints": str(own)}, {"tasks": "t", "alpha_sdpo": 0.0}):
        training = TrainingSettings.model_validate({**base, "composer": composer})
        assert add_hint_rows(settings, training, release) is training
        remove_rows(settings.workspace, training)
    assert own.exists()


def test_a_workspace_without_failed_actions_says_what_to_do(tmp_path: Path) -> None:
    Workspace.open(tmp_path / "w")
    training = {"model": "a/b", "method": "composer", "composer": {"tasks": "t"}}
    empty = load_settings(None, {"workspace": str(tmp_path / "w"), "training": training})
    assert empty.training is not None
    with pytest.raises(TrainingError, match=r"no session to train on has a failed action; .*alpha_sdpo = 0"):
        add_hint_rows(empty, empty.training, release_of(tmp_path / "r", "t:0:0"))
