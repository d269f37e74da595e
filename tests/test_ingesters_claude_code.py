"""Claude Code files: steps, contexts, subagents and what the model was shown between them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ingesters.claude_code import ClaudeCodeIngester, ingest_file
from records.errors import SourceError
from records.identity import make_trace_id
from records.message import Message
from records.state import Trace, Usage

SESSION = "5e55104a-0000-4000-8000-000000000002"


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": False}
    return base | {"version": "2.1.33", "cwd": "/home/me/shop", "timestamp": "2026-01-01T00:00:00Z"} | fields


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def answer(uuid: str, parent: str | None, call: str, text: Any, **fields: Any) -> dict[str, Any]:
    flag = {"is_error": fields.pop("is_error")} if "is_error" in fields else {}
    return user(
        uuid, parent, [{"type": "tool_result", "tool_use_id": call, "content": text} | flag], **fields
    )


def says(uuid: str, parent: str | None, number: str | None, *blocks: Any, **fields: Any) -> dict[str, Any]:
    """An assistant record; a text block for a string, a call for a pair (id, name) or a triple with input."""
    content = [_block(block) for block in blocks]
    message = {"role": "assistant", "model": fields.pop("model", "claude-sonnet-4-5"), "content": content}
    message |= {"id": number} if number else {}
    message |= {key: fields.pop(key) for key in ("usage", "stop_reason") if key in fields}
    return line("assistant", uuid, parent, message=message, **fields)


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, tuple):
        call, name, *rest = block
        return {"type": "tool_use", "id": call, "name": name, "input": rest[0] if rest else {}}
    return block


def attachment(uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return line("attachment", uuid, parent, attachment=fields)


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(tmp_path: Path, *records: Any) -> Trace:
    traces, _ = ingest_file(write(tmp_path / "session.jsonl", *records))
    return traces[0]


def texts(messages: Any) -> list[str]:
    return [f"{m.role}:{m.content}" for m in messages]


def test_chunks_of_one_message_id_are_one_step_and_streamed_results_follow_it(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", {"type": "thinking", "thinking": "which?", "signature": "s"}),
        says("3", "2", "m1", ("a", "Read", {"file_path": "x.py"})),
        answer("4", "3", "a", "x"),
        says("5", "3", "m1", ("b", "Bash", {"command": "ls"}), stop_reason="tool_use"),
        answer("6", "5", "b", "y"),
        says("7", "4", "m2", "done"),
    )
    first, second = trace.states()
    assert texts(first.messages) == ["user:go"]
    assert [call.name for call in first.student_action.tool_calls] == ["Read", "Bash"]
    assert first.student_action.tool_calls[0].arguments == '{"file_path":"x.py"}'
    assert [(m.tool_call_id, m.name, m.content) for m in first.results] == [
        ("a", "Read", "x"),
        ("b", "Bash", "y"),
    ]
    assert texts(second.messages) == ["user:go", "assistant:", "tool:x", "tool:y"]
    assert second.messages[1].reasoning == "which?"
    assert second.messages[1].content == ""


def test_identity_and_facts_of_a_trace(tmp_path: Path) -> None:
    trace = read(tmp_path, user("1", None, "go"), says("2", "1", "m1", "hi", model="claude-opus-4-5"))
    assert trace.trace_id == make_trace_id("claude_code", SESSION, "", "1")
    assert (trace.source, trace.dialect, trace.harness) == ("claude_code", "claude_code", "claude_code")
    assert (trace.harness_version, trace.project, trace.kind) == ("2.1.33", "shop", "main")
    assert (trace.started_at, trace.origin) == ("2026-01-01T00:00:00Z", "session.jsonl")
    fidelity = trace.contexts[0].fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("absent", "absent", "complete")
    step = trace.contexts[0].steps[0]
    assert (step.model, step.family, step.native_id) == ("claude-opus-4-5", "anthropic", "m1")
    assert (step.cwd, step.timestamp) == ("/home/me/shop", "2026-01-01T00:00:00Z")


def test_usage_is_of_the_last_chunk_and_output_only_where_the_stream_ended(tmp_path: Path) -> None:
    early = {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 5,
        "output_tokens": 1,
    }
    late = early | {"output_tokens": 77}
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "a", usage=early, stop_reason=None),
        says("3", "2", "m1", ("t", "Bash"), usage=late, stop_reason="tool_use"),
        says("4", "3", "m2", "b", usage=early, stop_reason=None),
    )
    assert [step.usage for step in trace.contexts[0].steps] == [Usage(28, 77, 20), Usage(28, None, 20)]


def test_results_of_parallel_calls_survive_though_the_chain_passes_one_by(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Read")),
        says("3", "2", "m1", ("b", "Read")),
        answer("4", "3", "b", "second"),
        answer("5", "2", "a", "first"),
        says("6", "4", "m2", "done"),
    )
    assert texts(list(trace.states())[1].messages) == ["user:go", "assistant:", "tool:second", "tool:first"]
    assert len(trace.contexts) == 1


def test_synthetic_and_api_error_messages_are_no_steps_and_in_no_prefix(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        user("1", None, "go"),
        says("2", "1", "m1", "API Error: 529", isApiErrorMessage=True, model="<synthetic>"),
        user("3", "2", "again"),
        says("4", "3", "m2", {"type": "thinking", "thinking": "", "signature": "s"}),
        says("5", "4", "m3", "hi"),
    )
    traces, report = ingest_file(path)
    (state,) = traces[0].states()
    assert texts(state.messages) == ["user:go", "user:again"]
    assert (report.steps_main, report.steps_synthetic, report.states) == (3, 1, 1)
    assert report.flags["step without action"] == 1


def test_a_rewind_is_its_own_context_with_the_shared_prefix(tmp_path: Path) -> None:
    traces, report = ingest_file(
        write(
            tmp_path / "s.jsonl",
            user("1", None, "go"),
            says("2", "1", "m1", "first"),
            user("3", "2", "wrong way"),
            says("4", "3", "m2", "lost"),
            user("5", "2", "right way"),
            says("6", "5", "m3", "kept"),
        )
    )
    before, after = traces[0].contexts
    assert (before.start, after.start) == ("start", "rewind")
    assert [step.native_id for step in before.steps] == ["m1", "m2"]
    assert [step.native_id for step in after.steps] == ["m3"]
    assert texts(after.messages) == ["user:go", "assistant:first", "user:right way", "assistant:kept"]
    assert after.messages[1] is before.messages[1]
    assert report.branches_real == 1


def test_a_root_in_the_middle_clears_the_context(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        line("progress", "3", None, data={"type": "hook_progress"}),
        user("4", "3", "new"),
        says("5", "4", "m2", "second"),
    )
    assert [context.start for context in trace.contexts] == ["start", "clear"]
    assert texts(trace.contexts[1].messages) == ["user:new", "assistant:second"]


def _compacted(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", "out"),
        says("4", "3", "m2", "fine"),
        user("5", "4", "more"),
        line(
            "system", "6", None, subtype="compact_boundary", compactMetadata=metadata, logicalParentUuid="5"
        ),
        user("7", "6", "the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        attachment("8", "7", type="queued_command", prompt="and this", commandMode="prompt"),
        says("9", "8", "m3", "on"),
    ]


def test_after_a_compaction_the_context_begins_at_the_summary(tmp_path: Path) -> None:
    trace = read(tmp_path, *_compacted({"trigger": "auto", "preCompactDiscoveredTools": ["WebFetch"]}))
    assert [context.start for context in trace.contexts] == ["start", "compaction"]
    assert texts(trace.contexts[1].messages) == ["user:the summary", "user:and this", "assistant:on"]
    assert trace.contexts[1].fidelity.context == "complete"
    assert trace.seen_tools == ("WebFetch",)


@pytest.mark.parametrize(
    "kept",
    [
        {"preservedMessages": {"anchorUuid": "7", "uuids": ["2", "3", "4"]}},
        {"preservedSegment": {"anchorUuid": "7", "headUuid": "2", "tailUuid": "4"}},
    ],
)
def test_preserved_messages_stand_behind_the_summary(tmp_path: Path, kept: dict[str, Any]) -> None:
    context = read(tmp_path, *_compacted(kept)).contexts[1]
    assert texts(context.messages) == [
        "user:the summary",
        "assistant:",
        "tool:out",
        "assistant:fine",
        "user:and this",
        "assistant:on",
    ]
    assert [(step.native_id, step.cut) for step in context.steps] == [("m3", 5)]
    assert context.fidelity.context == "complete"


def test_a_preserved_message_that_the_file_lacks_loses_context(tmp_path: Path) -> None:
    kept = {"preservedMessages": {"anchorUuid": "7", "uuids": ["gone", "4"]}}
    context = read(tmp_path, *_compacted(kept)).contexts[1]
    assert context.fidelity.context == "lost"
    assert texts(context.messages)[:2] == ["user:the summary", "assistant:fine"]


def test_microcompaction_blanks_old_results_from_there_on(tmp_path: Path) -> None:
    metadata = {"compactedToolIds": ["a"], "clearedAttachmentUUIDs": ["4"]}
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", "long output"),
        attachment("4", "3", type="date_change", newDate="2026-02-01"),
        says("5", "4", "m2", "fine"),
        line("system", "6", "5", subtype="microcompact_boundary", microcompactMetadata=metadata),
        user("7", "6", "more"),
        says("8", "7", "m3", "on"),
    )
    before, after = trace.contexts
    assert "tool:long output" in texts(before.messages)
    assert texts(after.messages) == [
        "user:go",
        "assistant:",
        "tool:[Old tool result content cleared]",
        "assistant:fine",
        "user:more",
        "assistant:on",
    ]
    assert [step.native_id for step in after.steps] == ["m3"]


def test_a_file_that_starts_in_the_middle_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", answer("4", "3", "a", "out"), says("5", "4", "m2", "fine"))
    traces, report = ingest_file(path)
    assert traces[0].contexts[0].fidelity.context == "lost"
    assert texts(traces[0].contexts[0].messages) == ["tool:out", "assistant:fine"]
    assert report.flags["tool result without its call"] == 1
    assert report.flags["parent missing"] == 1


def test_records_without_links_or_message_ids_are_read_in_file_order(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", None, None, ("a", "Bash")),
        answer("3", None, "a", "out"),
        says("4", None, None, "done"),
    )
    assert len(trace.contexts) == 1
    assert [step.native_id for step in trace.contexts[0].steps] == ["2", "4"]
    assert texts(trace.contexts[0].messages) == ["user:go", "assistant:", "tool:out", "assistant:done"]


def test_subagents_inside_the_file_are_side_traces_of_the_call_with_their_prompt(tmp_path: Path) -> None:
    side = {"isSidechain": True}
    traces, report = ingest_file(
        write(
            tmp_path / "s.jsonl",
            user("1", None, "go"),
            says("2", "1", "m1", ("t1", "Task", {"prompt": "look here"})),
            says("3", "2", "m1", ("t2", "Task", {"prompt": "look there"})),
            user("4", None, "look there", **side),
            user("5", None, "look here", **side),
            says("6", "4", "s1", "there", **side),
            says("7", "5", "s2", ("x", "Bash"), **side),
            answer("8", "7", "x", "out", **side),
            says("9", "8", "s3", "here", **side),
            answer("10", "2", "t1", "here"),
            answer("11", "3", "t2", "there"),
            says("12", "11", "m2", "done"),
        )
    )
    main, there, here = traces
    assert [trace.kind for trace in traces] == ["main", "side", "side"]
    assert (there.parent_trace_id, there.parent_call_id) == (main.trace_id, "t2")
    assert (here.parent_trace_id, here.parent_call_id) == (main.trace_id, "t1")
    assert texts(here.contexts[0].messages) == [
        "user:look here",
        "assistant:",
        "tool:out",
        "assistant:here",
    ]
    assert texts(main.contexts[0].messages)[2:] == ["tool:here", "tool:there", "assistant:done"]
    assert (report.steps_main, report.steps_side, report.tool_calls) == (2, 3, 2)
    assert report.flags["tool calls of subagents"] == 1


@pytest.mark.parametrize("link", ["result", "progress", "none"])
def test_a_subagent_file_is_linked_to_the_session_beside_it(tmp_path: Path, link: str) -> None:
    records = [user("1", None, "go"), says("2", "1", "m1", ("t1", "Task", {"prompt": "look"}))]
    if link == "progress":
        data = {"type": "agent_progress", "agentId": "abc1234"}
        records.append(line("progress", "2p", "2", data=data, parentToolUseID="t1"))
    twin = {"toolUseResult": {"agentId": "abc1234"}} if link == "result" else {}
    records.append(answer("3", "2", "t1", "found", **twin))
    write(tmp_path / f"{SESSION}.jsonl", *records)
    side = {"isSidechain": True, "agentId": "abc1234"}
    agent = write(
        tmp_path / SESSION / "subagents" / "agent-abc1234.jsonl",
        user("a1", None, "look", **side),
        says("a2", "a1", "s1", "found", **side),
    )
    traces, report = ingest_file(agent)
    (trace,) = traces
    assert trace.trace_id == make_trace_id("claude_code", SESSION, "abc1234", "a1")
    assert trace.parent_trace_id == make_trace_id("claude_code", SESSION, "", "1")
    assert trace.parent_call_id == (None if link == "none" else "t1")
    assert (trace.kind, report.steps_main, report.steps_side) == ("side", 0, 1)


def test_the_call_that_summarises_a_session_is_a_side_trace_with_lost_context(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "acompact-1"}
    path = write(
        tmp_path / "agent-acompact-1.jsonl",
        user("a1", "of-the-main-file", "summarise", **side),
        says("a2", "a1", "s1", "it went so", **side),
    )
    (trace,) = ingest_file(path)[0]
    assert (trace.kind, trace.notes["summariser"]) == ("side", 1)
    assert trace.contexts[0].fidelity.context == "lost"


def test_attachments_the_model_saw_are_user_text_and_the_others_are_not(tmp_path: Path) -> None:
    stdout = json.dumps({"hookSpecificOutput": {"additionalContext": "be brief"}})
    hook = {"type": "hook_success", "hookName": "SessionStart:startup", "hookEvent": "SessionStart"}
    trace = read(
        tmp_path,
        attachment("0", None, content="", stdout=stdout, **hook),
        attachment("0b", "0", content="be kind", stdout="be kind", **hook),
        attachment("0c", "0b", type="hook_additional_context", hookName="SessionStart", content=["be brief"]),
        user("1", "0c", "go"),
        attachment("1b", "1", type="hook_system_message", content="for the user alone"),
        attachment("1c", "1b", type="deferred_tools_delta", addedNames=["WebFetch"], addedLines=["WebFetch"]),
        attachment("1d", "1c", type="task_reminder", content=[{"status": "pending", "subject": "tests"}]),
        attachment("1e", "1d", type="hook_success", hookName="Stop", hookEvent="Stop", content="no"),
        says("2", "1e", "m1", "hi"),
    )
    (state,) = trace.states()
    shown = [m.content for m in state.messages]
    assert [m.role for m in state.messages] == ["user"] * 5
    assert "be kind" in shown[0]
    assert sum("be brief" in text for text in shown) == 1
    assert shown[2] == "go"
    assert shown[3].startswith("<system-reminder>\n")
    assert "- [pending] tests" in shown[4]
    assert trace.seen_tools == ("WebFetch",)


def test_context_of_a_hook_that_no_attachment_repeats_is_shown(tmp_path: Path) -> None:
    stdout = json.dumps({"hookSpecificOutput": {"additionalContext": "be brief"}})
    hook = {"type": "hook_success", "hookName": "SessionStart", "hookEvent": "SessionStart", "content": ""}
    trace = read(
        tmp_path,
        attachment("0", None, stdout=stdout, **hook),
        user("1", "0", "go"),
        says("2", "1", "m1", "hi"),
    )
    assert "be brief" in trace.contexts[0].messages[0].content


def test_images_and_loaded_tools_in_results_become_placeholders(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    trace = read(
        tmp_path,
        user("1", None, [{"type": "text", "text": "see"}, image]),
        says("2", "1", "m1", ("a", "ToolSearch")),
        answer("3", "2", "a", [{"type": "tool_reference", "tool_name": "WebFetch"}]),
        says("4", "3", "m2", "ok"),
    )
    first, _, result, _ = trace.contexts[0].messages
    assert first.content.startswith("see\n[image: image/png, 3 bytes, blake2b ")
    assert result.content == "[tool loaded: WebFetch]"
    assert trace.seen_tools == ("WebFetch",)


@pytest.mark.parametrize(
    ("name", "text", "flag", "fields", "kind"),
    [
        ("Bash", "Exit code 2\nboom", True, {}, "exit_code"),
        ("Bash", "Command timed out after 2m 0.0s", True, {}, "timeout"),
        ("Bash", "ls: cannot access 'x'", True, {"version": "1.0.98"}, "exit_code"),
        ("Bash", "not on my branch", True, {}, "hook"),
        (
            "Edit",
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
            True,
            {},
            "tool_error",
        ),
        ("Read", "EISDIR: illegal operation on a directory, read", True, {}, "tool_error"),
        ("Edit", "The user doesn't want to proceed with this tool use.", True, {}, "user_rejection"),
        ("Edit", "Denied", True, {"toolDenialKind": "user-rejected"}, "user_rejection"),
        ("Bash", "Denied", True, {"toolDenialKind": "permission-rule"}, "hook"),
        ("Bash", "Error: it only says so", False, {}, None),
        ("Bash", "Exit code 2 is what the page says", None, {}, None),
    ],
)
def test_error_kinds(
    tmp_path: Path, name: str, text: str, flag: bool | None, fields: dict[str, Any], kind: str | None
) -> None:
    flags = {} if flag is None else {"is_error": flag}
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", name)),
        answer("3", "2", "a", text, **fields, **flags),
    )
    result: Message = trace.contexts[0].messages[2]
    assert (result.is_error, result.error_kind) == (flag, kind)


def test_broken_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    good = [user("1", None, "go"), says("2", "1", "m1", "hi")]
    data = "".join(json.dumps(record) + "\n" for record in good).encode()
    data += b'"a string"\n{"type": "user", \xff}\n{"type": "no such type"}\n'
    data += json.dumps(user("3", "gone", None)).encode() + b"\n"
    data += json.dumps(user("4", "gone", "more")).encode() + b"\n\n"
    data += json.dumps(says("5", "4", "m2", "on")).encode()[:-20]
    path.write_bytes(data)
    traces, report = ingest_file(path)
    assert dict(report.skipped) == {
        "not an object": 1,
        "invalid utf-8": 1,
        "unknown record type": 1,
        "message without content": 1,
        "not json": 1,
    }
    assert report.flags["parent missing"] == 1
    assert report.states == 1
    assert texts(traces[0].contexts[0].messages) == ["user:go", "assistant:hi", "user:more"]


def test_a_folder_is_read_whole_though_files_in_it_are_broken(tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.jsonl", user("1", None, "go"), says("2", "1", "m1", "hi"))
    write(tmp_path / "b.jsonl", {"foo": 1})
    (tmp_path / "c.jsonl").write_bytes(b"")
    packed = json.dumps(user("9", None, "go")) + "\n" + json.dumps(says("8", "9", "m9", "hi")) + "\n"
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(packed.encode()))
    ingester = ClaudeCodeIngester()
    traces = list(ingester.ingest(tmp_path))
    assert [trace.origin for trace in traces] == ["one.jsonl", "d.jsonl.gz"]
    assert [Path(report.path).name for report in ingester.reports] == [
        "one.jsonl",
        "b.jsonl",
        "c.jsonl",
        "d.jsonl.gz",
    ]
    assert [report.error is None for report in ingester.reports] == [True, False, False, True]


def test_a_single_path_that_is_no_session_is_an_error_that_says_so(tmp_path: Path) -> None:
    other = write(tmp_path / "b.jsonl", {"foo": 1})
    with pytest.raises(SourceError, match=r"b\.jsonl holds no Claude Code record"):
        list(ClaudeCodeIngester().ingest(other))
    with pytest.raises(SourceError, match=r"absent\.jsonl cannot be read: No such file"):
        list(ClaudeCodeIngester().ingest(str(tmp_path / "absent.jsonl")))


def test_prefixes_that_do_not_follow_the_reported_tokens_are_flagged(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [user("0", None, "go")]
    for n in range(1, 12):
        usage = {"input_tokens": 60_000 - 4000 * n, "output_tokens": 1}
        records.append(says(f"a{n}", records[-1]["uuid"], f"m{n}", "x" * 4000, usage=usage))
        records.append(user(f"u{n}", f"a{n}", "on"))
    traces, report = ingest_file(write(tmp_path / "s.jsonl", *records))
    assert report.flags["prefix_tokens_mismatch"] == 1
    assert traces[0].notes["prefix_tokens_r_percent"] < 0
