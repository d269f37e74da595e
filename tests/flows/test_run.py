"""The whole run as a user starts it: the console script, real Prefect, real SQLite, real data-juicer."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from console_says import record_of
from datasets import load_dataset

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
SIMULATED = ROOT / "tests" / "data" / "simulated.toml"
Run = Callable[..., CompletedProcess[str]]


def test_the_examples_give_teacher_pairs_and_hindsight_pairs_in_a_release(demo: Any) -> None:
    assert "Traceback" not in demo.done.stderr
    record = demo.record
    summary, release = record["summary"], record["release"]
    assert summary["files"] == 5
    assert summary["redactions"]["GITHUB_TOKEN"] == 1
    sources = {kind.split(":")[0] for kind in release["kept"]}
    assert sources == {"teachers", "hindsight"}
    assert sum(release["kept"].values()) == release["rows"]
    assert sum(summary["pairs"].values()) == release["rows"] + sum(release["dropped"].values())
    assert 0 < summary["spent_usd"] <= record["cap_usd"] == 1.0
    assert summary["asked"] == summary["calls"]
    assert summary["asked"] + sum(summary["not_asked"].values()) == 4 * summary["states"]


def test_of_the_pairs_that_were_paid_for_caps_take_few(demo: Any) -> None:
    folder = Path(demo.record["release"]["path"]) / "data" / "dropped"
    dropped = [row for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    taken = sum(row["label_source"] == "teachers" and row["operator"].endswith("_cap") for row in dropped)
    pairs = demo.record["summary"]["pairs"]
    paid = sum(count for kind, count in pairs.items() if kind.startswith("teachers: "))
    assert paid > 50  # so many that caps may take some
    assert taken <= 0.15 * paid


def test_a_file_named_alone_that_turns_out_to_be_torn_is_one_line(tracemill: Run, tmp_path: Path) -> None:
    rows = [
        json.loads(line) for line in (EXAMPLES / "swe_gym" / "trajectories.jsonl").read_text().splitlines()
    ]
    torn = tmp_path / "torn.parquet"
    pq.write_table(pa.Table.from_pylist(rows), torn)
    data, group = bytearray(torn.read_bytes()), pq.ParquetFile(torn).metadata.row_group(0)
    for column in map(group.column, range(group.num_columns)):
        if column.path_in_schema.startswith("messages"):
            start = column.dictionary_page_offset or column.data_page_offset
            data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    torn.write_bytes(data)
    done = tracemill("run", "--path", torn, "-w", tmp_path / "w")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"tracemill: {torn} cannot be read")
    assert not list((tmp_path / "w" / "releases").glob("*"))


def test_the_release_of_the_examples_loads_and_says_what_is_simulated(demo: Any) -> None:
    release = demo.record["release"]
    rows = load_dataset(release["path"], "dpo", split="train")
    assert len(rows) == release["rows"]
    teacher_rows = [row for row in rows if row["label_source"] == "teachers"]
    assert all(row["simulated"] and row["n_teachers_agreeing"] >= 2 for row in teacher_rows)
    assert not any(row["simulated"] for row in rows if row["label_source"] == "hindsight")
    assert all(row["student_family"] not in row["families"] for row in teacher_rows)
    assert all(row["prompt"][0]["role"] == "system" for row in rows)
    text = (Path(release["path"]) / "README.md").read_text()
    assert "simulated" in text.lower()


def test_a_second_run_of_the_same_configuration_sends_nothing_and_makes_no_version(
    tracemill: Run, demo: Any, tmp_path: Path
) -> None:
    work = Path(shutil.copytree(demo.folder / "w", tmp_path / "w"))
    flags = ("--path", demo.folder / "sessions", "--workspace", work, "--json")
    record = record_of(tracemill("run", SIMULATED, *flags))
    assert record["summary"]["calls"] == 0
    assert record["summary"]["reused"] == record["summary"]["asked"] > 0
    assert record["summary"]["spent_usd"] == 0
    assert record["release"]["created"] is False
    versions = [p for p in (work / "releases" / "demo").iterdir() if p.is_dir()]
    assert [p.name for p in versions] == [record["release"]["version"]]


def test_status_tells_the_last_run_or_shows_pairs_alone(console: Run, demo: Any) -> None:
    work = demo.folder / "w"
    done = console("status", "--workspace", work, "-v")
    for word in ("spent / cap", "self-repair:", "release demo"):
        assert word in done.stdout
    assert "chosen\n" not in done.stdout.replace(" ", "").replace("│", "")
    shown = console("status", "--workspace", work, "--pairs", 2, "--source", "hindsight").stdout
    assert shown.startswith("╭─ ")
    assert shown.count("╭─ ") == shown.count("│ rejected") == shown.count("│ asked") == 2
    last = shown.splitlines()[-1]
    assert re.fullmatch(r"2 of the \d+ pairs before the filters of a release", last)
    assert "spent / cap" not in shown
    none = console("status", "--workspace", work, "--pairs", 1, "--source", "user").stdout
    assert none.startswith("no pairs: ")


def test_the_stages_one_by_one_give_what_the_run_gave(console: Run, demo: Any, tmp_path: Path) -> None:
    """The same tables from ingest, replay, pairs and release as from the flow: no shard more, no call,
    no version."""
    work = Path(shutil.copytree(demo.folder / "w", tmp_path / "w"))
    shards = sorted(p.name for p in work.rglob("*.parquet"))
    last = demo.record
    ingested = record_of(console("ingest", demo.folder / "sessions", "--workspace", work, "--json"))
    assert ingested["totals"]["files"] == len(ingested["files"]) == 5
    assert all(f["format"] and f["traces"] and not f["error"] for f in ingested["files"])
    assert ingested["totals"]["states"] == last["summary"]["states"]
    flags = ("--workspace", work, "--json")
    replayed = record_of(console("replay", "--preset", "simulated", "--max-usd", 1, *flags))
    assert replayed["summary"]["asked"] == last["summary"]["asked"] == replayed["summary"]["reused"]
    assert replayed["summary"]["calls"] == 0
    assert record_of(console("label", *flags))["pairs"] == last["summary"]["pairs"]
    losses = record_of(console("dev", "normalize", *flags))
    released = record_of(console("release", "write", "--name", "demo", *flags))
    assert released["kept"] == last["release"]["kept"]
    assert losses["kept"] == released["rows"] == last["release"]["rows"]
    assert losses["splits"] == released["splits"] == last["release"]["splits"]
    assert sum(losses["splits"].values()) == losses["kept"]
    assert (released["created"], released["newer_answers"], losses["newer_answers"]) == (False, 0, 0)
    assert sorted(p.name for p in work.rglob("*.parquet")) == shards


def test_without_teachers_there_are_hindsight_pairs_only_and_nothing_is_sent(alone: Any) -> None:
    """Behind a proxy that leads nowhere, and with a Prefect server of the run's own."""
    record = alone.record
    assert record["teachers"] == []
    assert (record["cap_usd"], record["summary"]["calls"], record["summary"]["spent_usd"]) == (None, 0, 0)
    assert {kind.split(":")[0] for kind in record["release"]["kept"]} == {"hindsight"}
    assert record["release"]["rows"] >= 3
    assert not (alone.folder / "w" / "ledger.sqlite").exists()


