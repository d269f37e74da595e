"""Record what tests compare; standard library alone, since tasks carry a copy of this file.

Blank tests hold `__expected__(k)` in place of an expected value, which agrees to everything and records it,
so that the process holds no answer: what it compared is judged outside. Code in the process may write records
of its own, but it has to know what is right. `__raised__` stands for an expected exception and records that
there was one, which a guess gives. `__held__` stands in copies that only the original runs with.
"""

import builtins
import hashlib
import math
import sys
from collections import UserList, UserString
from collections.abc import Mapping, Set
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

EXPECTED, RAISED, HELD, MADE = "__expected__", "__raised__", "__held__", "made"
UNKNOWN = "?"
"""Text of an attribute of an unknown type, or of an object within itself."""
OBJECT = "<"
"""Begin of the text of an object, of a class that is not built in; no other text has it outside of quotes."""
_LONGEST, _LONGEST_ASKED = 4_000, 100_000
"""Characters of a recorded text, also where a test asks less than equality; a longer one is a digest."""


class ValueRecorder:
    """Texts of the values compared with each placeholder, in order, by test; "" for unknown types."""

    def __init__(self) -> None:
        """Start without a test; what is compared outside of tests is not recorded."""
        self.values: dict[str, dict[str, list[str]]] = {}
        self.test = ""

    def install(self) -> None:
        """Make the placeholders built-in names."""
        setattr(builtins, EXPECTED, self.expected)
        setattr(builtins, HELD, self.held)
        setattr(builtins, RAISED, AnyException("Expected", (Exception,), {"recorder": self}))

    def expected(self, number: int | str) -> "ExpectedValue":
        """Return a placeholder of a value; before a number may stand what is asked, as in `startswith 1`."""
        return ExpectedValue(self, str(number))

    def held(self, value: object) -> object:
        """Record a value that a test makes of constants, and return it."""
        found = self.values.setdefault(self.test, {}).setdefault(HELD, [])
        if (text := plain_text(value)) not in found:
            found.append(text)
        return value

    def record(self, number: str, text: str) -> None:
        """Record a value, but the one recorded last again only where a test asks less than equality."""
        if self.test:
            found = self.values.setdefault(self.test, {}).setdefault(number, [])
            if found[-1:] != [text] or " " in number:
                found.append(text)


class ExpectedValue:
    """Equal to everything; records what it is compared with."""

    def __init__(self, recorder: ValueRecorder, number: str) -> None:
        """Name the recorder and the number of the place in the file."""
        self._recorder, self._number = recorder, number

    def __eq__(self, other: object) -> bool:
        """Record the other value."""
        longest = _LONGEST_ASKED if " " in self._number else _LONGEST
        is_made = self._number.startswith(f"{MADE} ")
        self._recorder.record(self._number, made_text(other) if is_made else plain_text(other, longest))
        return True

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class AnyException(type):
    """Class of a class that every exception belongs to, and that records that it was asked for one."""

    recorder: ValueRecorder

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Return True."""
        cls.recorder.record(RAISED, plain_text(True))
        return True

    def __instancecheck__(cls, instance: object) -> bool:
        """Return True."""
        cls.recorder.record(RAISED, plain_text(True))
        return True


def plain_text(value: object, longest: int = _LONGEST) -> str:
    """Return a text that values have in common if and only if they are equal; "" for unknown types.

    It is that of the built-in type that a value is of, or derives from, else of its class and attributes,
    whatever its methods say. A long one is a digest; with objects, whose attributes are compared one by one,
    it is unknown.
    """
    try:
        text = _text(value)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return ""
    if len(text) <= (_LONGEST_ASKED if OBJECT in text else longest):
        return text
    if OBJECT in text:
        return ""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, UserString | UserList):
        value = value.data
    if isinstance(value, str):
        return repr(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return repr(bytes(value))
    if isinstance(value, complex):
        return _text(value.real) if value.imag == 0 else f"{_text(value.real)} + {_text(value.imag)}j"
    if isinstance(value, int | float | Decimal | Fraction):
        return str(Fraction(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, datetime):
        is_aware = value.utcoffset() is not None
        value = datetime.astimezone(value, timezone.utc) if is_aware else value  # noqa: UP017 # Python 3.10
        return f"datetime {datetime.isoformat(value)}"
    if isinstance(value, date):
        return f"date {date.isoformat(value)}"
    if isinstance(value, time):
        offset = value.utcoffset()
        if offset is None:
            return f"time {time.isoformat(value)}"
        since = timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)
        return f"time {_text(since - offset)}"
    if isinstance(value, PurePath):
        return f"path {PurePath.__str__(value)!r}"
    if isinstance(value, timedelta):
        return f"timedelta {value.days} {value.seconds} {value.microseconds}"
    if isinstance(value, Mapping):
        items = dict.items(value) if isinstance(value, dict) else value.items()
        return f"{{{', '.join(sorted(f'{_text(key)}: {_text(each)}' for key, each in items))}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return _object_text(value)


def made_text(value: object) -> str:
    """Return what `plain_text` gives, with the attributes of a derived text or number."""
    text = plain_text(value)
    if text.startswith(OBJECT) or not _attributes_of(value):
        return text
    with suppress(TypeError, ValueError, ArithmeticError, RecursionError):
        return _object_text(value, {"__content__": text})
    return text


def _object_text(value: object, more: Mapping[str, str] | None = None) -> str:
    """Return the classes and the attributes of an object; TypeError for one that has none, or is no value.

    The classes are those of one package that it derives from, the nearest first: an object of a derived class
    may be equal.
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package in sys.stdlib_module_names or isinstance(
        value, type | BaseException | FunctionType | ModuleType
    ):
        raise TypeError(kind.__name__)
    attributes = _attributes_of(value)
    if not attributes or id(value) in _BEGUN:
        raise TypeError(kind.__name__)
    bases = type.__dict__["__mro__"].__get__(kind)
    names = [each.__name__ for each in bases if each.__module__.partition(".")[0] == package]
    _BEGUN.add(id(value))
    try:
        texts = {name: _attribute_text(each) for name, each in attributes.items()} | dict(more or {})
    finally:
        _BEGUN.discard(id(value))
    inside = "".join(f"{name}={text};" for name, text in sorted(texts.items()))
    return f"{OBJECT}{'|'.join(names)} {inside}>"


_BEGUN: set[int] = set()
"""Identities of the objects whose attributes are being read."""


def _attribute_text(value: object) -> str:
    try:
        return _text(value)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return UNKNOWN


def _attributes_of(value: object) -> dict[str, Any]:
    """Return the attributes that an object holds, whatever its methods say; an enum's name alone."""
    attributes: dict[str, Any] = {}
    for owner in type.__dict__["__mro__"].__get__(type(value)):
        for name, found in type.__getattribute__(owner, "__dict__").items():
            if type(found) is MemberDescriptorType:
                with suppress(AttributeError):
                    attributes[name] = found.__get__(value)
            elif name == "__dict__" and type(found) is GetSetDescriptorType:
                attributes |= found.__get__(value)
    if isinstance(value, Enum):
        name = attributes.get("_name_")
        return {"_name_": name} if name else {"_value_": attributes.get("_value_")}
    return {name: each for name, each in attributes.items() if not name.startswith("__")}
