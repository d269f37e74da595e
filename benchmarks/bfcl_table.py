"""Build a table for `tracemill evaluate` from the results of the Berkeley function-calling leaderboard.

    python benchmarks/bfcl_table.py QUESTIONS RESULTS OUT [--executable]

QUESTIONS is `berkeley-function-call-leaderboard/data` of `ShishirPatil/gorilla` at a commit of August
2024, RESULTS the folder `2024-08-11` of `HuanzhiMao/BFCL-Result`. A question is a row, and `correct` is the
verdict of the leaderboard. `--executable` takes the categories whose calls were executed, else those that
were compared with known calls. Neither source has a licence that lets a table of it be published: OUT stays
on this machine.
"""

import argparse
import ast
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = ("simple", "multiple_function", "parallel_function", "parallel_multiple_function")
COMPARED = (*KINDS, "java", "javascript", "relevance")
EXECUTED = (*(f"executable_{kind}" for kind in KINDS), "rest")
# Its calls stand between markers that the leaderboard did not read: right calls were judged wrong.
LEFT_OUT = {"NousResearch_Hermes-2-Theta-Llama-3-70B"}
_PREFIX = "gorilla_openfunctions_v1_test_"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "any": "string"}
_TYPES |= {"bool": "boolean", "int": "integer", "String": "string", "double": "number", "long": "integer"}
_FENCE = re.compile(r"```(?:python|json)?\n(.*?)```", re.DOTALL)
_NAME_ABOVE = re.compile(r"\s*([\w.]+)\s*\n\s*(\{.*\})\s*", re.DOTALL)

Call = tuple[str, dict[str, Any]]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def schema(given: Any) -> Any:
    """Return parameters with the types of JSON Schema."""
    if isinstance(given, dict):
        made = {key: schema(value) for key, value in given.items()}
        if isinstance(kind := given.get("type"), str):
            made["type"] = _TYPES.get(kind, kind)
        return made
    return [schema(each) for each in given] if isinstance(given, list) else given


def named_calls(value: Any) -> list[Call]:
    """Return the calls that decoded JSON holds, under any of the shapes that models write."""
    if isinstance(value, list):
        return [call for each in value for call in named_calls(each)]
    if not isinstance(value, dict):
        return []
    if "tool_calls" in value:
        return named_calls(value["tool_calls"])
    if isinstance(value.get("name"), str):
        arguments = value.get("arguments", value.get("parameters", {}))
        return [(value["name"], arguments if isinstance(arguments, dict) else {})]
    calls: list[Call] = []
    for name, arguments in value.items():
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return []
        calls.append((name, arguments if isinstance(arguments, dict) else {}))
    return calls


def json_objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects that stand in a text, in order."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            place += 1
            continue
        yield value


def literal(node: ast.expr) -> Any:
    """Return the value of an argument, its source where it is no literal."""
    try:
        value = ast.literal_eval(node)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        return ast.unparse(node)
    return value


def python_calls(text: str) -> list[Call]:
    """Return the calls of a Python expression, `[f(a=1), g(b=2)]`; none where there is anything else."""
    try:
        body = ast.parse(text.strip().rstrip(";")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[Call] = []
    for statement in body:
        if not isinstance(statement, ast.Expr):
            return []
        value = statement.value
        for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            if not isinstance(node, ast.Call) or node.args or any(each.arg is None for each in node.keywords):
                return []
            found.append((ast.unparse(node.func), {str(k.arg): literal(k.value) for k in node.keywords}))
    return found


def text_calls(text: str) -> list[Call]:
    """Return the calls that an answer in text holds; none where it is an answer in words."""
    text = text.replace("\\_", "_")
    inner = fence[1] if (fence := _FENCE.search(text)) else text
    if calls := python_calls(inner):
        return calls
    if (above := _NAME_ABOVE.fullmatch(inner)) and len(values := list(json_objects(above[2]))) == 1:
        return [(above[1], values[0])]
    calls: list[Call] = []
    for value in json_objects(inner):
        if "name" in value or "tool_calls" in value:
            calls += named_calls(value)
    return calls


def action(result: Any, offered: list[str], error: str) -> dict[str, Any]:
    """Return an answer as the table has it: calls with the offered names, else its text.

    What the leaderboard could not read as calls is a text: its verdict is on the spelling, not on the calls.
    """
    unread = "decoder_failed" in error or "wrong_format" in error
    calls = [] if unread else text_calls(result) if isinstance(result, str) else named_calls(result)
    names = {name.replace(".", "_"): name for name in offered}
    if not calls:
        return {"tool_calls": [], "text": result if isinstance(result, str) else json.dumps(result)}
    written = [{"name": names.get(name.replace(".", "_"), name), "arguments": args} for name, args in calls]
    return {"tool_calls": written, "text": ""}


def failures(path: Path, ids: list[str]) -> dict[str, str]:
    """Return the kind of error of each question that a model failed, by id.

    Verdicts without an id number the questions from 1.
    """
    failed: dict[str, str] = {}
    for row in rows_of(path)[1:]:
        prompt, number = row.get("prompt"), row["id"]
        named = prompt.get("id") if isinstance(prompt, dict) else None
        failed[named if named in ids else ids[int(number) - 1]] = str(row.get("error_type", ""))
    return failed


def table(questions: Path, results: Path, categories: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the rows: every question with the answers of all models that answered it and were judged."""
    for category in categories:
        asked = rows_of(questions / f"{_PREFIX}{category}.json")
        ids = [row["id"] for row in asked]
        answers: dict[str, dict[str, Any]] = {each: {} for each in ids}
        offered: dict[str, list[dict[str, Any]]] = {}
        for row in asked:
            functions = row["function"]
            offered[row["id"]] = functions if isinstance(functions, list) else [functions]
        for folder in sorted((results / "result").iterdir()):
            answered = folder / f"{_PREFIX}{category}_result.json"
            judged = results / "score" / folder.name / f"{category}_score.json"
            if folder.name in LEFT_OUT or not answered.is_file() or not judged.is_file():
                continue
            failed = failures(judged, ids)
            for row in rows_of(answered):
                if (one := row["id"]) not in answers:
                    continue
                names = [str(each["name"]) for each in offered[one]]
                made = action(row["result"], names, failed.get(one, ""))
                answers[one][folder.name] = made | {"correct": one not in failed}
        for row in asked:
            tools = [
                {
                    "name": f["name"],
                    "description": f.get("description", ""),
                    "parameters": schema(f["parameters"]),
                }
                for f in offered[row["id"]]
            ]
            yield {
                "state_id": row["id"],
                "task_id": row["id"],
                "depth": 0,
                "source": "bfcl",
                "messages": [{"role": "user", "content": row["question"]}],
                "tools": tools,
                "actions": answers[row["id"]],
            }


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Build a table of the function-calling leaderboard.")
    parser.add_argument("questions", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--executable", action="store_true", help="the categories whose calls were executed")
    options = parser.parse_args()
    rows = models = 0
    with gzip.open(options.out, "wt", encoding="utf-8") as out:
        for row in table(options.questions, options.results, EXECUTED if options.executable else COMPARED):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            rows, models = rows + 1, max(models, len(row["actions"]))
    print(f"{rows:,} questions, up to {models} models", file=sys.stderr)


if __name__ == "__main__":
    main()
