"""Read the JSON Lines files of `composer`: prompts with what a reward needs, states, hint rows."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.train.composer_settings import HINT_COLUMNS
from tracemill.train.consensus.state_rows import STATE_COLUMNS, AnsweredState


def read_prompt_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of prompts. Raises TrainingError for one without a conversation."""
    rows = _read(path, ("prompt",))
    for number, row in enumerate(rows, 1):
        _check_prompt(row, number, path)
    return rows


def read_state_rows(path: Path, consensus: str) -> list[dict[str, Any]]:
    """Return the rows of a file of states, as `build_consensus_rows` makes them.

    Raises TrainingError for one that cannot be read, and if none has the data that this shape of
    `consensus` needs.
    """
    rows = _read(path, STATE_COLUMNS)
    for number, row in enumerate(rows, 1):
        _check_prompt(row, number, path)
        try:
            AnsweredState.of_row(row)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise TrainingError(
                f"line {number} of {path} is no state ({type(error).__name__}: {error})",
                "a row of build_consensus_rows",
            ) from error
    column = "scored" if consensus == "score_regression" else "answers"
    if not any(row.get(column) for row in rows):
        raise TrainingError(
            f"no row of {path} has {column}, which consensus = {consensus!r} rewards by",
            f"{column} in at least one row, as build_consensus_rows makes them",
        )
    return rows


def _check_prompt(row: dict[str, Any], number: int, path: Path) -> None:
    messages = row["prompt"]
    if not (isinstance(messages, list) and messages and all(map(_is_message, messages))):
        raise TrainingError(
            f"line {number} of {path} has no conversation as its prompt",
            "a list of messages with role and content",
        )


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
