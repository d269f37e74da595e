"""Claude Code: second microcompactions, queued prompts around rewinds, usage over chunks, exact bounds."""

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

from tracemill.ingesters.claude_code.token_check import (
    ADDED,
    SHORTENED,
    CheckedStep,
    PromptCheck,
    thinking_tokens_for_check,
)
from tracemill.records.trace import Context, Trace, Usage

CLEARED = "tool:[Old tool result content cleared]"


def starts(trace: Trace) -> list[str]:
    return [context.start for context in trace.contexts]


def natives(trace: Trace) -> list[list[str | None]]:
    return [[step.native_id for step in context.steps] for context in trace.contexts]


def fidelities(trace: Trace) -> list[str]:
    return [state.fidelity.context for state in trace.states()]


def shown(context: Context) -> list[str]:
    return texts(context.messages)


def micro(uuid: str, parent: str | None, *calls: str, attachments: tuple[str, ...] = ()) -> dict[str, Any]:
    """A microcompaction that blanks the results of these calls and takes out these attachments."""
    metadata = {"compactedToolIds": list(calls), "clearedAttachmentUUIDs": list(attachments)}
    return line("system", uuid, parent, subtype="microcompact_boundary", microcompactMetadata=metadata)


def date(uuid: str, parent: str | None, day: str = "2026-02-01") -> dict[str, Any]:
    return attachment(uuid, parent, type="date_change", newDate=day)


def is_date(text: str) -> bool:
    return text.startswith("user:<system-reminder>") and "2026-02-0" in text


def two_calls() -> list[dict[str, Any]]:
    return [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        answer("3", "2", "a", "first output"),
        says("4", "3", "m2", ("b", "Bash")),
        answer("5", "4", "b", "second output"),
    ]


# Microcompactions.


def test_a_second_microcompaction_does_not_forget_what_the_first_blanked(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        *two_calls(),
        micro("6", "5", "a"),
        says("7", "6", "m3", "between"),
        micro("8", "7", "b"),
        says("9", "8", "m4", "after"),
    )
    (trace,) = traces
    assert starts(trace) == ["start", "microcompaction", "microcompaction"]
    assert natives(trace) == [["m1", "m2"], ["m3"], ["m4"]]
    before, first, second = (shown(context) for context in trace.contexts)
    assert before == ["user:go", "assistant:", "tool:first output", "assistant:", "tool:second output"]
    assert first[:5] == ["user:go", "assistant:", CLEARED, "assistant:", "tool:second output"]
    assert second == [
        "user:go",
        "assistant:",
        CLEARED,
        "assistant:",
        CLEARED,
        "assistant:between",
        "assistant:after",
    ]
    assert report.flags["microcompaction"] == 2
    assert fidelities(trace) == ["complete"] * 4


def test_attachments_that_the_first_microcompaction_took_out_stay_out_after_the_second(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        *two_calls(),
        date("5a", "5"),
        date("5b", "5a", "2026-02-02"),
        micro("6", "5b", attachments=("5a",)),
        says("7", "6", "m3", "between"),
        micro("8", "7", attachments=("5b",)),
        says("9", "8", "m4", "after"),
    )
    dates = [[text for text in shown(context) if is_date(text)] for context in trace.contexts]
    assert [len(each) for each in dates] == [2, 1, 0]
    assert "2026-02-02" in dates[1][0]
    assert "tool:first output" in shown(trace.contexts[2])


def test_what_a_microcompaction_takes_out_is_in_the_draft_before_it_still(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        date("0", None),
        user("1", "0", "go"),
        says("2", "1", "m1", "one"),
        micro("3", "2", attachments=("0",)),
        says("4", "3", "m2", "two"),
    )
    before, after = (shown(context) for context in trace.contexts)
    assert is_date(before[0])
    assert before[1:] == ["user:go", "assistant:one"]
    assert after == ["user:go", "assistant:one", "assistant:two"]


def test_a_microcompaction_takes_out_no_step_and_nothing_for_what_is_not_there(tmp_path: Path) -> None:
    """The last message is a text: what is unheard of must not be taken for it."""
    trace = read(
        tmp_path,
        boundary("b", {}),
        summary("s", "b"),
        says("2", "s", "m1", "one"),
        user("3", "2", "on"),
        micro("4", "3", "unheard", attachments=("2", "b", "unheard")),
        says("5", "4", "m2", "two"),
    )
    assert shown(trace.contexts[1]) == ["user:the summary", "assistant:one", "user:on", "assistant:two"]


