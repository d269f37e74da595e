"""Build Arrow arrays of recorded values, replacing text and numbers that Arrow cannot hold.

Arrays are built without `pa.array` where values have the expected types: where pandas is installed,
`pa.array` imports it to look for its objects, which takes a third of the start of an ingest.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.lib import StringBuilder

_FLAGS = frozenset((bool, NoneType))
_INTEGERS = frozenset((int, NoneType))
_FLOATS = frozenset((int, float, NoneType))


def make_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of texts, flags or numbers.

    Raises TypeError for a value that is no text and ValueError for one that is no flag.
    """
    if pa.types.is_string(kind):
        return make_string_array(values)
    return make_flag_array(values) if pa.types.is_boolean(kind) else make_number_array(values, kind)


def make_string_array(values: Sequence[str | None]) -> pa.Array:
    """Return a string array; a lone surrogate, which UTF-8 cannot hold, becomes `?`.

    Raises TypeError for a value that is no text.
    """
    try:
        return _text_array(values)
    except UnicodeEncodeError:
        return _text_array([value and value.encode("utf-8", "replace").decode() for value in values])


def _text_array(values: Sequence[str | None]) -> pa.Array:
    builder = StringBuilder()
    builder.append_values(values)
    return builder.finish()


def make_flag_array(values: Sequence[bool | None]) -> pa.Array:
    """Return an array of flags. Raises ValueError for a value that is no flag."""
    if _FLAGS.issuperset(map(type, values)):
        return _array_of(values, pa.bool_())
    return pa.array(values, pa.bool_())


def make_number_array(values: Sequence[float | None], kind: pa.DataType) -> pa.Array:
    """Return an array of int32, int64 or float64; a number that does not fit is null."""
    expected = _FLOATS if pa.types.is_floating(kind) else _INTEGERS
    try:
        if expected.issuperset(map(type, values)):
            return _array_of(values, kind)
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([value if _fits(value, kind) else None for value in values], kind)


def _array_of(values: Sequence[float | None], kind: pa.DataType) -> pa.Array:
    """Return an array of flags or numbers. Raises OverflowError for a number that does not fit."""
    known = [value is not None for value in values]
    items = np.array([0 if value is None else value for value in values], kind.to_pandas_dtype())
    if pa.types.is_boolean(kind):
        items = _bits(items)
    validity = None if all(known) else pa.py_buffer(_bits(known))
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(items)])


def _bits(flags: Sequence[bool] | np.ndarray) -> np.ndarray:
    """Return flags as Arrow keeps them: one bit each, the lowest of a byte first."""
    return np.packbits(flags, bitorder="little")


def _fits(value: float | None, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (OverflowError, pa.ArrowInvalid):
        return False
    return True


def make_list_array(counts: Iterable[int], values: pa.Array) -> pa.ListArray:
    """Return a list array that splits `values` into lists of these lengths."""
    offsets = list(accumulate(counts, initial=0))
    return pa.ListArray.from_arrays(_array_of(offsets, pa.int32()), values)
