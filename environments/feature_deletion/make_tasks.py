"""Make tasks of a repository, and let through what passes six gates.

1. The tests pass on the original (twice).
2. Tests fail once the feature is deleted.
3. The rest stays functional: tests that passed still pass.
4. Bodies that return nothing do not solve it.
5. Nor does the original with a fault planted at any one place of it.
6. The original restores reward 1, and keeps doing so in fresh sandboxes.
"""

import random
import shutil
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracemill.environments.feature_deletion.blank_copies import BlankCopies, file_of
from tracemill.environments.feature_deletion.delete_features import (
    LEAST_LINES,
    Feature,
    choose_features,
    covered_functions,
    delete_feature,
    untested_statements,
)
from tracemill.environments.feature_deletion.plant_faults import Fault, plant_faults
from tracemill.environments.feature_deletion.remaining_copies import RemainingCopies
from tracemill.environments.feature_deletion.source_tree import Function, SourceTree, read_source_tree
from tracemill.environments.feature_deletion.task_texts import Level, task_text
from tracemill.environments.sandbox.file_trees import remove_tree
from tracemill.environments.sandbox.python_runtime import TEST_PACKAGES, make_readable, shared_packages
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Difficulty, Origin, Task
from tracemill.environments.verdict.change_expectations import change_expectations
from tracemill.environments.verdict.decide import MADE
from tracemill.environments.verdict.judge import BlankTests, TaskTests, digest_of, judge, passes, passing
from tracemill.environments.verdict.run_tests import TestBed, TestRun
from tracemill.records.errors import EnvironmentTaskError

RESTORATIONS = 10
_LEAST_KEPT = 1
_SLOWEST_TEST_S = 10.0
_GUARD_S = 3.0
"""Seconds of tests in other files that guard what stays functional."""


