"""Write tests without what they expect: blank tests.

An expected value becomes `__expected__(k)`, which records what it is compared with, an expected exception
`__raised__`, which is any (`record_values.py`). Whatever code in the process does, no answer is there.
Expectations are constants on one side of `==` or `is`, or arguments of `assertEqual` and the like, written
there, in a local name, or in a column of the table of a parametrized test or a loop; exceptions; and the
truth of what is asserted by itself. Constants may be made by the standard library, as `datetime(2024, 2, 1)`
is. Where a name has other uses, or an assertion alternatives, it stays as it is, and the test is *open*: it
holds an answer, from which others may follow.
"""

import ast
import builtins
import copy
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field

from tracemill.environments.parse_python import parse_python
from tracemill.environments.verdict.record_values import EXPECTED, RAISED, TOLERANT, plain_text

_TEXT = re.compile(r"'([^']{2,})'")
"""A text within a recorded value."""
_GUESSED = re.compile(r"None|-?[01]|b?'.?'|\[\]|\(\)|\{\}")
"""Texts of values that a guess gives, among them true and false; so does what the tests hold elsewhere."""
_MANY = 5
"""So many values, not all the same, are more than a guess gives, whatever they are."""
_SPACE = re.compile(r"\s|\\[nrt]|,(?=\))")
_BRACKETS = str.maketrans("[]{}", "()()")
_KINDS = ("", "List", "Dict", "Tuple", "Set", "Sequence", "MultiLine")
_EQUAL = {f"assert{kind}Equal" for kind in _KINDS} | {
    "assertEquals",
    "assertIs",
    "assert_equal",
    "assert_equals",
}
_ALMOST = "assertAlmostEqual"
_NOT_TRUE = {"assertFalse", "assertIsNone"}
_OF_ONE = {"assertTrue", *_NOT_TRUE}
_RAISING = {"raises", "assertRaises", "assertRaisesRegex"}
_CONSTANT = ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp | ast.BinOp
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class BlankSource:
    """A test file without expectations.

    `hidden` are the values that each test function expected, and `inputs` those that it still holds, ""
    standing for the rest of the file. `open` are the functions that compare with what they hold, and `names`
    the names that each function uses.
    """

    text: str
    hidden: Mapping[str, Set[str]] = field(default_factory=dict)
    inputs: Mapping[str, Set[str]] = field(default_factory=dict)
    open: Set[str] = frozenset()
    names: Mapping[str, Set[str]] = field(default_factory=dict)


def blank_expectations(source: str) -> BlankSource:
    """Return a test file without what it expects; a file that does not parse as it is."""
    try:
        tree = parse_python(source)
    except SyntaxError:
        return BlankSource(source)
    _remove_hints(tree)
    _give_own_tables(tree)
    blanks = _Blanks(tree)
    blanks.visit(tree)
    _remove_tables(tree)
    text = ast.unparse(tree)
    names = {name: _names(function) for name, function in _functions(tree)}
    tree = _Folded().visit(tree)
    inputs: dict[str, Set[str]] = {}
    for name, function in _test_functions(tree):
        inputs[name] = inputs.get(name, set()) | _constants(function)
    _remove_tests(tree, ())
    return BlankSource(text, blanks.hidden, {**inputs, "": _constants(tree)}, blanks.open, names)


def given_away(sources: Mapping[str, BlankSource]) -> set[tuple[str, str]]:
    """Return file and name of the test functions to leave out, so that none holds what another expects.

    A table that is read in both directions would give each answer away. One function gives another away if it
    holds half of the values that it expects, of those that no guess gives.
    """
    inputs = [_loose(source.inputs[""]) for source in sources.values() if source.inputs]
    kept: list[Set[str]] = []
    left_out: set[tuple[str, str]] = set()
    for file, source in sources.items():
        for name, expected in source.hidden.items():
            hidden, own = _loose(expected), _loose(source.inputs[name])
            if _holds_half(hidden, set().union(own, *inputs)) or any(_holds_half(each, own) for each in kept):
                left_out.add((file, name))
            else:
                kept.append(hidden)
                inputs.append(own)
    return left_out


def open_tests(sources: Mapping[str, BlankSource]) -> set[tuple[str, str]]:
    """Return file and name of the functions that compare with what they hold, or use one that does."""
    opened = {name for source in sources.values() for name in source.open}
    return {
        (file, name)
        for file, source in sources.items()
        for name, used in source.names.items()
        if name in source.open or used & opened
    }


