"""Names of a test file that stand for constants alone.

They are columns of parametrized tests and of loops, variables of a module, class or function and attributes
that are assigned once, and fixtures that only return something. A constant is a literal, or what the standard
library, a method or a function of the file makes of constants, as in `datetime(2024, 2, 1)`, also what a file
holds.
"""

import ast
import builtins
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tracemill.environments.parse_python import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef
Bindings = Mapping[str, Sequence[ast.expr]]
"""The expressions that each name may stand for; empty for unknown ones. Attributes begin with a dot."""
_COMPUTED = (
    ast.Constant
    | ast.List
    | ast.Tuple
    | ast.Dict
    | ast.Set
    | ast.UnaryOp
    | ast.BinOp
    | ast.Subscript
    | ast.Slice
    | ast.Starred
    | ast.JoinedStr
    | ast.FormattedValue
)
"""Expressions that are constant if their parts are."""


class KnownNames:
    """The names of a file that stand for constants, and the expressions that are constant therefore."""

    def __init__(self, tree: ast.Module) -> None:
        """Collect what the file imports from the standard library, and the names of the whole file."""
        self._standard = {*vars(builtins)} - {*_stored_in(_statements(tree))}
        self._standard -= {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self._import(each, each.name)
            elif isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self._import(each, node.module or "")
        self._imported = {
            each.asname or each.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for each in node.names
            if "pytest" not in (getattr(node, "module", ""), each.name)
        } - self._standard
        self._fixtures = _fixtures(tree)
        self._functions = _functions_of_constants(tree)
        self.of_file: Bindings = {**_names_of_module(tree), **_attributes(tree), **self._fixtures}

    def _import(self, name: ast.alias, module: str) -> None:
        """Note whether a name is of the standard library."""
        bound = {name.asname or name.name.partition(".")[0]}
        is_standard = module.partition(".")[0] in sys.stdlib_module_names
        self._standard = self._standard | bound if is_standard else self._standard - bound

    def of_function(self, function: Function) -> Bindings:
        """Return what the names of a function stand for that are its own, without fixtures that it takes."""
        taken = {each.arg for each in function.args.args} & {*self._fixtures}
        own = _names_of_function(function)
        return {name: values for name, values in own.items() if values or name not in taken}

    def holds(self, expression: ast.expr, known: Bindings) -> bool:
        """Return whether an expression is constant, with `known` names besides those of the file."""
        return self._holds(expression, known, {})

    def _holds(self, expression: ast.expr, known: Bindings, told: dict[str, bool]) -> bool:
        """Return whether an expression is constant; `told` is what is known of names already."""
        if isinstance(expression, ast.Name):
            return expression.id == "__file__" or self._is_known(expression.id, known, told)
        if isinstance(expression, ast.Attribute):
            key = key_of(expression)
            is_known = self._is_known(key, known, told) or self._is_of_library(expression, known)
            return is_known or self._holds(expression.value, known, told)
        if isinstance(expression, ast.Call):
            if called_name(expression) == "approx":
                has_tolerance = len(expression.args) != 1 or expression.keywords
                return not has_tolerance and self._holds(expression.args[0], known, told)
            is_known = self._may_call(expression.func, known, told)
            return is_known and self._gets_constants(expression, known, told)
        parts = [each for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)]
        return isinstance(expression, _COMPUTED) and all(self._holds(each, known, told) for each in parts)

    def makes_object(self, expression: ast.expr, known: Bindings, deleted: Collection[str]) -> bool:
        """Return whether an expression is made of constants by classes or functions that the file imports.

        They are none of the names of `deleted` functions.
        """
        values = self.values_of(expression.id, known) if isinstance(expression, ast.Name) else ()
        if values:
            others = {**known, expression.id: ()}  # pyright: ignore[reportAttributeAccessIssue]
            return self._are_made(values, others, deleted)
        if isinstance(expression, ast.Call):
            given = [*expression.args, *(each.value for each in expression.keywords)]
            return self._is_made(expression.func, known, deleted) and self._are_made(given, known, deleted)
        if isinstance(expression, ast.Name | ast.Attribute):
            return self._is_made(expression, known, deleted)
        parts = [each for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)]
        is_container = isinstance(expression, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.BinOp)
        return is_container and self._are_made(parts, known, deleted)

    def _is_made(self, named: ast.expr, known: Bindings, deleted: Collection[str]) -> bool:
        names = [*_dotted(named)]
        is_imported = bool(names) and names[-1] in self._imported and names[-1] not in known
        return is_imported and not {*names} & {*deleted}

    def _are_made(self, parts: Iterable[ast.expr], known: Bindings, deleted: Collection[str]) -> bool:
        return all(self.holds(each, known) or self.makes_object(each, known, deleted) for each in parts)

    def values_of(self, key: str, known: Bindings) -> Sequence[ast.expr]:
        """Return what a name may stand for."""
        return known[key] if key in known else self.of_file.get(key, ())

    def _gets_constants(self, call: ast.Call, known: Bindings, told: dict[str, bool]) -> bool:
        given = [*call.args, *(each.value for each in call.keywords)]
        return all(self._holds(each, known, told) for each in given)

    def _is_known(self, key: str, known: Bindings, told: dict[str, bool]) -> bool:
        if key not in told:
            told[key] = False  # a name that leads to itself is none
            values = self.values_of(key, known)
            told[key] = bool(values) and all(self._holds(each, known, told) for each in values)
        return told[key]

    def _is_of_library(self, expression: ast.expr, known: Bindings) -> bool:
        """Return whether an expression names something in the standard library."""
        while isinstance(expression, ast.Attribute):
            expression = expression.value
        is_name = isinstance(expression, ast.Name) and expression.id not in known
        return is_name and expression.id in self._standard  # pyright: ignore[reportAttributeAccessIssue]

    def makers(self) -> list[ast.FunctionDef]:
        """Return the functions of the file that make constants of constants."""
        return [each for each in self._functions.values() if self._gives_constants(each, {})]

    def _gives_constants(self, function: ast.FunctionDef, told: dict[str, bool]) -> bool:
        name = f"{function.name}()"
        if name not in told:
            told[name] = False  # a function that calls itself makes none
            known, inside = _names_of_call(function), {key: told[key] for key in told if key.endswith("()")}
            told[name] = all(self._holds(each, known, inside) for each in _parts_of(function))
        return told[name]

    def _may_call(self, called: ast.expr, known: Bindings, told: dict[str, bool]) -> bool:
        """Return whether a call gives a constant: of the library, of a constant's method, of the file."""
        if self._is_of_library(called, known):
            return True
        function = self._functions.get(key_of(called)) if key_of(called) not in known else None
        if function is not None:
            return self._gives_constants(function, told)
        return isinstance(called, ast.Attribute) and self._holds(called.value, known, told)


