"""Check the arguments of a call against its tool's schema.

JSON Schema (draft 2020-12) by jsonschema, with leniency that harnesses show too: null counts as absent,
numbers and booleans may be written as text, unknown types accept anything, `oneOf` is `anyOf`, and patterns,
which are written for other regex engines, are not checked.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_REASONS = {"additionalProperties": "argument not allowed", "required": "required argument missing"}
_REASONS |= dict.fromkeys(("type", "enum", "const", "anyOf", "oneOf", "allOf"), "argument of a wrong type")


def why_schema_misfit(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Return why arguments do not fit a schema, as a short fixed phrase; None if they do.

    Return None for a schema that cannot be read.
    """
    try:
        fault = next(_validator_of(_Schema(parameters)).iter_errors(_without_nulls(arguments)), None)
    except Exception:  # a broken schema is no fault of the call
        return None
    return None if fault is None else _REASONS.get(str(fault.validator), "argument out of bounds")


class _Schema:
    """A schema hashed by identity: comparing contents per call would cost more than the check."""

    __slots__ = ("content",)

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def __hash__(self) -> int:
        return id(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and self.content is other.content


@lru_cache(maxsize=512)
def _validator_of(schema: _Schema) -> "Validator":
    from referencing import Registry

    return _lenient()(schema.content, registry=Registry())


@cache
def _lenient() -> Any:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    known: Mapping[str, Any] = Draft202012Validator.VALIDATORS

    def of_type(_: Any, kinds: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        if not _is_any(value, kinds):
            yield ValidationError("of another type")

    def unless_boolean(keyword: str) -> Any:
        def check(validator: Any, bound: Any, value: Any, schema: Any) -> Any:
            return () if isinstance(bound, bool) else known[keyword](validator, bound, value, schema)

        return check

    def skip(*_: Any) -> tuple[()]:
        return ()

    changed = {name: unless_boolean(name) for name in ("exclusiveMinimum", "exclusiveMaximum")}
    changed |= {
        "type": of_type,
        "oneOf": known["anyOf"],
        "pattern": skip,
        "patternProperties": skip,
    }
    return extend(Draft202012Validator, changed)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _is_any(value: Any, kinds: Any) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(names, list | tuple) or not names:
        return True
    return any(_is_a(value, name) for name in names)


def _is_a(value: Any, kind: Any) -> bool:
    wanted = _TYPES.get(kind) if isinstance(kind, str) else None
    if wanted is None:
        return True
    if isinstance(value, str) and kind in ("integer", "number"):
        return re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", value) is not None
    if isinstance(value, str) and kind == "boolean":
        return value.strip().lower() in ("true", "false")
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and kind == "integer":
        return value.is_integer()
    return isinstance(value, wanted)
