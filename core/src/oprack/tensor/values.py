"""Converts values from outside to values as kernels take them: plain_value."""

from __future__ import annotations

from typing import Any

from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.plain import plain_array
from oprack.tensor.sparse_value import SparseValue


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
    if isinstance(value, SparseValue):
        array, pattern = plain_array(value.elements), [plain_array(a) for a in value.pattern]
        same = array is value.elements and all(a is b for a, b in zip(pattern, value.pattern, strict=True))
        return value if same else value.rebuilt(pattern, array)
    if isinstance(value, LoDTensorArray):
        items = [plain_value(t) for t in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else LoDTensorArray(items)
    return plain_array(value)
