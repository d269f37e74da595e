"""Claude Code: what the model was shown between its steps, and what it was not."""

import json
from pathlib import Path
from typing import Any

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
    thinks,
    user,
)

from tracemill.harnesses.presentation import present_context
from tracemill.ingesters.claude_code.attachments import NOT_SHOWN
from tracemill.records.message import Message
from tracemill.records.trace import Trace

DIAGNOSTIC = {"message": "undefined: x", "severity": "Error", "range": {"start": {"line": 4, "character": 0}}}

SHOWN: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"type": "hook_additional_context", "hookName": "PreToolUse:Bash", "content": ["be brief"]},
        ["be brief"],
    ),
    ({"type": "hook_blocking_error", "hookName": "Stop", "blockingError": {"blockingError": "no"}}, ["no"]),
    (
        {"type": "async_hook_response", "response": {"hookSpecificOutput": {"additionalContext": "ci: red"}}},
        ["ci: red"],
    ),
    (
        {"type": "task_reminder", "content": [{"status": "pending", "subject": "tests"}]},
        ["- [pending] tests"],
    ),
    (
        {"type": "todo_reminder", "content": [{"status": "completed", "content": "docs"}]},
        ["- [completed] docs"],
    ),
    ({"type": "edited_text_file", "filename": "a.py", "snippet": "1 x = 2"}, ["a.py", "1 x = 2"]),
    ({"type": "file", "filename": "a.py", "content": {"file": {"content": "x = 1"}}}, ["a.py", "x = 1"]),
    ({"type": "already_read_file", "filename": "a.py", "content": {"file": {"content": "x = 1"}}}, ["x = 1"]),
    ({"type": "compact_file_reference", "filename": "a.py"}, ["a.py"]),
    ({"type": "directory", "path": "src", "content": "a.py\nb.py"}, ["src", "a.py\nb.py"]),
    (
        {"type": "diagnostics", "files": [{"uri": "file:///a.go", "diagnostics": [DIAGNOSTIC]}]},
        ["a.go", "[Line 5:1] Error: undefined: x"],
    ),
    ({"type": "skill_listing", "content": "- commit: commits"}, ["- commit: commits"]),
    ({"type": "invoked_skills", "skills": [{"name": "commit", "content": "how to"}]}, ["commit:\nhow to"]),
    ({"type": "deferred_tools_delta", "addedNames": ["WebFetch"], "addedLines": ["WebFetch"]}, ["WebFetch"]),
    (
        {"type": "hook_stopped_continuation", "hookName": "PostToolUse:Bash", "message": "limit"},
        ["PostToolUse:Bash hook stopped the work: limit"],
    ),
    ({"type": "workflow_keyword_request"}, ["by a workflow"]),
    ({"type": "agent_listing_delta", "addedLines": ["- Explore: looks"]}, ["- Explore: looks"]),
    ({"type": "mcp_instructions_delta", "addedBlocks": ["## linear\nuse ids"]}, ["## linear\nuse ids"]),
    ({"type": "some_new_delta", "addedLines": ["something came"]}, ["something came"]),
    ({"type": "date_change", "newDate": "2026-02-01"}, ["2026-02-01"]),
    ({"type": "opened_file_in_ide", "filename": "a.py"}, ["a.py"]),
    (
        {"type": "selected_lines_in_ide", "filename": "a.py", "lineStart": 3, "lineEnd": 5, "content": "x"},
        ["lines 3 to 5 of a.py", "x"],
    ),
    ({"type": "plan_mode", "planFilePath": "/plans/p.md"}, ["Plan mode is on", "/plans/p.md"]),
    ({"type": "plan_mode_reentry", "planFilePath": "/plans/p.md"}, ["Plan mode is on"]),
    ({"type": "plan_mode_exit"}, ["Plan mode is off"]),
    ({"type": "plan_file_reference", "planFilePath": "/plans/p.md", "planContent": "1. do"}, ["1. do"]),
    ({"type": "auto_mode"}, ["Auto mode is on"]),
    ({"type": "auto_mode_exit"}, ["Auto mode is off"]),
    ({"type": "total_tokens_reminder", "used": 5, "total": 9}, ["used 5, total 9"]),
    ({"type": "total_tokens_reminder", "text": "<left>9 tokens</left>"}, ["<left>9 tokens</left>"]),
    ({"type": "deferred_tools_delta", "addedLines": [], "removedNames": ["LSP"]}, ["No longer there:\nLSP"]),
    (
        {"type": "agent_listing_delta", "addedLines": ["- scout"], "removedTypes": ["miner"]},
        ["can be started:\n- scout\nNo longer there:\nminer"],
    ),
    ({"type": "budget_usd", "used": 2, "total": 5, "remaining": 3}, ["2 of 5 US dollars", "3 left"]),
    ({"type": "ultra_effort_exit"}, ["no longer asks for the greatest effort"]),
    ({"type": "task_status", "description": "build", "status": "running"}, ["build", "running"]),
    ({"type": "silent_turn_reminder", "text": "say something"}, ["say something"]),
    ({"type": "goal_status", "condition": "tests pass"}, ["tests pass"]),
    ({"type": "read_truncation_notice", "banner": "lines 1-9 of 20"}, ["only a part", "lines 1-9 of 20"]),
    (
        {"type": "environment", "snapshot": {"platform": "linux", "isGitRepo": True, "shell": ""}},
        ["The environment:\n- platform: linux\n- isGitRepo: True\n</system-reminder>"],
    ),
    (
        {"type": "instructions", "files": [{"path": "/w/CLAUDE.md", "content": "Use tabs."}]},
        ["project:\n\nContent of /w/CLAUDE.md:\nUse tabs."],
    ),
    (
        {"type": "session_context", "context": {"currentBranch": "main", "userEmail": ""}},
        ["About this session:\ncurrentBranch: main\n</system-reminder>"],
    ),
    ({"type": "model", "text": "claude-opus-4-7"}, ["The model:\nclaude-opus-4-7"]),
    ({"type": "date", "date": "2026-10-01"}, ["Today is:\n2026-10-01"]),
]
UNSHOWN: list[dict[str, Any]] = [
    {"type": "hook_system_message", "content": "for the user alone"},
    {
        "type": "hook_success",
        "hookName": "PostToolUse:Edit",
        "hookEvent": "PostToolUse",
        "content": "ok",
        "stdout": "ok",
    },
    {
        "type": "hook_success",
        "hookName": "Stop",
        "hookEvent": "Stop",
        "stdout": json.dumps({"hookSpecificOutput": {"additionalContext": "too late"}}),
    },
    {"type": "hook_cancelled", "hookName": "Stop"},
    {"type": "hook_non_blocking_error", "hookName": "Stop", "stderr": "boom"},
    {"type": "command_permissions", "allowedTools": ["Bash(ls)"]},
    {"type": "structured_output", "data": {"findings": []}},
    {"type": "thinking_drop", "messageIds": ["m1"]},
]


