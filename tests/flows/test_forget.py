"""What was forgotten is nowhere: in no table, book, manifest or release, decoded or as bytes."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest
from console_says import record_of, refusal_of

from tracemill.flows.admission.text_search import TextNeedle
from tracemill.records.storage.shard_rewrite import sweep_rewritten_shards
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
PLANTED = 'Werk: "Käthe Müßig"\nVertrag Nordlicht-77'
ALMANAC = "claude_code-3ab60806198d22416591"
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def home(demo: Any, tmp_path: Path) -> Path:
    """A copy of a whole run: `sessions`, one of which holds `PLANTED`, beside the workspace `w`."""
    return Path(shutil.copytree(demo.folder, tmp_path / "home"))


def _where(root: Path, text: str) -> list[str]:
    """Files that hold the text as bytes, in a decoded cell of a table or in the metadata of one."""
    needle = TextNeedle.of(text)
    found = []
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        data = path.read_bytes()
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            cells = json.dumps(file.read().to_pylist(), default=str, ensure_ascii=False)
            data += f"{cells}{file.schema_arrow.metadata}".encode()
        if needle.within_bytes(data):
            found.append(str(path.relative_to(root)).split("/")[0])
    return found


def _booked(work: Path) -> tuple[int, int, int]:
    """Calls, what they cost in nano-USD, and the sum of all traces' budgets."""
    with closing(sqlite3.connect(work / "ledger.sqlite")) as book:
        calls, cost = book.execute("select count(*), sum(cost_nusd) from calls").fetchone()
        query = "select sum(settled_nusd + reserved_nusd) from budgets where scope like 'trace:%'"
        return calls, cost, book.execute(query).fetchone()[0]


def _rows(work: Path) -> dict[str, int]:
    opened = Workspace.open(work, create=False)
    return {name: sum(t.num_rows for t in opened.current(name)) for name in SCHEMAS}


def test_a_trace_is_gone_from_everywhere_and_its_money_stays(console: Run, home: Path) -> None:
    work = home / "w"
    before, booked = _rows(work), _booked(work)
    tables = {"traces", "decisions", "replies", "votes", "pairs", "releases", "ledger.sqlite"} | {
        "sources.jsonl"
    }
    assert set(_where(work, ALMANAC)) == tables
    (version,) = (path for path in (work / "releases" / "demo").iterdir() if path.is_dir())
    places = [{"repo": "maker/pairs"}, {"repo": "maker/old", "retracted": "yes"}]
    version.with_name("published.json").write_text(json.dumps({version.name: places}))
    record = record_of(console("privacy", "forget", ALMANAC, "-w", work, "--yes", "--json"))
    assert _where(work, ALMANAC) == []
    assert (record["kind"], record["traces"], record["rows"]["traces"]) == ("trace", 1, 1)
    assert record["rows"]["decisions"] == 2 * 12 * 4  # as made, in a shard replaced since, and with outcomes
    assert record["answers"] == record["rows"]["replies"] > 30
    after = _rows(work)
    gone = {name: before[name] - after[name] for name in SCHEMAS}
    assert gone | {"decisions": 2 * gone["decisions"]} == record["rows"]
    assert _booked(work) == booked
    assert len(record["releases"]) == 1
    told = f"`tracemill release retract --release demo@{version.name} --yes`"
    retract = f"{told} deletes its files, tag and history there."
    assert [line for line in record["remains"] if "retract" in line] == [
        f"demo@{version.name} is published at maker/pairs: {retract} "
        "Mirrors, caches and downloads keep their copies."
    ]
    assert "no such trace" in refusal_of(console("privacy", "forget", ALMANAC, "-w", work, "--yes"))


