"""Claude Code: results that failed and why, and files that are broken."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from claude_code_records import (
    answer,
    attachment,
    boundary,
    ingest,
    line,
    queued,
    read,
    says,
    summary,
    texts,
    user,
    write,
)

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.ingesters.ingester_classes import ClaudeCodeIngester
from tracemill.records.errors import SourceError
from tracemill.records.trace import Trace

DENIED = {"toolDenialKind": "user-rejected"}
BY_RULE = {"toolDenialKind": "permission-rule"}
TAG = "<tool_use_error>{}</tool_use_error>"


@pytest.mark.parametrize(
    ("name", "text", "flag", "fields", "kind"),
    [
        ("Bash", "Exit code 2\nboom", True, {}, "exit_code"),
        ("Bash", "Command timed out after 2m 0.0s", True, {}, "timeout"),
        ("Bash", "Exit code 143\nCommand timed out after 2m 0.0s", True, {}, "timeout"),
        ("Bash", "ls: cannot access 'x'", True, {"version": "1.0.98"}, "exit_code"),
        ("Bash", "not on my branch", True, {}, "hook"),
        ("Bash", "PreToolUse:Bash hook error: no", True, {}, "hook"),
        ("Edit", "PreToolUse:Edit hook error: no", True, {}, "hook"),
        ("Edit", TAG.format("String to replace not found in file."), True, {}, "tool_error"),
        ("Edit", TAG.format("String to replace not found in file."), None, {}, "tool_error"),
        ("Read", "EISDIR: illegal operation on a directory, read", True, {}, "tool_error"),
        (
            "Read",
            "File content (26800 tokens) exceeds maximum allowed tokens (25000).",
            True,
            {},
            "tool_error",
        ),
        ("Task", "Agent type 'x' not found. Available agents: Explore", True, {}, "tool_error"),
        ("mcp__linear__get", "Entity not found", True, {}, "tool_error"),
        (None, "Entity not found", True, {}, "unknown"),
        ("Edit", TAG.format("Sibling tool call errored"), True, {}, "cancelled"),
        ("Bash", TAG.format("Cancelled: parallel tool call Bash(x) errored"), True, {}, "cancelled"),
        ("Edit", "The user doesn't want to proceed with this tool use.", True, {}, "user_rejection"),
        ("Bash", "The user doesn't want to take this action right now.", True, {}, "user_rejection"),
        ("Task", "[Request interrupted by user for tool use]", True, {}, "user_rejection"),
        ("Edit", "Denied", True, DENIED, "user_rejection"),
        ("Bash", "Denied", True, BY_RULE, "hook"),
        ("Bash", "Permission to use Bash with command x has been denied.", True, {}, "hook"),
        (
            "Write",
            "Claude requested permissions to write to /x, but",
            True,
            {},
            "hook",
        ),
        ("Task", "API Error: 529 overloaded", True, {}, "api_error"),
        ("Task", "API Error: 529 overloaded", None, {}, "api_error"),
        ("Bash", "API Error: 529 is what curl says", None, {}, None),
        ("Bash", "Error: it only says so", False, {}, None),
        ("Bash", "Exit code 2 is what the page says", None, {}, None),
        ("Read", "<tool_use_error> is a tag of the harness", False, {}, "tool_error"),
    ],
)
def test_error_kinds(
    tmp_path: Path, name: str | None, text: str, flag: bool | None, fields: dict[str, Any], kind: str | None
) -> None:
    flags = {} if flag is None else {"is_error": flag}
    called = [says("2", "1", "m1", ("a", name))] if name else [says("2", "1", "m1", "hm")]
    traces, report = ingest(
        tmp_path, user("1", None, "go"), *called, answer("3", "2", "a", text, **fields, **flags)
    )
    result = traces[0].contexts[0].messages[2]
    assert (result.is_error, result.error_kind, result.content) == (flag, kind, text)
    assert report.tool_errors == (1 if flag else 0)


def prefixes(traces: list[Trace]) -> list[list[str]]:
    return [texts(state.messages) for trace in traces for state in trace.states()]


def test_broken_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    good = [user("1", None, "go"), says("2", "1", "m1", "hi")]
    data = "".join(json.dumps(record) + "\n" for record in good).encode()
    data += b'"a string"\n[1, 2]\nnull\n{"type": "user", \xff}\n{"type": "no such type"}\n{"typ": 1}\n'
    data += json.dumps(user("3", "gone", None)).encode() + b"\n"
    data += json.dumps({"type": "attachment", "uuid": "3b", "parentUuid": "2"}).encode() + b"\n"
    data += json.dumps(says("1", None, "m9", "of a uuid that was there")).encode() + b"\n"
    data += json.dumps(user("4", "gone", "more")).encode() + b"\n\n"
    data += json.dumps(says("5", "4", "m2", "on")).encode()[:-20]
    path.write_bytes(data)
    traces, report = ingest_file(path)
    assert dict(report.skipped) == {
        "not an object": 3,
        "invalid utf-8": 1,
        "unknown record type": 1,
        "record without type": 1,
        "message without content": 1,
        "attachment without content": 1,
        "repeated uuid": 1,
        "not json": 1,
    }
    assert report.flags["parent missing"] == 1
    assert report.states == 1
    assert texts(traces[0].contexts[0].messages) == ["user:go", "assistant:hi", "user:more"]


def test_a_message_that_is_a_plain_string_is_its_text(tmp_path: Path) -> None:
    bare = user("1", None, "") | {"message": "go"}
    traces, report = ingest(tmp_path, bare, says("2", "1", "m1", "hi"))
    assert prefixes(traces) == [["user:go"]]
    assert dict(report.skipped) == {}


def test_records_with_empty_ids_are_records_without_ids(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, user("", "", "go"), says("", "", "m1", "hi"), says("", "", "m2", "bye"))
    assert prefixes(traces) == [["user:go"], ["user:go", "assistant:hi"]]
    assert (report.steps_main, dict(report.skipped), dict(report.flags)) == (2, {}, {})


def test_bytes_that_are_no_text_cost_no_record(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", user("1", None, "go ?"), says("2", "1", "m1", "hi"))
    path.write_bytes(path.read_bytes().replace(b"go ?", b"go \xff"))
    traces, report = ingest_file(path)
    assert prefixes(traces) == [["user:go \ufffd"]]
    assert (dict(report.skipped), report.flags["repaired json"]) == ({}, 1)


def test_a_line_of_50_mb_is_a_line(tmp_path: Path) -> None:
    big = "x" * 50_000_000
    path = write(
        tmp_path / "s.jsonl",
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", big),
        says("4", "3", "m2", "done"),
    )
    traces, report = ingest_file(path)
    assert report.bytes > 50_000_000
    assert [len(m.content) for m in list(traces[0].states())[1].messages] == [2, 0, 50_000_000]


@pytest.mark.parametrize("depth", [20, 450])
def test_content_nested_beyond_sense_is_left_out(tmp_path: Path, depth: int) -> None:
    nested = '{"type": "text", "content": [' * depth + '{"text": "x"}' + "]}" * depth
    path = write(
        tmp_path / "s.jsonl",
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash", {"at": 1})),
        answer("3", "2", "a", "NESTED"),
        says("4", "3", "m2", "done"),
    )
    data = (
        path.read_text()
        .replace('"NESTED"', f"[{nested}]")
        .replace('{"at": 1}', '{"at": ' * 900 + "1" + "}" * 900)
    )
    orjson.loads(data.splitlines()[2])
    path.write_text(data)
    (_, second) = ingest_file(path)[0][0].states()
    assert texts(second.messages)[2] == ("tool:x" if depth < 30 else "tool:")
    assert second.messages[1].tool_calls[0].arguments.startswith("{")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "holds no Claude Code record"),
        (b"\n \n", "holds no Claude Code record"),
        (b"\x00\x01\x02", "holds no Claude Code record"),
        (b'"text"\n', "holds no Claude Code record"),
        (b'{"type": "user"', "holds no Claude Code record"),
        (b'{"foo": 1}\n', "holds no Claude Code record"),
    ],
)
def test_a_file_without_a_record_is_named(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=found):
        ingest_file(path)
    write(tmp_path / "t.jsonl", user("1", None, "go"), says("2", "1", "m1", "hi"))
    ingester = ClaudeCodeIngester()
    assert len(list(ingester.ingest(tmp_path))) == 1
    assert [report.error is None for report in ingester.reports] == [False, True]


@pytest.mark.parametrize(
    "records",
    [
        [{"type": "file-history-snapshot", "messageId": "x"}, {"type": "summary", "leafUuid": "y"}],
        [user("1", None, "go")],
        [{"sessionId": "x", "message": {"usage": {"input_tokens": 5}}, "costUSD": 0.1}],
    ],
    ids=["snapshots", "a question alone", "a usage log"],
)
def test_a_session_without_steps_gives_no_trace_and_no_error(
    tmp_path: Path, records: list[dict[str, Any]]
) -> None:
    traces, report = ingest(tmp_path, *records)
    assert (traces, report.states, report.error) == ([], 0, None)


def test_a_session_cut_at_any_byte_gives_the_prefixes_it_still_holds(tmp_path: Path) -> None:
    records = [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", "out"),
        says("4", "3", "m2", "done"),
    ]
    whole = prefixes([read(tmp_path, *records)])
    data = (tmp_path / "session.jsonl").read_bytes()
    ends = [place for place, byte in enumerate(data) if byte == 10]
    path = tmp_path / "cut.jsonl"

    for size in range(ends[0], len(data), 7):
        path.write_bytes(data[:size])
        traces, report = ingest_file(path)
        lines = sum(end <= size for end in ends)
        assert prefixes(traces) == whole[: 0 if lines < 2 else 1 if lines < 4 else 2]
        whole_lines = size in ends or size - 1 in ends
        assert report.skipped["not json"] == (0 if whole_lines else 1)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a JSON value, as (container, key)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in list(items) for found in [(value, key), *places_in(inner)]]


def session_of_every_kind() -> list[dict[str, Any]]:
    """A session with a record of every kind that the reader looks into."""
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "iterations": [{"type": "message", "input_tokens": 1, "cache_read_input_tokens": 5}],
    }
    prompt = {"type": "prompt_snapshot", "systemPrompt": ["Be."], "tools": [{"name": "Bash", "schema": {}}]}
    deferred = {
        "type": "deferred_tools_record",
        "entries": [{"name": "Grep", "input_schema": {}}],
        "toolInputCopies": [{"id": "c", "copy": "wire"}],
    }
    shown = {"rendered": [{"content": "a note"}], "renderedRole": "system"}
    agent = {"type": "agent_progress", "agentId": "a1", "message": {"role": "user"}}
    start = ("t", "Task", {"prompt": "look", "description": "x"})
    keeps = {"preservedMessages": {"anchorUuid": "b", "uuids": ["6"]}, "preCompactDiscoveredTools": ["Grep"]}
    stub = {"kind": "tool-result", "toolUseId": "c", "replacement": "short"}
    return [
        line("attachment", "p", None, attachment=prompt),
        line("attachment", "d", "p", attachment=deferred),
        line("attachment", "n", "d", attachment={"type": "skill_listing", "content": "x"}, **shown),
        attachment("h", "n", type="hook_success", hookEvent="SessionStart", stdout="{}", content="x"),
        user("1", "h", "go"),
        queued("enqueue", "also b"),
        queued("remove"),
        says("2", "1", "m1", ("c", "Bash", {"command": "ls"}), usage=usage),
        line("progress", "g", "2", data=agent, toolUseID="t", parentToolUseID="t"),
        answer("3", "2", "c", "a.py") | {"toolUseResult": {"agentId": "a1", "runId": "r"}},
        {"type": "content-replacement", "sessionId": "s", "replacements": [stub]},
        says("4", "3", "m2", start),
        answer("5", "4", "t", [{"type": "text", "text": "agentId: a1"}]),
        line(
            "system", "m", "5", subtype="microcompact_boundary", microcompactMetadata={"compactedToolIds": []}
        ),
        says("6", "m", "m3", "done"),
        line("system", "r", "6", subtype="informational", retractedMessageUuids=["x"]),
        boundary("b", keeps),
        summary("7", "b"),
        says("8", "7", "m4", "on"),
        {"type": "last-prompt", "leafUuid": "8", "sessionId": "s"},
    ]


def test_a_value_of_another_type_is_never_fatal(tmp_path: Path) -> None:
    """Each value of a session and of a subagent's file, one at a time, is of another type."""
    count = len(places_in(session_of_every_kind()))
    assert count > 200
    agent = [
        user("s1", None, "look", isSidechain=True, agentId="a1", sessionId="other"),
        says("s2", "s1", "n1", "seen", isSidechain=True, agentId="a1", sessionId="other"),
    ]
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    for junk in ([], {}, 7):
        for at in range(count):
            records = session_of_every_kind()
            container, key = places_in(records)[at]
            container[key] = junk
            path = write(tmp_path / "s.jsonl", *records)
            traces, report = ingest_file(path)
            assert report.states == sum(trace.step_count for trace in traces)
            assert report.states >= 1
            if junk == []:
                side = write(tmp_path / "s" / "subagents" / "agent-a1.jsonl", *agent)
                assert ingest_file(side)[1].states == 1
