"""Choose features that tests cover, and delete them."""

import ast
import itertools
import random
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracemill.environments.feature_deletion.source_tree import Function, SourceTree
from tracemill.environments.parse_python import parse_python

FeatureKind = Literal["function", "class", "module", "group"]
LEAST_LINES = 3
MOST_TESTS_SHARE = 0.8
"""Deleting what more of the tests call leaves next to nothing functional."""


@dataclass(frozen=True)
class Feature:
    """Functions that are deleted together."""

    kind: FeatureKind
    functions: tuple[Function, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that contain its functions."""
        return tuple(sorted({function.file for function in self.functions}))

    @property
    def lines(self) -> int:
        """Return the lines that are deleted."""
        return sum(function.lines for function in self.functions)

    def without(self, symbols: Collection[str]) -> "Feature":
        """Return the feature less some functions, given as `file::name`."""
        left = tuple(function for function in self.functions if function.symbol not in symbols)
        return Feature(self.kind if len(left) > 1 else "function", left)


def covered_functions(tree: SourceTree, calls: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return the tests that call each function, by the function's key."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for test, called in calls.items():
        for key in called:
            if key in tree.functions:
                found[key].add(test)
    return dict(found)


def choose_features(
    tree: SourceTree,
    covered: Mapping[str, set[str]],
    most: int,
    seed: int = 0,
    least_lines: int = LEAST_LINES,
) -> Iterator[Feature]:
    """Yield features of each kind in turn: a function, a class's methods, a module, several files.

    Functions of fewer than `least_lines` lines are skipped. Every set of functions is yielded once.
    """
    rng, all_tests = random.Random(seed), set().union(*covered.values()) if covered else set()
    usable = {
        key: tests
        for key, tests in covered.items()
        if tree.functions[key].lines >= least_lines and len(tests) <= MOST_TESTS_SHARE * len(all_tests)
    }
    kinds = [_single(usable), _classes(tree, usable), _modules(tree, usable), _groups(tree, usable, rng)]
    seen: set[frozenset[str]] = set()
    given = 0
    shuffled = [[*keys] for keys in kinds]
    for keys in shuffled:
        rng.shuffle(keys)
    names: tuple[FeatureKind, ...] = ("function", "class", "module", "group")
    for row in itertools.zip_longest(*shuffled):
        for kind, keys in zip(names, row, strict=True):
            if not keys or keys in seen or given >= most:
                continue
            seen.add(keys)
            tests = set().union(*(covered[key] for key in keys))
            if len(tests) > MOST_TESTS_SHARE * len(all_tests):
                continue
            functions = sorted(
                (tree.functions[key] for key in keys), key=lambda each: (each.file, each.first_line)
            )
            given += 1
            yield Feature(kind, tuple(functions))


def _single(usable: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    for key in usable:
        yield frozenset((key,))


def _classes(tree: SourceTree, usable: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    methods: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for key in usable:
        function = tree.functions[key]
        owner, dot, _ = function.name.rpartition(".")
        if dot:
            methods[function.file, owner].add(key)
    for keys in methods.values():
        if len(keys) > 1:
            yield frozenset(keys)


def _modules(tree: SourceTree, usable: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for key in usable:
        modules[tree.functions[key].file].add(key)
    for keys in modules.values():
        if len(keys) > 2:
            yield frozenset(keys)


def _groups(tree: SourceTree, usable: Mapping[str, set[str]], rng: random.Random) -> Iterator[frozenset[str]]:
    """Yield groups of two or three functions in different files that share tests, as features."""
    keys = sorted(usable)
    for key in keys:
        near = [
            (len(usable[key] & usable[other]) / len(usable[key] | usable[other]), other)
            for other in keys
            if tree.functions[other].file != tree.functions[key].file and usable[key] & usable[other]
        ]
        near.sort(reverse=True)
        if near:
            chosen = [other for _, other in near[: rng.choice((1, 2))]]
            yield frozenset((key, *chosen))


def delete_feature(
    tree: SourceTree, feature: Feature, folder: Path, body: str = "raise NotImplementedError"
) -> Path:
    """Copy the code into `folder` with another body in a feature's functions; return the folder."""
    shutil.copytree(tree.code, folder)
    for file in feature.files:
        path = folder / file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        inside = [each for each in feature.functions if each.file == file]
        for function in sorted(inside, key=lambda each: -each.body_line):
            indent = lines[function.body_line - 1][: -len(lines[function.body_line - 1].lstrip())]
            nested = any(
                other.first_line < function.first_line and other.last_line >= function.last_line
                for other in inside
            )
            if not nested:
                lines[function.body_line - 1 : function.last_line] = [f"{indent}{body}\n"]
        path.write_text("".join(lines), encoding="utf-8")
    return folder


def untested_statements(code: Path, feature: Feature, run: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """Return the feature's statements that no test runs, each as `file:line` of its first line.

    `run` has the lines that were run, by file.
    """
    found: list[str] = []
    for file in feature.files:
        lines = set(run.get(file, ()))
        bodies = [
            range(each.body_line, each.last_line + 1) for each in feature.functions if each.file == file
        ]
        for node in ast.walk(parse_python((code / file).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.stmt) or not any(node.lineno in body for body in bodies):
                continue
            silent = isinstance(node, ast.Global | ast.Nonlocal | ast.Pass) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            if not silent and lines.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                found.append(f"{file}:{node.lineno}")
    return tuple(sorted(found))
