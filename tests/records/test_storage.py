"""Records come back from disk as they were, states cost what their trace costs, shards supersede."""

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import StepId, make_trace_id
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.pair import DPOPair, Vote
from tracemill.records.reply import AskDecision, TeacherReply, TeacherUsage
from tracemill.records.storage.table_rows import (
    decisions_from_table,
    decisions_to_table,
    pairs_from_table,
    pairs_to_table,
    replies_from_table,
    replies_to_table,
)
from tracemill.records.storage.table_schemas import CONTEXT, SCHEMAS, TRACES, upgrade
from tracemill.records.storage.trace_rows import traces_from_table, traces_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Fidelity, MessageView, Step, Trace, Usage

DAY = "2026-11-21"


def make_trace(steps: int, name: str = "s1", size: int = 40) -> Trace:
    messages: list[Message] = [Message("user", "mend the parser")]
    made: list[Step] = []
    for index in range(steps):
        call = ToolCall(f"c{index}", "Read", f'{{"file_path": "/srv/app/m{index}.py"}}')
        made.append(Step(index, len(messages), "claude-opus-4-5", "anthropic", f"msg_{index}", Usage(9, 2)))
        messages.append(Message("assistant", "", (call,), reasoning="look first"))
        text = f"{index} " + "x" * size
        messages.append(Message("tool", text, (), call.id, "Read", index % 7 == 0, "exit_code"))
    tool = ToolSpec("Read", "reads a file", {"type": "object", "properties": {"file_path": {}}})
    context = Context(0, tuple(messages), tuple(made), "start", (tool,), Fidelity("recorded", "recorded"))
    return Trace(
        make_trace_id("claude_code", name),
        "claude_code",
        "claude_code",
        "claude_code",
        (context,),
        notes={"api_error": 2},
        seen_tools=("Grep",),
        redaction="r1",
    )


def test_traces_come_back_as_they_were() -> None:
    traces = [make_trace(5, "a"), make_trace(0, "b"), make_trace(17, "c")]
    assert traces_from_table(traces_to_table(traces)) == traces


def test_traces_of_schema_3_are_read_as_today() -> None:
    """They say of no step that a wording of ours stands in from there on."""
    traces = [make_trace(5, "a"), make_trace(0, "b"), make_trace(17, "c")]
    traces[0] = replace(traces[0], contexts=traces[0].contexts * 2)
    traces[1] = replace(traces[1], contexts=())
    today = traces_to_table(traces)
    rows = today.to_pylist()
    for row in rows:
        for context in row["contexts"]:
            assert context.pop("approximate_from") is None
    inner = pa.struct([field for field in CONTEXT if field.name != "approximate_from"])
    at = TRACES.get_field_index("contexts")
    former = pa.Table.from_pylist(rows, TRACES.set(at, pa.field("contexts", pa.list_(inner))))
    for table in (former, pa.concat_tables([former.slice(1, 2), former.slice(0, 1)]), former.slice(0, 0)):
        upgraded = upgrade("traces", table, 3, "shard")
        assert traces_from_table(upgraded) == [
            next(t for t in traces if t.trace_id == name) for name in table["trace_id"].to_pylist()
        ]
    approximate = replace(traces[2].contexts[0], approximate_from=4)
    (kept,) = traces_from_table(traces_to_table([replace(traces[2], contexts=(approximate,))]))
    assert kept.contexts[0].approximate_from == 4


def test_replies_decisions_and_pairs_come_back_as_they_were() -> None:
    trace = make_trace(3)
    state = trace.state(StepId(trace.trace_id, 0, 1))
    good = TeacherReply(
        str(state.step_id), "k1", "t", "deepseek", 0, 1, "m", "p", "gen-1",
        Action("I read it", (ToolCall("c", "Read", "{not json"),)), None, "tool_calls",
        TeacherUsage(1000, 20, 900, 100, 5), 0.00123, 1.5, "p1", "pid", True, "{}",
    )  # fmt: skip
    silent = TeacherReply(str(state.step_id), "k3", "t", "zai", 0, 3, action=Action("", ()))
    failed = TeacherReply(str(state.step_id), "k2", "u", "qwen", 0, 2, failure="timeout")
    replies = [good, silent, failed]
    assert replies_from_table(replies_to_table(replies)) == replies
    decision = AskDecision(str(state.step_id), "t", "ask", "gate", "all-1", 1.0, 0.25)
    assert decisions_from_table(decisions_to_table([decision])) == [decision]
    vote = Vote("t", "deepseek", 0, True, "", "key", "read", True, 0.00123, "k1")
    pair = DPOPair(
        str(state.step_id), "teachers", state.messages, state.context.tools,
        (Message("assistant", "a"),), (state.student_action.to_message(),), "read", "read",
        "claude_code", "claude_code", "p1", "claude-opus-4-5", "anthropic", 1, (vote,), ("deepseek",),
    )  # fmt: skip
    back = pairs_from_table(pairs_to_table([pair]), lambda _: (state.messages, state.context.tools))
    assert back == [pair]