def _dotted(expression: ast.expr) -> Iterator[str]:
    """Yield the names of `module.Class.method`, the last first; nothing for another expression."""
    names: list[str] = []
    while isinstance(expression, ast.Attribute):
        names.append(expression.attr)
        expression = expression.value
    if isinstance(expression, ast.Name):
        yield from [*names, expression.id]


def is_mutable(value: ast.expr) -> bool:
    """Return whether the value of an expression may be changed in place, as what a call returns may be."""
    kinds = ast.Call | ast.List | ast.Dict | ast.Set | ast.Attribute | ast.Subscript
    return any(isinstance(each, kinds) for each in ast.walk(value))


def key_of(expression: ast.expr) -> str:
    """Return the key of a name, or of an attribute of `self` or `cls`; "" for others."""
    if isinstance(expression, ast.Name):
        return expression.id
    of = expression.value if isinstance(expression, ast.Attribute) else None
    is_own = isinstance(of, ast.Name) and of.id in ("self", "cls")
    return f".{expression.attr}" if is_own else ""  # pyright: ignore[reportAttributeAccessIssue]


def reads_of(node: ast.AST) -> Counter[str]:
    """Count how often each name or attribute, of whatever object, is read within a node."""
    return Counter(
        each.id if isinstance(each, ast.Name) else f".{each.attr}"
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load)
    )


