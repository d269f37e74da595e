"""Read a Python repository: its files, its functions, its tests."""

import ast
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tracemill.environments.parse_python import parse_python
from tracemill.records.errors import EnvironmentTaskError

LEFT_OUT = (
    "__pycache__", "*.pyc", "*.pyo", "*.pyd", "*.so", "*.pyi", ".git", ".hg", ".svn", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".venv", "venv", "*.egg-info", "*.dist-info", "build",
    "dist", ".eggs", ".coverage", ".hypothesis", ".github", ".history", "htmlcov", ".ipynb_checkpoints",
    "*.orig", "*.rej", "*.bak", "*~", "*.swp",
)  # fmt: skip
"""What a task never holds: history, caches and second copies, from which a deleted feature could be read."""
_MAKING = ("__init__", "__new__", "__post_init__")
"""Methods that give an object its attributes."""
_TEST_FILES = ("test_*.py", "*_test.py")
_ROOT_TEST_FILES = ("tests.py", "*_tests.py")
"""Test files at the root of a repository alone: inside of a package, such a name may be code."""


@dataclass(frozen=True)
class Function:
    """A function or method of a repository.

    `file` is its path in the repository, `name` its qualified name in the module (`Class.method`). Lines
    count from 1: `first_line` is that of the first decorator, `body_line` that of the first statement of the
    body, which may be the docstring.
    """

    file: str
    name: str
    first_line: int
    last_line: int
    body_line: int
    signature: str
    docstring: str

    @property
    def key(self) -> str:
        """Return the key that the call trace uses for it: file and line of the first decorator."""
        return f"{self.file}:{self.first_line}"

    @property
    def symbol(self) -> str:
        """Return `file::name`, the notation of tasks."""
        return f"{self.file}::{self.name}"

    @property
    def lines(self) -> int:
        """Return the lines of its body."""
        return self.last_line - self.body_line + 1


@dataclass(frozen=True)
class SourceTree:
    """A copy of a repository without history and caches: code in one folder, tests in another."""

    code: Path
    tests: Path
    test_files: tuple[str, ...]
    roots: tuple[str, ...]
    functions: Mapping[str, Function]


def read_source_tree(repository: Path, folder: Path) -> SourceTree:
    """Copy a repository into `folder`, its tests apart from its code, and return what is there.

    Tests are the files that pytest would collect, with the rest of their folders where these are named
    `test` or `tests`. Raises EnvironmentTaskError if there is no test or no function.
    """
    code, tests = folder / "code", folder / "tests"
    shutil.copytree(
        repository, code, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=False, dirs_exist_ok=True
    )
    tests.mkdir(parents=True)
    for path in sorted(code.rglob("*")):
        if path.is_dir() and path.name in ("test", "tests", "testing") and _has_tests(path):
            _move(path, tests / path.relative_to(code))
    found = [path for pattern in _TEST_FILES for path in code.rglob(pattern)]
    found += [path for pattern in _ROOT_TEST_FILES for path in code.glob(pattern)]
    for path in (*found, *code.rglob("conftest.py")):
        if path.exists():
            _move(path, tests / path.relative_to(code))
    paths = [path for pattern in _TEST_FILES for path in tests.rglob(pattern)]
    paths += [path for pattern in _ROOT_TEST_FILES for path in tests.glob(pattern)]
    files = sorted({path.relative_to(tests).as_posix() for path in paths})
    if not files:
        raise EnvironmentTaskError(
            "the repository has no test file", "files test_*.py or *_test.py, or tests.py at its root"
        )
    functions = {function.key: function for function in read_functions(code)}
    if not functions:
        raise EnvironmentTaskError("the repository has no Python function outside of its tests")
    roots = ("src", ".") if (code / "src").is_dir() else (".",)
    return SourceTree(code, tests, tuple(files), roots, functions)


def _has_tests(folder: Path) -> bool:
    return any(True for pattern in _TEST_FILES for _ in folder.rglob(pattern))


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(str(source), target)


def read_functions(code: Path) -> Iterator[Function]:
    """Yield every function and method below a folder; files that do not parse are skipped."""
    for path in sorted(code.rglob("*.py")):
        file = path.relative_to(code).as_posix()
        if file in ("setup.py", "noxfile.py") or file.startswith(
            ("docs/", "doc/", "examples/", "benchmarks/")
        ):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            tree = parse_python(text)
        except (SyntaxError, ValueError):
            continue
        yield from _functions(tree, file, text.splitlines(), "")


def classes_made_by(code: Path, symbols: Iterable[str]) -> list[str]:
    """Return the names of classes whose objects these functions make, and of their bases."""
    owners = [symbol.rpartition("::")[2].rpartition(".") for symbol in symbols]
    waiting = [owner.rpartition(".")[2] for owner, _, name in owners if name in _MAKING]
    bases: dict[str, set[str]] = {}
    for path in code.rglob("*.py") if waiting else ():
        with suppress(OSError, SyntaxError, ValueError):
            for node in ast.walk(parse_python(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    names = (ast.unparse(each).rpartition(".")[2] for each in node.bases)
                    bases.setdefault(node.name, set()).update(names)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += bases.get(name, ())
    return sorted(found)


def _functions(node: ast.AST, file: str, lines: Sequence[str], within: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, file, lines, f"{within}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.end_lineno:
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            body = child.body[0]
            if body.lineno == child.lineno:
                continue  # the body stands in the line of `def`
            signature = " ".join(line.strip() for line in lines[child.lineno - 1 : body.lineno - 1])
            yield Function(
                file,
                within + child.name,
                first,
                child.end_lineno,
                _first_body_line(child),
                signature.partition('"""')[0].strip().rstrip(":"),
                ast.get_docstring(child) or "",
            )
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _functions(child, file, lines, within)


def _first_body_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the line on which the body begins, including decorators of a nested definition."""
    body = node.body[0]
    decorators = getattr(body, "decorator_list", [])
    return min([body.lineno, *(each.lineno for each in decorators)])
