"""Mix right and wrong tests in the same files; standard library alone, since tasks carry a copy of this.

A file of wrong tests alone can be told by all of its expectations together, which fit what is called worse
than those of right ones. So each test function is right or wrong by a coin of its own, and what is right in
one copy is wrong in the other.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_FEW = 3


@dataclass(frozen=True)
class MixedTests:
    """A copy of a test suite in which some tests are replaced by their wrong versions.

    `functions` are the names of the replaced functions, `files` the paths of files replaced as a whole.
    """

    functions: frozenset[str]
    files: frozenset[str]
    whole: frozenset[str]
    """Paths of all files whose tests cannot be replaced one by one, replaced or not."""

    def is_wrong(self, test: str) -> bool:
        """Return whether the copy holds the wrong version of a test, named by its id."""
        file, name = test.partition("::")[0], test.partition("[")[0].rpartition("::")[2]
        return file in self.files if file in self.whole else name in self.functions

    def opposite(self, functions: frozenset[str]) -> "MixedTests":
        """Return the copy in which the other tests are replaced.

        `functions` are the names of all functions that have a wrong version.
        """
        return MixedTests(functions - self.functions, self.whole - self.files, self.whole)


def mixes_of(
    counted: Sequence[str], canaries: Sequence[str], right: Path, wrong: Path, coin: Callable[[], bool]
) -> list[MixedTests]:
    """Return the test copies of a verdict: two pairs of opposites, three for fewer than three functions.

    Of `counted`, the ids of the tests that count, those functions matter that have a canary: a candidate that
    forges the outcome of one must guess in every copy whether it is right. `coin` returns a random bool.
    """
    pairs = 2 if len({test.partition("[")[0] for test in {*counted} & {*canaries}}) >= _FEW else 3
    return [mix for _ in range(pairs) for mix in mix_tests(right, wrong, coin)]


def mix_tests(right: Path, wrong: Path, coin: Callable[[], bool]) -> tuple[MixedTests, MixedTests]:
    """Return two opposite copies; `coin` decides which functions and files are replaced in the first."""
    functions: dict[str, bool] = {}
    files: dict[str, bool] = {}
    for path in sorted(right.rglob("*.py")):
        file = path.relative_to(right).as_posix()
        here, there = path.read_bytes(), (wrong / file).read_bytes()
        if here == there:
            continue
        names = _changed_functions(here, there)
        if names is None:
            files[file] = coin()
        else:
            functions |= {name: coin() for name in sorted(names) if name not in functions}
    mix = MixedTests(
        frozenset(name for name, is_wrong in functions.items() if is_wrong),
        frozenset(file for file, is_wrong in files.items() if is_wrong),
        frozenset(files),
    )
    return mix, mix.opposite(frozenset(functions))


def write_mix(mix: MixedTests, right: Path, wrong: Path, folder: Path) -> None:
    """Write the wrong versions that `mix` names into `folder`, a copy of the right tests."""
    for path in sorted(right.rglob("*.py")):
        file = path.relative_to(right).as_posix()
        here, there = path.read_bytes(), (wrong / file).read_bytes()
        if here == there:
            continue
        if file in mix.whole:
            mixed = there if file in mix.files else here
        else:
            mixed = _mixed(here, there, mix.functions)
        (folder / file).write_bytes(mixed)


def _mixed(here: bytes, there: bytes, wrong: frozenset[str]) -> bytes:
    lines, other = here.splitlines(keepends=True), there.splitlines(keepends=True)
    pairs = zip(_spans(here), _spans(there), strict=True)
    for (name, first, last), (_, other_first, other_last) in sorted(pairs, key=lambda pair: -pair[0][1]):
        if name in wrong:
            lines[first:last] = other[other_first:other_last]
    return b"".join(lines)


def _changed_functions(here: bytes, there: bytes) -> set[str] | None:
    """Return the test functions in which two files differ; None if they differ outside of functions too."""
    try:
        ours, theirs = _spans(here), _spans(there)
    except (SyntaxError, ValueError):
        return None
    if [name for name, *_ in ours] != [name for name, *_ in theirs]:
        return None
    lines, other = here.splitlines(keepends=True), there.splitlines(keepends=True)
    if _outside(lines, ours) != _outside(other, theirs):
        return None
    return {
        name
        for (name, first, last), (_, other_first, other_last) in zip(ours, theirs, strict=True)
        if lines[first:last] != other[other_first:other_last]
    }


def _outside(lines: list[bytes], spans: list[tuple[str, int, int]]) -> list[bytes]:
    inside = {number for _, first, last in spans for number in range(first, last)}
    return [line for number, line in enumerate(lines) if number not in inside]


def _spans(source: bytes) -> list[tuple[str, int, int]]:
    """Return name, first line and end line (exclusive) of every test function, with its decorators."""
    found: list[tuple[str, int, int]] = []

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and child.name.startswith("test") and child.end_lineno:
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                found.append((child.name, first - 1, child.end_lineno))
            elif not is_function:
                visit(child)

    visit(ast.parse(source))
    return found
