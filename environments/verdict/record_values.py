"""Record what tests compare; standard library alone, since tasks carry a copy of this file.

Blank tests hold `__expected__(k)` in place of an expected value and `__raised__(k)` in place of an expected
exception. Both agree to everything and record it, so that the process holds no answer: what it compared is
judged outside. Code in the process may write records of its own, but it has to know what is right.
"""

import builtins
import hashlib
import math
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

EXPECTED, RAISED = "__expected__", "__raised__"
_LONGEST = 200


class ValueRecorder:
    """Values compared with each placeholder, by test.

    Each is a list of texts of which one has to be the expected text: of a value its own, of an exception the
    names of its classes.
    """

    def __init__(self) -> None:
        """Start without a test; what is compared outside of tests is not recorded."""
        self.values: dict[str, dict[str, list[list[str]]]] = {}
        self.test = ""

    def install(self) -> None:
        """Make the placeholders built-in names."""
        setattr(builtins, EXPECTED, self.expected)
        setattr(builtins, RAISED, self.raised)

    def expected(self, number: int) -> "ExpectedValue":
        """Return a placeholder of a value."""
        return ExpectedValue(self, str(number))

    def raised(self, number: int) -> type[BaseException]:
        """Return a placeholder of an exception."""
        return AnyException("Expected", (Exception,), {"recorder": self, "number": str(number)})

    def record(self, number: str, texts: list[str]) -> None:
        """Record a value, unless it is the one recorded last."""
        if self.test:
            found = self.values.setdefault(self.test, {}).setdefault(number, [])
            if found[-1:] != [texts]:
                found.append(texts)


class ExpectedValue:
    """Equal to everything; records what it is compared with. Its methods and sums are other such values."""

    def __init__(self, recorder: ValueRecorder, number: str) -> None:
        """Name the recorder and the number of the place in the file."""
        self._recorder, self._number = recorder, number

    def __eq__(self, other: object) -> bool:
        """Record the other value."""
        text = plain_text(other)
        self._recorder.record(self._number, [] if text is None else [text])
        return True

    def __getattr__(self, name: str) -> "Callable[..., ExpectedValue]":
        """Return a method of any name but a special one."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *given, **named: ExpectedValue(self._recorder, f"{self._number}.{name}")

    def __add__(self, other: object) -> "ExpectedValue":
        """Return the sum with anything."""
        return ExpectedValue(self._recorder, f"{self._number}.+")

    __radd__ = __add__

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class AnyException(type):
    """Class of a class that every exception belongs to, and which records it."""

    recorder: ValueRecorder
    number: str

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Record the names of a class of exceptions."""
        cls.recorder.record(cls.number, [each.__name__ for each in type.mro(subclass)])
        return True

    def __instancecheck__(cls, instance: object) -> bool:
        """Record the names of the class of an exception."""
        return cls.__subclasscheck__(type(instance))


def plain_text(value: object) -> str | None:
    """Return a text that values have in common if and only if they are equal; None for unknown types.

    It is that of the built-in type that a value is of, or derives from; a long one is a digest.
    """
    try:
        text = _text(value)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return None
    if len(text) <= _LONGEST:
        return text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, str):
        return repr(str.__str__(value))
    if isinstance(value, bytes | bytearray):
        return repr(bytes(value))
    if isinstance(value, int | float | Decimal | Fraction):
        return str(Fraction(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, datetime):
        is_aware = value.utcoffset() is not None
        return f"datetime {value.astimezone(timezone.utc) if is_aware else value}"  # noqa: UP017 # Python 3.10
    if isinstance(value, date | time | timedelta):
        return f"{'date' if isinstance(value, date) else type(value).__name__} {value}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{_text(key)}: {_text(each)}' for key, each in value.items()))}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    raise TypeError(type(value).__name__)
