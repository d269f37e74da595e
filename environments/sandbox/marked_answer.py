"""Read the answer of a script that ran in a sandbox: JSON behind a marker, among other output."""

import json
from typing import Any


def read_marked_answer(output: str, marker: str) -> Any:
    """Return the JSON value in the line of the last marker; None if there is none that can be read."""
    _, found, rest = output.rpartition(marker)
    try:
        return json.loads(rest.partition("\n")[0]) if found else None
    except (ValueError, RecursionError):
        return None
