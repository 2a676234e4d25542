"""Arrays from outside, made such as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.selected_rows import SelectedRows


def plain_array(array: Any) -> Any:
    """A NumPy array, or scalar, as kernels take it: of class ndarray, in native byte order and C order.

    One that is so already is returned itself, as are arrays of other libraries.
    Raises InvalidArgumentError for an array with masked elements, which have no values.
    """
    if type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.isnative:
        return array
    if not isinstance(array, np.ndarray | np.generic):
        return array
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InvalidArgumentError(
            f"got a masked array, {int(np.ma.count_masked(array))} of whose {array.size} elements have no value; "
            "expected a value for each: pass array.filled(value)"
        )
    dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    return np.asarray(array, dtype, order="C")


def plain_value(value: Any) -> Any:
    """A value with its arrays made plain; itself when they are. Raises as plain_array."""
    if isinstance(value, LoDTensor):
        array = plain_array(value.array)
        if array is value.array:
            return value
        return LoDTensor(array, value.lod, place=value.place, layout=value.layout, check=False)
    if isinstance(value, SelectedRows):
        array = plain_array(value.value)
        return value if array is value.value else SelectedRows(value.rows, array, value.height, place=value.place)
    if isinstance(value, LoDTensorArray):
        items = [plain_value(t) for t in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else LoDTensorArray(items)
    return plain_array(value)
