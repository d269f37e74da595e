"""Traces and pairs of a dataset that grows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kept_pairs import put
from plain_pairs import plain_pair
from sibling_runs import bash, run, view

from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll")


def task(number: int) -> str:
    """No two tasks share five words in a row."""
    return " ".join(WORDS[(number * 7 + 3 * n) % 11] + str(number + n) for n in range(30))


def trace(number: int, **changes: Any) -> Trace:
    turns = [bash(f"ls {n}") for n in range(3)]
    made = run(str(number), "unknown", *turns, view("/r/main.py"), task=changes.pop("task", task(number)))
    named = {"repository": f"owner/repo-{number % 40}", "instance_id": f"owner__repo-{number}"}
    return replace(made, redaction="r1", **(named | changes))


def pair(made: Trace, step: int, **changes: Any) -> DPOPair:
    base = plain_pair(
        step_id=f"{made.trace_id}:0:{step}",
        chosen=(Message("assistant", f"I look at step {step} first."),),
        rejected=(Message("assistant", f"Done with {made.trace_id}."),),
        chosen_operation="read",
        student_model="model-x",
        student_family="x",
        repository=made.repository,
        instance_id=made.instance_id,
    )
    return replace(base, **changes)


def add(work: Workspace, traces: Sequence[Trace], steps: Sequence[int] = (0,), **changes: Any) -> None:
    put(work, traces)
    pairs = [pair(each, step, **changes) for each in traces for step in steps]
    ids = [each.trace_id for each in traces]
    work.write("pairs", pairs_to_table(pairs), ids, "openhands", "2026-11-21")


def rows(outcome: ReleaseOutcome, config: str = "dpo") -> dict[str, tuple[str, dict[str, Any]]]:
    import pyarrow.parquet as pq

    assert outcome.path is not None
    folder = Path(outcome.path) / "data" / config
    found = {}
    for file in folder.glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            found[row["pair_id"]] = (file.name.split("-")[0], row)
    return found
