"""Find answers that a blank test still holds, in constants and names of its files.

What a test makes of constants alone, as of `timedelta(hours=1)`, the original's run tells: in a copy of the
test, `__held__` records it.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from tracemill.environments.parse_python import parse_python
from tracemill.environments.verdict.known_names import (
    Bindings,
    Function,
    KnownNames,
    called_name,
    outer_functions,
)
from tracemill.environments.verdict.record_values import EXPECTED, HELD, plain_text

_TEXT = re.compile(r"""'(?:[^'\\]|\\.){2,}'|"(?:[^"\\]|\\.){2,}\"""")
"""A text within a recorded value."""
_NUMBER = re.compile(r"-?\d+(?:[./]\d+)?(?:[eE][+-]?\d{1,3})?")
_GUESSED = re.compile(r"None|-?\d|b?'.?'|\[\]|\(\)|\{\}|[0-9a-f]{32}")
"""Texts of values that a guess gives, among them true and false, and digests, which cannot be looked for."""
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+")
"""A word of a name."""
_EDGE = re.compile(r"(?<=['\"(,])(?:\s|\\[nrt])+|(?:\s|\\[nrt])+(?=['\"),])|,(?=\))")
_BRACKETS = str.maketrans("[]{}", "()()")
LITERAL = ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp | ast.BinOp
_MADE = ast.Call | ast.BinOp | ast.JoinedStr | ast.Subscript | ast.Attribute
"""Expressions whose value is not written where they stand."""


@dataclass(frozen=True)
class BlankSource:
    """A test file without expectations.

    `inputs` are the constants that its test still holds, `asked` those beside each placeholder, by number.
    `shared` are those of the rest of the file. `names` are all that are in it, `letters` its texts of
    one character. `probe` is the same file with calls of `__held__`.
    """

    text: str
    inputs: Set[str]
    asked: Mapping[str, Set[str]]
    shared: Set[str]
    names: Set[str]
    letters: Set[str]
    probe: str


def blank_source(file: str, tree: ast.Module, test: str) -> BlankSource:
    """Return the text of a file without expectations, and what it holds. Changes the tree."""
    text = ast.unparse(tree)
    own = [node for node in ast.walk(tree) if isinstance(node, Function) and node.name == test]
    others = parse_python(text)
    for node in ast.walk(others):
        if isinstance(node, ast.Module | ast.ClassDef):
            body = [each for each in node.body if not isinstance(each, Function) or each.name != test]
            node.body = body or [ast.Pass()]
    return BlankSource(
        text,
        set().union(*map(_constants_of, own)),
        {number: _constants_of(each) for node in own for number, each in _asked(node)},
        _constants_of(others),
        {*_names(tree), file},
        _single_letters(tree),
        ast.unparse(_Probe(tree).visit(tree)),
    )


