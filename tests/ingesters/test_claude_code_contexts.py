"""Claude Code: where a context begins, what it begins with, and from where on something is missing."""

from pathlib import Path
from typing import Any

import pytest
from claude_code_records import (
    answer,
    attachment,
    boundary,
    ingest,
    line,
    read,
    says,
    summary,
    texts,
    thinks,
    user,
)

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.records.trace import Context, Trace

CLEARED = "tool:[Old tool result content cleared]"


def native(context: Context) -> list[str | None]:
    return [step.native_id for step in context.steps]


def fidelities(trace: Trace) -> list[str]:
    return [state.fidelity.context for state in trace.states()]


def test_a_rewind_is_its_own_context_with_the_shared_prefix(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        user("3", "2", "wrong way"),
        says("4", "3", "m2", "lost"),
        user("5", "2", "right way"),
        says("6", "5", "m3", "kept"),
    )
    before, after = traces[0].contexts
    assert (before.start, after.start) == ("start", "rewind")
    assert (native(before), native(after)) == (["m1", "m2"], ["m3"])
    assert texts(after.messages) == ["user:go", "assistant:first", "user:right way", "assistant:kept"]
    assert after.messages[1] is before.messages[1]
    assert report.branches_real == 1
    assert report.flags["rewind"] == 1


def test_forks_of_progress_attachments_and_parallel_calls_are_no_rewinds(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        line("progress", "p1", "2", data={"type": "hook_progress"}),
        says("3", "2", "m1", ("b", "Bash")),
        attachment("h", "3", type="hook_success", hookName="PostToolUse:Bash", hookEvent="PostToolUse"),
        answer("4", "3", "b", "two"),
        line("progress", "p2", "2", data={"type": "hook_progress"}),
        answer("5", "2", "a", "one"),
        says("6", "5", "m2", "done"),
    )
    assert [context.start for context in traces[0].contexts] == ["start"]
    assert texts(list(traces[0].states())[1].messages) == ["user:go", "assistant:", "tool:two", "tool:one"]
    assert (report.branches_real, report.flags["rewind"]) == (0, 0)


def test_a_message_under_a_system_record_or_a_progress_record_goes_on(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        line("system", "3", "2", subtype="stop_hook_summary"),
        line("system", "4", "3", subtype="turn_duration", durationMs=5),
        line("progress", "5", "4", data={"type": "hook_progress", "hookName": "SessionStart:resume"}),
        user("6", "5", "on"),
        line("system", "7", "6", subtype="api_error", retryAttempt=1, error={"status": 529}),
        says("8", "7", "m2", "second"),
    )
    (context,) = trace.contexts
    assert texts(context.messages) == ["user:go", "assistant:first", "user:on", "assistant:second"]


def test_the_answer_nobody_asked_for_makes_a_branch_and_no_action(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        user("3", "2", "<local-command-caveat>not for you</local-command-caveat>", isMeta=True),
        user("4", "3", "<command-name>/exit</command-name>"),
        says("5", "3", "s1", "No response requested.", model="<synthetic>"),
        user("6", "5", "on"),
        says("7", "6", "m2", "second"),
    )
    before, after = traces[0].contexts
    assert (before.start, after.start) == ("start", "rewind")
    assert texts(after.messages) == [
        "user:go",
        "assistant:first",
        "user:<local-command-caveat>not for you</local-command-caveat>",
        "user:on",
        "assistant:second",
    ]
    assert (report.branches_real, report.steps_synthetic, report.states) == (1, 1, 2)
    assert report.flags["message that no model wrote"] == 1


@pytest.mark.parametrize("root", ["progress", "user"])
def test_a_root_in_the_middle_clears_the_context(tmp_path: Path, root: str) -> None:
    hook = line("progress", "3", None, data={"type": "hook_progress", "hookName": "SessionStart:clear"})
    records = [hook, user("4", "3", "new")] if root == "progress" else [user("4", None, "new")]
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        *records,
        says("5", "4", "m2", "second"),
    )
    assert [context.start for context in trace.contexts] == ["start", "clear"]
    assert texts(trace.contexts[1].messages) == ["user:new", "assistant:second"]
    assert trace.notes["contexts_clear"] == 1


def test_another_session_id_in_the_same_chain_changes_nothing(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        user("3", "2", "on", sessionId="another"),
        says("4", "3", "m2", "second", sessionId="another"),
    )
    assert [native(context) for context in trace.contexts] == [["m1", "m2"]]


