"""Claude Code files: steps with their results, what is no step, usage, models, identities, folders."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_records import SESSION, answer, ingest, line, read, says, texts, thinks, user, write

from tracemill.ingesters.ingester_classes import ClaudeCodeIngester
from tracemill.records.errors import SourceError
from tracemill.records.identity import make_trace_id
from tracemill.records.storage.trace_rows import traces_from_table, traces_to_table
from tracemill.records.trace import Usage


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


def test_chunks_of_two_ids_may_interleave(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "one"),
        says("3", "2", "m2", "two"),
        says("4", "3", "m1", ("a", "Bash")),
        answer("5", "4", "a", "out"),
        says("6", "5", "m2", ("b", "Bash")),
        answer("7", "6", "b", "more"),
        says("8", "7", "m3", "done"),
    )
    assert [step.native_id for step in trace.contexts[0].steps] == ["m1", "m2", "m3"]
    prefixes = [texts(state.messages) for state in trace.states()]
    assert prefixes[1] == ["user:go", "assistant:one", "tool:out"]
    assert prefixes[2] == [*prefixes[1], "assistant:two", "tool:more"]


def test_the_model_and_its_family_are_those_of_each_step(tmp_path: Path) -> None:
    models = ["claude-opus-4-5-20251101", "claude-sonnet-4-5", "glm-4.6", "deepseek-chat", "my-own"]
    records = [user("0", None, "go")]
    for number, model in enumerate(models, start=1):
        records.append(says(str(number), str(number - 1), f"m{number}", "hm", model=model))
    (context,) = read(tmp_path, *records).contexts
    assert [(step.model, step.family) for step in context.steps] == list(
        zip(models, ["anthropic", "anthropic", "zai", "deepseek", "unknown"], strict=True)
    )


def test_thinking_alone_and_blank_filler_are_no_actions(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", thinks("hm")),
        says("3", "2", "m2", "\n\n"),
        says("4", "3", "m3", "\n\n", ("a", "Bash")),
        answer("5", "4", "a", "out"),
        says("6", "5", "m4", "done"),
    )
    assert [step.native_id for step in traces[0].contexts[0].steps] == ["m3", "m4"]
    assert texts(traces[0].contexts[0].messages) == ["user:go", "assistant:", "tool:out", "assistant:done"]
    assert (report.steps_main, report.states, report.flags["step without action"]) == (4, 2, 2)


def test_synthetic_and_api_error_messages_are_no_steps_and_in_no_prefix(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "API Error: 529", isApiErrorMessage=True, model="<synthetic>"),
        says("3", "2", "m2", "API Error: 500", isApiErrorMessage=True),
        user("4", "3", "again"),
        says("5", "4", "m3", "No response requested.", model="<synthetic>"),
        says("6", "5", "m4", "hi"),
    )
    (state,) = traces[0].states()
    assert texts(state.messages) == ["user:go", "user:again"]
    assert (report.steps_main, report.steps_synthetic, report.states) == (4, 2, 1)
    assert report.flags["API error message"] == 2
    assert report.flags["message that no model wrote"] == 1


def test_a_call_without_a_result_stays_and_a_second_result_does_not(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Bash"), ("b", "Bash")),
        answer("3", "2", "a", "out"),
        answer("4", "3", "a", "again"),
        user("5", "4", "on"),
        says("6", "5", "m2", "done"),
    )
    second = list(traces[0].states())[1]
    assert texts(second.messages) == ["user:go", "assistant:", "tool:out", "user:on"]
    assert [call.id for call in second.messages[1].tool_calls] == ["a", "b"]
    assert report.flags["repeated tool result"] == 1
    assert [state.fidelity.context for state in traces[0].states()] == ["complete", "lost"]
    assert report.flags["call without a result"] == 1


def test_the_last_call_of_a_session_lacks_nothing(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, user("1", None, "go"), says("2", "1", "m1", ("a", "Bash")))
    assert [state.fidelity.context for state in traces[0].states()] == ["complete"]
    assert report.flags["call without a result"] == 0


def test_what_a_refusal_withdrew_is_no_action_and_in_no_later_prefix(tmp_path: Path) -> None:
    gone = {"subtype": "model_refusal_fallback", "retractedMessageUuids": ["2", "3", "4", "absent"]}
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "Let me look."),
        says("3", "2", "m1", ("a", "Bash")),
        says("4", "3", "m1", ("b", "Bash")),
        answer("5", "3", "a", "out"),
        line("system", "6", "5", **gone),
        says("7", "6", "m2", {"type": "fallback"}, model="claude-opus-4-8"),
        says("8", "7", "m2", "Another way.", model="claude-opus-4-8"),
        user("9", "8", "on"),
        says("10", "9", "m3", "done"),
    )
    assert [step.native_id for step in traces[0].contexts[0].steps] == ["m2", "m3"]
    assert texts(traces[0].contexts[0].messages) == [
        "user:go",
        "assistant:Another way.",
        "user:on",
        "assistant:done",
    ]
    assert {state.fidelity.context for state in traces[0].states()} == {"complete"}
    assert (report.steps_main, report.tool_calls, report.states) == (3, 2, 2)
    assert report.flags["response that was withdrawn"] == 1


@pytest.mark.parametrize(
    ("chunks", "interrupt", "steps"),
    [
        (["Let me check:"], "[Request interrupted by user]", ["m2"]),
        ([("a", "Bash")], "[Request interrupted by user for tool use]", ["m1", "m2"]),
        (["Let me check:"], "stop", ["m1", "m2"]),
    ],
    ids=["text", "call", "no interrupt"],
)
def test_a_response_that_the_user_cut_off_is_no_action(
    tmp_path: Path, chunks: list[Any], interrupt: str, steps: list[str]
) -> None:
    content = [{"type": "text", "text": interrupt}]
    records = [
        user("1", None, "go"),
        says("2", "1", "m1", *chunks),
        user("3", "2", content),
        user("4", "3", "again"),
        says("5", "4", "m2", "hi"),
    ]
    traces, report = ingest(tmp_path, *records)
    context = traces[0].contexts[0]
    assert [step.native_id for step in context.steps] == steps
    cut = report.flags["response that the user cut off"]
    assert cut == 2 - len(steps)
    assert texts(context.messages[:3])[1:] == [
        f"assistant:{chunks[0] if isinstance(chunks[0], str) else ''}",
        f"user:{interrupt}",
    ]
    records[1]["message"]["stop_reason"] = "end_turn"
    assert ingest(tmp_path, *records)[1].flags["response that the user cut off"] == 0
    records[1]["isAbortedMidStream"] = True
    assert ingest(tmp_path, *records)[1].flags["response that the user cut off"] == 1


def test_cost_that_early_versions_report_is_of_its_step(tmp_path: Path) -> None:
    usage = {"input_tokens": 4, "output_tokens": 2}
    trace = read(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", "a", costUSD=0.25, usage=usage, version="1.0.3"),
        says("3", "2", "m2", "b", costUSD=1, version="1.0.3"),
        says("4", "3", "m3", "c", costUSD="much", version="1.0.3"),
    )
    assert [step.usage for step in trace.contexts[0].steps] == [
        Usage(4, None, None, 0.25),
        Usage(cost_usd=1.0),
        Usage(),
    ]
    assert traces_from_table(traces_to_table([trace])) == [trace]


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
    with pytest.raises(
        SourceError, match=r"b\.jsonl is of no known format; expected a session of claude_code"
    ):
        list(ClaudeCodeIngester().ingest(other))
    with pytest.raises(SourceError, match=r"absent\.jsonl does not exist"):
        list(ClaudeCodeIngester().ingest(str(tmp_path / "absent.jsonl")))


def test_joined_sessions_are_traces_of_their_own_and_a_resumed_one_is_one(tmp_path: Path) -> None:
    other = {"sessionId": "5e55104a-0000-4000-8000-00000000000b"}
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "b", **other}
    first = [user("1", None, "a"), says("2", "1", "m1", "one")]
    second = [user("3", None, "b", **other), says("4", "3", "m2", "two", **other)]
    alone = [*ingest(tmp_path, *first)[0], *ingest(tmp_path, queued, *second)[0]]
    for records in ([*first, queued, *second], [first[0], queued, second[0], first[1], second[1]]):
        traces, report = ingest(tmp_path, *records)
        assert traces == alone
        assert report.flags["another session in the same file"] == 1
        assert (report.traces, report.states, report.steps_main) == (2, 2, 2)
    resumed = [user("3", "2", "b", **other), says("4", "3", "m2", "two", **other)]
    compacted = [user("3", None, "b", logicalParentUuid="2", **other), resumed[1]]
    for records in (resumed, compacted):
        (trace,), report = ingest(tmp_path, *first, queued, *records)
        assert (trace.step_count, report.flags["another session in the same file"]) == (2, 0)
