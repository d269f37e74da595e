"""What a scan reads of files of every kind, and that it says so where it could not read one."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import socket
import sqlite3
import string
import tarfile
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.flows.privacy_scan import run_privacy_scan_diff, scan_path
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate import documents
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanResult
from tracemill.records.errors import ConfigError, PrivacyError, SourceError

KEY = b"k" * 32
ALONE = {"TRACEMILL_KINGFISHER": "none"}


def token(seed: int = 1) -> str:
    """A token of GitHub's form that nobody was given."""
    letters = string.ascii_letters + string.digits
    return "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))


def scan(path: Path) -> ScanResult:
    return Scanner(make_known([]), KEY, ALONE).scan(path)


def files(verdict: ScanResult) -> list[str]:
    return [found.file for found in verdict.findings]


def zipped(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def test_archives_and_compressed_files_are_read_member_by_member(tmp_path: Path) -> None:
    secret = [f"key {token(n)}\n".encode() for n in range(7)]
    (tmp_path / "a.zip").write_bytes(zipped(plain=b"fine", one=secret[0]))
    (tmp_path / "b.tar").write_bytes(tarred("dir/two.txt", secret[1]))
    (tmp_path / "c.tar.gz").write_bytes(gzip.compress(tarred("three", secret[2])))
    (tmp_path / "d.txt.bz2").write_bytes(bz2.compress(secret[3]))
    (tmp_path / "e.xz").write_bytes(lzma.compress(secret[4]))
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(json.dumps({"deep": secret[5].decode()}).encode()))
    (tmp_path / "g.zip").write_bytes(zipped(inner=zipped(six=secret[6])))
    verdict = scan(tmp_path)
    expected = ["a.zip/one", "b.tar/dir/two.txt", "c.tar.gz/three", "d.txt.bz2", "e.xz", "f.jsonl.gz"]
    assert files(verdict) == [*expected, "g.zip/inner/six"]
    assert verdict.findings[5].column == "deep"
    assert verdict.not_read == {}


def test_tables_in_an_archive_are_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
        base.execute("CREATE TABLE answers (body TEXT, raw BLOB)")
        base.execute("INSERT INTO answers VALUES (?, ?)", (token(1), token(2).encode()))
        base.commit()
    pq.write_table(pa.table({"text": [token(3)]}), tmp_path / "x.parquet")
    parts = {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    for name in parts:
        (tmp_path / name).unlink()
    (tmp_path / "a.zip").write_bytes(zipped(**parts))
    assert [(found.file, found.column) for found in scan(tmp_path).findings] == [
        ("a.zip/x.parquet", "text"),
        ("a.zip/x.sqlite", "answers.body"),
        ("a.zip/x.sqlite", "answers.raw"),
    ]


@pytest.mark.parametrize("coding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_with_a_byte_order_mark_is_decoded(tmp_path: Path, coding: str) -> None:
    said = f'{{"note": "line\\n{token()}"}}'.encode(coding)
    (tmp_path / "note.json").write_bytes(said)
    assert [found.column for found in scan(tmp_path).findings] == ["note"]


def test_a_text_with_a_nul_is_text_and_one_that_begins_like_a_picture_too(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"begin \0 {'of a log ' * 9}\nkey {token(1)}\n")
    (tmp_path / "b.txt").write_text(f"BMW and {token(2)}\n")
    assert files(scan(tmp_path)) == ["a.log", "b.txt"]


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "c.pkl").write_bytes(b"\x80\x04\x95\0\0\xff\xfe binary")
    (tmp_path / "d.gz").write_bytes(gzip.compress(b"cut" * 99)[:20])
    (tmp_path / "e.zip").write_bytes(zipped(one=b"x" * 99)[:40])
    (tmp_path / "f.db").write_bytes(b"SQLite format 3\0 and no more")
    (tmp_path / "z.txt").write_text(token())
    os.mkfifo(tmp_path / "pipe")
    verdict = scan(tmp_path)
    assert files(verdict) == ["z.txt"]
    assert verdict.not_read == {
        "broken Parquet": ["a.parquet", "b.parquet"],
        "binary": ["c.pkl"],
        "a broken or encrypted archive": ["d.gz", "e.zip"],
        "broken SQLite": ["f.db"],
    }
    assert verdict.passed_over == {"a pipe, socket or device": 1}


def test_exit_codes_say_clean_only_where_everything_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACEMILL_KINGFISHER", "none")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.txt").write_text("fine")
    assert scan_path(place, None, [], as_json=False) == 0
    assert capsys.readouterr().out.startswith("nothing found: 1 file with ")
    (place / "b\x1b[31m.pkl").write_bytes(b"\x80\0\xff")
    assert scan_path(place, None, [], as_json=False) == 3
    said = capsys.readouterr()
    assert said.out.startswith("nothing found in what was read: 2 files")
    assert "not read: 1 binary: b?[31m.pkl\n" in said.err
    assert scan_path(place, None, [], as_json=True) == 3
    assert json.loads(capsys.readouterr().out)["not_read"] == {"binary": ["b?[31m.pkl"]}
    (place / "c.txt").write_text(token())
    assert scan_path(place, None, [], as_json=False) == 1
    assert "not read: 1 binary" in capsys.readouterr().err


