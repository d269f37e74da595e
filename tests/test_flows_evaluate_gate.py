"""Passes of a gate over steps whose outcome is known: money is kept to, and what is learned pays."""

import gzip
import json
from pathlib import Path

import pytest

from flows.evaluate_gate import SHARES, GateStep, area, oracle, pass_over, trained
from flows.evaluation_gate_facts import facts_in
from flows.evaluation_table import read_table
from teachers.gate_features import StepFacts


def steps() -> list[GateStep]:
    """400 steps of a hundred tasks; those with the word `own=ok`, a fifth, give a pair."""
    made: list[GateStep] = []
    for number in range(400):
        good = number % 5 == 0
        words = (f"own={'ok' if good else 'failed'}", f"length={number % 7}")
        facts = StepFacts(f"t{number}:0:0", "t", words, "run", "unknown", False, 0)
        made.append(GateStep(f"task{number // 4}", facts, 0.01, 0.01, 0.02, good, good))
    return made


def test_oracle_and_area_by_hand() -> None:
    assert oracle(steps(), (0.1, 0.2, 0.5)) == pytest.approx([0.5, 1.0, 1.0])
    assert area(SHARES) == pytest.approx(0.5)
    assert area([1.0], [0.5]) == pytest.approx(0.75)


def test_a_cold_gate_learns_within_the_budget_and_its_totals_hold() -> None:
    everything = steps()
    cold, chance = (pass_over(everything, policy, 0.3, 3) for policy in ("voi", "random"))
    told = pass_over(everything, "voi", 0.3, 3, trained(everything))
    assert max(cold.spent, chance.spent, told.spent) <= 0.3
    assert told.good > 0.8
    assert cold.good > 1.5 * chance.good
    assert cold == pass_over(everything, "voi", 0.3, 3)
    totals = [pass_over(everything, "voi", 0.4, seed).totals for seed in range(10)]
    assert sum(each.estimate for each in totals) / 10 == pytest.approx(80, rel=0.1)


def test_facts_of_a_table_end_where_the_row_ends(tmp_path: Path) -> None:
    def act(command: str, observation: str, reward: float, last: bool) -> dict[str, object]:
        call = {"name": "execute_sql", "arguments": {"command": command}}
        return {"tool_calls": [call], "observation": observation, "reward": reward, "last_turn": last}

    row = {
        "state_id": "s/0",
        "task_id": "0",
        "depth": 0,
        "source": "intercode-sql",
        "messages": [{"role": "user", "content": "How many dogs?"}],
        "tools": [{"name": "execute_sql"}],
        "actions": {
            "a": act("SELECT COUNT(*) FROM dogs", "[(3,)]", 1.0, True),
            "b": act("SELECT COUNT(*) FROM dog", "Table 'x.dog' doesn't exist", 0.0, False),
        },
    }
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    found = facts_in(path, read_table(path))
    a, b = (dict(w.split("=", 1) for w in found[0, model].words) for model in "ab")
    assert (a["own"], a["ended"], b["own"], b["ended"]) == ("ok", "resolved", "absent", "no")
    assert (found[0, "a"].trace_id, found[0, "a"].operation) == ("0", "read")
    before = json.dumps(b)
    row["actions"]["b"]["reward"] = 1.0  # type: ignore[index]
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    again = dict(w.split("=", 1) for w in facts_in(path, read_table(path))[0, "b"].words)
    assert json.dumps(again) == before  # what an action was worth is not known to the gate
