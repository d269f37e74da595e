"""Build a table for `tracemill evaluate` from the recorded runs of MLGym.

    python benchmarks/mlgym_table.py RUNS OUT [--by-step] [--runs WHOLE]

RUNS is `trajectories/mlgym_bench_v0` of `facebookresearch/MLGym`: 13 models, 13 tasks of machine learning,
four runs each, all in the interface of SWE-agent. A state is a prompt, byte for byte, with what was done and
seen after it; of what was seen, the times of a file listing do not count. Where a model was in a state more
than once, a row holds one of these times. `reward` is 1 where the model's own run ended with a submission
better than the task's baseline, else 0; with `--by-step` it is 0 where the environment refused the action or
the command failed, and 1 where it was done. The source is licensed CC BY-NC 4.0: OUT stays on this machine.
WHOLE takes the runs themselves.
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

MODELS = {
    "claude-35-sonnet-new": "claude-3.5-sonnet-new",
    "claude-37-sonnet": "claude-3.7-sonnet",
    "deepseek-r1": "deepseek-r1",
    "gemini-15-pro": "gemini-1.5-pro",
    "gemini-20-flash-thinking": "gemini-2.0-flash-thinking",
    "gemini-20-pro": "gemini-2.0-pro",
    "gemini-25-pro": "gemini-2.5-pro",
    "gpt-o1": "o1",
    "gpt-o3-mini": "o3-mini",
    "gpt4o2": "gpt-4o",
    "llama3-405b-tools": "llama-3.1-405b",
    "llama4-17b-128": "llama-4-maverick",
    "llama4-17b-16": "llama-4-scout",
}
LOWER_IS_BETTER = {"Time", "val_loss", "rmse"}
OWN_COMMANDS = (
    "create",
    "edit",
    "find_file",
    "goto",
    "insert",
    "open",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "submit",
)
_ENDED_BY_HARNESS = re.compile(r"exit_\w+")
_REFUSED = re.compile(
    r"(?:File .* (?:not found|already exists)|No file open|Your proposed (?:edit|insertion) has introduced"
    r"|Malformed|Usage: |Submission artefact not found|EXECUTION TIMED OUT|Failed to decode metrics)"
)
_FAILED = re.compile(
    r"Traceback \(most recent call last\)|: No such file or directory|: command not found"
    r"|python3?: can't open file|/bin/bash: .*error"
)
_LISTED_AT = re.compile(r"\b[A-Z][a-z]{2} +\d{1,2} +(?:\d{1,2}:\d{2}|\d{4})\b")


@dataclass(frozen=True)
class Run:
    """A recorded run; `steps` are the model's own, `reward` is None where the end is not known."""

    name: str
    model: str
    task: str
    prompt: tuple[dict[str, str], ...]
    steps: tuple[dict[str, Any], ...]
    reward: float | None


def better(task_scores: dict[str, Any]) -> bool:
    """Return whether the last score is better than the baseline's, by the first metric of the task."""
    if not task_scores.get("agent"):
        return False
    last, baseline = task_scores["agent"][-1], task_scores["baseline"]
    metric = next(iter(last))
    known = baseline.get(metric, next(iter(baseline.values())))
    if "Correct" in last and last["Correct"] < baseline["Correct"]:
        return False
    return last[metric] < known if metric in LOWER_IS_BETTER else last[metric] > known


def runs_of(folder: Path) -> Iterator[Run]:
    """Yield the runs whose trajectory is there, by name."""
    for found in sorted(folder.glob("*/*.traj")):
        model, task, *_ = found.parent.name.split("__")
        recorded = json.loads(found.read_text(encoding="utf-8"))
        status = str(recorded["info"].get("exit_status") or "")
        scores = json.loads((found.parent / "results.json").read_text(encoding="utf-8"))
        ended_well = status.startswith(("submitted", "autosubmission")) and better(scores)
        yield Run(
            found.parent.name,
            MODELS[model.removeprefix("metagen-")],
            task,
            tuple({"role": one["role"], "content": one["content"]} for one in recorded["history"][:2]),
            tuple(s for s in recorded["trajectory"] if not _ENDED_BY_HARNESS.fullmatch(s["action"].strip())),
            float(ended_well) if status else None,
        )


