"""Tell whether a blank test compares with placeholders alone, and remove what it does not reach.

A test is *closed* if its own code, and all code of the tests' files that it may reach by a name, compares
with placeholders alone: no other comparison, assertion or match is in them, nor a call that may compare what
the candidate gives. It reaches no function of these files but fixtures, those without parameters and what
the test framework calls, since one may be a reference implementation, or make with the deleted code's inverse
what is asked for. What the test does not reach is removed.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from tracemill.environments.verdict.held_answers import LITERAL, is_guessed
from tracemill.environments.verdict.known_names import Function, assigned, called_name
from tracemill.environments.verdict.record_values import EXPECTED, RAISED

TestName = tuple[str, str]
"""File and function of a test."""
_COMPARING = ("assert", "fail", "warns", "deprecated_call", "raises", "approx")
"""Beginnings of the names of functions that compare what they get, or end a test."""
_HARMLESS = {"assertIsNotNone", "assertIsInstance", "assertTrue"}
"""Methods that compare nothing; what is true is looked at by itself."""
_TYPE_QUESTIONS = {"bool", "callable", "hasattr", "isinstance", "issubclass"}
_COMPARING_MODULES = {"cmath", "difflib", "filecmp", "fnmatch", "math", "operator", "re"}
_IMPLICIT = {
    "setup", "teardown", "setUp", "tearDown", "setUpClass", "tearDownClass", "setUpModule", "tearDownModule",
    "asyncSetUp", "asyncTearDown", "setup_method", "teardown_method", "setup_class", "teardown_class",
    "setup_module", "teardown_module", "setup_function", "teardown_function", "pytestmark",
}  # fmt: skip
"""Names that the test framework uses by itself."""
_LOOKUPS = {"count", "find", "get", "index"}
"""Methods that look for what they get in a table or a text."""
_IMPORTS = ast.Import | ast.ImportFrom
_DIFFERENCES = ast.Sub | ast.BitXor | ast.BitAnd | ast.BitOr


def keep_closed(trees: Mapping[str, ast.Module], test: TestName, answers: Mapping[str, Set[str]]) -> bool:
    """Remove from blank files what a test does not reach, but imports of whole modules, if it is closed.

    Returns whether it is. It is not if it reaches one of a file's tables of `answers`.
    """
    suite = _Suite(trees)

    def is_open(definition: _Definition) -> bool:
        is_table = definition.within is None and not definition.names.isdisjoint(answers[definition.file])
        return is_table or suite.opens(definition)

    if test not in suite.tests or any(map(is_open, suite.reached(test, all_called=False))):
        return False
    kept = {id(each.node) for each in suite.reached(test)}
    for tree in trees.values():
        _remove_others(tree, kept)
    _remove_imports([*trees.values()])
    return True


def _remove_others(within: ast.Module | ast.ClassDef, kept: Set[int]) -> None:
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            _remove_others(node, kept)
    body = [node for node in within.body if id(node) in kept or isinstance(node, _IMPORTS)]
    within.body = body if isinstance(within, ast.Module) else body or [ast.Pass()]


def _remove_imports(trees: Sequence[ast.Module]) -> None:
    """Remove imports of single names that no file uses, which may be gone from where they were."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {name for node in nodes if isinstance(node, ast.stmt) for name in _names_used(node)} | {"*"}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    for _ in imports:  # a file may import a name from one that imports it
        found = {each.name for node in imports for each in node.names if (each.asname or each.name) in used}
        if found <= used:
            break
        used |= found
    for tree in trees:
        for node in tree.body:
            if node in imports:
                node.names = [each for each in node.names if (each.asname or each.name) in used]  # pyright: ignore
        tree.body = [node for node in tree.body if not isinstance(node, _IMPORTS) or node.names]


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
        return bool(self.names & _IMPLICIT) or "autouse" in self._decorators

    @property
    def is_helper(self) -> bool:
        """Return whether it is a function that tests give something, or has one in it that they may get."""
        if self.is_test or "__init__" in self.names:
            return False
        takes_nothing = isinstance(self.node, Function) and not ast.unparse(self.node.args)
        if self.is_implicit or takes_nothing or "fixture" in self._decorators:
            return any(isinstance(each, Function) for each in _nodes_of(self.node))
        if isinstance(self.node, ast.ClassDef):
            return False  # its methods are definitions of their own
        return any(isinstance(each, Function | ast.Lambda) for each in ast.walk(self.node))

    @property
    def _decorators(self) -> str:
        return " ".join(ast.unparse(each) for each in getattr(self.node, "decorator_list", []))