@pytest.mark.slow
def test_it_does_not_come_back_and_the_rest_costs_nothing_again(tracemill: Run, home: Path) -> None:
    work = home / "w"
    record = record_of(tracemill("privacy", "forget", ALMANAC, "-w", work, "--yes", "--json"))
    (name, gone) = record["releases"][0].split()
    flags = ("--path", home / "sessions", "--preset", "simulated", "--max-usd", 1)
    flags = (*flags, "--name", "demo", "-w", work, "--json")
    again = record_of(tracemill("run", *flags))
    assert again["summary"]["left_out"] == {"forgotten": 1}
    assert (again["summary"]["traces"], again["summary"]["calls"]) == (6, 0)
    assert again["release"]["version"] > gone
    assert again["release"]["rows"] > 20
    assert _where(work, ALMANAC) == []
    assert [path.name for path in sorted((work / "releases" / name).iterdir()) if path.is_dir()] == [
        again["release"]["version"]
    ]


def test_a_text_is_gone_with_the_traces_that_hold_it_in_every_spelling(console: Run, home: Path) -> None:
    work = home / "w"
    assert {"traces", "releases"} <= set(_where(work, PLANTED))
    _plant_in_a_manifest(work)
    done = console("privacy", "forget", PLANTED, "-w", work, "--yes", "--json")
    record = record_of(done)
    assert (record["kind"], record["traces"]) == ("value", 1)
    assert record["files"] == 1
    for text in (PLANTED, "Nordlicht-77", "Käthe"):
        assert _where(work, text) == []
        assert text not in done.stdout + done.stderr
    assert _rows(work)["traces"] == 6
    assert console("status", "-w", work).returncode == 0


def _plant_in_a_manifest(work: Path) -> None:
    path = next((work / "runs").glob("*/harvest.json"))
    value = json.loads(path.read_text())
    value["sources"] = [f"/data/{PLANTED}/x"]
    path.write_text(json.dumps(value, ensure_ascii=False))


def test_a_text_that_only_an_answer_in_the_ledger_holds(console: Run, home: Path) -> None:
    work = home / "w"
    with closing(sqlite3.connect(work / "ledger.sqlite")) as book, book:
        reply = json.dumps({"step_id": "elsewhere-1:0:0", "raw": json.dumps({"text": PLANTED})})
        book.execute("insert into answers values ('k1', ?, 5, 0.0)", (reply,))
    assert "ledger.sqlite" in _where(work, PLANTED)
    with Ledger(sqlite_url(work / "ledger.sqlite")) as ledger:
        before = dict(ledger.texts())
    done = console("privacy", "forget", "-", "-w", work, "--yes", "--json", stdin=PLANTED + "\n")
    record = record_of(done)
    assert record["answers"] == 1 + record["rows"]["replies"]
    assert _where(work, PLANTED) == []
    with Ledger(sqlite_url(work / "ledger.sqlite")) as ledger:
        assert len(dict(ledger.texts())) == len(before) - record["answers"]


@pytest.mark.slow
def test_a_project_by_name_or_folder_is_gone_and_kept_out_with_sessions_yet_to_come(
    console: Run, home: Path
) -> None:
    work = home / "w"
    other = shutil.copytree(work, home / "other")
    record = record_of(console("privacy", "forget", "parcels", "-w", work, "--yes", "--json"))
    assert (record["kind"], record["traces"], record["rows"]["traces"]) == ("project", 2, 2)
    assert _where(work, "parcels") == []
    by_folder = record_of(console("privacy", "forget", "/home/dev/parcels/", "-w", other, "--yes", "--json"))
    assert by_folder["rows"] == record["rows"]
    fresh = next((home / "sessions").rglob("*parcels/*.jsonl"))
    text = fresh.read_text().replace(fresh.stem, "11111111-2222-4333-8444-555555555555")
    fresh.with_stem("11111111-2222-4333-8444-555555555555").write_text(text)
    for place in (work, other):
        totals = record_of(console("ingest", home / "sessions", "--workspace", place, "--json"))["totals"]
        assert totals["left_out"] == {"forgotten": 3}
        assert _rows(place)["traces"] == 5


