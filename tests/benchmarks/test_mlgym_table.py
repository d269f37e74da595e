"""The table of MLGym: which steps are one state, and the verdicts on runs and steps."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
STATE = json.dumps({"open_file": "n/a", "working_dir": "/work"})
# Model → its first action, what came back, its last score.
RUNS = {
    "gpt4o2": ("ls -l", "-rw-r--r-- 1 agent 681 Mar 21 18:52 a.py", 3.0),
    "gemini-25-pro": ("ls -l", "-rw-r--r-- 1 agent 681 Apr  1 2024 a.py", 1.0),
    "claude-37-sonnet": ("open b.py", "File b.py not found", 3.0),
    "deepseek-r1": ("exit_context", "", 3.0),
}


def write(folder: Path, model: str, action: str, seen: str, score: float) -> None:
    run = folder / f"metagen-{model}__blotto__default__run_0"
    run.mkdir(parents=True)
    steps = [(action, seen), ("submit", "")]
    recorded = {
        "history": [{"role": "system", "content": "Work."}, {"role": "user", "content": "Win."}],
        "trajectory": [
            {"action": f"{line}\n", "observation": back, "thought": "So.", "state": STATE}
            for line, back in steps
        ],
        "info": {"exit_status": "submitted"},
    }
    (run / "blotto.traj").write_text(json.dumps(recorded), encoding="utf-8")
    scores = {"agent": [{"Score": 0.0}, {"Score": score}], "baseline": {"Score": 2.0}}
    (run / "results.json").write_text(json.dumps(scores), encoding="utf-8")


def build(folder: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCHMARKS / "mlgym_table.py"), str(folder), str(out), *options]
    subprocess.run(command, check=True)
    with gzip.open(out, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def test_states_hold_what_models_did_and_both_verdicts(tmp_path: Path) -> None:
    for model, (action, seen, score) in RUNS.items():
        write(tmp_path / "runs", model, action, seen, score)
    whole = tmp_path / "whole.jsonl.gz"
    rows = build(tmp_path / "runs", tmp_path / "by_run.jsonl.gz", "--runs", str(whole))
    first = next(row for row in rows if row["depth"] == 0)
    assert (first["task_id"], first["cwd"], first["harness"]) == ("blotto", "/work", "swe_agent")
    assert {model: done["reward"] for model, done in first["actions"].items()} == {
        "gpt-4o": 1.0,
        "gemini-2.5-pro": 0.0,
        "claude-3.7-sonnet": 1.0,
        "deepseek-r1": 1.0,
    }
    calls = {model: done["tool_calls"][0] for model, done in first["actions"].items()}
    assert calls["claude-3.7-sonnet"] == {"name": "open", "arguments": {"command": "open b.py"}}
    assert calls["gpt-4o"]["name"] == "bash"
    assert calls["deepseek-r1"]["name"] == "submit", "what the harness wrote is no step"
    with gzip.open(whole, "rt", encoding="utf-8") as stream:
        assert {row["model"]: row["resolved"] for row in map(json.loads, stream)}["gemini-2.5-pro/0"] is False
    (again,) = build(tmp_path / "runs", tmp_path / "by_step.jsonl.gz", "--by-step")
    assert {model for model, done in again["actions"].items() if not done["reward"]} == {"claude-3.7-sonnet"}


def test_the_time_of_a_listing_makes_no_other_state(tmp_path: Path) -> None:
    for model in ("gpt4o2", "gemini-25-pro", "claude-37-sonnet"):
        write(tmp_path / "runs", model, "ls -l", f"-rw 1 agent 681 Mar {len(model)} 18:52 a.py", 3.0)
    rows = build(tmp_path / "runs", tmp_path / "table.jsonl.gz")
    assert [(row["depth"], len(row["actions"])) for row in rows] == [(0, 3), (1, 3)]
    assert rows[1]["messages"][-1]["role"] == "tool"