def test_a_release_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "train.parquet").touch()
    gate = PublishGate(Scanner(make_known([]), KEY, ALONE), "r1", tmp_path / "accepted.json")
    with pytest.raises(PrivacyError, match=r"could be read \(broken Parquet: train.parquet\)"):
        gate.judge(tmp_path / "r")


def test_a_pipe_given_outright_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb") as handle:
            handle.write(b"first\n")
            handle.flush()
            handle.write(b"x" * 300_000 + f"\nkey {token()}\n".encode())

    writer = threading.Thread(target=write)
    writer.start()
    verdict = scan(pipe)
    writer.join()
    assert [(found.file, found.line) for found in verdict.findings] == [("pipe", 3)]


def test_an_anonymous_pipe_is_read(tmp_path: Path) -> None:
    out, into = os.pipe()
    os.write(into, f"key {token()}\n".encode())
    os.close(into)
    assert len(scan(Path(f"/dev/fd/{out}")).findings) == 1
    os.close(out)


def test_pipes_without_a_writer_sockets_and_devices_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_WRITER_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="nobody writes to"):
        scan(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(SourceError, match="a socket, a terminal or a device"):
            scan(tmp_path / "s")
    for device in ("/dev/zero", "/dev/null"):
        with pytest.raises(SourceError, match="a device"):
            scan(Path(device))


def test_names_of_files_columns_and_keys_are_judged_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / f"notes-{token(1)}.txt").write_text(f"the same {token(1)} within")
    (tmp_path / "k.json").write_text(json.dumps({token(2): {token(3): token(4)}}, indent=1))
    fields = [pa.field(token(5), pa.string(), metadata={"note": token(6)})]
    pq.write_table(
        pa.table({token(5): ["x"]}, pa.schema(fields, {"made": f"by {token(7)}"})), tmp_path / "t.parquet"
    )
    (tmp_path / "z.zip").write_bytes(zipped(**{f"m-{token(8)}": b"fine"}))
    verdict = scan(tmp_path)
    assert len({found.fingerprint for found in verdict.findings}) == 8
    told = "\n".join(found.text() for found in verdict.findings)
    assert not any(token(seed) in told for seed in range(9))
    assert "notes-[GITHUB_TOKEN].txt (file name): GITHUB_TOKEN" in told
    assert "k.json [GITHUB_TOKEN].[GITHUB_TOKEN]: GITHUB_TOKEN" in told


def test_a_notebooks_lines_are_joined(tmp_path: Path) -> None:
    key = token()
    cell = {"cell_type": "code", "source": ["a = 1\n", f"k = '{key[:20]}", f"{key[20:]}'\n"], "outputs": []}
    book = {"nbformat": 4, "cells": [cell]}
    (tmp_path / "a.ipynb").write_text(json.dumps(book, indent=1))
    (tmp_path / "b.ipynb").write_text(json.dumps(book))
    found = scan(tmp_path).findings
    assert [(each.file, each.column, each.times) for each in found] == [("a.ipynb", "cells[0].source", 2)]


def test_own_lists_can_be_tried_on_any_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, config = tmp_path / "notes.txt", tmp_path / "run.toml"
    place.write_text("the heliotrope of k.marlow@brightwater.io\n")
    config.write_text("[privacy]\nredact = ['heliotrope']\nallow = ['k.marlow@brightwater.io']\n")
    for lists, changed in ((None, {"EMAIL": 1}), (config, {"LISTED": 1})):
        run_privacy_scan_diff(place, None, False, 10, True, lists)
        assert json.loads(capsys.readouterr().out)["changed"][0]["counts"] == changed
    for lists, kinds in ((None, {"EMAIL"}), (config, {"EMAIL", "LISTED"})):
        assert scan_path(place, None, [], True, lists) == 1
        assert {each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]} == kinds
    config.write_text("[privacy]\nredact = ['e']\n")
    with pytest.raises(ConfigError, match="redact"):
        run_privacy_scan_diff(place, None, False, 10, True, config)
