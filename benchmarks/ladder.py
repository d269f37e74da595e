"""Measure how many recorded actions a core keys in a second, and which level of equivalence costs what.

    TRACEMILL_REAL_TRACES=FOLDER TRACEMILL_MULTITEACHER=FOLDER python benchmarks/ladder.py [--runs 5]

Every measurement is a process of its own that reads a source, folds each context into its world and empties
every cache; then each action is put on the ladder once, in its own world and with the tools a teacher would
be shown. Counted is the CPU of that, and of the whole process, each of the fastest of the runs. Loading the
grammar of bash counts for the process alone; what was read is no garbage to look through, as in a replay.
`--keys FILE` writes the keys of every action instead, a line each, to compare two versions of the rules.
"""

import argparse
import gc
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

from tracemill.agreement.calls.canonical import canonicalize_action, exact_key
from tracemill.agreement.equivalence.ladder import LEVELS, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.harnesses.presentation import present_all
from tracemill.harnesses.shell.parse_line import parse_command
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.trace import Context

SOURCES = {"java": "TRACEMILL_MULTITEACHER", "traces": "TRACEMILL_REAL_TRACES"}
"""Where the actions come from, and the variable that names the folder."""
FLOORS = ("agreement", "harnesses", "records")
"""Packages whose caches are emptied."""
JAVA_TABLE = "msb_swe_agent_full_trajs.jsonl.gz"
Acted = tuple[Action, EnvironmentState]
PARTS: dict[str, Callable[[Action, EnvironmentState], object]] = {
    "exact": lambda action, world: exact_key(action),
    "canonical": lambda action, world: canonicalize_action(action, world.tools, world.cwd, world.harness),
    "ladder": ladder_keys,
}
"""What is measured: each part holds the ones before it but `canonicalize_action`, which leaves out
`exact`."""


def java(folder: Path) -> Iterator[Acted]:
    """Yield the actions of the SWE-agent runs on Java, each with its environment state."""
    tools = tuple(harness_for("swe_agent").tools.values())
    with gzip.open(folder / JAVA_TABLE, "rt") as lines:
        for line in lines:
            messages = tuple(_java_messages(json.loads(line)))
            record = replay_context(Context(0, messages, ()), "swe_agent")
            for cut in range(1, len(messages), 2):
                yield Action.of(messages[cut]), EnvironmentState("swe_agent", "/repo", tools, record, cut)


def _java_messages(row: dict[str, Any]) -> Iterator[Message]:
    yield Message("user", row["task"])
    for number, step in enumerate(row["steps"]):
        command = (step["call"] or {}).get("arguments", {}).get("command")
        made = parse_swe_agent_command(str(command)) if command is not None else None
        calls = (ToolCall(f"c{number}", made.name, made.arguments),) if made else ()
        yield Message("assistant", step["thought"] or "", calls)
        yield Message("tool", step["observation"] or "", tool_call_id=f"c{number}")


def sessions(folder: Path) -> Iterator[Acted]:
    """Yield the actions of recorded sessions of any format, each with its environment state."""
    for source in discover([folder]):
        for trace in ingest_source(source)[0] if source.dialect is not None else ():
            records = {each.index: replay_context(each, trace.harness) for each in trace.contexts}
            tools = {index: shown.tools for index, shown in present_all(trace).items()}
            for state in trace.states():
                at = state.context.index
                yield state.student_action, environment_at(state, tools.get(at, ()), records[at])


def actions_of(source: str) -> list[Acted]:
    """Return the actions of a source; exit if its folder is not given."""
    folder = os.environ.get(SOURCES[source])
    if not folder:
        sys.exit(f"{SOURCES[source]} is not set: name the folder of `{source}`")
    return list((java if source == "java" else sessions)(Path(folder)))


def empty_caches() -> None:
    """Forget what reading and folding have left in caches of functions."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and each.__module__.partition(".")[0] in FLOORS:
            each.cache_clear()


def child(source: str, part: str) -> None:
    """One measurement: prints actions, CPU seconds of the part and of the process."""
    found = actions_of(source)
    parse_command("true")
    empty_caches()
    gc.collect()
    gc.freeze()
    work, started = PARTS[part], time.process_time()
    for action, world in found:
        work(action, world)
    spent = time.process_time() - started
    print(json.dumps({"actions": len(found), "cpu_s": spent, "process_cpu_s": time.process_time()}))


def measure(source: str, part: str) -> dict[str, float]:
    """Return what a child process measured."""
    command = [sys.executable, __file__, "--child", source, part]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def write_keys(target: Path, sources: list[str]) -> None:
    """Write the keys of every action, and all that the rules use beside them."""
    with target.open("w") as out:
        for source in sources:
            for number, (action, world) in enumerate(actions_of(source)):
                known = ladder_keys(action, world)
                levels = [known.at(level) for level in LEVELS]
                details = (sorted(known.parts), known.decisive, known.guess, repr(known.effects))
                out.write(json.dumps([source, number, *levels, known.action_class, *details]) + "\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--keys", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(*given.child)
    if given.keys:
        return write_keys(given.keys, given.sources)
    print(f"{'source':8}{'part':11}{'actions':>9}{'CPU s':>8}{'us each':>9}{'a second':>10}{'process':>9}")
    for source in given.sources:
        for part in PARTS:
            runs = [measure(source, part) for _ in range(given.runs)]
            count = int(runs[0]["actions"])
            cpu_s, whole_s = (min(run[name] for run in runs) for name in ("cpu_s", "process_cpu_s"))
            print(
                f"{source:8}{part:11}{count:9,}{cpu_s:8.3f}{cpu_s / count * 1e6:9.1f}{count / cpu_s:10,.0f}"
                f"{whole_s:9.2f}",
                flush=True,
            )
    return None


if __name__ == "__main__":
    main()