def test_a_microcompaction_before_anything_was_said_opens_no_context(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, micro("0", None, "a"), *two_calls())
    assert starts(traces[0]) == ["start"]
    assert "tool:first output" in shown(traces[0].contexts[0])
    assert report.flags["microcompaction"] == 1


def test_a_microcompaction_before_its_compaction_has_a_summary_waits_for_it_too(tmp_path: Path) -> None:
    kept = {"preservedMessages": {"anchorUuid": "s", "uuids": ["2", "3"]}}
    traces, report = ingest(
        tmp_path,
        *two_calls(),
        boundary("b", kept),
        user("n", "b", "a note", isMeta=True),
        micro("mc", "n", "a"),
        summary("s", "mc"),
        says("9", "s", "m3", "on"),
    )
    assert starts(traces[0]) == ["start", "microcompaction"]
    assert shown(traces[0].contexts[1]) == [
        "user:a note",
        "user:the summary",
        "assistant:",
        CLEARED,
        "assistant:on",
    ]
    assert fidelities(traces[0]) == ["complete"] * 3
    assert "compaction without its summary" not in report.flags
    assert "preserved messages without their anchor" not in report.flags


def test_a_clear_forgets_what_was_blanked(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        *two_calls(),
        micro("6", "5", "a", "c"),
        says("6a", "6", "m2a", "on"),
        user("7", None, "anew"),
        says("8", "7", "m3", ("c", "Bash")),
        answer("9", "8", "c", "third output"),
        says("10", "9", "m4", "done"),
    )
    assert starts(trace) == ["start", "microcompaction", "clear"]
    assert shown(trace.contexts[2]) == ["user:anew", "assistant:", "tool:third output", "assistant:done"]


def test_a_microcompaction_behind_a_hole_is_lost_as_well(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        user("4", "gone", "behind the hole"),
        micro("5", "4"),
        says("6", "5", "m2", "two"),
    )
    assert starts(trace) == ["start", "microcompaction"]
    assert fidelities(trace) == ["complete", "lost"]


# Rewinds, and prompts that only the queue holds.


def asked(text: str) -> list[dict[str, Any]]:
    """A prompt that went into the running turn."""
    return [queued("enqueue", text), queued("remove")]


def test_a_prompt_of_the_queue_after_a_rewind_is_of_the_rewound_context(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        *two_calls(),
        says("6", "5", "m3", "lost"),
        user("7", "3", "another way"),
        says("8", "7", "m4", ("c", "Bash")),
        *asked("be quick"),
        answer("9", "8", "c", "third output"),
        says("10", "9", "m5", "done"),
    )
    (trace,) = traces
    assert starts(trace) == ["start", "rewind"]
    assert natives(trace) == [["m1", "m2", "m3"], ["m4", "m5"]]
    assert "user:be quick" not in shown(trace.contexts[0])
    assert shown(trace.contexts[1]) == [
        "user:go",
        "assistant:",
        "tool:first output",
        "user:another way",
        "assistant:",
        "tool:third output",
        "user:be quick",
        "assistant:done",
    ]
    assert (report.flags["rewind"], report.flags["prompt that only the queue holds"]) == (1, 1)


def test_a_rewind_takes_all_prompts_right_behind_its_place_and_none_behind_another_message(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        *two_calls()[:3],
        *asked("be quick"),
        *asked("and good"),
        date("3a", "3"),
        *asked("too late"),
        says("4", "3a", "m2", "lost"),
        user("7", "3", "another way"),
        says("8", "7", "m3", "so"),
    )
    assert starts(trace) == ["start", "rewind"]
    before, after = (shown(context) for context in trace.contexts)
    assert [text for text in before if not is_date(text)][3:] == [
        "user:be quick",
        "user:and good",
        "user:too late",
        "assistant:lost",
    ]
    assert after[3:] == ["user:be quick", "user:and good", "user:another way", "assistant:so"]


