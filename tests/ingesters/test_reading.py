"""Reading JSON that may be broken, and what the texts of tool results say."""

import base64
import gzip
import json
from pathlib import Path

import pytest

from tracemill.ingesters.reading.json_reading import iter_json_lines, new_report, read_json
from tracemill.ingesters.reading.result_text import (
    error_kind_of,
    image_placeholder,
    image_url_placeholder,
)
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport


def lines(path: Path, data: bytes) -> tuple[list[tuple[int, dict[str, object]]], IngestReport]:
    path.write_bytes(data)
    report = new_report(path, "x")
    return list(iter_json_lines(path, report)), report


def test_objects_come_with_their_line_numbers_and_are_counted_by_type(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"type": "a"}\r\n\n  \n{"type": "b"}\n{"n": 1}\n{"type": 3}'
    found, report = lines(tmp_path / "x.jsonl", data)
    assert [number for number, _ in found] == [1, 4, 5, 6]
    assert dict(report.records) == {"a": 1, "b": 1, "untyped": 2}
    assert not report.skipped
    assert report.bytes == len(data)


def test_lines_that_are_no_objects_are_counted_by_reason(tmp_path: Path) -> None:
    data = b'"text"\n[1]\n{"type": "a", \n{\xff\xfe\n{"type": "ok"}\n{"cut": "of'
    found, report = lines(tmp_path / "x.jsonl", data)
    assert found == [(5, {"type": "ok"})]
    assert dict(report.skipped) == {"not an object": 2, "not json": 2, "invalid utf-8": 1}


def test_what_other_parsers_write_is_repaired_and_flagged(tmp_path: Path) -> None:
    data = b'{"cut": "\\ud83d"}\n{"n": NaN}\n{"bytes": "a\xff"}\n{"whole": "\\ud83d\\ude00", "n": NaN}\n'
    found, report = lines(tmp_path / "x.jsonl", data)
    values = [value for _, value in found]
    assert values[0] == {"cut": "\ufffd"}
    assert values[2] == {"bytes": "a\ufffd"}
    assert values[3]["whole"] == "\U0001f600"
    assert len(values) == 4
    assert report.flags["repaired json"] == 4
    assert not report.skipped


def test_packed_files_are_read_and_a_cut_one_ends_early(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"type": "a"}\n' * 50_000)
    found, report = lines(tmp_path / "x.jsonl.gz", packed)
    assert len(found) == 50_000
    cut, report = lines(tmp_path / "y.jsonl.gz", packed[:-20])
    assert 0 < len(cut) <= 50_000
    assert report.skipped["compressed data is broken or ends early"] == 1


def test_a_file_that_cannot_be_read_says_which_and_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="absent cannot be read: No such file"):
        new_report(tmp_path / "absent", None)
    with pytest.raises(SourceError, match="Is a directory"):
        list(iter_json_lines(tmp_path, IngestReport("x")))
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b no gzip")
    with pytest.raises(SourceError, match=r"bad\.gz cannot be read"):
        list(iter_json_lines(tmp_path / "bad.gz", IngestReport("x")))


def test_read_json_gives_the_value_or_says_it_does_not_parse(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\n[1, 2]\n")
    assert read_json(path) == [1, 2]
    path.write_bytes(b'{"text": "\\ud83d"}')
    report = IngestReport("x")
    assert read_json(path, report) == {"text": "\ufffd"}
    assert report.flags["repaired json"] == 1
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="does not parse: not json"):
        read_json(path)