def test_nothing_found_too_short_and_not_confirmed(console: Run, home: Path) -> None:
    work = home / "w"
    before = sorted((str(p), p.stat().st_size) for p in work.rglob("*.parquet"))
    line = refusal_of(console("privacy", "forget", "no-such-thing-anywhere", "-w", work, "--yes"))
    assert "no such trace, project or text" in line
    assert "no-such-thing" not in line
    assert "at least 4" in refusal_of(console("privacy", "forget", "ab", "-w", work, "--yes"))
    assert "one of trace, project, value" in refusal_of(
        console("privacy", "forget", "x", "-w", work, "--as", "page")
    )
    assert "no such trace" in refusal_of(
        console("privacy", "forget", ALMANAC, "-w", work, "--as", "project", "--yes")
    )
    assert "--yes" in refusal_of(console("privacy", "forget", ALMANAC, "-w", work))
    assert "is not a workspace" in refusal_of(
        console("privacy", "forget", ALMANAC, "-w", home / "none", "--yes")
    )
    assert sorted((str(p), p.stat().st_size) for p in work.rglob("*.parquet")) == before
    assert not (work / "forgotten.json").exists()


def test_a_broken_list_of_what_was_forgotten_lets_nothing_in(console: Run, home: Path) -> None:
    (home / "w" / "forgotten.json").write_text('{"traces": 3}')
    line = refusal_of(console("ingest", home / "sessions", "--workspace", home / "w"))
    assert "forgotten.json" in line


MOMENTS = ("forgotten.json", "releases", "ledger.sqlite-wal", "pairs", "replies", "traces")


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_a_workspace_that_reads_and_the_same_command_ends_it(
    console: Run, home: Path, moment: str
) -> None:
    """Killed as soon as something changes at that place of the workspace."""
    work = home / "w"
    before = _stamps(work / moment)
    script = Path(sys.executable).parent / "tracemill"
    command = [str(script), "privacy", "forget", PLANTED, "-w", str(work), "--yes", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while _stamps(work / moment) == before and process.poll() is None:
        pass
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    opened = Workspace.open(work, create=False)
    for name in SCHEMAS:
        assert sum(table.num_rows for table in opened.current(name)) > 0
    traces = [t.trace_id for table in opened.current("traces") for t in traces_from_table(table)]
    assert len(traces) == len(set(traces)) in (6, 7)
    assert console("privacy", "forget", PLANTED, "-w", work, "--yes").returncode in (0, 2)
    assert _where(work, PLANTED) == []
    assert _rows(work)["traces"] == 6


def _stamps(place: Path) -> list[tuple[str, int]]:
    found = []
    paths = [
        str(place),
        *(f"{at}/{name}" for at, folders, names in os.walk(place) for name in folders + names),
    ]
    for path in paths:
        with suppress(FileNotFoundError):
            found.append((path, os.stat(path).st_mtime_ns))  # noqa: PTH116
    return sorted(found)


def test_files_nothing_points_to_are_swept_and_live_ones_stay(home: Path) -> None:
    work = Workspace.open(home / "w", create=False)
    live = work.root / work.live("traces")[0].path
    stray = live.with_name("0" * 32 + ".parquet")
    shutil.copy(live, stray)
    half = live.with_name(".x.parquet.1234.tmp")
    half.write_text("half")
    assert sweep_rewritten_shards(work) == 2
    assert (live.exists(), stray.exists(), half.exists()) == (True, False, False)


def test_spellings_reach_four_levels_of_json_and_nested_columns() -> None:
    import pyarrow as pa

    text = 'a"ü\n1'
    needle, deep = TextNeedle.of(text), text
    for _ in range(4):
        deep = json.dumps({"t": deep})
        assert needle.within(deep)
    assert not TextNeedle.of("plain text").within("plain  text")
    assert TextNeedle.of("plain text").spellings == ("plain text",)
    nested = pa.table({"m": [[{"calls": [{"arguments": json.dumps(text)}]}], []]})
    assert needle.in_table(nested)
    assert not needle.in_table(nested.slice(1, 1))
