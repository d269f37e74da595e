"""`tracemill ingest`: its account in numbers, broken input, the same bytes every time."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.cli.main import app, main
from tracemill.flows.ingest.ingest_order import IngestOptions, make_ingester
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.shard_plan import plan_sources
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.errors import SourceError, WorkspaceError
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
CLAUDE_CODE = EXAMPLES / "claude_code"
SCRIPT = Path(sys.executable).parent / "tracemill"
SESSION = CLAUDE_CODE / "-home-dev-parcels" / "87751d4c-a850-4e2c-84dc-da6a797d76de.jsonl"
REAL = os.environ.get("TRACEMILL_REAL_TRACES")
FOLDERS = [EXAMPLES, *(Path(REAL) / name for name in ("claude_code", "openhands", "swe_gym") if REAL)]
COUNTS = ("traces", "contexts", "states", "steps_main", "steps_side", "steps_synthetic", "tool_calls")
COUNTS += ("tool_errors", "compactions", "branches_real", "bytes")


def order(source: Path, out: Path, **given: Any) -> IngestOptions:
    return replace(IngestOptions(order_of([str(source)]), out, unredacted=True, jobs=1), **given)


def session(number: int, text: str = "hello", steps: int = 1) -> bytes:
    """A Claude Code session of `steps` questions and answers of this text."""
    lines, above = list[dict[str, Any]](), None
    for step in range(steps):
        for kind in ("user", "assistant"):
            uuid = f"{number}-{step}-{kind}"
            message: dict[str, Any] = {"role": kind, "content": text}
            if kind == "assistant":
                message |= {"id": f"msg_{number}_{step}", "model": "claude-opus-4-5"}
            lines.append({"type": kind, "uuid": uuid, "parentUuid": above, "sessionId": f"s{number}"})
            lines[-1]["message"] = message
            above = uuid
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def rows(count: int, text: str) -> bytes:
    """A table of SWE-Gym runs as JSON Lines."""
    said = [{"role": "user", "content": text}, {"role": "assistant", "content": "done"}]
    return b"".join(
        json.dumps({"instance_id": f"i{number}", "messages": said}).encode() + b"\n"
        for number in range(count)
    )


def messy(folder: Path) -> Path:
    """Every format there is, and everything that can be wrong with a file."""
    shutil.copytree(EXAMPLES, folder)
    whole = session(1, steps=2)
    (folder / "cut.jsonl").write_bytes(session(2, steps=2)[:-30])
    (folder / "latin.jsonl").write_bytes(session(3, "caf\u00e9").replace("\u00e9".encode(), b"\xe9", 1))
    (folder / "string.jsonl").write_bytes(b'"just a string"\n[1]\nnull\n' + session(4))
    (folder / "zero.jsonl").touch()
    (folder / "prose.jsonl").write_text("no session at all\n")
    (folder / "bytes.jsonl").write_bytes(b"\x00\xff\xfe" * 99)
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "huge number.jsonl").write_bytes(
        session(5).replace(
            b'"role": "assistant"', b'"role": "assistant", "usage": {"input_tokens": %d}' % 2**63
        )
    )
    (folder / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(whole)
    return folder


def shards_of(out: Path) -> dict[str, bytes]:
    """Every shard by its path below the day, and the order in which they are live."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.parquet")}
    return found | {"live": (out / "traces" / "live.json").read_bytes()}


def traces_in(out: Path) -> dict[str, int]:
    """Steps of each trace that the workspace holds, each held once."""
    work = Workspace.open(out, create=False, text="recorded")
    traces = [trace for table in work.current("traces") for trace in traces_from_table(table)]
    found = {trace.trace_id: trace.step_count for trace in traces}
    assert len(found) == len(traces)
    return found