def with_attachment(tmp_path: Path, fields: dict[str, Any]) -> tuple[list[Message], dict[str, int]]:
    """What the step behind the attachment was shown of it, and what is flagged."""
    traces, report = ingest(
        tmp_path, user("1", None, "go"), attachment("2", "1", **fields), says("3", "2", "m1", "hi")
    )
    (state,) = traces[0].states()
    return list(state.messages)[1:], dict(report.flags)


@pytest.mark.parametrize(
    ("fields", "parts"), SHOWN, ids=lambda given: given.get("type") if isinstance(given, dict) else ""
)
def test_attachments_that_the_model_saw_are_reminders(
    tmp_path: Path, fields: dict[str, Any], parts: list[str]
) -> None:
    (message,), flags = with_attachment(tmp_path, fields)
    assert message.role == "user"
    assert message.content.startswith("<system-reminder>\n")
    assert message.content.endswith("\n</system-reminder>")
    assert [part for part in parts if part not in message.content] == []
    assert flags == {}


@pytest.mark.parametrize("fields", UNSHOWN, ids=lambda given: f"{given['type']}-{given.get('hookEvent')}")
def test_attachments_for_the_user_alone_are_not_shown(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert with_attachment(tmp_path, fields) == ([], {})
    assert {given["type"] for given in UNSHOWN} - {"hook_success"} <= NOT_SHOWN


def test_an_attachment_of_a_kind_unheard_of_is_counted(tmp_path: Path) -> None:
    assert with_attachment(tmp_path, {"type": "hologram", "content": "?"}) == (
        [],
        {"attachment of unknown kind": 1},
    )


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_context_that_a_hook_adds_is_shown_once(tmp_path: Path, event: str) -> None:
    stdout = json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": "be brief"}})
    hook = {"type": "hook_success", "hookName": event, "hookEvent": event}
    told = {"type": "hook_additional_context", "hookName": event, "content": ["be brief"]}
    records = [
        attachment("0", None, content="", stdout=stdout, **hook),
        attachment("0b", "0", content="be kind", stdout="be kind", **hook),
        user("1", "0b", "go"),
        says("2", "1", "m1", "hi"),
    ]
    shown = texts(read(tmp_path, *records).contexts[0].messages)[:-1]
    assert [text.count("be brief") for text in shown] == [1, 0, 0]
    assert "be kind" in shown[1]
    records.insert(2, attachment("0c", "0b", **told))
    shown = texts(read(tmp_path, *records).contexts[0].messages)[:-1]
    assert [text.count("be brief") for text in shown] == [0, 1, 0]


def test_tools_that_were_at_hand_are_known_beyond_those_called(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        attachment("2", "1", type="deferred_tools_delta", addedNames=["WebFetch", "Bash"], addedLines=[]),
        says("3", "2", "m1", ("a", "ToolSearch", {"query": "x"}), ("b", "Bash")),
        answer("4", "3", "a", [{"type": "tool_reference", "tool_name": "mcp__linear__get"}]),
        answer("5", "3", "b", "[tool loaded: Fake"),
        says("6", "5", "m2", "ok"),
    )
    assert trace.seen_tools == ("WebFetch", "mcp__linear__get")
    assert texts(trace.contexts[0].messages)[2] == "tool:[tool loaded: mcp__linear__get]"


def test_texts_of_the_harness_are_shown_in_their_place(tmp_path: Path) -> None:
    shown = [
        ("<local-command-caveat>Caveat: not for you</local-command-caveat>", {"isMeta": True}),
        ("<command-name>/review</command-name>\n<command-args>x</command-args>", {}),
        ("Review it thus: ...", {"isMeta": True}),
        ("<local-command-stdout>done</local-command-stdout>", {}),
        ("<bash-input>ls</bash-input>", {}),
        ("<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>", {}),
        ("[Image: source: /tmp/x.png]", {"isMeta": True}),
    ]
    records = [user("u0", None, "go")]
    for number, (text, fields) in enumerate(shown, start=1):
        records.append(user(f"u{number}", f"u{number - 1}", text, **fields))
    trace = read(tmp_path, *records, says("a", f"u{len(shown)}", "m1", "hi"))
    (state,) = trace.states()
    assert texts(state.messages) == ["user:go", *(f"user:{text}" for text, _ in shown)]


def test_a_skill_comes_behind_the_result_of_its_call(tmp_path: Path) -> None:
    body = [{"type": "text", "text": "Base directory: ...\nHow to commit"}]
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Skill", {"skill": "commit"})),
        user("3", "2", body, isMeta=True, sourceToolUseID="a"),
        answer("4", "2", "a", "Launching skill: commit"),
        says("5", "4", "m2", "done"),
    )
    assert texts(list(trace.states())[1].messages)[2:] == [
        "tool:Launching skill: commit",
        "user:Base directory: ...\nHow to commit",
    ]