class _Suite:
    """The statements of a test suite outside of functions, and which of them reach which by name."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.tests: defaultdict[TestName, list[_Definition]] = defaultdict(list)
        self._named: defaultdict[str, list[_Definition]] = defaultdict(list)
        """Definitions outside of classes, by the names that they bind."""
        self._members: defaultdict[int, list[_Definition]] = defaultdict(list)
        """Definitions within a class, by its identity."""
        self._implicit: list[_Definition] = []
        self._used: dict[tuple[int, bool], Set[str]] = {}
        self._opening: dict[int, bool] = {}
        self._imported: defaultdict[str, set[str]] = defaultdict(set)
        """Names that imported ones have where they are defined."""
        self._comparing: set[str] = set()
        """Names of modules that compare, and of what is imported from them."""
        for file, tree in trees.items():
            self._import(tree)
            for each in _definitions(tree.body, file):
                if each.is_test:
                    self.tests[file, each.node.name].append(each)  # pyright: ignore[reportAttributeAccessIssue]
                if each.within is not None:
                    self._members[id(each.within.node)].append(each)
                    continue
                if each.is_implicit:
                    self._implicit.append(each)
                for name in () if each.is_test else each.names:
                    self._named[name].append(each)
        self._of_tests = self._classes_of_tests()
        self._implicit = [each for each in self._implicit if not any(map(self.opens, self._reached([each])))]

    def _import(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, _IMPORTS):
                module = getattr(node, "module", None) or ""
                for name in node.names:
                    bound = name.asname or name.name.partition(".")[0]
                    self._imported[bound].add(name.name.rpartition(".")[2])
                    if (module or name.name).partition(".")[0] in _COMPARING_MODULES:
                        self._comparing.add(bound)

    def _classes_of_tests(self) -> Set[int]:
        """Return the identities of the classes that hold tests, and of their bases."""
        waiting = [each.within for tests in self.tests.values() for each in tests if each.within is not None]
        found: set[int] = set()
        while waiting:
            each = waiting.pop()
            if id(each.node) not in found:
                found.add(id(each.node))
                waiting += self._bases(each)
        return found

    def _bases(self, definition: _Definition) -> list[_Definition]:
        bases = definition.node.bases if isinstance(definition.node, ast.ClassDef) else []
        names = {name for base in bases for name in _last_names(base)}
        return [
            each
            for name in names
            for known in {name, *self._imported.get(name, ())}
            for each in self._named.get(known, ())
            if isinstance(each.node, ast.ClassDef)
        ]

    def reached(self, test: TestName, all_called: bool = True) -> list[_Definition]:
        """Return the definitions that a test is made of or reaches.

        Without `all_called`, not those of functions that get placeholders. What the test framework uses by
        itself is among them only where it is closed.
        """
        used = [each for each in self._implicit if each.file == test[0] or each.file.endswith("conftest.py")]
        return self._reached([*self.tests[test], *used], all_called)

    def _reached(self, waiting: list[_Definition], all_called: bool = True) -> list[_Definition]:
        found: dict[int, _Definition] = {}
        while waiting:
            each = waiting.pop()
            if id(each.node) in found:
                continue
            found[id(each.node)] = each
            names = self._names_used(each.node, all_called)
            waiting += [] if each.within is None else [each.within, *self._inherited(each.within, names)]
            waiting += self._needed_members(each)
            for used in names:
                for name in {used, *self._imported.get(used, ())}:
                    waiting += self._named.get(name, ())
        return [*found.values()]

    def _inherited(self, definition: _Definition, names: Set[str]) -> Iterator[_Definition]:
        """Yield the members of a class and of its bases that bind one of these names."""
        waiting, seen = [definition], set[int]()
        while waiting:
            each = waiting.pop()
            if id(each.node) not in seen:
                seen.add(id(each.node))
                waiting += self._bases(each)
                members = self._members.get(id(each.node), ())
                yield from (member for member in members if member.names & names and not member.is_test)

    def _names_used(self, node: ast.stmt, all_called: bool) -> Set[str]:
        key = id(node), all_called
        if key not in self._used:
            self._used[key] = {*_names_used(node, all_called)}
        return self._used[key]

    def _needed_members(self, definition: _Definition) -> list[_Definition]:
        """Return the members of a class that it needs: all, or of one of tests what needs no name."""
        members = self._members.get(id(definition.node), [])
        if id(definition.node) not in self._of_tests:
            return members
        return [
            each for each in members if each.is_implicit or any(name.startswith("__") for name in each.names)
        ]

    def opens(self, definition: _Definition) -> bool:
        """Return whether a test that reaches a definition is not closed."""
        node = definition.node
        if id(node) not in self._opening:
            given = {name: value for each in _nodes_of(node) for name, value in assigned(each)}
            made = {id(part) for each in _nodes_of(node) if _is_function(each) for part in ast.walk(each)}
            self._opening[id(node)] = definition.is_helper or any(
                self._is_comparison(each, given)
                for each in _nodes_of(node)
                if id(each) not in made or not isinstance(each, ast.BinOp)
            )
        return self._opening[id(node)]

    def _is_comparison(self, node: ast.AST, given: Mapping[str, ast.expr]) -> bool:
        """Return whether a node compares, or asks for the truth of a comparison that a name was `given`."""
        if isinstance(node, ast.Compare):
            return not _is_harmless(node)
        if isinstance(node, ast.BinOp):
            sides = node.left, node.right
            is_constant = [*map(_is_telling, sides)]
            return isinstance(node.op, _DIFFERENCES) and any(is_constant) and not all(is_constant)
        if isinstance(node, ast.Subscript):
            return _is_called(node.slice, given)
        if isinstance(node, ast.Assert | ast.If | ast.While | ast.IfExp):
            return self._asks_a_comparison(node.test, given)
        return isinstance(node, ast.Match) or (
            isinstance(node, ast.Call) and self._call_compares(node, given)
        )

    def _call_compares(self, call: ast.Call, given: Mapping[str, ast.expr]) -> bool:
        name, parts = called_name(call), [*call.args, *(each.value for each in call.keywords)]
        if any(map(_is_placeholder, parts)) or name in _HARMLESS:
            return False
        if name.startswith(_COMPARING):
            return True
        if name in _LOOKUPS and any(_is_called(each, given) for each in parts):
            return True
        if name == "match" and _root(call.func) not in self._imported:  # as of what `raises` caught
            return True
        if name == "bool":
            return any(self._asks_a_comparison(each, given) for each in parts)
        return _root(call.func) in self._comparing and any(isinstance(each, LITERAL) for each in parts)

    def _asks_a_comparison(self, expression: ast.expr, given: Mapping[str, ast.expr]) -> bool:
        """Return whether a truth is that of a call that may compare what it gets; types are no answer."""
        if isinstance(expression, ast.BoolOp):
            return any(self._asks_a_comparison(each, given) for each in expression.values)
        if isinstance(expression, ast.UnaryOp):
            return self._asks_a_comparison(expression.operand, given)
        if isinstance(expression, ast.Name) and expression.id in given:
            others = {name: value for name, value in given.items() if name != expression.id}
            return self._asks_a_comparison(given[expression.id], others)
        if not isinstance(expression, ast.Call) or called_name(expression) in _TYPE_QUESTIONS:
            return False
        parts = [*expression.args, *(each.value for each in expression.keywords)]
        called = expression.func
        if isinstance(called, ast.Attribute) and _root(called) not in self._imported:
            parts.append(called.value)
        return len(parts) > 1 and not all(isinstance(each, ast.Constant) for each in parts)


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


def _names_used(node: ast.stmt, all_called: bool = True) -> Iterator[str]:
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


def _last_names(expression: ast.expr) -> Iterator[str]:
    """Yield a name, or the last attribute of an expression."""
    if isinstance(expression, ast.Name | ast.Attribute):
        yield expression.id if isinstance(expression, ast.Name) else expression.attr


def _is_harmless(compared: ast.Compare) -> bool:
    """Return whether a comparison is with a placeholder, or with none, true, false, 0, 1 or an empty text.

    One of a sum or the like may be with another number, as that of `abs(f(x) + 305) < 1` is.
    """
    sides = [compared.left, *compared.comparators]
    if any(map(_is_placeholder, sides)):
        return len(sides) == 2
    is_member = isinstance(compared.ops[0], ast.In | ast.NotIn)
    is_small = (isinstance(each, ast.Constant) and each.value in (None, 0, 1, "") for each in sides)
    computed = [each for each in ast.walk(compared) if isinstance(each, ast.BinOp)]
    is_shifted = any(_is_telling(side) for each in computed for side in (each.left, each.right))
    return len(sides) == 2 and not is_member and any(is_small) and not is_shifted


def _is_function(node: ast.AST) -> bool:
    """Return whether a node is a lambda that takes something: what it reckons is of what it gets."""
    return isinstance(node, ast.Lambda) and ast.unparse(node.args) != ""


def _is_called(expression: ast.expr, given: Mapping[str, ast.expr]) -> bool:
    """Return whether an expression is a call, or a name that was given one."""
    value = given.get(expression.id) if isinstance(expression, ast.Name) else expression
    return isinstance(value, ast.Call) and not _is_placeholder(value)


def _is_telling(expression: ast.expr) -> bool:
    """Return whether an expression is a constant that no guess gives."""
    return isinstance(expression, LITERAL) and not is_guessed(expression)


def _is_placeholder(node: ast.expr) -> bool:
    is_value = isinstance(node, ast.Call) and called_name(node) == EXPECTED
    return is_value or (isinstance(node, ast.Name) and node.id == RAISED)


def _root(expression: ast.expr) -> str:
    """Return the name that an expression is an attribute of; "" for others."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""