@dataclass
class TaskReport:
    """Counts of the features that were tried, made into tasks, and refused by reason.

    `left_out` of `tests` of a repository do not count: they do not pass twice in a sandbox, or are slow.
    `tell` gets the name of each feature before it is tried, `tell_refused` a name and why it is no task.
    """

    tried: int = 0
    made: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tests: int = 0
    left_out: int = 0
    tell: Callable[[str], None] = field(default=lambda name: None, repr=False)
    tell_refused: Callable[[str, str], None] = field(default=lambda name, why: None, repr=False)
    _name: str = field(default="", repr=False)

    def begin(self, name: str) -> None:
        """Count a feature as tried."""
        self.tried += 1
        self._name = name
        self.tell(name)

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count the feature tried last as refused."""
        self.refused[reason] += 1
        self.tell_refused(self._name, f"{reason}: {detail}" if detail else reason)


def make_tasks(
    repository: Path,
    origin: Origin,
    folder: Path,
    sandbox: Sandbox,
    *,
    most: int = 20,
    packages: Sequence[str] = (),
    restorations: int = RESTORATIONS,
    faults: int | None = None,
    seed: int = 0,
    least_lines: int = LEAST_LINES,
    report: TaskReport | None = None,
) -> Iterator[Task]:
    """Write tasks of a repository below `folder`, and yield each as it is made.

    `packages` are distributions, installed here, that the repository or its tests import; functions of fewer
    than `least_lines` lines are no feature. At most `faults` are planted in each feature, one at a time;
    without a number, one at every place. Functions whose faults the tests miss are left out of what is tried
    after them. Raises EnvironmentTaskError if the tests do not pass on the repository as it is.
    """
    report = report if report is not None else TaskReport()
    with tempfile.TemporaryDirectory(prefix="tracemill-tasks-") as scratch:
        work = Path(scratch)
        work.chmod(0o755)
        bench = TestedRepository(repository, work, sandbox, packages, seed)
        if not bench.covered:
            raise EnvironmentTaskError(
                "no test calls a function of the repository",
                "tests that import it from its own folder",
                "an installed package of the same name may stand before it, as those that pytest needs",
            )
        report.tests, report.left_out = bench.tests, bench.tests - len(bench.baseline)
        waiting = deque(choose_features(bench.tree, bench.covered, 20 * most, seed, least_lines))
        tried: set[tuple[Function, ...]] = set()
        while waiting and report.made < most:
            feature = waiting.popleft().without(bench.missed)
            if not feature.functions or feature.functions in tried:
                continue
            tried.add(feature.functions)
            more = len(feature.functions) - 1
            report.begin(feature.functions[0].symbol + (f" and {more} more" if more else ""))
            made = bench.try_feature(feature, len(tried), restorations, report, faults)
            if made is None:
                remove_tree(work / f"deleted-{len(tried)}")
                waiting.append(feature)  # tried again if a function of it is left out by then
            else:
                report.made += 1
                yield bench.write(made, feature, origin, folder, report.made)


class TestedRepository:
    """A repository that features are deleted from: its passing tests, its canaries and its coverage.

    `missed` are functions, as `file::name`, with a fault that the tests of a feature did not notice.
    """

    def __init__(
        self, repository: Path, work: Path, sandbox: Sandbox, packages: Sequence[str], seed: int
    ) -> None:
        """Run the tests of a repository twice. Raises EnvironmentTaskError if no test passes both times."""
        self._work, self._seed, self.packages = work, seed, (*TEST_PACKAGES, *packages)
        self.tree: SourceTree = read_source_tree(repository, work / "original")
        self.bed = TestBed(sandbox, shared_packages(self.packages), self.tree.roots)
        self.missed: set[str] = set()
        self._wrong = work / "wrong_tests"
        shutil.copytree(self.tree.tests, self._wrong)
        for file in self.tree.test_files:
            path = self._wrong / file
            source = path.read_text(encoding="utf-8-sig", errors="replace")
            path.write_text(change_expectations(source, seed), encoding="utf-8")
        make_readable(work)
        first = self._run(self.tree.code, self.tree.tests, traced=True, named=True)
        second = self._run(self.tree.code, self.tree.tests, named=True, hash_seed=1)
        self.baseline = {
            test: seconds
            for test, seconds in passing([first, second]).items()
            if seconds <= _SLOWEST_TEST_S and _cases_of(first, test) == _cases_of(second, test)
        }
        if not self.baseline:
            found = ", ".join(f"{count} {name}" for name, count in Counter(second.outcomes.values()).items())
            raise EnvironmentTaskError(
                f"no test of the repository passes twice ({found or 'no test was run'})",
                "a repository whose tests pass",
                "name the packages that it needs with --package",
            )
        self.tests = len(second.outcomes)
        wrong = self._run(self.tree.code, self._wrong)
        self._canaries = {test for test in self.baseline if wrong.outcomes.get(test) == "failed"}
        self._lines = first.lines
        calls = {test: called for test, called in first.calls.items() if test in self.baseline}
        self.covered = covered_functions(self.tree, calls)
        called = {test: [key for key in keys if key in self.covered] for test, keys in calls.items()}
        self._blank = BlankCopies(self.tree, self.bed, [*self.baseline], called, work, seed)
        self._copies = RemainingCopies(self.tree.code)

    def _run(
        self, code: Path, tests: Path, *, traced: bool = False, named: bool = False, hash_seed: int = 0
    ) -> TestRun:
        return self.bed.run(
            code, tests, self.tree.test_files, traced=traced, named=named, hash_seed=hash_seed
        )

    def try_feature(
        self, feature: Feature, number: int, restorations: int, report: TaskReport, faults: int | None
    ) -> tuple[Path, TaskTests] | None:
        """Delete a feature and check it; None, counted in `report`, if a check refuses it."""
        broken = make_readable(delete_feature(self.tree, feature, self._work / f"deleted-{number}"))
        if remaining := self._copies.find(feature.functions, broken):
            return report.refuse("a copy of it remains", remaining)
        faulty = None if faults == 0 else self._planted_faults(feature, faults)
        with tempfile.TemporaryDirectory(prefix="idle-", dir=self._work) as scratch:
            idle = make_readable(delete_feature(self.tree, feature, Path(scratch) / "code", "return None"))
            deleted = [function.symbol for function in feature.functions]
            exam = self.gates(broken, restorations, report, deleted, idle=idle, faulty=faulty)
        return None if exam is None else (broken, exam)

    def gates(
        self,
        broken: Path,
        restorations: int,
        report: TaskReport,
        deleted: Sequence[str],
        *,
        idle: Path | None = None,
        faulty: Iterable[tuple[Path, Fault]] | None = None,
        may_count: Callable[[str], bool] = lambda test: True,
        may_guard: Callable[[str], bool] = lambda test: True,
    ) -> TaskTests | None:
        """Return the tests of a task with the code `broken`; None, counted in `report`, if refused.

        `deleted` are the symbols of functions that it lacks.
        `idle` is a copy of the code whose bodies return nothing: a test counts if it has a blank copy and
        expects a value that this code does not give. `faulty` are copies with a fault each, which the
        tests must fail; there must be one. `may_count` and `may_guard` choose tests.
        """
        run = self._run(broken, self.tree.tests)
        failing = [test for test in self.baseline if not run.passed(test) and may_count(test)]
        kept = [test for test in self.baseline if run.passed(test) and may_guard(test)]
        if not failing:
            return report.refuse("no test fails without the feature")
        if len(kept) < _LEAST_KEPT:
            return report.refuse("nothing stays functional")
        blank, is_enough = self._blank.deciding(failing, idle or broken, deleted)
        if not is_enough:
            return report.refuse("too few failing tests expect a value")
        exam = self._exam(failing, kept, blank, deleted)
        planted = 0
        for code, fault in faulty or ():
            planted += 1
            if passes(self.bed, exam, code):
                self.missed.add(fault.symbol)
                return report.refuse("a planted fault solves it", fault.change)
        if faulty is not None and not planted:
            return report.refuse("no place for a fault")
        without = judge(self.bed, exam, broken)
        if without.reward != 0.0 or without.forged:
            return report.refuse("reward without the feature")
        for _ in range(1 + restorations):
            verdict = judge(self.bed, exam, self.tree.code)
            if verdict.timed_out:
                return report.refuse("the tests of the original ran out of time")
            if not verdict.solved:
                return report.refuse("the original does not always restore it")
        return exam

    def _planted_faults(self, feature: Feature, faults: int | None) -> Iterator[tuple[Path, Fault]]:
        """Yield copies of the original with one fault each; a copy is gone after it."""
        untested = untested_statements(self.tree.code, feature, self._lines)
        symbols = [function.symbol for function in feature.functions]
        rng = random.Random(f"{self._seed} {' '.join(symbols)}")
        for fault in plant_faults(self.tree.code, symbols, untested, rng, faults):
            with tempfile.TemporaryDirectory(prefix="fault-", dir=self._work) as folder:
                faulty = Path(folder)
                shutil.copytree(self.tree.code, faulty, dirs_exist_ok=True)
                (faulty / fault.file).write_text(fault.text, encoding="utf-8")
                yield make_readable(faulty), fault

    def _exam(
        self,
        failing: Sequence[str],
        kept: Sequence[str],
        blank: BlankTests,
        deleted: Sequence[str],
    ) -> TaskTests:
        """Return the task's tests: files with blank tests, and other files as long as they run quickly."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for test, each in self.baseline.items():
            seconds[file_of(test)] += each
        deciding = tuple(blank.expected)
        files = {file_of(test) for test in deciding}
        room = _GUARD_S
        for file, each in sorted(seconds.items(), key=lambda item: item[1]):
            room -= each
            if room > 0:
                files.add(file)
        guard = [test for test in kept if file_of(test) in files]
        blank = self._blank.with_guards(blank, guard, deleted)
        questions = {
            test
            for test, values in blank.expected.items()
            if any(number.rpartition(" ")[0] not in ("", MADE) for number in values)
        }  # other values answer them too, which a canary may expect
        canaries = sorted(self._canaries.intersection((*deciding, *guard)) - questions)
        return TaskTests(
            self.tree.tests,
            self._wrong,
            tuple(sorted(files)),
            deciding,
            tuple(guard),
            tuple(canaries),
            digest_of(self.tree.tests, self._wrong, blank.tests),
            sum(seconds[file] for file in files) + 0.5,
            blank,
            tuple(test for test in failing if test not in deciding and file_of(test) in files),
        )

    def write(
        self, made: tuple[Path, TaskTests], feature: Feature, origin: Origin, folder: Path, number: int
    ) -> Task:
        """Write a task: the files that the agent sees, the tests and the original."""
        broken, exam = made
        name = f"{origin.name}-{number:03}"
        callers = len({test for function in feature.functions for test in self.covered[function.key]})
        difficulty = Difficulty(
            feature.kind,
            len(feature.functions),
            len(feature.files),
            feature.lines,
            callers,
            untested_statements(self.tree.code, feature, self._lines),
        )
        levels: tuple[Level, ...] = ("terse", "detailed")
        texts = {level: task_text(feature, level) for level in levels}
        place = folder / name
        task = Task.write(
            place,
            name=name,
            origin=origin,
            texts=texts,
            repository=broken,
            original={file: self.tree.code / file for file in feature.files},
            exam=exam,
            packages=self.packages,
            roots=self.tree.roots,
            deleted=[function.symbol for function in feature.functions],
            difficulty=difficulty,
        )
        shutil.rmtree(broken)
        return task


def _cases_of(run: TestRun, test: str) -> Sequence[str]:
    """Return the names of the cases of a test's function, whose order a set changes with the hash seed."""
    return run.cases.get(test.partition("[")[0], ())