def test_text_for_the_transcript_alone_is_not_shown(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        user("2", "1", "only for the eye", isVisibleInTranscriptOnly=True),
        says("3", "2", "m1", "hi"),
    )
    assert texts(trace.contexts[0].messages) == ["user:go", "assistant:hi"]


def test_results_are_what_the_model_saw_not_their_structured_twin(tmp_path: Path) -> None:
    cut = (
        "<persisted-output>\nOutput too large (21KB). Full output in /x\n\nPreview:\nabc\n</persisted-output>"
    )
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash"), ("b", "Read")),
        answer("3", "2", "a", cut, toolUseResult={"stdout": "the whole of it"}),
        answer("4", "2", "b", [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]),
        says("5", "4", "m2", "ok"),
    )
    assert texts(list(trace.states())[1].messages)[2:] == [f"tool:{cut}", "tool:x\ny"]


def test_images_and_documents_become_placeholders(tmp_path: Path) -> None:
    def media(kind: str, media_type: str) -> dict[str, Any]:
        return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": "AAAA"}}

    trace = read(
        tmp_path,
        user("1", None, [{"type": "text", "text": "see"}, media("image", "image/png")]),
        user("1b", "1", [media("document", "application/pdf")]),
        says("2", "1b", "m1", ("a", "Read")),
        answer("3", "2", "a", [media("image", "image/jpeg")]),
        says("4", "3", "m2", "ok"),
    )
    picture, document, _, result, _ = (message.content for message in trace.contexts[0].messages)
    assert picture.startswith("see\n[image: image/png, 3 bytes, blake2b ")
    assert document.startswith("[document: application/pdf, 3 bytes, blake2b ")
    assert result.startswith("[image: image/jpeg, 3 bytes, blake2b ")