def called_name(call: ast.Call) -> str:
    """Return the name that is called, without what it is an attribute of."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def outer_functions(tree: ast.AST) -> Iterator[Function]:
    """Yield the functions and methods that lie in no other one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        else:
            yield from outer_functions(node)


def give_own_tables(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    """Write module-level tables where parametrized tests and loops name them, so that each has its own.

    Returns the copies, each with the name of its table.
    """
    copies: list[tuple[str, ast.expr]] = []
    tables = {
        name: value
        for node in tree.body
        for name, value in assigned(node)
        if isinstance(value, ast.List | ast.Tuple | ast.Dict)
    }

    def own(table: ast.expr) -> ast.expr:
        if isinstance(table, ast.Name) and table.id in tables:
            copies.append((table.id, parse_python(ast.unparse(tables[table.id])).body[0].value))  # pyright: ignore
            return copies[-1][1]
        if isinstance(table, ast.BinOp) and isinstance(table.op, ast.Add):
            return ast.BinOp(own(table.left), table.op, own(table.right))
        if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute) and not table.args:
            table.func.value = own(table.func.value)
        return table

    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.iter = own(node.iter)
        elif isinstance(node, ast.Call) and called_name(node) == "parametrize":
            given = {each.arg: each.value for each in node.keywords}
            named = [given[name] for name in ("argnames", "argvalues")[len(node.args) :] if name in given]
            node.keywords = [each for each in node.keywords if each.value not in named]
            node.args = [*node.args[:1], *map(own, [*node.args[1:], *named])]
    return copies


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the key and the value of an assignment to one name, or attribute of `self`."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if target is not None and value is not None and (key := key_of(target)):
        yield key, value


def _stored(node: ast.AST) -> Counter[str]:
    """Count how often each name is given a value within a node."""
    found: Counter[str] = Counter()
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and not isinstance(each.ctx, ast.Load):
            found[key_of(each)] += 1
        elif isinstance(each, ast.arg):
            found[each.arg] += 1
    return found


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements of a module outside of its functions and classes."""
    return [node for node in tree.body if not isinstance(node, Function | ast.ClassDef)]


def _stored_in(nodes: Iterable[ast.AST]) -> Counter[str]:
    return sum(map(_stored, nodes), Counter[str]())


def _names_of_module(tree: ast.Module) -> Bindings:
    statements = _statements(tree)
    stored = _stored_in(statements)
    found = {name: [value] for node in statements for name, value in assigned(node)}
    written = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return {name: values for name, values in found.items() if stored[name] == 1 and name not in written}


def _attributes(tree: ast.Module) -> Bindings:
    """Return the attributes of classes and of `self` that are given one value in the whole file."""
    found: defaultdict[str, list[ast.expr]] = defaultdict(list)
    stored = _stored(tree)
    for node in ast.walk(tree):
        for name, value in assigned(node):
            if name.startswith("."):
                found[name].append(value)
        for name, value in (pair for each in _body_of_class(node) for pair in assigned(each)):
            stored[f".{name}"] += 1
            found[f".{name}"].append(value)
    return {name: values for name, values in found.items() if stored[name] == len(values) == 1}


def _body_of_class(node: ast.AST) -> Sequence[ast.stmt]:
    return node.body if isinstance(node, ast.ClassDef) else ()


def _fixtures(tree: ast.Module) -> Bindings:
    """Return what fixtures return that do nothing else and are the only ones of their name."""
    found: defaultdict[str, list[ast.expr | None]] = defaultdict(list)
    for function in outer_functions(tree):
        if any("fixture" in ast.unparse(each) for each in function.decorator_list):
            first = function.body[0]
            found[function.name].append(first.value if isinstance(first, ast.Return) else None)
    return {name: [values[0]] for name, values in found.items() if len(values) == 1 and values[0] is not None}


def _functions_of_constants(tree: ast.Module) -> Mapping[str, ast.FunctionDef]:
    """Return functions of one name that only assign, open something and return, by key."""
    found: defaultdict[str, list[ast.FunctionDef]] = defaultdict(list)
    for node in outer_functions(tree):
        is_method = node not in tree.body
        if isinstance(node, ast.FunctionDef):
            found[f".{node.name}" if is_method else node.name].append(node)
    return {
        key: functions[0]
        for key, functions in found.items()
        if len(functions) == 1
        and not functions[0].decorator_list
        and not key.lstrip(".").startswith("test")
        and all(isinstance(each, ast.Assign | ast.With | ast.Return) for each in _flat(functions[0].body))
    }


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those within `with`."""
    for node in body:
        yield node
        if isinstance(node, ast.With):
            yield from _flat(node.body)


