"""A cache of values derived from objects that cannot be hashed."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """Values of the last `size` objects, by identity; an object is held as long as its value."""

    def __init__(self, make: Callable[[K], V], size: int) -> None:
        self._make = make
        self._size = size
        self._entries: dict[int, tuple[K, V]] = {}

    def get(self, source: K) -> V:
        """Return the value of an object, computed if it is not among the last ones."""
        entry = self._entries.pop(id(source), None) or (source, self._make(source))
        self._entries[id(source)] = entry
        if len(self._entries) > self._size:
            del self._entries[next(iter(self._entries))]
        return entry[1]
