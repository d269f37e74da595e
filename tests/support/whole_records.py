"""Everything that records hold, as one text: their own `repr` leaves the text of sessions out."""

from dataclasses import asdict, is_dataclass
from typing import Any


def whole_text(value: Any) -> str:
    """Return the repr of a value with every field of the records in it."""
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
