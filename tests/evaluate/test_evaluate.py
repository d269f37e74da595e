"""`tracemill evaluate` on a table written for it, each count worked out by hand, and on recorded tables."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from console_says import Call

from tracemill.agreement.voting.labels import label_of
from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
from tracemill.evaluate.table.draw_steps import DrawStepBuilder
from tracemill.evaluate.table.model_prices import read_model_prices
from tracemill.evaluate.table.recorded_states import is_recorded_in_half, read_table
from tracemill.evaluate.table.rules import list_label_rules
from tracemill.evaluate.table.scores import PairTally, quantile, quantiles, resample_rule_tasks
from tracemill.evaluate.table.scores import figures as figures_of
from tracemill.evaluate.table.student_draws import TableVotes, draw_students
from tracemill.flows.release.report_facts import quantile as seconds_at
from tracemill.records.errors import ConfigError, SourceError, TeacherError
from tracemill.teachers.core.teacher_settings import PriceSettings

TABLES = os.environ.get("TRACEMILL_MULTITEACHER")
PRICES = {"deepseek-a": 1, "claude-a": 2, "gemini-a": 10, "gpt-a": 20}
COSTS = {model: PriceSettings.model_validate({"prompt_usd": usd}) for model, usd in PRICES.items()}
# By task what each model searches for, and what that is worth.
DONE: dict[str, dict[str, tuple[str, float | None]]] = {
    "t1": {
        "gpt-a": ("alpha", 0),
        "claude-a": ("beta", 1),
        "gemini-a": ("beta", 1),
        "deepseek-a": ("gamma", 0),
    },
    "t2": {
        "gpt-a": ("alpha", 1),
        "claude-a": ("beta", 0),
        "gemini-a": ("beta", 0),
        "deepseek-a": ("beta", 0),
    },
    "t3": {
        "gpt-a": ("alpha", 0.5),
        "claude-a": ("beta", 0.5),
        "gemini-a": ("beta", 0.5),
        "deepseek-a": ("delta", None),
    },
}


def grep(pattern: str, reward: float | None = None, tokens: int = 1_000_000, **more: Any) -> dict[str, Any]:
    call = {"name": "Grep", "arguments": {"pattern": pattern} | more}
    given: dict[str, Any] = {"tool_calls": [call], "usage": {"in": tokens, "out": 1}}
    return given if reward is None else given | {"reward": reward}


def row(task: str, actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Mend the lamp of {task}."}]
    base = {"state_id": f"{task}/0", "task_id": task, "depth": 0, "messages": messages}
    return base | {"tools": ["Grep", "Read", "Bash"], "actions": actions} | more


def rows() -> list[dict[str, Any]]:
    found = [row(task, {m: grep(*given) for m, given in done.items()}) for task, done in DONE.items()]
    # The same search, spelt otherwise.
    found[0]["actions"]["gemini-a"] = grep("beta", 1, path=None)
    return found


def write(path: Path, lines: list[Any]) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "lamps.jsonl", rows())


def figures(report: dict[str, Any], rule: str, draws: str = "all draws") -> dict[str, Any]:
    by_rule = {(row["rule"], row["voters"]): row for row in report["rules"]}
    return by_rule[rule, "two families"][draws]


def scores(found: dict[str, Any]) -> tuple[int, int, int, int]:
    good, tie, bad, unscored = (found[f"all_{name}"] for name in ("good", "tie", "bad", "unscored"))
    return good, tie, bad, unscored


def test_pairs_are_counted_by_rule_and_draw(table: Path) -> None:
    report = evaluate_table(EvaluateOptions(table, samples=50))
    assert report["draws"] == {"all": 4, "taken": 4, "stronger": 1, "two_families": 4}
    # gpt-a: good (t1), bad (t2), tie (t3); deepseek-a: good (t1), unscored (t3); the others: none.
    found = figures(report, "default k=2")
    assert scores(found) == (2, 1, 1, 1)
    # Medians lie halfway between the middle two: of .5 and 1, of a third and 1, of 0, 0, 2 and 3 pairs.
    assert (found["precision"], found["useful"], found["pairs"]) == (0.75, 0.6667, 1.0)
    assert (found["precision_p10"], found["useful_p10"], found["pairs_p10"]) == (0.55, 0.4, 0.0)
    # The only draw whose teachers are all as strong: the student is deepseek-a.
    strong = figures(report, "default k=2", "stronger teachers")
    assert (strong["draws"], strong["pairs"], strong["precision"]) == (1, 2.0, 1.0)
    assert scores(strong) == (1, 0, 0, 1)
    # Three votes are for one action only at t2; spelt otherwise, the votes of t1 are not exactly the same.
    assert scores(figures(report, "default k=3")) == (0, 0, 1, 0)
    assert scores(figures(report, "exact k=2")) == (0, 1, 1, 1)
    assert scores(figures(report, "folded k=2")) == (0, 1, 1, 1)
    assert scores(figures(report, "canonical k=2")) == (2, 1, 1, 1)
    cells = report["pairs_by_operation"]["two families"]
    assert cells == [
        {"chosen": "search", "rejected": "search", "pairs": 5, "good": 2, "tie": 1, "bad": 1, "unscored": 1}
    ]


def test_percentiles_lie_between_values_and_pass_over_what_is_unknown() -> None:
    held = np.array([[0.956, np.nan], [0.444, 4.0], [0.926, np.nan], [0.826, 2.0]])
    assert quantile(held, 0.5).tolist() == pytest.approx([0.876, 3.0])
    assert quantile(held, 0.1).tolist() == pytest.approx([0.444 + 0.3 * 0.382, 2.2])
    assert np.isnan(quantile(np.array([[np.nan], [np.nan]]), 0.5)).all()
    assert quantiles([3, 1, 2], (0, 0.1, 0.5, 1)) == pytest.approx([1, 1.2, 2, 3])
    waited = [1.0, 2.0, 4.0, 9.0]
    assert [seconds_at(waited, share) for share in (0, 0.1, 0.5, 1)] == pytest.approx([1, 1.3, 3, 9])


def test_savings_are_those_of_asking_cheapest_first(table: Path) -> None:
    report = evaluate_table(EvaluateOptions(table, samples=50, prices=COSTS))
    ways = {(way["stop"], way["cache"]): way for way in report["savings"] if way["gate"] == "none"}
    found = {key: (way["calls"], way["usd"], way["pairs"], way["good"]) for key, way in ways.items()}
    assert found["off", False] == (36, 297.0, 5, 2)
    assert found["lossless", False] == (30, 187.0, 5, 2)
    assert found["tiered", False] == (27, 165.0, 5, 2)
    assert ways["tiered", False]["cheaper"] == 1.8
    assert ways["tiered", False]["good_kept"] == 1.0
    # One step a task: nothing is read from a cache.
    assert found["off", True] == found["off", False]


def test_a_cache_is_read_where_a_prompt_goes_on(tmp_path: Path) -> None:
    first = row("t1", {model: grep("alpha") for model in PRICES})
    said = {"role": "assistant", "tool_calls": [{"name": "Grep", "arguments": {"pattern": "alpha"}}]}
    longer = [*first["messages"], said, {"role": "tool", "content": "lamp.py"}]
    actions = {model: grep("beta", tokens=2_000_000) for model in PRICES}
    second = row("t1", actions, state_id="t1/1", depth=1, messages=longer)
    other = row("t2", actions)
    price = PriceSettings.model_validate({"prompt_usd": 1, "cache_read_usd": "0.1"})
    table = read_table(
        write(tmp_path / "t.jsonl", [first, second, other]), given=dict.fromkeys(PRICES, price)
    )
    asker = DrawStepBuilder(TableVotes(table), list_label_rules()[4])
    steps = asker.steps(draw_students(table, 10, 0)[0][0])
    assert [step.depth for step in steps] == [0, 1, 0]
    assert [step.usd() for step in steps] == [3.0, 6.0, 6.0]
    assert [round(step.usd(cached=True), 6) for step in steps] == [3.0, 3.3, 6.0]


def test_agreement_is_by_family_and_rung(table: Path) -> None:
    found = evaluate_table(EvaluateOptions(table, samples=10))["agreement"]
    assert found[0] == {
        "one": "two families",
        "other": "",
        "meetings": 18,
        "exact": round(4 / 18, 4),
        "canonical": round(5 / 18, 4),
        "effect": round(5 / 18, 4),
        "intent": round(5 / 18, 4),
        "class": 1.0,
    }
    by_family = {(each["one"], each["other"]): each["exact"] for each in found[1:]}
    assert by_family["anthropic", "google"] == 0.6667


def test_what_is_broken_is_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    lame = row("t9", {"gpt-a": {"tool_calls": 5}, "claude-a": grep("x")})
    lines = [
        "no json",
        {"state_id": "s"},
        row("t8", {}),
        row("t7", {"gpt-a": grep("x")}, messages=[{}]),
        lame,
        7,
        ["state_id"],
        None,
        rows()[1],
    ]
    found = read_table(write(tmp_path / "t.jsonl", [*rows(), *lines]))
    assert [state.task for state in found.states] == ["t1", "t2", "t3", "t9"]
    assert found.broken == {
        "no JSON": 1,
        "no messages": 1,
        "no answer that can be read": 1,
        "'role' is missing, or not in a prefix file beside the table": 1,
        "answer of gpt-a": 1,
        "no object": 3,
        "state_id of an earlier line": 1,
    }
    assert found.examples[:3] == (
        "line 4: no JSON",
        "line 5: no messages",
        "line 7: 'role' is missing, or not in a prefix file beside the table",
    )
    with pytest.raises(SourceError, match="no usable state"):
        read_table(write(tmp_path / "none.jsonl", lines[:3]))


def test_arguments_nested_too_deeply_are_an_action_all_the_same(tmp_path: Path) -> None:
    deep = {"tool_calls": [{"name": "Grep", "arguments": '{"pattern":' + "[" * 50_000}]}
    found = read_table(write(tmp_path / "t.jsonl", [row("t1", {"gpt-a": deep, "claude-a": grep("x")})]))
    assert (len(found.states), found.broken) == (1, {})


def test_names_that_the_table_does_not_know_are_told(table: Path) -> None:
    order = EvaluateOptions(table, students=("gpt-a", "gpt-b"), prices={"glm-a": PriceSettings()}, samples=10)
    found = evaluate_table(order)["table"]["broken"]
    assert found == {"model glm-a that no state has": 1, "model gpt-b that no state has": 1}
    with pytest.raises(ConfigError, match="harness 'zorg' is not known"):
        evaluate_table(EvaluateOptions(table, harness="zorg"))


def test_a_damaged_gzip_file_is_one_line(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json.dumps(rows()).encode() * 50))
    packed[30:60] = b"\0" * 30
    (tmp_path / "t.jsonl.gz").write_bytes(packed)
    with pytest.raises(TeacherError, match="cannot be read"):
        read_table(tmp_path / "t.jsonl.gz")


def test_a_table_may_lack_rewards_tools_and_depths(tmp_path: Path) -> None:
    bare = [{name: each[name] for name in ("state_id", "messages", "actions")} for each in rows()]
    for each in bare:
        each["actions"] = {m: {"tool_calls": a["tool_calls"]} for m, a in each["actions"].items()}
        each["actions"]["gpt-a"] = {"text": "The lamp is mended."}
    report = evaluate_table(EvaluateOptions(write(tmp_path / "t.jsonl", bare), samples=10))
    assert report["table"]["rewarded"] == 0
    assert report["table"]["tokens_estimated"] == 12
    found = figures(report, "default k=2")
    assert (found["precision"], found["useful"], scores(found)) == (None, None, (0, 0, 0, 3))
    rejected = {row["rejected"]: row["pairs"] for row in report["pairs_by_operation"]["two families"]}
    assert rejected["finish"] == 1  # of three, where not all teachers agree against the text


def test_correct_stands_for_a_reward(tmp_path: Path) -> None:
    judged = rows()
    for each in judged:
        for action in each["actions"].values():
            if (reward := action.pop("reward", None)) is not None:
                action["correct"] = reward == 1
    report = evaluate_table(EvaluateOptions(write(tmp_path / "t.jsonl", judged), samples=10))
    assert scores(figures(report, "default k=2")) == (2, 1, 1, 1)


def test_the_harness_is_found_and_its_command_lines_are_calls(tmp_path: Path) -> None:
    line = {"tool_calls": [{"name": "open", "arguments": {"command": "open src/lamp.py 12"}}]}
    told = [{"role": "user", "content": "Mend src/lamp.py\n(Current directory: /lamps)\nbash-$"}]
    swe = row("t1", {"gpt-a": line}, source="a-sweagent-run", messages=told, tools=["open", "bash"])
    sql = row("t2", {"gpt-a": grep("x")}, tools=["execute_sql"])
    found = read_table(write(tmp_path / "t.jsonl", [swe, rows()[2], sql]))
    assert [state.harness for state in found.states] == ["swe_agent", "claude_code", "generic"]
    opened = found.states[0].acted["gpt-a"].keys
    assert opened.action_class == "read"
    assert "/lamps/src/lamp.py" in str(opened.effects[0].effect)


def test_a_text_that_the_only_tool_answers_is_a_call_of_it(tmp_path: Path) -> None:
    told = [
        {"role": "user", "content": "How many lamps?"},
        {"role": "assistant", "content": "SELECT 1"},
        {"role": "tool", "content": "1"},
    ]
    action = {"tool_calls": [{"name": "execute_sql", "arguments": {"command": "SELECT 2"}}]}
    given = row("t1", {"gpt-a": action}, messages=told, tools=[{"name": "execute_sql"}])
    state = read_table(write(tmp_path / "t.jsonl", [given])).states[0]
    call = state.messages[1].tool_calls[0]
    assert (call.name, call.parsed()) == ("execute_sql", {"command": "SELECT 1"})
    assert state.messages[2].tool_call_id == call.id


def test_halves_part_the_tasks_and_a_report_is_the_same_again(table: Path) -> None:
    order = EvaluateOptions(table, samples=20, seed=3)
    halves = [evaluate_table(replace(order, half=half))["table"]["tasks"] for half in ("tune", "test")]
    assert sum(halves) == 3
    assert {is_recorded_in_half(task, "tune") for task in DONE} == {True, False}
    assert json.dumps(evaluate_table(order)) == json.dumps(evaluate_table(order))


def test_draws_are_restricted_and_sampled(table: Path) -> None:
    read = read_table(table)
    assert [d.student for d in draw_students(read, 10, 0, students=["gpt-a"])[0]] == ["gpt-a"]
    assert draw_students(read, 10, 0, teachers=["gpt-a", "claude-a"]) == ([], 0)
    some, total = draw_students(read, 2, 5)
    assert (len(some), total) == (2, 4)
    assert some == draw_students(read, 2, 5)[0]


def test_prices_are_read_and_wrong_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('["gpt-a"]\nprompt_usd = 3\n')
    assert read_model_prices(path)["gpt-a"].prompt_usd == 3
    path.write_text('["gpt-a"]\nprompt = 3\n')
    with pytest.raises(ConfigError, match="not a list of prices"):
        read_model_prices(path)


def test_the_command_writes_a_report_and_a_plot(console: Call, table: Path, tmp_path: Path) -> None:
    done = console("evaluate", table, "--out", tmp_path / "out", "--samples", "10", "--gate-seeds", "0")
    assert done.returncode == 0, done.stderr
    assert "default k=2" in done.stdout
    assert json.loads((tmp_path / "out" / "lamps.json").read_text())["table"]["states"] == 3
    assert (tmp_path / "out" / "lamps.svg").read_text().count("<circle") >= 10
    missing = console("evaluate", tmp_path / "none.jsonl", "--out", tmp_path / "out")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


@pytest.mark.skipif(not TABLES, reason="TRACEMILL_MULTITEACHER names no folder")
def test_recorded_tables_hold_what_was_measured_on_them(tmp_path: Path) -> None:
    path = Path(TABLES or "") / "intercode_bash.jsonl.gz"
    table = read_table(path)
    assert (len(table.states), len(table.tasks), table.broken.total()) == (253, 200, 0)
    draws = [draw for draw in draw_students(table, 140, 0)[0] if draw.stronger]
    folded = next(rule for rule in list_label_rules() if rule.key == "folded k=2, any family")
    tally = PairTally(TableVotes(table), [folded], len(draws))
    for draw in draws:
        tally.add(draw)
    found = figures_of(tally.tallied[0].counts, resample_rule_tasks(200, 10, 0))
    assert (found["draws"], found["precision"], found["useful"], found["pairs"]) == (35, 0.8571, 0.5263, 27)
    with gzip.open(path, "rt") as lines:
        some = [json.loads(line) for line in lines][:60]
    read = read_table(write(tmp_path / "some.jsonl", some))
    poll = TableVotes(read)
    seen = 0
    for draw in draw_students(read, 8, 1)[0]:
        for rule in list_label_rules():
            for panel in poll.panels(draw, rule):
                if len(panel.voters) >= rule.policy.threshold:
                    seen += 1
                    whole = label_of(panel.votes, panel.own, rule.policy)
                    assert panel.label(rule).chosen == whole.chosen
    assert seen > 1_000
