"""Dialects told by content, and folders walked without losing a file."""

import json
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover, find_encoding_error
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.row_files import LineSpan
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError
from tracemill.records.storage.workspace import Workspace

CLAUDE = {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"content": "go"}}
REPLY = {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s"} | {
    "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}
}
CALL = '{"function": {"name": "f", "arguments": "{}"}}'
ACTION = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}}
EVENT = {"id": "x", "source": "user", "kind": "MessageEvent", "timestamp": "2026-01-01"}
ROW = {"instance_id": "a__b-1", "messages": []}


@pytest.mark.parametrize(
    ("value", "dialect"),
    [
        (CLAUDE, "claude_code"),
        ({"type": "summary", "summary": "x", "leafUuid": "y"}, "claude_code"),
        ({"sessionId": "s", "message": {"id": "m"}, "costUSD": 0.1}, "claude_code"),
        ({"instance_id": "a__b-1", "history": []}, "openhands_eval_v0"),
        ({"issue": {}, "history": []}, "openhands_resolver_v0"),
        ({"id": "x", "history": [], "metadata": {}, "test_result": {}}, "openhands_eval_v0"),
        (ACTION, "openhands_events_v0"),
        ({"trajectory": [ACTION]}, "openhands_events_v0"),
        (EVENT, "openhands_sdk_v1"),
        ({"messages": [], "response": {}, "cost": 0, "args": [], "kwargs": {}}, "openhands_completion_v0"),
        ({"messages": [], "response": {}, "cost": 0, "usage_summary": {}}, "openhands_completion_v1"),
        (ROW, "swe_gym"),
        ({"traj_id": "x", "messages": "[]", "resolved": True}, "swe_gym"),
        ({"instance_id": "a", "trajectory": [], "target": True}, "swe_gym"),
        ({"instance_id": "a", "input": "mend it", "output": [{"type": "message"}]}, "swe_gym"),
        ({"instance_id": "a", "input": "mend it", "output": "done"}, None),
        ({"messages": []}, "swe_gym"),
        ({"info": {}, "messages": []}, None),
        ({"timestamp": "t", "type": "session_meta", "payload": {}}, "codex"),
        ({"id": "x", "timestamp": "t", "instructions": None}, "codex"),
        ({"timestamp": "t", "type": "session_meta"}, None),
        ({"environment": "e", "trajectory": [{"action": "ls", "observation": "x"}]}, "swe_agent"),
        ({"type": "session", "id": "x", "harness": "y"}, "sts"),
        ({}, None),
    ],
)
@pytest.mark.parametrize("layout", ["line", "late line", "pretty", "list"])
def test_dialects_by_content(tmp_path: Path, value: dict[str, Any], dialect: str | None, layout: str) -> None:
    path = tmp_path / "anything.json"
    if layout == "line":
        path.write_text(json.dumps(value) + "\n")
    elif layout == "late line":
        path.write_text('not json\n"text"\n{"type": "later"}\n' + json.dumps(value) + "\n")
    elif layout == "pretty":
        path.write_text(json.dumps(value, indent=2))
    else:
        path.write_text(json.dumps([value]))
    assert detect(path) == dialect


def test_parquet_is_told_by_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"instance_id": ["a"], "messages": ["[]"]}), tmp_path / "a")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "b")
    (tmp_path / "c").write_bytes(b"PAR1 and then nothing")
    assert detect(tmp_path / "a") == "swe_gym"
    assert detect(tmp_path / "b") is None
    with pytest.raises(SourceError, match="broken Parquet"):
        detect(tmp_path / "c")


def test_bytes_that_are_no_text_are_of_no_dialect(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "y.jsonl").write_bytes(b"")
    assert detect(tmp_path / "x.jsonl") is None
    assert detect(tmp_path / "y.jsonl") is None


def _tree(root: Path) -> None:
    lines = json.dumps(CLAUDE) + "\n" + json.dumps(REPLY) + "\n"
    (root / "z").mkdir()
    (root / "z" / "session.jsonl").write_text(lines)
    conversation = root / "conversation" / "events"
    conversation.mkdir(parents=True)
    (root / "conversation" / "base_state.json").write_text("{}")
    (conversation / "event-00000-x.json").write_text(json.dumps(EVENT))
    numbered = root / "numbered" / "events"
    numbered.mkdir(parents=True)
    (numbered / "0.json").write_text(json.dumps(ACTION))
    (root / ".hidden").mkdir()
    (root / ".hidden" / "session.jsonl").write_text(lines)
    (root / "notes.md").write_text("no source")
    (root / "other.json").write_text('{"a": 1}')
    (root / "broken.parquet").write_bytes(b"PAR1")
    (root / "cut.jsonl.gz").write_bytes(b"\x1f\x8b cut")


