"""Switch each level, rule and table of the labels off in turn, and print what that changes.

    TRACEMILL_MULTITEACHER=FOLDER TRACEMILL_REAL_TRACES=FOLDER python benchmarks/ablation.py
        [--tables more.jsonl.gz ...] [--only NAME ...] [--draws 40] [--jobs 2]
        [--out after.json] [--before before.json]

On recorded tables the default rule votes, two families and k = 2, over the same draws of a student and three
teachers: pairs of all draws, their precision (good of good and bad) and useful share (good of all scored). On
recorded sessions, where no teacher was asked, it counts the self-repair pairs, and of every two actions that
are at most `NEAR` steps apart how many have one effect, and how many are far enough apart to make a pair.

A switch replaces functions everywhere in the package (`ablation_switches.py`). A first pass notes which of
them each source calls, so that a source is measured again only where a switch can matter. `--out` keeps the
figures without any switch, `--before` prints today's beside kept ones; both try no switch.
"""

import argparse
import gc
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper, cache, wraps
from pathlib import Path
from typing import Any

from ablation_switches import SWITCHES

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.evaluate.table.recorded_states import (
    StateTable,
    TableState,
    judge_recorded_reply,
    read_table,
    recorded_state_calls,
    recorded_state_world,
)
from tracemill.evaluate.table.rules import VOTERS, VoteRule, product_label_rule
from tracemill.evaluate.table.student_draws import TableVotes, draw_students, may_be_asked
from tracemill.evaluate.table.whole_runs import WholeRuns, read_runs
from tracemill.harnesses.presentation import present_all
from tracemill.harnesses.shell import sql
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.message import Action, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Trace
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table

TABLES = ("intercode_sql", "intercode_bash", "mint_alfworld", "msb_swe_agent")
RUNS = "msb_swe_agent_full_trajs.jsonl.gz"
DRAWS = 100
"""Most draws of a table."""
NEAR = 5
"""Most steps between two compared actions of a session."""
SMALL = 0.01
"""Share of any figure below which a change counts as none."""
Figures = dict[str, float]
_MISSING = object()


@dataclass(slots=True)
class RecordedTable:
    """A table with the actions that were recorded; each distinct action of a state is judged once."""

    name: str
    table: StateTable
    rows: dict[str, RecordedState]
    draws: int = DRAWS

    def measure(self, rule: VoteRule, judge: bool) -> Figures:
        """Return pairs, precision and useful share; `judge` finds keys and validity again."""
        table = self.table
        if judge:
            table = replace(table, states=tuple(map(self._judged, table.states)))
        poll, scores = TableVotes(table), Counter[str]()
        for draw in draw_students(self.table, self.draws, 0)[0]:
            if may_be_asked(table, draw, rule.policy):
                for pair in poll.pairs(draw, rule):
                    scores[pair.score] += 1
        good, bad, tie = scores["good"], scores["bad"], scores["tie"]
        figures: Figures = {"pairs": scores.total()}
        if good + bad:
            figures |= {"precision": good / (good + bad), "useful": good / (good + bad + tie)}
        return figures

    def _judged(self, state: TableState) -> TableState:
        row = self.rows[state.state_id]
        world = recorded_state_world(row, state.harness)

        @cache
        def judged(action: Action) -> tuple[ActionKeys, str]:
            return judge_recorded_reply(TeacherReply("", "", "", "", 0, 0, action=action), world)

        acted = {}
        for model, done in state.acted.items():
            given = row.answers[model].action
            keys, why = judged(Action(given.text, recorded_state_calls(given.tool_calls, state.harness)))
            acted[model] = replace(done, keys=keys, reason=why)
        return replace(state, acted=acted)


@dataclass(slots=True)
class RecordedSessions:
    """Sessions without teachers; those of one task are siblings."""

    name: str
    traces: tuple[Trace, ...]
    tools: Mapping[tuple[str, int], tuple[ToolSpec, ...]]

    def measure(self, rule: VoteRule, judge: bool) -> Figures:
        """Return self-repair and sibling pairs, and near actions that are the same or far apart."""
        same = apart = 0
        for trace in self.traces:
            for context in trace.contexts:
                near = list(self._keys(trace, context))
                for at, one in enumerate(near):
                    for other in near[at + 1 : at + 1 + NEAR]:
                        same += one.effect == other.effect
                        apart += not (rule.policy.dead_zone and in_ladder_dead_zone(one, other))
        return {"pairs": len(WholeRuns(self.traces).pairs()[0]), "same": same, "apart": apart}

    def _keys(self, trace: Trace, context: Context) -> Iterator[ActionKeys]:
        history = replay_context(context, trace.harness)
        tools = self.tools.get((trace.trace_id, context.index), ())
        for state in trace.states():
            if state.context.index == context.index:
                yield ladder_keys(state.student_action, environment_at(state, tools, history))


Source = RecordedTable | RecordedSessions
SOURCES: dict[str, Source] = {}
"""What is measured, by name; worker processes inherit it."""


def load_sources(tables: list[Path], skip: list[str], draws: int) -> None:
    """Read every table and every session but those to skip."""
    folder, sessions = Path(_folder("TRACEMILL_MULTITEACHER")), Path(_folder("TRACEMILL_REAL_TRACES"))
    for path in [*(folder / f"{name}.jsonl.gz" for name in TABLES), *tables]:
        name = path.name.partition(".")[0]
        if name in skip:
            continue
        rows = {row.state_id: row for row in iter_recorded_table(path) if isinstance(row, RecordedState)}
        SOURCES[name] = RecordedTable(name, read_table(path), rows, draws)
    SOURCES["runs"] = RecordedSessions("runs", read_runs(folder / RUNS, "swe_agent").traces, {})
    sources = [each for each in discover([sessions]) if each.dialect is not None]
    traces = tuple(trace for source in sources for trace in ingest_source(source)[0])
    tools = {
        (trace.trace_id, at): shown.tools for trace in traces for at, shown in present_all(trace).items()
    }
    SOURCES["sessions"] = RecordedSessions("sessions", traces, tools)


