"""Does a release teach? The whole experiment with one command.

    python -m benchmarks.teaching.run                # a short form: one seed, five arms, every world
    python -m benchmarks.teaching.run --full         # every arm, seed and regime; goes on where it stopped

Results are stored an arm at a time under `--out`; `report.py` makes a table and a figure of them.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.teaching.policies import REGIMES
from benchmarks.teaching.worlds.registry import WORLDS

OUT = Path("teaching-results")
SEEDS, REGIME_SEEDS = 5, 3
NEEDED = ("torch", "transformers", "trl", "tokenizers")


@dataclass(frozen=True)
class Task:
    """Arms of one student in one regime, done one after the other."""

    world: str
    seed: int
    regime: str
    size: str
    arms: tuple[str, ...]
    sweep: bool = False


def plan(full: bool, worlds: Sequence[str], seeds: int, regimes: Sequence[str]) -> Iterator[list[Task]]:
    """Give the tasks by wave: learning rates first, then what uses them."""
    from benchmarks.teaching.arms import ARMS, REGIME_ARMS, SHORT

    every = tuple(ARMS) if full else SHORT
    if full:
        yield [Task(world, 0, "independent", "small", every, True) for world in worlds]
    wave = [Task(world, seed, "independent", "small", every) for seed in range(seeds) for world in worlds]
    for regime in regimes:
        if regime != "independent":
            wave += [
                Task(world, seed, regime, "small", REGIME_ARMS)
                for seed in range(min(seeds, REGIME_SEEDS))
                for world in worlds
            ]
    if full:
        wave += [
            Task(world, seed, "independent", "large", SHORT)
            for seed in range(min(seeds, REGIME_SEEDS))
            for world in worlds
        ]
    yield wave


def do(task: Task, out: Path) -> list[str]:
    """Run the arms of a task; give a line for each."""
    from benchmarks.teaching.experiment import Cell, run_arm, sweep_rates
    from benchmarks.teaching.student import LARGE, SMALL

    cell = Cell(task.world, task.seed, task.regime, SMALL if task.size == "small" else LARGE)
    lines = []
    for arm in task.arms:
        place = f"{task.world} {task.size} {task.regime} seed {task.seed} {arm}"
        if task.sweep:
            lines.append(f"{place}: learning rate {sweep_rates(cell, arm, out):g}")
            continue
        result = run_arm(cell, arm, out)
        if "success" in result:
            lines.append(f"{place}: success {result['success']:.3f}, margin {result['margin']:+.2f}")
        print(lines[-1] if lines else place, flush=True)
    return lines


def main() -> int:
    """Run what is asked for; 2 where a package is missing."""
    arguments = _arguments()
    missing = [name for name in NEEDED if not _is_installed(name)]
    if missing:
        message = f"{missing[0]} is not installed; expected: the extra `train`; run `make teaching`"
        print(f"benchmarks.teaching: {message}", file=sys.stderr)
        return 2
    out = arguments.out.resolve()
    others = _of_other_source(out)
    if others:
        message = f"{others} results in {arguments.out} are of other source; remove them to make them anew"
        print(f"benchmarks.teaching: {message}", file=sys.stderr)
    for wave in plan(arguments.full, arguments.worlds, arguments.seeds, arguments.regimes):
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
            for done in as_completed([pool.submit(do, task, out) for task in wave]):
                done.result()
    from benchmarks.teaching.report import write_report

    print(write_report(out))
    return 0


def _of_other_source(out: Path) -> int:
    from benchmarks.teaching.experiment import source_digest

    found = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("results/*/*/*/*/seed*.json")]
    return sum(result["source"] != source_digest() for result in found)


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ValueError:  # a module marked as missing
        return False


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teaching.run", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every arm, five seeds, every regime")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worlds", nargs="+", choices=[*WORLDS], default=[*WORLDS])
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--regimes", nargs="+", choices=[*REGIMES], default=None)
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or (SEEDS if arguments.full else 1)
    arguments.regimes = arguments.regimes or ([*REGIMES] if arguments.full else ["independent"])
    return arguments


if __name__ == "__main__":
    sys.exit(main())