def test_a_folder_gives_every_source_once_in_order(tmp_path: Path) -> None:
    _tree(tmp_path)
    found = discover([tmp_path, str(tmp_path / "z")])
    assert [(str(s.path.relative_to(tmp_path)), s.dialect) for s in found] == [
        ("broken.parquet", "unreadable"),
        ("conversation", "openhands_sdk_v1"),
        ("cut.jsonl.gz", "unreadable"),
        ("numbered", "openhands_events_v0"),
        ("other.json", None),
        ("z/session.jsonl", "claude_code"),
    ]
    assert found[-1].bytes == (tmp_path / "z" / "session.jsonl").stat().st_size
    assert found[1].bytes > 0


def test_hidden_folders_of_agents_are_read_and_other_hidden_ones_are_not(tmp_path: Path) -> None:
    lines = json.dumps(CLAUDE) + "\n" + json.dumps(REPLY) + "\n"
    for name in (
        "home/.claude/projects/-srv-shop/s1.jsonl",
        "home/.claude/projects/-srv-shop/s1/subagents/agent-a.jsonl",
        "home/.config/claude/projects/-srv-shop/s2.jsonl",
        "home/.claude/todos/s1.jsonl",
        "home/.cache/s1.jsonl",
        "home/code/.claude/projects/x/s3.jsonl",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".claude").symlink_to(tmp_path / "home" / ".claude")
    found = discover([tmp_path])
    assert [str(source.path.relative_to(tmp_path)) for source in found] == [
        "home/.claude/projects/-srv-shop/s1.jsonl",
        "home/.claude/projects/-srv-shop/s1/subagents/agent-a.jsonl",
        "home/.config/claude/projects/-srv-shop/s2.jsonl",
        "home/code/.claude/projects/x/s3.jsonl",
    ]
    assert {source.dialect for source in found} == {"claude_code"}
    assert len(discover([tmp_path / "home" / ".claude"])) == 3


HIDDEN = [
    ".claude/projects",
    ".cline/data/sessions",
    ".cline/data/tasks",
    ".codex/archived_sessions",
    ".codex/sessions",
    ".config/Code/User/globalStorage",
    ".config/Cursor/User/globalStorage",
    ".config/Cursor/User/workspaceStorage",
    ".config/claude/projects",
    ".gemini/tmp",
    ".openhands/conversations",
    ".openhands/sessions",
    ".pi/agent/sessions",
    ".vscode-server/data/User/globalStorage",
]


def test_the_hidden_folders_of_every_agent_are_read(tmp_path: Path) -> None:
    for name in HIDDEN:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_text(json.dumps(CLAUDE) + "\n" + json.dumps(REPLY) + "\n")
    found = discover([tmp_path])
    assert [str(source.path.parent.relative_to(tmp_path)) for source in found] == HIDDEN


def test_archives_and_workspaces_among_sessions_are_told_apart(tmp_path: Path) -> None:
    _tree(tmp_path)
    with zipfile.ZipFile(tmp_path / "z" / "export.zip", "w") as archive:  # stored, so its lines can be seen
        archive.writestr("session.jsonl", json.dumps(CLAUDE))
    (tmp_path / "session.jsonl").write_text(json.dumps(CLAUDE) + "\n")
    with tarfile.open(tmp_path / "z" / "plain.tar", "w") as tar:
        tar.add(tmp_path / "session.jsonl")
    with tarfile.open(tmp_path / "z" / "packed.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "session.jsonl")
    Workspace.open(tmp_path / "made")
    (tmp_path / "made" / "shard.parquet").write_bytes(b"PAR1")
    found = {source.path.name: source.dialect for source in discover([tmp_path])}
    assert (found["export.zip"], found["made"]) == ("zip archive", "workspace")
    assert (found["plain.tar"], found["packed.tar.gz"]) == ("tar archive", "tar archive")
    assert "shard.parquet" not in found
    (tmp_path / "made" / "workspace.json").write_text('{"folders": []}')  # of another program
    assert "shard.parquet" in {source.path.name for source in discover([tmp_path])}


def test_what_cannot_be_read_is_a_report_and_never_an_exception(tmp_path: Path) -> None:
    _tree(tmp_path)
    (tmp_path / "gone.jsonl").write_text(json.dumps(CLAUDE))
    sources = {source.path.name: source for source in discover([tmp_path])}
    (tmp_path / "gone.jsonl").unlink()
    traces, report = ingest_source(sources["session.jsonl"])
    assert (len(traces), report.states, report.error, report.dialect) == (1, 1, None, "claude_code")
    for name, reason in {
        "broken.parquet": "broken Parquet",
        "cut.jsonl.gz": "cannot be read",
        "other.json": "of no known format",
        "gone.jsonl": "cannot be read: No such file",
    }.items():
        traces, report = ingest_source(sources[name])
        assert traces == []
        assert report.error is not None
        assert reason in report.error


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="absent does not exist"):
        discover([tmp_path / "absent"])


