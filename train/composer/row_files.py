"""Read the JSON Lines files of `composer`: prompts with what a reward needs, and hint rows."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.train.composer_settings import HINT_COLUMNS


def read_prompt_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of prompts. Raises TrainingError for one without a conversation."""
    rows = _read(path, ("prompt",))
    for number, row in enumerate(rows, 1):
        messages = row["prompt"]
        if not (isinstance(messages, list) and messages and all(map(_is_message, messages))):
            raise TrainingError(
                f"line {number} of {path} has no conversation as its prompt",
                "a list of messages with role and content",
            )
    return rows


def read_hint_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of hints, as `build_hint_rows` makes them."""
    return _read(path, HINT_COLUMNS)


def _read(path: Path, columns: Iterable[str]) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        missing = [name for name in columns if name not in row] if isinstance(row, dict) else None
        if missing != []:
            why = f"lacks {', '.join(missing)}" if missing else "is no JSON object"
            raise TrainingError(
                f"line {number} of {path} {why}", f"an object with {', '.join(columns)} on every line"
            )
        rows.append(row)
    if not rows:
        raise TrainingError(f"{path} has no row", "one JSON object on every line")
    return rows


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and {"role", "content"} <= message.keys()
