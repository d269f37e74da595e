"""Write tests with wrong expectations: the canaries of a verdict.

A copy of a test expects another constant, or another exception. On right code it fails. A candidate that
makes every test pass, by a patched report, a forged result or objects that equal everything, passes it too
and gives itself away. The copy differs from its original in constants alone, so that code in the same
process cannot tell the two apart unless it knows what is right.
"""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_EXCEPTIONS = (
    "KeyError",
    "IndexError",
    "OSError",
    "ZeroDivisionError",
    "LookupError",
    "BufferError",
    "EOFError",
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_EQUALITY = ("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual")
_EQUALITY += (
    "assertSetEqual",
    "assertSequenceEqual",
    "assertMultiLineEqual",
    "assertAlmostEqual",
    "assertIs",
)
_RAISING = ("raises", "assertRaises", "assertRaisesRegex")


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def change_expectations(source: str, seed: int) -> str:
    """Return a test file in which every expectation that is a constant is another one.

    A file that does not parse is returned as it is.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    rng, data = random.Random(seed), source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits: dict[int, _Edit] = {}
    for expected in _expectations(tree):
        changed = _other(expected, rng)
        if changed is not None and expected.end_lineno is not None and expected.end_col_offset is not None:
            start = starts[expected.lineno - 1] + expected.col_offset
            end = starts[expected.end_lineno - 1] + expected.end_col_offset
            edits[start] = _Edit(start, end, changed)
    last = len(data)
    for edit in sorted(edits.values(), key=lambda each: -each.start):
        if edit.end <= last:
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
            last = edit.start
    return data.decode()


def _expectations(tree: ast.AST) -> Iterator[ast.expr]:
    """Give the expressions that say what is expected, constants and displays of them."""
    tables = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            for compare in ast.walk(node.test):
                if isinstance(compare, ast.Compare) and isinstance(compare.ops[0], ast.Eq | ast.Is):
                    yield from _sides([compare.left, compare.comparators[0]])
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in _EQUALITY and len(node.args) >= 2:
                yield from _sides(node.args[:2])
            elif name in _RAISING and node.args and isinstance(node.args[0], ast.Name | ast.Attribute):
                yield node.args[0]
            elif name == "parametrize" and len(node.args) >= 2:
                values = node.args[1]
                yield from _parameters(
                    tables.get(values.id, values) if isinstance(values, ast.Name) else values
                )


def _sides(sides: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Give the constants of the side that calls nothing, else those of the right one."""
    expected = next((side for side in reversed(sides) if not _calls(side)), sides[-1])
    if not _calls(expected):
        yield from _first_constant(expected)


def _parameters(values: ast.expr) -> Iterator[ast.expr]:
    """Give the last value of each row of a parametrized test: by custom what is expected."""
    if not isinstance(values, ast.List | ast.Tuple):
        return
    for row in values.elts:
        if isinstance(row, ast.Call) and isinstance(row.func, ast.Attribute) and row.func.attr == "param":
            row = ast.Tuple(row.args)
        if isinstance(row, ast.Tuple | ast.List) and len(row.elts) > 1 and not _calls(row.elts[-1]):
            yield from _first_constant(row.elts[-1])


def _calls(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(expression))


def _first_constant(expression: ast.expr) -> Iterator[ast.expr]:
    """Give the first constant within an expression, or an empty display."""
    for node in ast.walk(expression):
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.Constant) or (
            isinstance(node, ast.List | ast.Dict) and _other(node) is not None
        ):
            yield node
            return


def _other(node: ast.expr, rng: random.Random | None = None) -> str | None:
    """Return source text of another value of the same kind; None for what is not understood."""
    rng = rng or random.Random(0)
    if isinstance(node, ast.List):
        return None if node.elts else f"[{rng.randrange(2, 9)}]"
    if isinstance(node, ast.Dict):
        return None if node.keys else f"{{{rng.randrange(2, 9)}: {rng.randrange(2, 9)}}}"
    if isinstance(node, ast.Name | ast.Attribute):
        return rng.choice(_EXCEPTIONS)
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, bool):
        return repr(not value)
    if value is None:
        return repr(rng.randrange(2, 9))
    if isinstance(value, int | float):
        return repr(value + rng.randrange(2, 9))
    if isinstance(value, str | bytes):
        at, letter = rng.randrange(len(value) + 1), rng.choice(_LETTERS)
        added = value[:at] + (letter if isinstance(value, str) else letter.encode()) + value[at:]  # type: ignore[operator]
        return repr(added)
    return None
