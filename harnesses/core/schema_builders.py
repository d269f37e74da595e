"""Small makers of tool schemas, and the clean-up that makes a recorded schema valid to send."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tracemill.records.message import ToolSpec

EMPTY_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 64


def build_text_schema(
    description: str, *, options: Iterable[str] = (), default: str | None = None
) -> dict[str, Any]:
    """Schema of a string property; `options` are its only values."""
    schema: dict[str, Any] = {"type": "string", "description": description}
    if options:
        schema["enum"] = list(options)
    if default is not None:
        schema["default"] = default
    return schema


def build_integer_schema(description: str) -> dict[str, Any]:
    """Schema of a whole-number property."""
    return {"type": "integer", "description": description}


def build_flag_schema(description: str, default: bool = False) -> dict[str, Any]:
    """Schema of a true-or-false property."""
    return {"type": "boolean", "description": description, "default": default}


def build_list_schema(description: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Schema of a list property."""
    return {"type": "array", "description": description, "items": dict(item)}


def build_object_schema(properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """Schema of an object with these properties."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    names = list(required)
    if names:
        schema["required"] = names
    return schema


def build_tool_schema(
    name: str, description: str, properties: Mapping[str, Any], required: Iterable[str] = ()
) -> ToolSpec:
    """A tool described by us, in the place of a description that was not recorded."""
    return ToolSpec(name, description, build_object_schema(properties, required), "stand_in")


def tool_schemas_by_name(*tools: ToolSpec) -> dict[str, ToolSpec]:
    """Tools keyed by their name."""
    return {tool.name: tool for tool in tools}


@lru_cache(maxsize=512)
def clean_schema_name(name: str) -> str:
    """The name as providers accept it: letters, digits, `_` and `-`, at most 64, never empty."""
    return _BAD_NAME.sub("_", name)[:_NAME_LENGTH] or "unnamed"


def clean_tool_schema(tool: ToolSpec) -> ToolSpec:
    """The tool with a name and schema a provider accepts.

    Recorded schemas hold nulls where their writer had columns (`"enum": null`, `"parameters": null`);
    those mean nothing and are left out. A default of null beside no other null is a default.
    """
    parameters = _without_nulls(dict(tool.parameters)) if tool.parameters else {}
    parameters = {**EMPTY_PARAMETERS, **parameters}
    return replace(tool, name=clean_schema_name(tool.name), parameters=parameters)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        nulls = [key for key, item in value.items() if item is None]
        meant = nulls == ["default"]
        return {key: _without_nulls(item) for key, item in value.items() if item is not None or meant}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value