def test_a_rewind_to_before_the_step_leaves_the_prompt_behind_it(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        *two_calls()[:3],
        *asked("be quick"),
        says("4", "3", "m2", "lost"),
        user("7", "1", "another way"),
        says("8", "7", "m3", "so"),
    )
    assert shown(trace.contexts[1]) == ["user:go", "user:another way", "assistant:so"]


def test_a_rewind_to_the_end_of_an_older_context_takes_the_prompts_it_ended_with(tmp_path: Path) -> None:
    records = [
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        *asked("be quick"),
        *asked("and good"),
        user("3", None, "anew"),
        says("4", "3", "m2", "two"),
        user("5", "2", "back again"),
        says("6", "5", "m3", "three"),
    ]
    trace = read(tmp_path, *records)
    assert starts(trace) == ["start", "clear", "rewind"]
    assert shown(trace.contexts[1]) == ["user:anew", "assistant:two"]
    assert shown(trace.contexts[2]) == [
        "user:go",
        "assistant:one",
        "user:be quick",
        "user:and good",
        "user:back again",
        "assistant:three",
    ]
    without = read(tmp_path, *records[:2], *records[6:])
    assert shown(without.contexts[2]) == [
        "user:go",
        "assistant:one",
        "user:back again",
        "assistant:three",
    ]


def test_a_rewind_and_back_again_is_a_third_context_of_what_the_first_held(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        user("3", "2", "one way"),
        says("4", "3", "m2", "a"),
        user("5", "2", "another way"),
        says("6", "5", "m3", "b"),
        user("7", "4", "back again"),
        says("8", "7", "m4", "c"),
    )
    assert starts(traces[0]) == ["start", "rewind", "rewind"]
    assert shown(traces[0].contexts[2]) == [
        "user:go",
        "assistant:first",
        "user:one way",
        "assistant:a",
        "user:back again",
        "assistant:c",
    ]
    assert natives(traces[0]) == [["m1", "m2"], ["m3"], ["m4"]]
    assert report.flags["rewind"] == 2


def test_what_hangs_on_a_shared_message_goes_into_the_newest_context_that_holds_it(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        *two_calls(),
        micro("6", "5", "a"),
        says("7", "6", "m3", "between"),
        user("8", None, "anew"),
        says("9", "8", "m4", "clear"),
        user("10", "5", "back again"),
        says("11", "10", "m5", "so"),
    )
    assert starts(trace) == ["start", "microcompaction", "clear", "rewind"]
    assert shown(trace.contexts[3]) == [
        "user:go",
        "assistant:",
        CLEARED,
        "assistant:",
        "tool:second output",
        "user:back again",
        "assistant:so",
    ]


def test_what_hangs_on_the_place_of_a_rewind_is_of_the_rewound_context(tmp_path: Path) -> None:
    """The date begins it, and nobody said that; the text on the same message goes on behind it."""
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "first"),
        user("3", "2", "one way"),
        says("4", "3", "m2", "lost"),
        date("5", "2"),
        user("6", "2", "another way"),
        says("7", "6", "m3", "kept"),
    )
    assert starts(traces[0]) == ["start", "rewind"]
    found = shown(traces[0].contexts[1])
    assert is_date(found.pop(2))
    assert found == ["user:go", "assistant:first", "user:another way", "assistant:kept"]
    assert report.flags["rewind"] == 1


def test_what_hangs_before_the_place_of_a_rewind_goes_on_where_nobody_spoke_since(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        date("2", "1"),
        says("3", "2", "m1", "lost"),
        date("4", "2", "2026-02-02"),
        user("5", "1", "another way"),
        says("6", "5", "m2", "kept"),
    )
    assert starts(traces[0]) == ["start", "rewind"]
    found = shown(traces[0].contexts[1])
    assert [is_date(text) for text in found] == [False, True, True, False, False]
    assert report.flags["rewind"] == 1


def test_a_message_hangs_on_what_was_said_through_any_number_of_records(tmp_path: Path) -> None:
    def hook(number: int, parent: str) -> dict[str, Any]:
        return line("progress", f"p{number}", parent, data={"type": "hook_progress"})

    chain = [hook(0, "2"), *(hook(number, f"p{number - 1}") for number in range(1, 20))]
    records = [user("1", None, "go"), says("2", "1", "m1", "one"), *chain, user("3", "p19", "on")]
    trace = read(tmp_path, *records, says("4", "3", "m2", "two"))
    assert starts(trace) == ["start"]
    assert shown(trace.contexts[0]) == ["user:go", "assistant:one", "user:on", "assistant:two"]


