"""A census: kinds and keys by format and version, those unknown by name, nothing of the content."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_records import attachment, ingest, line, queued, says, user, write

from tracemill.cli.main import app
from tracemill.ingesters.census import take_census
from tracemill.records.errors import SourceError

NEW = {"version": "2.1.999"}
PRIVATE = "hunter2 at example"


def session() -> list[Any]:
    return [
        user("1", None, PRIVATE),
        attachment("2", "1", type="skill_listing", content=PRIVATE),
        attachment("3", "2", type="hologram", content=PRIVATE) | NEW,
        attachment("3b", "3", type=PRIVATE) | NEW,
        says("4", "3b", "m1", "hi", {"type": "telepathy", "what": PRIVATE}) | NEW | {"novelKey": PRIVATE},
        line("dream", "5", "4") | NEW,
        line("system", "6", "4", subtype="sleepwalk") | NEW,
        queued("enqueue", PRIVATE),
    ]


def test_kinds_and_keys_are_counted_by_version(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.jsonl", *session())
    write(tmp_path / "in" / "b.jsonl", *session()[:2])
    (tmp_path / "in" / "c.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "x", "parts": [1]}]}\n'
    )
    (tmp_path / "in" / "notes.json").write_text('{"a": 1}')
    census = take_census([tmp_path / "in"])
    old, new = census.found["claude_code", "2.1.33"], census.found["claude_code", "2.1.999"]
    assert (old.files, old.records, new.files, new.records) == (2, 4, 1, 6)
    assert old.kinds == {"user": 2, "attachment": 2, "attachment skill_listing": 2}
    assert (old.unknown_kinds, old.unknown_keys) == ({}, {})
    assert new.unknown_kinds == {
        "attachment hologram": 1,
        "attachment other": 1,
        "block telepathy": 1,
        "dream": 1,
        "system sleepwalk": 1,
    }
    assert new.unknown_keys == {"assistant: novelKey": 1}
    assert old.keys["user"]["message"] == 2
    assert census.found["swe_gym", "no version"].unknown_keys == {"message user: parts": 1}
    assert census.unread == {"of no known format": 1}
    assert PRIVATE not in json.dumps(census.to_json())


def test_versions_are_listed_by_their_numbers(tmp_path: Path) -> None:
    for version in ("2.1.109", "2.1.12", "2.0.9"):
        write(tmp_path / f"{version}.jsonl", user("1", None, "hi") | {"version": version})
    listed = take_census([tmp_path]).to_json()["formats"]
    assert [each["version"] for each in listed] == ["2.0.9", "2.1.12", "2.1.109"]


def test_the_command_prints_what_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.jsonl", *session())
    app(["formats", "census", str(path)], standalone_mode=False)
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "claude_code 2.1.33  1 files, 2 records, 3 kinds"
    assert "  unknown kinds  1  attachment hologram" in said.splitlines()
    assert "  unknown keys   1  assistant: novelKey" in said.splitlines()
    assert "hunter2" not in said
    app(["formats", "census", str(path), "--json"], standalone_mode=False)
    value = json.loads(capsys.readouterr().out)
    assert [item["version"] for item in value["formats"]] == ["2.1.33", "2.1.999"]
    with pytest.raises(SourceError, match="does not exist"):
        app(["formats", "census", str(tmp_path / "gone")], standalone_mode=False)


def test_ingest_names_the_kinds_it_does_not_know(tmp_path: Path) -> None:
    _, report = ingest(tmp_path, *session())
    assert report.unknown == {"attachment hologram": 1, "attachment other": 1, "record dream": 1}


@pytest.mark.parametrize("folder", ["claude_code", "openhands", "swe_gym", "swe_agent", "mini_swe_agent"])
def test_the_examples_hold_nothing_unknown(folder: str) -> None:
    place = Path(__file__).resolve().parents[2] / "examples" / "sessions" / folder
    if not place.is_dir():
        place = Path(__file__).resolve().parents[1] / "golden" / "inputs" / folder
    census = take_census([place])
    assert census.found
    assert sum(found.records for found in census.found.values()) > 0
    assert {key: f.unknown_keys for key, f in census.found.items() if f.unknown_keys} == {}
