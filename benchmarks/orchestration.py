"""Measure what Prefect costs a harvest: task runs, and the share of the time that is not spent in stages.

python benchmarks/orchestration.py [TRACES]

Sessions are one example many times under other names, answers come from a provider on loopback after 50 ms.
Prefect starts a server of its own unless PREFECT_API_URL names one.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tracemill.cli.commands import quiet_prefect

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "sessions" / "swe_gym" / "trajectories.jsonl"
LATENCY_S = 0.05


@dataclass
class Orchestration:
    """The seconds that a harvest took, as a whole and in its stages."""

    tasks: int = 0
    stages_s: float = 0.0
    total_s: float = 0.0
    by_stage: dict[str, int] = field(default_factory=dict)

    def share(self) -> float:
        """Return the share of the whole that is Prefect's: what tasks take beyond their stages."""
        return 1 - self.stages_s / self.total_s


def write_sessions(path: Path, traces: int) -> None:
    """Write an example `traces` times, each with an id and a task of its own."""
    row = json.loads(EXAMPLE.read_text(encoding="utf-8").splitlines()[0])
    system, user, *rest = row["messages"]
    with path.open("w", encoding="utf-8") as out:
        for number in range(traces):
            task = user | {"content": f"Ticket {number}.\n{user['content']}"}
            changes = {"instance_id": f"owner__repo-{number}", "messages": [system, task, *rest]}
            out.write(json.dumps(row | changes) + "\n")


def measure(folder: Path, traces: int, url: str, key: str) -> Orchestration:
    """Harvest `traces` sessions as a flow, and time each task and the stage in it."""
    from prefect import flow

    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.preflight import run_preflight
    from tracemill.flows.run_flow import execute_as_task
    from tracemill.flows.stages import HARVEST_STAGES
    from tracemill.flows.workspace_commands import run_prepared

    sessions = folder / "sessions.jsonl"
    write_sessions(sessions, traces)
    os.environ |= {"TRACEMILL_OPENROUTER_URL": url, "OPENROUTER_API_KEY": key}
    names = ("deepseek", "kimi", "glm")
    teachers = [{"type": "openrouter", "model": f"simulated/{name}-a", "local": True} for name in names]
    given: dict[str, Any] = {
        "workspace": str(folder / "w"),
        "sources": {"paths": [str(sessions)], "min_age_minutes": 0},
        "budget": {"max_total_usd": 1000},
        "teachers": teachers,
    }
    ready, found = run_preflight(load_settings(None, given)), Orchestration()

    def execute(stage: Any, shard: Any, context: Any) -> Any:
        def run(shard: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                return stage.run(shard, context)
            finally:
                found.stages_s += time.perf_counter() - began

        found.tasks += 1
        found.by_stage[stage.name] = found.by_stage.get(stage.name, 0) + 1
        began = time.perf_counter()
        try:
            return execute_as_task(replace(stage, run=run), shard, context)
        finally:
            found.total_s += time.perf_counter() - began

    @flow(name="orchestration", persist_result=False)
    def harvest() -> None:
        run_prepared(ready, True, execute=execute, stages=HARVEST_STAGES)

    harvest()
    return found


def main() -> None:
    """Print the figures."""
    quiet_prefect()
    from tracemill.teachers.openrouter_stub.server import running
    from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

    traces = int(sys.argv[1]) if sys.argv[1:] else 500
    with TemporaryDirectory() as folder, running(StubSettings(latency_s=LATENCY_S)) as stub:
        found = measure(Path(folder), traces, stub.url, stub.key)
        calls = stub.stats()["received"]
    print(f"{traces} traces, {calls:,} calls, {found.tasks} task runs {found.by_stage}")
    print(f"{found.total_s:.1f} s in tasks, {found.stages_s:.1f} s in stages")
    print(f"{found.share():.1%} orchestration")


if __name__ == "__main__":
    main()
