"""Tasks of real packages: what they give without their feature, with it, and for wrong answers.

    python benchmarks/real_packages.py [--tasks N] [--restorations N] [--at-once N] [NAME==VERSION ...]

Source distributions are fetched from the package index. Every task is judged as the agent gets it, with its
original files in fresh copies, with bodies that return nothing, with one fault in the original as the factory
plants them, and with the original less one branch, which the factory does not try. Prints a table in
Markdown.
"""

import argparse
import ast
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracemill.environments.episodes.verify_task import judge_candidate, verify_task
from tracemill.environments.feature_deletion.fetch_sdist import fetch_sdist
from tracemill.environments.feature_deletion.make_tasks import TaskReport, make_tasks
from tracemill.environments.feature_deletion.plant_faults import plant_faults
from tracemill.environments.feature_deletion.source_tree import read_functions
from tracemill.environments.parse_python import parse_python
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.python_runtime import make_readable
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Task

PACKAGES = (  # the longest first
    "semver==3.0.4",
    "webcolors==24.11.1",
    "parse==1.22.4",
    "humanize==4.11.0",
    "markupsafe==3.0.2",
    "inflection==0.5.1",
    "wcwidth==0.2.13",
)
TASKS = 15


_COUNTS = (
    *("tasks", "tried", "deleted", "restored", "restorations", "idle"),
    *("faulty", "faults", "shorter", "branches"),
)


@dataclass
class PackageRow:
    """The tasks of a package in numbers: counts, seconds a task made, bytes a task on disk."""

    package: str
    licence: str = ""
    tasks: int = 0
    tried: int = 0
    seconds: float = 0.0
    bytes: float = 0.0
    deleted: int = 0
    restored: int = 0
    restorations: int = 0
    idle: int = 0
    faulty: int = 0
    faults: int = 0
    shorter: int = 0
    branches: int = 0

    def cells(self) -> list[str]:
        """Return the cells of a row of the table."""
        return [
            f"{self.package}, {self.licence}",
            f"{self.tasks} of {self.tried}",
            f"{self.seconds:.1f}",
            f"{self.bytes / 1000:.0f}",
            f"{self.deleted} of {self.tasks}",
            f"{self.restored} of {self.restorations}",
            f"{self.idle} of {self.tasks}",
            f"{self.faulty} of {self.faults}",
            f"{self.shorter} of {self.branches}",
        ]


HEADER = (
    "package",
    "tasks of features tried",
    "s a task",
    "KB a task",
    "deleted gives 0",
    "restored gives 1",
)
HEADER += ("returning nothing gives below 1", "one fault gives below 1", "a branch less gives below 1")


def measure(requirement: str, most: int, restorations: int) -> PackageRow:
    """Fetch a package, make at most `most` tasks of it and judge each; return the counts."""
    sandbox, report = choose_sandbox(), TaskReport()
    with tempfile.TemporaryDirectory(prefix="tracemill-packages-") as name:
        work = Path(name)
        work.chmod(0o755)
        repository, origin = fetch_sdist(requirement, work / "sdist")
        row, began = PackageRow(requirement, origin.licence), time.monotonic()
        made = [
            *make_tasks(repository, origin, work / "tasks", sandbox, most=most, restorations=0, report=report)
        ]
        row.tasks, row.tried = report.made, report.tried
        row.seconds = (time.monotonic() - began) / max(len(made), 1)
        row.bytes = sum(_size(task.folder) for task in made) / max(len(made), 1)
        for task in made:
            _judge(task, sandbox, restorations, work, row)
    return row


def _judge(task: Task, sandbox: Sandbox, restorations: int, work: Path, row: PackageRow) -> None:
    rewards = verify_task(task, sandbox, restorations)
    row.deleted += rewards.deleted == 0.0
    row.restorations += len(rewards.runs)
    row.restored += sum(reward == 1.0 for reward in rewards.runs)
    with _candidate(task, work) as candidate:
        let_return_nothing(task, candidate)
        row.idle += judge_candidate(task, candidate, sandbox)[0].reward < 1.0
    with _candidate(task, work) as candidate:
        if restore_with_a_fault(task, candidate):
            row.faults += 1
            row.faulty += judge_candidate(task, candidate, sandbox)[0].reward < 1.0
    with _candidate(task, work) as candidate:
        if restore_less_a_branch(task, candidate):
            row.branches += 1
            row.shorter += judge_candidate(task, candidate, sandbox)[0].reward < 1.0


