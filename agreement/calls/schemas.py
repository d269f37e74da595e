"""Check the arguments of a call against its tool's schema.

JSON Schema (draft 2020-12) by jsonschema, with leniency that harnesses show too: null counts as absent,
numbers and booleans may be written as text, unknown types accept anything, `oneOf` is `anyOf`, and patterns,
which are written for other regex engines, are not checked.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from tracemill.agreement.calls.arguments import coerce_argument

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
_PLAIN = frozenset({"type", "description", "default", "title", "enum", "examples", "optional", "required"})
"""Keywords of a property that `_fits` checks itself, or that do not constrain its value."""
_REASONS = {"additionalProperties": "argument not allowed", "required": "required argument missing"}
_REASONS |= dict.fromkeys(("type", "enum", "const", "anyOf", "oneOf", "allOf"), "argument of a wrong type")


def why_schema_misfit(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Return why arguments do not fit a schema, as a short fixed phrase; None where they do.

    Return None for a schema that cannot be read.
    """
    required = parameters.get("required")
    if isinstance(required, list | tuple) and any(name not in arguments for name in required):
        return "required argument missing"
    given = parameters.get("properties")
    properties: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if not all(_fits(value, properties.get(name)) for name, value in arguments.items()):
        return "argument of a wrong type"
    validator = _validator_of(_Schema(parameters))
    return None if validator is None else _first_fault(validator, arguments, properties)


def _first_fault(
    validator: "Validator", arguments: Mapping[str, Any], properties: Mapping[str, Any]
) -> str | None:
    coerced = {
        name: coerce_argument(value, properties[name]) if isinstance(properties.get(name), Mapping) else value
        for name, value in arguments.items()
    }
    try:
        fault = next(validator.iter_errors(_without_nulls(coerced)), None)
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
def _validator_of(schema: _Schema) -> "Validator | None":
    """Return the validator for what `_fits` does not check; None where nothing is left."""
    content = schema.content
    properties = content.get("properties")
    parts = list(properties.values()) if isinstance(properties, Mapping) else []
    plain = all(isinstance(part, Mapping) and part.keys() <= _PLAIN for part in parts)
    if plain and content.keys() <= _PLAIN | {"properties", "$schema", "strict"}:
        return None
    from referencing import Registry

    return _lenient()(content, registry=Registry())


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


def _fits(value: Any, schema: Any) -> bool:
    if not isinstance(schema, Mapping) or value is None:
        return True
    options = schema.get("enum")
    if options and isinstance(value, str) and value not in options:
        return False
    return _is_any(value, schema.get("type"))


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
