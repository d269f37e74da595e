"""What was read is not read again, and what changed is: real files, real tables, run after run."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.admission.trace_filter import TraceFilter
from tracemill.flows.forget.find_targets import find_target as find_to_forget
from tracemill.flows.forget.forget_run import remove_targets
from tracemill.flows.ingest.ingest_order import IngestOptions, find_watermarks, plan_order
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.ingest.ingest_shard import ShardIngester
from tracemill.flows.ingest.reuse_traces import reuse_traces
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.run_state.run_records import sole_writer
from tracemill.flows.sources.sampling import SampleOptions
from tracemill.flows.sources.shard_plan import GONE, MOVED, UNCHANGED, SourcePlan
from tracemill.flows.sources.source_spec import SourceOptions, order_of
from tracemill.flows.sources.watermarks import FILE, TAKEN_UP
from tracemill.records.storage.workspace import Workspace

Read = Callable[..., dict[str, Any]]


def session(name: str, steps: int, cwd: str = "/srv/acme/api") -> str:
    """A Claude Code session of so many steps, old enough to be finished."""
    lines: list[dict[str, Any]] = []
    common = {"sessionId": name, "version": "2.1.0", "cwd": cwd, "timestamp": "2026-01-02T03:04:05.000Z"}
    parent = None
    for step in range(steps):
        user = {
            "type": "user",
            "uuid": f"u{step}",
            "parentUuid": parent,
            "message": {"content": f"do {step}"},
        }
        said = {
            "id": f"m{step}",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [{"type": "text", "text": f"done {step} of {name}"}],
        }
        done = {"type": "assistant", "uuid": f"a{step}", "parentUuid": f"u{step}", "message": said}
        lines += [user | common, done | common]
        parent = f"a{step}"
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ten sessions in two projects."""
    for number in range(10):
        project = tmp_path / "projects" / ("api" if number < 5 else "web")
        project.mkdir(parents=True, exist_ok=True)
        (project / f"s{number}.jsonl").write_text(session(f"s{number}", 10))
    return tmp_path / "projects"


@pytest.fixture
def read(tmp_path: Path, home: Path) -> Read:
    """One `tracemill ingest` of the sessions into one workspace; gives its totals."""

    def call(*given: Path, **fields: Any) -> dict[str, Any]:
        order = order_of([str(path) for path in given or (home,)], hub=fields.pop("hub", ()))
        return ingest_everything(IngestOptions(order, tmp_path / "w", **fields))["totals"]

    return call


def spoil(path: Path) -> None:
    """Other content in a file that looks the same from outside: whoever opens it sees the difference."""
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_is_unchanged_is_not_opened_and_counted_as_before(home: Path, read: Read) -> None:
    first = read()
    for path in home.rglob("*.jsonl"):
        spoil(path)
    second = read()
    assert (first["changes"], second["changes"]) == ({}, {UNCHANGED: 10})
    for key in ("files", "traces", "contexts", "states", "tool_calls", "redactions", "flags", "bytes"):
        assert first[key] == second[key], key
    assert first["states"] == 100


def test_a_session_that_grew_is_read_as_a_whole_and_keeps_its_identity(
    home: Path, read: Read, tmp_path: Path
) -> None:
    read()
    work = Workspace.open(tmp_path / "w")
    before = {t.trace_id: t for t in load_traces(work, sorted(_ids(work)))}
    (home / "api" / "s3.jsonl").write_text(session("s3", 11))
    (home / "web" / "new.jsonl").write_text(session("new", 2))
    totals = read()
    assert totals["changes"] == {UNCHANGED: 9, "grew": 1, "new": 1}
    assert (totals["traces"], totals["states"]) == (11, 103)
    after = {t.trace_id: t for t in load_traces(work, sorted(_ids(work)))}
    grown = [i for i in before if after[i] != before[i]]
    assert [after[i].origin for i in grown] == ["s3.jsonl"]
    old, new = before[grown[0]].contexts[0], after[grown[0]].contexts[0]
    assert new.messages[: len(old.messages)] == old.messages
    assert len(new.steps) == 11
    assert read()["changes"] == {UNCHANGED: 11}


def held(folder: Path) -> tuple[int, int]:
    """Traces and steps the workspace holds."""
    work = Workspace.open(folder / "w")
    traces = load_traces(work, sorted(_ids(work)))
    return len(traces), sum(trace.step_count for trace in traces)


def _ids(work: Workspace) -> frozenset[str]:
    return frozenset().union(*(work.covers("traces", shard) for shard in work.live("traces")))


