"""Recognise records that a file holds twice."""

from collections.abc import Hashable
from typing import Any


class MetRecords:
    """The records met so far, by their ids."""

    def __init__(self) -> None:
        self._by_id: dict[Hashable, list[Any]] = {}

    def repeats(self, record_id: Hashable, record: Any) -> bool:
        """Return whether a record equals an earlier one of its id; remember it. None is no id."""
        if record_id is None:
            return False
        earlier = self._by_id.setdefault(record_id, [])
        if record in earlier:
            return True
        earlier.append(record)
        return False

    @property
    def shared_ids(self) -> int:
        """Return how many records have the id of an earlier one that differs from them."""
        return sum(len(records) - 1 for records in self._by_id.values())
