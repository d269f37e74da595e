"""Sessions still being written are left alone until they have been silent for a while."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.discovery import find_sources
from tracemill.flows.sources.shard_plan import STILL_WRITTEN, UNCHANGED
from tracemill.flows.sources.source_spec import SourceOptions, order_of
from tracemill.ingesters.discover import discover
from tracemill.ingesters.idle_sessions import find_last_session_activity, is_session_not_idle

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
NOW = datetime.now(UTC)
IDLE = timedelta(minutes=15)


def session(path: Path, said: datetime, touched: datetime | None = None, steps: int = 2) -> Path:
    """A Claude Code session whose last word was at `said`, in a file last touched at `touched`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for step in range(steps):
        stamp = (said - timedelta(seconds=steps - step - 1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        common = {"sessionId": path.stem, "timestamp": stamp}
        text = [{"type": "text", "text": f"done {step}"}]
        message = {"id": f"m{step}", "role": "assistant", "content": text}
        parent = f"a{step - 1}" if step else None
        lines.append(
            {"type": "user", "uuid": f"u{step}", "parentUuid": parent, "message": {"content": "go"}} | common
        )
        lines.append(
            {"type": "assistant", "uuid": f"a{step}", "parentUuid": f"u{step}", "message": message} | common
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    moment = (touched or said).timestamp()
    os.utime(path, (moment, moment))
    return path


@pytest.mark.parametrize(
    ("said", "touched", "live"),
    [
        (1, 1, True),
        (14, 1, True),
        (16, 16, False),
        (600, 1, False),  # a copy: new on the disk, old in what it records
        (1, 600, False),
        (-5, 1, True),  # clocks differ
    ],
)
def test_both_the_file_and_what_it_records_are_recent(
    tmp_path: Path, said: int, touched: int, live: bool
) -> None:
    path = session(tmp_path / "s.jsonl", NOW - timedelta(minutes=said), NOW - timedelta(minutes=touched))
    assert is_session_not_idle(discover([path])[0], NOW, IDLE) is live


def test_a_last_word_far_from_the_end_is_found(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl", NOW - timedelta(days=3))
    with path.open("a") as stream:
        stream.write(json.dumps({"type": "assistant", "uuid": "x", "text": "y" * 500_000}) + "\n")
    assert find_last_session_activity(path) == (NOW - timedelta(days=3)).replace(microsecond=0)
    assert find_last_session_activity(EXAMPLES / "swe_gym" / "trajectories.jsonl") is None


def test_the_last_word_is_the_last_that_is_a_time(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl", NOW - timedelta(days=3))
    with path.open("a") as stream:
        for stamp in ("soon", None, 17):
            stream.write(json.dumps({"type": "user", "timestamp": stamp}) + "\n")
    assert find_last_session_activity(path) == (NOW - timedelta(days=3)).replace(microsecond=0)


def test_a_conversation_folder_is_judged_by_its_newest_event(tmp_path: Path) -> None:
    events = tmp_path / "conversation" / "events"
    events.mkdir(parents=True)
    for number, minutes in enumerate((60, 2)):
        stamp = (NOW - timedelta(minutes=minutes)).isoformat()
        event = {
            "id": number,
            "source": "agent",
            "action": "run",
            "args": {"command": "ls"},
            "timestamp": stamp,
        }
        (events / f"{number}.json").write_text(json.dumps(event))
        moment = (NOW - timedelta(minutes=minutes)).timestamp()
        os.utime(events / f"{number}.json", (moment, moment))
    (source,) = discover([tmp_path])
    assert source.dialect == "openhands_events_v0"
    assert is_session_not_idle(source, NOW, IDLE)
    assert not is_session_not_idle(source, NOW, timedelta(minutes=1))


def test_tables_of_finished_runs_are_never_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"instance_id": "a__b-1", "messages": [{"role": "assistant", "content": "x"}]}
    path.write_text(json.dumps(row | {"timestamp": NOW.isoformat()}) + "\n")
    assert not is_session_not_idle(discover([path])[0], NOW, IDLE)


def test_the_examples_are_finished_however_new_the_checkout_is(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "fresh")
    for path in (tmp_path / "fresh").rglob("*.jsonl"):
        os.utime(path)
    found = find_sources(order_of([str(tmp_path / "fresh")]), None)
    assert (len(found.files), found.still_written) == (5, 0)


def test_given_outright_or_with_no_idle_time_a_live_session_is_read(tmp_path: Path) -> None:
    path = session(tmp_path / "home" / "s.jsonl", datetime.now(UTC))
    assert find_sources(order_of([str(tmp_path / "home")]), None).still_written == 1
    assert len(find_sources(order_of([str(path)]), None).files) == 1
    assert len(find_sources(order_of([str(tmp_path / "home")], min_age_minutes=0), None).files) == 1


def test_a_live_session_is_counted_and_what_was_read_of_it_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    session(home / "old.jsonl", NOW - timedelta(days=1))
    session(home / "live.jsonl", NOW - timedelta(days=1))

    def read() -> dict[str, object]:
        order = SourceOptions(((home, None),))
        return ingest_everything(IngestOptions(order, tmp_path / "w"))["totals"]

    assert (read()["states"], read()["changes"]) == (4, {UNCHANGED: 2})
    session(home / "live.jsonl", datetime.now(UTC), steps=5)
    totals = read()
    assert totals["changes"] == {UNCHANGED: 1, STILL_WRITTEN: 1}
    assert totals["states"] == 4
    session(home / "live.jsonl", NOW, NOW - timedelta(minutes=20), steps=5)
    totals = read()
    assert totals["changes"] == {UNCHANGED: 1, "changed": 1}
    assert totals["states"] == 7