def compacted(
    metadata: dict[str, Any], *after: dict[str, Any], told: bool = True, last: str = "8"
) -> list[dict[str, Any]]:
    """A session with parallel calls that is compacted, and one step after that."""
    return [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        says("2b", "2", "m1", ("b", "Bash")),
        answer("3b", "2b", "b", "other"),
        answer("3", "2", "a", "out"),
        says("4", "3b", "m2", "fine"),
        user("5", "4", "more"),
        boundary("6", metadata, logicalParentUuid="5"),
        *([summary("7", "6")] if told else []),
        *(after or [attachment("8", "7", type="queued_command", prompt="and this", commandMode="prompt")]),
        says("9", last, "m3", "on"),
    ]


@pytest.mark.parametrize("trigger", ["auto", "manual"])
def test_after_a_compaction_the_context_begins_at_the_summary(tmp_path: Path, trigger: str) -> None:
    metadata = {"trigger": trigger, "preTokens": 150_000, "preCompactDiscoveredTools": ["WebFetch"]}
    traces, report = ingest(tmp_path, *compacted(metadata))
    before, after = traces[0].contexts
    assert (before.start, after.start) == ("start", "compaction")
    assert texts(after.messages) == ["user:the summary", "user:and this", "assistant:on"]
    assert (after.fidelity.context, report.compactions) == ("complete", 1)
    assert traces[0].seen_tools == ("WebFetch",)


def test_what_a_manual_compaction_leaves_behind_its_summary_is_shown(tmp_path: Path) -> None:
    context = read(
        tmp_path,
        *compacted(
            {"trigger": "manual"},
            user("7b", "7", "<local-command-caveat>Caveat</local-command-caveat>", isMeta=True),
            user("7c", "7b", "<command-name>/compact</command-name>"),
            user("7d", "7c", "<local-command-stdout>Compacted</local-command-stdout>"),
            attachment("8", "7d", type="file", filename="a.py", content={"file": {"content": "x = 1"}}),
        ),
    ).contexts[1]
    assert texts(context.messages)[:4] == [
        "user:the summary",
        "user:<local-command-caveat>Caveat</local-command-caveat>",
        "user:<command-name>/compact</command-name>",
        "user:<local-command-stdout>Compacted</local-command-stdout>",
    ]
    assert "a.py" in context.messages[4].content
    assert "x = 1" in context.messages[4].content


def test_a_summary_without_a_boundary_resets_the_context_too(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        summary("3", "2"),
        says("4", "3", "m2", "second"),
    )
    assert [context.start for context in trace.contexts] == ["start", "compaction"]
    assert texts(trace.contexts[1].messages) == ["user:the summary", "assistant:second"]


def test_a_compaction_whose_summary_is_missing_loses_context(tmp_path: Path) -> None:
    records = compacted({}, user("8", "6", "and this"), told=False)
    traces, report = ingest(tmp_path, *records)
    assert texts(traces[0].contexts[1].messages) == ["user:and this", "assistant:on"]
    assert fidelities(traces[0]) == ["complete", "complete", "lost"]
    assert report.flags["compaction without its summary"] == 1


PRESERVED = ["assistant:", "tool:other", "tool:out", "assistant:fine"]


@pytest.mark.parametrize(
    ("kept", "order"),
    [
        (
            {"preservedMessages": {"anchorUuid": "7", "uuids": ["2", "2b", "3b", "3", "4"], "allUuids": []}},
            ["user:the summary", *PRESERVED],
        ),
        (
            {"preservedSegment": {"anchorUuid": "7", "headUuid": "2", "tailUuid": "4"}},
            ["user:the summary", *PRESERVED],
        ),
        (
            {
                "preservedMessages": {"anchorUuid": "7", "uuids": ["4"]},
                "preservedSegment": {"anchorUuid": "7", "headUuid": "2", "tailUuid": "4"},
            },
            ["user:the summary", "assistant:fine"],
        ),
        (
            {"preservedMessages": {"anchorUuid": "7", "uuids": [], "allUuids": ["2", "4"]}},
            ["user:the summary"],
        ),
        ({"preservedMessages": {"anchorUuid": "6", "uuids": ["4"]}}, ["assistant:fine", "user:the summary"]),
        (
            {"preservedMessages": {"anchorUuid": "7", "allUuids": ["4"]}},
            ["user:the summary", "assistant:fine"],
        ),
    ],
    ids=["list", "segment", "list over segment", "empty list", "behind the boundary", "only all uuids"],
)
def test_preserved_messages_stand_behind_their_anchor(
    tmp_path: Path, kept: dict[str, Any], order: list[str]
) -> None:
    context = read(tmp_path, *compacted(kept)).contexts[1]
    assert texts(context.messages) == [*order, "user:and this", "assistant:on"]
    assert [(step.native_id, step.cut) for step in context.steps] == [("m3", len(order) + 1)]
    assert context.fidelity.context == "complete"