def _folder(variable: str) -> str:
    return os.environ.get(variable) or sys.exit(f"{variable} is not set: name the folder of recordings")


def everywhere(value: object) -> list[tuple[Any, str]]:
    """Return every module and attribute of the package that holds a value."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tracemill.")]
    return [
        (module, name) for module in modules for name, held in list(vars(module).items()) if held is value
    ]


def original(target: str) -> tuple[Any, list[tuple[Any, str]]]:
    """Return what a switch replaces (`package.module.name`), and where it is held."""
    path, _, name = target.rpartition(".")
    value = vars(sys.modules[f"tracemill.{path}"]).get(name, _MISSING)
    if value is _MISSING:
        sys.exit(f"{target} does not exist: correct benchmarks/ablation_switches.py")
    return value, everywhere(value)


@cache
def caches() -> tuple[Any, ...]:
    """Return the caches of functions of `agreement`."""
    every = [each for each in gc.get_objects() if type(each) is _lru_cache_wrapper]
    return tuple(each for each in every if str(each.__module__).startswith("tracemill.agreement"))


def empty_caches() -> None:
    """Forget what functions of `agreement` remember; what `harnesses` parsed stays."""
    for each in caches():
        each.cache_clear()


@contextmanager
def replaced(replacements: Mapping[str, Any]) -> Iterator[None]:
    """Replace values of the package inside the block."""
    held = [(original(target), value) for target, value in replacements.items()]
    try:
        for (_, places), value in held:
            for module, name in places:
                setattr(module, name, value)
        empty_caches()
        yield
    finally:
        for (value, places), _ in held:
            for module, name in places:
                setattr(module, name, value)
        empty_caches()


def find_callers(rule: VoteRule) -> dict[str, set[str]]:
    """Return, by source, the functions of switches that it calls."""
    targets = {target for switch in SWITCHES for target in switch.functions}
    called: set[str] = set()

    def noting(target: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def note(*args: Any, **named: Any) -> Any:
            called.add(target)
            return function(*args, **named)

        return note

    found: dict[str, set[str]] = {}
    with replaced({target: noting(target, original(target)[0]) for target in sorted(targets)}):
        for name, source in SOURCES.items():
            called.clear()
            source.measure(rule, True)
            found[name] = set(called)
    return found


def try_switch(job: tuple[int, str]) -> Figures:
    """Return the figures of a source with one switch off; a switch is given by its number."""
    switch, name = SWITCHES[job[0]], job[1]
    rule = product_label_rule(VOTERS[0])
    rule = replace(rule, policy=replace(rule.policy, **switch.policy))
    with replaced(switch.functions):
        return SOURCES[name].measure(rule, bool(switch.functions))


def change(before: Figures, after: Figures) -> str:
    """Return how figures differ: pairs and counts in percent, shares in points of a thousand."""
    parts: list[str] = []
    for name, value in before.items():
        now = after.get(name, 0.0)
        if name in ("precision", "useful"):
            parts.append(f"{name[:4]} {(now - value) * 1000:+.1f}")
        else:
            parts.append(f"{name} {(now - value) / max(value, 1):+.1%}")
    return ", ".join(parts)


def matters(before: Figures, after: Figures) -> bool:
    """Return whether a figure moves by `SMALL` or more."""
    return any(
        abs(after.get(name, 0.0) - value) >= SMALL * max(value, SMALL) for name, value in before.items()
    )


def written(figures: Figures) -> str:
    """Return figures as text."""
    return ", ".join(
        f"{name} {value:.3f}" if value < 1 else f"{name} {value:,.0f}" for name, value in figures.items()
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[], help="sources that are not measured")
    parser.add_argument("--draws", type=int, default=DRAWS, help="most draws of a table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    parse = cache(sql.sql_form.__wrapped__)
    for module, name in everywhere(sql.sql_form):
        setattr(module, name, parse)
    load_sources(given.tables, given.skip, given.draws)
    rule = product_label_rule(VOTERS[0])
    base = {name: source.measure(rule, False) for name, source in SOURCES.items()}
    kept = json.loads(given.before.read_bytes()) if given.before else {}
    for name, figures in base.items():
        print(
            f"{name:16}{written(figures)}",
            f"[{change(kept[name], figures)}]" if name in kept else "",
            flush=True,
        )
    if given.out:
        given.out.write_text(json.dumps(base, indent=1))
    if given.before or given.out:
        return
    called = find_callers(rule)
    chosen = [at for at, switch in enumerate(SWITCHES) if not given.only or switch.name in given.only]
    jobs = [
        (at, name)
        for at in chosen
        for name in SOURCES
        if SWITCHES[at].policy or called[name].intersection(SWITCHES[at].functions)
    ]
    gc.freeze()
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("fork")) as pool:
        results = iter(pool.map(try_switch, jobs))
        for at in chosen:
            measured = {name: next(results) for number, name in jobs if number == at}
            moved = {name: after for name, after in measured.items() if after != base[name]}
            matter = any(matters(base[name], after) for name, after in moved.items())
            print(f"{'*' if matter else ' '} {SWITCHES[at].name}" + ("" if moved else ": nothing"))
            for name, after in moved.items():
                print(f"      {name:16}{change(base[name], after)}", flush=True)


if __name__ == "__main__":
    main()
