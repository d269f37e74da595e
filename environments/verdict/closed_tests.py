"""Tell which blank tests hold no answer, and remove from their files what they do not need.

A test is *closed* if its own code, and all code of the tests' files that it may reach by a name, compares
with placeholders alone: no other comparison, assertion or match is in them, nor a call that may compare what
the candidate gives with a text. Whatever has a name that a test uses, anywhere in the files, counts as
reached. What no closed test reaches, such as a reference implementation, is removed.
"""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from tracemill.environments.verdict.held_answers import LITERAL, is_guessed
from tracemill.environments.verdict.known_names import Function, called_name
from tracemill.environments.verdict.record_values import EXPECTED, RAISED

TestName = tuple[str, str]
"""File and function of a test."""
_COMPARING = ("assert", "fail", "warns", "deprecated_call", "raises", "approx")
"""Beginnings of the names of functions that compare what they get, or end a test."""
_HARMLESS = {"assertIsNotNone", "assertIsInstance", "assertTrue"}
"""Methods that compare nothing; what is true is looked at by itself."""
_COMPARING_MODULES = {"cmath", "difflib", "filecmp", "fnmatch", "math", "operator", "re"}
_IMPLICIT = {
    "setup", "teardown", "setUp", "tearDown", "setUpClass", "tearDownClass", "setUpModule", "tearDownModule",
    "asyncSetUp", "asyncTearDown", "setup_method", "teardown_method", "setup_class", "teardown_class",
    "setup_module", "teardown_module", "setup_function", "teardown_function", "pytestmark",
}  # fmt: skip
"""Names that the test framework uses by itself."""
_IMPORTS = ast.Import | ast.ImportFrom


def closed_tests(trees: Mapping[str, ast.Module]) -> Set[TestName]:
    """Return the tests of blank files that are closed."""
    suite = _Suite(trees)
    return {
        test for test in suite.tests if not any(map(suite.compares, suite.reached([test], all_called=False)))
    }


def remove_unreached(trees: Mapping[str, ast.Module], tests: Collection[TestName]) -> None:
    """Remove all other tests from blank files, and all statements that these do not reach, but imports."""
    kept = {id(each.node) for each in _Suite(trees).reached(tests)}
    for tree in trees.values():
        _remove_others(tree, kept)


def _remove_others(within: ast.Module | ast.ClassDef, kept: Set[int]) -> None:
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            _remove_others(node, kept)
    body = [node for node in within.body if id(node) in kept or isinstance(node, _IMPORTS)]
    within.body = body if isinstance(within, ast.Module) else body or [ast.Pass()]


@dataclass(frozen=True)
class _Definition:
    """A statement outside of functions, the names that it binds, and where it lies."""

    node: ast.stmt
    names: Set[str]
    file: str
    within: "_Definition | None" = None

    @property
    def is_test(self) -> bool:
        """Return whether it is a test function."""
        return isinstance(self.node, Function) and self.node.name.startswith("test")

    @property
    def is_implicit(self) -> bool:
        """Return whether the test framework uses it by itself."""
        decorators = getattr(self.node, "decorator_list", [])
        return bool(self.names & _IMPLICIT) or any("autouse" in ast.unparse(each) for each in decorators)


