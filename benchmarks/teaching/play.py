"""Play the test tasks of a world with any checkpoint of a student, and print the share it solves.

    python -m benchmarks.teaching.play CHECKPOINT [CHECKPOINT ...] --world repair

A checkpoint is a folder that `tracemill train` made of a student of that world. The first one is what the
others are compared with, task by task; intervals are 95 %, by bootstrap over tasks.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.teaching.worlds.registry import WORLDS

DRAWS = 2000


def interval(values: Sequence[float]) -> str:
    """Return the mean of values of tasks with its interval."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(DRAWS))
    low, high = means[DRAWS * 25 // 1000], means[DRAWS * 975 // 1000]
    return f"{statistics.fmean(values):+.3f} [{low:+.3f}, {high:+.3f}]"


def main() -> int:
    """Print a line for each checkpoint."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teaching.play", description=__doc__)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--world", choices=[*WORLDS], required=True)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    import torch

    from benchmarks.teaching.experiment import TEST_FROM
    from benchmarks.teaching.student import Student

    torch.set_num_threads(1)
    write: Callable[[str], int] = sys.stdout.write
    first: list[float] = []
    for checkpoint in options.checkpoints:
        tasks = range(TEST_FROM, TEST_FROM + options.tasks)
        played = Student(checkpoint).play(WORLDS[options.world], tasks, options.seed)
        solved = [session.reward for session in played]
        first = first or solved
        apart = [one - other for one, other in zip(solved, first, strict=True)]
        beside = "" if solved is first else f", over the first {interval(apart)}"
        write(f"{checkpoint}: solves {interval(solved)} of {len(solved)} tasks{beside}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