def test_every_figure_of_a_folder_of_everything(tmp_path: Path) -> None:
    folder, out = messy(tmp_path / "in"), tmp_path / "w"
    command = [str(SCRIPT), "ingest", str(folder), "--workspace", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    record = json.loads(done.stdout)
    assert set(record) == {"files", "unread_files", "totals"}
    files = {Path(item["path"]).name: item for item in record["files"]}
    assert all(
        set(item) >= {"path", "format", *COUNTS, "skipped", "seconds", "error"} for item in files.values()
    )
    assert {name: files[name]["format"] for name in ("cut.jsonl", "output.jsonl", "trajectories.jsonl")} == {
        "cut.jsonl": "claude_code",
        "output.jsonl": "openhands_eval_v0",
        "trajectories.jsonl": "swe_gym",
    }
    assert [files[SESSION.name][key] for key in COUNTS] == [1, 1, 12, 12, 0, 0, 12, 3, 0, 0, 32265]
    assert files["cut.jsonl"]["skipped"] == {"not json": 1}
    assert files["cut.jsonl"]["states"] == 1
    assert files["latin.jsonl"]["flags"] == {"repaired json": 1}
    assert files["string.jsonl"]["skipped"] == {"not an object": 3}
    assert files["caf?.jsonl"]["states"] == 2
    assert {Path(item["path"]).name: item["reason"] for item in record["unread_files"]} == {
        "zero.jsonl": "empty",
        "prose.jsonl": "of no known format",
        "bytes.jsonl": "of no known format",
        "broken.parquet": "damaged: nothing can be read",
        "gone.jsonl": "a broken link",
    }
    totals = record["totals"]
    assert (totals["files"], totals["traces"], totals["states"]) == (10, 12, 75)
    assert totals["skipped"] == {"not an object": 3, "not json": 1}
    for key in COUNTS:
        assert totals[key] == sum(item[key] for item in files.values()), key
    assert totals["seconds"] > 0


def test_a_count_that_fits_no_column_is_none(tmp_path: Path) -> None:
    source = tmp_path / "huge number.jsonl"
    usage = b'"role": "assistant", "usage": {"input_tokens": %d, "cache_read_input_tokens": 3}' % 2**63
    source.write_bytes(session(5).replace(b'"role": "assistant"', usage))
    ingest_everything(order(source, tmp_path / "w"))
    work = Workspace.open(tmp_path / "w", create=False, text="recorded")
    (table,) = work.current("traces")
    (trace,) = traces_from_table(table)
    assert [(s.usage.prompt_tokens, s.usage.cached_tokens) for s in trace.contexts[0].steps] == [(None, 3)]


def test_a_line_of_fifty_megabytes(tmp_path: Path) -> None:
    source = tmp_path / "long.jsonl"
    source.write_bytes(session(1, "x" * 25_000_000))
    record = ingest_everything(order(source, tmp_path / "w"))
    assert (record["totals"]["states"], record["totals"]["bytes"]) == (1, source.stat().st_size)
    work = Workspace.open(tmp_path / "w", create=False, text="recorded")
    (table,) = work.current("traces")
    (trace,) = traces_from_table(table)
    assert [len(m.content) for m in trace.contexts[0].messages] == [25_000_000, 25_000_000]


def test_a_file_that_vanishes_after_it_was_found_is_named_and_stops_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.jsonl").write_bytes(session(number))
    asked = order(folder, tmp_path / "w")
    plan = plan_sources(asked.sources, asked.shard_mb)
    (folder / "1.jsonl").unlink()
    work = Workspace.open(tmp_path / "w", text="recorded")
    (files,) = plan.shards
    done = make_ingester(asked, work).ingest(files, {}.get)
    work.add("traces", done.shards)
    assert [account.report.states for account in done.accounts] == [1, 0, 1]
    (said,) = done.summary.unread
    assert said.startswith(f"{folder}/1.jsonl cannot be read: No such file or directory")
    assert len(traces_in(tmp_path / "w")) == 2


@pytest.fixture
def as_nobody() -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder anybody may use, and a way to give up the rights of root until the test ends."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name), lambda: os.seteuid(65534) if user == 0 else None
        os.seteuid(user)


def test_files_and_folders_that_may_not_be_read_are_named(
    as_nobody: tuple[Path, Callable[[], None]],
) -> None:
    folder, give_up_rights = as_nobody
    (folder / "in" / "closed").mkdir(parents=True)
    (folder / "in" / "mine.jsonl").write_bytes(session(1))
    (folder / "in" / "secret.jsonl").write_bytes(session(2))
    (folder / "in" / "closed" / "below.jsonl").write_bytes(session(3))
    (folder / "hidden.jsonl").write_bytes(session(4))
    (folder / "hidden.jsonl").chmod(0)
    (folder / "in" / "link.jsonl").symlink_to(folder / "hidden.jsonl")
    (folder / "in" / "secret.jsonl").chmod(0)
    (folder / "in" / "closed").chmod(0)
    ingest_everything(order(folder / "in" / "mine.jsonl", folder / "warm"))  # what is imported, is
    give_up_rights()
    try:
        record = ingest_everything(order(folder / "in", folder / "w"))
        with pytest.raises(SourceError, match="cannot be read: Permission denied"):
            ingest_everything(order(folder / "in" / "secret.jsonl", folder / "w2"))
    finally:
        os.seteuid(os.getuid())
        (folder / "in" / "closed").chmod(0o700)
    assert record["totals"]["states"] == 1
    assert {Path(item["path"]).name: item["reason"] for item in record["unread_files"]} == {
        "closed": "unreadable: Permission denied",
        "link.jsonl": "unreadable: Permission denied",
        "secret.jsonl": "unreadable: Permission denied",
    }
    assert not (folder / "w2").exists()


def test_a_folder_that_may_not_be_written_is_one_line(as_nobody: tuple[Path, Callable[[], None]]) -> None:
    folder, give_up_rights = as_nobody
    (folder / "closed").mkdir(mode=0o555)
    (folder / "one.jsonl").write_bytes(session(1))
    give_up_rights()
    with pytest.raises(WorkspaceError, match=r"cannot be written \(Permission denied\)"):
        ingest_everything(order(folder / "one.jsonl", folder / "closed" / "w"))
    assert list((folder / "closed").iterdir()) == []


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A limit on the size of files fails a write as a full disk does, in the middle of a shard."""
    source, out = tmp_path / "in.jsonl", tmp_path / "w"
    source.write_bytes(session(1, os.urandom(40_000).hex(), steps=9))
    command = [str(SCRIPT), "ingest", str(source), "--workspace", str(out), "--json"]
    limited = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        check=False,
    )
    assert (limited.returncode, limited.stdout) == (2, "")
    assert limited.stderr.startswith(f"tracemill: {out}/traces/source=claude_code/day=")
    assert "File too large" in limited.stderr
    assert limited.stderr.count("\n") == 1
    assert [path.name for path in out.rglob("*") if path.suffix in (".parquet", ".tmp")] == []
    assert not (out / "traces" / "live.json").exists()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["totals"]["states"] == 9


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
@pytest.mark.parametrize("unredacted", [True, False], ids=["recorded", "redacted"])
def test_the_same_sessions_give_the_same_bytes(tmp_path: Path, folder: Path, unredacted: bool) -> None:
    for name in ("a", "b"):
        out = tmp_path / name
        text = "recorded" if unredacted else "redacted"
        Workspace.open(out, text=text)
        if not unredacted:
            (out / "redaction.key").write_text("17" * 32)
            (out / "redaction.key").chmod(0o600)
        ingest_everything(order(folder, out, unredacted=unredacted, shard_mb=0.05))
    first = shards_of(tmp_path / "a")
    assert len(first) > 2
    assert first == shards_of(tmp_path / "b")


def test_several_processes_give_the_same_bytes_also_where_sessions_come_twice(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for place, (number, steps) in enumerate([(1, 2), (2, 9), (1, 5), (3, 1), (2, 4), (4, 3)]):
        (folder / f"{place}.jsonl").write_bytes(session(number, steps=steps))
    shutil.copytree(EXAMPLES / "swe_gym", folder / "swe_gym")
    records = [
        ingest_everything(order(folder, tmp_path / str(jobs), jobs=jobs, shard_mb=1e-6)) for jobs in (1, 2)
    ]
    assert shards_of(tmp_path / "1") == shards_of(tmp_path / "2")
    held = traces_in(tmp_path / "2")
    assert sorted(held.values()) == [1, 3, 5, 8, 8, 9]
    assert held == traces_in(tmp_path / "1")
    for record in records:
        assert record["totals"]["flags"] == {"same session in two files, the longer kept": 2}
        for item in (*record["files"], record["totals"]):
            del item["seconds"]
    assert records[0] == records[1]


def test_a_session_twice_in_one_shard_the_longer_stays(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for place, steps in enumerate((2, 6, 4)):
        (folder / f"{place}.jsonl").write_bytes(session(1, steps=steps))
    record = ingest_everything(order(folder, tmp_path / "w"))
    assert list(traces_in(tmp_path / "w").values()) == [6]
    totals = record["totals"]
    assert (totals["files"], totals["traces"], totals["contexts"], totals["states"]) == (3, 1, 1, 6)
    assert (totals["steps_main"], sum(item["states"] for item in record["files"])) == (12, 12)
    assert record["totals"]["flags"] == {"same session in two files, the longer kept": 2}


def _peak_mb(work: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_memory_follows_the_largest_session_and_not_their_number(tmp_path: Path) -> None:
    """Python's own memory, Arrow's columns included; what the Parquet writer holds is compressed."""
    table, single, folder = tmp_path / "table.jsonl", tmp_path / "single.jsonl", tmp_path / "many"
    folder.mkdir()
    for number in range(80):
        (folder / f"{number}.jsonl").write_bytes(session(number, "file " * 30_000))
    table.write_bytes(rows(120, "row " * 50_000))
    single.write_bytes(session(1, "caf\u00e9 " * 20_000, steps=40))
    ingest_everything(order(SESSION, tmp_path / "warm"))
    rows_mb = _peak_mb(lambda: ingest_everything(order(table, tmp_path / "a")))
    files_mb = _peak_mb(lambda: ingest_everything(order(folder, tmp_path / "c")))
    one_mb = _peak_mb(lambda: ingest_everything(order(single, tmp_path / "b")))
    assert (table.stat().st_size, sum(p.stat().st_size for p in folder.iterdir())) > (24e6, 24e6)
    assert rows_mb < 9
    assert files_mb < 9
    assert one_mb < 3 * single.stat().st_size / 1e6


def test_a_table_of_many_runs_becomes_several_shards(tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    table.write_bytes(rows(60, "row " * 50_000))
    ingest_everything(order(table, tmp_path / "w", shard_mb=4))
    live = json.loads((tmp_path / "w" / "traces" / "live.json").read_text())["shards"]
    assert [shard["rows"] for shard in live] == [16, 15, 15, 14]
    groups = pq.read_metadata(tmp_path / "w" / live[0]["path"])
    assert groups.num_row_groups == 2
    assert len(traces_in(tmp_path / "w")) == 60


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys, tempfile\nfrom tracemill.cli.main import main\n"
        "sys.argv = ['tracemill', 'ingest', sys.argv[1], '--unredacted', '--workspace', tempfile.mkdtemp()]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('sqlalchemy', 'prefect', 'datasets', 'torch', 'openai', 'aiohttp', 'jinja2')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, SESSION], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_processes_is_a_flag_out_of_range(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["tracemill", "ingest", str(SESSION), "--workspace", str(tmp_path / "w"), "-j", "0"]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert not (tmp_path / "w").exists()


def test_a_damaged_file_named_alone_is_an_error_and_beside_others_a_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.traj"
    cut.write_text('{"trajectory": [ {"action": "ls", "obs')
    with pytest.raises(SourceError, match="does not parse"):
        ingest_everything(order(cut, tmp_path / "a"))
    (tmp_path / "whole.jsonl").write_bytes(session(1))
    record = ingest_everything(order(tmp_path, tmp_path / "b"))
    assert record["totals"]["traces"] == 1
    assert [bool(file["error"]) for file in record["files"]] == [True, False]


def test_status_of_a_workspace_without_a_run_says_what_is_stored_and_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = str(tmp_path / "w")
    app(["ingest", str(EXAMPLES), "--min-age", "0", "-w", work], standalone_mode=False)
    capsys.readouterr()
    app(["status", "-w", work], standalone_mode=False)
    first = capsys.readouterr().out
    assert "stored   7 traces (3 claude_code, 2 openhands, 2 swe_gym)\n" in first
    assert f"tracemill label -w {work}" in first
    app(["label", "-w", work], standalone_mode=False)
    capsys.readouterr()
    app(["status", "-w", work], standalone_mode=False)
    second = capsys.readouterr().out
    assert "before the filters of a release" in second
    assert f"tracemill release write -w {work}" in second