class _Suite:
    """The statements of a test suite outside of functions, and which of them reach which by name."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.tests: defaultdict[TestName, list[_Definition]] = defaultdict(list)
        self._named: defaultdict[str, list[_Definition]] = defaultdict(list)
        self._members: defaultdict[int, list[_Definition]] = defaultdict(list)
        """Definitions within a class, by its identity, and by 0 those outside of classes."""
        self._used: dict[tuple[int, bool], Set[str]] = {}
        self._comparing: dict[int, bool] = {}
        self._imported: defaultdict[str, set[str]] = defaultdict(set)
        """Names that imported ones have where they are defined."""
        self._code: set[str] = set()
        """Names of what the files import that may be code of the candidate."""
        self._library: set[str] = set()
        """Names of modules that compare, and of what is imported from them."""
        for file, tree in trees.items():
            self._import(tree)
            for each in _definitions(tree.body, file):
                self._members[0 if each.within is None else id(each.within.node)].append(each)
                if each.is_test:
                    self.tests[file, each.node.name].append(each)  # pyright: ignore[reportAttributeAccessIssue]
                else:
                    for name in each.names:
                        self._named[name].append(each)

    def _import(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, _IMPORTS):
                module = getattr(node, "module", None) or ""
                for name in node.names:
                    head = (module or name.name).partition(".")[0]
                    found = self._library if head in _COMPARING_MODULES else self._code
                    bound = name.asname or name.name.partition(".")[0]
                    found.add(bound)
                    self._imported[bound].add(name.name.rpartition(".")[2])

    def reached(self, tests: Collection[TestName], all_called: bool = True) -> list[_Definition]:
        """Return the definitions that tests are made of or reach.

        Without `all_called`, not those of functions that get placeholders.
        """
        files = {file for file, _ in tests}
        waiting = [each for test in tests for each in self.tests[test]]
        waiting += [
            each
            for each in self._members[0]
            if each.is_implicit and (each.file in files or each.file.endswith("conftest.py"))
        ]
        found: dict[int, _Definition] = {}
        while waiting:
            each = waiting.pop()
            if id(each.node) in found:
                continue
            found[id(each.node)] = each
            waiting += [] if each.within is None else [each.within]
            waiting += self._needed_members(each)
            for used in self._names_used(each.node, all_called):
                for name in {used, *self._imported.get(used, ())}:
                    waiting += self._named.get(name, ())
        return [*found.values()]

    def _names_used(self, node: ast.stmt, all_called: bool) -> Set[str]:
        key = id(node), all_called
        if key not in self._used:
            self._used[key] = {*_names_used(node, all_called)}
        return self._used[key]

    def _needed_members(self, definition: _Definition) -> list[_Definition]:
        """Return the members of a class that it needs: all, or of a class with tests what has no name."""
        members = self._members.get(id(definition.node), [])
        if any(each.is_test for each in members):
            return [
                each
                for each in members
                if each.is_implicit or any(name.startswith("__") for name in each.names)
            ]
        return members

    def compares(self, definition: _Definition) -> bool:
        """Return whether a definition compares with anything but placeholders."""
        node = definition.node
        if id(node) not in self._comparing:
            self._comparing[id(node)] = any(map(self._is_comparison, _nodes_of(node)))
        return self._comparing[id(node)]

    def _is_comparison(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            return sum(not (_is_placeholder(each) or is_guessed(each)) for each in sides) > 1
        if isinstance(node, ast.Assert | ast.If | ast.While | ast.IfExp):
            return self._asks_a_text(node.test)
        return isinstance(node, ast.Match) or (isinstance(node, ast.Call) and self._call_compares(node))

    def _call_compares(self, call: ast.Call) -> bool:
        name, given = called_name(call), [*call.args, *(each.value for each in call.keywords)]
        if any(map(_is_placeholder, given)) or name in _HARMLESS:
            return False
        if name.startswith(_COMPARING):
            return True
        if name == "bool":
            return any(map(self._asks_a_text, given))
        root = _root(call.func)
        return root in self._library and any(isinstance(each, LITERAL) for each in given)

    def _asks_a_text(self, expression: ast.expr) -> bool:
        """Return whether the truth of an expression depends on a method of an object that gets a constant."""
        if isinstance(expression, ast.BoolOp):
            return any(map(self._asks_a_text, expression.values))
        return not isinstance(expression, ast.Compare) and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _root(node.func) not in self._code
            and any(isinstance(each, LITERAL) and not is_guessed(each) for each in node.args)
            for node in ast.walk(expression)
        )


def _definitions(
    body: Sequence[ast.stmt], file: str, within: _Definition | None = None
) -> Iterator[_Definition]:
    """Yield the statements of a module, and of the classes in it."""
    for node in body:
        definition = _Definition(node, {*_names_bound(node)}, file, within)
        yield definition
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, file, definition)


def _names_bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
        return
    for each in ast.walk(node):
        if isinstance(each, ast.alias):
            yield each.asname or each.name.partition(".")[0]
        elif isinstance(each, Function | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            yield each.id
        elif isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            yield each.attr


def _nodes_of(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without the body of a class and decorators."""
    if isinstance(node, ast.ClassDef):
        roots: Sequence[ast.AST] = [*node.bases, *node.keywords]
    else:
        roots = [node.args, *node.body] if isinstance(node, Function) else [node]
    for root in roots:
        yield from ast.walk(root)


def _names_used(node: ast.stmt, all_called: bool) -> Iterator[str]:
    """Yield the names that a statement uses, also as fixtures and in texts of decorators."""
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", [])
    calls = [each for each in _nodes_of(node) if isinstance(each, ast.Call) and not all_called]
    comparing = {id(each.func) for each in calls if any(map(_is_placeholder, each.args))}
    for each in _nodes_of(node):
        if id(each) in comparing:
            continue
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Call) and called_name(each) == "getfixturevalue":
            yield from _texts(each)
    for decorator in decorators:
        yield from _texts(decorator)
        for each in ast.walk(decorator):
            if isinstance(each, ast.Name | ast.Attribute):
                yield each.id if isinstance(each, ast.Name) else each.attr


def _texts(node: ast.AST) -> Iterator[str]:
    return (
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


def _is_placeholder(node: ast.expr) -> bool:
    is_value = isinstance(node, ast.Call) and called_name(node) == EXPECTED
    return is_value or (isinstance(node, ast.Name) and node.id == RAISED)


def _root(expression: ast.expr) -> str:
    """Return the name that an expression is an attribute of; "" for others."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""
