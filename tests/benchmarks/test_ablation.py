"""The ablation replaces what it names, everywhere, and puts it back."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracemill.agreement.world import action_effects
from tracemill.evaluate.table.recorded_states import read_table
from tracemill.evaluate.table.rules import VOTERS, product_label_rule
from tracemill.evaluate.table.student_draws import draw_students
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RULE = product_label_rule(VOTERS[0])
READS = {"claude-a": (1, 100), "gemini-a": (3, 98), "gpt-a": (0, 0), "deepseek-a": (0, 0)}
"""By model the lines it reads of the same file; of (0, 0) it lists a folder instead."""


@pytest.fixture
def ablation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("ablation", "ablation_switches"):
        sys.modules.pop(name, None)
    return importlib.import_module("ablation")


def table(path: Path) -> Path:
    actions = {
        model: {
            "tool_calls": [
                {
                    "name": "Read",
                    "arguments": {"file_path": "/a.py", "offset": first, "limit": last - first + 1},
                }
                if last
                else {"name": "LS", "arguments": {"path": f"/{model}"}}
            ],
            "reward": float(bool(last)),
        }
        for model, (first, last) in READS.items()
    }
    asked = [{"role": "user", "content": "Mend the lamp in /a.py."}]
    row = {"state_id": "t/0", "messages": asked, "tools": ["Read", "LS"], "actions": actions}
    path.write_text(json.dumps(row) + "\n")
    return path


def test_every_switch_names_what_exists(ablation: ModuleType) -> None:
    names = [switch.name for switch in ablation.SWITCHES]
    assert len(names) == len(set(names)) > 30
    for switch in ablation.SWITCHES:
        for target in switch.functions:
            assert ablation.original(target)[1], target
        ablation.replace(RULE.policy, **switch.policy)


def test_a_table_judged_again_gives_the_same_and_a_switch_another_number_of_pairs(
    ablation: ModuleType, tmp_path: Path
) -> None:
    path = table(tmp_path / "table.jsonl")
    rows = {row.state_id: row for row in iter_recorded_table(path) if isinstance(row, RecordedState)}
    source = ablation.RecordedTable("table", read_table(path), rows)
    draws = draw_students(source.table, 100, 0)[0]
    assert len(draws) == 4
    whole = source.measure(RULE, False)
    assert whole == source.measure(RULE, True) == {"pairs": 2, "precision": 1.0, "useful": 1.0}
    before = action_effects._plain
    far = ablation.replace(RULE, policy=ablation.replace(RULE.policy, far=False))

    def whole_file(command: Any, name: str, arguments: Any, rule: Any, world: Any) -> Any:
        return before(command, name, {}, rule, world)

    with ablation.replaced({"agreement.world.action_effects._plain": whole_file}):
        assert action_effects._plain is whole_file
        assert source.measure(far, True)["pairs"] == 2
    assert action_effects._plain is before
    assert source.measure(far, True)["pairs"] == 0
