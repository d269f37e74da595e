"""Tell what a row holds by its columns. Imported by every run, so it imports nothing large."""

from collections.abc import Mapping
from typing import Any

LISTS = ("messages", "trajectory", "conversations")
"""Columns that hold a run, the first that a row has."""


def is_turn(item: Any) -> bool:
    """Return whether a value is a turn of ShareGPT."""
    return isinstance(item, dict) and isinstance(item.get("from"), str) and "value" in item


def flat_response_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rollout of NeMo Gym with the keys of its request and response, any other row as it is.

    Source: https://github.com/NVIDIA-NeMo/Gym.
    """
    asked, answer = row.get("responses_create_params"), row.get("response")
    if not isinstance(asked, Mapping) or not isinstance(answer, Mapping):
        return row
    shared = {key: asked.get(key) or answer.get(key) for key in ("instructions", "tools")}
    model = {"model": answer.get("model") or asked.get("model"), "id": answer.get("id")}
    return {**row, **shared, **model, "input": asked.get("input"), "output": answer.get("output")}


def is_response_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a request and its response: `input`, and items or transitions in `output`."""
    row = flat_response_row(row)
    output = row.get("output")
    return isinstance(row.get("input"), str | list) and (_are_items(output) or holds_transitions(output))


def holds_transitions(output: Any) -> bool:
    """Return whether an output is a list of items for each transition, as agents of Aviary give it."""
    return isinstance(output, list) and bool(output) and all(map(_are_items, output))


def _are_items(output: Any) -> bool:
    return (
        isinstance(output, list)
        and bool(output)
        and all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in output)
    )