def test_thinking_is_kept_in_the_record_and_shown_to_nobody(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", thinks("secret plan"), thinks("and more")),
        says("3", "2", "m1", {"type": "redacted_thinking", "data": "xyz"}),
        says("4", "3", "m1", "look", ("a", "Bash")),
        answer("5", "4", "a", "out"),
        says("6", "5", "m2", thinks(""), "done"),
    )
    first, second = trace.states()
    assert trace.contexts[0].messages[1].reasoning == "secret plan\n\nand more"
    assert trace.contexts[0].messages[3].reasoning is None
    assert first.student_action.text == "look"
    assert "secret plan" not in json.dumps([message.to_wire() for message in second.messages])
    shown = present_context(trace, second.context)
    assert "secret plan" not in json.dumps([message.to_wire() for message in shown.messages])


# Prompts typed while the agent worked.


def worked(*meanwhile: dict[str, Any], after: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """A session with one call, the given records before its result, and two steps after it."""
    return [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        *meanwhile,
        answer("3", "2", "a", "out"),
        *([after] if after else []),
        says("4", after["uuid"] if after else "3", "m2", ("b", "Bash")),
        answer("5", "4", "b", "out"),
        says("6", "5", "m3", "done"),
    ]


def prefixes(trace: Trace) -> list[list[str]]:
    return [texts(state.messages) for state in trace.states()]


def test_a_prompt_typed_meanwhile_stands_behind_the_result_it_came_with(tmp_path: Path) -> None:
    told = attachment("3q", "3", type="queued_command", prompt="be quick", commandMode="prompt")
    trace = read(tmp_path, *worked(queued("enqueue", "be quick"), queued("remove"), after=told))
    assert prefixes(trace)[1] == ["user:go", "assistant:", "tool:out", "user:be quick"]
    assert len(trace.contexts) == 1


def test_a_prompt_that_only_the_queue_holds_is_shown_where_it_left_it(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *worked(queued("enqueue", "be quick\n"), queued("remove")))
    first, second, third = prefixes(traces[0])
    assert first == ["user:go"]
    assert second == ["user:go", "assistant:", "tool:out", "user:be quick"]
    assert third[:4] == second
    assert len(traces[0].contexts) == 1
    assert report.flags["prompt that only the queue holds"] == 1
    assert dict(report.skipped) == {}


@pytest.mark.parametrize(
    ("operations", "shown"),
    [
        (
            [queued("enqueue", "one"), queued("enqueue", "two"), queued("remove"), queued("remove")],
            ["one", "two"],
        ),
        ([queued("enqueue", "one"), queued("popAll"), queued("enqueue", "two"), queued("remove")], ["two"]),
        ([queued("enqueue", "one"), queued("dequeue"), queued("enqueue", "two"), queued("remove")], ["two"]),
        ([queued("enqueue", "/exit"), queued("enqueue", "one"), queued("remove")], ["one"]),
        ([queued("enqueue", "/exit"), queued("remove")], []),
        ([queued("enqueue", "<task-notification>x"), queued("enqueue", "one"), queued("remove")], ["one"]),
        ([queued("enqueue", "<task-notification>x"), queued("remove")], ["<task-notification>x"]),
        ([queued("enqueue", "one"), queued("enqueue", "two"), queued("remove", "two")], ["two"]),
        ([queued("enqueue", "two"), queued("enqueue", "one"), queued("remove", "one")], ["one"]),
        ([queued("enqueue", "one"), queued("remove", "one", reason="absorbed_mid_turn")], ["one"]),
        ([queued("enqueue", "one"), queued("remove", "one", reason="cancelled_by_user")], []),
        ([queued("remove"), queued("dequeue"), queued("enqueue"), queued("remove"), queued("?")], []),
        ([queued("enqueue", "one"), queued("paused")], []),
        ([queued("remove", "told at its end")], ["told at its end"]),
    ],
)
def test_which_prompt_left_the_queue_into_the_turn(
    tmp_path: Path, operations: list[dict[str, Any]], shown: list[str]
) -> None:
    found = prefixes(read(tmp_path, *worked(*operations)))[1]
    assert found == ["user:go", "assistant:", "tool:out", *(f"user:{text}" for text in shown)]


def test_the_same_prompt_twice_is_shown_twice_where_it_is_recorded_once(tmp_path: Path) -> None:
    told = attachment("3q", "3", type="queued_command", prompt="go on", commandMode="prompt")
    records = worked(queued("enqueue", "go on"), queued("remove"), after=told)
    records[-1:-1] = [queued("enqueue", "go on"), queued("remove")]
    first, second, third = prefixes(read(tmp_path, *records))
    assert [prefix.count("user:go on") for prefix in (first, second, third)] == [0, 1, 2]


def test_of_two_equal_prompts_one_record_is_the_record_of_one(tmp_path: Path) -> None:
    told = attachment("3q", "3", type="queued_command", prompt="go on", commandMode="prompt")
    both = [queued("enqueue", "go on"), queued("enqueue", "go on"), queued("remove"), queued("remove")]
    assert prefixes(read(tmp_path, *worked(*both, after=told)))[1].count("user:go on") == 2
    records = worked(after=told)
    records[-1:-1] = [queued("enqueue", "go on"), queued("remove")]
    assert prefixes(read(tmp_path, *records))[2].count("user:go on") == 2


def test_a_prompt_of_the_queue_stays_before_a_rewind_to_behind_it(tmp_path: Path) -> None:
    records = worked(queued("enqueue", "be quick"), queued("remove"))
    records += [user("7", "3", "another way"), says("8", "7", "m9", "so")]
    trace = read(tmp_path, *records)
    assert [context.start for context in trace.contexts] == ["start", "rewind"]
    assert prefixes(trace)[-1] == [
        "user:go",
        "assistant:",
        "tool:out",
        "user:be quick",
        "user:another way",
    ]


def test_a_prompt_that_a_result_repeats_in_a_reminder_is_not_shown_twice(tmp_path: Path) -> None:
    records = worked(queued("enqueue", "be quick"), queued("remove"))
    records[4] = answer("3", "2", "a", "out\n<system-reminder>The user said: be quick</system-reminder>")
    assert not any("user:be quick" in prefix for prefix in prefixes(read(tmp_path, *records)))


def test_a_prompt_sent_at_the_end_of_a_turn_is_a_user_record_and_shown_once(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        queued("enqueue", "and now this"),
        says("2", "1", "m1", "done"),
        queued("dequeue"),
        user("3", "2", "and now this"),
        says("4", "3", "m2", "yes"),
    )
    assert prefixes(trace)[1] == ["user:go", "assistant:done", "user:and now this"]


def test_records_of_no_consequence_are_passed_over_unsaid(tmp_path: Path) -> None:
    kinds = ["summary", "file-history-snapshot", "file-history-delta", "permission-mode", "mode", "ai-title"]
    kinds += ["custom-title", "agent-name", "pr-link", "bridge-session", "artifact-comment-monitor"]
    records = [{"type": kind, "sessionId": "x", "summary": "of another", "leafUuid": "1"} for kind in kinds]
    subtypes = ["away_summary", "local_command", "informational", "bridge_status", "turn_duration"]
    systems = [line("system", f"s{i}", "1", subtype=name, content="ui") for i, name in enumerate(subtypes)]
    traces, report = ingest(
        tmp_path, *records, user("1", None, "go"), *systems, says("2", "1", "m1", "hi"), {"type": "hologram"}
    )
    assert prefixes(traces[0]) == [["user:go"]]
    assert dict(report.skipped) == {"unknown record type": 1}


def starts_task(number: str) -> dict[str, Any]:
    """The event of a task that starts in the background, as 2.1.45 to 2.1.50 queue it."""
    event = {"task_id": f"b{number}", "tool_use_id": f"c{number}", "task_type": "local_bash"}
    return queued("enqueue", json.dumps(event))


def background(version: str, *queue: dict[str, Any]) -> list[dict[str, Any]]:
    """A call that starts a task, its result, what the queue says meanwhile, and an answer."""
    return [
        user("1", None, "go", version=version),
        says(
            "2", "1", "m1", ("c1", "Bash", {"command": "sleep 9", "run_in_background": True}), version=version
        ),
        answer("3", "2", "c1", "started", version=version),
        *queue,
        says("4", "3", "m2", "hi", version=version),
    ]


@pytest.mark.parametrize("version", ["2.1.33", "2.1.45", "2.1.50", "2.1.91", "2.1.287"])
@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ([starts_task("1"), queued("remove")], []),
        ([starts_task("1"), queued("enqueue", "also b"), queued("remove"), queued("remove")], ["also b"]),
        ([queued("enqueue", "also b"), starts_task("1"), queued("remove"), queued("remove")], ["also b"]),
        ([starts_task("1"), queued("dequeue"), queued("enqueue", "b"), queued("remove")], ["b"]),
        ([starts_task("1"), queued("remove", starts_task("1")["content"])], []),
        ([queued("enqueue", '{"task_id": 7}'), queued("remove")], ['{"task_id": 7}']),
    ],
)
def test_the_event_of_a_task_that_starts_is_no_message(
    tmp_path: Path, version: str, queue: list[dict[str, Any]], said: list[str]
) -> None:
    traces, report = ingest(tmp_path, *background(version, *queue))
    assert texts(traces[0].contexts[0].messages)[3:] == [*[f"user:{text}" for text in said], "assistant:hi"]
    assert dict(report.flags) == ({"prompt that only the queue holds": len(said)} if said else {})