def _parts_of(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what a function assigns, opens and returns."""
    for node in _flat(function.body):
        if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
            yield node.value
        elif isinstance(node, ast.With):
            yield from (each.context_expr for each in node.items)


def _names_of_call(function: ast.FunctionDef) -> Bindings:
    """Return what the names of a function stand for that gets constants."""
    opened = {
        key_of(each.optional_vars): [each.context_expr]
        for node in _flat(function.body)
        if isinstance(node, ast.With)
        for each in node.items
        if each.optional_vars is not None
    }
    given = {each.arg: [ast.Constant(None)] for each in function.args.args if each.arg not in ("self", "cls")}
    return {**_names_of_function(function), **opened, **given}


def _names_of_function(function: Function) -> Bindings:
    stored = _stored(function)
    found: dict[str, Sequence[ast.expr]] = dict.fromkeys(stored, ())
    for node in ast.walk(function):
        found |= {name: [value] for name, value in assigned(node) if stored[name] == 1}
    for names, rows in _tables(function, found):
        columns = zip(names, zip(*rows, strict=True), strict=True) if rows else ()
        found |= {name: [*cells] for name, cells in columns if stored[name] == 1}
    return {name: values for name, values in found.items() if name and not name.startswith(".")}


def _tables(
    function: Function, known: Bindings
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[ast.expr]]]]:
    """Yield the names of the columns and the rows of loops and of parametrized cases."""
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            is_row = isinstance(node.target, ast.Tuple | ast.List)
            names = [key_of(each) for each in node.target.elts] if is_row else [key_of(node.target)]  # pyright: ignore
            table = next(iter(known.get(key_of(node.iter), ())), node.iter)
            yield names, _rows(table, len(names), is_row)
    for call in function.decorator_list:
        if isinstance(call, ast.Call) and called_name(call) == "parametrize" and len(call.args) > 1:
            names = _parameter_names(call.args[0])
            yield names, _rows(call.args[1], len(names), len(names) > 1)


def _rows(table: ast.expr, width: int, is_row: bool) -> list[Sequence[ast.expr]]:
    """Return the cells of each row of a table; none if a row cannot be read."""
    if isinstance(table, ast.BinOp) and isinstance(table.op, ast.Add):
        parts = [_rows(part, width, is_row) for part in (table.left, table.right)]
        return [*parts[0], *parts[1]] if all(parts) else []
    rows: list[Sequence[ast.expr | None]] = []
    if isinstance(table, ast.List | ast.Tuple):
        rows = [_cells(row, is_row) for row in table.elts]
    elif (
        isinstance(table, ast.Call)
        and called_name(table) == "items"
        and isinstance(table.func, ast.Attribute)
    ):
        pairs = table.func.value
        rows = [*zip(pairs.keys, pairs.values, strict=True)] if isinstance(pairs, ast.Dict) else []
    is_read = all(len(row) == width and None not in row for row in rows)
    return rows if is_read else []  # pyright: ignore[reportReturnType]


def _cells(row: ast.expr, is_row: bool) -> Sequence[ast.expr]:
    if isinstance(row, ast.Call) and called_name(row) == "param":
        return row.args
    if not is_row:
        return [row]
    return row.elts if isinstance(row, ast.Tuple | ast.List) else []


def _parameter_names(names: ast.expr) -> list[str]:
    if isinstance(names, ast.Constant):
        return [each.strip() for each in str(names.value).split(",")]
    elements = names.elts if isinstance(names, ast.Tuple | ast.List) else []
    return [str(each.value) for each in elements if isinstance(each, ast.Constant)]
