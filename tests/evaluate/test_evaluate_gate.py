"""Passes of a gate over steps whose outcome is known: money is kept to, and what is learned pays."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
from tracemill.evaluate.gate.gate_figures import (
    COLD,
    OFFLINE,
    ORACLE,
    GateDraw,
    gate_figure_draws,
    gate_figures,
)
from tracemill.evaluate.gate.gate_pass import StepSelection, run_gate_pass
from tracemill.evaluate.gate.gate_step import (
    SHARES,
    GateStep,
    learn_from_gate_steps,
    oracle_gate_scores,
    recall_area,
)
from tracemill.evaluate.gate.step_facts import read_step_facts
from tracemill.evaluate.report_plot import draw_report_plot
from tracemill.evaluate.table.model_prices import spread_model_prices
from tracemill.evaluate.table.recorded_states import is_tuning, read_table
from tracemill.evaluate.table.rules import VOTERS
from tracemill.evaluate.table.student_draws import draw_students
from tracemill.records.errors import ConfigError
from tracemill.teachers.gate.features import GateStepFeatures


def steps() -> list[GateStep]:
    """400 steps of a hundred tasks; those with the word `ours=good`, a fifth, give a pair: it is certain
    after two answers, and the others end after one that agrees with the student."""
    made: list[GateStep] = []
    for number in range(400):
        good = number % 5 == 0
        words = (f"ours={'good' if good else 'bad'}", f"size={number % 7}")
        facts = GateStepFeatures(f"t{number}:0:0", words)
        costs, agreed = (0.001, 0.009, 0.01), 2 if good else 1
        made.append(GateStep(f"task{number // 4}", facts, costs, costs, 2, agreed, good, good, good, good))
    return made


def test_oracle_and_area_by_hand() -> None:
    # 80 pairs at .01 each, 320 steps at .001: the pairs are .8 of 1.12 USD.
    assert oracle_gate_scores(steps(), (0.35, 0.7, 0.72)) == pytest.approx([0.4875, 0.975, 1.0])
    assert recall_area(SHARES) == pytest.approx(0.5)
    assert recall_area([1.0], [0.5]) == pytest.approx(0.75)


def test_a_cold_gate_learns_within_the_budget_and_its_totals_hold() -> None:
    everything = [replace(step, agreed=2) for step in steps()]  # each costs the same
    cold, chance = (
        run_gate_pass(everything, way, 0.3, 3) for way in (StepSelection(), StepSelection("random"))
    )
    belief = learn_from_gate_steps(everything)
    told = run_gate_pass(everything, StepSelection(belief_of=lambda _: belief), 0.3, 3)
    assert max(cold.spent, chance.spent, told.spent) <= 0.3
    assert told.good > 0.75
    assert cold.good > 1.5 * chance.good
    assert cold == run_gate_pass(everything, StepSelection(), 0.3, 3)
    totals = [run_gate_pass(everything, StepSelection(), 0.4, seed).totals for seed in range(10)]
    assert sum(each.estimate for each in totals) / 10 == pytest.approx(80, rel=0.1)


def test_where_money_is_short_exploration_leaves_most_of_it_to_choose_by() -> None:
    """A twentieth of the steps, asked by all three, would cost .4 of the .224 USD that there are."""
    passes = [run_gate_pass(steps(), StepSelection(), 0.2, seed) for seed in range(10)]
    explored = [sum(count == 3 for count in each.asked.values()) for each in passes]
    assert 0 < sum(explored) / 10 * 0.02 < 1.5 * 0.2 * 0.224
    assert min(each.good for each in passes) > 0.1
    plenty = run_gate_pass(steps(), StepSelection(), 8.0, 1)
    assert sum(count == 3 for count in plenty.asked.values()) == pytest.approx(20, abs=8)


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
    found = read_step_facts(path, read_table(path))
    a, b = (dict(w.split("=", 1) for w in found[0, model].words) for model in "ab")
    assert (a["own"], a["ended"], b["own"], b["ended"]) == ("ok", "resolved", "absent", "no")
    odd = (
        json.dumps({"actions": {"a": {}}})
        + "\n"
        + json.dumps(row | {"actions": row["actions"] | {"c": None}})
    )  # type: ignore[operator]
    odd = odd.replace('"reward": 1.0', '"reward": "1.0"')
    path.write_bytes(b"\xef\xbb\xbf" + odd.encode())  # plain, whatever its name, and with a mark
    assert read_step_facts(path, read_table(path)) == found
    before = json.dumps(b)
    row["actions"]["b"]["reward"] = 1.0  # type: ignore[index]
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    again = dict(w.split("=", 1) for w in read_step_facts(path, read_table(path))[0, "b"].words)
    assert json.dumps(again) == before  # what an action was worth is not known to the gate


def test_figures_stand_between_chance_and_the_oracle() -> None:
    everything = [replace(step, agreed=2) for step in steps()]
    learned_from = {
        side: learn_from_gate_steps([s for s in everything if is_tuning(s.task) == side])
        for side in (True, False)
    }
    found = gate_figures([GateDraw(everything, learned_from)], 2, 20)
    ways = found["ways"]
    assert list(ways) == ["all", "random", COLD, OFFLINE, ORACLE]
    # A fifth of the steps has a pair, each step costs the same: all of them cost 20 %, 90 % of them 18 %.
    assert ways[ORACLE]["recall"] == [0.25, 0.5, 1, 1, 1, 1, 1, 1]
    assert ways[ORACLE]["area"] == pytest.approx(0.05 * 0.125 + 0.05 * 0.375 + 0.1 * 0.75 + 0.8)
    assert ways[ORACLE]["usd_at_recall"] == {"0.9": 0.18, "0.95": 0.19}
    assert (ways["random"]["of_gap"], ways[ORACLE]["of_gap"]) == (0.0, 1.0)
    assert 0.3 < ways[COLD]["of_gap"] < ways[OFFLINE]["of_gap"] < 1
    assert ways[OFFLINE]["recall"][3] > 0.8  # although no half has seen its own steps
    low, high = ways[COLD]["recall_interval"]["0.3"]
    assert low <= ways[COLD]["recall"][3] <= high
    assert 0.5 < found["totals"]["ratio"] < 1.5


def lamp_rows() -> list[dict[str, object]]:
    """240 tasks; at every third `gpt-a` alone takes another word, and the others are right."""
    made: list[dict[str, object]] = []
    for number in range(240):
        wrong = number % 3 == 0
        words = dict.fromkeys(("claude-a", "deepseek-a", "gemini-a"), "beta") | {
            "gpt-a": "x" if wrong else "beta"
        }
        actions = {
            model: {
                "tool_calls": [{"name": "Grep", "arguments": {"pattern": word}}],
                "reward": int(word == "beta"),
                "usage": {"in": 100, "out": 10},
                "observation": "lamp.py" if word == "beta" else "Error: no such file",
            }
            for model, word in words.items()
        }
        said = [{"role": "user", "content": f"Mend lamp {number}."}]
        made.append({"state_id": f"{number}/0", "task_id": str(number), "depth": 0, "messages": said})
        made[-1] |= {"tools": ["Grep", "Read", "Bash"], "actions": actions}
    return made


def test_a_report_has_the_gate_and_what_it_saves(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in lamp_rows()))
    table = read_table(path)
    draws = [draw for draw in draw_students(table, 9, 0)[0] if draw.stronger]
    found = gate_figure_draws(table, read_step_facts(path, table), draws, VOTERS[0], "test")
    assert [draw.student for draw in draws] == ["claude-a", "deepseek-a", "gemini-a", "gpt-a"][-1:]
    assert all(not is_tuning(step.task) for step in found[0].steps)
    order = EvaluateOptions(path, samples=20, rules=("default k=2",))
    report = evaluate_table(order)
    assert [row["rule"] for row in report["rules"]] == ["default k=2"] * 2
    gate = report["gate"]
    assert (gate["of"], gate["counted"]) == ("stronger teachers", "correct pairs")
    assert gate["two families"]["draws"] == 1
    ways = {(w["stop"], w["gate"]): w for w in report["savings"] if not w["cache"]}
    alone, both = ways["off", "voi, half"], ways["tiered", "voi, half"]
    assert alone["usd"] < 0.7 * ways["off", "none"]["usd"]
    assert both["usd"] <= alone["usd"]
    assert 0.2 < both["good_kept"] < 0.8  # half of the money is for 62 of the 80 pairs at most
    without = evaluate_table(replace(order, gate_seeds=0, spread=True))
    assert without["gate"] == {}
    assert {said["prices"] for said in without["table"]["models"].values()} == {"configured"}
    drawn = draw_report_plot(report)
    assert drawn.count("<polyline") == 8  # four ways in two panels
    with pytest.raises(ConfigError, match="rule 'best' is not known"):
        evaluate_table(replace(order, rules=("best",)))


def test_prices_are_spread_from_cheap_to_dear() -> None:
    found = spread_model_prices(["a", "b", "c"])
    assert [str(found[model].prompt_usd) for model in "abc"] == ["0.15", "0.66", "4"]
    assert len({id(price) for price in spread_model_prices(list("abcdefg")).values()}) == 6