def _asked(within: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the number of each placeholder, and the comparison that it is in."""
    for node in ast.walk(within):
        if isinstance(node, ast.Compare | ast.Call):
            for each in ast.iter_child_nodes(node):
                if isinstance(each, ast.Call) and called_name(each) == EXPECTED:
                    yield str(ast.literal_eval(each.args[0])), node


def _single_letters(tree: ast.AST) -> Set[str]:
    texts = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
    return {each for each in texts if isinstance(each, str) and len(each) == 1}


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of variables, attributes, arguments and functions."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


class _Probe(ast.NodeTransformer):
    """Lets a file record the values that it makes of constants alone."""

    def __init__(self, tree: ast.Module) -> None:
        names = KnownNames(tree)
        known: dict[ast.AST, Bindings] = {}
        for function in outer_functions(tree):
            known |= dict.fromkeys(ast.walk(function), names.of_function(function))
        self._made = {
            node
            for node in ast.walk(tree)
            if isinstance(node, _MADE)
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and names.holds(node, known.get(node, {}))
        }

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """Leave the format of a value as it is."""
        node.value = self.visit(node.value)  # pyright: ignore[reportAttributeAccessIssue]
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        """Return an expression within a call that records its value."""
        found = super().visit(node)
        if node not in self._made:
            return found
        return ast.Call(ast.Name(HELD, ast.Load()), [found], [])  # pyright: ignore[reportArgumentType]


class HeldTexts:
    """Values that a blank test still holds, in constants and names."""

    def __init__(self, sources: Iterable[BlankSource], made: Iterable[str] = ()) -> None:
        """Read the constants as they would be recorded; `made` are recorded values of expressions."""
        self._texts: set[str] = set()
        self._longer: dict[str, list[str]] = {"": []}
        """Texts without white space, by the placeholder beside which they stand; "" outside of the test."""
        self._words: set[str] = set()
        """Words of names, also some that follow each other."""
        self._letters: set[str] = set()
        for blank in sources:
            self._words.update(*map(_words_of, blank.names))
            self._letters |= blank.letters
            self._texts |= _loose(map(plain_text, _values(blank.inputs | blank.shared)))
            for number, inputs in [*blank.asked.items(), ("", blank.shared)]:
                texts = (each for each in _values(inputs) if isinstance(each, str))
                self._longer.setdefault(number, []).extend(map(_squeezed, texts))
        for text in made:
            self._texts |= _loose([text, *_TEXT.findall(text), *_NUMBER.findall(text)])

    def let_guess(self, values: Mapping[str, Sequence[str]]) -> bool:
        """Return whether half of the values by number, but those that a guess gives, are held."""
        numbers = {
            (number, text)
            for number, texts in values.items()
            for text in texts
            if not _GUESSED.fullmatch(text)
        }
        return 2 * sum(self.has(text, number) for number, text in numbers) >= len(numbers)

    def has(self, text: str, number: str = "") -> bool:
        """Return whether a recorded value is held, or each text in it.

        It may be held by a longer text too, but not by one beside the placeholder of this `number`, which is
        what is asked.
        """
        [loose] = _loose([text])
        if loose in self._texts or ("," in loose and any(loose.strip("()") in each for each in self._texts)):
            return True
        longer = [
            each for other, texts in self._longer.items() if not other or other != number for each in texts
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
        if "".join(each for each in sought.lower() if each.isalnum()) in self._words:
            return True
        if sought and {*sought} <= self._letters:  # as of a table of grades
            return True
        is_number = _NUMBER.fullmatch(part) is not None
        return not is_number and any(_squeezed(sought) in each for each in longer)


def _values(sources: Iterable[str]) -> Iterator[object]:
    """Yield the values of constants by their source."""
    for source in sources:
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            yield ast.literal_eval(source)


def _words_of(name: str) -> Iterator[str]:
    """Yield the words of a name, and those that follow each other as one, in small letters."""
    words = [each.lower() for each in _WORD.findall(name)]
    for first in range(len(words)):
        for last in range(first + 1, len(words) + 1):
            yield "".join(words[first:last])


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())


def _loose(texts: Iterable[str]) -> Set[str]:
    """Return the texts of values in small letters, without space at their ends, with one kind of brackets."""
    return {_EDGE.sub("", text.translate(_BRACKETS)).lower() for text in texts}


def _constants_of(node: ast.AST) -> Set[str]:
    """Return the source of every constant within a node that no guess gives, but for placeholders."""
    if isinstance(node, ast.Call) and called_name(node) == EXPECTED:
        return set()
    own = {ast.unparse(node)} if isinstance(node, LITERAL) and not is_guessed(node) else set()
    return own.union(*map(_constants_of, ast.iter_child_nodes(node)))


def is_guessed(node: ast.expr) -> bool:
    """Return whether an expression is true, false, None, or a text or number of one character."""
    return isinstance(node, ast.Constant) and (
        isinstance(node.value, bool | None) or len(str(node.value)) <= 1
    )
