"""A workspace that an earlier tracemill wrote is opened: only sources of newer readers are read again, and
nothing is asked again."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.flows.admission.reading_version import ReadingVersion, RedactionVersion
from tracemill.privacy.redaction.hyperscan_cache import hyperscan_cache_folder

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "workspace_0.1.0.tar.xz"
"""Five sessions, and the workspace that version 0.1.0 made of them on a machine called `tester`; it stored
hashes of its source code where versions stand today."""

RUN = """
import socket
socket.gethostname = lambda: "tester"
from tracemill.cli.main import main
main()
"""


def way(**readers: int) -> ReadingVersion:
    return ReadingVersion("chosen", RedactionVersion("rules"), readers)


def test_a_reader_of_another_version_opens_its_own_sources_alone() -> None:
    then, today = way(claude_code=1, openhands=1), way(claude_code=1, openhands=2)
    known = {d: then.covers(today, d) for d in ("claude_code", "openhands_sdk_v1", "openhands_eval_v0", None)}
    assert known == {
        "claude_code": True,
        "openhands_sdk_v1": False,
        "openhands_eval_v0": False,
        None: False,  # no session then: a reader of today may know it
    }
    assert then.covers(then, None)
    assert then.id != today.id
    assert ReadingVersion.from_json(today.to_json()) == today


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """The sessions and the workspace `w`, at another place than they were."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def run(folder: Path, prefect: dict[str, str], *flags: str) -> dict[str, Any]:
    """`tracemill run` on a machine that knows the same values as the first one; gives its record."""
    user = {"HOME": "/home/tester", "USER": "tester", "LOGNAME": "tester"}
    cached = {"XDG_CACHE_HOME": str(hyperscan_cache_folder().parent)}  # compiling rules takes seconds
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **cached, **prefect, **user}
    command = [sys.executable, "-c", RUN, "run", "run.toml", "--json", *flags]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def shards(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in (folder / "w").rglob("*.parquet")}


def tables_with_new_content(folder: Path, before: set[str], now: set[str]) -> set[str]:
    """Return the tables with a file whose rows are new, whatever its name, encoding or date."""

    def content(path: str) -> tuple[str, str]:
        rows = json.dumps(pq.read_table(folder / path).to_pylist(), default=str)
        return path.split("/")[1], hashlib.sha256(rows.encode()).hexdigest()

    known = {content(path) for path in before}
    return {path.split("/")[1] for path in now - before if "/releases/" in path or content(path) not in known}


def test_a_run_reads_what_readers_read_otherwise_and_buys_no_answer_twice(
    first: Path, prefect_server: dict[str, str]
) -> None:
    """Every reader, the rules of redaction and the vote are newer: all sources are read again, every batch is
    gone through once and voted on again, and the next release has the labels and the pairs that the first
    lacks. What was bought comes from the ledger; three more answers are wanted where one side is a bare text.
    """
    before, settled = shards(first), (first / "w" / "settled.jsonl").read_text()
    record = run(first, prefect_server)
    summary, release = record["summary"], record["release"]
    assert summary["changes"] == {
        "read again: settings or readers changed": 5,
        "moved since they were read": 5,
    }
    assert (summary["states"], summary["asked"], summary["reused"]) == (69, 214, 211)
    assert summary.get("calls", 0) == 3
    assert (release["rows"], release["created"]) == (68, True)
    assert release["dropped"] == {}
    assert release["labels"].keys() == {"agreed", "solved"}
    now = shards(first)
    # Pairs name the vote; traces and decisions are of another schema; three answers are new.
    changed = {"traces", "decisions", "replies", "pairs", "votes", "releases"}
    assert tables_with_new_content(first, before, now) == changed
    assert before <= now
    once = (first / "w" / "settled.jsonl").read_text()
    assert once.startswith(settled)
    assert [len(text.splitlines()) for text in (settled, once)] == [3, 6]
    again = run(first, prefect_server)
    assert (again["summary"]["reused"], again["release"]["created"]) == (214, False)
    assert (first / "w" / "settled.jsonl").read_text() == once
    assert shards(first) == now


@pytest.mark.slow
@pytest.mark.long
def test_stored_versions_that_differ_are_seen(first: Path, prefect_server: dict[str, str]) -> None:
    path = first / "w" / "settled.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 3
    path.write_text("".join(json.dumps(line | {"version": "0" * 16}) + "\n" for line in lines))
    sources = first / "w" / "sources.jsonl"
    sources.write_text(sources.read_text().replace('"base":"', '"base":"0'))
    summary = run(first, prefect_server)["summary"]
    assert summary["changes"] == {
        "read again: settings or readers changed": 5,
        "moved since they were read": 5,
    }
    assert (summary["asked"], summary["reused"], summary.get("calls", 0)) == (214, 211, 3)
    assert len(path.read_text().splitlines()) == 6