class HeldTexts:
    """Values that blank tests still hold: in constants, names, and files beside them, not Python ones."""

    def __init__(self, sources: Iterable[BlankSource], data: Sequence[str]) -> None:
        """Read the constants as they would be recorded."""
        sources = [*sources]
        names = (name for blank in sources for name in blank.names)
        self._data = [each.lower() for each in (*data, *names)]
        self._texts: set[str] = set()
        for source in {each for blank in sources for inputs in blank.inputs.values() for each in inputs}:
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                self._texts |= _loose([plain_text(ast.literal_eval(source))])

    def let_guess(self, texts: Sequence[str]) -> bool:
        """Return whether a guess gives the values of a test, or what other tests hold."""
        if len(texts) >= _MANY and len({*texts}) > 1:
            return False
        return all(_GUESSED.fullmatch(text) or self.has(text) for text in texts)

    def has(self, text: str) -> bool:
        """Return whether a recorded value, or each text in it, is among them."""
        return self._has_text(text) or all(map(self._has_part, _TEXT.findall(text) or [text]))

    def _has_text(self, text: str) -> bool:
        return _loose([text]) <= self._texts

    def _has_part(self, part: str) -> bool:
        return self._has_text(f"'{part}'") or any(part.lower() in each for each in self._data)


def _loose(texts: Iterable[str]) -> Set[str]:
    """Return the texts of values without white space, and with one kind of brackets."""
    return {_SPACE.sub("", text.translate(_BRACKETS)) for text in texts}


def _holds_half(hidden: Set[str], inputs: Set[str]) -> bool:
    return bool(hidden) and 2 * len(hidden & inputs) >= len(hidden)


def keep_tests(source: str, names: Collection[str]) -> str:
    """Return a test file with the named test functions alone."""
    try:
        tree = parse_python(source)
    except SyntaxError:
        return source
    _remove_tests(tree, names)
    return ast.unparse(tree)


def _remove_tests(within: ast.Module | ast.ClassDef, names: Collection[str]) -> None:
    kept: list[ast.stmt] = []
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            _remove_tests(node, names)
        name = node.name if isinstance(node, _Function) else ""
        if not name.startswith("test") or name in names:
            kept.append(node)
    within.body = kept or [ast.Pass()]


