"""`tracemill evaluate` on tables that hold what JSON does not have, and figures beyond any use."""

import codecs
import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from console_says import Call
from rich.console import Console

from tracemill.cli.evaluate import evaluate, evaluate_output_names
from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
from tracemill.evaluate.report_output import print_report
from tracemill.evaluate.table.recorded_states import read_table
from tracemill.teachers.core.teacher_settings import PriceSettings


def grep(pattern: str, reward: float | None = None, **more: Any) -> dict[str, Any]:
    call = {"name": "Grep", "arguments": {"pattern": pattern} | more}
    given: dict[str, Any] = {"tool_calls": [call], "usage": {"in": 1_000, "out": 1}}
    return given if reward is None else given | {"reward": reward}


def row(task: str, actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Mend the lamp of {task}."}]
    base = {"state_id": task, "task_id": task, "messages": messages, "tools": ["Grep", "Read"]}
    return base | {"actions": actions} | more


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_an_action_that_json_does_not_have_costs_neither_its_line_nor_the_others(tmp_path: Path) -> None:
    lone = grep("x") | {"text": "\ud800"}
    lines = [
        row("t1", {"gpt-a": grep("x", float("nan")), "claude-a": grep("x", 1)}),
        row("t2", {"gpt-a": grep("x", float("-inf")), "claude-a": lone}),
        row("t3", {"gpt-a": grep("x", 10**400), "claude-a": grep("x", float("nan"), path=float("nan"))}),
        row("t4", {"gpt-a": grep("x")}, messages=[{"role": "user", "content": "\udc00"}]),
        json.dumps(row("t5", {"gpt-a": grep("x", 1)})).replace('"reward": 1', '"reward": 1e999'),
    ]
    found = read_table(write(tmp_path / "t.jsonl", lines))
    assert [state.task for state in found.states] == ["t1", "t2", "t3", "t5"]
    assert [sorted(state.acted) for state in found.states] == [["claude-a", "gpt-a"], *[["gpt-a"]] * 3]
    assert [state.acted["gpt-a"].reward for state in found.states] == [None] * 4
    assert found.states[0].acted["claude-a"].reward == 1
    assert found.broken == {
        "reward of gpt-a, no finite number": 4,
        "answer of claude-a": 2,
        "half a surrogate pair": 1,
    }


def test_a_huge_reward_is_told_in_few_digits(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [row("t1", {"gpt-a": grep("x", 1e308), "claude-a": grep("y", 0)})])
    out = StringIO()
    print_report(
        Console(file=out, width=200), evaluate_table(EvaluateOptions(path, gate_seeds=0, samples=2)), []
    )
    assert "no draw: a draw of a student and three teachers needs four models" in out.getvalue()
    assert "1e+308" in out.getvalue()
    assert "0" * 20 not in out.getvalue()


def test_rewards_written_as_texts_are_read_and_words_are_counted(tmp_path: Path) -> None:
    worth: list[Any] = ["1.0", " 0 ", "good", True, [1], "nan", None]
    actions = {f"gpt-{at}": grep("x") | {"reward": reward} for at, reward in enumerate(worth)}
    actions["gpt-7"] = grep("x") | {"reward": "?", "correct": "1"}
    found = read_table(write(tmp_path / "t.jsonl", [row("t1", actions)]))
    acted = found.states[0].acted
    assert [acted[f"gpt-{at}"].reward for at in range(8)] == [1, 0, None, 1, None, None, None, 1]
    assert found.broken == {f"reward of gpt-{at}, no finite number": 1 for at in (2, 4, 5)}


def test_usage_that_no_call_has_costs_the_usage_alone(tmp_path: Path) -> None:
    odd: list[Any] = [
        {"in": -5, "out": 2},
        {"in": 5, "out": "many"},
        {"in": 10**400},
        {"in": 9, "latency_s": float("nan")},
        {"in": 9, "latency_s": -1},
        ["in", 5],
    ]
    actions = {f"gpt-{at}": grep("x", 1) | {"usage": usage} for at, usage in enumerate(odd)}
    actions["gpt-6"] = grep("x", 1) | {"usage": {"prompt_tokens": "70", "completion_tokens": 3}}
    found = read_table(write(tmp_path / "t.jsonl", [row("t1", actions)]))
    acted = found.states[0].acted
    assert [acted[f"gpt-{at}"].estimated for at in range(7)] == [True] * 6 + [False]
    assert all(0 < done.prompt_tokens < 100 and done.reward == 1 for done in acted.values())
    assert (acted["gpt-6"].prompt_tokens, acted["gpt-6"].answer_tokens) == (70, 3)
    assert found.broken == {f"usage of gpt-{at}, no number of tokens or seconds": 1 for at in range(6)}


def test_a_table_is_unpacked_by_what_it_holds_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    lines = [row("t1", {"gpt-a": grep("x", 1)}), row("t2", {"gpt-a": grep("y", 0)})]
    plain = codecs.BOM_UTF8 + write(tmp_path / "t.jsonl", lines).read_bytes()
    for name, content in (("a.jsonl", plain), ("b.jsonl.gz", plain), ("c.jsonl", gzip.compress(plain))):
        (tmp_path / name).write_bytes(content)
        found = read_table(tmp_path / name)
        assert ([state.task for state in found.states], found.broken) == (["t1", "t2"], {})


def test_a_model_without_a_name_is_an_answer_that_cannot_be_read(tmp_path: Path) -> None:
    lines = [row("t1", {"": grep("x", 1), "gpt-a": grep("x", 1)}), row("t2", {" ": grep("x"), "gpt-a": {}})]
    found = read_table(write(tmp_path / "t.jsonl", lines))
    assert found.models == ("gpt-a",)
    assert found.broken == {"answer of a model without a name": 2}


def test_tables_of_one_name_have_files_of_their_own(tmp_path: Path) -> None:
    given = ["toy.jsonl", "d/toy.jsonl.gz", "toy-2.jsonl", "d/TOY.jsonl", ".jsonl", "lamps.jsonl"]
    assert evaluate_output_names(list(map(Path, given))) == [
        "toy",
        "toy-3",
        "toy-2",
        "TOY-4",
        "table",
        "lamps",
    ]
    (tmp_path / "d").mkdir()
    one = write(tmp_path / "t.jsonl", [row("t1", {"gpt-a": grep("x", 1)})])
    other = write(tmp_path / "d" / "t.jsonl", [row("t2", {"gpt-a": grep("x", 1), "claude-a": grep("x", 1)})])
    evaluate([one, other], tmp_path / "out", gate_seeds=0, samples=10, json=True)
    models = {path.name: json.loads(path.read_text())["table"] for path in (tmp_path / "out").glob("*.json")}
    assert {name: len(table["models"]) for name, table in models.items()} == {"t.json": 1, "t-2.json": 2}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == ["t-2.svg", "t.svg"]


def test_a_seed_below_nought_is_refused(console: Call, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [row("t1", {"gpt-a": grep("x", 1)})])
    done = console("evaluate", path, "--seed", "-1", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "-1 is not in the range x>=0" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("count", "said"), [(12, []), (15, ["  3 more of models in the JSON file"])])
def test_models_that_are_not_shown_are_counted(tmp_path: Path, count: int, said: list[str]) -> None:
    path = write(tmp_path / "t.jsonl", [row("t1", {f"gpt-{each:02}": grep("x") for each in range(count)})])
    out = StringIO()
    order = EvaluateOptions(path, gate_seeds=0, samples=2, students=("gpt-00",), teachers=("gpt-01",))
    print_report(Console(file=out, width=200), evaluate_table(order), [])
    lines = out.getvalue().splitlines()
    assert [line for line in lines if " more of models" in line] == said
    assert sum(line.startswith("  gpt-") for line in lines) == 12


def told(path: Path, **order: Any) -> list[str]:
    """The lines printed of a table."""
    out = StringIO()
    given = {"gate_seeds": 0, "samples": 10} | order
    print_report(Console(file=out, width=200), evaluate_table(EvaluateOptions(path, **given)), [])
    return out.getvalue().splitlines()


def test_what_the_product_would_not_ask_is_said(tmp_path: Path) -> None:
    kin = {f"gpt-{at}": grep("x" if at else "y", at) for at in range(4)}
    lines = told(write(tmp_path / "t.jsonl", [row("t1", kin)]), gate_seeds=1)
    assert lines[1].endswith("0 with teachers of two families beside the student's")
    assert lines[2] == (
        "two families needed: a run would ask no teacher here (families: openai), no savings computed"
    )
    assert lines[3] == "prices assumed of 4 models: 1 and 4 USD per million tokens"
    few = "not computed, none of 1 draw has 5 correct pairs on each half of the tasks, at a price"
    assert [line for line in lines if line.startswith("recall")] == [
        f"recall by share of USD, {voters}: {few}" for voters in ("two families", "any family")
    ]


def test_a_table_without_draws_says_why(tmp_path: Path) -> None:
    few = write(tmp_path / "few.jsonl", [row("t1", {f"gpt-{at}": grep("x") for at in range(3)})])
    many = write(tmp_path / "many.jsonl", [row("t1", {f"gpt-{at}": grep("x") for at in range(5)})])
    assert told(few)[1] == (
        "no draw: a draw of a student and three teachers needs four models with actions at the same states"
    )
    named = told(many, students=("gpt-0",), teachers=("gpt-1", "gpt-2"))
    assert named[1] == "no draw: no model of --student has three other models of --teacher"


def test_models_of_families_not_known_are_neither_of_one_nor_of_two(tmp_path: Path) -> None:
    actions = {"zorg-a": grep("x"), "zorg-b": grep("x"), "gpt-a": grep("y"), "gpt-b": grep("y")}
    report = evaluate_table(EvaluateOptions(write(tmp_path / "t.jsonl", [row("t1", actions)]), gate_seeds=0))
    rows = [(row["one"], row["other"], row["meetings"], row["exact"]) for row in report["agreement"]]
    assert rows == [
        ("same family", "", 1, 1.0),
        ("family not known", "", 5, 0.2),
        ("openai", "unknown", 4, 0.0),
        ("openai", "openai", 1, 1.0),
        ("unknown", "unknown", 1, 1.0),
    ]


def test_teachers_that_cost_nothing_and_steps_that_nobody_was_asked_at_give_no_curve(tmp_path: Path) -> None:
    worth = {"gpt-a": 0, "claude-a": 1, "gemini-a": 1, "deepseek-a": 1}
    acts = {model: grep("beta" if value else "alpha", value) for model, value in worth.items()}
    path = write(tmp_path / "t.jsonl", [row(f"t{at}", acts) for at in range(40)])
    free = {model: PriceSettings.model_validate({"prompt_usd": 0, "completion_usd": 0}) for model in worth}
    found = evaluate_table(EvaluateOptions(path, prices=free, samples=10))
    assert (found["gate"]["any family"]["draws"], found["gate"]["any family"]["ways"]) == (0, {})
    assert evaluate_table(EvaluateOptions(path, samples=10))["gate"]["any family"]["draws"] == 1
    lines = told(path, prices=free, gate_seeds=1)
    assert any("at a price" in line for line in lines)
    silent = {model: {"tool_calls": [], "text": ""} for model in worth}
    path = write(tmp_path / "s.jsonl", [row(f"t{at}", silent | {"gpt-a": acts["gpt-a"]}) for at in range(9)])
    assert {each["pairs"] for each in evaluate_table(EvaluateOptions(path, samples=10))["savings"]} == {0}
