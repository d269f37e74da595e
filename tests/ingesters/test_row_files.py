"""Files of rows in parts give what they give as a whole."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.parquet_rows import RowGroup, TableSlice, read_parquet_slice
from tracemill.ingesters.reading.row_files import LineSpan, split_row_file, split_table_row_file
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.row_readers import read_traces_by_row, row_reader
from tracemill.records.ingest_report import IngestReport

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
TABLES = [next((EXAMPLES / name).glob("*.jsonl")) for name in ("swe_gym", "openhands")]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("bytes_each", [97, 5_000, 1 << 30])
def test_spans_of_lines_cut_anywhere_give_every_row_once(path: Path, bytes_each: int) -> None:
    (source,) = discover([path])
    whole, report = ingest_source(source)
    edges = [*range(0, source.bytes, bytes_each), source.bytes]
    found, states = [], 0
    for first, last in pairwise(edges):
        own = IngestReport("")
        found += read_traces_by_row(path, LineSpan(first, last), source.dialect, path.name, own, True)
        states += own.states
    assert found == whole
    assert states == report.states > 0


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_rows_in_parquet_give_the_traces_of_the_rows_in_lines(path: Path, tmp_path: Path) -> None:
    """Columns that do not fit one type are JSON text, as `datasets` stores them."""
    (source,) = discover([path])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kind = pa.json_(pa.string())
    columns = {
        name: pa.ExtensionArray.from_storage(kind, pa.array([json.dumps(row.get(name)) for row in rows]))
        for name in dict.fromkeys(name for row in rows for name in row)
    }
    table = tmp_path / "rows"
    pq.write_table(pa.table(columns), table, row_group_size=1)
    (other,) = discover([table])
    assert other.dialect == source.dialect
    assert [t.contexts for t in ingest_source(other)[0]] == [t.contexts for t in ingest_source(source)[0]]


def test_a_table_is_cut_by_the_size_of_its_row_groups() -> None:
    groups = tuple(RowGroup(10, size) for size in (5, 5, 20, 1, 1, 1, 12))
    cut = list(split_table_row_file("x", groups, 10))
    assert [(part.first, part.last, size) for part, size in cut] == [
        (0, 2, 10),
        (2, 3, 20),
        (3, 6, 3),
        (6, 7, 12),
    ]
    assert {part.groups for part, _ in cut} == {7}
    assert list(split_table_row_file("x", (), 10)) == []


def test_only_wanted_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": list(range(100))}), path, row_group_size=10)
    rows = (0, 9, 10, 57, 99)
    assert [row["n"] for row in read_parquet_slice(TableSlice(path, 0, 10, 10, rows))] == list(rows)
    assert [row["n"] for row in read_parquet_slice(TableSlice(path, 5, 6, 10, (57,)))] == [57]
    assert list(read_parquet_slice(TableSlice(path, 0, 5, 10, ()))) == []


def test_what_is_compressed_or_small_or_one_value_is_read_whole(tmp_path: Path) -> None:
    lines = b'{"messages": []}\n' * 200_000
    (tmp_path / "x.jsonl").write_bytes(lines)
    parts = split_row_file(tmp_path / "x.jsonl", 1)
    assert [size for _, size in parts] == [850_000] * 4
    assert [part for part, _ in parts][1] == LineSpan(850_000, 1_700_000)
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    (tmp_path / "x.json").write_bytes(b"[" + b"1," * 1_000_000 + b"1]")
    (tmp_path / "small.jsonl").write_bytes(lines[:170])
    for name in ("x.jsonl.gz", "x.json", "small.jsonl"):
        assert split_row_file(tmp_path / name, 1) == []


def test_dialects_of_single_sessions_have_no_rows() -> None:
    assert row_reader("claude_code") is row_reader("openhands_sdk_v1") is row_reader(None) is None
    run = {"messages": [{"role": "assistant", "content": "x"}], "info": {"exit_status": "Submitted"}}
    for dialect in ("mini_swe_agent", "swe_gym"):
        read = row_reader(dialect)
        assert read is not None
        assert [t.dialect for t in read(run, "x", IngestReport(""), None) if t] == [dialect]
    assert SourceFile(Path("x"), "swe_gym", 1, url="https://u:p@h.co/x?t=1").name == "https://h.co/x"