def test_records_that_hang_on_each_other_are_a_root_of_their_own(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        line("progress", "p1", "p2", data={"type": "hook_progress"}),
        line("progress", "p2", "p1", data={"type": "hook_progress"}),
        user("3", "p1", "on"),
        says("4", "3", "m2", "two"),
    )
    assert starts(trace) == ["start", "clear"]
    assert shown(trace.contexts[1]) == ["user:on", "assistant:two"]


def test_a_rewind_up_to_the_hole_is_whole_and_one_message_later_it_is_not(tmp_path: Path) -> None:
    records = [
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        user("4", "gone", "behind the hole"),
        says("5", "4", "m2", "two"),
    ]
    before = read(tmp_path, *records, user("6", "2", "anew"), says("7", "6", "m3", "three"))
    behind = read(tmp_path, *records, user("6", "4", "anew"), says("7", "6", "m3", "three"))
    assert (starts(before), starts(behind)) == (["start", "rewind"], ["start", "rewind"])
    assert fidelities(before) == ["complete", "lost", "complete"]
    assert fidelities(behind) == ["complete", "lost", "lost"]


def test_the_first_of_two_holes_is_where_context_is_lost(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        user("3", "gone", "behind a hole"),
        says("4", "3", "m2", "two"),
        user("5", "gone too", "behind another"),
        says("6", "5", "m3", "three"),
    )
    assert fidelities(traces[0]) == ["complete", "lost", "lost"]
    assert report.flags["parent missing"] == 2


@pytest.mark.parametrize(("hanging", "found"), [(1, ["start", "clear"]), (0, ["start"])])
def test_links_are_followed_where_half_of_the_responses_have_them(
    tmp_path: Path, hanging: int, found: list[str]
) -> None:
    """One of two is half; one of three, or none, is less."""
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1" if hanging else None, "m1", "one"),
        user("3", None, "on"),
        says("4", None, "m2", "two"),
    )
    assert starts(trace)[:2] == found
    thirds = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        says("4", None, "m2", "two"),
        says("5", None, "m3", "three"),
    )
    assert starts(thirds) == ["start"]


def test_an_interrupt_cuts_off_the_response_before_what_nobody_said(tmp_path: Path) -> None:
    interrupt = [{"type": "text", "text": "[Request interrupted by user]"}]
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "Let me check:"),
        date("3", "2"),
        user("4", "3", interrupt),
        says("5", "4", "m2", "hi"),
    )
    assert natives(traces[0]) == [["m2"]]
    assert report.flags["response that the user cut off"] == 1


def test_an_interrupt_leaves_a_response_that_called(tmp_path: Path) -> None:
    interrupt = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    calls = two_calls()[:2]
    trace = read(tmp_path, *calls, user("3", "2", interrupt), says("4", "3", "m2", "hi"))
    assert natives(trace) == [["m1", "m2"]]


def test_an_interrupt_of_what_was_said_since_leaves_the_response(tmp_path: Path) -> None:
    interrupt = [{"type": "text", "text": "[Request interrupted by user]"}]
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "Done."),
        user("3", "2", "on"),
        user("4", "3", interrupt),
        says("5", "4", "m2", "hi"),
    )
    assert natives(trace) == [["m1", "m2"]]


# Compactions.


def test_a_preserved_message_is_there_once_and_a_record_that_nobody_saw_is_not_missed(
    tmp_path: Path,
) -> None:
    kept = {"preservedMessages": {"anchorUuid": "s", "uuids": ["4", "p", "5", "4", "1"]}}
    traces, report = ingest(
        tmp_path,
        *two_calls(),
        line("progress", "p", "5", data={"type": "hook_progress"}),
        boundary("b", kept),
        summary("s", "b"),
        user("8", "s", "on"),
        says("9", "8", "m3", "so"),
    )
    assert starts(traces[0]) == ["start", "compaction"]
    assert shown(traces[0].contexts[1]) == [
        "user:the summary",
        "assistant:",
        "tool:second output",
        "user:go",
        "user:on",
        "assistant:so",
    ]
    assert natives(traces[0]) == [["m1", "m2"], ["m3"]]
    assert fidelities(traces[0]) == ["complete"] * 3
    assert "preserved message missing" not in report.flags


