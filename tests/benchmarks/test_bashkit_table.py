"""The table of bashkit: which steps are one state, and the verdicts on runs and steps."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TASK = {"id": "count", "system": "Work.", "prompt": "Count the lines.", "files": {"/a.txt": "one\ntwo\n"}}


def write(folder: Path, model: str, line: str, code: int, score: int, listed: str = "10:00") -> None:
    trace = {
        "messages": [
            {"role": "user", "content": "Count the lines."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "name": "bash", "input": {"commands": line}}],
            },
            {"role": "tool", "content": []},
            {"role": "assistant", "content": [{"type": "text", "text": "2"}]},
        ],
        "tool_calls": [{"stdout": f"2 2024-03-01 {listed} a.txt\n", "stderr": "", "exit_code": code}],
    }
    result = {"task": TASK, "score": {"score": score, "max_score": 1}, "trace": trace}
    folder.mkdir(exist_ok=True)
    recorded = {"model": f"{model}-20260101", "results": [result]}
    (folder / f"eval-{model}.json").write_text(json.dumps(recorded), encoding="utf-8")


def build(folder: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCHMARKS / "bashkit_table.py"), str(folder), str(out), *options]
    subprocess.run(command, check=True)
    with gzip.open(out, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def test_states_hold_what_models_did_and_both_verdicts(tmp_path: Path) -> None:
    write(tmp_path / "results", "one", "ls -l", code=0, score=0)
    write(tmp_path / "results", "two", "ls -l", code=0, score=1, listed="11:30")
    write(tmp_path / "results", "three", "wc -l b.txt", code=1, score=1)
    (first,) = build(tmp_path / "results", tmp_path / "by_run.jsonl.gz")
    assert (first["task_id"], first["depth"], first["cwd"]) == ("count", 0, "/home/eval")
    assert {model: done["reward"] for model, done in first["actions"].items()} == {
        "one": 0.0,
        "two": 1.0,
        "three": 1.0,
    }
    assert first["actions"]["three"]["tool_calls"] == [
        {"name": "bash", "arguments": {"command": "wc -l b.txt"}}
    ]
    (again,) = build(tmp_path / "results", tmp_path / "by_step.jsonl.gz", "--by-step")
    assert {model: done["reward"] for model, done in again["actions"].items()} == {
        "one": 1.0,
        "two": 1.0,
        "three": 0.0,
    }


def test_the_time_of_a_listing_makes_no_other_state(tmp_path: Path) -> None:
    for number, model in enumerate(("one", "two", "three")):
        write(tmp_path / "results", model, "ls -l", code=0, score=1, listed=f"1{number}:00")
    rows = build(tmp_path / "results", tmp_path / "table.jsonl.gz")
    assert [(row["depth"], len(row["actions"])) for row in rows] == [(0, 3), (1, 3)]