def test_how_sources_change_is_said(home: Path, read: Read) -> None:
    read()
    (home / "api" / "s0.jsonl").write_text(session("s0", 4))
    (home / "api" / "s1.jsonl").write_text(session("other", 30))
    os.utime(home / "api" / "s2.jsonl")
    (home / "api" / "s4.jsonl").unlink()
    totals = read()
    assert totals["changes"] == {UNCHANGED: 6, "changed": 3, GONE: 1}
    assert (totals["traces"], totals["states"]) == (11 - 1, 4 + 30 + 8 * 10)


def test_moved_files_are_not_opened_and_give_no_second_trace(home: Path, read: Read, tmp_path: Path) -> None:
    first = read()
    (home / "api").rename(home / "service")
    second = read()
    assert second["changes"] == {UNCHANGED: 10, MOVED: 5}
    assert (second["traces"], second["states"]) == (first["traces"], first["states"])
    for path in home.rglob("*.jsonl"):
        spoil(path)
    assert read()["changes"] == {UNCHANGED: 10}
    shutil.copy2(home / "web" / "s9.jsonl", home / "service" / "copy.jsonl")
    (home / "service" / "copy.jsonl").write_text(session("s9", 10))
    totals = read()
    assert totals["changes"] == {UNCHANGED: 10, "new": 1}
    assert held(tmp_path) == (10, 100)
    assert totals["flags"]["same session in two files, the longer kept"] == 1


def test_traces_of_sessions_that_are_gone_stay(home: Path, read: Read) -> None:
    read()
    shutil.rmtree(home / "web")
    totals = read()
    assert totals["changes"] == {UNCHANGED: 5, GONE: 5}
    assert (totals["traces"], totals["states"]) == (10, 100)


def test_a_shorter_copy_does_not_replace_what_was_read_before(home: Path, read: Read, tmp_path: Path) -> None:
    read()
    (home / "api" / "cut.jsonl").write_text(session("s7", 3))
    assert read()["flags"] == {"same session in two files, the longer kept": 1}
    assert held(tmp_path) == (10, 100)
    assert read()["flags"] == {"same session in two files, the longer kept": 1}


def test_another_selection_reads_everything_again(home: Path, read: Read) -> None:
    deny = SelectSettings.model_validate({"deny_models": ["*sonnet*"]})
    read()
    anew = "read again: settings or readers changed"
    assert read(select=deny)["changes"] == {anew: 10}
    assert read(select=deny)["changes"] == {UNCHANGED: 10}
    nobody = SelectSettings.model_validate({"until": "2025-01-01"})
    totals = read(select=nobody)
    assert totals["left_out"] == {"not selected: too late": 10}
    assert read(select=nobody) | {"seconds": 0} == totals | {"seconds": 0, "changes": {UNCHANGED: 10}}


def test_an_entry_that_matches_nothing_is_named_in_every_run_and_no_other(home: Path, read: Read) -> None:
    (home / "web" / "s9.jsonl").write_text(session("s9", 4, "/srv/acme/rare"))
    lists = {"projects": ["api", "rare"], "deny_projects": ["alhpa"], "models": ["*opus*", "*sonet*"]}
    select = SelectSettings.model_validate(lists)
    named = ["nothing matches deny_projects = 'alhpa'", "nothing matches models = '*sonet*'"]
    assert read(select=select)["selection"] == named
    again = read(select=select)
    assert (again["changes"], again["selection"]) == ({UNCHANGED: 10}, named)
    drawn = read(select=select, sample=SampleOptions(1, 0))
    assert drawn["selection"] == named
    (home / "web" / "s9.jsonl").unlink()
    other = read(select=SelectSettings.model_validate(lists | {"deny_projects": ["rare", "nobdoy"]}))
    assert other["selection"] == ["nothing matches deny_projects = 'nobdoy'", named[1]]


def test_sessions_that_are_gone_are_selected_again_by_what_is_stored(
    home: Path, read: Read, tmp_path: Path
) -> None:
    read()
    shutil.rmtree(home / "web")
    nobody = SelectSettings.model_validate({"until": "2025-01-01"})
    assert read(select=nobody)["left_out"] == {"not selected: too late": 10}
    asked = IngestOptions(order_of([str(home)]), tmp_path / "w", nobody)
    plan = plan_order(asked, find_watermarks(asked))
    assert Counter(kept.stale for kept in plan.kept) == {True: 5, False: 5}
    work = Workspace.open(tmp_path / "w")
    ingester = ShardIngester(work, None, TraceFilter(lambda trace: None, nobody), 16e6)
    entries, summary = reuse_traces(ingester, plan.kept)
    assert entries == {}
    assert summary.left_out == {"not selected: too late": 10}


