"""A cache of values derived from objects that cannot be hashed."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """An LRU cache of a function of one argument, keyed by the identity (`id`) of the argument.

    For arguments that cannot be hashed. An entry holds a reference to its argument, so that no other object
    gets the same id.
    """

    def __init__(self, make: Callable[[K], V], size: int) -> None:
        """Cache at most `size` results of `make`."""
        self._make = make
        self._size = size
        self._entries: dict[int, tuple[K, V]] = {}

    def get(self, source: K) -> V:
        """Return `make(source)`, computed only if `source` is not cached."""
        entry = self._entries.pop(id(source), None) or (source, self._make(source))
        self._entries[id(source)] = entry
        if len(self._entries) > self._size:
            del self._entries[next(iter(self._entries))]
        return entry[1]
