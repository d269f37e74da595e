"""Find answers that a blank test still holds, in constants and names of its files.

What a test makes of constants alone, as of `timedelta(hours=1)`, the original's run tells: in a copy of the
test, `__held__` records it.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from tracemill.environments.parse_python import parse_python
from tracemill.environments.verdict.decide import REFUSED
from tracemill.environments.verdict.known_names import (
    Bindings,
    Function,
    KnownNames,
    called_name,
    outer_functions,
)
from tracemill.environments.verdict.record_values import EXPECTED, HELD, OBJECT, plain_text

_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A text within a recorded value."""
_NUMBER = re.compile(r"-?\d+(?:[./]\d+)?(?:[eE][+-]?\d{1,3})?")
_GUESSED = re.compile(r"None|-?\d|b?'.?'|\[\]|\(\)|\{\}|[0-9a-f]{32}")
"""Texts of values that a guess gives, among them true and false, and digests, which cannot be looked for."""
_WEAK = ("not in ", "<", ">")
"""Questions that a guess answers."""
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+")
"""A word of a name."""
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_DATE = re.compile(r"^(?:date|datetime|time) |(?<=\d)[Tt](?=\d)")
_LEAST_JOINED = 3
"""Letters and digits of a value that is looked for within a longer text."""
_EDGE = re.compile(r"(?<=['\"(,])(?:\s|\\[nrt])+|(?:\s|\\[nrt])+(?=['\"),])|,(?=\))")
_BRACKETS = str.maketrans("[]{}", "()()")
LITERAL = ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp | ast.BinOp
_MADE = ast.Call | ast.BinOp | ast.JoinedStr | ast.Subscript | ast.Attribute
"""Expressions whose value is not written where they stand."""


@dataclass(frozen=True)
class BlankSource:
    """A test file without expectations.

    `inputs` are the constants that its test still holds; `asked` those of them, by the number of a
    placeholder, that it is compared with what is made of. `shared` are those of the rest of the file.
    `names` are all that are in it, `letters` its texts of one character. `probe` is the same file with calls
    of `__held__`. `answers` are the texts that questions ask for, by the number of a placeholder.
    """

    text: str
    inputs: Set[str]
    asked: Mapping[str, Set[str]]
    shared: Set[str]
    names: Set[str]
    letters: Set[str]
    probe: str
    answers: Mapping[str, str]


def blank_source(file: str, tree: ast.Module, test: str, answers: Mapping[str, str]) -> BlankSource:
    """Return the text of a file without expectations, and what it holds. Changes the tree."""
    text = ast.unparse(tree)
    own = [node for node in ast.walk(tree) if isinstance(node, Function) and node.name == test]
    classes = [
        node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) if {*own} & {*node.body}
    ]
    others = parse_python(text)
    for node in ast.walk(others):
        if isinstance(node, ast.Module | ast.ClassDef):
            body = [each for each in node.body if not isinstance(each, Function) or each.name != test]
            node.body = body or [ast.Pass()]
    return BlankSource(
        text,
        set().union(*map(_constants_of, own)),
        dict(pair for node in own for pair in _asked(node)),
        _constants_of(others),
        {*_names(tree), file, *(f"{name}_{test.removeprefix('test')}" for name in classes)},
        _single_letters(tree),
        ast.unparse(_Probe(tree).visit(tree)),
        answers,
    )


def _asked(function: Function) -> Iterator[tuple[str, Set[str]]]:
    """Yield the number of each placeholder, and the constants of what it is compared with.

    They stand in the comparison, or are what its names are made of, or cases of a parametrized test.
    """
    cases = set().union(*map(_constants_of, function.decorator_list))
    made: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        for name, value in _made_of(node):
            made.setdefault(name, []).append(value)
    for node in ast.walk(function):
        parts = [each.value if isinstance(each, ast.keyword) else each for each in ast.iter_child_nodes(node)]
        numbers = [
            str(ast.literal_eval(each.args[0]))
            for each in parts
            if isinstance(each, ast.Call) and called_name(each) == EXPECTED
        ]
        if numbers:
            asked = cases.union(_constants_of(node), *map(_constants_of, _behind(node, made)))
            yield from ((number, asked) for number in numbers)


