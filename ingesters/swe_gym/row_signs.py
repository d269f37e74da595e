"""Tell what a row holds by its columns. Imported by every run, so it imports nothing large."""

from collections.abc import Mapping
from typing import Any

LISTS = ("messages", "trajectory", "conversations")
"""Columns that hold a run, the first that a row has."""


def is_turn(item: Any) -> bool:
    """Return whether a value is a turn of ShareGPT."""
    return isinstance(item, dict) and isinstance(item.get("from"), str) and "value" in item


def is_response_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a request and its response: `input` and the items of `output`."""
    output = row.get("output")
    return (
        isinstance(row.get("input"), str | list)
        and isinstance(output, list)
        and bool(output)
        and all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in output)
    )
