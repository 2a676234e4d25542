"""Data transform: moves tensors to the place and dtype of the kernel that reads them; sparse rows made dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.device.context import DeviceContextPool
from oprack.tensor.arrays import numpy_dtype
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.place import Place
from oprack.tensor.selected_rows import SelectedRows
from oprack.tensor.sparse_tensor import SparseValue


def transform_tensor(
    tensor: LoDTensor, place: Place, pool: DeviceContextPool, *, dtype: str | None = None
) -> LoDTensor:
    """Move a tensor to a place and cast it to a dtype.

    Args:
        tensor: The tensor.
        place: The target place.
        pool: The contexts of the devices.
        dtype: The target dtype; None keeps the tensor's.

    Returns:
        The tensor at `place`; the same object when nothing changes.
    """
    array = tensor.array
    if tensor.place != place:
        array = pool.get(place).from_host(pool.get(tensor.place).to_host(array))
    if dtype is not None and dtype != tensor.dtype:
        target = numpy_dtype(dtype)
        # A cast keeps the real part; taking it first avoids astype's warning about the imaginary part.
        if target.kind != "c" and array.dtype.kind == "c":
            array = array.real
        array = array.astype(target)
    if array is tensor.array and place == tensor.place:
        return tensor
    # The result may be on the tensor's memory (a view, or another place of the same memory), so that neither may be
    # written in place.
    shared = array is tensor.array or (isinstance(array, np.ndarray) and not array.flags.owndata)
    tensor.shared = tensor.shared or shared
    return LoDTensor(array, tensor.lod, place=place, check=False, shared=shared)


def transform_sparse(value: SparseValue, place: Place, pool: DeviceContextPool) -> Any:
    """Move the pattern and the elements of a sparse value to a place.

    Args:
        value: The value.
        place: The target place.
        pool: The contexts of the devices.

    Returns:
        The value at `place`; the same object when it is there already.
    """
    if value.place == place:
        return value
    source, target = pool.get(value.place), pool.get(place)
    *pattern, elements = (target.from_host(source.to_host(a)) for a in (*value.pattern, value.elements))
    return value.rebuilt(pattern, elements, place=place, shared=True)


def transform_value(value: Any, place: Place, pool: DeviceContextPool) -> Any:
    """Move a variable's value to a place: a tensor, a sparse value or an array of tensors; others stay.

    Args:
        value: The value of a variable.
        place: The target place.
        pool: The contexts of the devices.

    Returns:
        The value at `place`.
    """
    if isinstance(value, LoDTensor):
        return value if value.place == place else transform_tensor(value, place, pool)
    if isinstance(value, SparseValue):
        return transform_sparse(value, place, pool)
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


def dense_rows(rows: SelectedRows, xp: Any) -> Any:
    """The dense matrix [height, ...].

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The matrix.
    """
    if xp is np:
        return rows.to_dense()
    dense = xp.zeros(rows.shape, rows.value.dtype)
    xp.add.at(dense, rows.rows, rows.value)
    return dense


def merged_rows(rows: SelectedRows, xp: Any) -> SelectedRows:
    """The same matrix with each row listed once, in ascending order.

    On a device this synchronizes, since the host must know the number of distinct rows.

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The rows, each once.
    """
    if xp is np:
        return rows.merged()
    if not len(rows.rows):
        return SelectedRows(rows.rows.copy(), rows.value.copy(), rows.height, place=rows.place, check=False)
    ordered, segments, sums = _segment_sums(rows, xp)
    count = int(segments[-1]) + 1
    numbers = xp.empty(count, ordered.dtype)
    numbers[segments] = ordered
    return SelectedRows(numbers, sums[:count].copy(), rows.height, place=rows.place, check=False)


def row_totals(rows: SelectedRows, xp: Any) -> SelectedRows:
    """The sum of each row's values, for updates by `table[rows] = function(table[rows], value)`.

    On the host each row is listed once. On a device a row may be listed several times, always with the same sum:
    listing it once would mean waiting for the number of distinct rows.

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The sums.
    """
    if xp is np:
        return rows.merged()
    if not len(rows.rows):
        return rows
    ordered, segments, sums = _segment_sums(rows, xp)
    return SelectedRows(ordered, sums[segments], rows.height, place=rows.place, check=False)


def _segment_sums(rows: SelectedRows, xp: Any) -> tuple[Any, Any, Any]:
    """(row numbers in ascending order, for each the number of its segment, sum of each segment, then zeros)."""
    order = xp.argsort(rows.rows)
    ordered = rows.rows[order]
    is_first = xp.ones(len(ordered), bool)
    xp.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    segments = xp.cumsum(is_first) - 1
    sums = xp.zeros(rows.value.shape, rows.value.dtype)
    xp.add.at(sums, segments, rows.value[order])
    return ordered, segments, sums
