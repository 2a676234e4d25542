"""Data transform: a tensor moved to the place, and cast to the dtype, that a kernel works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.deprecation import refuse_layout
from oprack.device.pool import DeviceContextPool
from oprack.tensor.dtype import numpy_dtype
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.place import Place
from oprack.tensor.selected_rows import SelectedRows


def transform_tensor(
    tensor: LoDTensor, place: Place, pool: DeviceContextPool, *, dtype: str | None = None, layout: str | None = None
) -> LoDTensor:
    """`tensor` at `place` and as `dtype` (None keeps its own); the same object when nothing differs.

    Args:
        tensor: The tensor.
        place: Where it is wanted.
        pool: The contexts of the devices.
        dtype: The dtype that is wanted; None keeps its own.
        layout: Has no meaning any more; leave it out.

    Returns:
        The tensor there.
    """
    if layout is not None:
        refuse_layout("transform_tensor", layout)
    array = tensor.array
    if tensor.place != place:
        array = pool.get(place).from_host(pool.get(tensor.place).to_host(array))
    if dtype is not None and dtype != tensor.dtype:
        target = numpy_dtype(dtype)
        # The real part is what a cast takes; astype would warn of what it drops.
        if target.kind != "c" and array.dtype.kind == "c":
            array = array.real
        array = array.astype(target)
    if array is tensor.array and place == tensor.place:
        return tensor
    # a view, or a place on the same memory: then neither side may be written in place
    shared = array is tensor.array or (isinstance(array, np.ndarray) and not array.flags.owndata)
    tensor.shared = tensor.shared or shared
    return LoDTensor(array, tensor.lod, place=place, check=False, shared=shared)


def transform_rows(rows: SelectedRows, place: Place, pool: DeviceContextPool) -> SelectedRows:
    """`rows` at `place`, row numbers and values; the same object when it is there.

    Args:
        rows: The rows.
        place: Where they are wanted.
        pool: The contexts of the devices.

    Returns:
        The rows there.
    """
    if rows.place == place:
        return rows
    source, target = pool.get(rows.place), pool.get(place)
    numbers, value = (target.from_host(source.to_host(a)) for a in (rows.rows, rows.value))
    return SelectedRows(numbers, value, rows.height, place=place, check=False, shared=True)


def transform_value(value: Any, place: Place, pool: DeviceContextPool) -> Any:
    """A variable's value at `place`: a tensor, rows or an array of tensors moves, anything else stays as it is.

    Args:
        value: The value of a variable.
        place: Where it is wanted.
        pool: The contexts of the devices.

    Returns:
        The value there.
    """
    if isinstance(value, LoDTensor):
        return value if value.place == place else transform_tensor(value, place, pool)
    if isinstance(value, SelectedRows):
        return transform_rows(value, place, pool)
    if isinstance(value, LoDTensorArray):
        moved = [t if t is None else transform_value(t, place, pool) for t in value]
        return value if all(a is b for a, b in zip(moved, value, strict=True)) else LoDTensorArray(moved)
    return value


def host_array(tensor: LoDTensor, pool: DeviceContextPool) -> np.ndarray:
    """The tensor's array in host memory; its own memory when it is there already.

    Args:
        tensor: The tensor.
        pool: The contexts of the devices.

    Returns:
        The array.
    """
    return pool.get(tensor.place).to_host(tensor.array)