@contextmanager
def _candidate(task: Task, work: Path) -> Iterator[Path]:
    """Give a copy of the repository as the agent gets it, for the time of the block."""
    candidate = make_readable(shutil.copytree(task.repository, work / "candidate"))
    try:
        yield candidate
    finally:
        shutil.rmtree(candidate)


def let_return_nothing(task: Task, candidate: Path) -> None:
    """Let the deleted functions return nothing."""
    for file in {symbol.partition("::")[0] for symbol in task.deleted}:
        text = (candidate / file).read_text(encoding="utf-8")
        changed = text.replace("raise NotImplementedError\n", "return None\n")
        (candidate / file).write_text(changed, encoding="utf-8")


def restore_with_a_fault(task: Task, candidate: Path) -> bool:
    """Put the original back with one fault; return False where there is no place for one."""
    shutil.copytree(task.original, candidate, dirs_exist_ok=True)
    rng, untested = random.Random(task.name), task.difficulty.untested
    for fault in plant_faults(candidate, task.deleted, untested, rng, 1):
        (candidate / fault.file).write_text(fault.text, encoding="utf-8")
        return True
    return False


def restore_less_a_branch(task: Task, candidate: Path) -> bool:
    """Put the original back with one condition always false; return False where tests run no such branch."""
    shutil.copytree(task.original, candidate, dirs_exist_ok=True)
    deleted = [each for each in read_functions(candidate) if each.symbol in task.deleted]
    places: list[tuple[str, ast.Module, ast.If]] = []
    for file in sorted({each.file for each in deleted}):
        tree = parse_python((candidate / file).read_text(encoding="utf-8"))
        bodies = [range(each.body_line, each.last_line + 1) for each in deleted if each.file == file]
        places += [
            (file, tree, node)
            for node in ast.walk(tree)
            if isinstance(node, ast.If)
            and any(node.lineno in body for body in bodies)
            and f"{file}:{node.body[0].lineno}" not in task.difficulty.untested
        ]
    if not places:
        return False
    file, tree, branch = random.Random(task.name).choice(places)
    branch.test = ast.Constant(False)
    (candidate / file).write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    return True


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def sum_of(rows: Sequence[PackageRow]) -> PackageRow:
    """Return the sum of rows; seconds and bytes are means over tasks."""
    total = PackageRow("all", f"{len(rows)} packages")
    for row in rows:
        for name in _COUNTS:
            setattr(total, name, getattr(total, name) + getattr(row, name))
        total.seconds += row.seconds * row.tasks
        total.bytes += row.bytes * row.tasks
    total.seconds /= max(total.tasks, 1)
    total.bytes /= max(total.tasks, 1)
    return total


def measure_all(
    packages: Sequence[str] = PACKAGES, most: int = TASKS, restorations: int = 10, at_once: int = 2
) -> Iterator[PackageRow]:
    """Give the row of each package as it is measured; `at_once` are at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        measured = [pool.submit(measure, each, most, restorations) for each in packages]
        for each in as_completed(measured):
            yield each.result()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Tasks of real packages.")
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="NAME==VERSION")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"most tasks of a package ({TASKS})")
    parser.add_argument("--restorations", type=int, default=10, help="runs with the original (10)")
    parser.add_argument("--at-once", type=int, default=2, help="packages at once (2)")
    given = parser.parse_args()
    rows = list[PackageRow]()
    for cells in (HEADER, ("---",) * len(HEADER)):
        print(f"| {' | '.join(cells)} |")
    for row in measure_all(given.packages, given.tasks, given.restorations, given.at_once):
        rows.append(row)
        print(f"| {' | '.join(row.cells())} |", flush=True)
    print(f"| {' | '.join(sum_of(rows).cells())} |")


if __name__ == "__main__":
    main()
