"""Put values of other types in the place of parts of records."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

VALUES: tuple[Any, ...] = (None, 5, -1.5, True, "x", [], {}, [1], ["x", None], {"a": 1}, [{"type": []}])
Place = tuple[Any, ...]


def part_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every part of a value, but for the value itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*place, key)
        yield from part_places(part, (*place, key))


@st.composite
def changed(draw: st.DrawFn, records: list[Any]) -> list[Any]:
    """Return the records with another value in the place of one part."""
    *above, last = draw(st.sampled_from([place for place in part_places(records) if len(place) > 1]))
    result = target = copy.deepcopy(records)
    for key in above:
        target = target[key]
    target[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return result
