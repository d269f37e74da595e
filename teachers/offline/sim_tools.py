"""Build calls of the offered tools with arguments that their schemas accept."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PATH = ("path", "file_path", "filename", "file", "notebook_path")
_COMMAND = ("command", "cmd", "script", "code")
_PATTERN = ("pattern", "query", "regex", "search_term", "keyword", "glob")


def first_sim_tools_string(arguments: str, keys: Sequence[str]) -> str:
    """Return the first of the keys that has a text in a JSON object; "" if none does."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return ""
    if not isinstance(value, dict):
        return ""
    return next((value[key] for key in keys if isinstance(value.get(key), str)), "")


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a request by role; a role without a tool is missing."""

    roles: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, tools: Sequence[Mapping[str, Any]]) -> "Toolbox":
        """Sort tools into roles by name and parameters; the first tool of a role wins."""
        roles: dict[str, Mapping[str, Any]] = {}
        for tool in tools:
            function = tool.get("function") or {}
            for role in _roles(str(function.get("name", "")).lower(), _properties(function)):
                roles.setdefault(role, function)
        return cls(roles)

    def call(self, role: str, **hints: str) -> tuple[str, str] | None:
        """Return name and JSON arguments of a call in a role, None if no tool has it."""
        function = self.roles.get(role)
        if function is None:
            return None
        schema = function.get("parameters") or {}
        return str(function["name"]), json.dumps(_fill(schema, hints))


def _properties(function: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = (function.get("parameters") or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _roles(name: str, properties: Mapping[str, Any]) -> list[str]:
    """Return the roles of a tool; a `command` with fixed choices is an editor, not a shell."""
    has_path = any(key in properties for key in _PATH)
    commands = [properties[key] for key in _COMMAND if key in properties]
    verbs = next((c["enum"] for c in commands if isinstance(c, dict) and "enum" in c), None)
    found: list[str] = []
    if commands and verbs is None:
        found.append("shell")
    if has_path and verbs is None and any(word in name for word in ("read", "view", "open", "cat")):
        found.append("read")
    if has_path and verbs is not None and "view" in verbs:
        found.append("read")
    if any(key in properties for key in _PATTERN) and "web" not in name:
        found.append("search")
    if any(word in name for word in ("finish", "submit", "complete")):
        found.append("finish")
    return found


def _fill(schema: Mapping[str, Any], hints: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments with every required property and the optional ones that have a hint."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = [key for key in schema.get("required") or () if isinstance(key, str)]
    wanted = list(dict.fromkeys([*required, *(key for key in properties if _hint(key, hints))]))
    return {key: _value(key, properties.get(key) or {}, hints) for key in wanted}


def _hint(key: str, hints: Mapping[str, str]) -> str:
    for role, keys in (("path", _PATH), ("command", _COMMAND), ("pattern", _PATTERN)):
        if key in keys and hints.get(role):
            return hints[role]
    return ""


def _value(key: str, schema: Mapping[str, Any], hints: Mapping[str, str]) -> Any:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return "view" if "view" in choices else choices[0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "object":
        return _fill(schema, {})
    plain: dict[Any, Any] = {"boolean": False, "array": [], "null": None}
    return plain[kind] if kind in plain else _hint(key, hints) or "n/a"
