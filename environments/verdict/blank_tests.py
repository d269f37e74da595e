"""Write tests without what they expect: blank tests.

An expected value becomes `__expected__(k)`, which records what it is compared with, an expected exception
`__raised__`, which is any (`record_values.py`). Whatever code in the process does, no answer is there.
Expectations are what one side of `==` or `is`, or one argument of `assertEqual` and the like, is made of if
that is constants and names that stand for them (`known_names.py`), or objects of classes made of them;
literals in questions such as `"red" in f(x)` (`questions.py`); exceptions; and the truth of what is asserted
by itself. Names that nothing reads lose their values. A test that compares in any other way, as with
alternatives, has no blank copy (`closed_tests.py`). Each blank test has files of its own, without what other
tests hold.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tracemill.environments.parse_python import parse_python
from tracemill.environments.verdict.closed_tests import TestName, keep_closed
from tracemill.environments.verdict.decide import MADE
from tracemill.environments.verdict.held_answers import BlankSource, blank_source
from tracemill.environments.verdict.known_names import (
    Bindings,
    Function,
    KnownNames,
    called_name,
    give_own_tables,
    is_mutable,
    outer_functions,
    reads_of,
)
from tracemill.environments.verdict.questions import (
    METHODS,
    AskedValue,
    ask_one_by_one,
    question_of,
    tolerance_of,
)
from tracemill.environments.verdict.record_values import EXPECTED, RAISED

_KINDS = ("", "List", "Dict", "Tuple", "Set", "Sequence", "MultiLine")
_EQUAL = {f"assert{kind}Equal" for kind in _KINDS} | {
    "assertEquals",
    "assertIs",
    "assert_equal",
    "assert_equals",
}
_ALMOST = "assertAlmostEqual"
_NEAR_BY_DEFAULT = "near:0:5e-08"
"""The difference that `assertAlmostEqual` allows where none is named."""
_OF_ONE = {"assertTrue", "assertFalse", "assertIsNone"}
_RAISING = {"raises", "assertRaises"}
_WITH_MESSAGE = {**dict.fromkeys(_EQUAL, 2), **dict.fromkeys(_OF_ONE, 1)}
_WITH_MESSAGE |= {"assertIsNotNone": 1, "assertIsInstance": 2, **dict.fromkeys(METHODS, 2)}
"""Arguments of methods that may have a message behind them."""


@dataclass(frozen=True)
class FileAnswers:
    """The answers in a file of tests: names of tables that hold some, and texts asked for by question."""

    tables: Set[str]
    asked: Mapping[str, Set[str]]


def find_answers(files: Mapping[str, str]) -> dict[str, FileAnswers]:
    """Return by file what its tests expect."""
    found: dict[str, FileAnswers] = {}
    for file, text in files.items():
        numbered: dict[str, str] = {}
        tables = _blank(_tree(text), numbered)
        asked: defaultdict[str, set[str]] = defaultdict(set)
        for number, literal in numbered.items():
            asked[number.rpartition(" ")[0]].add(literal)
        found[file] = FileAnswers(tables, asked)
    return found


def blank_test(
    files: Mapping[str, str], test: TestName, answers: Mapping[str, Set[str]], deleted: Collection[str] = ()
) -> dict[str, BlankSource]:
    """Return the files of tests with one test alone, without what it expects; none if it is not closed.

    Nor if it needs one of the tables named by `answers`. A file that does not parse is empty. What functions
    of the names `deleted` make is not expected.
    """
    trees = {file: _tree(text) for file, text in files.items()}
    asked: dict[str, str] = {}
    for file, tree in trees.items():
        _remove_tests(tree, test[1] if file == test[0] else "")
        _blank(tree, asked, deleted)
    if not keep_closed(trees, test, answers):
        return {}
    return {file: blank_source(file, tree, test[1], asked) for file, tree in trees.items()}


def _tree(text: str) -> ast.Module:
    try:
        return parse_python(text)
    except SyntaxError:
        return ast.Module([], [])


def _blank(tree: ast.Module, asked: dict[str, str] | None = None, deleted: Collection[str] = ()) -> Set[str]:
    """Replace what a file expects by placeholders; return the names of tables of which a copy lost values.

    Adds the texts of values that questions ask for to `asked`, by the numbers of placeholders.
    """
    ask_one_by_one(tree)
    _remove_hints(tree)
    tables = [(name, table, ast.dump(table)) for name, table in give_own_tables(tree)]
    blanks = _Blanks(tree, {} if asked is None else asked, deleted)
    blanks.visit(tree)
    blanks.erase_unread(tree)
    return {name for name, table, text in tables if ast.dump(table) != text}


def _remove_tests(within: ast.Module | ast.ClassDef, kept: str) -> None:
    """Remove all tests but those of one name."""
    body: list[ast.stmt] = []
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            _remove_tests(node, kept)
        if not isinstance(node, Function) or not node.name.startswith("test") or node.name == kept:
            body.append(node)
    within.body = body or [ast.Pass()]


def _remove_hints(tree: ast.Module) -> None:
    """Remove texts that may hold an answer: docstrings, messages, printed ones, names of cases, patterns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            node.msg = None
        elif isinstance(node, ast.Call) and called_name(node) in ("subTest", "print"):
            node.args, node.keywords = [], []
        elif isinstance(node, ast.Call) and called_name(node) in _WITH_MESSAGE:
            node.args, node.keywords = node.args[: _WITH_MESSAGE[called_name(node)]], []
        elif isinstance(node, ast.Call) and called_name(node) in ("parametrize", "param", "raises"):
            node.keywords = [each for each in node.keywords if each.arg not in ("id", "ids", "match")]
        elif isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body[:1] = [ast.Expr(ast.Constant(""))] if len(node.body) == 1 else []


