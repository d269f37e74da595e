"""Arrow arrays from plain lists, without what else pyarrow would load for them.

`pyarrow.array` imports pandas, where that and numpy are installed, to ask whether its argument is a series:
half a second in a process that has no other use for it. So where numpy is loaded, texts too are laid out
buffer by buffer, as the columnar format says:
https://arrow.apache.org/docs/format/Columnar.html
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

_CODES = {pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}
_DIGITS = b"01" + bytes(254)
DIRECT = "numpy" not in sys.modules
"""Whether pyarrow was loaded without numpy, and so asks no pandas."""
_AT_ONCE = 1 << 22  # characters that may lie in memory three times over


def make_string_array(values: Sequence[str | None]) -> pa.Array:
    """A string array; half a surrogate pair, which UTF-8 cannot hold, becomes `?`."""
    if DIRECT:
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:
            pass
    given: Sequence[Any] = values
    if None in values:
        if not any(values) and "" not in values:
            return pa.nulls(len(values), pa.string())
        given = [value or "" for value in values]
    try:
        data, ends = _encoded(given)
    except UnicodeEncodeError:
        data, ends = _encoded([value.encode("utf-8", "replace").decode() for value in given])
    buffers = [_validity(values), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(given), buffers)


def _encoded(values: Sequence[str]) -> tuple[bytes | bytearray, "array[int]"]:
    """The texts behind one another in UTF-8, and where each ends."""
    if sum(map(len, values)) < _AT_ONCE:
        if all(map(str.isascii, values)):
            return "".join(values).encode(), _ends(map(len, values))
        pieces = [value.encode() for value in values]
        return b"".join(pieces), _ends(map(len, pieces))
    data, ends = bytearray(), array("i", (0,))
    for value in values:
        data += value.encode()
        ends.append(len(data))
    return data, ends


def _ends(counts: Iterable[int]) -> "array[int]":
    return array("i", list(accumulate(counts, initial=0)))


def make_number_array(values: Sequence[float | None], kind: pa.DataType) -> pa.Array:
    """An array of int32, int64 or float64; a whole number that does not fit is none."""
    code = _CODES[kind]
    try:
        data = array(code, [value or 0 for value in values])
    except OverflowError:
        values = [value if value is None or _fits(value, code) else None for value in values]
        data = array(code, [value or 0 for value in values])
    return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(data)])


def _fits(value: float, code: str) -> bool:
    try:
        array(code, [value])
    except OverflowError:
        return False
    return True


def make_boolean_array(values: Sequence[bool | None]) -> pa.Array:
    """A boolean array."""
    data = _bits([bool(value) for value in values])
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(values), data])


def make_list_array(counts: Iterable[int], values: pa.Array) -> pa.ListArray:
    """A list array: the values in runs of these lengths."""
    ends = _ends(counts)
    offsets = pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)])
    return pa.ListArray.from_arrays(offsets, values)


def make_struct_array(kind: pa.StructType, columns: Sequence[pa.Array]) -> pa.StructArray:
    """A struct array of the columns, in the order of the fields of `kind`."""
    return pa.StructArray.from_arrays(list(columns), fields=[kind.field(i) for i in range(kind.num_fields)])


def _validity(values: Sequence[object]) -> pa.Buffer | None:
    return _bits([value is not None for value in values]) if None in values else None


def _bits(values: list[bool]) -> pa.Buffer:
    """One bit a value, the first one the lowest."""
    digits = bytes(values)[::-1].translate(_DIGITS) or b"0"
    return pa.py_buffer(int(digits, 2).to_bytes((len(values) + 7) // 8, "little"))