def test_what_hangs_on_a_preserved_message_goes_on_behind_it(tmp_path: Path) -> None:
    kept = {"preservedMessages": {"anchorUuid": "7", "uuids": ["4"]}}
    trace = read(tmp_path, *compacted(kept, user("8", "4", "on")))
    assert [context.start for context in trace.contexts] == ["start", "compaction"]
    assert texts(trace.contexts[1].messages)[1:] == ["assistant:fine", "user:on", "assistant:on"]


@pytest.mark.parametrize(
    ("kept", "order", "flag"),
    [
        (
            {"preservedMessages": {"anchorUuid": "7", "uuids": ["gone", "4"]}},
            ["user:the summary", "assistant:fine"],
            "preserved message missing",
        ),
        (
            {"preservedSegment": {"anchorUuid": "7", "headUuid": "gone", "tailUuid": "4"}},
            ["user:the summary"],
            "preserved message missing",
        ),
        (
            {"preservedMessages": {"anchorUuid": "never", "uuids": ["4"]}},
            ["user:the summary"],
            "preserved messages without their anchor",
        ),
    ],
)
def test_what_cannot_be_preserved_is_not_invented(
    tmp_path: Path, kept: dict[str, Any], order: list[str], flag: str
) -> None:
    traces, report = ingest(tmp_path, *compacted(kept))
    assert texts(traces[0].contexts[1].messages) == [*order, "user:and this", "assistant:on"]
    assert fidelities(traces[0]) == ["complete", "complete", "lost"]
    assert report.flags[flag] == 1


def microcompacted(*after: dict[str, Any]) -> list[dict[str, Any]]:
    metadata = {"compactedToolIds": ["a"], "clearedAttachmentUUIDs": ["4"], "tokensSaved": 9}
    return [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", "long output"),
        attachment("4", "3", type="date_change", newDate="2026-02-01"),
        says("5", "4", "m2", "fine"),
        line("system", "6", "5", subtype="microcompact_boundary", microcompactMetadata=metadata),
        user("7", "6", "more"),
        says("8", "7", "m3", "on"),
        *after,
    ]


def test_microcompaction_blanks_old_results_from_there_on(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *microcompacted())
    before, after = traces[0].contexts
    assert "tool:long output" in texts(before.messages)
    assert texts(after.messages) == [
        "user:go",
        "assistant:",
        CLEARED,
        "assistant:fine",
        "user:more",
        "assistant:on",
    ]
    assert native(after) == ["m3"]
    assert (after.start, after.fidelity.context) == ("microcompaction", "complete")
    assert (report.flags["microcompaction"], report.compactions) == (1, 0)


def test_what_was_blanked_stays_so_in_a_rewind_and_where_a_compaction_keeps_it(tmp_path: Path) -> None:
    kept = {"preservedMessages": {"anchorUuid": "c2", "uuids": ["2", "3"]}}
    trace = read(
        tmp_path,
        *microcompacted(
            user("9", "5", "another way"),
            says("10", "9", "m4", "so"),
            boundary("c1", kept),
            summary("c2", "c1"),
            says("c3", "c2", "m5", "on"),
        ),
    )
    assert [context.start for context in trace.contexts] == [
        "start",
        "microcompaction",
        "rewind",
        "compaction",
    ]
    rewound, after = trace.contexts[2:]
    assert texts(rewound.messages)[2:] == [CLEARED, "assistant:fine", "user:another way", "assistant:so"]
    assert texts(after.messages) == ["user:the summary", "assistant:", CLEARED, "assistant:on"]


def test_a_file_that_starts_in_the_middle_says_so(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, answer("4", "3", "a", "out"), says("5", "4", "m2", "fine"))
    assert fidelities(traces[0]) == ["lost"]
    assert texts(traces[0].contexts[0].messages) == ["tool:out", "assistant:fine"]
    assert report.flags["tool result without its call"] == 1
    assert report.flags["parent missing"] == 1


