"""Columns built buffer by buffer, and shards written portion by portion."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from tracemill.records.errors import WorkspaceError
from tracemill.records.message import Message
from tracemill.records.storage.arrow_arrays import (
    make_flag_array,
    make_list_array,
    make_number_array,
    make_string_array,
)
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.trace_rows import traces_from_table, traces_to_table
from tracemill.records.storage.trace_shards import trace_shards
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace

DAY = "2026-11-21"
TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def make_trace(name: str, text: str = "hello", source: str = "swe_gym") -> Trace:
    said = (Message("user", text), Message("assistant", "done"))
    return Trace(name, source, "d", "h", (Context(0, said, (Step(0, 1),)),))  # type: ignore[arg-type]


def test_a_broken_string_has_a_question_mark() -> None:
    assert make_string_array(["ok", "cut \ud83d", None]).to_pylist() == ["ok", "cut ?", None]


def test_a_number_that_does_not_fit_is_none() -> None:
    assert make_number_array([1, 2**63, -(2**63), None, 2**63 - 1], pa.int64()).to_pylist() == [
        1,
        None,
        -(2**63),
        None,
        2**63 - 1,
    ]
    assert make_number_array([2**31], pa.int32()).to_pylist() == [None]
    assert make_number_array([0.5, None, 3, 10**400], pa.float64()).to_pylist() == [0.5, None, 3.0, None]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 65])
def test_arrays_are_those_of_pyarrow(count: int) -> None:
    numbers: list[int | None] = [None if n % 5 == 3 else n - 4 for n in range(count)]
    for values in (numbers, [n or 0 for n in numbers], [None] * count):
        texts = [None if n is None else f"tür {n}" * (n + 4) for n in values]
        flags = [None if n is None else n > 0 for n in values]
        floats = [None if n is None else n / 8 for n in values]
        for kind in (pa.int32(), pa.int64(), pa.float64()):
            assert make_number_array(values, kind).equals(pa.array(values, kind))
        assert make_number_array(floats, pa.float64()).equals(pa.array(floats, pa.float64()))
        assert make_flag_array(flags).equals(pa.array(flags, pa.bool_()))
        assert make_string_array(texts).equals(pa.array(texts, pa.string()))
        # Sizes of columns end shards: a buffer too many would end them elsewhere.
        assert make_flag_array(flags).nbytes == pa.array(flags, pa.bool_()).nbytes
        assert make_number_array(values, pa.int32()).nbytes == pa.array(values, pa.int32()).nbytes


def test_a_flag_that_is_none_is_refused() -> None:
    for wrong in ("yes", 1):
        with pytest.raises(ValueError, match="bool"):
            make_flag_array([True, wrong])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        make_string_array(["a", 1])  # type: ignore[list-item]


WRITE_TRACES = """
import sys
from pathlib import Path
from tracemill.records.message import Message, ToolCall
from tracemill.records.storage.trace_shards import trace_shards
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace, Usage

said = (
    Message("user", "hello"),
    Message("assistant", "done", (ToolCall("1", "bash", "{}"),)),
    Message("tool", "failed", tool_call_id="1", is_error=True),
)
steps = (Step(0, 1, usage=Usage(10, 5, None, 0)),)
trace = Trace("t", "swe_gym", "d", "h", (Context(0, said, steps),), notes={"n": 1}, seen_tools=("bash",))
with trace_shards(Workspace.open(Path(sys.argv[1])), "2026-11-21", 2e6) as shards:
    shards.add(trace, 100)
