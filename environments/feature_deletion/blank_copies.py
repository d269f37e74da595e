"""Choose blank copies of a repository's tests: those that earn a reward, and those that guard.

What a blank test expects is what it records on the original code, in two processes with other hash seeds.
"""

import random
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tracemill.environments.feature_deletion.source_tree import SourceTree, classes_made_by
from tracemill.environments.sandbox.python_runtime import make_readable
from tracemill.environments.verdict.blank_tests import blank_test, find_answers
from tracemill.environments.verdict.closed_tests import TestName
from tracemill.environments.verdict.decide import (
    REFUSED,
    Values,
    compare_values,
    holds_unknown,
    is_answer,
    recorded_values,
)
from tracemill.environments.verdict.held_answers import BlankSource, HeldTexts
from tracemill.environments.verdict.judge import BlankTests
from tracemill.environments.verdict.record_values import HELD
from tracemill.environments.verdict.run_tests import TestBed, TestRun

_LEAST_BLANK, _LEAST_UNGUESSED = 0.5, 0.25
"""Shares of the failing tests with a blank copy, and with one that expects more than a guess."""
_MOST_ALONE = 24
"""Functions of failing tests whose blank copies are run, each in a process of its own."""
_MOST_GUARDS = 6
"""Functions of other tests whose blank copies are run too."""
_ABOUT_TEXTS = frozenset({"in", "startswith", "endswith", "match"})
"""Questions that a text answers which holds the answers of all."""


class BlankCopies:
    """Blank copies of the tests of a repository, which are written and run below `work`.

    `baseline` are the tests that pass; `called` are the functions that each of them calls, by key.
    """

    def __init__(
        self,
        tree: SourceTree,
        bed: TestBed,
        baseline: Sequence[str],
        called: Mapping[str, Sequence[str]],
        work: Path,
        seed: int,
    ) -> None:
        """Read the tests of a repository."""
        self._tree, self._bed, self._work, self._seed = tree, bed, work, seed
        self._baseline, self._called = _by_function(baseline), called
        self._texts = {
            path.relative_to(tree.tests).as_posix(): path.read_text("utf-8-sig", "replace")
            for path in sorted(tree.tests.rglob("*.py"))
        }
        self._files = find_answers(self._texts)
        self._tables = {file: answers.tables for file, answers in self._files.items()}
        self._guards: dict[TestName, tuple[Path, Values]] = {}

    def deciding(
        self, failing: Sequence[str], wrong: Path, deleted: Sequence[str]
    ) -> tuple[BlankTests, bool]:
        """Return blank copies of test functions, each alone, and whether enough failing tests have one.

        Functions are drawn until there are `_MOST_ALONE`; the shares are those of what was drawn.
        """
        names = {symbol.rpartition("::")[2].rpartition(".")[2] for symbol in deleted}
        remade = classes_made_by(self._tree.code, deleted)
        functions = _by_function(failing)
        folder = Path(tempfile.mkdtemp(prefix="blank-", dir=self._work))
        blank = BlankTests(folder, (), {}, ())
        drawn = 0
        for function in random.Random(self._seed).sample(sorted(functions), len(functions)):
            if len(blank.groups) == _MOST_ALONE:
                break
            drawn += len(functions[function])
            sources = blank_test(self._texts, function, self._tables, names)
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
        run = self._run_alone(self._tree.code, folder, tests)
        made = [text for numbered in run.values.values() for text in numbered.get(HELD, ())]
        answers = next(iter(sources.values())).answers
        expected = {
            test: {
                number: self._asked_for(file_of(test), number, answers[number], texts)
                if number in answers
                else texts
                for number, texts in run.values.get(test, {}).items()
                if number != HELD
            }
            for test in tests
            if run.passed(test)
        }
        _write_tests(folder, {file: source.text for file, source in sources.items()})
        again = self._run_alone(self._tree.code, folder, tests, hash_seed=1)
        same = compare_values(expected, _values_of(again))
        stable = {
            test: values
            for test, values in expected.items()
            if values and same[test] and not holds_unknown(values) and not _names_class(str(values), remade)
        }
        return stable, HeldTexts(sources.values(), made)

    def _asked_for(self, file: str, number: str, answer: str, texts: Sequence[str]) -> list[str]:
        """Return what a question asks of each value, and what it answers to no other question of its file."""
        asked = number.rpartition(" ")[0]
        others = sorted(self._files[file].asked.get(asked, ())) if asked in _ABOUT_TEXTS else []
        return [
            REFUSED.join([answer, *(each for each in others if not is_answer(asked, text, each))])
            for text in texts
        ]

    def _run_alone(self, code: Path, folder: Path, tests: Sequence[str], hash_seed: int = 0) -> TestRun:
        files = [file_of(tests[0])]
        return self._bed.run(code, make_readable(folder), files, hash_seed=hash_seed, order=hash_seed)

    def with_guards(self, blank: BlankTests, guard: Sequence[str], deleted: Sequence[str]) -> BlankTests:
        """Return blank tests with those of functions that guard what works without the feature.

        Functions are taken whose tests call what those before them do not. Left out are tests that compare
        objects of classes with `deleted` methods, whose attributes are free.
        """
        owners = [symbol.rpartition("::")[2].rpartition(".")[0].rpartition(".")[2] for symbol in deleted]
        free = [*filter(None, owners), *classes_made_by(self._tree.code, deleted)]
        functions = _by_function(guard)
        calls = {
            function: {key for test in tests for key in self._called.get(test, ())}
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
            tests = self._baseline[function]
            sources = blank_test(self._texts, function, self._tables)
            values, held = self._expected_values(folder, sources, tests) if sources else ({}, None)
            told = {test: each for test, each in values.items() if held and not held.let_guess(each)}
            self._guards[function] = folder, told
        return self._guards[function]


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
        functions[file_of(test), _function(test)].append(test)
    return functions


def file_of(test: str) -> str:
    """Return the test file of a test id."""
    return test.partition("::")[0]


def _function(test: str) -> str:
    """Return the name of the test function of a test id."""
    return test.partition("[")[0].rpartition("::")[2]


def _write_tests(folder: Path, texts: Mapping[str, str]) -> None:
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