def test_a_view_never_shows_what_comes_after_the_cut() -> None:
    trace = make_trace(4)
    state = trace.state(StepId(trace.trace_id, 0, 2))
    assert len(state.messages) == 5
    assert [m.role for m in state.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert state.messages[-1].tool_call_id == "c1"
    assert state.messages[3:] == tuple(state.messages)[3:]
    assert state.student_action.tool_calls[0].id == "c2"
    assert [m.tool_call_id for m in state.results] == ["c2"]
    with pytest.raises(IndexError):
        state.messages[5]
    with pytest.raises(IndexError):
        MessageView(trace.contexts[0].messages, 99)
    with pytest.raises(KeyError):
        trace.state(StepId(trace.trace_id, 0, 4))


def test_all_states_of_a_long_trace_cost_less_than_half_the_trace_again(tmp_path: Path) -> None:
    tracemalloc.start()
    trace = make_trace(2000, size=400)
    alone, _ = tracemalloc.get_traced_memory()
    states = list(trace.states())
    seen = sum(len(s.messages) for s in states)
    with_states, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(states) == 2000
    assert seen == sum(1 + 2 * i for i in range(2000))
    assert with_states < 1.5 * alone, f"{with_states} of {alone} bytes"

    single, tenth = tmp_path / "full.parquet", tmp_path / "tenth.parquet"
    pq.write_table(traces_to_table([trace]), single, compression="none", use_dictionary=False)
    pq.write_table(
        traces_to_table([make_trace(200, size=400)]), tenth, compression="none", use_dictionary=False
    )
    assert single.stat().st_size < 1.5 * 10 * tenth.stat().st_size
    text = sum(
        len(m.content) + sum(len(c.arguments) for c in m.tool_calls) for m in trace.contexts[0].messages
    )
    assert single.stat().st_size < 1.5 * text
    assert sys.getsizeof(states[0]) < 100


def test_a_later_shard_replaces_what_earlier_ones_say_of_a_trace(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    a, b = make_trace(2, "a"), make_trace(3, "b")
    work.write("traces", traces_to_table([a, b]), [a.trace_id, b.trace_id], "claude_code", DAY)
    grown = make_trace(5, "a")
    work.write("traces", traces_to_table([grown]), [grown.trace_id], "claude_code", DAY)
    current = [t for table in work.current("traces") for t in traces_from_table(table)]
    assert sorted((t.trace_id, t.step_count) for t in current) == sorted([(a.trace_id, 5), (b.trace_id, 3)])
    only = [t for table in work.current("traces", frozenset([b.trace_id])) for t in traces_from_table(table)]
    assert only == [b]


def test_a_shard_with_no_rows_still_replaces(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    decision = AskDecision("t-1:0:3", "m", "ask", "gate", "all-1", 1.0, 0.5)
    work.write("decisions", decisions_to_table([decision]), ["t-1"], "claude_code", DAY)
    assert [d for t in work.current("decisions") for d in decisions_from_table(t)] == [decision]
    work.write("decisions", decisions_to_table([]), ["t-1"], "claude_code", DAY)
    assert [d for t in work.current("decisions") for d in decisions_from_table(t)] == []


def test_the_same_content_is_one_shard(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    trace = make_trace(2)
    first = work.write("traces", traces_to_table([trace]), [trace.trace_id], "claude_code", DAY)
    again = work.write("traces", traces_to_table([trace]), [trace.trace_id], "claude_code", DAY)
    assert first == again
    assert work.live("traces") == [first]
    other = make_trace(3)
    work.write("traces", traces_to_table([other]), [other.trace_id], "claude_code", DAY)
    night = "2026-12-01"
    later = work.write("traces", traces_to_table([trace]), [trace.trace_id], "claude_code", night)
    assert later == first
    assert work.live("traces")[-1] == first
    files = list((tmp_path / "w" / "traces").rglob("*.parquet"))
    assert sorted(f.name for f in files) == sorted(Path(s.path).name for s in work.live("traces"))
    elsewhere = work.write("traces", traces_to_table([trace]), [trace.trace_id], "swe_gym", night)
    assert elsewhere.path.startswith(f"traces/source=swe_gym/day={night}/")


def test_a_folder_that_is_no_workspace_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(WorkspaceError, match="holds other files"):
        Workspace.open(tmp_path)
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        Workspace.open(tmp_path / "missing", create=False)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_shard_from_the_future_or_of_another_table_is_refused(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    shard = work.write("decisions", decisions_to_table([]), ["t"], "claude_code", DAY)
    path = work.root / shard.path
    table = pq.read_table(path)
    newer = dict(table.schema.metadata) | {b"tracemill.schema": str(SCHEMAS["decisions"][0] + 1).encode()}
    pq.write_table(table.replace_schema_metadata(newer), path)
    with pytest.raises(WorkspaceError, match="update tracemill"):
        work.read("decisions", shard)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(WorkspaceError, match="not a shard of decisions"):
        work.read("decisions", shard)


def test_decisions_of_schema_5_are_read_without_the_columns_of_a_stop_by_value() -> None:
    decision = AskDecision("s:0:0", "a", "ask", "worth its cost", "gate-6", 1.0, 0.5, features=("op=run",))
    former = decisions_to_table([decision])
    for name, kind in (("place", pa.int32()), ("price", pa.float64()), ("heard", pa.list_(pa.string()))):
        former = former.append_column(name, pa.nulls(1, kind))
    assert decisions_from_table(upgrade("decisions", former, 5, "shard")) == [decision]


def test_git_takes_nothing_of_a_workspace_in_a_checkout(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", tmp_path, *arguments], check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    Workspace.open(tmp_path / "work", create=True)
    (tmp_path / "own.txt").touch()
    git("add", "--all")
    assert git("ls-files") == "own.txt\n"
