"""`tracemill evaluate --runs`: pairs of whole runs beside those of teachers, as one dataset under caps."""

import json
from pathlib import Path
from typing import Any

import pytest
from console_says import Call

from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
from tracemill.evaluate.table.pair_kinds import pair_kind_shares, pair_kinds_from_teachers
from tracemill.evaluate.table.whole_runs import NO_RUN, read_runs
from tracemill.records.errors import SourceError

MODELS = ("gpt-a", "claude-a", "gemini-a", "deepseek-a")
REFUSED = "Your proposed edit has introduced new syntax error(s). Please read this error message carefully."
SHOWN = "[File: /lamps/lamp.py (2 lines total)]\n1:def on():\n2:    pass"


def step(line: str, back: str = SHOWN, thought: str = "So.") -> dict[str, Any]:
    call = {"name": line.split()[0], "arguments": {"command": line}}
    state = json.dumps({"open_file": "/lamps/lamp.py", "working_dir": "/lamps"})
    return {"call": call, "thought": thought, "observation": back, "state": state}


def run(task: str, model: str, resolved: bool, *steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": task,
        "model": model,
        "resolved": resolved,
        "task": "Mend lamp.py.",
        "steps": [*steps],
    }


def edit(text: str) -> str:
    return f"edit 2:2\n{text}\nend_of_edit"


BROKEN = step(edit("    return lit("), REFUSED)
MENDED = step(edit("    return lit()"))
OPENED = step("open lamp.py")
RUNS = [
    run("o__lamps-1", "gpt-a", False, OPENED, BROKEN, MENDED, step("submit", "diff")),
    run("o__lamps-1", "claude-a", True, OPENED, MENDED, step("submit", "diff")),
    run("o__lamps-1", "gemini-a", False, OPENED, step("search_dir lit", "Found 1 matches")),
    {"instance_id": "o__lamps-2"},
]


def state(task: str, lines: dict[str, str]) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Mend the lamp of {task}.\n(Current directory: /lamps)\nbash-$"}]
    actions = {
        model: {"tool_calls": [{"name": line.split()[0], "arguments": {"command": line}}]}
        for model, line in lines.items()
    }
    names = ["open", "bash", "search_dir", "find_file", "edit", "submit"]
    return {
        "state_id": task,
        "task_id": task,
        "source": "a-sweagent-run",
        "messages": messages,
        "tools": names,
        "actions": actions,
    }


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write(tmp_path / "runs.jsonl", RUNS)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    first = dict.fromkeys(MODELS, "search_dir lamp")
    return write(tmp_path / "lamps.jsonl", [state("o__lamps-1", first | {"gpt-a": "find_file lamp.py"})])


def test_runs_give_the_pairs_that_an_ingested_run_gives(runs: Path) -> None:
    found = read_runs(runs, "swe_agent")
    assert [len(trace.contexts[0].steps) for trace in found.traces] == [4, 3, 2]
    assert found.broken == {NO_RUN: 1}
    [failed] = [m for m in found.traces[0].contexts[0].messages if m.is_error]
    assert failed.content == REFUSED
    pairs, reasons = found.pairs()
    told = {(p.label_source, p.chosen_operation, p.rejected_operation): p for p in pairs}
    assert set(told) == {("hindsight", "edit", "edit"), ("siblings", "edit", "search")}
    mended = told["hindsight", "edit", "edit"].chosen[0].tool_calls[0].parsed() or {}
    assert mended["replacement_text"] == "    return lit()"
    assert told["siblings", "edit", "search"].repository == "o__lamps"
    assert reasons == {"a resolved run did the same": 1}


def test_a_step_counts_once_however_many_draws_it_is_in(table: Path, runs: Path) -> None:
    found = evaluate_table(EvaluateOptions(table, samples=10, gate_seeds=0, runs=runs))
    kinds = found["kinds"]
    assert (kinds["runs"], kinds["broken"]) == (3, {NO_RUN: 1})
    before = kinds["any family"]["before"]
    assert {name: row["pairs"] for name, row in before.items()} == {
        "hindsight": 1,
        "siblings": 1,
        "teachers": 1,
        "all": 3,
    }
    assert before["all"] == {
        "pairs": 3,
        "deciding": 0.6667,
        "navigation": 0.3333,
        "search": 0.3333,
        "edit": 0.6667,
    }
    assert kinds["any family"]["after"] == before  # caps leave so few rows alone
    assert sum(kinds["any family"]["caps"].values()) == 0
    alone = evaluate_table(EvaluateOptions(table, samples=10, gate_seeds=0))["kinds"]
    assert set(alone["any family"]["before"]) == {"teachers", "all"}


def test_nothing_has_no_shares() -> None:
    assert pair_kind_shares(pair_kinds_from_teachers([], 2)) == {
        "pairs": 0,
        "deciding": None,
        "navigation": None,
    }


def test_a_file_without_runs_is_refused(tmp_path: Path) -> None:
    none = write(tmp_path / "none.jsonl", [{"a": 1}])
    with pytest.raises(SourceError, match="has no run"):
        read_runs(none, "swe_agent")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(SourceError, match="cannot be read"):
        read_runs(cut, "swe_agent")


def test_the_shares_are_printed(table: Path, runs: Path, tmp_path: Path, console: Call) -> None:
    done = console("evaluate", table, "--out", tmp_path / "o", "--gate-seeds", "0", "--runs", runs)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["hindsight", "before", "caps", "1", "1.000", "0.000", "1.000", "0.000"] in lines
    assert ["all", "after", "caps", "3", "0.667", "0.333", "0.667", "0.333"] in lines