assert [shard.rows for shard in shards.written] == [1]
assert "pandas" not in sys.modules, "pandas was imported"
"""


def test_traces_are_written_without_pandas(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITE_TRACES, str(tmp_path / "w")], check=True)


def test_lists_and_structs() -> None:
    structs = pa.StructArray.from_arrays([make_string_array(["x", None, "z"])], names=["a"])
    made = make_list_array([2, 0, 1], structs)
    assert made.to_pylist() == [[{"a": "x"}, {"a": None}], [], [{"a": "z"}]]
    assert make_list_array([], make_string_array([])).to_pylist() == []


def test_shards_end_by_size_by_source_and_where_a_trace_comes_again(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    traces = [make_trace(f"t{n}", "x" * 1_200_000) for n in range(4)]
    traces += [make_trace("t3", "again"), make_trace("t4"), make_trace("c0", source="claude_code")]
    with trace_shards(work, DAY, 2e6) as shards:
        for trace in traces:
            shards.add(trace, len(trace.contexts[0].messages[0].content))
            shards.flush()
    assert [shard.rows for shard in shards.written] == [2, 2, 2, 1]
    assert [sorted(work.covers("traces", shard)) for shard in shards.written] == [
        ["t0", "t1"],
        ["t2", "t3"],
        ["t3", "t4"],
        ["c0"],
    ]
    assert shards.written[3].path.startswith(f"traces/source=claude_code/day={DAY}/")
    assert work.live("traces") == []
    work.add("traces", shards.written)
    held = [trace for table in work.current("traces") for trace in traces_from_table(table)]
    assert sorted(trace.trace_id for trace in held) == ["c0", "t0", "t1", "t2", "t3", "t4"]
    assert next(t for t in held if t.trace_id == "t3").contexts[0].messages[0].content == "again"


def test_a_trace_that_fits_no_columns_is_told_and_stops_no_other(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    bad = replace(make_trace("bad"), origin=5)  # type: ignore[arg-type]
    with trace_shards(work, DAY, 1e9) as shards:
        for trace in (make_trace("a"), bad, make_trace("b")):
            shards.add(trace, 1)
            shards.flush()
    assert shards.misfits == ["bad"]
    (shard,) = shards.written
    assert sorted(work.covers("traces", shard)) == ["a", "b"]


def test_a_fault_in_the_middle_leaves_no_file(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    with suppress(ZeroDivisionError), trace_shards(work, DAY, 1e9) as shards:
        for number in range(200):
            shards.add(make_trace(str(number)), 1)
            shards.flush()
            assert 1 / (150 - number)
    assert (number, shards.written) == (150, [])
    assert [path.name for path in (tmp_path / "w" / "traces").rglob("*") if path.is_file()] == []


def test_a_shard_says_what_it_is_in_its_metadata(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    shard = work.write("traces", traces_to_table([make_trace("b"), make_trace("a")]), ["b", "a"], "s", DAY)
    footer = pq.read_metadata(work.root / shard.path)
    said = {key.decode(): value.decode() for key, value in footer.metadata.items() if b"tracemill" in key}
    assert said == {
        "tracemill.table": "traces",
        "tracemill.schema": str(SCHEMAS["traces"][0]),
        "tracemill.text": "redacted",
        "tracemill.covers": '["a", "b"]',
    }
    assert (shard.rows, shard.bytes) == (2, (work.root / shard.path).stat().st_size)
    group = footer.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    text = columns["contexts.list.element.messages.list.element.content"]
    assert (text.compression, text.is_stats_set) == ("ZSTD", False)


def test_text_of_the_other_kind_is_refused_by_marker_and_by_shard(tmp_path: Path) -> None:
    recorded = Workspace.open(tmp_path / "recorded", text="recorded")
    redacted = Workspace.open(tmp_path / "redacted")
    assert (tmp_path / "recorded").stat().st_mode & 0o777 == 0o700
    table = traces_to_table([make_trace("a")])
    shard = recorded.write("traces", table, ["a"], "s", DAY)
    with pytest.raises(WorkspaceError, match="holds recorded text"):
        Workspace.open(tmp_path / "recorded")
    with pytest.raises(WorkspaceError, match="is a workspace of redacted text"):
        Workspace.open(tmp_path / "redacted", text="recorded")
    place = redacted.root / shard.path
    place.parent.mkdir(parents=True)
    place.write_bytes((recorded.root / shard.path).read_bytes())
    redacted.add("traces", [shard])
    with pytest.raises(WorkspaceError, match="does not hold redacted text"):
        list(redacted.current("traces"))
    marker = tmp_path / "recorded" / "workspace.json"
    for text in ("", "raw", 3):
        marker.write_text(json.dumps({"layout": 1, "text": text}))
        with pytest.raises(WorkspaceError, match="holds recorded text"):
            Workspace.open(tmp_path / "recorded")