def test_a_compaction_before_anything_was_said_is_the_first_context(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        boundary("b", {}),
        summary("s", "b"),
        says("2", "s", "m1", "one"),
        summary("t", "2", "another summary"),
        says("3", "t", "m2", "two"),
    )
    assert starts(trace) == ["compaction", "compaction"]
    assert shown(trace.contexts[0]) == ["user:the summary", "assistant:one"]
    assert shown(trace.contexts[1]) == ["user:another summary", "assistant:two"]


def test_a_segment_of_one_message_is_preserved_and_one_without_ends_is_not(tmp_path: Path) -> None:
    def after(segment: dict[str, Any]) -> tuple[list[str], str]:
        kept = {"preservedSegment": {"anchorUuid": "s"} | segment}
        records = [boundary("b", kept), summary("s", "b"), says("9", "s", "m3", "so")]
        trace = read(tmp_path, *two_calls(), *records)
        return shown(trace.contexts[1]), fidelities(trace)[-1]

    whole = ["user:the summary", "assistant:", "tool:second output", "assistant:so"]
    assert after({"headUuid": "4", "tailUuid": "4"}) == (whole, "complete")
    assert after({"headUuid": "4", "tailUuid": "5"}) == (whole, "complete")
    both = [whole[0], "assistant:", "tool:first output", *whole[1:]]
    assert after({"headUuid": "2", "tailUuid": "5"}) == (both, "complete")
    assert after({"headUuid": "5", "tailUuid": "4"}) == (["user:the summary", "assistant:so"], "lost")
    assert after({}) == (["user:the summary", "assistant:so"], "lost")


# The queue.


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (
            [
                queued("enqueue", "<task-notification>x"),
                queued("enqueue", "one"),
                queued("dequeue"),
                queued("remove"),
            ],
            ["<task-notification>x"],
        ),
        (
            [
                queued("enqueue", "/exit"),
                queued("enqueue", "<agent-notification>x"),
                queued("enqueue", "one"),
                queued("remove"),
                queued("remove"),
            ],
            ["one", "<agent-notification>x"],
        ),
        ([queued("enqueue", "one"), queued("remove", "two"), queued("remove")], ["two", "one"]),
        (
            [queued("enqueue", "one"), queued("enqueue", "one"), queued("remove", "one"), queued("remove")],
            ["one", "one"],
        ),
        ([queued("enqueue", "one"), queued("enqueue", "two"), queued("popAll"), queued("remove")], []),
        ([queued("enqueue", " one \n"), queued("remove", "one")], ["one"]),
    ],
)
def test_what_leaves_the_queue_into_a_turn_leaves_it_in_its_order(
    tmp_path: Path, operations: list[dict[str, Any]], found: list[str]
) -> None:
    calls = two_calls()
    traces, report = ingest(tmp_path, *calls[:2], *operations, *calls[2:])
    assert shown(traces[0].contexts[0])[3:-2] == [f"user:{text}" for text in found]
    assert report.flags["prompt that only the queue holds"] == len(found)


def test_a_record_from_before_a_prompt_was_typed_is_not_its_record(tmp_path: Path) -> None:
    told = attachment("3q", "3", type="queued_command", prompt="be quick", commandMode="prompt")
    calls = two_calls()
    before = read(tmp_path, *calls[:3], told, *asked("be quick"), *calls[3:])
    after = read(tmp_path, *calls[:3], *asked("be quick"), told, *calls[3:])
    assert shown(before.contexts[0]).count("user:be quick") == 2
    assert shown(after.contexts[0]).count("user:be quick") == 1


# Usage, and chunks of one response.

REPORTED = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 20,
    "output_tokens": 77,
}


def usages(tmp_path: Path, *chunks: dict[str, Any]) -> list[Usage]:
    """What the steps report whose chunks these are."""
    return [step.usage for step in read(tmp_path, user("1", None, "go"), *chunks).contexts[0].steps]