def _remove_hints(tree: ast.Module) -> None:
    """Remove texts that may hold an answer: docstrings, messages, names of cases, patterns of messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            node.msg = None
        elif isinstance(node, ast.Call) and _called(node) == "subTest":
            node.args, node.keywords = [], []
        elif isinstance(node, ast.Call) and _called(node) in _EQUAL | _OF_ONE:
            node.args, node.keywords = node.args[: 1 if _called(node) in _OF_ONE else 2], []
        elif isinstance(node, ast.Call) and _called(node) in ("parametrize", "param", "raises"):
            node.keywords = [each for each in node.keywords if each.arg not in ("id", "ids", "match")]
        elif isinstance(node, _Function | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body[:1] = [ast.Expr(ast.Constant(""))]


def _give_own_tables(tree: ast.Module) -> None:
    """Write module-level tables where parametrized tests and loops name them, so that each has its own."""
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def own(table: ast.expr) -> ast.expr:
        if isinstance(table, ast.Name):
            return copy.deepcopy(tables.get(table.id, table))
        if isinstance(table, ast.BinOp) and isinstance(table.op, ast.Add):
            return ast.BinOp(own(table.left), table.op, own(table.right))
        return table

    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.iter = own(node.iter)
        elif isinstance(node, ast.Call) and _called(node) == "parametrize" and len(node.args) > 1:
            node.args[1] = own(node.args[1])


def _remove_tables(tree: ast.Module) -> None:
    """Remove module-level constants that nothing uses, such as tables that were written elsewhere."""
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    tree.body = [
        node
        for node in tree.body
        if not (
            isinstance(node, ast.Assign)
            and isinstance(node.value, _CONSTANT)
            and all(isinstance(target, ast.Name) and target.id not in used for target in node.targets)
        )
    ]


def _test_functions(tree: ast.AST) -> Iterator[tuple[str, _Function]]:
    yield from ((name, node) for name, node in _functions(tree) if name.startswith("test"))


def _functions(tree: ast.AST) -> Iterator[tuple[str, _Function]]:
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield node.name, node


def _names(node: ast.AST) -> Set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _constants(node: ast.AST) -> Set[str]:
    """Return the source of every constant within a node that no guess gives, but for placeholders."""
    if isinstance(node, ast.Call) and _called(node) == EXPECTED:
        return set()
    own = {ast.unparse(node)} if isinstance(node, _CONSTANT) and not _is_guessed(node) else set()
    return own.union(*map(_constants, ast.iter_child_nodes(node)))


def _is_guessed(node: ast.expr) -> bool:
    """Return whether an expression is true, false, None, or a text or number of one character."""
    return isinstance(node, ast.Constant) and (
        isinstance(node.value, bool | None) or len(str(node.value)) <= 1
    )


class _Folded(ast.NodeTransformer):
    """Adds up sums of constants, and replaces a call that makes a text of another by that one."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Return the value of a sum or the like, if Python computes it when it compiles."""
        self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            code = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval")
            if len(code.co_consts) == 1:
                return ast.Constant(code.co_consts[0])
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the text that a method without arguments is of, or that is all that a call gets."""
        self.generic_visit(node)
        given = [*node.args, *(each.value for each in node.keywords)]
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        text = given[0] if len(given) == 1 else of if not given else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str | bytes):
            return text if _called(node) != EXPECTED else node
        return node


class _Blanks(ast.NodeTransformer):
    """Replaces the expectations of a file by placeholders."""

    def __init__(self, tree: ast.Module) -> None:
        self.hidden: dict[str, set[str]] = {name: set() for name, _ in _test_functions(tree)}
        self._function = ""
        self._constants = _Constants(tree)
        self._count = 0
        self._sides: set[ast.expr] = set()
        """Expressions whose value may be an expectation."""
        self._equalities: set[ast.Compare] = set()
        self._truths: set[ast.expr] = set()
        self._tolerant: set[ast.expr] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                self._assertion(node.test)
            elif isinstance(node, ast.Call) and _called(node) == _ALMOST and _is_comparison(node):
                self._sides |= {side for side in node.args if self._constants.holds(side)}
                self._tolerant |= {*node.args}
            elif isinstance(node, ast.Call) and _is_comparison(node):
                self._comparison(node.args[0], node.args[1])
            elif isinstance(node, ast.Call) and _called(node) == "assertTrue" and node.args:
                self._assertion(node.args[0])
        compared = {each for each in self._sides if isinstance(each, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                self._sides |= {*_expected_of_names(node, compared, self._constants)}
        placed = {side for side in self._sides if not isinstance(side, ast.Name)}
        self.open = {name for name, node in _functions(tree) if name not in _EQUAL and _is_open(node, placed)}

    def _assertion(self, test: ast.expr) -> None:
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And):
                for each in test.values:
                    self._assertion(each)
        elif isinstance(test, ast.Compare):
            is_equality = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)
            if is_equality and self._comparison(test.left, test.comparators[0]):
                self._equalities.add(test)
        elif isinstance(test, ast.Call | ast.Attribute | ast.Subscript) or (
            isinstance(test, ast.UnaryOp)
            and isinstance(test.op, ast.Not)
            and not isinstance(test.operand, ast.BoolOp | ast.Compare)
        ):
            self._truths.add(test)

    def _comparison(self, left: ast.expr, right: ast.expr) -> bool:
        """Note what is expected of two sides; return whether it is a constant of one of them."""
        constant = next((side for side in (right, left) if self._constants.holds(side)), None)
        if constant is None:
            self._sides |= {name for name in map(_name_of, (left, right)) if name}
            return False
        self._sides.add(constant)
        return True

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace an expectation, or look within a node."""
        if isinstance(node, _Function) and node.name in self.hidden and not self._function:
            self._function = node.name
            found = self.generic_visit(node)
            self._function = ""
            return found
        if isinstance(node, ast.expr) and node in self._sides and not isinstance(node, ast.Name):
            if self._function and not _is_guessed(node):
                self.hidden[self._function].add(ast.unparse(_Folded().visit(copy.deepcopy(node))))
            is_approximate = isinstance(node, ast.Call) and _called(node) == "approx"
            return self._placeholder(tolerant=is_approximate or node in self._tolerant)
        if isinstance(node, ast.expr) and node in self._truths:
            asked = node.operand if isinstance(node, ast.UnaryOp) else node
            return self._truth(self.generic_visit(asked))
        if isinstance(node, ast.Compare) and node in self._equalities:
            node.ops = [ast.Eq()]
        if isinstance(node, ast.Call):
            name = _called(node)
            if name in _RAISING and node.args and isinstance(node.args[0], ast.Name | ast.Attribute):
                node.args[0] = ast.Name(RAISED, ast.Load())
            elif name in _EQUAL and isinstance(node.func, ast.Attribute):
                node.func.attr = "assertEqual"
            elif name in _NOT_TRUE and isinstance(node.func, ast.Attribute) and node.args:
                asked = self.visit(node.args[0])
                if name != "assertIsNone":
                    asked = _call("bool", asked)
                node.func.attr, node.args[:1] = "assertEqual", [self._placeholder(), asked]  # pyright: ignore
                return node
        return self.generic_visit(node)

    def _placeholder(self, tolerant: bool = False) -> ast.expr:
        self._count += 1
        return _call(EXPECTED, ast.Constant(f"{TOLERANT}{self._count}" if tolerant else self._count))

    def _truth(self, asked: ast.AST) -> ast.expr:
        return ast.Compare(self._placeholder(), [ast.Eq()], [_call("bool", asked)])