def test_an_answer_that_follows_no_prompt_is_reported_by_version(tmp_path: Path) -> None:
    """The prompt stands in the queue, and leaves it only behind its answer."""
    queue = [queued("enqueue", "now b")]
    traces, report = ingest(
        tmp_path,
        *background("2.1.47", *queue),
        says("5", "4", "m3", "b it is", version="2.1.47"),
        queued("remove"),
        says("6", "5", "m4", "and c", version="2.1.48"),
    )
    assert report.flags == {
        "prompt that only the queue holds": 1,
        "answer that follows no prompt (2.1.47)": 1,
        "prompt that stands behind its answer": 1,
    }
    assert known(traces[0]) == ["complete", "complete", "lost", "lost"]
    assert "steps_behind_no_prompt" not in traces[0].notes


def known(trace: Trace) -> list[str]:
    return [state.fidelity.context for state in trace.states()]


NOTICE = "<task-notification>x</task-notification>"
GUESS = "prompt of which the queue does not say when it was sent"


@pytest.mark.parametrize("waits", [starts_task("1"), queued("enqueue", NOTICE)])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("then", "is_told"),
    [
        ([], False),
        ([queued("popAll")], False),
        ([queued("remove")], False),
        ([queued("dequeue")], True),
        (["remove what waits"], True),
    ],
)
def test_a_prompt_of_which_the_queue_does_not_say_when_it_left_loses_what_stands_behind_it(
    tmp_path: Path, waits: dict[str, Any], is_first: bool, then: list[Any], is_told: bool
) -> None:
    """A nameless `remove` took it or what waited beside it, and an answer came before the other left."""
    waiting = [waits, queued("enqueue", "also b")] if is_first else [queued("enqueue", "also b"), waits]
    later = [queued("remove", waits["content"]) if isinstance(each, str) else each for each in then]
    traces, report = ingest(
        tmp_path,
        *background("2.1.47", *waiting, queued("remove")),
        *later,
        user("5", "4", "go on", version="2.1.47"),
        says("6", "5", "m3", "so", version="2.1.47"),
        boundary("b", {}, version="2.1.47"),
        summary("7", "b"),
        says("8", "7", "m4", "and on", version="2.1.47"),
    )
    assert prefixes(traces[0])[1][-1] == "user:also b"
    assert report.flags[GUESS] >= (not is_told)
    assert known(traces[0]) == ["complete"] * 4 if is_told else ["complete", "lost", "lost", "complete"]


