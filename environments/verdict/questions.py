"""Questions that tests ask with a literal, less than whether a value is equal to it: `"red" in f(x)`.

In a blank test the value that they are about is recorded; the question is answered outside (`decide.py`).
"""

import ast
from dataclasses import dataclass

from tracemill.environments.verdict.held_answers import is_guessed
from tracemill.environments.verdict.known_names import called_name
from tracemill.environments.verdict.record_values import plain_text

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
METHODS = {
    "assertIn": "in",
    "assertNotIn": "not in",
    "assertLess": "<",
    "assertLessEqual": "<=",
    "assertGreater": ">",
    "assertGreaterEqual": ">=",
}
"""Methods of `unittest` that ask one."""
_OF_TEXTS = ("startswith", "endswith", "match")
_CAUGHT, _BETWEEN = "__caught__", "__between__"


@dataclass(frozen=True)
class AskedValue:
    """A value, of `subject`, of which something is `asked` with the recorded `text` of a literal."""

    asked: str
    text: str
    subject: ast.expr


def question_of(node: ast.Compare | ast.Call) -> AskedValue | None:
    """Return the question of a comparison, or a call that compares; None if it asks none with a literal."""
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1:
            return None
        left, operator, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(operator, ast.Eq):
            return _approximate(left, right) or _approximate(right, left)
        asked = _OPERATORS.get(type(operator), "")
        return _difference(left, asked, right) or _of_sides(left, asked, right)
    name, given = called_name(node), {each.arg or "": each.value for each in node.keywords}
    if name in METHODS and len(node.args) == 2:
        return _of_sides(node.args[0], METHODS[name], node.args[1])
    if name in _OF_TEXTS and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        is_asked = name != "match" or _is_message(node.func.value)
        return _with(node.args[0], name, node.func.value) if is_asked else None
    if name == "assertAlmostEqual" and len(node.args) in (2, 3):
        places = node.args[2] if len(node.args) == 3 else given.get("places")
        allowed = _number(given.get("delta"), 0.5 * 10.0 ** -_number(places, 7))
        return _either(node.args[0], node.args[1], f"near:0:{allowed}")
    if ast.unparse(node.func) == "math.isclose" and len(node.args) == 2:
        relative, absolute = _number(given.get("rel_tol"), 1e-9), _number(given.get("abs_tol"), 0.0)
        return _either(node.args[0], node.args[1], f"near:{relative}:{absolute}")
    return None


def ask_one_by_one(tree: ast.Module) -> None:
    """Let each assertion of tests ask one question.

    `with raises(E, match="red"):` becomes `with raises(E) as caught:`, followed by an assertion of the
    message, and `assert 1 < f(x) < 3` the assertions of both bounds of a variable.
    """
    _OneByOne().visit(tree)


