"""Make tasks of a repository, and let through what passes six gates.

1. The tests pass on the original (twice).
2. Tests fail once the feature is deleted.
3. The rest stays functional: tests that passed still pass.
4. Bodies that return nothing do not solve it.
5. Nor does the original with a fault planted in it.
6. The original restores reward 1, and keeps doing so in fresh sandboxes.
"""

import random
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracemill.environments.feature_deletion.delete_features import (
    LEAST_LINES,
    Feature,
    choose_features,
    covered_functions,
    delete_feature,
    untested_statements,
)
from tracemill.environments.feature_deletion.plant_faults import difference, plant_faults
from tracemill.environments.feature_deletion.remaining_copies import RemainingCopies
from tracemill.environments.feature_deletion.source_tree import (
    SourceTree,
    classes_made_by,
    read_source_tree,
)
from tracemill.environments.feature_deletion.task_texts import Level, task_text
from tracemill.environments.sandbox.file_trees import remove_tree
from tracemill.environments.sandbox.python_runtime import TEST_PACKAGES, make_readable, shared_packages
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Difficulty, Origin, Task
from tracemill.environments.verdict.blank_tests import answer_tables, asked_texts, blank_test
from tracemill.environments.verdict.change_expectations import change_expectations
from tracemill.environments.verdict.closed_tests import TestName
from tracemill.environments.verdict.decide import (
    MADE,
    REFUSED,
    Values,
    compare_values,
    is_answer,
    recorded_values,
)
from tracemill.environments.verdict.held_answers import BlankSource, HeldTexts
from tracemill.environments.verdict.judge import BlankTests, TaskTests, digest_of, judge, passes, passing
from tracemill.environments.verdict.record_values import HELD
from tracemill.environments.verdict.run_tests import TestBed, TestRun
from tracemill.records.errors import EnvironmentTaskError

RESTORATIONS = 10
FAULTS = 8
"""Faults planted in a feature, of which its tests have to notice every one."""
_LEAST_KEPT = 1
_LEAST_BLANK, _LEAST_UNGUESSED = 0.5, 0.25
"""Shares of the failing tests with a blank copy, and with one that expects more than a guess."""
_MOST_ALONE = 24
"""Functions of failing tests whose blank copies are run, each in a process of its own."""
_MOST_GUARDS = 6
"""Functions of other tests whose blank copies are run too."""
_ABOUT_TEXTS = frozenset({"in", "startswith", "endswith", "match"})
"""Questions that a text answers which holds the answers of all."""
_SLOWEST_TEST_S = 10.0
_GUARD_S = 3.0
"""Seconds of tests in other files that guard what stays functional."""