@pytest.mark.parametrize("waits", [starts_task("1"), queued("enqueue", NOTICE)])
def test_no_guess_is_left_where_what_waited_went_to_the_model_together(
    tmp_path: Path, waits: dict[str, Any]
) -> None:
    note = user("3b", "3", "a note", isMeta=True, version="2.1.47")
    both = [waits, queued("enqueue", "also b"), queued("remove"), note, queued("remove")]
    traces, report = ingest(tmp_path, *background("2.1.47", *both))
    assert known(traces[0]) == ["complete"] * 2
    assert GUESS not in report.flags


def test_a_guess_ends_where_what_waited_went_back_to_the_user(tmp_path: Path) -> None:
    waiting = [queued("enqueue", NOTICE), queued("enqueue", "also b"), queued("remove"), queued("popAll")]
    traces, report = ingest(
        tmp_path,
        *background("2.1.47", *waiting),
        boundary("b", {}, version="2.1.47"),
        summary("5", "b"),
        says("6", "5", "m3", ("c2", "Bash"), version="2.1.47"),
        queued("enqueue", "be quick"),
        queued("remove"),
        answer("7", "6", "c2", "out"),
        says("8", "7", "m4", "and on", version="2.1.47"),
    )
    assert known(traces[0]) == ["complete", "lost", "complete", "complete"]
    assert report.flags[GUESS] == 1


