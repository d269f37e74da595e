"""OpenHands samples of other people, where the machine has them, against their ground truth."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from whole_records import whole_text

from tracemill.ingesters.discover import discover
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.ingesters.read_source import ingest_source

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
COUNTS = ("steps_main", "steps_side", "steps_synthetic", "tool_calls", "tool_errors", "compactions", "bytes")

if REAL:
    ROOT = Path(REAL) / "openhands"
    TRUTH = [
        t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "openhands"
    ]
    LOGGED = sorted({path.parent.parent for path in ROOT.glob("sdk_v1_conv/*/telemetry*/*.json")})

    def _path(truth: dict[str, Any]) -> Path:
        return ROOT / truth["file"].removesuffix("/events/*")

    def _assert_counts(truth: dict[str, Any], report: dict[str, Any]) -> None:
        for name in COUNTS:
            assert report[name] == truth.get(name, report[name]), name
        assert report["branches_real"] == truth.get("branches", 0)
        assert report["traces"] == (truth.get("instances", 1) if truth["steps_main"] else 0)
        kinds = truth.get("types") or {"completion": 1}
        if "detail" in truth:
            kinds = {}
            for row in truth["detail"]:
                for kind, count in row["types"].items():
                    kinds[kind] = kinds.get(kind, 0) + count
        assert report["records"] == kinds
        assert report["error"] is None

    def test_counts_of_the_command_are_the_ground_truth(tmp_path: Path) -> None:
        script = Path(sys.executable).parent / "tracemill"
        command = [str(script), "ingest", str(ROOT), "--workspace", str(tmp_path / "w"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
        reports = {report["path"]: report for report in json.loads(done.stdout)["files"]}
        assert set(reports) == {str(_path(truth)) for truth in TRUTH}
        for truth in TRUTH:
            _assert_counts(truth, reports[str(_path(truth))])

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_each_source_by_itself(truth: dict[str, Any]) -> None:
        (source,) = discover([_path(truth)])
        traces, report = ingest_source(source)
        _assert_counts(truth, {name: getattr(report, name) for name in report.__slots__})
        assert report.states == sum(t.step_count for t in traces) == truth["steps_main"]
        assert whole_text(ingest_source(source)[0]) == whole_text(traces)
        for row, trace in zip(truth.get("detail", ()), traces, strict=False):
            assert trace.step_count == row["steps"]
            wanted = {True: "resolved", False: "not_resolved", None: "unknown"}
            assert trace.outcome == wanted[row["resolved"] if row["success"] is None else row["success"]]
            assert row["id"] in (None, trace.instance_id)

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_laws_hold(truth: dict[str, Any]) -> None:
        traces, report = ingest_source(discover([_path(truth)])[0])
        for context in (context for trace in traces for context in trace.contexts):
            cuts = [step.cut for step in context.steps]
            assert cuts == sorted(set(cuts))
            assert {context.messages[cut].role for cut in cuts} == {"assistant"}
        for state in (state for trace in traces for state in trace.states()):
            answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
            called = [call.id for m in state.messages for call in m.tool_calls]
            assert not {call.id for call in state.student_action.tool_calls} & set(answered)
            assert len(answered) == len(set(answered))
            if "result without its call" not in report.flags:  # a slice of a session
                assert sorted(map(str, answered)) == sorted(called)

    @pytest.mark.parametrize("folder", LOGGED, ids=lambda folder: folder.name)
    def test_rebuilt_prompts_are_those_logged(folder: Path, tmp_path: Path) -> None:
        shutil.copytree(folder / "events", tmp_path / folder.name / "events")
        shutil.copy(folder / "base_state.json", tmp_path / folder.name)
        (rebuilt,), without = ingest_file(tmp_path / folder.name, "openhands_sdk_v1")
        (merged,), report = ingest_file(folder, "openhands_sdk_v1")
        logs = sorted(folder.glob("telemetry*/*.json"))
        assert report.flags["prompt from its completion log"] == len(logs) == rebuilt.step_count
        assert "prompt from its completion log" not in without.flags
        for path, state, same in zip(logs, rebuilt.states(), merged.states(), strict=True):
            (logged,), _ = ingest_file(path, "openhands_completion_v1")
            (exact,) = logged.states()
            for either in (state, same):
                for mine, theirs in zip(either.messages, exact.messages, strict=True):
                    assert mine.to_wire() == theirs.to_wire()
                assert either.student_action == exact.student_action
                assert [t.name for t in either.context.tools] == [t.name for t in exact.context.tools]
        assert [c.start for c in rebuilt.contexts] == ["start", "tools_changed"]
        assert [(c.start, len(c.steps)) for c in merged.contexts] == [
            (c.start, len(c.steps)) for c in rebuilt.contexts
        ]