def holed() -> list[dict[str, Any]]:
    """A session in which the record `5` is missing."""
    return [
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        user("3", "2", "on"),
        says("4", "3", "m2", "two"),
        user("6", "5", "behind the hole"),
        says("7", "6", "m3", "three"),
    ]


def test_a_hole_in_the_file_loses_context_from_there_on_alone(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *holed())
    (context,) = traces[0].contexts
    assert (context.fidelity.context, context.lost_from) == ("lost", 2)
    assert fidelities(traces[0]) == ["complete", "complete", "lost"]
    assert report.flags["parent missing"] == 1
    assert "rewind" not in report.flags


def test_a_rewind_to_before_the_hole_is_whole_again_and_one_behind_it_is_not(tmp_path: Path) -> None:
    before = read(tmp_path, *holed(), user("8", "2", "anew"), says("9", "8", "m4", "four"))
    assert fidelities(before) == ["complete", "complete", "lost", "complete"]
    behind = read(
        tmp_path,
        *holed(),
        user("7b", "7", "go on"),
        says("7c", "7b", "m3b", "and on"),
        user("8", "7", "anew"),
        says("9", "8", "m4", "four"),
    )
    assert fidelities(behind) == ["complete", "complete", "lost", "lost", "lost"]


def test_a_broken_line_leaves_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    ingest(tmp_path, *holed()[:4], user("5", "4", "lost"), *holed()[4:])
    rows = path.read_text().splitlines()
    rows[4] = rows[4][:40]
    path.write_text("\n".join(rows))
    traces, report = ingest_file(path)
    assert fidelities(traces[0]) == ["complete", "complete", "lost"]
    assert (report.skipped["not json"], report.flags["parent missing"]) == (1, 1)


def test_turns_that_a_resumed_session_holds_twice_are_there_once(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "hello"),
        user("3", "2", "on"),
        says("4", "3", "m2", thinks("hm")),
        says("5", "4", "m2", "I look."),
        says("6", "5", "m2", ("a", "Bash")),
        answer("7", "6", "a", "out"),
        user("13", "2", [{"type": "text", "text": "on"}]),
        says("14", "13", "m2", thinks("hm")),
        says("15", "14", "m2", "I look."),
        says("16", "15", "m2", ("a", "Bash")),
        answer("17", "16", "a", "out"),
        user("18", "17", "and then"),
        says("19", "18", "m3", "done"),
    )
    (last,) = [state for state in trace.states() if state.step.native_id == "m3"]
    assert texts(last.messages) == [
        "user:go",
        "assistant:hello",
        "user:on",
        "assistant:I look.",
        "tool:out",
        "user:and then",
    ]
    assert last.messages[3].reasoning == "hm"
    assert [state.step.native_id for state in trace.states()] == ["m1", "m2", "m3"]


def test_records_without_links_or_message_ids_are_read_in_file_order(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", None, None, ("a", "Bash")),
        answer("3", None, "a", "out"),
        says("4", None, None, "done"),
    )
    assert [native(context) for context in trace.contexts] == [["2", "4"]]
    assert texts(trace.contexts[0].messages) == ["user:go", "assistant:", "tool:out", "assistant:done"]


REWOUND = [
    user("1", None, "go"),
    says("2", "1", "m1", "first"),
    user("3", "2", "one way"),
    says("4", "3", "m2", "a"),
    attachment("5", "4", type="command_permissions", allowedTools=[]),
    user("6", "2", "another way"),
    says("7", "6", "m3", "b"),
]


@pytest.mark.parametrize(("leaf", "live"), [(None, 1), ("7", 1), ("5", 0), ("4", 0), ("unheard", 1)])
def test_the_context_a_session_ended_in_is_noted(tmp_path: Path, leaf: str | None, live: int) -> None:
    prompts = [{"type": "last-prompt", "leafUuid": "2", "sessionId": "x"}]
    prompts += [{"type": "last-prompt", "leafUuid": leaf, "sessionId": "x"}] if leaf else []
    trace = read(tmp_path, *REWOUND, *(prompts if leaf else ()))
    assert trace.notes["live_context"] == live
    assert fidelities(trace) == ["complete"] * 3


def test_a_session_of_one_context_has_nothing_to_note(tmp_path: Path) -> None:
    assert read(tmp_path, *REWOUND[:2]).notes == {"contexts_start": 1}
