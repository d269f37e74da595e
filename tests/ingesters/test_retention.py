"""Sessions that Claude Code is about to delete are counted, in its own folder alone."""

import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from console_says import Call, record_of

from tracemill.ingesters.claude_code.retention import count_expiring_sessions, read_cleanup_days

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
DAY_S = 86_400


def session(folder: Path, name: str, days_old: float, now: float) -> Path:
    path = folder / "projects" / "-home-dev-garden" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (now - days_old * DAY_S,) * 2)
    return path


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("{}", 30),
        ('{"cleanupPeriodDays": 90}', 90),
        ('{"cleanupPeriodDays": 0}', 0),
        ('{"cleanupPeriodDays": -1}', 30),
        ('{"cleanupPeriodDays": true}', 30),
        ('{"cleanupPeriodDays": "ten"}', 30),
        ("[90]", 30),
        ("{", 30),
    ],
)
def test_the_period_is_the_settings_own_or_30_days(text: str, days: float, tmp_path: Path) -> None:
    assert read_cleanup_days(tmp_path) == 30
    (tmp_path / "settings.json").write_text(text)
    assert read_cleanup_days(tmp_path) == days


def test_sessions_are_counted_by_whole_days_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    now = time.time()
    ages = {"new": 1, "far": 22.9, "week": 23.1, "soon": 28.5, "also": 28.2, "last": 29.9, "late": 40}
    paths = [session(tmp_path, name, days, now) for name, days in ages.items()]
    copy = session(tmp_path / "copy", "old", 29, now)
    gone = tmp_path / "projects" / "-home" / "gone.jsonl"
    assert count_expiring_sessions([*paths, copy, gone], now) == Counter({6: 1, 1: 2, 0: 2})
    (tmp_path / "settings.json").write_text('{"cleanupPeriodDays": 365}')
    assert count_expiring_sessions(paths, now) == Counter()


def test_a_harvest_warns_of_them_whether_they_are_read_again_or_not(console: Call, tmp_path: Path) -> None:
    folder, now = tmp_path / "claude", time.time()
    shutil.copytree(EXAMPLES, folder / "projects")
    paths = sorted((folder / "projects").glob("*/*.jsonl"))
    for path, days in zip(paths, (28.5, 29.9, 1), strict=False):
        os.utime(path, (now - days * DAY_S,) * 2)
    flags = (folder / "projects", "--workspace", tmp_path / "w", "--min-age", 0, "--json")
    expected = {
        "session that Claude Code deletes in 1 day: raise its cleanupPeriodDays": 1,
        "session that Claude Code deletes within a day: raise its cleanupPeriodDays": 1,
    }
    for _ in range(2):
        record = record_of(console("ingest", *flags, CLAUDE_CONFIG_DIR=str(folder)))
        told = {name: count for name, count in record["totals"]["flags"].items() if "deletes" in name}
        assert told == expected
    (folder / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 3650}))
    record = record_of(console("ingest", *flags, CLAUDE_CONFIG_DIR=str(folder)))
    assert not [name for name in record["totals"]["flags"] if "deletes" in name]
    elsewhere = record_of(console("ingest", *flags, CLAUDE_CONFIG_DIR=str(tmp_path / "other")))
    assert not [name for name in elsewhere["totals"]["flags"] if "deletes" in name]