def test_a_secret_that_was_not_known_reads_nothing_again_unless_told_to(
    home: Path, read: Read, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read()
    monkeypatch.setenv("SERVICE_TOKEN", "done 3 of s3")
    assert read()["changes"] == {UNCHANGED: 10}
    totals = read(reredact=True)
    assert totals["changes"] == {"read again: settings or readers changed": 10}
    assert totals["redactions"] == {"SECRET": 1}
    assert read(reredact=True)["changes"] == {UNCHANGED: 10}
    monkeypatch.delenv("SERVICE_TOKEN")
    assert read(reredact=True)["changes"] == {UNCHANGED: 10}
    assert b"done 3 of s3" not in (tmp_path / "w" / FILE).read_bytes()


def test_the_marks_hold_no_path_and_nothing_of_what_was_left_out(
    home: Path, read: Read, tmp_path: Path
) -> None:
    (home / "private").mkdir()
    (home / "private" / "diary.jsonl").write_text(session("diary", 3, "/home/me/private"))
    read(select=SelectSettings.model_validate({"deny_projects": ["private"]}))
    data = (tmp_path / "w" / FILE).read_bytes()
    for word in (str(home), "projects", "s3.jsonl", "diary", "private"):
        assert word.encode() not in data
    assert data.count(b'"left_out":{"not selected: denied project":1}') == 1


def test_a_cut_line_reads_one_source_again_and_loses_nothing(home: Path, read: Read, tmp_path: Path) -> None:
    read()
    path = tmp_path / "w" / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    totals = read()
    assert totals["changes"] == {UNCHANGED: 9, "new": 1}
    assert totals["states"] == 100
    assert read()["changes"] == {UNCHANGED: 10}
    path.write_bytes(b"\xff not json\n[1]\n{}\n" + whole)
    assert read()["changes"] == {UNCHANGED: 10}


def test_what_could_not_be_read_is_tried_again_and_what_is_no_session_is_not(home: Path, read: Read) -> None:
    (home / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08 cut")
    (home / "notes.json").write_text('{"a": 1}')
    (home / "other.jsonl").write_text(json.dumps({"type": "summary", "summary": "x", "leafUuid": "y"}))
    first = read()
    spoil(home / "notes.json")
    second = read()
    for totals in (first, second):
        assert totals["traces"] == 10
    plan = _plan(home, home.parent / "w")
    assert Counter(item.reason for item in plan.unread) == {
        "of no known format": 1,
        "damaged: nothing can be read": 1,
    }
    assert plan.strangers == ()
    assert second["changes"] == {UNCHANGED: 11}


def _plan(home: Path, root: Path, shard_mb: float = 16) -> SourcePlan:
    asked = IngestOptions(order_of([str(home)]), root, shard_mb=shard_mb)
    return plan_order(asked, find_watermarks(asked))


def test_a_damaged_shard_of_traces_is_made_again_from_its_sources(
    home: Path, read: Read, tmp_path: Path
) -> None:
    read()
    (home / "web" / "late.jsonl").write_text(session("late", 5))
    read()
    work = Workspace.open(tmp_path / "w")
    first, _ = work.live("traces")
    (work.root / first.path).write_bytes(b"PAR1 gone")
    totals = read()
    assert totals["flags"] == {"damaged shard of traces, its sources are read again": 1}
    assert totals["changes"] == {UNCHANGED: 1, "read again: traces not in the workspace": 10}
    assert sum(t.step_count for t in load_traces(work, sorted(_ids(work)))) == 105


def test_a_session_in_two_files_comes_back_though_one_of_them_is_known(
    home: Path, read: Read, tmp_path: Path
) -> None:
    (home / "web" / "z.jsonl").write_text(session("s0", 10))
    read()
    work = Workspace.open(tmp_path / "w")
    (shard,) = work.live("traces")
    (work.root / shard.path).unlink()
    read()
    assert held(tmp_path) == (10, 100)


def test_what_was_forgotten_is_nowhere_in_the_marks_and_stays_out(
    home: Path, read: Read, tmp_path: Path
) -> None:
    read()
    work = Workspace.open(tmp_path / "w")
    with sole_writer(work):
        found = find_to_forget(work, None, "s6.jsonl", None)
        remove_targets(work, None, found, "s6.jsonl")
    assert b"s6" not in (tmp_path / "w" / FILE).read_bytes()
    for _ in range(2):
        totals = read()
        assert totals["left_out"] == {"forgotten": 1}
        assert totals["changes"] == {UNCHANGED: 9, "new": 1}
        assert held(tmp_path) == (9, 90)
        assert b"s6" not in (tmp_path / "w" / FILE).read_bytes()
    (tmp_path / "w" / "forgotten.json").unlink()
    read()
    assert held(tmp_path) == (10, 100)


def test_a_verdict_that_comes_later_reads_its_runs_again(read: Read, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number in range(2):
        name = f"orchard__seedbank-{number}"
        (runs / name).mkdir(parents=True)
        said = [{"role": role, "content": f"{role} {number}"} for role in ("system", "user", "assistant")]
        run = {
            "info": {"exit_status": "Submitted"},
            "messages": said,
            "trajectory_format": "mini-swe-agent-1",
        }
        (runs / name / f"{name}.traj.json").write_text(json.dumps(run))
    read(runs)
    assert read(runs)["changes"] == {UNCHANGED: 2}
    (runs / "orchard__seedbank-1" / "report.json").write_text(
        json.dumps({"orchard__seedbank-1": {"resolved": True}})
    )
    assert read(runs)["changes"] == {UNCHANGED: 1, "changed": 1}
    work = Workspace.open(tmp_path / "w")
    outcomes = {t.instance_id: t.outcome for t in load_traces(work, sorted(_ids(work)))}
    assert outcomes == {"orchard__seedbank-0": "unknown", "orchard__seedbank-1": "resolved"}
    assert read(runs)["changes"] == {UNCHANGED: 2}


def test_a_subagent_is_read_again_with_the_session_that_called_it(read: Read, tmp_path: Path) -> None:
    home = tmp_path / "agents"
    (home / "s" / "subagents").mkdir(parents=True)
    (home / "s.jsonl").write_text(session("s", 2))
    (home / "s" / "subagents" / "agent-a1.jsonl").write_text(session("s", 2))
    read(home)
    assert read(home)["changes"] == {UNCHANGED: 2}
    (home / "s.jsonl").write_text(session("s", 3))
    assert read(home)["changes"] == {"grew": 1, "changed": 1}


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "instance_id": f"orchard__seedbank-{number}",
            "resolved": number % 2 == 0,
            "messages": [
                {"role": "user", "content": f"fix {number}"},
                {"role": "assistant", "content": "ok"},
            ],
        }
        for number in range(start, start + count)
    ]


@pytest.mark.parametrize("kind", ["x.parquet", "x.jsonl"])
def test_a_large_file_of_rows_is_taken_up_where_a_kill_left_it(read: Read, tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "x.parquet":
        pq.write_table(pa.Table.from_pylist(rows(40)), path, row_group_size=10)
    else:
        path.write_text("".join(json.dumps(row | {"patch": "x" * 110_000}) + "\n" for row in rows(40)))
    size = 1e-9 if kind == "x.parquet" else path.stat().st_size / 4e6
    whole = read(path, shard_mb=size)
    assert (whole["files"], whole["traces"]) == (1, 40)
    journal = tmp_path / "w" / FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 4
    journal.write_bytes(b"".join(lines[:2]))  # killed after the first part
    plan = _plan(path, tmp_path / "w", size)
    assert len(plan.fresh) == 3
    assert [kept.mark.part and kept.mark.part.first for kept in plan.kept] == [0]
    totals = read(path, shard_mb=size)
    assert (totals["traces"], totals["changes"]) == (40, {TAKEN_UP: 1})
    spoil(path)
    totals = read(path, shard_mb=100)  # however it would be cut today
    assert (totals["files"], totals["traces"], totals["changes"]) == (1, 40, {UNCHANGED: 1})


def test_a_dataset_with_one_shard_more_is_read_by_that_shard_alone(
    hub: Any, read: Read, tmp_path: Path
) -> None:
    def shard(number: int) -> dict[str, bytes]:
        path = tmp_path / "shard.parquet"
        pq.write_table(pa.Table.from_pylist(rows(10, 10 * number)), path, row_group_size=5)
        return {f"data/train-{number}.parquet": path.read_bytes()}

    first = hub.put("orchard/runs", shard(0) | shard(1))
    none = tmp_path / "none"
    none.mkdir()
    order = SourceOptions(hub=("orchard/runs",))

    def take() -> dict[str, Any]:
        return ingest_everything(IngestOptions(order, tmp_path / "w"))

    record = take()
    assert record["datasets"] == [f"hf://datasets/orchard/runs@{first}:train"]
    assert (record["totals"]["files"], record["totals"]["traces"]) == (2, 20)
    hub.log.clear()
    assert take()["totals"]["changes"] == {UNCHANGED: 2}
    assert hub.reads(".parquet") == []
    second = hub.put("orchard/runs", shard(2))
    record = take()
    assert record["datasets"] == [f"hf://datasets/orchard/runs@{second}:train"]
    assert record["totals"]["changes"] == {UNCHANGED: 2, "new": 1}
    assert record["totals"]["traces"] == 30
    assert hub.reads("train-0.parquet") == hub.reads("train-1.parquet") == []
    assert len(hub.reads("train-2.parquet")) >= 1
    work = Workspace.open(tmp_path / "w")
    origins = Counter((t.origin or "").partition("/data/")[0] for t in load_traces(work, sorted(_ids(work))))
    assert origins == {f"hf://datasets/orchard/runs@{first}": 20, f"hf://datasets/orchard/runs@{second}": 10}
