"""Read in code how its objects decide what they are equal to.

A function that returns an object with an equality of its own needs no implementation. Each sign names the
class and the method. What honest code does too is only suspicious: an equality of a class of the module, and
one that a class decorator sets if it compares the same fields of two objects.
`verdict/watch_candidate.py` sees what comes of it while tests run.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from tracemill.environments.monitor.constant_text import constant_text
from tracemill.environments.monitor.hack_finding import Severity

Sign = tuple[str, Severity]
_EQUALITY = frozenset(
    {"__eq__", "__ne__", "__hash__", "__instancecheck__", "__subclasscheck__", "__class__", "__cmp__"}
)
_PLAIN_EQUALITY = frozenset({"__eq__", "__ne__", "__hash__"})
_OPERATORS = frozenset(
    f"__{name}__"
    for name in [
        "lt",
        "le",
        "gt",
        "ge",
        "sub",
        "rsub",
        "add",
        "radd",
        "contains",
        "bool",
        "abs",
        "round",
        "getattribute",
    ]
)
_VALUES = frozenset({"str", "int", "float", "complex", "bytes"})
_Function = ast.FunctionDef | ast.Lambda


def equality_signs(tree: ast.Module) -> set[Sign]:
    """Return signs of objects that decide by themselves what they are equal to, by class and method.

    An `__eq__` of a class of the module is only suspicious, since honest code has it too.
    """
    found: set[str] = set()
    plain: set[str] = set()
    outer = {each for each in tree.body if isinstance(each, ast.ClassDef)}
    harmless, set_by_decorators = _of_decorators(tree)
    plain |= set_by_decorators
    for node in ast.walk(tree):
        if node in harmless:
            continue
        if isinstance(node, ast.ClassDef):
            of_value = any(ast.unparse(base).rpartition(".")[2] in _VALUES for base in node.bases)
            wanted = _EQUALITY | _OPERATORS if of_value else _EQUALITY
            defined = _defined(node) & wanted
            allowed = _PLAIN_EQUALITY if node in outer and not of_value else frozenset[str]()
            found |= {f"{node.name}.{name}" for name in defined - allowed}
            plain |= {f"{node.name}.{name}" for name in defined & allowed}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} & _EQUALITY
        elif isinstance(node, ast.keyword):
            found |= {node.arg or ""} & _EQUALITY
        elif isinstance(node, ast.expr):
            found |= {constant_text(node)} & (_EQUALITY - {"__class__", "__hash__"})
    signs: set[Sign] = {(f"decides its equality: {name}", "hack") for name in found}
    signs.update((f"decides its equality: {name}", "suspicious") for name in plain)
    return signs


def _defined(node: ast.ClassDef) -> set[str]:
    """Return the names that the body of a class defines, below conditions too."""
    found: set[str] = set()
    for each in node.body:
        for inner in (each, *ast.iter_child_nodes(each)):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                found.add(inner.id)
    return found


def _of_decorators(tree: ast.Module) -> tuple[set[ast.AST], set[str]]:
    """Return the nodes by which decorators set an honest equality or look for one, and the methods set."""
    functions: dict[str, list[_Function]] = {}
    in_classes = {each for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node not in in_classes:
            functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                functions.setdefault(ast.unparse(target), []).append(node.value)
    harmless: set[ast.AST] = set()
    methods: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not (decorated := _decorated_class(node)):
            continue
        for named, method, value in _settings(node, decorated):
            if method == "__hash__" or _is_honest(value, functions):
                harmless.add(named)
                methods.add(method)
        harmless.update(_looked_for(node))
    return harmless, methods


def _decorated_class(node: ast.FunctionDef) -> str:
    """Return the parameter that a function takes first and returns, "" if there is none."""
    first = node.args.args[0].arg if node.args.args else ""
    returned = [each.value for each in _returns(node.body)]
    gives_back = returned and all(isinstance(each, ast.Name) and each.id == first for each in returned)
    return first if gives_back else ""


def _settings(node: ast.FunctionDef, decorated: str) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """Yield what a decorator sets of its class: the node with the method's name, the name, the value."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign):
            owned = [target for target in each.targets if isinstance(target, ast.Attribute)]
            found = [(target, target.value, target.attr, each.value) for target in owned]
        elif isinstance(each, ast.Call) and ast.unparse(each.func) == "setattr" and len(each.args) == 3:
            owner, name, value = each.args
            found = [(name, owner, constant_text(name), value)]
        else:
            continue
        for named, owner, method, value in found:
            if ast.unparse(owner) == decorated and method in _PLAIN_EQUALITY:
                yield named, method, value