@dataclass(frozen=True)
class _Scope:
    """A function that lies in no other one, and what its own names stand for."""

    function: Function
    known: Bindings


class _Blanks(ast.NodeTransformer):
    """Replaces the expectations of a file by placeholders."""

    def __init__(self, tree: ast.Module, asked: dict[str, str], deleted: Collection[str]) -> None:
        self._names = KnownNames(tree)
        self._function: Function | None = None
        self._count = len(asked)
        self._asked = asked
        self._questions: dict[ast.AST, AskedValue] = {}
        self._sides: dict[ast.expr, _Scope] = {}
        """Expected values, and where they stand."""
        self._equalities: set[ast.Compare] = set()
        self._truths: set[ast.expr] = set()
        self._tolerant: set[ast.expr] = set()
        self._deleted, self._made = deleted, set[ast.expr]()
        scopes = [_Scope(each, self._names.of_function(each)) for each in outer_functions(tree)]
        self._scopes = scopes
        while scopes:
            self._sides, self._equalities = {}, set()
            for scope in scopes:
                self._find(scope)
            self._scopes = scopes
            scopes = self._forget_changed(tree, scopes)

    def _forget_changed(self, tree: ast.Module, scopes: Sequence["_Scope"]) -> list["_Scope"]:
        """Take names for unknown whose value may be changed where they are read besides.

        Returns the functions as they are then; none if nothing changed.
        """
        elsewhere = {each: reads_of(each) for each in (tree, *(scope.function for scope in scopes))}
        for side, scope in self._sides.items():
            for where in (tree, scope.function):
                elsewhere[where].subtract(reads_of(side))
        for function in self._names.makers():
            elsewhere[tree].subtract(reads_of(function))

        def without_changed(known: Bindings, where: ast.Module | Function) -> Bindings:
            changed = {
                key: ()
                for key, values in known.items()
                if elsewhere[where][key] > 0 and any(map(is_mutable, values))
            }
            return {**known, **changed}

        new = [replace(scope, known=without_changed(scope.known, scope.function)) for scope in scopes]
        of_file = without_changed(self._names.of_file, tree)
        if new == scopes and of_file == self._names.of_file:
            return []
        self._names.of_file = of_file
        return new

    def _find(self, scope: _Scope) -> None:
        """Find the expectations of a function."""
        for node in ast.walk(scope.function):
            if isinstance(node, ast.Assert):
                self._assertion(node.test, scope)
            elif isinstance(node, ast.Call) and _is_comparison(node):
                self._comparison(node.args[0], node.args[1], scope)
                if called_name(node) == _ALMOST:
                    self._tolerant |= {*node.args}
            elif isinstance(node, ast.Call) and called_name(node) == "assertTrue" and node.args:
                self._assertion(node.args[0], scope)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                self._question(node, scope, called_name(node).startswith("assert"))

    def _assertion(self, test: ast.expr, scope: _Scope) -> None:
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And):
                for each in test.values:
                    self._assertion(each, scope)
        elif isinstance(test, ast.Compare):
            is_equality = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)
            if is_equality and self._comparison(test.left, test.comparators[0], scope):
                self._equalities.add(test)
            else:
                self._question(test, scope)
        elif isinstance(test, ast.Call) and self._question(test, scope):
            return
        elif isinstance(test, ast.Call | ast.Attribute | ast.Subscript) or (
            isinstance(test, ast.UnaryOp)
            and isinstance(test.op, ast.Not)
            and not isinstance(test.operand, ast.BoolOp | ast.Compare)
        ):
            self._truths.add(test)

    def _comparison(self, left: ast.expr, right: ast.expr, scope: _Scope) -> bool:
        """Note which of two sides is what is expected; return whether one is."""
        constant = [side for side in (right, left) if self._names.holds(side, scope.known)]
        if not constant and self._names.makes_object(right, scope.known, self._deleted):
            self._made.add(right)
            constant = [right]
        for side in sorted(constant, key=_is_made)[:1]:
            self._sides[side] = scope
        return bool(constant)

    def _question(self, node: ast.Compare | ast.Call, scope: _Scope, is_known: bool = True) -> bool:
        """Note a question with a literal about what is no constant; return whether it is one."""
        question = question_of(node) if is_known else None
        if question is None or self._names.holds(question.subject, scope.known):
            return False
        self._questions[node] = question
        return True

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace an expectation, or look within a node."""
        if isinstance(node, Function) and self._function is None:
            self._function = node
            found = self.generic_visit(node)
            self._function = None
            return found
        if isinstance(node, ast.expr) and node in self._sides:
            asked = _NEAR_BY_DEFAULT if node in self._tolerant else self._tolerance(node)
            return self._placeholder(MADE if node in self._made else asked)
        if node in self._questions:
            return self._answered(node, self._questions[node])
        if isinstance(node, ast.expr) and node in self._truths:
            asked = node.operand if isinstance(node, ast.UnaryOp) else node
            return self._truth(self.generic_visit(asked))
        if isinstance(node, ast.Compare) and node in self._equalities:
            node.ops = [ast.Eq()]
            if node.comparators[0] in self._sides:  # a placeholder is asked before the candidate's object
                node.left, node.comparators = node.comparators[0], [node.left]
        if isinstance(node, ast.Call):
            name = called_name(node)
            if name.startswith("assert") and _is_comparison(node) and node.args[1] in self._sides:
                node.args.reverse()
            if name in _RAISING and node.args and isinstance(node.args[0], ast.Name | ast.Attribute):
                node.args[0] = ast.Name(RAISED, ast.Load())
            elif name in _EQUAL and isinstance(node.func, ast.Attribute):
                if name == "assertSequenceEqual" and node.args[0] in self._sides:  # of any types
                    node.args[1] = _call("list", node.args[1])
                node.func.attr = "assertEqual"
            elif name in _OF_ONE and isinstance(node.func, ast.Attribute) and node.args:
                if name == "assertTrue" and isinstance(node.args[0], ast.BoolOp | ast.Compare):
                    return self.generic_visit(node)
                self._truths.discard(node.args[0])
                asked = self.visit(node.args[0])
                if name != "assertIsNone":
                    asked = _call("bool", asked)
                node.func.attr, node.args[:1] = "assertEqual", [self._placeholder(), asked]  # pyright: ignore
                return node
        return self.generic_visit(node)

    def _tolerance(self, side: ast.expr) -> str:
        """Return how near a value has to be to an expected one, by it or by what its names stand for."""
        known = self._sides[side].known
        values = [value for key in reads_of(side) for value in self._names.values_of(key, known)]
        return next(filter(None, map(tolerance_of, (side, *values))), "")

    def erase_unread(self, tree: ast.Module) -> None:
        """Give None to names that nothing reads, as those that stood for what is expected."""
        reads = {each: reads_of(each) for each in (tree, *(scope.function for scope in self._scopes))}
        erased: set[ast.expr] = set()
        for scope in self._scopes:
            for key, values in scope.known.items():
                is_constant = all(self._names.holds(each, scope.known) for each in values)
                if is_constant and not reads[scope.function][key]:
                    erased.update(values)
        for side, scope in self._sides.items():
            waiting = [*reads_of(side)]
            for key in waiting:
                where = scope.function if key in scope.known else tree
                values = self._names.values_of(key, scope.known)
                if reads[where][key] or erased.issuperset(values):
                    continue
                erased.update(values)
                gone = sum(map(reads_of, values), Counter[str]())
                for each in {where, tree}:
                    reads[each].subtract(gone)
                waiting += gone
        _Erased(erased).visit(tree)

    def _placeholder(self, asked: str = "") -> ast.Call:
        """Return a placeholder of the next number, behind what is asked."""
        self._count += 1
        return _call(EXPECTED, ast.Constant(f"{asked} {self._count}" if asked else self._count))

    def _answered(self, node: ast.AST, question: AskedValue) -> ast.AST:
        """Return a comparison of a placeholder with what a question is about."""
        placeholder, subject = self._placeholder(question.asked), self.generic_visit(question.subject)
        self._asked[str(ast.literal_eval(placeholder.args[0]))] = question.text
        if isinstance(node, ast.Call) and called_name(node).startswith("assert"):
            node.func.attr, node.args, node.keywords = "assertEqual", [placeholder, subject], []  # pyright: ignore
            return node
        return ast.Compare(placeholder, [ast.Eq()], [subject])  # pyright: ignore[reportArgumentType]

    def _truth(self, asked: ast.AST) -> ast.expr:
        return ast.Compare(self._placeholder(), [ast.Eq()], [_call("bool", asked)])


class _Erased(ast.NodeTransformer):
    """Replaces expressions by None, and keys of a dictionary by texts, which differ."""

    def __init__(self, erased: Collection[ast.expr]) -> None:
        self._erased = erased

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Return a dictionary with as many keys."""
        node.keys = [
            ast.Constant(f"~{place}") if key in self._erased else key for place, key in enumerate(node.keys)
        ]
        return self.generic_visit(node)

    def visit(self, node: ast.AST) -> ast.AST:
        """Return None as an expression, or look within a node."""
        return ast.Constant(None) if node in self._erased else super().visit(node)


def _is_made(side: ast.expr) -> tuple[bool, bool]:
    """Return whether a constant is what a call returns, and whether it has names."""
    return any(isinstance(each, ast.Call) for each in ast.walk(side)), bool(reads_of(side))


def _is_comparison(call: ast.Call) -> bool:
    """Return whether a call compares its two arguments; with a tolerance of its own it does not."""
    return called_name(call) in {*_EQUAL, _ALMOST} and len(call.args) == 2 and not call.keywords


def _call(name: str, argument: ast.AST) -> ast.Call:
    assert isinstance(argument, ast.expr)
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])