def test_a_later_chunk_without_usage_does_not_erase_what_an_earlier_one_reported(tmp_path: Path) -> None:
    first = says("2", "1", "m1", "a", usage=REPORTED, stop_reason="tool_use")
    assert usages(tmp_path, first, says("3", "2", "m1", ("t", "Bash"))) == [Usage(28, 77, 20)]
    assert usages(
        tmp_path, first, says("3", "2", "m1", ("t", "Bash"), usage=None), says("4", "3", "m2", "b")
    ) == [Usage(28, 77, 20), Usage()]


def test_usage_that_only_a_later_chunk_reports_is_of_the_step(tmp_path: Path) -> None:
    chunks = [
        says("2", "1", "m1", "a"),
        says("3", "2", "m1", ("t", "Bash"), usage=REPORTED, stop_reason="tool_use"),
    ]
    assert usages(tmp_path, *chunks) == [Usage(28, 77, 20)]


def test_of_two_chunks_that_report_usage_the_later_one_counts(tmp_path: Path) -> None:
    chunks = [
        says("2", "1", "m1", "a", usage=REPORTED | {"input_tokens": 1, "output_tokens": 1}),
        says("3", "2", "m1", ("t", "Bash"), usage=REPORTED, stop_reason="tool_use"),
        says("4", "3", "m1", ("u", "Bash")),
    ]
    assert usages(tmp_path, *chunks) == [Usage(28, 77, 20)]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"usage": REPORTED}, Usage(28, None, 20)),
        ({"usage": REPORTED, "stop_reason": ""}, Usage(28, None, 20)),
        ({"usage": REPORTED, "stop_reason": "end_turn"}, Usage(28, 77, 20)),
        ({"usage": REPORTED, "stop_reason": "end_turn", "costUSD": 0}, Usage(28, 77, 20, 0.0)),
        ({"usage": REPORTED, "stop_reason": "end_turn", "costUSD": True}, Usage(28, 77, 20)),
        ({"usage": {"input_tokens": 3}}, Usage(3)),
        ({"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}}, Usage(7, None, 4)),
        ({"usage": {"cache_creation_input_tokens": 5, "input_tokens": None}}, Usage(5)),
        ({"usage": {"input_tokens": 0}}, Usage(0)),
        ({"usage": {"input_tokens": True, "cache_read_input_tokens": 2.0}}, Usage()),
        ({"usage": {"output_tokens": True}, "stop_reason": "end_turn"}, Usage()),
        ({"usage": "much"}, Usage()),
    ],
)
def test_what_is_reported_is_taken_where_it_is_a_number(
    tmp_path: Path, fields: dict[str, Any], found: Usage
) -> None:
    assert usages(tmp_path, says("2", "1", "m1", "a", **fields)) == [found]


def test_a_response_stops_where_its_last_chunk_says_so(tmp_path: Path) -> None:
    interrupt = user("9", "3", [{"type": "text", "text": "[Request interrupted by user]"}])

    def cut(first: str | None, last: str | None) -> int:
        chunks = [
            says("2", "1", "m1", "Let me", stop_reason=first),
            says("3", "2", "m1", "check", stop_reason=last),
        ]
        return ingest(tmp_path, user("1", None, "go"), *chunks, interrupt)[1].flags[
            "response that the user cut off"
        ]

    assert (cut(None, None), cut("end_turn", None), cut(None, "end_turn")) == (1, 1, 0)


def test_a_response_that_one_chunk_says_was_broken_off_is_no_action(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "Let me", isAbortedMidStream=True),
        says("3", "2", "m1", "check", stop_reason="end_turn"),
        says("4", "3", "m2", "hi"),
    )
    assert natives(traces[0]) == [["m2"]]
    assert report.flags["response that the user cut off"] == 1


def test_chunks_that_repeat_what_was_said_add_nothing(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", thinks("hm"), "one"),
        says("3", "2", "m1", thinks("hm"), "one", ("a", "Bash", {"command": "ls"})),
        says("4", "3", "m1", thinks("so"), "two", ("a", "Bash", {"command": "rm"})),
        answer("5", "4", "a", "out"),
        says("6", "5", "m2", ("a", "Bash")),
    )
    message = traces[0].contexts[0].messages[1]
    assert (message.content, message.reasoning) == ("one\n\ntwo", "hm\n\nso")
    assert [call.arguments for call in message.tool_calls] == ['{"command":"ls"}']
    assert report.flags["repeated call id"] == 2


