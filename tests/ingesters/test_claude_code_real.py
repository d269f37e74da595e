"""Claude Code sessions of other people, where they are at hand: every count of the ground truth, the laws,
and how prefixes follow the tokens that the steps report. See docs/formats/claude_code.md."""

import io
import json
import os
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.ingesters.claude_code.build_contexts import CLEARED
from tracemill.ingesters.claude_code.ingest_session import ONLY_PROGRESS, ingest_file
from tracemill.ingesters.claude_code.joined_sessions import read_sessions
from tracemill.ingesters.claude_code.session import SessionEntry, SessionFile
from tracemill.ingesters.claude_code.steps import AssembledUnits, assemble_steps
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.records.ingest_report import IngestReport
from tracemill.records.storage.trace_rows import traces_to_table
from tracemill.records.trace import Trace

REAL = os.environ.get("TRACEMILL_REAL_TRACES")

OF_THE_REPORT = (
    "steps_main",
    "steps_side",
    "steps_synthetic",
    "tool_calls",
    "tool_errors",
    "compactions",
    "branches_real",
)
CORRECTED: dict[str, dict[str, Any]] = {
    "cclog_edge_cases.jsonl": {"types": {"user": 10, "assistant": 4, "summary": 1}, "skipped_lines": 7},
    "ccts_sample_session.jsonl": {"roots": 7},
    "cli_ad-ac80fffbb8-0.jsonl": {"bytes": 772_796},
}
NO_WHOLE_STEP = ("step without action", "response that the user cut off")
BROKEN = ("not an object", "not json", "invalid utf-8")


def forks(session: SessionFile, entries: list[SessionEntry]) -> int:
    """Parents with a result and another chunk of the response among their children."""
    by_uuid = {entry.uuid: entry for entry in entries}
    children: dict[str, list[SessionEntry]] = {}
    for entry in entries:
        if entry.parent is not None:
            children.setdefault(entry.parent, []).append(entry)
    return sum(
        parent in by_uuid
        and bool(by_uuid[parent].calls)
        and any(child.results for child in found)
        and any(child.kind == "assistant" for child in found)
        for parent, found in children.items()
    )


def counted(path: Path, report: IngestReport) -> dict[str, Any]:
    """The counts of the ground truth that the report has no field for, from what was read."""
    again = new_report(path, None)
    session: SessionFile = read_sessions(path, again)[0]
    assembled: AssembledUnits = assemble_steps(session.entries, again)
    calls = {call for step in assembled.by_call.values() for call in step.calls}
    answered = {call for step in assembled.by_call.values() for call in step.results}
    parents = {uuid: p for uuid, p in session.parents.items() if not uuid.startswith("line-")}
    prompts = [e.usage.prompt_tokens or 0 for e in session.entries if e.usage is not None]
    chunks = Counter(entry.message_id for entry in session.entries if entry.kind == "assistant")
    return {
        "bytes": report.bytes,
        "records": report.records.total() + sum(report.skipped[reason] for reason in BROKEN),
        "types": {kind: count for kind, count in report.records.items() if kind != "untyped"},
        "skipped_lines": report.skipped.total() - report.skipped[ONLY_PROGRESS],
        "tool_calls_side": report.flags["tool calls of subagents"],
        "tool_results": sum(len(entry.results) for entry in session.entries),
        "unanswered": len(calls - answered),
        "orphan_results": report.flags["tool result without its call"],
        "branches_any": sum(n > 1 for n in Counter(filter(None, parents.values())).values()),
        "branches_parallel": forks(session, session.entries),
        "roots": sum(parent is None for parent in parents.values()),
        "dangling": sum(parent is not None and parent not in session.parents for parent in parents.values()),
        "sidechain_records": len(session.side_uuids),
        "split_ids": sum(count > 1 for count in chunks.values()),
        "max_ctx_tokens": max(prompts, default=0),
        "models": dict(Counter(e.model for e in session.entries if e.kind == "assistant" and e.model)),
    }


def expected(truth: dict[str, Any]) -> dict[str, Any]:
    """The ground truth of a file, with the corrections that docs/formats/claude_code.md proves."""
    given = dict(truth) | {"models": {m: n for m, n in truth["models"].items() if m != "<synthetic>"}}
    return given | CORRECTED.get(truth["file"], {})


def longest_prefix(trace: Trace) -> int:
    """Characters of text, thinking, arguments and results before the step that was shown most of them,
    without reminders."""
    longest = 0
    for context in trace.contexts:
        cuts, chars = {step.cut for step in context.steps}, 0
        for place, message in enumerate(context.messages):
            longest = max(longest, chars) if place in cuts else longest
            if not message.content.startswith("<system-reminder>"):
                chars += len(message.content) + len(message.reasoning or "")
                chars += sum(len(call.arguments) for call in message.tool_calls)
    return longest


