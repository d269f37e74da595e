"""What is exported and read again gives the same states: chat rows, ATIF, session traces of the Hub."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from atif_states import arguments_of, faults_of, messages_and_cuts

from tracemill.cli.main import app
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.export.atif import trajectory_of_context
from tracemill.flows.export.chat_rows import context_name, row_of_context
from tracemill.flows.export.export_run import NO_STEP, contexts_of, export_traces
from tracemill.flows.export.session_traces import lines_of_context
from tracemill.ingesters.atif.ingest_trajectory import traces_of_trajectory
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.swe_gym.rows import trace_of_gym_row
from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Fidelity, Step, Trace, Usage

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "inputs"
EXAMPLES = ROOT / "examples" / "sessions"
REAL = os.environ.get("TRACEMILL_REAL_TRACES")
SOURCES = ("claude_code", "codex", "openhands", "swe_agent", "mini_swe_agent", "swe_gym")
FOLDERS = [root / source for root in (GOLDEN, *([Path(REAL)] if REAL else [])) for source in SOURCES]


def recorded(folder: Path) -> Iterator[tuple[Trace, Context]]:
    for file in discover([folder]):
        for trace in ingest_source(file)[0]:
            yield from ((trace, context) for context in contexts_of(trace, Counter()))


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=False))


def told(message: Message) -> tuple[Any, ...]:
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    thought = message.reasoning if message.role == "assistant" and (message.reasoning or "").strip() else None
    return (message.role, message.content, calls, message.tool_call_id or None, message.is_error, thought)


def assert_read_again_as_equal(trace: Trace, context: Context, read: Trace) -> None:
    """Hold every state of a context that was exported and read again to the first one, byte for byte."""
    (again,) = read.contexts
    assert again.messages == context.messages, trace.trace_id
    assert [(s.cut, s.model) for s in again.steps] == [(s.cut, s.model) for s in context.steps]
    before = [state.fidelity for state in trace.states() if state.context is context]
    assert [state.fidelity for state in read.states()] == before
    assert (again.tools, again.start) == (context.tools, context.start)
    told, first = (
        (each.harness, each.harness_version, each.outcome, each.repository, each.instance_id)
        for each in (read, trace)
    )
    assert told == first


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "-".join(folder.parts[-2:]))
def test_exported_chat_rows_are_read_as_the_same_states(folder: Path) -> None:
    contexts = steps = 0
    for trace, context in recorded(folder):
        report = IngestReport("")
        row = through_json(row_of_context(trace, context))
        read = trace_of_gym_row(row, "x", report)
        assert read is not None, (trace.trace_id, dict(report.skipped))
        (again,) = read.contexts
        assert [told(m) for m in again.messages] == [told(m) for m in context.messages]
        assert [step.cut for step in again.steps] == [step.cut for step in context.steps]
        states, before = list(read.states()), [s for s in trace.states() if s.context is context]
        assert [state.fidelity for state in states] == [state.fidelity for state in before]
        assert row.get("stand_in_tools", []) == [t.name for t in context.tools if t.origin != "recorded"]
        assert {(t.name, t.description, t.origin) for t in again.tools} == {
            (t.name, t.description, t.origin) for t in context.tools
        }
        schemas = {t.name: t.parameters for t in context.tools if t.origin == "recorded"}
        assert {t.name: t.parameters for t in again.tools if t.origin == "recorded"} == schemas
        assert (read.harness, read.harness_version, read.outcome) == (
            trace.harness,
            trace.harness_version,
            trace.outcome,
        )
        contexts, steps = contexts + 1, steps + len(context.steps)
    assert contexts >= (8 if GOLDEN in folder.parents else 2)
    assert steps >= (30 if GOLDEN in folder.parents else 12)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "-".join(folder.parts[-2:]))
def test_exported_trajectories_keep_rules_and_states(folder: Path) -> None:
    for trace, context in recorded(folder):
        value = through_json(trajectory_of_context(trace, context, None))
        assert faults_of(value) == []
        messages, cuts = messages_and_cuts(value)
        assert cuts == [step.cut for step in context.steps]
        assert len(messages) == len(context.messages)
        for one, message in zip(messages, context.messages, strict=True):
            assert (one["role"], one["content"], one["reasoning"]) == (
                message.role,
                message.content,
                message.reasoning,
            )
            assert one["answers"] == (message.tool_call_id if message.role == "tool" else None)
            assert one["is_error"] == (message.is_error if message.role == "tool" else None)
            assert [call[:2] for call in one["calls"]] == [(c.id, c.name) for c in message.tool_calls]
            for (_, _, arguments), call in zip(one["calls"], message.tool_calls, strict=True):
                assert arguments == (call.arguments if isinstance(arguments, str) else call.parsed())
        names = [tool["function"]["name"] for tool in value["agent"].get("tool_definitions", [])]
        assert names == [tool.name for tool in context.tools]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "-".join(folder.parts[-2:]))
def test_our_own_reader_reads_exported_session_traces_as_the_same_states(
    folder: Path, tmp_path: Path
) -> None:
    steps = 0
    for number, (trace, context) in enumerate(recorded(folder)):
        path = tmp_path / f"{number}.jsonl"
        lines = lines_of_context(trace, context)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        (source,) = discover([path])
        assert source.dialect == "sts"
        (read,), report = ingest_source(source)
        assert_read_again_as_equal(trace, context, read)
        (again,) = read.contexts
        assert (dict(report.unknown), report.error) == ({}, None)
        steps += len(again.steps)
    assert steps >= (30 if GOLDEN in folder.parents else 12)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "-".join(folder.parts[-2:]))
def test_our_own_reader_reads_exported_trajectories_as_the_same_states(folder: Path) -> None:
    read = 0
    for trace, context in recorded(folder):
        value = through_json(trajectory_of_context(trace, context, None))
        report = IngestReport("")
        (again,) = traces_of_trajectory(value, None, "x", report)
        assert_read_again_as_equal(trace, context, again)
        assert (dict(report.unknown), dict(report.skipped)) == ({}, {})
        read += 1
    assert read >= (8 if GOLDEN in folder.parents else 2)


def odd() -> tuple[Trace, Context]:
    """A context that formats have no fields for: late results, odd arguments, two system prompts."""
    texts = ('{"b": 1, "a": 2}', '{"a":1,"a":2}', '{"n":NaN}', '{"n":12345678901234567890123}', "", "[1]")
    calls = tuple(ToolCall(f"c{place}", "count", text) for place, text in enumerate(texts))
    results = (
        Message("tool", "second first", tool_call_id="c1", name="count", is_error=False),
        Message("tool", "ERROR: one", tool_call_id="c0", is_error=None),
    )
    late = Message("tool", "late", tool_call_id="c2", is_error=True, error_kind="timeout")
    messages = (
        Message("system", "Mend the orchard."),
        Message("system", ""),
        Message("user", "Count the pears."),
        Message("assistant", "", calls, reasoning=""),
        *results,
        Message("system", "Two minutes are left."),
        late,
        Message("tool", "nobody asked", tool_call_id="c9"),
        Message("user", "no", is_error=True, error_kind="user_rejection"),
        Message("assistant", "Again.", (ToolCall("c0", "count", "{}"),)),
        Message("tool", "ten", tool_call_id="c0", is_error=True, error_kind="tool_error"),
        Message("assistant", "Nine."),
    )
    steps = (Step(0, 3, "orchard/picker"), Step(1, 10, "orchard/picker"), Step(2, 12, "orchard/other"))
    fidelity = Fidelity("recorded", "absent", "lost")
    context = Context(0, messages, steps, "compaction", (), fidelity, lost_from=1)
    facts = {"repository": "orchard/pears", "instance_id": "orchard__pears-1", "outcome": "not_resolved"}
    return Trace("odd", "made", "made", "claude_code", (context,), **facts), context  # type: ignore[arg-type]


def test_odd_states_are_read_again_from_a_trajectory_and_a_changed_one_is_lost() -> None:
    trace, context = odd()
    value = through_json(trajectory_of_context(trace, context, None))
    assert faults_of(value) == []
    (again,) = traces_of_trajectory(value, None, "x", IngestReport(""))
    assert_read_again_as_equal(trace, context, again)
    del value["steps"][1]
    report = IngestReport("")
    (again,) = traces_of_trajectory(value, None, "x", report)
    assert [state.fidelity.context for state in again.states()] == ["lost"] * 3
    assert report.flags == {"export that lacks messages, or holds more of them than were written": 1}


def test_odd_states_are_read_again_from_a_session_trace_and_a_changed_one_is_lost(tmp_path: Path) -> None:
    trace, context = odd()
    lines = [json.dumps(line) for line in lines_of_context(trace, context)]
    assert json.loads(lines[0])["results"] == [
        ["c1", False, None, "count"],
        ["c2", True, "timeout"],
        [9, True, "user_rejection"],
        [11, True, "tool_error"],
    ]
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(lines))
    (read,), _ = ingest_source(discover([path])[0])
    assert_read_again_as_equal(trace, context, read)
    path.write_text("\n".join(lines[:8] + lines[9:]))
    (read,), report = ingest_source(discover([path])[0])
    assert [state.fidelity.context for state in read.states()] == ["lost"] * 3
    assert report.flags["export that lacks messages, or holds more of them than were written"] == 1
    path.write_text("\n".join([*lines[:6], lines[6][:20], *lines[7:]]))
    (read,), report = ingest_source(discover([path])[0])
    assert [state.fidelity.context for state in read.states()] == ["complete", "lost", "lost"]
    assert [m.error_kind for m in read.contexts[0].messages if m.is_error] == [
        *("timeout", "user_rejection", "tool_error"),
    ]
    assert report.flags == {}


def test_an_exported_session_of_several_contexts_is_read_as_one_again(tmp_path: Path) -> None:
    sessions = 0
    for file in discover([GOLDEN / "claude_code"]):
        for trace in ingest_source(file)[0]:
            contexts = contexts_of(trace, Counter())
            names = [f"{context_name(trace, context)}.json" for context in contexts]
            for context, here, then in zip(contexts, names, [*names[1:], None], strict=True):
                (tmp_path / here).write_text(json.dumps(trajectory_of_context(trace, context, then)))
            if len(contexts) < 2:
                continue
            (read,), _ = ingest_source(discover([tmp_path / names[0]])[0])
            assert [(c.start, len(c.steps)) for c in read.contexts] == [
                (c.start, len(c.steps)) for c in contexts
            ]
            assert [state.student_action.text for state in read.states()] == [
                state.student_action.text for state in trace.states()
            ]
            sessions += 1
    assert sessions >= 3


def made() -> tuple[Trace, Context]:
    """A context with a copied answer, broken arguments, a late result and usage."""
    calls = (ToolCall("a", "count", '{"what": "pears"}'), ToolCall("b", "weigh", "{pea"))
    messages = (
        Message("system", "Mend the orchard."),
        Message("user", "Count the pears."),
        Message("assistant", "I began before.", reasoning="old"),
        Message("assistant", "", calls),
        Message("tool", "9", tool_call_id="a", is_error=False),
        Message("user", "Hurry."),
        Message("tool", "no such tree", tool_call_id="b", is_error=True, error_kind="tool_error"),
        Message("assistant", "Nine.", reasoning="so"),
    )
    usage = Usage(100, 7, 60, 0.25)
    steps = (
        Step(0, 3, "orchard/picker", usage=usage, timestamp="2026-01-02T03:04:05Z"),
        Step(1, 7, "orchard/picker", usage=Usage(completion_tokens=2), timestamp="yesterday"),
    )
    context = Context(2, messages, steps, "compaction", (), Fidelity("recorded", "absent", "approximate"))
    return Trace("made-1", "made", "made", "claude_code", (context,), "2.1.9", licence="mit"), context


def test_a_trajectory_says_what_a_field_cannot_hold_in_extra() -> None:
    value = through_json(trajectory_of_context(*made(), "made-1.3.json"))
    assert faults_of(value) == []
    assert (value["session_id"], value["trajectory_id"], value["continued_trajectory_ref"]) == (
        "made-1",
        "made-1.2",
        "made-1.3.json",
    )
    assert value["agent"] == {"name": "claude_code", "version": "2.1.9", "model_name": "orchard/picker"}
    assert [step["source"] for step in value["steps"]] == [
        *("system", "user", "agent", "agent", "user", "system", "agent"),
    ]
    copied, acted, late = value["steps"][2], value["steps"][3], value["steps"][5]
    assert (copied["is_copied_context"], "metrics" in copied) == (True, False)
    assert [arguments_of(call) for call in acted["tool_calls"]] == ['{"what": "pears"}', "{pea"]
    assert [call["arguments"] for call in acted["tool_calls"]] == [{"what": "pears"}, {}]
    assert acted["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "cached_tokens": 60,
        "cost_usd": 0.25,
    }
    assert late["observation"]["results"] == [
        {
            "content": "no such tree",
            "extra": {"tool_call_id": "b", "is_error": True, "error_kind": "tool_error"},
        }
    ]
    assert value["final_metrics"] == {
        "total_prompt_tokens": 100,
        "total_completion_tokens": 9,
        "total_cached_tokens": 60,
        "total_cost_usd": 0.25,
        "total_steps": 2,
    }
    assert value["extra"] == {
        "context_start": "compaction",
        "fidelity": {"system": "recorded", "tools": "absent", "context": "approximate"},
        "messages": 8,
        "outcome": "unknown",
        "licence": "mit",
    }


def test_a_session_trace_is_a_header_and_a_line_for_each_message() -> None:
    head, *lines = through_json(list(lines_of_context(*made())))
    assert head == {
        "type": "session",
        "harness": "claude_code",
        "id": "made-1.2",
        "harness_version": "2.1.9",
        "trace_id": "made-1",
        "context_start": "compaction",
        "fidelity": {"system": "recorded", "tools": "absent", "context": "approximate"},
        "copied": [2],
        "messages": 8,
        "results": [["a", False], ["b", True, "tool_error"]],
        "outcome": "unknown",
        "licence": "mit",
    }
    assert {line["type"] for line in lines} == {"message"}
    assert lines[3]["message"] == {
        "role": "assistant",
        "content": "",
        "toolCalls": [
            {"id": "a", "function": {"name": "count", "arguments": '{"what": "pears"}'}},
            {"id": "b", "function": {"name": "weigh", "arguments": "{pea"}},
        ],
        "timestamp": 1767323045000,
        "model": "orchard/picker",
    }
    assert lines[4]["message"] == {"role": "tool", "content": "9", "toolCallId": "a"}
    assert lines[7]["message"] == {
        "role": "assistant",
        "content": "Nine.",
        "reasoningContent": "so",
        "model": "orchard/picker",
    }


def test_a_workspace_is_exported_redacted_and_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, again = tmp_path / "w", tmp_path / "again"
    app(["ingest", str(EXAMPLES), "-w", str(work)], standalone_mode=False)
    capsys.readouterr()
    found = {}
    for name in ("messages", "atif", "sts"):
        out = tmp_path / name
        app(["export", "--format", name, "-o", str(out), "-w", str(work), "--json"], standalone_mode=False)
        found[name] = json.loads(capsys.readouterr().out)
        files = sorted(out.iterdir())
        assert found[name]["files"] == len(files)
        assert "<GITHUB_TOKEN_" in "".join(file.read_text() for file in files)
    assert [(each["traces"], each["contexts"], each["steps"]) for each in found.values()] == [(7, 7, 69)] * 3
    assert [each["files"] for each in found.values()] == [1, 7, 7]
    assert found["atif"]["left_out"] == {}
    assert all(faults_of(json.loads(file.read_text())) == [] for file in (tmp_path / "atif").iterdir())
    assert detect(tmp_path / "messages" / "messages.jsonl") == "swe_gym"
    app(["ingest", str(tmp_path / "messages"), "-w", str(again), "--json"], standalone_mode=False)
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert (totals["traces"], totals["states"], totals["skipped"]) == (7, 69, {})


def test_what_is_to_be_redacted_since_is_redacted_on_the_way_out(tmp_path: Path) -> None:
    work = tmp_path / "w"
    app(["ingest", str(EXAMPLES), "-w", str(work)], standalone_mode=False)
    for name, over in (("before", {}), ("after", {"privacy": {"redact": ["known_high"]}})):
        settings = load_settings(None, {"workspace": str(work), **over})
        for form in ("messages", "atif", "sts"):
            export_traces(settings, form, tmp_path / name / form)
    texts = {
        (name, form): "".join(file.read_text() for file in (tmp_path / name / form).iterdir())
        for name in ("before", "after")
        for form in ("messages", "atif", "sts")
    }
    assert [("known_high" in text) for text in texts.values()] == [True] * 3 + [False] * 3


def test_what_a_format_has_no_place_for_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["ingest", str(EXAMPLES), "-w", str(tmp_path / "w")], standalone_mode=False)
    capsys.readouterr()
    found = {}
    for name in ("messages", "atif", "sts"):
        out = ["-o", str(tmp_path / name), "-w", str(tmp_path / "w"), "--json"]
        app(["export", "--format", name, *out], standalone_mode=False)
        found[name] = json.loads(capsys.readouterr().out)["no_place"]
    assert set(found["messages"]) >= {"tokens or cost of a step", "time of a step"}
    assert set(found["atif"]) == {"working folder of a step"}
    assert set(found["sts"]) == {"working folder of a step", "tokens or cost of a step"}


def test_a_context_without_a_step_is_counted() -> None:
    _, context = made()
    bare = Context(0, context.messages[:2], ())
    counts: Counter[str] = Counter()
    both = Trace("t", "made", "made", "claude_code", (bare, context))
    assert contexts_of(both, counts) == [context]
    assert dict(counts) == {"traces": 1, "contexts": 1, "steps": 2, NO_STEP: 1}


def test_what_cannot_be_exported_is_one_line(tmp_path: Path) -> None:
    settings = load_settings(None, {"workspace": str(tmp_path / "w")})
    with pytest.raises(ConfigError, match=r"no format 'csv' to export; expected messages \| atif \| sts"):
        export_traces(settings, "csv", tmp_path / "out")
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        export_traces(settings, "atif", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ConfigError, match="full holds other files"):
        export_traces(settings, "atif", tmp_path / "full")
    app(["ingest", str(EXAMPLES), "-w", str(tmp_path / "raw"), "--unredacted"], standalone_mode=False)
    raw = load_settings(None, {"workspace": str(tmp_path / "raw")})
    with pytest.raises(WorkspaceError):
        export_traces(raw, "messages", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["x"]