def test_a_dialect_that_does_not_fit_the_file_is_a_report(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n')
    traces, report = ingest_source(SourceFile(path, "claude_code", 9))
    assert traces == []
    assert "holds no Claude Code record" in str(report.error)


def test_a_row_that_defeats_its_reader_is_counted_and_stops_no_other(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    deep = '{"function": {"name": "f", "arguments": %s}}' % ('{"a": ' * 990 + "1" + "}" * 990)
    row = '{"instance_id": "a__b-%d", "messages": [{"role": "assistant", "content": "", "tool_calls": [%s]}]}'
    path.write_text("".join(row % (at, call) + "\n" for at, call in enumerate((CALL, deep, CALL))))
    (source,) = discover([path])
    traces, report = ingest_source(source)
    if sys.version_info >= (3, 12):  # which counts calls of C apart, and can read it
        assert [trace.instance_id for trace in traces] == ["a__b-0", "a__b-1", "a__b-2"]
        return
    assert [trace.instance_id for trace in traces] == ["a__b-0", "a__b-2"]
    assert (report.error, report.skipped) == (None, {"row that cannot be read: RecursionError": 1})
    part = LineSpan(0, source.bytes)
    parts, report = ingest_source(replace(source, part=part))
    assert (parts, report.skipped["row that cannot be read: RecursionError"]) == (traces, 1)


def test_an_encoding_that_is_not_read_is_named(tmp_path: Path) -> None:
    text = '{"type": "user", "uuid": "a", "sessionId": "b"}\n' * 2
    written = {
        "bom": (text.encode("utf-16"), "its encoding is UTF-16, not UTF-8"),
        "bare": (text.encode("utf-16-le"), "its encoding is UTF-16, not UTF-8"),
        "mac": (text.replace("\n", "\r").encode(), "its lines end in a carriage return alone"),
        "prose": (b"hello\nworld\n", ""),
    }
    for name, (data, fault) in written.items():
        (tmp_path / name).write_bytes(data)
        assert find_encoding_error(tmp_path / name) == fault


def test_an_indented_list_is_known_by_its_first_object(tmp_path: Path) -> None:
    event = {"id": 0, "source": "user", "action": "message", "args": {"content": "}\n  }"}}
    path = tmp_path / "list.json"
    for value in ([event, event], {"trajectory": [event, event]}):
        text = json.dumps(value, indent=2)
        path.write_text(text)
        assert detect(path) == "openhands_events_v0"
        path.write_text(text[:-30])  # known, though it does not parse
        assert detect(path) == "openhands_events_v0"
    path.write_text(json.dumps([{"role": "user"}, event], indent=2))
    assert detect(path) == "openhands_events_v0"


@pytest.mark.parametrize("layout", [{"indent": 2}, {"separators": (",", ":")}])
def test_a_file_that_is_not_whole_is_known_by_how_it_begins(tmp_path: Path, layout: dict[str, Any]) -> None:
    talk = [
        {"role": "user", "content": [{"type": "text", "text": "<environment_details>"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "x" * 20_000}]},
    ]
    call = {"key": "gen_ai.input.messages", "value": {"stringValue": "y" * 20_000}}
    export = {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "1", "attributes": [call]}]}]}]}
    plain = {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "1", "attributes": []}]}]}]}
    for value, dialect in ((talk, "cline"), (talk[1:], None), (export, "otel"), (plain, None)):
        path = tmp_path / "session.json"
        path.write_text(json.dumps(value, **layout)[:-40])
        assert detect(path) == dialect


def test_a_run_of_mini_swe_agent_is_known_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"agent": {"instance_template": '{ "task" }\n' * 600}}
    runs: dict[str, Any] = {
        "whole": {"info": {"config": config, "exit_status": "Submitted"}, "messages": []},
        "late": {"info": {"config": config, "exit_status": "Submitted"}, "more": {}, "messages": []},
        "long": {"info": {"config": [config] * 20, "mini_version": "2.0"}, "messages": []},
        "other": {"info": {"config": config}, "messages": []},
        "bare": {"info": {"config": config, "exit_status": "Submitted"}},
    }
    for name, run in runs.items():
        for indent in (None, 2):
            (tmp_path / f"{name}{indent}.json").write_text(json.dumps(run, indent=indent))
    told = {path.name: detect(path) for path in tmp_path.iterdir()}
    kinds = {"whole": "mini_swe_agent", "late": "mini_swe_agent", "long": "mini_swe_agent", "bare": None}
    assert told == {
        f"{name}{indent}.json": kinds.get(name, told["otherNone.json"])
        for name in runs
        for indent in (None, 2)
    }
    assert told["otherNone.json"] != "mini_swe_agent"

    def refuse(path: Path) -> Any:
        raise AssertionError(path)

    monkeypatch.setattr("tracemill.ingesters.detect_format.read_json", refuse)
    assert detect(tmp_path / "whole2.json") == "mini_swe_agent"
