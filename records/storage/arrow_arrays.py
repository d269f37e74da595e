"""Build Arrow arrays of recorded values, replacing text and numbers that Arrow cannot hold."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa


def make_string_array(values: Sequence[str | None]) -> pa.Array:
    """Return a string array; a lone surrogate, which UTF-8 cannot hold, becomes `?`."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array(
            [value and value.encode("utf-8", "replace").decode() for value in values], pa.string()
        )


def make_number_array(values: Sequence[float | None], kind: pa.DataType) -> pa.Array:
    """Return an array of int32, int64 or float64; a number that does not fit is null."""
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([value if _fits(value, kind) else None for value in values], kind)


def _fits(value: float | None, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (OverflowError, pa.ArrowInvalid):
        return False
    return True


def make_list_array(counts: Iterable[int], values: pa.Array) -> pa.ListArray:
    """Return a list array that splits `values` into lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(list(accumulate(counts, initial=0)), pa.int32()), values)
