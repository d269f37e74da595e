"""The table of the function-calling leaderboard: calls in every spelling, and its verdicts."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
AREA = {"base": 10, "height": 5}
FUNCTION = {
    "name": "geo.area",
    "description": "Area.",
    "parameters": {"type": "dict", "properties": {"base": {"type": "float"}, "unit": {"type": "any"}}},
}
ANSWERS: dict[str, Any] = {
    "fc-text": [{"geo_area": json.dumps(AREA)}],
    "fc-object": [{"geo_area": AREA}],
    "python": "```python\n[geo.area(base=10, height=5)]\n```",
    "python-bare": "geo.area(base=10, height=5);",
    "tags": '<tool_call>\n{"arguments": {"base": 10, "height": 5}, "name": "geo.area"}\n</tool_call>',
    "wrapped": '{"tool_calls": [{"name": "geo.area", "arguments": {"base": 10, "height": 5}}]}',
    "name-above": 'geo.area\n{"base": 10, "height": 5}',
    "escaped": "[geo.area(base=10, height=5, my\\_unit='m')]",
    "words": "The area is 25.",
    "unread": "[geo.area(base=10, height=5)] or so",
}


def lines(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_calls_in_every_spelling_are_one_action_and_verdicts_are_the_leaderboards(tmp_path: Path) -> None:
    questions, results, out = tmp_path / "data", tmp_path / "2024-08-11", tmp_path / "bfcl.jsonl.gz"
    for kind in ("simple", "multiple_function", "parallel_function", "parallel_multiple_function"):
        lines(questions / f"gorilla_openfunctions_v1_test_{kind}.json", [])
    for kind in ("java", "javascript", "relevance"):
        lines(questions / f"gorilla_openfunctions_v1_test_{kind}.json", [])
    asked = [{"id": f"simple_{n}", "question": "How large?", "function": FUNCTION} for n in range(2)]
    lines(questions / "gorilla_openfunctions_v1_test_simple.json", asked)
    for model, answer in ANSWERS.items():
        rows = [{"id": row["id"], "result": answer} for row in asked]
        lines(results / "result" / model / "gorilla_openfunctions_v1_test_simple_result.json", rows)
        failures: list[dict[str, Any]] = [{"accuracy": 0.5}]
        if model == "unread":
            failures.append({"id": 1, "error_type": "ast_decoder:decoder_failed", "prompt": asked[0]})
            failures.append({"id": 2, "error_type": "ast_decoder:decoder_failed"})
        if model == "words":
            failures.append({"id": 2, "error_type": "simple_function_checker:wrong_count"})
        lines(results / "score" / model / "simple_score.json", failures)
    command = [sys.executable, str(BENCHMARKS / "bfcl_table.py"), str(questions), str(results), str(out)]
    subprocess.run(command, check=True)
    with gzip.open(out, "rt", encoding="utf-8") as stream:
        first, second = [json.loads(line) for line in stream]
    assert first["tools"][0]["parameters"]["properties"] == {
        "base": {"type": "number"},
        "unit": {"type": "string"},
    }
    one = {"tool_calls": [{"name": "geo.area", "arguments": AREA}], "text": "", "correct": True}
    for model in set(ANSWERS) - {"escaped", "words", "unread"}:
        assert first["actions"][model] == second["actions"][model] == one, model
    assert first["actions"]["escaped"]["tool_calls"][0]["arguments"] == AREA | {"my_unit": "m"}
    assert first["actions"]["words"] == {"tool_calls": [], "text": "The area is 25.", "correct": True}
    assert second["actions"]["words"]["correct"] is False
    for row in (first, second):
        assert row["actions"]["unread"] == {"tool_calls": [], "text": ANSWERS["unread"], "correct": False}