@dataclass
class TaskReport:
    """Counts of the features that were tried, made into tasks, and refused by reason.

    `tell` gets the name of each feature before it is tried, `tell_refused` a name and why it is no task.
    """

    tried: int = 0
    made: int = 0
    refused: Counter[str] = field(default_factory=Counter)
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
    faults: int = FAULTS,
    seed: int = 0,
    least_lines: int = LEAST_LINES,
    report: TaskReport | None = None,
) -> Iterator[Task]:
    """Write tasks of a repository below `folder`, and yield each as it is made.

    `packages` are distributions, installed here, that the repository or its tests import; functions of fewer
    than `least_lines` lines are no feature; `faults` are planted in each feature, one at a time. Raises
    EnvironmentTaskError if the tests do not pass on the repository as it is.
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
        features = choose_features(bench.tree, bench.covered, 20 * most, seed, least_lines)
        for number, feature in enumerate(features):
            if report.made >= most:
                break
            more = len(feature.functions) - 1
            report.begin(feature.functions[0].symbol + (f" and {more} more" if more else ""))
            made = bench.try_feature(feature, number, restorations, report, faults)
            if made is None:
                remove_tree(work / f"deleted-{number}")
            else:
                report.made += 1
                yield bench.write(made, feature, origin, folder, report.made)


class TestedRepository:
    """A repository that features are deleted from: its passing tests, its canaries and its coverage."""

    def __init__(
        self, repository: Path, work: Path, sandbox: Sandbox, packages: Sequence[str], seed: int
    ) -> None:
        """Run the tests of a repository twice. Raises EnvironmentTaskError if no test passes both times."""
        self._work, self._seed, self.packages = work, seed, (*TEST_PACKAGES, *packages)
        self.tree: SourceTree = read_source_tree(repository, work / "original")
        self.bed = TestBed(sandbox, shared_packages(self.packages), self.tree.roots)
        self._wrong = work / "wrong_tests"
        shutil.copytree(self.tree.tests, self._wrong)
        for file in self.tree.test_files:
            path = self._wrong / file
            source = path.read_text(encoding="utf-8-sig", errors="replace")
            path.write_text(change_expectations(source, seed), encoding="utf-8")
        make_readable(work)
        first = self._run(self.tree.code, self.tree.tests, traced=True)
        second = self._run(self.tree.code, self.tree.tests, hash_seed=1)
        self.baseline = {
            test: seconds for test, seconds in passing([first, second]).items() if seconds <= _SLOWEST_TEST_S
        }
        if not self.baseline:
            found = ", ".join(f"{count} {name}" for name, count in Counter(second.outcomes.values()).items())
            raise EnvironmentTaskError(
                f"no test of the repository passes twice ({found or 'no test was run'})",
                "a repository whose tests pass",
                "name the packages that it needs with --package",
            )
        wrong = self._run(self.tree.code, self._wrong)
        self._canaries = {test for test in self.baseline if wrong.outcomes.get(test) == "failed"}
        self._texts = {
            path.relative_to(self.tree.tests).as_posix(): path.read_text("utf-8-sig", "replace")
            for path in sorted(self.tree.tests.rglob("*.py"))
        }
        self._answers, self._asked = answer_tables(self._texts), asked_texts(self._texts)
        self._lines = first.lines
        self._called = {test: called for test, called in first.calls.items() if test in self.baseline}
        self.covered = covered_functions(self.tree, self._called)
        self._guards: dict[TestName, tuple[Path, Values]] = {}
        self._copies = RemainingCopies(self.tree.code)

    def _run(self, code: Path, tests: Path, *, traced: bool = False, hash_seed: int = 0) -> TestRun:
        return self.bed.run(code, tests, self.tree.test_files, traced=traced, hash_seed=hash_seed)

    def _blank_tests(
        self, failing: Sequence[str], wrong: Path, deleted: Sequence[str]
    ) -> tuple[BlankTests, bool]:
        """Return blank copies of test functions, each alone, and whether enough failing tests have one.

        Functions are drawn until there are `_MOST_ALONE`; the shares are those of what was drawn.
        """
        names = {symbol.rpartition("::")[2].rpartition(".")[2] for symbol in deleted}
        remade = classes_made_by(self.tree.code, deleted)
        functions = _by_function(failing)
        folder = Path(tempfile.mkdtemp(prefix="blank-", dir=self._work))
        blank = BlankTests(folder, (), {}, ())
        drawn = 0
        for function in random.Random(self._seed).sample(sorted(functions), len(functions)):
            if len(blank.groups) == _MOST_ALONE:
                break
            drawn += len(functions[function])
            sources = blank_test(self._texts, function, self._answers, names)
            if sources:
                blank = self._with_function(blank, sources, functions[function], wrong, remade)
        is_unguessed = len(blank.unguessed) >= max(1, _LEAST_UNGUESSED * drawn)
        return blank, is_unguessed and len(blank.expected) >= _LEAST_BLANK * drawn

    def _with_function(
        self,
        blank: BlankTests,
        sources: Mapping[str, BlankSource],
        tests: Sequence[str],
        wrong: Path,
        remade: Sequence[str],
    ) -> BlankTests:
        """Return blank tests with those of one function that always expect the same, but not of `wrong` code.

        Nor objects of `remade` classes, whose attributes are free. What they hold themselves is a guess.
        """
        folder = blank.tests / str(len(blank.groups))
        expected, held = self._expected_values(folder, sources, tests, remade)
        given = _values_of(self._run_alone(wrong, folder, tests)) if expected else {}
        telling = {
            test: {
                number: texts
                for number, texts in values.items()
                if not compare_values({test: {number: texts}}, given)[test]
            }
            for test, values in expected.items()
        }
        if not any(telling.values()):
            shutil.rmtree(folder)
            return blank
        unguessed = [test for test, values in telling.items() if not held.let_guess(values)]
        return BlankTests(
            blank.tests,
            (*blank.groups, tuple(expected)),
            {**blank.expected, **expected},
            (*blank.unguessed, *unguessed),
        )

    def _expected_values(
        self,
        folder: Path,
        sources: Mapping[str, BlankSource],
        tests: Sequence[str],
        remade: Sequence[str] = (),
    ) -> tuple[Values, HeldTexts]:
        """Write a blank test function to a folder; return what its tests expect, and what they hold.

        Left out are tests whose values differ with the hash seed, or are objects of `remade` classes.
        """
        _write_tests(folder, {file: source.probe for file, source in sources.items()})
        run = self._run_alone(self.tree.code, folder, tests)
        made = [text for numbered in run.values.values() for text in numbered.get(HELD, ())]
        answers = next(iter(sources.values())).answers
        expected = {
            test: {
                number: self._asked_for(_file(test), number, answers[number], texts)
                if number in answers
                else texts
                for number, texts in run.values.get(test, {}).items()
                if number != HELD
            }
            for test in tests
            if run.passed(test)
        }
        _write_tests(folder, {file: source.text for file, source in sources.items()})
        again = self._run_alone(self.tree.code, folder, tests, hash_seed=1)
        same = compare_values(expected, _values_of(again))
        stable = {
            test: values
            for test, values in expected.items()
            if values and same[test] and not _names_class(str(values), remade)
        }
        return stable, HeldTexts(sources.values(), made)

    def _asked_for(self, file: str, number: str, answer: str, texts: Sequence[str]) -> list[str]:
        """Return what a question asks of each value, and what it answers to no other question of its file."""
        asked = number.rpartition(" ")[0]
        others = sorted(self._asked[file].get(asked, ())) if asked in _ABOUT_TEXTS else []
        return [
            REFUSED.join([answer, *(each for each in others if not is_answer(asked, text, each))])
            for text in texts
        ]

    def _run_alone(self, code: Path, folder: Path, tests: Sequence[str], hash_seed: int = 0) -> TestRun:
        files = [_file(tests[0])]
        return self.bed.run(code, make_readable(folder), files, hash_seed=hash_seed, order=hash_seed)

    def _with_guards(self, blank: BlankTests, guard: Sequence[str], deleted: Sequence[str]) -> BlankTests:
        """Return blank tests with those of functions that guard what works without the feature.

        Functions are taken whose tests call what those before them do not. Left out are tests that compare
        objects of classes with `deleted` methods, whose attributes are free.
        """
        owners = [symbol.rpartition("::")[2].rpartition(".")[0].rpartition(".")[2] for symbol in deleted]
        free = [*filter(None, owners), *classes_made_by(self.tree.code, deleted)]
        functions = _by_function(guard)
        calls = {
            function: {key for test in tests for key in self._called.get(test, ()) if key in self.covered}
            for function, tests in functions.items()
        }
        called: set[str] = set()
        taken = 0
        while taken < _MOST_GUARDS and calls:
            function = max(calls, key=lambda each: (len(calls[each] - called), each))
            keys = calls.pop(function)
            if keys <= called:
                break
            folder, values = self._guard(function)
            expected = {
                test: values[test]
                for test in functions[function]
                if test in values and not _names_class(str(values[test]), free)
            }
            if expected:
                shutil.copytree(folder, blank.tests / str(len(blank.groups)))
                groups = (*blank.groups, tuple(expected))
                blank = replace(blank, groups=groups, expected={**blank.expected, **expected})
                called |= keys
                taken += 1
        return blank

    def _guard(self, function: TestName) -> tuple[Path, Values]:
        """Return the folder of a function's blank copy and what its tests expect; nothing if it has none."""
        if function not in self._guards:
            folder = Path(tempfile.mkdtemp(prefix="guard-", dir=self._work))
            tests = _by_function(self.baseline)[function]
            sources = blank_test(self._texts, function, self._answers)
            values, held = self._expected_values(folder, sources, tests) if sources else ({}, None)
            told = {test: each for test, each in values.items() if held and not held.let_guess(each)}
            self._guards[function] = folder, told
        return self._guards[function]

    def try_feature(
        self, feature: Feature, number: int, restorations: int, report: TaskReport, faults: int
    ) -> tuple[Path, TaskTests] | None:
        """Delete a feature and check it; None, counted in `report`, if a check refuses it."""
        broken = make_readable(delete_feature(self.tree, feature, self._work / f"deleted-{number}"))
        if remaining := self._copies.find(feature.functions, broken):
            return report.refuse("a copy of it remains", remaining)
        faulty = self._planted_faults(feature, faults)
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
        faulty: Iterable[tuple[Path, str]] = (),
        may_count: Callable[[str], bool] = lambda test: True,
        may_guard: Callable[[str], bool] = lambda test: True,
    ) -> TaskTests | None:
        """Return the tests of a task with the code `broken`; None, counted in `report`, if refused.

        `deleted` are the symbols of functions that it lacks.
        `idle` is a copy of the code whose bodies return nothing: a test counts if it has a blank copy and
        expects a value that this code does not give. `faulty` are copies with a fault each, and its name,
        which the tests must fail. `may_count` and `may_guard` choose tests.
        """
        run = self._run(broken, self.tree.tests)
        failing = [test for test in self.baseline if not run.passed(test) and may_count(test)]
        kept = [test for test in self.baseline if run.passed(test) and may_guard(test)]
        if not failing:
            return report.refuse("no test fails without the feature")
        if len(kept) < _LEAST_KEPT:
            return report.refuse("nothing stays functional")
        blank, is_enough = self._blank_tests(failing, idle or broken, deleted)
        if not is_enough:
            return report.refuse("too few failing tests expect a value")
        exam = self._exam(failing, kept, blank, deleted)
        for code, fault in faulty:
            if passes(self.bed, exam, code):
                return report.refuse("a planted fault solves it", fault)
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

    def _planted_faults(self, feature: Feature, faults: int) -> Iterator[tuple[Path, str]]:
        """Yield copies of the original with one fault each, and the fault; a copy is gone after it."""
        untested = untested_statements(self.tree.code, feature, self._lines)
        symbols = [function.symbol for function in feature.functions]
        rng = random.Random(f"{self._seed} {' '.join(symbols)}")
        for file, text in plant_faults(self.tree.code, symbols, untested, rng, faults):
            with tempfile.TemporaryDirectory(prefix="fault-", dir=self._work) as folder:
                faulty = Path(folder)
                shutil.copytree(self.tree.code, faulty, dirs_exist_ok=True)
                fault = difference((faulty / file).read_text(encoding="utf-8"), text)
                (faulty / file).write_text(text, encoding="utf-8")
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
            seconds[_file(test)] += each
        deciding = tuple(blank.expected)
        files = {_file(test) for test in deciding}
        room = _GUARD_S
        for file, each in sorted(seconds.items(), key=lambda item: item[1]):
            room -= each
            if room > 0:
                files.add(file)
        guard = [test for test in kept if _file(test) in files]
        blank = self._with_guards(blank, guard, deleted)
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
            tuple(test for test in failing if test not in deciding and _file(test) in files),
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


def _names_class(text: str, names: Sequence[str]) -> bool:
    """Return whether recorded values hold an object of a class of these names."""
    return any(re.search(rf"[<|]{re.escape(name)}[| ]", text) for name in names)


def _values_of(run: TestRun) -> Values:
    """Return what blank tests recorded in a run."""
    return {test: recorded_values(values, run.outcomes.get(test)) for test, values in run.values.items()}


def _by_function(tests: Iterable[str]) -> Mapping[TestName, list[str]]:
    """Return tests by file and function."""
    functions: defaultdict[TestName, list[str]] = defaultdict(list)
    for test in tests:
        functions[_file(test), _function(test)].append(test)
    return functions


def _file(test: str) -> str:
    """Return the test file of a test id."""
    return test.partition("::")[0]


def _function(test: str) -> str:
    """Return the name of the test function of a test id."""
    return test.partition("[")[0].rpartition("::")[2]


def _write_tests(folder: Path, texts: Mapping[str, str]) -> None:
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
