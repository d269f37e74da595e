"""Arguments held to the schema of their tool."""

from typing import Any

import pytest

from tracemill.agreement.calls.schemas import why_schema_misfit

NOT_ALLOWED, TYPE, BOUNDS, MISSING = (
    "argument not allowed",
    "argument of a wrong type",
    "argument out of bounds",
    "required argument missing",
)
EDIT = {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        ({**of(a={"type": "string"}), "additionalProperties": False}, {"a": "x"}, None),
        ({**of(a={"type": "string"}), "additionalProperties": False}, {"a": "x", "b": 1}, NOT_ALLOWED),
        ({**of(a={"type": "string"}), "additionalProperties": False}, {"a": "x", "b": None}, None),
        (of(a={"type": "string"}), {"a": "x", "b": 1}, None),
        ({**of(a={"type": "string"}), "required": ["a"]}, {}, MISSING),
        (of(n={"type": "integer", "minimum": 1}), {"n": -5}, BOUNDS),
        (of(n={"type": "integer", "minimum": 1}), {"n": "-5"}, None),
        (of(n={"type": "integer", "minimum": 1}), {"n": "5"}, None),
        (of(n={"type": "number", "maximum": 2.5}), {"n": 2.6}, BOUNDS),
        (of(n={"type": "number", "minimum": 0, "exclusiveMinimum": True}), {"n": 1}, None),
        (of(n={"type": "number", "exclusiveMinimum": 1}), {"n": 1}, BOUNDS),
        (of(n={"type": "integer", "enum": [1, 2], "minimum": 0}), {"n": 3}, TYPE),
        (of(s={"type": "string", "minLength": 1}), {"s": ""}, BOUNDS),
        (of(s={"type": "string", "pattern": "^[a-z]+$"}), {"s": "A"}, None),
        (of(s={"enum": ["a", "b"]}), {"s": "c"}, TYPE),
        (of(l={"type": "array", "items": {"type": "integer"}, "maxItems": 2}), {"l": [1, 2, 3]}, BOUNDS),
        (of(l={"type": "array", "items": {"type": "integer"}}), {"l": ["a"]}, TYPE),
        (of(l={"type": "array", "items": {"type": "integer"}}), {"l": ["4"]}, None),
        (of(edits={"type": "array", "items": EDIT}), {"edits": [{"old": "x"}]}, None),
        (of(edits={"type": "array", "items": EDIT}), {"edits": [{"new": "x"}]}, MISSING),
        (of(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}), {"a": "3"}, None),
        (of(a={"anyOf": [{"type": "string"}, {"type": "null"}]}), {"a": [1]}, TYPE),
        ({**of(a={"$ref": "#/$defs/s"}), "$defs": {"s": {"type": "string"}}}, {"a": [1]}, TYPE),
    ],
)
def test_what_a_schema_takes(schema: dict[str, Any], arguments: dict[str, Any], expected: str | None) -> None:
    assert why_schema_misfit(arguments, schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        of(a={"type": "dict", "properties": {}}),
        of(a={"type": ["text", "integer"], "minimum": "low"}),
        of(a={"$ref": "https://example.invalid/schema.json"}),
        of(a={"$ref": "#/$defs/none"}),
        of(a={"items": [{"type": "string"}], "enum": None}),
        {"properties": [], "required": True, "additionalProperties": {"type": 5}},
        {**of(a={"minimum": []}), "required": "a"},
    ],
)
def test_a_schema_that_is_none_refuses_nothing(schema: dict[str, Any]) -> None:
    """And nothing is fetched for it."""
    assert why_schema_misfit({"a": "x", "b": 3}, schema) is None
