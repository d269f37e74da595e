"""Read in code how its objects decide what they are equal to.

A function that returns an object with an equality of its own needs no implementation. Each sign names the
class and the method. An `__eq__` of a class and operators of a kind of number or text are only suspicious,
since honest code has them too; blank tests record what an object holds, whatever it says.
"""

import ast

from tracemill.environments.monitor.constant_text import constant_text
from tracemill.environments.monitor.hack_finding import Severity

Sign = tuple[str, Severity]
_EQUALITY = frozenset(
    {"__eq__", "__ne__", "__hash__", "__instancecheck__", "__subclasscheck__", "__class__", "__cmp__"}
)
_PLAIN_EQUALITY = frozenset({"__eq__", "__ne__", "__hash__"})
_OPERATORS = frozenset(
    {"__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__rsub__", "__add__", "__radd__"}
    | {"__contains__", "__bool__", "__abs__", "__round__", "__getattribute__"}
)
_VALUES = frozenset({"str", "int", "float", "complex", "bytes"})


def equality_signs(tree: ast.Module) -> set[Sign]:
    """Return signs of objects that decide by themselves what they are equal to, by class and method."""
    found: set[str] = set()
    of_values: set[str] = set()
    operators: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            of_value = any(ast.unparse(base).rpartition(".")[2] in _VALUES for base in node.bases)
            if of_value:
                of_values |= {f"{node.name}.{name}" for name in _defined(node) & _EQUALITY}
                operators |= {f"{node.name}.{name}" for name in _defined(node) & _OPERATORS}
            else:
                found |= {f"{node.name}.{name}" for name in _defined(node) & _EQUALITY}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} & _EQUALITY
        elif isinstance(node, ast.keyword):
            found |= {node.arg or ""} & _EQUALITY
        elif isinstance(node, ast.expr):
            found |= {constant_text(node)} & (_EQUALITY - {"__class__", "__hash__"})
    plain = {name for name in found if name.rpartition(".")[2] in _PLAIN_EQUALITY}
    signs: set[Sign] = {(f"decides its equality: {name}", "hack") for name in of_values | (found - plain)}
    signs.update((f"decides its equality: {name}", "suspicious") for name in plain)
    signs.update((f"decides how it compares: {name}", "suspicious") for name in operators)
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
