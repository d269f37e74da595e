"""A census: kinds and keys by format and version, those unknown by name, nothing of the content."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from claude_code_records import attachment, ingest, line, queued, says, user, write

from tracemill.cli.main import app
from tracemill.flows.sources.discovery import find_sources
from tracemill.flows.sources.source_spec import SourceOptions
from tracemill.ingesters.census import take_census
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.errors import SourceError

NEW = {"version": "2.1.999"}
PRIVATE = "hunter2 at example"


def session() -> list[Any]:
    return [
        user("1", None, PRIVATE),
        attachment("2", "1", type="skill_listing", content=PRIVATE),
        attachment("3", "2", type="hologram", content=PRIVATE, aura=PRIVATE) | NEW,
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
    assert old.kinds == {"user": 2, "message": 2, "attachment": 2, "attachment skill_listing": 2}
    assert (old.unknown_kinds, old.unknown_keys) == ({}, {})
    assert new.unknown_kinds == {
        "attachment hologram": 1,
        "attachment other": 1,
        "block telepathy": 1,
        "dream": 1,
        "system sleepwalk": 1,
    }
    assert new.unknown_keys == {"assistant: novelKey": 1, "attachment hologram: aura": 1}
    assert old.keys["user"]["message"] == 2
    assert census.found["swe_gym", "no version"].unknown_keys == {"message user: parts": 1}
    assert census.unread == {"of no known format": 1}
    assert PRIVATE not in json.dumps(census.to_json())


def test_keys_of_messages_and_their_blocks_are_known_by_name(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"free": 1}, "aura": PRIVATE}
    said = says("2", "1", "m1", call, usage={"free": 1})
    said["message"] |= {"glow": PRIVATE}
    census = take_census([write(tmp_path / "a.jsonl", user("1", None, "go"), said)])
    found = census.found["claude_code", "2.1.33"]
    assert found.unknown_keys == {"message: glow": 1, "block tool_use: aura": 1}
    assert (found.kinds["message"], found.kinds["block tool_use"], found.unknown_kinds) == (2, 1, {})
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
    assert said.splitlines()[0] == "claude_code 2.1.33  1 file, 2 records, 4 kinds"
    assert "  unknown kinds  1  attachment hologram" in said.splitlines()
    assert "  unknown keys   1  assistant: novelKey" in said.splitlines()
    assert "hunter2" not in said
    app(["formats", "census", str(path), "--json"], standalone_mode=False)
    value = json.loads(capsys.readouterr().out)
    assert [item["version"] for item in value["formats"]] == ["2.1.33", "2.1.999"]
    with pytest.raises(SourceError, match="does not exist"):
        app(["formats", "census", str(tmp_path / "gone")], standalone_mode=False)


def test_events_of_openhands_are_counted_wherever_they_lie_and_known_by_the_readers_tables(
    tmp_path: Path,
) -> None:
    def acts(number: int, name: str, **more: Any) -> dict[str, Any]:
        base = {"id": number, "source": "agent", "timestamp": "2026-01-01T00:00:00", "message": PRIVATE}
        return base | {"action": name, "args": {"command": PRIVATE}} | more

    def shows(number: int, name: str, **more: Any) -> dict[str, Any]:
        base = {"id": number, "source": "agent", "cause": number - 1, "content": PRIVATE, "extras": {}}
        return base | {"observation": name} | more

    events = [
        acts(0, "message", source="user"),
        acts(1, "run"),
        shows(2, "run"),
        acts(3, "call_tool_mcp"),
        shows(4, "mcp", novel_key=1),
        acts(5, "teleport"),
        shows(6, "echo"),
        {"source": "environment", "status_update": True},
    ]
    (tmp_path / "export.json").write_text(json.dumps(events, indent=1))
    row = {"instance_id": "o__r-1", "history": json.dumps([[events[1], events[2]]]), "metadata": {}}
    write(tmp_path / "output.jsonl", row)
    talk = [
        {"id": "a", "source": "user", "kind": "MessageEvent", "llm_message": {"role": "user"}},
        {"id": "b", "source": "agent", "kind": "ActionEvent", "tool_name": "dance"}
        | {"action": {"kind": "DanceAction"}, "aura": 1},
        {"id": "c", "source": "agent", "kind": "DreamEvent", "dream": PRIVATE},
    ]
    write(tmp_path / "events.jsonl", *talk)
    census = take_census([tmp_path])
    found = census.found["openhands", "no version"]
    assert (found.files, found.records, census.unread) == (3, 12, {})
    assert found.kinds == {
        "action message": 1,
        "action run": 2,
        "observation run": 2,
        "action call_tool_mcp": 1,
        "observation mcp": 1,
        "action teleport": 1,
        "observation echo": 1,
        "status": 1,
        "row": 1,
        "MessageEvent": 1,
        "ActionEvent": 1,
        "action DanceAction": 1,
        "DreamEvent": 1,
    }
    assert found.unknown_kinds == {"action teleport": 1, "observation echo": 1, "DreamEvent": 1}
    assert found.unknown_keys == {"observation mcp: novel_key": 1, "ActionEvent: aura": 1}
    assert PRIVATE not in json.dumps(census.to_json())

    named = named_by_ingest(tmp_path)
    assert named == {"action teleport": 1, "observation echo": 1, "event DreamEvent": 1}


def test_items_and_parts_of_rows_are_known_by_what_is_read(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "1", "name": "r", "arguments": "{}", "aura": PRIVATE}
    tool = {
        "type": "tool-read",
        "toolCallId": "1",
        "state": "output-available",
        "input": {},
        "output": PRIVATE,
        "glow": PRIVATE,
        "shade": None,
    }
    parts = [{"type": "step-start"}, tool, {"type": "data-weather", "data": PRIVATE}]
    asked = {"role": "user", "content": PRIVATE}
    calls = {"type": "tool-call", "toolCallId": "1", "toolName": "r", "input": {}, "haze": PRIVATE}
    rows = [
        {"messages": [asked, call, {"type": "web_search_call", "id": "w"}]},
        {"messages": [asked, {"id": "m", "role": "assistant", "parts": parts}]},
        {"messages": [asked, {"role": "assistant", "content": [calls]}]},
    ]
    found = take_census([write(tmp_path / "rows.jsonl", *rows)]).found["swe_gym", "no version"]
    assert found.unknown_kinds == {"item web_search_call": 1, "part data-weather": 1}
    assert found.unknown_keys == {
        "item function_call: aura": 1,
        "part tool-read: glow": 1,
        "part tool-call: haze": 1,
    }
    assert (found.kinds["part tool-read"], found.kinds["part step-start"]) == (1, 1)


def named_by_ingest(tmp_path: Path) -> Counter[str]:
    """What ingest names as unknown of all sources in a folder."""
    named: Counter[str] = Counter()
    for source in discover([tmp_path]):
        named += ingest_source(source)[1].unknown
    return named


def test_runs_of_swe_agent_are_known_by_what_is_read(tmp_path: Path) -> None:
    step = {"action": "ls", "observation": "a.py", "response": "I look.", "thought": "", "state": "{}"}
    asked = {"role": "user", "content": PRIVATE, "agent": "main"}
    acts = {"role": "assistant", "content": "I look.", "agent": "main", "action": "ls"}
    history = [asked, acts, {"role": "user", "content": "a.py", "agent": "main", "aura": PRIVATE}]
    whole = {"trajectory": [step | {"glow": PRIVATE}], "history": history, "info": {}}
    odd = [
        {"role": "seer", "content": PRIVATE},
        acts,
        asked | {"content": [{"type": "hologram", "x": PRIVATE}]},
    ]
    more = {"trajectory": [step | {"query": [{"role": "oracle", "content": PRIVATE}]}], "history": odd}
    (tmp_path / "a.traj").write_text(json.dumps(whole))
    (tmp_path / "b.traj").write_text(json.dumps({"attempts": [more, 5]} | more))
    census = take_census([tmp_path])
    found = census.found["swe_agent", "no version"]
    assert (found.files, found.records, found.kinds["step"], found.kinds["message user"]) == (2, 2, 2, 3)
    assert found.unknown_kinds == {
        "message role.seer": 1,
        "message role.oracle": 1,
        "message hologram": 1,
        "run int": 1,
    }
    assert found.unknown_keys == {"step: glow": 1, "message user: aura": 1}
    assert PRIVATE not in json.dumps(census.to_json())
    named = named_by_ingest(tmp_path)
    assert named == {name: 1 for name in found.unknown_kinds if name != "run int"}


def test_runs_of_mini_swe_agent_are_known_by_what_is_read(tmp_path: Path) -> None:
    text = "```mswea_bash_command\nls\n```"
    asked = {"role": "user", "content": PRIVATE}
    acts = {"role": "assistant", "content": text, "extra": {"response": {}, "glow": PRIVATE}}
    result = {"role": "user", "content": "a.py", "extra": {"returncode": 0}, "aura": PRIVATE}
    answer = {"object": "response", "output": [{"type": "hologram", "x": PRIVATE}]}
    done = {"role": "exit", "content": PRIVATE, "extra": {"exit_status": "Submitted"}}
    head = {"trajectory_format": "mini-swe-agent-1.1", "info": {"exit_status": "Submitted"}}
    runs = {
        "a": [asked, acts, result, done],
        "b": [asked, answer],
        "c": [{"role": "seer", "content": "x"}, acts],
    }
    for name, messages in runs.items():
        (tmp_path / f"{name}.traj.json").write_text(json.dumps(head | {"messages": messages}))
    census = take_census([tmp_path])
    found = census.found["mini_swe_agent", "no version"]
    assert (found.files, found.kinds["message exit"], found.kinds["item response"]) == (3, 1, 1)
    assert found.unknown_kinds == {"message item.hologram": 1, "message role.seer": 1}
    assert found.unknown_keys == {"extra: glow": 2, "message user: aura": 1}
    assert PRIVATE not in json.dumps(census.to_json())
    assert named_by_ingest(tmp_path) == found.unknown_kinds


def test_an_event_of_no_kind_is_unknown_and_a_file_beside_events_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "talk"
    (folder / "events").mkdir(parents=True)
    (folder / "base_state.json").write_text('{"agent": {}, "persistence_dir": "x"}')
    event = {"id": "a", "source": "user", "kind": "MessageEvent", "llm_message": {"role": "user"}}
    (folder / "events" / "event-00000-a.json").write_text(json.dumps(event))
    (folder / "events" / "event-00001-b.json").write_text('{"id": "b", "source": "agent", "mood": 1}')
    found = take_census([tmp_path]).found["openhands", "no version"]
    assert found.unknown_kinds == {"event": 1}
    assert found.records == 3


def test_what_is_not_read_is_named_with_the_reason_that_ingest_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    path = write(folder / "good.jsonl", *session())
    (folder / "wide.jsonl").write_bytes(path.read_text().encode("utf-16"))
    (folder / "empty.jsonl").touch()
    (folder / "notes.json").write_text('{"a": 1}')
    (folder / "linked").symlink_to(tmp_path)
    for number in range(4):
        (folder / f"torn{number}.jsonl").write_text(path.read_text() + '{"type": "us\n' * (number + 1))
    found = find_sources(SourceOptions(given=((folder, None),)), None)
    census = take_census([folder])
    whole = {(each.path, each.reason) for each in census.not_read if each.reason != "not json"}
    assert whole == {(each.path, each.reason) for each in found.unread}
    assert {Path(each.path).name: each.looks_like for each in found.unread if each.looks_like} == {
        "notes.json": "objects with a (number)"
    }
    assert {Path(name).name: reason for name, reason in whole} == {
        "wide.jsonl": "of no known format: its encoding is UTF-16, not UTF-8",
        "empty.jsonl": "empty",
        "notes.json": "of no known format",
        "linked": "a linked folder, not followed",
    }
    assert census.unread["not json"] == 10
    app(["formats", "census", str(folder)], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("not read  10  not json")
    names = [f"  {folder}/torn{number}.jsonl" for number in range(3)]
    assert lines[at + 1 : at + 5] == [*names, "  and 1 more: --json names them"]
    assert {"path": f"{folder}/torn3.jsonl", "reason": "not json", "count": 4} in census.to_json()[
        "unread_files"
    ]


def test_ingest_names_the_kinds_it_does_not_know(tmp_path: Path) -> None:
    _, report = ingest(tmp_path, *session())
    assert report.unknown == {
        "attachment hologram": 1,
        "attachment other": 1,
        "block telepathy": 1,
        "record dream": 1,
        "system sleepwalk": 1,
    }


@pytest.mark.parametrize(
    "folder",
    sorted(path.name for path in (Path(__file__).resolve().parents[2] / "examples" / "sessions").iterdir()),
)
def test_the_examples_hold_nothing_unknown(folder: str) -> None:
    place = Path(__file__).resolve().parents[2] / "examples" / "sessions" / folder
    if not place.is_dir():
        place = Path(__file__).resolve().parents[1] / "golden" / "inputs" / folder
    census = take_census([place])
    assert census.found
    assert sum(found.records for found in census.found.values()) > 0
    assert {key: f.unknown_keys for key, f in census.found.items() if f.unknown_keys} == {}
    assert {key: f.unknown_kinds for key, f in census.found.items() if f.unknown_kinds} == {}