def test_no_guess_is_left_where_a_record_holds_the_prompt(tmp_path: Path) -> None:
    told = attachment("3q", "3", type="queued_command", prompt="be quick", commandMode="prompt")
    waiting = [queued("enqueue", NOTICE), queued("enqueue", "be quick"), queued("remove")]
    traces, report = ingest(tmp_path, *worked(*waiting, after=told))
    assert known(traces[0]) == ["complete"] * 3
    assert report.flags == {}


def test_an_answer_that_follows_an_answer_is_counted_and_not_lost(tmp_path: Path) -> None:
    """It may be what the agent saw: a prompt that was typed, and taken, before the first of the two."""
    queue = [queued("enqueue", "stop"), queued("remove")]
    traces, report = ingest(
        tmp_path,
        *background("2.0.76", *queue),
        says("5", "4", "m3", "I stop here", version="2.0.76"),
        user("6", "5", "go on", version="2.0.76"),
        says("7", "6", "m4", "so I do", version="2.0.76"),
        boundary("b", {}, version="2.0.76"),
        summary("8", "b"),
        says("9", "8", "m5", "and on", version="2.0.76"),
    )
    assert report.flags == {
        "prompt that only the queue holds": 1,
        "answer that follows no prompt (2.0.76)": 1,
    }
    assert known(traces[0]) == ["complete"] * 5
    assert traces[0].notes["steps_behind_no_prompt"] == 2