class _OneByOne(ast.NodeTransformer):
    """Takes patterns from blocks that catch exceptions, and chains of comparisons apart."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.stmt]:
        """Return an assertion of each link of a chain of two comparisons."""
        chain = node.test
        if not isinstance(chain, ast.Compare) or len(chain.ops) != 2:
            return node
        between, last = chain.comparators
        first = ast.Compare(chain.left, chain.ops[:1], [ast.Name(_BETWEEN, ast.Load())])
        second = ast.Compare(ast.Name(_BETWEEN, ast.Load()), chain.ops[1:], [last])
        given = ast.Assign([ast.Name(_BETWEEN, ast.Store())], between)
        return [ast.copy_location(each, node) for each in (given, ast.Assert(first), ast.Assert(second))]

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.AST]:
        """Return a block and the assertions behind it."""
        self.generic_visit(node)
        asked = [_message(each) for each in node.items]
        return [node, *(each for each in asked if each is not None)]


def _message(item: ast.withitem) -> ast.Assert | None:
    """Take the pattern from a call that catches an exception; return an assertion of the message."""
    call, caught = item.context_expr, item.optional_vars or ast.Name(_CAUGHT, ast.Store())
    if not isinstance(call, ast.Call) or not isinstance(caught, ast.Name) or not call.args:
        return None
    name, patterns = called_name(call), [each for each in call.keywords if each.arg == "match"]
    if name == "raises" and patterns:
        [pattern], call.keywords = patterns, [each for each in call.keywords if each.arg != "match"]
        asked, attribute = pattern.value, "value"
    elif name == "assertRaisesRegex" and len(call.args) == 2 and isinstance(call.func, ast.Attribute):
        asked, attribute, call.func.attr = call.args.pop(), "exception", "assertRaises"
    else:
        return None
    item.optional_vars = caught
    error = ast.Attribute(ast.Name(caught.id, ast.Load()), attribute, ast.Load())
    message = ast.Call(ast.Name("str", ast.Load()), [error], [])
    return ast.Assert(ast.Call(ast.Attribute(message, "match", ast.Load()), [asked], []), None)


def _is_message(subject: ast.expr) -> bool:
    """Return whether a text is the message of an exception, as `ask_one_by_one` writes it."""
    if not isinstance(subject, ast.Call) or called_name(subject) != "str" or len(subject.args) != 1:
        return False
    [error] = subject.args
    return isinstance(error, ast.Attribute) and error.attr in ("value", "exception")


def _of_sides(left: ast.expr, asked: str, right: ast.expr) -> AskedValue | None:
    """Return the question of a comparison of two sides of which one is a literal."""
    if "in" in asked:
        return _with(left, asked, right)
    return (_with(right, asked, left) or _with(left, _TURNED[asked], right)) if asked else None


def _approximate(side: ast.expr, subject: ast.expr) -> AskedValue | None:
    """Return the question of a comparison with `approx`, with its tolerance."""
    if not isinstance(side, ast.Call) or called_name(side) != "approx" or len(side.args) != 1:
        return None
    if not {each.arg for each in side.keywords} <= {"rel", "abs"}:
        return None
    return _with(side.args[0], tolerance_of(side), subject)


def tolerance_of(side: ast.expr) -> str:
    """Return how near a value has to be to an expected one, by the widest `approx` in that; empty without."""
    allowed: list[tuple[float, float]] = []
    for call in ast.walk(side):
        if isinstance(call, ast.Call) and called_name(call) == "approx":
            given = {each.arg: each.value for each in call.keywords}
            relative = _number(given.get("rel"), 0.0 if "abs" in given else 1e-6)
            allowed.append((relative, _number(given.get("abs"), 1e-12)))
    return f"near:{max(each for each, _ in allowed)}:{max(each for _, each in allowed)}" if allowed else ""


def _difference(left: ast.expr, asked: str, right: ast.expr) -> AskedValue | None:
    """Return the question of `abs(f(x) - 2.5) < 0.1`."""
    if asked not in ("<", "<=") or not isinstance(left, ast.Call) or ast.unparse(left.func) != "abs":
        return None
    inside = left.args[0] if left.args else None
    if not isinstance(inside, ast.BinOp) or not isinstance(inside.op, ast.Sub) or not _is_number(right):
        return None
    return _either(inside.left, inside.right, f"near:0:{_number(right, 0.0)}")


def _either(one: ast.expr, other: ast.expr, asked: str) -> AskedValue | None:
    return _with(other, asked, one) or _with(one, asked, other)


def _with(literal: ast.expr, asked: str, subject: ast.expr) -> AskedValue | None:
    """Return a question with a literal that no guess gives."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    is_plain = isinstance(value, str | bytes | int | float) and not isinstance(value, bool)
    if not asked.startswith("near:") and (not is_plain or is_guessed(literal)):
        return None
    return AskedValue(asked, plain_text(value), subject)


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _number(node: ast.expr | None, default: float) -> float:
    """Return the number that a node is, or the default without one; NaN, which allows nothing, for others."""
    if node is None:
        return default
    return float(ast.literal_eval(node)) if _is_number(node) else float("nan")