def test_prefect_is_told_nothing_of_the_configuration(alone: Any) -> None:
    """Its server may be another machine's: lists of private texts, projects and URLs stay here."""
    kept = b"".join(p.read_bytes() for p in sorted((alone.folder / "prefect").rglob("*")) if p.is_file())
    assert b"tracemill-run" in kept
    assert str(alone.folder / "w").encode() not in kept
    assert b"2026-04-01" not in kept


@pytest.mark.slow
def test_prefect_alone_runs_the_flow_from_its_configuration(
    prefect_server: dict[str, str], tmp_path: Path
) -> None:
    """As a deployment does: loaded by its entrypoint, with parameters that went through JSON."""
    code = (
        "import json, sys; from prefect.flows import load_flow_from_entrypoint as load;"
        "print(json.dumps(load('tracemill.flows.run_flow.harvest')(sys.argv[1])))"
    )
    config = tmp_path / "run.toml"
    config.write_text(f'workspace = "{tmp_path / "w"}"\n[sources]\npaths = ["{EXAMPLES}"]\n')
    command = [sys.executable, "-c", code, str(config)]
    env = dict(os.environ) | prefect_server
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads(done.stdout)
    assert (record["summary"]["states"], record["teachers"], record["release"]) == (69, [], None)
    assert sum(record["summary"]["pairs"].values()) > 5


@pytest.mark.slow
def test_sessions_that_grew_and_new_ones_join_and_nothing_is_counted_twice(
    tracemill: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    first, *rest = sorted((EXAMPLES / "claude_code").rglob("*.jsonl"))
    lines = first.read_text().splitlines(keepends=True)
    (folder / first.name).write_text("".join(lines[: len(lines) // 2]))
    flags = ("--claude-code", folder, "--workspace", tmp_path / "w", "--json")
    half = record_of(tracemill("run", *flags))
    shutil.copy(first, folder / first.name)
    for path in rest:
        shutil.copy(path, folder / path.name)
    full = record_of(tracemill("run", *flags))
    assert half["summary"]["states"] < full["summary"]["states"]
    assert full["summary"]["traces"] == len(rest) + 1
    fresh = record_of(tracemill("run", "--claude-code", folder, "--workspace", tmp_path / "fresh", "--json"))
    assert full["release"]["kept"] == fresh["release"]["kept"]
    assert full["release"]["version"] != half["release"]["version"] or half["release"]["version"] is None


@pytest.mark.slow
def test_a_lost_ledger_is_not_paid_again_and_a_lost_key_is_said(tracemill: Run, tmp_path: Path) -> None:
    work = tmp_path / "w"
    flags = ("--claude-code", EXAMPLES / "claude_code", "--workspace", work)
    flags = ("run", *flags, "--preset", "simulated", "--max-usd", 1, "--json")
    first = record_of(tracemill(*flags))
    for path in work.glob("ledger.sqlite*"):
        path.unlink()
    again = record_of(tracemill(*flags))
    assert again["summary"]["reused"] == first["summary"]["asked"] > 0
    assert (again["summary"]["calls"], again["summary"]["spent_usd"]) == (0, 0)
    (work / "redaction.key").unlink()
    done = tracemill(*flags)
    assert done.returncode == 2
    assert "redaction.key is gone" in done.stderr
    assert not (work / "redaction.key").exists()
