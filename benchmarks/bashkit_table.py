"""Build a table for `tracemill evaluate` from the recorded evaluations of bashkit.

    python benchmarks/bashkit_table.py RESULTS OUT [--by-step]

RESULTS is `crates/bashkit-eval/results` of `everruns/bashkit`: models of two vendors with one tool, a shell
that is simulated, at tasks whose outcome is checked (files, output, exit code). A state is a task with its
files, and the commands and outputs before it, byte for byte but for the times of a file listing. Where a
model was in a state more than once, a row holds one of these times. `reward` is 1 where the run passed every
check, else 0; with `--by-step` it is 1 where the commands of the step ended with exit code 0, else 0, and for
a text, which ends the run, the verdict on the run.
"""

import argparse
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared_states import shared_states

FOLDER = "/home/eval"
_DAY = re.compile(r"-\d{8}$")
_LISTED_AT = re.compile(r"\b\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?\b")


@dataclass(frozen=True)
class Step:
    """Action of a model at a time: its text, its command lines, and what each gave with its exit code."""

    text: str
    lines: tuple[str, ...]
    seen: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """A recorded run of a model at a task; `state` is a digest of the task and its files."""

    model: str
    task: str
    prompt: str
    state: str
    steps: tuple[Step, ...]
    passed: bool


def runs_of(folder: Path) -> Iterator[Run]:
    """Yield the runs of every evaluation in a folder, in the order of the files' names."""
    for path in sorted(folder.glob("eval-*.json")):
        recorded = json.loads(path.read_text(encoding="utf-8"))
        for result in recorded["results"]:
            task, score = result["task"], result["score"]
            told = json.dumps([task["system"], task["prompt"], task["files"]], sort_keys=True)
            yield Run(
                _DAY.sub("", recorded["model"]),
                task["id"],
                task["prompt"],
                hashlib.sha256(told.encode()).hexdigest()[:16],
                tuple(_steps(result["trace"])),
                score["score"] == score["max_score"],
            )


def _steps(trace: dict[str, Any]) -> Iterator[Step]:
    """Yield the steps of a run; `tool_calls` of a trace are in the order of its messages."""
    done = iter(trace["tool_calls"])
    for message in trace["messages"]:
        if message["role"] == "assistant":
            parts = message["content"]
            lines = tuple(part["input"].get("commands", "") for part in parts if part["type"] == "tool_use")
            text = "\n".join(part["text"] for part in parts if part["type"] == "text").strip()
            given = [next(done) for _ in lines]
            seen = tuple(each["stdout"] + each["stderr"] for each in given)
            yield Step(text, lines, seen, tuple(each["exit_code"] for each in given))


def histories(run: Run) -> Iterator[str]:
    """Yield, for each step, a digest of the task and of what was done and seen before it."""
    known = hashlib.sha256(run.state.encode())
    for step in run.steps:
        yield known.hexdigest()[:16]
        seen = [_LISTED_AT.sub("<time>", each) for each in step.seen]
        known.update(json.dumps([[line.strip() for line in step.lines], seen]).encode())


def answer(run: Run, at: int, by_step: bool) -> dict[str, Any]:
    """Return a step of a run as the table has it."""
    step = run.steps[at]
    right = not any(step.codes) if by_step and step.lines else run.passed
    return {"tool_calls": _calls(step), "text": step.text, "reward": float(right)}


def _calls(step: Step) -> list[dict[str, Any]]:
    return [{"name": "bash", "arguments": {"command": line}} for line in step.lines]


def messages(run: Run, depth: int) -> list[dict[str, Any]]:
    """Return the prompt of a run and its first steps."""
    shown: list[dict[str, Any]] = [{"role": "user", "content": run.prompt}]
    for step in run.steps[:depth]:
        shown.append({"role": "assistant", "content": step.text, "tool_calls": _calls(step)})
        shown += [{"role": "tool", "content": seen} for seen in step.seen]
    return shown


def table(runs: list[Run], by_step: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows: every state in which several models were, once for each time that they were."""
    for state, here in shared_states(runs, histories):
        run, depth = next(iter(here.values()))
        yield {
            "state_id": f"bashkit/{run.task}/{state}",
            "task_id": run.task,
            "depth": depth,
            "source": "bashkit",
            "cwd": FOLDER,
            "messages": messages(run, depth),
            "tools": ["bash"],
            "actions": {model: answer(*place, by_step) for model, place in here.items()},
        }


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Build a table of the evaluations of bashkit.")
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--by-step", action="store_true", help="reward the step, not the run")
    options = parser.parse_args()
    runs = list(runs_of(options.results))
    rows = list(table(runs, options.by_step))
    with gzip.open(options.out, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    deep = sum(row["depth"] > 0 for row in rows)
    print(f"{len(runs):,} runs, {len(rows):,} rows, {deep:,} of them deeper", file=sys.stderr)


if __name__ == "__main__":
    main()
