"""The last nights of a workspace, as `tracemill status` tells them from its records."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from console_says import Call, record_of

from tracemill.cli.workspace_status import show_workspace
from tracemill.flows.run_state.recent_runs import recent_runs
from tracemill.flows.run_state.run_records import (
    end_run,
    last_error,
    sole_writer,
    start_run,
    started_run,
)
from tracemill.records.errors import LedgerError, PrivacyError
from tracemill.records.storage.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"


def figures(traces: int, **more: Any) -> dict[str, Any]:
    """The record of a run that knew so many traces."""
    counts = {"traces": traces, "pairs": {"hindsight: edit over edit": traces}, "spent_usd": traces / 100}
    return {"cap_usd": 1.0, "summary": counts | more.pop("counts", {}), **more}


def night(work: Workspace, record: dict[str, Any], command: str = "run") -> str:
    run = start_run(work, "f", command, new_run=True)
    end_run(work, run.run_id, record)
    return run.run_id


def test_each_night_says_what_was_new_and_how_it_ended(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    written = {"path": "p", "version": "2026.11.20", "created": True}
    night(work, figures(5, release=written))
    night(work, figures(7, release=written | {"created": False}))
    night(work, figures(7, at_cap=1, release=written | {"path": None, "version": None}))
    night(work, figures(9, unfinished=True, counts={"outages": {"glm": "no answer"}}))
    night(work, {"totals": {}}, "ingest")
    night(work, figures(9, training={"failed": "no room"}), "harvest")
    night(work, {"release": "p", "version": "2026.11.21"}, "release")
    start_run(work, "f", new_run=True)
    runs = recent_runs(work, 10)
    assert [(run.new_traces, run.pairs, run.spent_usd) for run in runs[1:]] == [
        (0, 9, 0.09),
        (2, 9, 0.09),
        (0, 7, 0.07),
        (2, 7, 0.07),
        (5, 5, 0.05),
    ]
    assert [run.release for run in runs] == ["none", "2026.11.21", "none", "none", "unchanged", "2026.11.20"]
    assert [run.ended for run in runs] == [
        "interrupted: the next run goes on with it",
        "finished, training failed",
        "stopped early, 1 of the teachers given up",
        "at its cap",
        "finished",
        "finished",
    ]
    assert runs[0].seconds is None
    assert all(run.seconds is not None and 0 <= run.seconds < 60 for run in runs[1:])
    assert recent_runs(work, 2) == runs[:2]
    assert recent_runs(work, 0) == []
    with sole_writer(work):
        assert recent_runs(work, 1)[0].ended == "running"


def test_a_release_made_after_a_harvest_counts_for_it_as_its_record_says(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    same = {"path": "p", "version": "2026.11.20", "created": False}
    night(work, figures(5, release=same), "harvest")
    night(work, {"release": "p", "version": "2026.11.20"}, "release")
    night(work, figures(5, release=None), "harvest")
    night(work, {"release": "p", "version": "2026.11.21"}, "release")
    assert [run.release for run in recent_runs(work, 5)] == ["2026.11.21", "unchanged"]


def test_a_resumed_run_took_as_long_as_its_last_part(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    path = work.run_dir(night(work, figures(1))) / "run.json"
    record = json.loads(path.read_text())
    times = {"started_at": "2026-11-22T03:00:00Z", "ended_at": "2026-11-23T03:05:00Z"}
    path.write_text(json.dumps(record | times))
    assert recent_runs(work, 1)[0].seconds == 24 * 3600 + 300
    path.write_text(json.dumps(record | times | {"resumed_at": "2026-11-23T03:00:00Z"}))
    assert recent_runs(work, 1)[0].seconds == 300


def test_an_error_is_in_the_record_until_the_run_goes_on(tmp_path: Path) -> None:
    """Its first line alone: the others may show what stands around a finding."""
    work = Workspace.open(tmp_path / "w")
    refusal = PrivacyError("the release is refused: 1 private value", "none", "allow it:\n  excerpt")
    with pytest.raises(PrivacyError), started_run(work, "f"):
        raise refusal
    [run] = recent_runs(work, 5)
    assert run.ended == "refused"
    message = "the release is refused: 1 private value; expected none; allow it"
    assert last_error(work) == (
        f"run {run.run_id}",
        {"type": "PrivacyError", "refused": True, "message": message},
    )
    with started_run(work, "f") as again:
        assert (again.run_id, again.resumed) == (run.run_id, True)
        assert last_error(work) is None
    with pytest.raises(LedgerError), started_run(work, "f"):
        raise LedgerError("no ledger")
    assert recent_runs(work, 1)[0].ended == "stopped by an error"


def test_status_tells_a_refusal_an_interruption_and_a_run_that_goes_on_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Workspace.open(tmp_path / "w")
    with pytest.raises(PrivacyError), started_run(work, "f") as run:
        raise PrivacyError("the release is refused", do="allow it:\n  excerpt")
    name = f"run {run.run_id}"

    def first() -> str:
        show_workspace(work.root, 0, None, 0, False)
        return capsys.readouterr().out.splitlines()[0]

    assert first() == f"tracemill {name} was refused: the release is refused; allow it"
    start_run(work, "f")
    assert first() == f"{name} was interrupted; the same command resumes with it"
    with sole_writer(work):
        assert first() == f"{name} goes on"


def test_a_broken_record_is_left_out(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    first, second = night(work, figures(1)), night(work, figures(2))
    (work.run_dir(second) / "run.json").write_text("{")
    assert [run.run_id for run in recent_runs(work, 5)] == [first]


@pytest.mark.slow
@pytest.mark.long
def test_status_shows_the_nights_of_real_runs(tracemill: Call, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(EXAMPLES, home)
    kept = sorted(home.rglob("*.jsonl"))[0]
    late = kept.rename(tmp_path / kept.name)
    flags = ("--path", home, "-w", tmp_path / "w", "--json")
    first = record_of(tracemill("run", *flags))
    late.rename(kept)
    second = record_of(tracemill("run", *flags))
    nights = record_of(tracemill("status", "-w", tmp_path / "w", "--json"))["nights"]
    assert [each["run_id"] for each in nights] == [second["run_id"], first["run_id"]]
    traces = [record["summary"]["traces"] for record in (second, first)]
    assert [each["new_traces"] for each in nights] == [traces[0] - traces[1], traces[1]]
    assert nights[0]["new_traces"] > 0
    assert nights[0]["release"] == second["release"]["version"]
    said = tracemill("status", "-w", tmp_path / "w", "--nights", 1).stdout
    rows = [line.split() for line in said.partition("last runs")[2].splitlines()]
    began = nights[0]["started_at"].replace("T", " ")[:16].split()
    [shown] = [row for row in rows if row[:2] == began]
    assert shown[3:] == [
        str(nights[0]["new_traces"]),
        str(nights[0]["pairs"]),
        "0.0000",
        nights[0]["release"],
        "finished",
    ]
    assert "last runs" not in tracemill("status", "-w", tmp_path / "w", "--nights", 0).stdout
    assert json.loads(tracemill("status", "-w", tmp_path / "w", "--nights", 1, "--json").stdout)["nights"]
