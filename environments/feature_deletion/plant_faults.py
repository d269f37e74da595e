"""Plant faults in a feature, to see whether the tests of a task would notice them.

A fault is one changed operator, condition, constant or order of arguments in a statement that tests run, or
a call whose result nobody uses left out. It is the wrong answer that is hardest to tell from the right one:
the rest of the code is the original.
"""

import ast
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.environments.parse_python import parse_python
from tracemill.environments.verdict.known_names import called_name

_COMPARED = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE}
_COMPARED |= {ast.LtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Mod: ast.Mult}
_COMPUTED |= {ast.FloorDiv: ast.Mult}

_SYMMETRIC = frozenset({"min", "max", "gcd", "lcm", "hypot", "isclose", "isdisjoint"})
"""Functions whose result does not depend on the order of their arguments."""


@dataclass(frozen=True)
class Fault:
    """A fault in a function, given as `file::name`: the text of its file, and the line that changed."""

    symbol: str
    text: str
    change: str

    @property
    def file(self) -> str:
        """Return the path of the file."""
        return self.symbol.partition("::")[0]


def plant_faults(
    code: Path,
    symbols: Collection[str],
    untested: Collection[str],
    rng: random.Random,
    most: int | None = None,
) -> Iterator[Fault]:
    """Yield faults in functions of files below `code` in random order, each alone in its text.

    `symbols` are the functions as `file::name`, whose bodies are changed; `untested` are statements, as
    `file:line`, that are left as they are. At most `most` AST nodes are changed, or each of them once.
    """
    places: list[tuple[str, int]] = []
    for symbol in sorted({*symbols}):
        places += [(symbol, number) for number in range(len(_changeable(code, symbol, untested)[1]))]
    rng.shuffle(places)
    for symbol, number in places[:most]:
        tree, nodes = _changeable(code, symbol, untested)
        before = ast.unparse(tree)
        _change(nodes[number])
        after = ast.unparse(ast.fix_missing_locations(tree))
        if after != before:  # as equal arguments in another order are
            yield Fault(symbol, after, _difference(before, after))


def _difference(before: str, after: str) -> str:
    """Return the first line that differs, and what it was before."""
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    old, new = next(((one, other) for one, other in lines if one != other), ("", ""))
    return f"`{new.strip()}` in place of `{old.strip()}`"


def _changeable(code: Path, symbol: str, untested: Collection[str]) -> tuple[ast.Module, list[ast.AST]]:
    """Return the tree of a function's file, and the AST nodes of the function that a fault may change."""
    file, _, name = symbol.partition("::")
    tree = parse_python((code / file).read_text(encoding="utf-8"))
    bodies = [*_bodies(tree, name.split("."))]
    left = {each for body in bodies for node in _silent(body, file, untested) for each in ast.walk(node)}
    found = (node for body in bodies for statement in body for node in ast.walk(statement))
    return tree, [node for node in found if node not in left and _can_change(node)]


def _bodies(tree: ast.AST, name: Sequence[str]) -> Iterator[list[ast.stmt]]:
    """Yield the bodies of the functions with a dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name[0]:
            if len(name) > 1:
                yield from _bodies(ast.Module(node.body, []), name[1:])
            elif not isinstance(node, ast.ClassDef):
                yield node.body


def _silent(body: Sequence[ast.stmt], file: str, untested: Collection[str]) -> Iterator[ast.AST]:
    """Yield statements whose change no test notices: unrun statements, raised errors and docstrings."""
    for statement in body:
        for node in ast.walk(statement):
            constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            unrun = isinstance(node, ast.stmt) and f"{file}:{node.lineno}" in untested
            if constant or unrun or isinstance(node, ast.Raise):
                yield node


def _can_change(node: ast.AST) -> bool:
    return (
        (isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED)
        or (isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await))
        or isinstance(node, ast.If | ast.While | ast.IfExp | ast.BoolOp)
        or (isinstance(node, ast.Constant) and isinstance(node.value, int | str))
        or (isinstance(node, ast.Call) and len(node.args) > 1 and called_name(node) not in _SYMMETRIC)
    )


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = _COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = _COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = node.value[:-1] if len(node.value) > 1 else node.value + "_"
    elif isinstance(node, ast.Call):
        node.args[:2] = reversed(node.args[:2])
