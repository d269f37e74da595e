"""A session of Codex from its file to pairs: asked, counted, paired."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import tracemill as tm
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.teachers.core.presets import PRESETS

SIMULATED = PRESETS["simulated"].teachers
PLACE = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "codex" / "a_failed_patch_and_its_mend"


def test_a_session_of_codex_is_asked_about_and_paired() -> None:
    (source,) = discover([PLACE])
    (trace,), report = ingest_source(source)
    assert report.error is None
    states = list(trace.states())
    settings = tm.ReplaySettings(stop="off")
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, settings=settings)
    assert len(replies) == 4 * 7
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    rejected = {str(s.step_id): s.student_action for s in states}
    for pair in pairs:
        assert tuple(pair.rejected[0].tool_calls) == rejected[pair.step_id].tool_calls
        assert "system=recorded,tools=stand_in" in pair.presentation
        assert "other" not in (pair.chosen_operation, pair.rejected_operation)


def test_a_failed_patch_and_its_mend_are_a_pair_without_a_teacher() -> None:
    (source,) = discover([PLACE])
    (trace,), _ = ingest_source(source)
    pairs, _ = hindsight_pairs(trace)
    assert [(p.rejected_operation, p.chosen_operation) for p in pairs] == [("edit", "edit")]
    assert "n // 4" in pairs[0].chosen[0].tool_calls[0].arguments


def test_the_command_line_takes_sessions_of_codex(tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "tracemill"
    work = tmp_path / "w"

    def call(*arguments: str) -> str:
        command = [str(script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, cwd=tmp_path)
        return done.stdout

    call("init", "night.toml", "--codex", str(PLACE.parent), "--workspace", str(work), "--yes")
    given = tomllib.loads((tmp_path / "night.toml").read_text())["sources"]["codex"]
    assert [Path(path).name for path in given] == ["codex"]
    ran = json.loads(call("run", "--codex", str(PLACE), "--workspace", str(work), "--yes", "--json"))
    assert (ran["summary"]["states"], ran["summary"]["pairs"]) == (7, {"hindsight: edit over edit": 1})