def _is_open(function: _Function, placed: Collection[ast.expr]) -> bool:
    """Return whether a function compares two sides of which none is among those `placed` as placeholders."""
    replaced = {*_replaced_names(function, placed)}
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.Is):
            sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and _called(node) in {*_EQUAL, _ALMOST}:
            sides = node.args[:2]
        else:
            continue
        names = {name.id for name in map(_name_of, sides) if name}
        if not any(side in placed for side in sides) and not names & replaced:
            return True
    return False


def _is_comparison(call: ast.Call) -> bool:
    """Return whether a call compares its two arguments; with a tolerance of its own it does not."""
    return _called(call) in {*_EQUAL, _ALMOST} and len(call.args) == 2 and not call.keywords


def _name_of(side: ast.expr) -> ast.Name | None:
    """Return the name that a side of a comparison is, calls a method of, or adds something to."""
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute):
        side = side.func.value
    elif isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add):
        side = side.right if isinstance(side.left, ast.Constant) else side.left
    return side if isinstance(side, ast.Name) else None


class _Constants:
    """Tells constants of a file: literals, and what texts' methods and the standard library make of them."""

    def __init__(self, tree: ast.Module) -> None:
        self._names = {*vars(builtins)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._names |= {each.asname or each.name for each in node.names if _is_standard(each.name)}
            elif isinstance(node, ast.ImportFrom) and _is_standard(node.module or ""):
                self._names |= {each.asname or each.name for each in node.names}

    def holds(self, expression: ast.expr) -> bool:
        """Return whether an expression is a constant."""
        if isinstance(expression, ast.Call):
            called = expression.func
            if _called(expression) == "approx" and len(expression.args) == 1 and not expression.keywords:
                return isinstance(expression.args[0], ast.Constant | ast.UnaryOp)
            while isinstance(called, ast.Attribute):
                called = called.value
            is_known = isinstance(called, ast.Constant) or getattr(called, "id", "") in self._names
            given = [*expression.args, *(each.value for each in expression.keywords)]
            return is_known and all(map(self.holds, given))
        return isinstance(expression, _CONSTANT) and all(
            self.holds(each) for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)
        )


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _expected_of_names(
    function: _Function, compared: Collection[ast.expr], constants: _Constants
) -> Iterator[ast.expr]:
    """Yield constants that names stand for which a function compares with and uses for nothing else."""
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    others = {node.id for node in uses if isinstance(node.ctx, ast.Load) and node not in compared}
    stores = Counter(node.id for node in uses if isinstance(node.ctx, ast.Store))
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for name, value in assigned.items():
        if name not in others and stores[name] == 1 and constants.holds(value):
            yield value
    for names, table in _tables(function):
        for cells in _rows(table):
            if len(cells) == len(names) > 1:
                for name, cell in zip(names, cells, strict=True):
                    if name and name not in others and stores[name] <= 1 and constants.holds(cell):
                        yield cell


def _replaced_names(function: _Function, sides: Collection[ast.expr]) -> Iterator[str]:
    """Yield the names that stand for a placeholder: given one, or in a table that holds one."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.value in sides:
            yield node.targets[0].id
    for names, table in _tables(function):
        cells = [cells for cells in _rows(table) if len(cells) == len(names)]
        for column, name in enumerate(names):
            if cells and all(row[column] in sides for row in cells):
                yield name


def _tables(function: _Function) -> Iterator[tuple[list[str], ast.expr]]:
    """Yield the tables of a function with the names of their columns: of its loops, and of its cases."""
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
            yield [getattr(each, "id", "") for each in node.target.elts], node.iter
    for decorator in function.decorator_list:
        is_table = isinstance(decorator, ast.Call) and _called(decorator) == "parametrize"
        if is_table and len(decorator.args) > 1:  # pyright: ignore[reportAttributeAccessIssue]
            yield _parameter_names(decorator.args[0]), decorator.args[1]  # pyright: ignore


def _rows(table: ast.expr) -> Iterator[Sequence[ast.expr]]:
    """Yield the cells of each row of a table, or of the sum of two."""
    if isinstance(table, ast.BinOp) and isinstance(table.op, ast.Add):
        yield from _rows(table.left)
        yield from _rows(table.right)
    if not isinstance(table, ast.List | ast.Tuple):
        return
    for row in table.elts:
        if isinstance(row, ast.Tuple | ast.List):
            yield row.elts
        elif isinstance(row, ast.Call) and _called(row) == "param":
            yield row.args


def _parameter_names(names: ast.expr) -> list[str]:
    if isinstance(names, ast.Constant):
        return [each.strip() for each in str(names.value).split(",")]
    elements = names.elts if isinstance(names, ast.Tuple | ast.List) else []
    return [str(each.value) for each in elements if isinstance(each, ast.Constant)]


def _called(node: ast.Call) -> str:
    called = node.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _call(name: str, argument: ast.AST) -> ast.Call:
    assert isinstance(argument, ast.expr)
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])