def test_a_result_that_comes_behind_the_next_step_is_counted_late(tmp_path: Path) -> None:
    late, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash")),
        says("3", "2", "m2", "meanwhile"),
        answer("4", "2", "a", "out"),
        says("5", "3", "m3", "done"),
    )
    assert report.flags["late tool result"] == 1
    assert fidelities(late[0]) == ["complete", "lost", "lost"]
    assert shown(late[0].contexts[0]) == [
        "user:go",
        "assistant:",
        "tool:out",
        "assistant:meanwhile",
        "assistant:done",
    ]
    assert "late tool result" not in ingest(tmp_path, *two_calls())[1].flags


def test_a_call_without_its_result_is_missed_once_and_from_the_next_step_on(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash"), ("b", "Bash")),
        answer("3", "2", "b", "out"),
        says("4", "3", "m2", "on"),
        says("5", "4", "m3", "done"),
    )
    assert fidelities(traces[0]) == ["complete", "lost", "lost"]
    assert traces[0].contexts[0].lost_from == 1
    assert report.flags["call without a result"] == 1


# Characters of a prefix against its tokens: the bounds of the check.


@pytest.mark.parametrize(
    ("before", "now", "fault"),
    [
        (CheckedStep(0, 10_000), CheckedStep(9, 6000), ""),
        (CheckedStep(0, 10_000), CheckedStep(9, 5999), SHORTENED),
        (CheckedStep(0, 10_000), CheckedStep(9, 5989, 50, 11), ""),
        (CheckedStep(0, 10_000), CheckedStep(9, 5988, 50, 11), SHORTENED),
        (CheckedStep(100, 10_000), CheckedStep(300, 18_200), ""),
        (CheckedStep(100, 10_000), CheckedStep(300, 18_201), ADDED),
        (CheckedStep(100, 10_000), CheckedStep(300, 18_207, 7, 50), ""),
        (CheckedStep(100, 10_000), CheckedStep(300, 18_208, 7, 50), ADDED),
    ],
)
def test_tokens_between_two_steps_fall_by_4000_and_rise_by_8000_beyond_the_text(
    before: CheckedStep, now: CheckedStep, fault: str
) -> None:
    check = PromptCheck()
    check.start_context(None)
    assert check.check_step(before, True, True) == ""
    assert check.check_step(now, False, False) == fault


@pytest.mark.parametrize(
    ("tokens", "fresh", "fault"),
    [(6200, True, ""), (6201, True, ADDED), (6201, False, "")],
)
def test_a_later_context_begins_within_5000_tokens_of_the_first(tokens: int, fresh: bool, fault: str) -> None:
    """The first prompt holds 1000 tokens beside its 400 characters; the later one 400 characters."""
    check = PromptCheck()
    check.start_context(None)
    assert check.check_step(CheckedStep(400, 1100), True, True) == ""
    check.start_context(None)
    assert check.check_step(CheckedStep(400, tokens), True, fresh) == fault


def test_a_context_that_shares_a_step_is_held_against_it(tmp_path: Path) -> None:
    check = PromptCheck()
    check.start_context(None)
    check.check_step(CheckedStep(400, 1100), True, True)
    check.start_context(CheckedStep(400, 10_000))
    assert check.check_step(CheckedStep(400, 18_001), True, False) == ADDED


@pytest.mark.parametrize(("steps", "spread", "told"), [(8, 2000, True), (7, 2000, False), (8, 1999, False)])
def test_a_correlation_takes_8_steps_and_2000_tokens(steps: int, spread: int, told: bool) -> None:
    check = PromptCheck()
    check.start_context(None)
    for number in range(steps):
        check.check_step(
            CheckedStep(number, 5000 + (spread if number == steps - 1 else 0)), number == 0, True
        )
    assert (check.correlation() is not None) is told


@pytest.mark.parametrize(
    ("reasoning", "shown_chars", "completion", "tokens"),
    [(0, 30, 12, 2), (0, 30, 10, 0), (0, 30, 9, 0), (0, 30, None, 0), (9, 30, 12, 3), (8, 30, None, 2)],
)
def test_a_token_of_thinking_is_taken_for_3_characters(
    reasoning: int, shown_chars: int, completion: int | None, tokens: int
) -> None:
    assert thinking_tokens_for_check(reasoning, shown_chars, completion) == tokens
