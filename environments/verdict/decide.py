"""Decide what runs of the tests come to; standard library alone, since tasks carry a copy of this file."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence, Set
from fractions import Fraction
from typing import Any, Protocol

Values = Mapping[str, Mapping[str, Sequence[str]]]
"""Texts of the values that each blank test compares, in order, by number of the place.

Before the number may stand what is asked of a value, and a space: `near:R:A`, which allows a relative or an
absolute difference, one of `QUESTIONS`, or `made` for equality with what the repository makes.
"""
MADE, RAISED = "made", "__raised__"
REFUSED = "\n"
"""Between texts of what a question asks for, and of what it must not be an answer to besides."""
_SEVERAL = 3
_LONGEST_MATCHED = 2_000
QUESTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "in": lambda found, part: part in found,
    "not in": lambda found, part: part not in found,
    "startswith": lambda found, part: found.startswith(part),
    "endswith": lambda found, part: found.endswith(part),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "match": lambda found, pattern: re.search(pattern, found[:_LONGEST_MATCHED]) is not None,
}
"""What may be asked of a text or a number."""
_PART = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(-?\d{1,400}(?:/\d{1,400})?)""")
"""A text or a number within a recorded value."""
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|<[\w|]+ ?|\w+=|;|>|[^'"<>;=\w]+|\w+""")
"""A part of a recorded value with objects: `<Class|Base a=1;b=2;>`."""
_BRACKETS = str.maketrans("[]", "()")


class WrongTests(Protocol):
    """The tests that a run executed with deliberately wrong expectations, to detect forged results."""

    def is_wrong(self, test: str) -> bool:
        """Return whether the run used the wrong version of a test."""
        ...


def decide(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    unguessed: Sequence[str],
    mixed: Sequence[tuple[Mapping[str, str], WrongTests]],
    right_values: Mapping[str, bool | None],
    witnesses: Sequence[str] = (),
) -> tuple[float, list[str], list[str], list[str]]:
    """Return the reward, and the tests that passed, that broke, and that were forged.

    In each run some tests are replaced by a wrong version, whose expectations are deliberately false.
    `mixed` holds the outcomes of each run with its replaced tests. The reward is the share of `fail_to_pass`
    that pass in every run with their right version. `right_values` says of each blank test whether it
    compared the right values where it did not know them; None, if it compared objects instead, does not
    count as passed. The reward is never more than the share of `unguessed` with right values, the blank tests
    which expect more than a guess gives, nor more than the share of `fail_to_pass` and `witnesses` that pass:
    tests without a blank copy, which failed without the feature too.

    The reward is 0 if a test of `pass_to_pass` fails in the first run with its
    right version or has other values, or if a test is forged: its canary passes, a wrong version that fails
    on the original code, or it passes with wrong values. A canary that passes on wrong values, as its test
    never does, happens to expect them.
    """

    def right(test: str) -> list[bool]:
        return [outcomes.get(test) == "passed" for outcomes, mix in mixed if not mix.is_wrong(test)]

    unknown = {test for test, is_right in right_values.items() if is_right is None}
    passed = [test for test in fail_to_pass if right(test) and all(right(test)) and test not in unknown]
    broken = [
        test
        for test in pass_to_pass
        if mixed and (not right_values.get(test, True) or not any(right(test)[:1]))
    ]
    forged = [
        test
        for test in canaries
        if any(mix.is_wrong(test) and outcomes.get(test) == "passed" for outcomes, mix in mixed)
        and (right_values.get(test) is not False or any(right(test)))
    ]
    forged += [test for test in passed if right_values.get(test) is False and test not in forged]
    if broken or forged:
        return 0.0, passed, broken, forged
    known = [right_values[test] for test in unguessed]
    seen = len(passed) + len(witnesses) - len(failed_witnesses(witnesses, mixed))
    shares = [
        len(passed) / len(fail_to_pass),
        seen / (len(fail_to_pass) + len(witnesses)),
        sum(map(bool, known)) / len(known) if known else 1.0,
    ]
    return min(shares), passed, broken, forged


def failed_witnesses(
    witnesses: Sequence[str], mixed: Sequence[tuple[Mapping[str, str], WrongTests]]
) -> list[str]:
    """Return the witnesses that did not pass in every run with their right version, or were in none."""
    return [
        test
        for test in witnesses
        if {outcomes.get(test) for outcomes, mix in mixed if not mix.is_wrong(test)} != {"passed"}
    ]


def is_unsolved(
    unguessed: Sequence[str], blank: Mapping[str, str], right_values: Mapping[str, bool | None]
) -> bool:
    """Return whether no test that bounds the reward passed in its blank copy, by the outcomes of their run.

    The reward is 0 then, and nothing was forged: a blank test passes with any value.
    """
    return not any(right_values.get(test) or blank.get(test) == "passed" for test in unguessed)


def recorded_values(values: Mapping[str, Sequence[str]], outcome: str | None) -> Mapping[str, Sequence[str]]:
    """Return what a blank test recorded; that an exception was raised counts if none was missing."""
    return values if outcome == "passed" else {key: texts for key, texts in values.items() if key != RAISED}


def compare_values(expected: Values, recorded: Values) -> dict[str, bool | None]:
    """Return of each blank test whether it compared the values that it expects.

    None stands for objects whose value is unknown, in place of an expected one; they may be equal to it. It
    stands for texts too that answer what other tests ask besides. Of the classes of an object those count
    that some test expects: a candidate may derive others, and give them other bases.
    """
    texts = (text for numbered in expected.values() for each in numbered.values() for text in each)
    known = {name for text in texts for token in _TOKEN.findall(text) for name in _classes_of(token)}

    def shown(found: Sequence[str]) -> list[str]:
        return [_TOKEN.sub(lambda token: _of_classes(token[0], known), text) for text in found]

    return {
        test: _has_values(numbered, {key: shown(found) for key, found in recorded.get(test, {}).items()})
        for test, numbered in expected.items()
    }


def _classes_of(token: str) -> list[str]:
    """Return the names of the classes that the begin of an object has; none of another token."""
    return token[1:].strip().split("|") if token.startswith("<") else []


def _of_classes(token: str, known: Set[str]) -> str:
    """Return a token, which has the known classes alone if it begins an object."""
    names = [name for name in _classes_of(token) if name in known]
    return f"<{'|'.join(names)} " if names else token


def _has_values(expected: Mapping[str, Sequence[str]], recorded: Mapping[str, Sequence[str]]) -> bool | None:
    is_unknown = False
    for number, texts in expected.items():
        found, asked = recorded.get(number, ()), number.rpartition(" ")[0]
        if "" in found:
            is_unknown = True
        elif not _agree(asked, found, texts):
            own = [text.partition(REFUSED)[0] for text in texts]
            if asked != MADE and not holds_objects({"": (*found, *texts)}) and not _agree(asked, found, own):
                return False
            is_unknown = True  # objects may be equal that differ in some attribute; a text may say more
    return None if is_unknown else True


def holds_objects(values: Mapping[str, Sequence[str]]) -> bool:
    """Return whether there are objects in recorded values, of classes that are not built in."""
    return any("<" in _PART.sub("", text) for texts in values.values() for text in texts)


def holds_unknown(values: Mapping[str, Sequence[str]]) -> bool:
    """Return whether objects in recorded values have attributes whose value is not known."""
    texts = (_PART.sub("", text) for found in values.values() for text in found)
    return any("<" in text and "?" in text for text in texts)


def _agree(asked: str, found: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether values are what is asked of them; with equality alone, by their texts."""
    return len(found) == len(texts) and all(
        one == other or _has_attributes(one, other) or (asked == MADE and _content_of(one) == other)
        if asked in ("", MADE)
        else answers(asked, one, other)
        for one, other in zip(found, texts, strict=True)
    )


def _has_attributes(found: str, text: str) -> bool:
    """Return whether a recorded value is another one, but for more attributes, which are in order."""
    ours, theirs = _TOKEN.findall(found), _TOKEN.findall(text)
    place = 0
    for token in theirs:
        while place < len(ours) and ours[place] != token and ours[place].endswith("="):
            place = _behind(ours, place)
        if place == len(ours) or ours[place] != token:
            return False
        place += 1
    return place == len(ours)


def _content_of(found: str) -> str:
    """Return the text of the list, text or number that an object derives from; empty for other objects."""
    tokens = _TOKEN.findall(found)
    return "".join(tokens[2 : _behind(tokens, 2) - 1]) if tokens[1:2] == ["__content__="] else ""


def _behind(tokens: Sequence[str], place: int) -> int:
    """Return the place behind an attribute and its value."""
    depth = 0
    while place < len(tokens) and (depth or tokens[place] != ";"):
        depth += tokens[place].startswith("<") - (tokens[place] == ">")
        place += 1
    return place + 1


def answers(asked: str, found: str, text: str) -> bool:
    """Return whether a recorded value is what is asked of it with another one.

    Behind the other one may stand those that the original's value is no answer to, after `REFUSED`: a text
    that holds what all tests ask for is no answer. Of several, one may be met by chance.
    """
    if asked.startswith("near:"):
        _, relative, absolute = asked.split(":")
        return found == text or _are_close(found, text, float(relative), float(absolute))
    wanted, *others = text.split(REFUSED)
    also = sum(is_answer(asked, found, each) for each in others)
    return is_answer(asked, found, wanted) and also <= (len(others) >= _SEVERAL)


def is_answer(asked: str, found: str, text: str) -> bool:
    """Return whether a recorded value answers a question with a literal, one of `QUESTIONS`."""
    try:
        return QUESTIONS[asked](_value_of(found), _value_of(text))
    except (ValueError, TypeError, SyntaxError, AttributeError, ArithmeticError, re.error):
        return False


def _value_of(text: str) -> Any:
    """Return the text, the bytes or the number that a recorded text stands for; ValueError for others."""
    is_text = _PART.fullmatch(text.removeprefix("b")) is not None and text[-1] in "'\""
    return ast.literal_eval(text) if is_text else Fraction(text)


def _are_close(one: str, other: str, relative: float, absolute: float) -> bool:
    """Return whether texts of numbers, or of containers of them, differ in nearly equal numbers alone.

    A tuple may stand for a list, as for `approx`.
    """
    found, wanted = _PART.split(one), _PART.split(other)
    return len(found) == len(wanted) and all(
        _is_near(this, that, relative, absolute)
        if place % 3 == 2 and this and that
        else this == that or (place % 3 == 0 and this.translate(_BRACKETS) == that.translate(_BRACKETS))
        for place, (this, that) in enumerate(zip(found, wanted, strict=True))
    )


def _is_near(one: str, other: str, relative: float, absolute: float) -> bool:
    try:
        expected = Fraction(other)
        return abs(Fraction(one) - expected) <= max(Fraction(relative) * abs(expected), Fraction(absolute))
    except (ArithmeticError, ValueError):
        return False


def is_lost(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    unguessed: Sequence[str],
    mixed: Sequence[tuple[Mapping[str, str], WrongTests]],
    right_values: Mapping[str, bool | None],
    witnesses: Sequence[str] = (),
) -> bool:
    """Return whether the reward is 0 whatever the remaining runs of mixed tests give.

    Runs come in pairs, and each test has its right version in one run of a pair and its wrong one in the
    other. A test that broke, was forged or did not pass in one pair counts as such in the end too, so that
    a reward of 0 after a pair is final.
    """
    if len(mixed) % 2:
        return False
    counts = fail_to_pass, pass_to_pass, canaries, unguessed
    return decide(*counts, mixed, right_values, witnesses)[0] == 0.0
