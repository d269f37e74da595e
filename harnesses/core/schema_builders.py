"""Load stand-in tool schemas, and clean recorded schemas so that providers accept them."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracemill.records.message import ToolSpec

EMPTY_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
_STAND_INS = Path(__file__).parent.parent / "agents" / "tools"
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 64


def load_stand_in_tools(harness: str) -> dict[str, ToolSpec]:
    """Return the stand-in tools of a harness by name, in original wording, from `harnesses/agents/tools/`."""
    tools = json.loads((_STAND_INS / f"{harness}.json").read_text(encoding="utf-8"))
    return {tool["name"]: ToolSpec(**tool, origin="stand_in") for tool in tools}


@lru_cache(maxsize=512)
def clean_schema_name(name: str) -> str:
    """Return a name that providers accept: 1 to 64 letters, digits, `_` and `-`."""
    return _BAD_NAME.sub("_", name)[:_NAME_LENGTH] or "unnamed"


def clean_tool_schema(tool: ToolSpec) -> ToolSpec:
    """Return the tool with a name and schema that providers accept.

    Recorded schemas hold nulls where their writer had columns (`"enum": null`, `"parameters": null`); these
    are left out. A default of null beside no other null is a real default.
    """
    parameters = _without_nulls(dict(tool.parameters)) if tool.parameters else {}
    parameters = {**EMPTY_PARAMETERS, **parameters}
    return replace(tool, name=clean_schema_name(tool.name), parameters=parameters)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        nulls = [key for key, item in value.items() if item is None]
        is_default = nulls == ["default"]
        return {key: _without_nulls(item) for key, item in value.items() if item is not None or is_default}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value