def call(step: dict[str, Any]) -> dict[str, Any]:
    """Return what a step did, as a call of the agent's own command or of the shell."""
    line = step["action"].strip()
    first = line.split(None, 1)[0] if line else ""
    return {"name": first if first in OWN_COMMANDS else "bash", "arguments": {"command": line}}


def histories(run: Run) -> Iterator[str]:
    """Yield, for each step, a digest of the prompt and of what was done and seen before it."""
    known = hashlib.sha256(json.dumps([run.task, run.prompt]).encode())
    for step in run.steps:
        yield known.hexdigest()[:16]
        seen = _LISTED_AT.sub("<time>", step["observation"] or "").strip()
        known.update(json.dumps([step["action"].strip(), seen]).encode())


def failed(step: dict[str, Any]) -> bool:
    """Return whether the environment refused the action, or its command failed."""
    seen = (step["observation"] or "").strip()
    return bool(_REFUSED.match(seen) or _FAILED.search(seen))


def answer(run: Run, at: int, by_step: bool) -> dict[str, Any]:
    """Return a step of a run as the table has it."""
    made = {"tool_calls": [call(run.steps[at])], "text": (run.steps[at]["thought"] or "").strip()}
    reward = float(not failed(run.steps[at])) if by_step else run.reward
    return made if reward is None else made | {"reward": reward}


def messages(run: Run, depth: int) -> list[dict[str, Any]]:
    """Return the prompt of a run and its first steps."""
    shown: list[dict[str, Any]] = list(run.prompt)
    for step in run.steps[:depth]:
        shown.append({"role": "assistant", "content": None, "tool_calls": [call(step)]})
        shown.append({"role": "tool", "content": step["observation"] or ""})
    return shown


def table(runs: list[Run], by_step: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows: every state in which several models were, once for each time that they were."""
    for state, here in shared_states(runs, histories):
        run, depth = next(iter(here.values()))
        yield {
            "state_id": f"mlgym/{run.task}/{state}",
            "task_id": run.task,
            "depth": depth,
            "source": "mlgym",
            "harness": "swe_agent",
            "cwd": json.loads(run.steps[depth]["state"])["working_dir"],
            "messages": messages(run, depth),
            "tools": sorted({"bash", *OWN_COMMANDS}),
            "actions": {model: answer(*place, by_step) for model, place in here.items()},
        }


def whole(run: Run) -> dict[str, Any]:
    """Return a run as `--runs` reads it."""
    return {
        "instance_id": run.task,
        "model": f"{run.model}/{run.name.rpartition('_')[2]}",
        "resolved": None if run.reward is None else bool(run.reward),
        "task": run.prompt[1]["content"],
        "steps": [
            {"call": call(step)} | {name: step[name] for name in ("thought", "observation", "state")}
            for step in run.steps
        ],
    }


def main() -> None:
    """Write the table, and the runs where asked."""
    parser = argparse.ArgumentParser(description="Build a table of the runs of MLGym.")
    parser.add_argument("runs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--by-step", action="store_true", help="reward the step, not the run")
    parser.add_argument("--runs", dest="whole", type=Path, help="file for the whole runs")
    options = parser.parse_args()
    runs = list(runs_of(options.runs))
    rows = list(table(runs, options.by_step))
    with gzip.open(options.out, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if options.whole:
        with gzip.open(options.whole, "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(whole(run), ensure_ascii=False) + "\n" for run in runs)
    deep = sum(row["depth"] > 0 for row in rows)
    print(f"{len(runs):,} runs, {len(rows):,} rows, {deep:,} of them deeper", file=sys.stderr)


if __name__ == "__main__":
    main()
