"""Find answers that blank tests still hold: in constants of other tests, and names."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field

from tracemill.environments.verdict.known_names import called_name
from tracemill.environments.verdict.record_values import EXPECTED, plain_text

_TEXT = re.compile(r"""'(?:[^'\\]|\\.){2,}'|"(?:[^"\\]|\\.){2,}\"""")
"""A text within a recorded value."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_GUESSED = re.compile(r"None|-?\d|b?'.?'|\[\]|\(\)|\{\}")
"""Texts of values that a guess gives, among them true and false; so does what the tests hold elsewhere."""
_EDGE = re.compile(r"(?<=['\"(,])(?:\s|\\[nrt])+|(?:\s|\\[nrt])+(?=['\"),])|,(?=\))")
_BRACKETS = str.maketrans("[]{}", "()()")
LITERAL = ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp | ast.BinOp


@dataclass(frozen=True)
class BlankSource:
    """A test file without expectations.

    `hidden` are the values that each test function expected, and `inputs` those that it still holds, ""
    standing for the rest of the file. `names` are all that it uses.
    """

    text: str
    hidden: Mapping[str, Set[str]] = field(default_factory=dict)
    inputs: Mapping[str, Set[str]] = field(default_factory=dict)
    names: Set[str] = frozenset()


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


class HeldTexts:
    """Values that blank tests still hold, in constants and names."""

    def __init__(self, sources: Iterable[BlankSource]) -> None:
        """Read the constants as they would be recorded."""
        self._texts: set[str] = set()
        self._searched: defaultdict[str, list[str]] = defaultdict(list)
        """Longer texts, without white space, by the test that holds them; "" for those outside of tests."""
        self._names: set[str] = set()
        self._tests: set[str] = set()
        """Letters of the names that tests use, and of those of the tests, which may be longer."""
        for blank in sources:
            self._names |= {*map(_letters, blank.names)}
            self._tests |= {*map(_letters, blank.inputs)}
            for name, inputs in blank.inputs.items():
                values = [*_values(inputs)]
                self._texts |= _loose(map(plain_text, values))
                self._searched[name] += (_squeezed(value) for value in values if isinstance(value, str))

    def let_guess(self, texts: Sequence[str], test: str) -> bool:
        """Return whether a guess gives the values of a test function, or what is held elsewhere."""
        return all(_GUESSED.fullmatch(text) or self.has(text, test) for text in texts)

    def has(self, text: str, test: str = "") -> bool:
        """Return whether a recorded value, or each text in it, is held, also in a longer text elsewhere."""
        [loose] = _loose([text])
        if loose in self._texts or ("," in loose and any(loose.strip("()") in each for each in self._texts)):
            return True
        longer = [
            each for name, texts in self._searched.items() if not name or name != test for each in texts
        ]
        numbers = [each for each in _NUMBER.findall(text) if len(each) > 1]
        return all(self._has_part(part, longer) for part in _TEXT.findall(text) or numbers or [text])

    def _has_part(self, part: str, longer: Sequence[str]) -> bool:
        """Return whether a text within a value, or a value without texts, is held."""
        if _loose([part]) <= self._texts:
            return True
        sought = part
        with suppress(ValueError, SyntaxError):
            sought = str(ast.literal_eval(part))
        letters = _letters(sought)
        if letters in self._names or (letters and any(letters in each for each in self._tests)):
            return True
        is_number = _NUMBER.fullmatch(part) is not None
        return not is_number and any(_squeezed(sought) in each for each in longer)


def _values(sources: Iterable[str]) -> Iterator[object]:
    """Yield the values of constants by their source."""
    for source in sources:
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            yield ast.literal_eval(source)


def _letters(text: str) -> str:
    """Return the letters and digits of a text or a name."""
    return "".join(each for each in text.lower() if each.isalnum())


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())


def _loose(texts: Iterable[str]) -> Set[str]:
    """Return the texts of values in small letters, without space at their ends, with one kind of brackets."""
    return {_EDGE.sub("", text.translate(_BRACKETS)).lower() for text in texts}


def _holds_half(hidden: Set[str], inputs: Set[str]) -> bool:
    return bool(hidden) and 2 * len(hidden & inputs) >= len(hidden)


def constants_of(node: ast.AST) -> Set[str]:
    """Return the source of every constant within a node that no guess gives, but for placeholders."""
    if isinstance(node, ast.Call) and called_name(node) == EXPECTED:
        return set()
    own = {ast.unparse(node)} if isinstance(node, LITERAL) and not is_guessed(node) else set()
    return own.union(*map(constants_of, ast.iter_child_nodes(node)))


def is_guessed(node: ast.expr) -> bool:
    """Return whether an expression is true, false, None, or a text or number of one character."""
    return isinstance(node, ast.Constant) and (
        isinstance(node.value, bool | None) or len(str(node.value)) <= 1
    )


class FoldConstants(ast.NodeTransformer):
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
            return text if called_name(node) != EXPECTED else node
        return node
