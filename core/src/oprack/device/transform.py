"""Data transform: a tensor moved to the place and memory layout, and cast to the dtype, that a kernel works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oprack.device.pool import DeviceContextPool
from oprack.errors import AlreadyExistsError, UnimplementedError
from oprack.tensor.dtype import numpy_dtype
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.place import Place
from oprack.tensor.selected_rows import SelectedRows

_LAYOUTS: dict[tuple[str, str], Callable[[Any], Any]] = {}


def register_layout_transform(source: str, target: str, function: Callable[[Any], Any]) -> None:
    """`function(array)` turns memory of layout `source` into `target`; a kernel library registers both ways.

    Raises AlreadyExistsError when the pair is taken.
    """
    if (source, target) in _LAYOUTS:
        raise AlreadyExistsError(f"a transform from layout {source!r} to {target!r} is registered already")
    _LAYOUTS[source, target] = function


def transform_layout(array: Any, source: str, target: str) -> Any:
    """The array in another layout.

    Raises UnimplementedError that lists the known pairs when nobody registered this one.
    """
    if source == target:
        return array
    function = _LAYOUTS.get((source, target))
    if function is None:
        known = ", ".join(f"{a} -> {b}" for a, b in sorted(_LAYOUTS)) or "none"
        raise UnimplementedError(
            f"no transform from layout {source!r} to {target!r}; known: {known}. The plugin that brings kernels of "
            "layout "
            f"{target!r} has to call register_layout_transform"
        )
    return function(array)


def _nchw_to_nhwc(array: Any) -> Any:
    """ "any" is the layout of the program, which for images is NCHW: channels go last; lower ranks stay."""
    return array.transpose(0, *range(2, array.ndim), 1) if array.ndim >= 3 else array


def _nhwc_to_nchw(array: Any) -> Any:
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1)) if array.ndim >= 3 else array


register_layout_transform("any", "nhwc", _nchw_to_nhwc)
register_layout_transform("nhwc", "any", _nhwc_to_nchw)


def transform_tensor(
    tensor: LoDTensor, place: Place, pool: DeviceContextPool, *, layout: str = "any", dtype: str | None = None
) -> LoDTensor:
    """`tensor` at `place`, in `layout` and as `dtype` (None keeps its own); the same object when nothing differs.

    Layout is changed at the source place, through "any" where no direct transform exists; then place, then dtype.
    """
    array = tensor.array
    if tensor.layout != layout:
        if (tensor.layout, layout) in _LAYOUTS:
            array = transform_layout(array, tensor.layout, layout)
        else:
            array = transform_layout(transform_layout(array, tensor.layout, "any"), "any", layout)
    if tensor.place != place:
        array = pool.get(place).from_host(pool.get(tensor.place).to_host(array))
    if dtype is not None and dtype != tensor.dtype:
        target = numpy_dtype(dtype)
        if target.kind != "c" and array.dtype.kind == "c":
            array = array.real
        array = array.astype(target)
    if array is tensor.array and (place, layout) == (tensor.place, tensor.layout):
        return tensor
    # a transposed view, or a place on the same memory: then neither side may be written in place
    shared = array is tensor.array or (isinstance(array, np.ndarray) and not array.flags.owndata)
    tensor.shared = tensor.shared or shared
    return LoDTensor(array, tensor.lod, place=place, layout=layout, check=False, shared=shared)


def transform_rows(rows: SelectedRows, place: Place, pool: DeviceContextPool) -> SelectedRows:
    """`rows` at `place`, row numbers and values; the same object when it is there."""
    if rows.place == place:
        return rows
    source, target = pool.get(rows.place), pool.get(place)
    numbers, value = (target.from_host(source.to_host(a)) for a in (rows.rows, rows.value))
    return SelectedRows(numbers, value, rows.height, place=place, check=False, shared=True)


def transform_value(value: Any, place: Place, pool: DeviceContextPool) -> Any:
    """A variable's value at `place`: a tensor, rows, or an array of tensors; anything else as it is."""
    if isinstance(value, LoDTensor):
        return value if value.place == place else transform_tensor(value, place, pool)
    if isinstance(value, SelectedRows):
        return transform_rows(value, place, pool)
    if isinstance(value, LoDTensorArray):
        moved = [t if t is None else transform_value(t, place, pool) for t in value]
        return value if all(a is b for a, b in zip(moved, value, strict=True)) else LoDTensorArray(moved)
    return value


def host_array(tensor: LoDTensor, pool: DeviceContextPool) -> np.ndarray:
    """The tensor's array in host memory and layout "any"; its own memory when it is there already."""
    return pool.get(tensor.place).to_host(transform_layout(tensor.array, tensor.layout, "any"))