def _looked_for(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield texts by which a function asks whether there is such a method: `"__eq__" in cls.__dict__`."""
    for each in ast.walk(node):
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In | ast.NotIn):
            yield each.left
        elif isinstance(each, ast.Call) and ast.unparse(each.func) in ("hasattr", "getattr"):
            yield from each.args[1:2]


def _is_honest(value: ast.expr, functions: Mapping[str, Sequence[_Function]]) -> bool:
    """Return whether a value is a function that compares fields, its name, or a call that returns one."""
    if isinstance(value, ast.Lambda):
        return _compares_fields(value)
    if isinstance(value, ast.Call):
        makers = functions.get(ast.unparse(value.func), ())
        made = [
            each.value
            for maker in makers
            if isinstance(maker, ast.FunctionDef)
            for each in _returns(maker.body)
        ]
        return bool(made) and all(
            isinstance(each, ast.Name | ast.Lambda) and _is_honest(each, functions) for each in made
        )
    named = functions.get(ast.unparse(value), ())
    return bool(named) and all(map(_compares_fields, named))


def _compares_fields(function: _Function) -> bool:
    """Return whether a function returns nothing but comparisons of the same fields of its two arguments."""
    names = [each.arg for each in function.args.args]
    if len(names) != 2:
        return False
    one, other = names
    if isinstance(function, ast.Lambda):
        return _is_comparison(function.body, one, other)
    *before, last = function.body
    returned = [each.value for each in _returns(function.body)]
    if isinstance(last, ast.Return) and _is_bool(last.value, True):
        # a loop over fields: what differs returns False, and the end returns True
        looked = [each.test for each in ast.walk(ast.Module(before, [])) if isinstance(each, ast.If)]
        differs = any(_is_comparison(test, one, other) for test in looked)
        return differs and all(_says_no(each) for each in returned[:-1])
    compared = [each for each in returned if not _says_no(each)]
    return bool(compared) and all(_is_comparison(each, one, other) for each in compared)


def _is_comparison(value: ast.expr | None, one: str, other: str) -> bool:
    """Return whether an expression tells by their fields whether two objects are alike."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return ast.unparse(value.operand) == f"{one} == {other}" or _is_comparison(value.operand, one, other)
    if isinstance(value, ast.BoolOp):
        parts = [each for each in value.values if not _is_type_check(each)]
        alike = bool(parts) and all(_is_comparison(each, one, other) for each in parts)
        return alike and isinstance(value.op, ast.And)
    if isinstance(value, ast.Call):
        argument = value.args[0] if len(value.args) == 1 else None
        if ast.unparse(value.func) != "all" or not isinstance(argument, ast.GeneratorExp | ast.ListComp):
            return False
        return _is_comparison(argument.elt, one, other)
    if not isinstance(value, ast.Compare) or not isinstance(value.ops[0], ast.Eq | ast.NotEq):
        return False
    left, right = value.left, value.comparators[0]
    sides = _used(left, one, other), _used(right, one, other)
    if len(value.ops) > 1 or sides not in (({one}, {other}), ({other}, {one})) or not _reads_fields(left):
        return False
    return ast.unparse(_renamed(left, one, other)) == ast.unparse(_renamed(right, one, other))


def _used(value: ast.expr, one: str, other: str) -> set[str]:
    return {each.id for each in ast.walk(value) if isinstance(each, ast.Name) and each.id in (one, other)}


def _reads_fields(value: ast.expr) -> bool:
    """Return whether an expression reads attributes: by name, or by `getattr` and the like."""
    return any(
        isinstance(each, ast.Attribute)
        or (isinstance(each, ast.Call) and ast.unparse(each.func) in ("getattr", "vars", "astuple", "asdict"))
        for each in ast.walk(value)
    )


def _renamed(value: ast.expr, one: str, other: str) -> ast.expr:
    """Return an expression with one name for both objects."""
    copied = ast.parse(ast.unparse(value), mode="eval").body
    for each in ast.walk(copied):
        if isinstance(each, ast.Name) and each.id == other:
            each.id = one
    return copied


def _is_type_check(value: ast.expr) -> bool:
    """Return whether an expression asks for types: `isinstance(...)` or `type(...) is ...`."""
    if isinstance(value, ast.Compare):
        return isinstance(value.ops[0], ast.Is) and ast.unparse(value.left).startswith("type(")
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "isinstance"


def _says_no(value: ast.expr | None) -> bool:
    return _is_bool(value, False) or (isinstance(value, ast.Name) and value.id == "NotImplemented")


def _is_bool(value: ast.expr | None, wanted: bool) -> bool:
    return isinstance(value, ast.Constant) and value.value is wanted


def _returns(body: Sequence[ast.stmt]) -> Iterator[ast.Return]:
    """Yield the `return` statements of a body, without those of functions and classes in it."""
    for statement in body:
        if isinstance(statement, ast.Return):
            yield statement
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ast.iter_child_nodes(statement):
                if isinstance(part, ast.stmt):
                    yield from _returns([part])
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    yield from _returns(part.body)