def check_prefixes(trace: Trace) -> None:
    """The laws of a trace: results behind their calls, once, never before them; prefixes that grow."""
    for context in trace.contexts:
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        called = [call.id for message in context.messages for call in message.tool_calls]
        assert len(called) == len(set(called))
        results = Counter(message.tool_call_id for message in context.messages if message.role == "tool")
        assert not [call for call in called if results[call] > 1]
        for place, message in enumerate(context.messages):
            own = {call.id for call in message.tool_calls if results[call.id]}
            assert own <= {m.tool_call_id for m in context.messages[place + 1 : place + 1 + len(own)]}
        for step in context.steps:
            action = context.messages[step.cut]
            assert action.role == "assistant"
            assert action.content or action.tool_calls


def parquet(traces: list[Trace]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(traces_to_table(traces), sink)
    return sink.getvalue()


if REAL:
    ROOT = Path(REAL) / "claude_code"
    TRUTH = [
        row
        for row in json.loads((Path(REAL) / "ground_truth.json").read_text())
        if row["format"] == "claude_code"
    ]
    EVERY = pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"][-40:])

    @EVERY
    def test_every_count_of_the_ground_truth(truth: dict[str, Any]) -> None:
        traces, report = ingest_file(ROOT / truth["file"])
        wanted = expected(truth)
        assert {key: getattr(report, key) for key in OF_THE_REPORT} == {
            key: truth[key] for key in OF_THE_REPORT
        }
        found = counted(ROOT / truth["file"], report)
        assert found == {key: wanted[key] for key in found}
        if traces:
            assert not truth["versions"] or traces[0].harness_version in truth["versions"]
        known = set(OF_THE_REPORT) | found.keys() | {"versions", "max_ctx_chars_segment"}
        assert truth.keys() - known <= {"format", "file", "system", "sessions", "max_ctx_chars_path"}

    @EVERY
    def test_every_step_of_a_model_is_a_state_or_named(truth: dict[str, Any]) -> None:
        traces, report = ingest_file(ROOT / truth["file"])
        left_out = sum(report.flags[reason] for reason in NO_WHOLE_STEP) + report.steps_synthetic
        if truth["types"]:
            assert report.states + left_out == report.steps_main + report.steps_side
        assert report.states == sum(trace.step_count for trace in traces)

    @EVERY
    def test_the_laws(truth: dict[str, Any]) -> None:
        traces, _ = ingest_file(ROOT / truth["file"])
        again, _ = ingest_file(ROOT / truth["file"])
        assert traces == again
        assert parquet(traces) == parquet(again)
        for trace in traces:
            check_prefixes(trace)

    @EVERY
    def test_the_longest_prefix_is_as_long_as_the_longest_segment(truth: dict[str, Any]) -> None:
        """A segment ends at a compaction alone, so a file that was cleared or blanked has shorter prefixes;
        prompts typed meanwhile are no part of it, so that prefixes may be longer."""
        main = [trace for trace in ingest_file(ROOT / truth["file"])[0] if trace.kind == "main"]
        for trace in main:
            share = longest_prefix(trace) / truth["max_ctx_chars_segment"]
            shortened = any(context.start == "clear" for context in trace.contexts[1:]) or any(
                message.content == CLEARED for context in trace.contexts for message in context.messages
            )
            assert 0.5 < share < 1.2
            assert shortened or share > 0.92

    def test_prefixes_follow_the_reported_tokens() -> None:
        figures: dict[str, float] = {}
        for truth in TRUTH:
            traces, report = ingest_file(ROOT / truth["file"])
            found = [
                t.notes["prefix_tokens_r_permille"] / 1000
                for t in traces
                if "prefix_tokens_r_permille" in t.notes
            ]
            if found:
                figures[truth["file"]] = min(found)
            flagged = report.flags["prefix_tokens_mismatch"] > 0
            assert flagged == any(r < 0.9 for r in found)
        assert len(figures) >= 35
        assert median(figures.values()) >= 0.997
        assert [file for file, r in figures.items() if r < 0.9] == ["cli_8c-fa910f8ef9-5.jsonl"]

    def test_only_a_session_whose_tokens_moved_without_a_record_is_flagged() -> None:
        _, report = ingest_file(ROOT / "cli_8c-fa910f8ef9-5.jsonl")
        assert report.flags["context added without a record"] == 1
        assert report.flags["context cut without a record"] == 1