@pytest.mark.parametrize(
    ("text", "flag", "kind"),
    [
        ("Exit code 1\nx", True, "exit_code"),
        ("Exit code 0\nx", None, None),
        ("Exit code 143\nCommand timed out after 2m 0.0s", True, "timeout"),
        (
            "boom\n[The command completed with exit code 2.]\n[Current working directory: /x]",
            None,
            "exit_code",
        ),
        ("[Command finished with exit code 2]\nfine\n[Command finished with exit code 0]", None, None),
        ("x\n[The command has no new output after 30 seconds. You may wait longer]", None, "timeout"),
        ("x\n[Command finished with exit code -1]", None, "timeout"),
        ("OBSERVATION:\nERROR:\nNo replacement was performed", None, "tool_error"),
        ("EXECUTION RESULT of [str_replace_editor]:\nERROR:\nNo replacement was made", None, "tool_error"),
        ("EXECUTION RESULT of [a.b-c]:\n\nERROR: no such pear", None, "tool_error"),
        ("EXECUTION RESULT of [execute_bash]:\nthe log says\nERROR: at the end", None, None),
        ("EXECUTION RESULT of [two words]:\nERROR: quoted by a user", None, None),
        ("bad call\n[Error occurred in processing last action]", None, "tool_error"),
        ("OBSERVATION:\nno\n[Last action has been rejected by the user]", None, "user_rejection"),
        ("[Request interrupted by user for tool use]", True, "user_rejection"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", True, "cancelled"),
        ("Cancelled: parallel tool call Bash(x) errored", None, "cancelled"),
        ("API Error: 529 overloaded", True, "api_error"),
        ("API Error: 529 overloaded", None, None),
        ("Permission to use Bash has been denied.", True, "hook"),
        ("<returncode>1</returncode>\n<output>x</output>", None, "exit_code"),
        ("PreToolUse:Bash hook error: denied", True, "hook"),
        ("File does not exist. Did you mean y?", True, "tool_error"),
        ("nothing that says why", True, "unknown"),
        ("the log says ERROR: in the middle", None, None),
        ("Error: flagged as fine", False, None),
        ("ERROR:\nflagged as fine", False, None),
        ("", None, None),
    ],
)
def test_error_kinds(text: str, flag: bool | None, kind: str | None) -> None:
    assert error_kind_of(text, flag) == kind


def test_an_image_is_named_by_type_size_and_digest() -> None:
    data = base64.b64encode(b"\x89PNG....").decode()
    shown = image_placeholder("image/png", data)
    assert shown == image_url_placeholder(f"data:image/png;base64,{data}")
    assert shown.startswith("[image: image/png, 8 bytes, blake2b ")
    assert image_placeholder("image/png", data) != image_placeholder("image/png", "AAAA")
    assert image_placeholder("application/pdf", "AAAA").startswith("[document: application/pdf, 3 bytes")
    assert "example" not in image_url_placeholder("https://example.org/private.png")


def test_types_of_records_are_counted_by_name_and_content_in_their_place_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    types = [
        "user",
        "file-history-snapshot",
        "ghp_a1B2c3",
        "kim@north.dev",
        "/srv/x",
        "two words",
        "x" * 41,
        7,
    ]
    path.write_text("".join(json.dumps({"type": name}) + "\n" for name in types))
    report = IngestReport(str(path))
    assert len(list(iter_json_lines(path, report))) == 8
    assert report.records == {"user": 1, "file-history-snapshot": 1, "other": 5, "untyped": 1}


def test_one_json_list_gives_its_items_and_a_broken_one_is_read_by_lines(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf\n [{"type": "a"},\n {"type": "b"}, 3]\n'
    found, report = lines(tmp_path / "x.jsonl", data)
    assert found == [(1, {"type": "a"}), (2, {"type": "b"})]
    assert (dict(report.records), dict(report.skipped)) == ({"a": 1, "b": 1}, {"not an object": 1})
    found, report = lines(tmp_path / "y.jsonl.gz", gzip.compress(data))
    assert len(found) == 2
    found, report = lines(tmp_path / "z.jsonl", b'[1]\n{"type": "a"}\n[{"type": "b"},\n')
    assert found == [(2, {"type": "a"})]
    assert dict(report.skipped) == {"not an object": 1, "not json": 1}
