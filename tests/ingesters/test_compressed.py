"""Compressed files are read as what they hold, whatever they are called; damage is told."""

import bz2
import gzip
import json
import lzma
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.flows.sources.discovery import find_sources
from tracemill.flows.sources.source_spec import order_of
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.decompress import open_bytes, strip_compression_suffix
from tracemill.ingesters.reading.json_reading import iter_json_lines
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstd,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["claude_code/-home-dev-almanac", "openhands", "swe_gym"])
def test_every_kind_of_session_is_read_packed(tmp_path: Path, suffix: str, name: str) -> None:
    plain = next((EXAMPLES / name).glob("*.jsonl"))
    packed = tmp_path / f"{plain.name}{suffix}"
    packed.write_bytes(PACKERS[suffix](plain.read_bytes()))
    (one,), (other,) = discover([plain]), discover([tmp_path])
    assert one.dialect == other.dialect
    traces, again = ingest_source(one)[0], ingest_source(other)[0]
    assert [t.trace_id for t in traces] == [t.trace_id for t in again]
    assert [t.contexts for t in traces] == [t.contexts for t in again]


@pytest.mark.parametrize("suffix", PACKERS)
def test_members_one_after_the_other_are_one_stream(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(PACKERS[suffix](b"one\n") + PACKERS[suffix](b"two\n"))
    with open_bytes(path) as stream:
        assert stream.readlines() == [b"one\n", b"two\n"]


@pytest.mark.parametrize("suffix", PACKERS)
def test_what_comes_before_the_damage_is_kept_and_the_damage_counted(tmp_path: Path, suffix: str) -> None:
    records = ({"type": "a", "n": os.urandom(30).hex()} for _ in range(20_000))
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    packed = PACKERS[suffix](lines)
    path = tmp_path / f"x.jsonl{suffix}"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    report = IngestReport("x")
    found = list(iter_json_lines(path, report))
    assert 0 < len(found) < 20_000
    assert report.skipped["compressed data is broken or ends early"] == 1
    path.write_bytes(packed[:8])
    with pytest.raises(SourceError, match="cannot be read"):
        list(iter_json_lines(path, report))


def test_a_plain_file_with_the_suffix_of_a_packed_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(next((EXAMPLES / "swe_gym").glob("*.jsonl")).read_bytes())
    assert len(ingest_source(discover([path])[0])[0]) == 2


def test_names_without_the_compression() -> None:
    assert [strip_compression_suffix(n) for n in ("a.jsonl.zst", "a.jsonl", "a.gz", "a.zst.txt")] == [
        "a.jsonl",
        "a.jsonl",
        "a",
        "a.zst.txt",
    ]


@pytest.mark.parametrize("name", ["rows.json", "rows", "rows.txt"])
def test_rows_are_told_by_content_whatever_the_name(tmp_path: Path, name: str) -> None:
    """JSON Lines, a JSON list and Parquet, each under a name that says nothing or something else."""

    text = next((EXAMPLES / "swe_gym").glob("*.jsonl")).read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    wanted = [
        t.trace_id for t in ingest_source(discover([next((EXAMPLES / "swe_gym").glob("*.jsonl"))])[0])[0]
    ]
    path = tmp_path / name
    for write in (
        lambda: path.write_text(text),
        lambda: path.write_text(json.dumps(rows, indent=1)),
        lambda: pq.write_table(pa.Table.from_pylist(rows), path),
    ):
        write()
        traces, report = ingest_source(discover([path])[0])
        assert report.error is None
        assert [t.trace_id for t in traces] == wanted


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("socket", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("broken gzip", "cannot be read"),
        ("truncated parquet", "is broken Parquet"),
        ("absent", "does not exist"),
        ("closed folder", "no recorded session"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, kind: str, said: str) -> None:
    path = tmp_path / "x"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "broken gzip":
        path.write_bytes(b"\x1f\x8b\x08 broken")
    elif kind == "truncated parquet":
        path.write_bytes(b"PAR1" + b"\0" * 200)
    elif kind == "closed folder":
        (path / "inner").mkdir(parents=True)
        if os.getuid() == 0:
            path = path / "inner"  # nothing is closed to root
        else:
            (path / "inner").chmod(0)
    with pytest.raises(SourceError) as caught:
        find_sources(order_of([str(path)]), None)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
