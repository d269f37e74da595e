"""Tasks as rows of a dataset: what a trainer asks, and what a reader wants to know of each."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.environments.episodes.run_counts import read_counts, total
from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import SYSTEM_PROMPTS, HarnessName
from tracemill.records.storage.atomic_files import write_atomically

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("prompt", pa.list_(_MESSAGE)),
        ("instruction_terse", pa.string()),
        ("path", pa.string()),
        ("origin", pa.string()),
        ("origin_version", pa.string()),
        ("licence", pa.string()),
        ("kind", pa.string()),
        ("deleted", pa.list_(pa.string())),
        ("functions", pa.int32()),
        ("files", pa.int32()),
        ("lines", pa.int32()),
        ("tests_that_decide", pa.int32()),
        ("tests_that_guard", pa.int32()),
        ("test_seconds", pa.float64()),
        ("bytes", pa.int64()),
        ("attempts", pa.int32()),
        ("solved", pa.int32()),
        ("hacks", pa.int32()),
        ("sample_weight", pa.float64()),
    ]
)
"""`task` and `prompt` are what TRL's `environment_factory` takes; `sample_weight` is null before two runs."""


def task_rows(tasks: Iterable[Task], harness: HarnessName = "claude_code") -> pa.Table:
    """Return a table with a row for each task."""
    return pa.Table.from_pylist([_row(task, harness) for task in tasks], SCHEMA)


def write_task_rows(tasks: Iterable[Task], path: Path, harness: HarnessName = "claude_code") -> pa.Table:
    """Write the table as Parquet and return it."""
    table = task_rows(tasks, harness)
    with write_atomically(path) as file:
        pq.write_table(table, file)
    return table


def write_rows(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write rows as JSON lines that `load_dataset("json", ...)` opens; return how many."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    with write_atomically(path) as file:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def _row(task: Task, harness: HarnessName) -> dict[str, Any]:
    counts = total(read_counts(task.folder))
    size = sum(path.stat().st_size for path in task.folder.rglob("*") if path.is_file())
    return {
        "task": task.name,
        "prompt": [
            {"role": "system", "content": SYSTEM_PROMPTS[harness]},
            {"role": "user", "content": task.texts["detailed"]},
        ],
        "instruction_terse": task.texts["terse"],
        "path": f"tasks/{task.name}",
        "origin": task.origin.name,
        "origin_version": task.origin.version,
        "licence": task.origin.licence,
        "kind": task.difficulty.kind,
        "deleted": [*task.deleted],
        "functions": task.difficulty.functions,
        "files": task.difficulty.files,
        "lines": task.difficulty.lines,
        "tests_that_decide": len(task.exam.fail_to_pass),
        "tests_that_guard": len(task.exam.pass_to_pass),
        "test_seconds": task.exam.seconds,
        "bytes": size,
        "attempts": counts.attempts,
        "solved": counts.solved,
        "hacks": counts.hacks,
        "sample_weight": counts.sample_weight,
    }
