"""The page of label figures: what a report says, row by row."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
WORTH = {"gpt-a": 0.2, "claude-a": 1.0, "gemini-a": 1.0, "deepseek-a": 0.1}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("label_page", "label_tables"):
        sys.modules.pop(name, None)
    return importlib.import_module("label_tables")


def table(path: Path, tasks: int) -> Path:
    """Tasks at which two models of four search for the same, which is worth the most."""
    lines: list[str] = []
    for number in range(tasks):
        actions = {
            model: {
                "tool_calls": [
                    {"name": "Grep", "arguments": {"pattern": "beta" if worth == 1 else f"{model}-x"}}
                ],
                "reward": worth,
            }
            for model, worth in WORTH.items()
        }
        said = [{"role": "user", "content": f"Mend lamp {number}."}]
        row = {"state_id": f"t{number}/0", "task_id": f"t{number}", "messages": said, "tools": ["Grep"]}
        lines.append(json.dumps(row | {"depth": 0, "actions": actions}))
    path.write_text("\n".join(lines))
    return path


def test_the_page_has_what_the_reports_say(tables: ModuleType, tmp_path: Path) -> None:
    source = table(tmp_path / "lamps.jsonl", 40)
    plain = evaluate_table(EvaluateOptions(source, samples=10, gate_seeds=0))
    chosen = evaluate_table(EvaluateOptions(source, samples=10, rules=("default k=2",), half="test"))
    run = tables.Run("Lamps", "lamps.jsonl", ("--gate-seeds", "0", "--rule", "default k=2"))
    text = tables.page([(run, plain), (tables.Run("Lamps, gate", "lamps.jsonl", ()), chosen)])
    assert '`tracemill evaluate lamps.jsonl --gate-seeds 0 --rule "default k=2"`' in text
    assert "40 states, 40 tasks, 160 actions of 4 models; 4 of 4 draws, 1 with teachers" in text
    # Of the weakest student all 40 steps are pairs, and all of them are good; so are those of the next.
    every = "1.000 | 1.000 | 1.000 to 1.000 | 1.000 | 1.000 | 1.000 to 1.000 | 1.000, 1.000"
    assert f"| stronger | two families | default k=2 | 1 | 40 | {every} of 40 |" in text
    assert "| off | none | 480 | 1.00 | 1.000 | 1.000 |" in text
    assert "| search | search | 80 | 80 | 0 | 0 | 0 |" in text
    gate = chosen["gate"]["two families"]
    oracle = gate["ways"]["oracle"]
    number = importlib.import_module("label_page").number
    recalls = " | ".join(number(value, 2) for value in oracle["recall"][1:])
    row = f"| two families | {gate['draws']} | oracle | {recalls} | {number(oracle['area'])} | 1.00 |"
    assert row in text


def test_a_report_that_is_there_is_not_made_again(tables: ModuleType, tmp_path: Path) -> None:
    run = tables.Run("SQL, gate, one price", "none.jsonl.gz", ())
    assert run.key == "sql-gate-one_price"
    (tmp_path / run.key).mkdir()
    (tmp_path / run.key / "none.json").write_text('{"schema": 3}')
    assert tables.report(run, tmp_path, tmp_path) == {"schema": 3}


def test_the_runs_take_every_table_and_name_each_once(tables: ModuleType) -> None:
    made = tables.runs(Path("b.jsonl.gz"))
    assert len({run.key for run in made}) == len(made) == 14
    assert len(tables.runs(None)) == 12