def test_what_stands_behind_a_prompt_in_the_wrong_place_is_lost_until_the_context_is_rebuilt(
    tmp_path: Path,
) -> None:
    """The queue's nameless `remove` took the event of a task; the prompt was sent at the end of the turn."""
    traces, report = ingest(
        tmp_path,
        *background("2.1.47", queued("enqueue", "also b"), starts_task("1"), queued("remove")),
        queued("dequeue"),
        user("5", "4", "also b"),
        says("6", "5", "m3", "b it is"),
        boundary("b", {}),
        summary("7", "b"),
        says("8", "7", "m4", "and on"),
    )
    assert prefixes(traces[0])[2].count("user:also b") == 2
    assert known(traces[0]) == ["complete", "lost", "lost", "complete"]
    assert report.flags == {
        "prompt that only the queue holds": 1,
        "prompt that was sent elsewhere than the queue says": 1,
    }


def test_a_prompt_that_was_sent_without_a_record_of_the_queue_is_not_restored(tmp_path: Path) -> None:
    """An interrupt sends what waits; a later `remove` took a slash command."""
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        queued("enqueue", "<task-notification>done</task-notification>"),
        answer("3", "2", "a", "out"),
        user("4", "3", "[Request interrupted by user]"),
        user("5", "4", "<task-notification>done</task-notification>"),
        queued("enqueue", "/exit"),
        says("6", "5", "m2", ("b", "Bash")),
        queued("remove"),
        answer("7", "6", "b", "out"),
        says("8", "7", "m3", "so"),
    )
    said = "user:<task-notification>done</task-notification>"
    assert [prefix.count(said) for prefix in prefixes(trace)] == [0, 1, 1]
    assert known(trace) == ["complete"] * 3


def test_the_prompt_that_a_user_record_says_is_the_one_that_was_sent(tmp_path: Path) -> None:
    """Of two that wait the second is sent, so that the first is the one that goes into the next turn."""
    trace = read(
        tmp_path,
        user("1", None, "go"),
        queued("enqueue", "first"),
        queued("enqueue", "second"),
        says("2", "1", "m1", "done"),
        queued("dequeue"),
        user("3", "2", "second"),
        says("4", "3", "m2", ("a", "Bash")),
        queued("remove"),
        answer("5", "4", "a", "out"),
        says("6", "5", "m3", "so"),
    )
    assert prefixes(trace)[2] == [
        *("user:go", "assistant:done", "user:second", "assistant:", "tool:out", "user:first")
    ]
    assert known(trace) == ["complete"] * 3


def test_an_answer_that_stands_before_its_prompt_in_the_file_is_lost(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "done"),
        says("4", "3", "m2", "b it is"),
        user("3", "2", "now b"),
        user("5", "4", "now c"),
        says("6", "5", "m3", "c it is"),
    )
    assert report.flags["message before the one that it hangs on"] == 1
    found = {state.student_action.text: state.fidelity.context for state in traces[0].states()}
    assert found == {"done": "complete", "b it is": "lost", "c it is": "lost"}