def _made_of(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name or attribute that a statement sets, with the expression that it is made of."""
    targets: Sequence[ast.expr | None] = ()
    value = None
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        targets, value = [node.target], node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        targets, value = [node.target], node.iter
    elif isinstance(node, ast.withitem):
        targets, value = [node.optional_vars], node.context_expr
    for target in targets:
        for each in ast.walk(target) if target is not None else ():
            if (
                value is not None
                and isinstance(each, ast.Name | ast.Attribute)
                and isinstance(each.ctx, ast.Store)
            ):
                yield _name_of(each), value


def _name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _behind(node: ast.AST, made: Mapping[str, Sequence[ast.expr]]) -> list[ast.expr]:
    """Return the expressions that the names within a node are made of, and the names within these."""
    found: dict[str, Sequence[ast.expr]] = {}
    waiting = [node]
    while waiting:
        for each in ast.walk(waiting.pop()):
            if isinstance(each, ast.Name | ast.Attribute) and _name_of(each) not in found:
                found[_name_of(each)] = made.get(_name_of(each), ())
                waiting += found[_name_of(each)]
    return [each for values in found.values() for each in values]


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
        self._sources = [*sources]
        self._texts: set[str] = set()
        self._words: set[str] = set()
        """Words of names, also some that follow each other."""
        self._letters: set[str] = set()
        self._longer: dict[str, tuple[str, ...]] = {}
        """Texts that stand elsewhere than what is asked, in small letters, by the number of a placeholder."""
        for blank in self._sources:
            self._words.update(*map(_words_of, blank.names))
            self._letters |= blank.letters
            self._texts |= _loose(map(plain_text, _values(blank.inputs | blank.shared)))
        for text in made:
            self._texts |= _loose([text, *_texts_in(text), *_NUMBER.findall(text)])

    def let_guess(self, values: Mapping[str, Sequence[str]]) -> bool:
        """Return whether half of the values by number, but those that a guess gives, are held."""
        numbers = {
            (number, text)
            for number, texts in values.items()
            for text in (each.partition(REFUSED)[0] for each in texts)
            if not _GUESSED.fullmatch(text) and not number.startswith(_WEAK) and not _is_wide(number, text)
        }
        return 2 * sum(self.has(text, number) for number, text in numbers) >= len(numbers)

    def has(self, text: str, number: str = "") -> bool:
        """Return whether a recorded value is held, or each text in it.

        It may be held by a longer text too, but not by what the placeholder of this `number` asks.
        """
        [loose] = _loose([text])
        if loose in self._texts or ("," in loose and any(loose.strip("()") in each for each in self._texts)):
            return True
        if number not in self._longer:
            self._longer[number] = tuple(self._texts_beside(number))
        longer = self._longer[number]
        if _is_within(text, longer):
            return True
        numbers = [each for each in _NUMBER.findall(text) if len(each) > 1]
        texts = _texts_in(text)
        parts = [*texts, *numbers] if text.startswith(OBJECT) else texts or numbers
        return all(self._has_part(part, longer) for part in parts or [text])

    def _texts_beside(self, number: str) -> Iterator[str]:
        """Yield the texts that do not belong to what a placeholder asks."""
        for blank in self._sources:
            held = blank.shared | (blank.inputs - blank.asked.get(number, frozenset()))
            yield from (each.lower() for each in _values(held) if isinstance(each, str))

    def _has_part(self, part: str, longer: Sequence[str]) -> bool:
        """Return whether a text within a value, or a value without texts, is held."""
        if _loose([part]) <= self._texts or _is_within(part, longer):
            return True
        sought = part
        with suppress(ValueError, SyntaxError):
            sought = str(ast.literal_eval(part))
        if "".join(each for each in sought.lower() if each.isalnum()) in self._words:
            return True
        if sought and {*sought} <= self._letters:  # as of a table of grades
            return True
        is_number = _NUMBER.fullmatch(part) is not None
        return not is_number and any(_squeezed(sought) in _squeezed(each) for each in longer)


def _is_wide(number: str, text: str) -> bool:
    """Return whether a place allows a difference of a quarter of the number that it expects."""
    if not number.startswith("near:"):
        return False
    _, relative, absolute = number.partition(" ")[0].split(":")
    try:
        size = abs(Fraction(text))
        return max(Fraction(relative) * size, Fraction(absolute)) * 4 >= size
    except ValueError:  # no number, or a difference that allows nothing
        return False


def _texts_in(value: str) -> list[str]:
    """Return the texts of more than one character within a recorded value."""
    return [each for each in _TEXT.findall(value) if len(each) > 3]


def _is_within(value: str, longer: Iterable[str]) -> bool:
    """Return whether a recorded value is within one of some texts, also as a number or a date."""
    if _NUMBER.fullmatch(value):
        return any(value == plain_text(float(each)) for text in longer for each in _DECIMAL.findall(text))
    sought = _joined(value)
    return len(sought) >= _LEAST_JOINED and any(sought in _joined(each) for each in longer)


def _joined(text: str) -> str:
    """Return the letters and digits of a text, without zeros at the begin of numbers."""
    return "".join(each.lower().lstrip("0") for each in _PIECE.findall(_DATE.sub(" ", text)))


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
