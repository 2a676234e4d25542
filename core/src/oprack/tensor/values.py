"""Converts values from outside to values as kernels take them: plain_value."""

from __future__ import annotations

from typing import Any

from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.plain import plain_array
from oprack.tensor.selected_rows import SelectedRows


def plain_value(value: Any) -> Any:
    """A value with its arrays converted by plain_array, which may raise; the value itself when that changes nothing.

    Args:
        value: A value of a variable.

    Returns:
        The value with such arrays.
    """
    if isinstance(value, LoDTensor):
        array = plain_array(value.array)
        if array is value.array:
            return value
        return LoDTensor(array, value.lod, place=value.place, check=False)
    if isinstance(value, SelectedRows):
        array = plain_array(value.value)
        return value if array is value.value else SelectedRows(value.rows, array, value.height, place=value.place)
    if isinstance(value, LoDTensorArray):
        items = [plain_value(t) for t in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else LoDTensorArray(items)
    return plain_array(value)
